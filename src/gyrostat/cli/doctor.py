"""``gyrostat doctor``: what is installed, what it runs on, and whether compiled programs can be trusted."""

from __future__ import annotations

import importlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from gyrostat.jax_tools.compiled_against_numpy import Check, check_all

PACKAGES = ("gyrostat", "jax", "jaxlib", "equinox", "numpy", "scipy", "xarray", "zarr", "matplotlib", "torch")
WRONG = {
    "0.9.1": "float32",
    "0.9.2": "float32",
    "0.10.0": "float32",
    "0.10.1": "float32",
    "0.10.2": "float64 and float32",
}
"""Versions of jaxlib seen to give wrong sums on the CPU, and in which precision (see jax_tools/compiled_against_numpy.py)."""

REPAIR = "XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type="


def doctor(console: Console) -> int:
    """Print the findings; 0 when the float64 programs that gyrostat runs can be trusted, else 1."""
    table = Table("what", "found", title="This installation", title_justify="left")
    for what, found in facts().items():
        table.add_row(what, found)
    console.print(table)
    checks = check_all()
    for dtype in ("float64", "float32"):
        worst = max((c for c in checks if c.dtype == dtype), key=lambda c: c.error)
        count = sum(c.dtype == dtype for c in checks)
        console.print(
            f"Compiled JAX against NumPy, {dtype}: {count} cases, "
            f"largest relative error {worst.error:.1e} ({_name(worst)})."
        )
    status, sentences = judge(checks)
    for sentence in sentences:
        console.print(sentence)
    return status


def facts() -> dict[str, str]:
    """Versions, devices, threads and precision, as words.

    >>> facts()["jax computes by default in"]
    'float32'
    """
    found = {"python": f"{platform.python_version()} on {platform.platform()}"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    found["devices"] = ", ".join(str(device) for device in jax.devices())
    found["cores"] = str(os.cpu_count())
    for name in ("XLA_FLAGS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "JAX_COMPILATION_CACHE_DIR"):
        found[name] = os.environ.get(name, "not set")
    found["jax computes by default in"] = str(jnp.zeros(()).dtype)
    return found


def judge(checks: list[Check], jaxlib: str | None = None) -> tuple[int, list[str]]:
    """The exit status and what to tell the user.

    >>> judge([Check("vmap of sum(M x)", "float64", (16385, 3), 0.1)], "0.10.2")[0]
    1
    """
    jaxlib = version("jaxlib") if jaxlib is None else jaxlib
    sentences = []
    if jaxlib in WRONG:
        sentences.append(
            f"jaxlib {jaxlib} is known to give wrong {WRONG[jaxlib]} results on the CPU for a vmapped "
            "matrix-vector product followed by a reduction over many rows (jax issue 39103)."
        )
    off = {dtype: [c for c in checks if c.dtype == dtype and not c.good] for dtype in ("float64", "float32")}
    if off["float32"]:
        sentences.append(
            f"WARNING: compiled float32 programs are wrong here ({_name(off['float32'][0])}). "
            f"Gyrostat computes in float64; for float32 programs of your own, set {REPAIR}"
        )
    if off["float64"]:
        sentences.append(
            f"FAILED: {len(off['float64'])} float64 cases differ from NumPy ({_name(off['float64'][0])}): "
            "results cannot be trusted; install another version of jax (0.10.1 is right in float64)."
        )
    if not default_kept():
        sentences.append("FAILED: importing gyrostat changed the default precision of jax: report this.")
    failed = bool(off["float64"]) or not default_kept()
    if not failed:
        sentences.append("All is well: compiled float64 programs agree with NumPy.")
    return int(failed), sentences


def default_kept() -> bool:
    """Whether jax's default precision is what the environment asked for, with gyrostat's core imported."""
    importlib.import_module("gyrostat.engine.run")
    asked = os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true", "t", "yes", "y", "on")
    return bool(jax.config.read("jax_enable_x64")) == asked


def _name(check: Check) -> str:
    return f"{check.pattern} at {' x '.join(map(str, check.shape))}, {check.dtype}"
