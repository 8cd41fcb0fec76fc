"""``gyrostat doctor``: what is installed, and whether its compiled programs are right."""

from __future__ import annotations

import importlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import typer

from gyrostat.cli.console import console

if TYPE_CHECKING:
    from rich.console import Console

PACKAGES = ("gyrostat", "jax", "jaxlib", "equinox", "numpy", "scipy", "xarray", "zarr", "matplotlib", "torch")
VARIABLES = ("XLA_FLAGS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "JAX_COMPILATION_CACHE_DIR")


def doctor() -> None:
    """Check this installation and its compiled programs.

    Exit status: 0 when compiled float64 programs agree with NumPy, 1 when not.
    """
    raise typer.Exit(examine(console()))


def examine(console: Console) -> int:
    """Print what was found; return 0 when the float64 programs that gyrostat runs can be trusted, else 1."""
    from rich.table import Table

    from gyrostat.jax_tools import miscompilation_check

    table = Table("what", "found", title="This installation", title_justify="left")
    for what, found in installation().items():
        table.add_row(what, found)
    console.print(table)
    checks = miscompilation_check.check_all()
    for dtype in miscompilation_check.TOLERANCE:
        of_dtype = [check for check in checks if check.dtype == dtype]
        worst = max(of_dtype, key=lambda check: check.error)
        console.print(
            f"Compiled JAX against NumPy, {dtype}: {len(of_dtype)} cases, "
            f"largest relative error {worst.error:.1e} ({worst.name})."
        )
    trusted, sentences = miscompilation_check.judge(checks)
    if not default_precision_is_unchanged():
        trusted = False
        sentences.append("FAILED: importing gyrostat changed the default precision of jax: report this.")
    for sentence in sentences:
        console.print(sentence)
    return 0 if trusted else 1


def installation() -> dict[str, str]:
    """Versions, devices, threads and precision.

    >>> installation()["default precision of jax"]
    'float32'
    """
    import jax
    import jax.numpy as jnp

    found = {"python": f"{platform.python_version()} on {platform.platform()}"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["devices"] = ", ".join(str(device) for device in jax.devices())
    found["cores"] = str(os.cpu_count())
    found |= {name: os.environ.get(name, "not set") for name in VARIABLES}
    found["default precision of jax"] = str(jnp.zeros(()).dtype)
    return found


def default_precision_is_unchanged() -> bool:
    """Whether jax computes in the precision that the environment asks for after gyrostat's core is imported."""
    import jax

    importlib.import_module("gyrostat.engine.simulate")
    asked = os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true", "t", "yes", "y", "on")
    return bool(jax.config.read("jax_enable_x64")) == asked
