"""Every public noun prints as the call that makes an equal one, and says which argument was meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from gyrostat.jax_tools.readable_modules import ReadableModule
from public_calls import public_calls

E = np.eye(3)
TEXTS = {
    "HeteroSGD(0.05)": gs.HeteroSGD(0.05, rule=gs.rules.GradientStep(), start=gs.starts.ScaledIdentity(1e-3)),
    "HeteroSGD(0.05, init_scale=0.01, order='cyclic', model=Diagonal(), amplify=2.0)": gs.HeteroSGD(
        0.05, init_scale=0.01, order="cyclic", model=gs.Diagonal(), amplify=2
    ),
    "HeteroSGD(0.05, start=ScaledGaussian(0.5))": gs.HeteroSGD(0.05, start=gs.starts.ScaledGaussian(0.5)),
    "HeteroSGD(Constant(0.05, ridge=0.1), rule=Adam(beta2=0.99))": gs.HeteroSGD(
        gs.schedules.Constant(0.05, 0.1), rule=gs.rules.Adam(beta2=0.99)
    ),
    "QuadraticNetworkSGD(0.01, pooled=True)": gs.QuadraticNetworkSGD(0.01, pooled=True),
    "GradientDescent(0.2, model=Asymmetric(width=4))": gs.GradientDescent(0.2, width=4),
    "GradientDescent(0.2, start=FanInGaussian(scale=0.05), model=Symmetric(width=4, gradient_factor=2.0))": (
        gs.GradientDescent(0.2, width=4, symmetric=True, start=0.05)
    ),
    "GradientDescent(0.2, start=FanInGaussian(scale=0.1), model=DeepLinear(depth=4), events=(ImbalanceStep(at=5),))": (
        gs.GradientDescent(0.2, model=gs.DeepLinear(4), events=[gs.events.ImbalanceStep(at=5)])
    ),
    "ScaledGD(0.02, rule=Adam(of=Preconditioned(damping=0.01)))": gs.ScaledGD(0.02, damping=0.01, rule=gs.rules.Adam()),
    "ScaledGD(0.02, damping='residual')": gs.ScaledGD(0.02, damping="residual"),
    "RidgeDescent(0.2, ridge=0.1, convention='main_text')": gs.RidgeDescent(0.2, 0.1, convention="main_text"),
    "RidgeDescent(0.2, batches=Pooled(), rule=Nesterov(of=RidgeStep()))": gs.RidgeDescent(
        0.2, batches=gs.batches.Pooled(), rule=gs.rules.Nesterov()
    ),
    "Optax('adam', arguments={'b1': 0.8, 'learning_rate': 1.0})": gs.rules.Optax(
        "adam", {"learning_rate": 1.0, "b1": 0.8}
    ),
    "Algorithm(Symmetric(), ScaledIdentity(0.001), Pooled(), Constant(0.05), events=(Shrinkage(),))": gs.Algorithm(
        gs.Symmetric(), gs.starts.ScaledIdentity(0.001), gs.batches.Pooled(), 0.05, events=[gs.events.Shrinkage()]
    ),
    "Periodic([(10, Constant(0.1)), (5, Constant(0.2))], start=3)": gs.schedules.Periodic(
        [(10, 0.1), (5, 0.2)], start=3
    ),
    "Given([[1.0, 0.0], [0.0, 1.0]], [2.0])": gs.starts.Given(np.eye(2), [2.0]),
    "TwoPoint(mean=0.3, spread=0.0, rank=3)": gs.TwoPoint(0.3, 0.0, rank=3),
    "Finite([[[-1.0]], [[3.0]]], weights=[0.25, 0.75])": gs.Finite([-1.0, 3.0], [0.25, 0.75]),
    "RectangularEnvironments([[1.0], [0.0], [0.0]], [[1.0], [0.0]], values=[3.0])": gs.RectangularEnvironments(
        np.eye(3, 1), np.eye(2, 1), values=[3.0]
    ),
    "ArrayEnvironments([0.0, 2.0], spurious=[[3.0, 0.0], [-1.0, 0.0]])": gs.environments.ArrayEnvironments(
        [0.0, 2.0], [[3.0, 0.0], [-1.0, 0.0]]
    ),
    "Problem(RandomEnvironments(60, law=TwoPoint(spread=6.0), overlap=0.1), FreshGaussian(8000))": gs.Problem(
        gs.RandomEnvironments(60, law=gs.TwoPoint(spread=6.0), overlap=0.1), gs.FreshGaussian(8000)
    ),
}
"""Texts leave out what need not be said."""


def evaluated(text: str) -> Any:
    return eval(text, {name: gs.public(name) for name in gs.places()})


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_says_what_must_be_said(text):
    assert repr(TEXTS[text]) == text


def public_modules() -> Iterator[ReadableModule]:
    for call in public_calls():
        if isinstance(call.function, type) and issubclass(call.function, ReadableModule):
            yield call.function(**call.good)
    yield from TEXTS.values()


def test_the_text_makes_an_equal_object():
    """For every public module; test_conformance.py has every algorithm with its parts."""
    modules = list(public_modules())
    written = [module for module in modules if "numbers>" not in repr(module)]
    assert len(modules) - len(written) <= 1  # the rows of DenseData are too many to be written
    for module in written:
        assert bool(evaluated(repr(module)) == module), repr(module)


def test_a_changed_algorithm_does_not_print_as_the_named_one():
    changed = eqx.tree_at(lambda a: a.start, gs.HeteroSGD(0.05), gs.starts.ScaledGaussian(0.5))
    assert repr(changed) == "HeteroSGD(0.05, start=ScaledGaussian(0.5))"
    for algorithm, part, other in (
        (gs.HeteroSGD(0.05), "batches", gs.batches.Pooled()),
        (gs.PooledSGD(0.05), "batches", gs.batches.OneEnvironment()),
        (gs.ScaledGD(0.05), "events", (gs.events.Shrinkage(),)),
    ):
        changed = eqx.tree_at(
            lambda a, part=part: getattr(a, part), algorithm, other, is_leaf=lambda x: type(x) is tuple
        )
        assert f"{part}={other!r}" in repr(changed)


def test_traced_objects_and_large_arrays_have_a_text():
    texts = []
    jax.jit(lambda a: texts.append(repr(a)) or 0)(gs.HeteroSGD(0.5))
    assert texts[0].startswith("HeteroSGD(")
    assert "<100 x 1 numbers>" in repr(gs.Environments(np.eye(100, 1)))


class Mine(gs.starts.Start):
    """A start of a user, whose constructor keeps its argument under another name."""

    kept: float

    def __init__(self, size):
        self.kept = size

    def __call__(self, model, shape, key, first_gradient=None):
        return ()


def test_a_users_own_noun_prints_its_fields():
    assert repr(Mine(2.0)) == "Mine(kept=2.0)"


MISSPELT = [
    (lambda: gs.HeteroSGD(lr=0.05), "step_size"),
    (lambda: gs.HeteroSGD(0.05, initscale=1.0), "init_scale"),
    (lambda: gs.GradientDescent(0.05, k=3), "width"),
    (lambda: gs.FreshGaussian(m=80), "num_samples"),
    (lambda: gs.RidgeDescent(0.1, weight_decay=0.1), "ridge"),
    (lambda: gs.run(gs.HeteroSGD(0.05), None, steps=3), "num_steps"),
    (lambda: gs.run_grid(None, {}, T=3), "num_steps"),
    (lambda: gs.engine.offshoots(None, None, att=[3]), "at"),
    (lambda: gs.sweep("step-spread", output="x"), "out"),
    (lambda: gs.diagnostics.late_speed(E, E, 0.1, rnak=1), "rank"),
]


@pytest.mark.parametrize("i", range(len(MISSPELT)))
def test_a_misspelt_argument_says_what_was_meant(i):
    make, meant = MISSPELT[i]
    refuses(make, "has no argument", f"did you mean {meant}?")
    with pytest.raises(TypeError):  # what Python itself raises
        make()


def test_an_argument_like_no_other_lists_all():
    refuses(lambda: gs.Symmetric(zzz=1), "zzz", "width", "gradient_factor")


CLASSES = [
    (lambda: gs.HeteroSGD(0.05, model=gs.Diagonal), "model", "make one: gs.Diagonal()."),
    (lambda: gs.HeteroSGD(gs.schedules.Constant), "step_size", "make one: gs.schedules.Constant(step_size=...)."),
    (
        lambda: gs.GradientDescent(0.1, start=gs.starts.ScaledIdentity),
        "init_scale",
        "make one: gs.starts.ScaledIdentity(scale=...).",
    ),
    (lambda: gs.Problem(gs.RandomEnvironments, gs.Identity()), "environments", "gs.RandomEnvironments(dimension=...)."),
    (lambda: gs.run(gs.HeteroSGD, None, num_steps=3), "algorithm", "make one: gs.HeteroSGD(step_size=...)."),
    (lambda: gs.run(gs.HeteroSGD(0.1), gs.Problem, num_steps=3), "problem", "gs.Problem(environments=..., measure"),
    (lambda: gs.GradientDescent(0.1, events=(gs.events.Shrinkage,)), "events", "make one: gs.events.Shrinkage()."),
]


@pytest.mark.parametrize("i", range(len(CLASSES)))
def test_a_class_in_place_of_an_object(i):
    make, *words = CLASSES[i]
    refuses(make, "the class", *words)


@pytest.mark.parametrize("text", ["0.05", b"0.05", True, np.str_("0.05")])
def test_text_and_truth_values_are_not_numbers(text):
    refuses(lambda: gs.HeteroSGD(text), "step_size", "0.05" if text is not True else "True")
    refuses(lambda: gs.FreshGaussian(text), "num_samples")


def test_arrays_of_text_are_not_numbers():
    refuses(lambda: gs.Finite(["1.0", "2.0"]), "values", "text")


@pytest.mark.parametrize(
    ("wrong", "right"), [("HetroSGD", "HeteroSGD"), ("twopoint", "TwoPoint"), ("runs", "run"), ("Problems", "Problem")]
)
def test_a_misspelt_public_name(wrong, right):
    with pytest.raises(AttributeError, match=rf"did you mean gs\.{right}\?"):
        getattr(gs, wrong)
    assert not hasattr(gs, "nothing_like_it") and not hasattr(gs, "__wrapped__")
