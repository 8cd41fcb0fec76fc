"""``import gyrostat`` is instant, changes nothing, and every public name is there and explained."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gyrostat as gs


def child(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_alone_does_not_import_jax():
    heavy = {"jax", "numpy", "equinox", "xarray", "matplotlib", "sklearn", "torch"}
    code = f"import gyrostat, sys; print(sorted(set(sys.modules) & {heavy}))"
    assert child(code) == "[]"


def test_running_leaves_the_precision_of_the_process_alone():
    code = """
import sys, gyrostat as gs, jax, jax.numpy as jnp
assert not jax.config.jax_enable_x64
found = gs.run(gs.HeteroSGD(0.05), gs.Problem(gs.RandomEnvironments(3), gs.Identity()), num_steps=3)
gs.isometry_constant(3, 10, 1, draws=2, steps=1)
gs.Sampler(lambda key: jax.random.uniform(key)).bound
print(found.signal.dtype, jax.config.jax_enable_x64, jnp.ones(1).dtype, "matplotlib" in sys.modules)
"""
    assert child(code) == "float64 False float32 False"


def test_every_public_name_resolves_and_is_explained():
    assert sorted(gs.__all__) == sorted(set(gs.__all__)) and dir(gs) == sorted(gs.__all__)
    for name in set(gs.__all__) - {"__version__", "DIAGNOSTICS"}:
        text = getattr(gs, name).__doc__ or ""
        # Dataclasses without a docstring get their signature as one.
        assert len(text.split()) >= 4 and not text.startswith(f"{name}("), name


def test_unknown_name():
    with pytest.raises(AttributeError, match="HeteroSDG"):
        gs.HeteroSDG  # noqa: B018


def test_a_name_that_is_gone_says_what_to_use_instead():
    sentence = "^gyrostat.Geometric is gone: use a function of the step, such as"
    with pytest.raises(AttributeError, match=sentence):
        gs.Geometric  # noqa: B018
    with pytest.raises(ImportError, match=sentence):
        exec("from gyrostat import Geometric")
    assert not hasattr(gs, "Geometric")


def test_every_diagnostic_is_explained():
    for name, diagnostic in gs.DIAGNOSTICS.items():
        assert diagnostic.name == name and diagnostic.description
