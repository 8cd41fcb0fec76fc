"""Every public noun prints as the call that makes an equal one, and says which argument was meant."""

from __future__ import annotations

import inspect
import re
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from gyrostat.jax_tools.readable_modules import ReadableModule

E = np.eye(3)
NOUNS = [
    "HeteroSGD(0.05)",
    "PooledSGD(0.3)",
    "PooledGD(0.1, model=Symmetric(width=2))",
    "GradientDescent(0.2, width=4, start=0.05)",
    "GradientDescent(0.2, model=DeepLinear(depth=4))",
    "ScaledGD(0.2, damping=0.1)",
    "PrecGD(0.2)",
    "QuadraticNetwork(0.01, pooled=True)",
    "Algorithm(Symmetric(), ScaledIdentity(0.001), Pooled(), Constant(0.05), events=(Shrinkage(),))",
    "OneEnvironment(order='shuffled', amplify=7.0)",
    "Full()",
    "Pooled()",
    "ImbalanceStep(below=0.1, beta=1.0)",
    "Shrinkage()",
    "FanInGaussian(scale=0.5)",
    "FanInUniform()",
    "Orthogonal()",
    "OrthonormalZero()",
    "ImbalancedGaussian(0.5)",
    "ScaledGaussian(0.5)",
    "ScaledIdentity(0.5)",
    "SymmetricGaussian(0.5)",
    "Spectral()",
    "Constant(0.1, ridge=0.2)",
    "Annealing(Constant(0.1), Constant(0.1), 3)",
    "WarmUp(500, 0.03, Constant(0.1))",
    "Periodic([(10, Constant(0.1)), (5, Constant(0.2))], start=3)",
    "Piecewise([(0, 5, Constant(0.1)), (5, None, Constant(0.2))])",
    "GradientStep(decay=1.0)",
    "Preconditioned(damping='residual')",
    "RidgeStep(convention='appendix')",
    "Momentum(beta=0.8)",
    "Nesterov(beta=0.8)",
    "Adam(beta2=0.99)",
    "ArrayEnvironments([[2.0, 0.0], [0.0, 0.0]])",
    "ArrayEnvironments([0.0, 2.0], spurious=[[3.0, 0.0], [-1.0, 0.0]])",
    "Absent()",
    "TwoPoint(mean=0.1, spread=0.7, rank=2, independent=True)",
    "Uniform(spread=3.0, rank=2, independent=True)",
    "Gaussian(mean=0.5)",
    "Environments([[1.0], [0.0], [0.0]])",
    "Environments([[1.0], [0.0], [0.0]], spurious_basis=[[0.0], [1.0], [0.0]], law=TwoPoint(spread=6.0), values=[2.0])",
    "VectorEnvironments([1.0, -1.0, 0.0], spurious_coordinates=[2], law=TwoPoint(spread=6.0))",
    "RectangularEnvironments([[1.0], [0.0], [0.0]], [[1.0], [0.0]], values=[3.0])",
    "Observed((20,), 2)",
    "RandomEnvironments(60, law=TwoPoint(spread=6.0), overlap=0.1)",
    "FeatureEnvironments(9, 2, TwoPoint(spread=6.0))",
    "RandomRectangular(5, 4, rank=2)",
    "Dense(100, redraw=True)",
    "DenseData([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0], [0, 1], batch_size=1)",
    "Entries(((0, 0), (1, 1)), batch_size=1)",
    "FixedGaussian(8000, noise=0.1)",
    "FreshGaussian(8000)",
    "Identity()",
    "RankOne(1000, truncation=12.5)",
    "Problem(RandomEnvironments(60, law=TwoPoint(spread=6.0)), FreshGaussian(8000))",
    "Asymmetric(width=4)",
    "DeepLinear(depth=2, width=5)",
    "DeepLinear(widths=(2, 7, 3))",
    "Diagonal(gradient_factor=2.0)",
    "Symmetric()",
    "SymmetricDifference(width=2)",
]
"""Shortest calls, one of every noun."""

WRITTEN_OTHERWISE = {
    "HeteroSGD(0.05, init_scale=0.01, order='cyclic', model=Diagonal(), amplify=2.0)": gs.HeteroSGD(
        0.05, init_scale=0.01, order="cyclic", model=gs.Diagonal(), amplify=2
    ),
    "GradientDescent(0.2, width=4, symmetric=True, start=ScaledIdentity(0.1), events=(ImbalanceStep(at=5),))": (
        gs.GradientDescent(0.2, width=4, symmetric=True, start=gs.ScaledIdentity(0.1), events=[gs.ImbalanceStep(at=5)])
    ),
    "RidgeDescent(0.2, ridge=0.1, convention='main_text')": gs.RidgeDescent(0.2, 0.1, convention="main_text"),
    "Given([[1.0, 0.0], [0.0, 1.0]], [2.0])": gs.Given(np.eye(2), [2.0]),
    "TwoPoint(mean=0.3, spread=0.0, rank=3)": gs.TwoPoint(0.3, 0.0, rank=3),
    "Finite([[[-1.0]], [[3.0]]], weights=[0.25, 0.75])": gs.Finite([-1.0, 3.0], [0.25, 0.75]),
}
NOT_TEXT = {"Optax", "Sampler", "UpdateRule"}
"""A function of the user or of optax has no text, and the base class of update rules makes no step."""


def evaluated(text: str) -> Any:
    names: dict = {}
    exec("from gyrostat import *", names)
    return eval(text, names)


@pytest.mark.parametrize("text", [*NOUNS, *WRITTEN_OTHERWISE])
def test_the_text_is_the_shortest_call_that_makes_an_equal_object(text):
    noun = WRITTEN_OTHERWISE[text] if text in WRITTEN_OTHERWISE else evaluated(text)
    assert repr(noun) == text and bool(evaluated(text) == noun)


def test_every_public_noun_is_among_them():
    public = {name: getattr(gs, name) for name in gs.__all__}
    nouns = {
        name
        for name, x in public.items()
        if inspect.isclass(x) and issubclass(x, ReadableModule) and not inspect.isabstract(x)
    }
    assert nouns - NOT_TEXT <= {text.partition("(")[0] for text in (*NOUNS, *WRITTEN_OTHERWISE)}


def test_the_table_for_notebooks_holds_every_argument_and_escapes_text():
    html = gs.HeteroSGD(0.05, order="cyclic")._repr_html_()
    for word in ("HeteroSGD", "step_size", "0.05", "init_scale", "0.001", "&#39;cyclic&#39;"):
        assert word in html
    assert "RandomEnvironments" in gs.Problem(gs.RandomEnvironments(60), gs.Identity())._repr_html_()
    law = gs.Sampler(lambda key: jax.random.normal(key))
    assert "&lt;function" in law._repr_html_() and "<function" not in law._repr_html_()


def test_a_changed_algorithm_does_not_print_as_the_named_one():
    changed = eqx.tree_at(lambda a: a.start, gs.HeteroSGD(0.05), gs.ScaledGaussian(0.5))
    assert repr(changed) == "HeteroSGD(0.05, start=ScaledGaussian(0.5))"
    changed = eqx.tree_at(lambda a: a.batches, gs.HeteroSGD(0.05), gs.Pooled())
    assert re.match(r"HeteroSGD\(model=.*batches=Pooled\(\)", repr(changed))


def test_traced_objects_and_large_arrays_have_a_text():
    texts = []
    jax.jit(lambda a: texts.append(repr(a)) or 0)(gs.ScaledIdentity(0.5))
    assert texts[0].startswith("ScaledIdentity(")
    assert "<100 x 1 numbers>" in repr(gs.Environments(np.eye(100, 1)))


class Mine(gs.Start):
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
    (lambda: gs.offshoots(None, None, att=[3]), "at"),
    (lambda: gs.sweep("step-spread", output="x"), "out"),
    (lambda: gs.late_speed(E, E, 0.1, rnak=1), "rank"),
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
    (lambda: gs.HeteroSGD(gs.Constant), "step_size", "make one: gs.Constant(step_size=...)."),
    (lambda: gs.GradientDescent(0.1, start=gs.ScaledIdentity), "init_scale", "make one: gs.ScaledIdentity(scale=...)."),
    (lambda: gs.Problem(gs.RandomEnvironments, gs.Identity()), "environments", "gs.RandomEnvironments(dimension=...)."),
    (lambda: gs.run(gs.HeteroSGD, None, num_steps=3), "algorithm", "make one: gs.HeteroSGD(step_size=...)."),
    (lambda: gs.run(gs.HeteroSGD(0.1), gs.Problem, num_steps=3), "problem", "gs.Problem(environments=..., measure"),
    (lambda: gs.GradientDescent(0.1, events=(gs.Shrinkage,)), "events", "make one: gs.Shrinkage()."),
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
