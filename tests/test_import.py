"""``import gyrostat`` is instant, changes nothing, and every public name is there and explained."""

from __future__ import annotations

import inspect
import operator
import subprocess
import sys

import pytest

import gyrostat as gs
from gyrostat.what_went import MOVED

UNLISTED = ("diagnostics", "estimators", "experiments", "theory")
"""Rooms with more names than a docstring can list, or whose docstring names their parts."""


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
gs.diagnostics.isometry_constant(3, 10, 1, draws=2, steps=1)
gs.laws.Sampler(lambda key: jax.random.uniform(key)).bound
print(found.signal.dtype, jax.config.jax_enable_x64, jnp.ones(1).dtype, "matplotlib" in sys.modules)
"""
    assert child(code) == "float64 False float32 False"


def test_every_public_name_resolves_and_is_explained():
    assert sorted(gs.__all__) == sorted(set(gs.__all__)) and dir(gs) == sorted(gs.__all__)
    for name in gs.places().keys() - {"__version__", "DIAGNOSTICS"}:
        text = gs.public(name).__doc__ or ""
        # Dataclasses without a docstring get their signature as one.
        assert len(text.split()) >= 4 and not text.startswith(f"{name}("), name


def test_about_forty_names_are_at_the_top():
    assert 38 <= len([name for name in gs.__all__ if not inspect.ismodule(getattr(gs, name))]) <= 44


@pytest.mark.parametrize("space", gs.NAMESPACES)
def test_a_namespace_shows_its_public_names_alone(space):
    module = operator.attrgetter(space)(gs)
    assert space.partition(".")[0] in gs.__all__ and sorted(dir(module)) == sorted(module.__all__)
    assert not {"Any", "annotations", "jax", "jnp", "np", "errors"} & set(dir(module))


@pytest.mark.parametrize("space", [s for s in gs.NAMESPACES if s.partition(".")[0] not in UNLISTED])
def test_a_namespace_lists_its_names_in_its_docstring(space):
    module = operator.attrgetter(space)(gs)
    assert [name for name in module.__all__ if name not in module.__doc__] == []


@pytest.mark.parametrize("name", sorted(MOVED))
def test_a_name_that_moved_is_found_with_a_warning_at_the_line_that_uses_it(name):
    assert name not in dir(gs) and name not in gs.__all__
    with pytest.warns(DeprecationWarning, match=rf"^gs.{name} is gs.{MOVED[name]} now") as caught:
        thing = getattr(gs, name)
    assert [w.filename for w in caught] == [__file__] and thing is operator.attrgetter(MOVED[name])(gs)


def test_a_name_that_moved_is_imported_with_one_warning():
    with pytest.warns(DeprecationWarning, match=r"^gs.Adam is gs.rules.Adam now") as caught:
        exec("from gyrostat import Adam", names := {})
    assert [w.filename for w in caught] == ["<string>"] and names["Adam"] is gs.rules.Adam


@pytest.mark.parametrize(("wrong", "right"), [("HeteroSDG", "HeteroSGD"), ("Orthogonl", "starts.Orthogonal")])
def test_an_unknown_name_lists_the_closest(wrong, right):
    with pytest.raises(AttributeError, match=rf"gyrostat has no '{wrong}': did you mean gs.{right}\?"):
        getattr(gs, wrong)


def test_a_name_that_is_gone_says_what_to_use_instead():
    sentence = "^gyrostat.Geometric is gone: use a function of the step, such as"
    with pytest.raises(AttributeError, match=sentence):
        gs.Geometric  # noqa: B018
    with pytest.raises(ImportError, match=sentence):
        exec("from gyrostat import Geometric")
    assert not hasattr(gs, "Geometric")


def test_a_room_that_is_no_namespace_is_there_before_anything_imports_it():
    assert child("import gyrostat as gs; print(gs.algorithms.__name__)") == "gyrostat.algorithms"


def test_every_diagnostic_is_explained():
    for name, diagnostic in gs.diagnostics.DIAGNOSTICS.items():
        assert diagnostic.name == name and diagnostic.description
