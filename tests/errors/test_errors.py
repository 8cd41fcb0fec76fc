"""Bad input: refused before any compilation, in one sentence that names the argument."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from conftest import Watch, given_environments, orthonormal, rectangular_environments
from gyrostat.algorithms import OneEnvironment
from gyrostat.diagnostics import margins
from gyrostat.diagnostics.base import resolve
from gyrostat.engine.simulate import check
from gyrostat.theory import critical_points, fold

EYE = np.eye(4)
NAN, INF = float("nan"), float("inf")
X3 = np.stack([np.eye(3)] * 4)
PAIRS = [(0, 0), (1, 0), (1, 1)]
FLAT = gs.Constant(0.1, 0.1)


NUMBERS = [  # argument, constructor of one number, whether zero is refused too
    ("step_size", gs.HeteroSGD, True),
    ("step_size", gs.PooledSGD, True),
    ("step_size", gs.PooledGD, True),
    ("step_size", gs.QuadraticNetwork, True),
    ("step_size", gs.Constant, True),
    ("ridge", lambda x: gs.Constant(0.1, x), False),
    ("decay", gs.GradientStep, False),
    ("init_scale", gs.ScaledIdentity, True),
    ("init_scale", gs.ScaledGaussian, True),
    ("init_scale", lambda x: gs.HeteroSGD(0.1, init_scale=x), True),
    ("gradient_factor", lambda x: gs.Symmetric(gradient_factor=x), True),
    ("gradient_factor", lambda x: gs.SymmetricDifference(gradient_factor=x), True),
    ("gradient_factor", lambda x: gs.Diagonal(gradient_factor=x), True),
    ("step_size", gs.GradientDescent, True),
    ("step_size", gs.ScaledGD, True),
    ("step_size", gs.PrecGD, True),
    ("init_scale", lambda x: gs.GradientDescent(0.1, start=x), True),
    ("init_scale", gs.SymmetricGaussian, True),
    ("init_scale", gs.ImbalancedGaussian, True),
    ("ratio", lambda x: gs.ImbalancedGaussian(0.1, x), True),
    ("init_scale", gs.OrthonormalZero, True),
    ("damping", lambda x: gs.ScaledGD(0.1, damping=x), False),
    ("damping", gs.Preconditioned, False),
    ("at", lambda x: gs.ImbalanceStep(at=x), False),
    ("below", lambda x: gs.ImbalanceStep(below=x), True),
    ("beta", lambda x: gs.ImbalanceStep(at=1, beta=x), True),
    ("design", lambda x: gs.Dense(5, design=x), False),
    ("rows", lambda x: gs.RandomRectangular(x, 3), True),
    ("columns", lambda x: gs.RandomRectangular(3, x), True),
    ("rank", lambda x: gs.RandomRectangular(3, 3, x), True),
    ("dimension", gs.Environments.diagonal, True),
    ("step_size", lambda x: gs.late_speed(EYE, EYE, x, 1), True),
    ("rank", lambda x: gs.late_speed(EYE, EYE, 0.1, x), True),
    ("num_samples", gs.FreshGaussian, True),
    ("num_samples", gs.FixedGaussian, True),
    ("num_samples", gs.Dense, True),
    ("num_samples", gs.RankOne, True),
    ("noise", lambda x: gs.FreshGaussian(5, noise=x), False),
    ("noise", lambda x: gs.FixedGaussian(5, noise=x), False),
    ("noise", lambda x: gs.Dense(5, noise=x), False),
    ("noise", lambda x: gs.RankOne(5, noise=x), False),
    ("truncation", lambda x: gs.RankOne(5, truncation=x), True),
    ("spread", lambda x: gs.TwoPoint(spread=x), False),
    ("spread", lambda x: gs.Uniform(spread=x), False),
    ("spread", lambda x: gs.Gaussian(spread=x), False),
    ("overlap", lambda x: gs.RandomEnvironments(4, law=gs.TwoPoint(), overlap=x), False),
    ("dimension", gs.RandomEnvironments, True),
    ("rank", lambda x: gs.RandomEnvironments(4, x), True),
    ("rank", lambda x: gs.TwoPoint(rank=x), True),
    ("rank", lambda x: gs.Uniform(rank=x), True),
    ("rank", lambda x: gs.FeatureEnvironments(4, x, gs.TwoPoint()), True),
    ("batch_size", lambda x: gs.DenseData(X3, np.ones(4), [0, 0, 1, 1], batch_size=x), True),
    ("dimension", lambda x: gs.isometry_constant(x, 10, 1), True),
    ("num_samples", lambda x: gs.isometry_constant(3, x, 1), True),
    ("rank", lambda x: gs.isometry_constant(3, 10, x), True),
    ("draws", lambda x: gs.isometry_constant(3, 10, 1, draws=x), True),
    ("depth", gs.DeepLinear, True),
    ("width", lambda x: gs.DeepLinear(3, x), True),
    ("width", gs.Symmetric, True),
    ("width", lambda x: gs.GradientDescent(0.1, width=x), True),
    ("widths", lambda x: gs.DeepLinear(widths=(2, x, 2)), True),
    ("batch_size", lambda x: gs.Entries(PAIRS, batch_size=x), True),
    ("noise", lambda x: gs.Entries(PAIRS, noise=x), False),
    ("init_scale", gs.FanInUniform, True),
    ("init_scale", gs.FanInGaussian, True),
    ("init_scale", gs.Orthogonal, True),
    ("step_size", gs.RidgeDescent, True),
    ("ridge", lambda x: gs.RidgeDescent(0.1, x), False),
    ("num_steps", lambda x: gs.WarmUp(x, 0.1, FLAT), False),
    ("step_size", lambda x: gs.WarmUp(5, x, FLAT), True),
    ("at", lambda x: gs.Annealing(FLAT, FLAT, at=x), False),
    ("length", lambda x: gs.Periodic([(x, FLAT)]), True),
    ("start", lambda x: gs.Periodic([(5, FLAT)], start=x), False),
    ("alpha", gs.approximate_rank, True),
    ("depth", lambda x: gs.representation_cost(EYE, x), True),
    ("ridge", lambda x: gs.absorbing(x, 3, 2), True),
    ("depth", lambda x: gs.absorbing(0.1, x, 2), True),
    ("size", lambda x: gs.absorbing(0.1, 3, x), True),
    ("rank", lambda x: gs.absorbing(0.1, 3, 2, rank=x), False),
    ("largest", lambda x: gs.absorbing(0.1, 3, 2, largest=x), True),
    ("excess", lambda x: gs.absorbing(0.1, 3, 2, excess=x), True),
    ("ratio", lambda x: gs.jumps([[1.0]], [0], ratio=x), True),
    ("zero", lambda x: gs.jumps([[1.0]], [0], zero=x), False),
    ("rank", lambda x: gs.jump_times([[1.0]], [0], rank=x), False),
    ("epsilon", lambda x: fold(x, 3), True),
    ("depth", lambda x: fold(0.1, x), True),
    ("ridge", lambda x: critical_points(EYE, PAIRS, 3, x), True),
    ("tries", lambda x: critical_points(EYE, PAIRS, 3, 0.1, tries=x), True),
    ("steps", lambda x: gs.isometry_constant(3, 10, 1, steps=x), True),
]


@pytest.mark.parametrize("i", range(len(NUMBERS)), ids=lambda i: f"{NUMBERS[i][0]}-{i}")
def test_numbers_out_of_range(i):
    name, make, zero = NUMBERS[i]
    for bad in (-1, NAN, "many", [1.0, 2.0], *((0,) if zero else ())):
        refuses(lambda bad=bad: make(bad), name)


def test_numbers_say_what_they_got_and_need():
    assert refuses(lambda: gs.HeteroSGD(-0.5), "above 0", "-0.5")
    assert refuses(lambda: gs.RandomEnvironments(4, 7), "rank", "at most 4", "dimension", "7")
    assert refuses(lambda: gs.RandomEnvironments(4, overlap=1.5), "overlap", "at most 1")
    assert refuses(lambda: gs.Dense(2.5), "num_samples", "whole number", "2.5")
    assert refuses(lambda: gs.TwoPoint(rank=13, independent=True), "rank", "12")
    assert refuses(lambda: gs.TwoPoint(mean=NAN), "mean")
    assert refuses(lambda: gs.ImbalanceStep(below=1.5), "below", "at most 1", "1.5")
    assert refuses(lambda: gs.ImbalanceStep(at=2.5), "at", "whole number", "2.5")
    assert refuses(lambda: gs.Dense(5, design=0.5), "design", "whole number", "0.5")
    assert refuses(lambda: gs.RandomRectangular(3, 5, 4), "rank", "at most 3", "smaller side", "4")
    assert refuses(lambda: gs.HeteroSGD(np.ones(3)), "step_size", "shape (3,)")


# --- environments and laws ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.Environments(np.ones(4)), ["invariant_basis", "2 dimensions"]),
        (lambda: gs.Environments(np.ones((4, 2))), ["invariant_basis", "orthonormal", "qr"]),
        (lambda: gs.Environments(np.ones((2, 3))), ["invariant_basis", "3 columns", "dimension 2"]),
        (lambda: gs.Environments(np.where(EYE == 1, NAN, 0)), ["invariant_basis", "finite", "4 of its 16"]),
        (lambda: gs.Environments("basis"), ["invariant_basis"]),
        (lambda: gs.Environments(EYE[:, :1], 2 * EYE[:, 1:2], gs.TwoPoint()), ["spurious_basis", "orthonormal"]),
        (lambda: gs.Environments(EYE[:, :1], np.eye(3)[:, :1], gs.TwoPoint()), ["spurious_basis", "3 rows", "4"]),
        (lambda: gs.Environments(EYE[:, :1], EYE[:, 1:3], gs.TwoPoint()), ["law", "rank 1", "2 columns"]),
        (lambda: gs.Environments(EYE[:, :1], EYE[:, 1:2]), ["law", "spurious_basis"]),
        (lambda: gs.Environments(EYE[:, :1], None, "two-point"), ["law", "TwoPoint"]),
        (lambda: gs.Environments(EYE[:, :2], values=[1.0]), ["values", "2"]),
        (lambda: gs.Environments(EYE[:, :1], values=[NAN]), ["values", "finite"]),
        (lambda: gs.RandomEnvironments(4, 3, gs.TwoPoint(rank=2)), ["rank 3", "rank 2", "dimension 4", "5"]),
        (lambda: gs.RandomEnvironments(4, 2, values=[1.0]), ["values", "rank=2"]),
        (lambda: gs.RandomEnvironments(4, law=3.0), ["law", "3.0"]),
        (lambda: gs.RandomEnvironments(4, placement="orthoganal"), ["placement", "'orthogonal'"]),
        (lambda: gs.FeatureEnvironments(2, 1, gs.TwoPoint(rank=3)), ["law's rank", "at most 2"]),
        (lambda: gs.FeatureEnvironments(2, 1, gs.Absent()), ["law's rank", "at least 1"]),
        (lambda: gs.VectorEnvironments([1.0, 0.0], [2], gs.TwoPoint()), ["spurious_coordinates", "[2]"]),
        (lambda: gs.VectorEnvironments([1.0, 0, 0], [1, 1], gs.TwoPoint(rank=2)), ["coordinates", "distinct"]),
        (lambda: gs.VectorEnvironments([1.0, 0.0], [1.7], gs.TwoPoint()), ["spurious_coordinates", "1.7"]),
        (lambda: gs.VectorEnvironments([1.0, 2.0], [1], gs.TwoPoint()), ["coefficients", "zero on spurious"]),
        (lambda: gs.VectorEnvironments([0.0, 0.0], [1], gs.TwoPoint()), ["coefficients", "all zero"]),
        (lambda: gs.VectorEnvironments([1.0, INF]), ["coefficients", "finite"]),
        (lambda: gs.VectorEnvironments([1.0, 0, 0], [1, 2], gs.Finite([np.ones((2, 2))])), ["law", "diagonal"]),
        (lambda: gs.Environments.diagonal(2, [1.0, 2.0, 3.0]), ["values", "dimension=2", "3"]),
        (lambda: gs.Environments.diagonal(2, []), ["values", "between 1 and", "0"]),
        (lambda: gs.Environments.diagonal(2, 1.0), ["values", "1 dimensions"]),
        (lambda: gs.RectangularEnvironments(EYE[:, :1], np.ones((3, 1))), ["right", "orthonormal", "qr"]),
        (lambda: gs.RectangularEnvironments(np.ones((4, 1)), np.eye(3, 1)), ["invariant_basis", "orthonormal"]),
        (lambda: gs.RectangularEnvironments(EYE[:, :2], np.eye(3, 1)), ["right", "1 columns", "2", "equal"]),
        (
            lambda: gs.RectangularEnvironments(EYE[:, :1], np.eye(3, 1), EYE[:, 1:2], np.ones((3, 1)), gs.TwoPoint()),
            ["spurious_right", "orthonormal"],
        ),
        (
            lambda: gs.RectangularEnvironments(EYE[:, :1], np.eye(3, 1), EYE[:, 1:2], None, gs.TwoPoint()),
            ["spurious_right", "(3, 1)", "(3, 0)"],
        ),
        (
            lambda: gs.RectangularEnvironments(EYE[:, :1], np.eye(3, 1), EYE[:, 1:2], np.eye(4, 1), gs.TwoPoint()),
            ["spurious_right", "(3, 1)", "(4, 1)"],
        ),
        (lambda: gs.RectangularEnvironments(EYE[:, :2], np.eye(3, 2), values=[1.0]), ["values", "2"]),
        (lambda: gs.RandomRectangular(4, 3, 2, gs.TwoPoint(rank=2)), ["rank 2", "smaller side 3", "raise"]),
        (lambda: gs.RandomRectangular(4, 3, 2, values=[1.0]), ["values", "rank=2", "1"]),
        (lambda: gs.RandomRectangular(4, 3, law="two"), ["law", "'two'"]),
        (lambda: gs.Finite([]), ["values", "zero environments"]),
        (lambda: gs.Finite(np.ones((2, 2, 3))), ["values", "square"]),
        (lambda: gs.Finite([[[1.0, 2.0], [0.0, 1.0]]]), ["values", "symmetric"]),
        (lambda: gs.Finite([1.0, NAN]), ["values", "finite"]),
        (lambda: gs.Finite([1.0, 2.0], [0.5, 0.4]), ["weights", "sum to one", "0.9"]),
        (lambda: gs.Finite([1.0, 2.0], [1.5, -0.5]), ["weights", "non-negative"]),
        (lambda: gs.Finite([1.0, 2.0], [1.0]), ["weights", "one entry per environment"]),
        (lambda: gs.Sampler("noise"), ["function", "key"]),
        (lambda: gs.Sampler(lambda key: np.ones(3), rank=2), ["function", "2 x 2"]),
    ],
)
def test_environments_and_laws(make, words):
    refuses(make, *words)


# --- measurements and algorithms ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.DenseData(np.ones(3), np.ones(3), [0, 0, 0]), ["matrices", "dimensions"]),
        (lambda: gs.DenseData(X3, np.ones((4, 1)), [0] * 4), ["responses", "1 dimensions"]),
        (lambda: gs.DenseData(X3, np.ones(3), [0] * 4), ["matrices, responses and environment", "4, 3, 4"]),
        (lambda: gs.DenseData(X3, [1.0, NAN, 1.0, 1.0], [0] * 4), ["responses", "finite", "1 of its 4"]),
        (lambda: gs.DenseData(X3, np.ones(4), [0.5] * 4), ["environment", "whole numbers"]),
        (lambda: gs.DenseData(X3, np.ones(4), ["a"] * 4), ["environment", "whole numbers"]),
        (lambda: gs.DenseData(X3, np.ones(4), [0, 0, 2, 2]), ["environment", "renumber"]),
        (lambda: gs.DenseData(X3, np.ones(4), [0, 0, -1, 1]), ["environment", "renumber"]),
        (lambda: gs.DenseData(np.ones((0, 3, 3)), [], np.zeros(0, dtype=int)), ["matrices", "no rows"]),
        (lambda: gs.HeteroSGD(0.1, order="cylic"), ["order", "'cylic'", "did you mean 'cyclic'"]),
        (lambda: gs.OneEnvironment("zzz"), ["order", "iid, cyclic, shuffled"]),
        (lambda: gs.HeteroSGD(0.1, model="Symmetric"), ["model", "'Symmetric'"]),
        (lambda: gs.Algorithm(gs.Symmetric(), 0.1, gs.Full(), gs.Constant(0.1)), ["start", "0.1"]),
        (lambda: gs.Algorithm(gs.Symmetric(), gs.ScaledIdentity(1.0), "full", gs.Constant(1)), ["batches"]),
        (lambda: gs.Algorithm(gs.Symmetric(), gs.ScaledIdentity(1.0), gs.Full(), 0.1), ["schedule", "0.1"]),
        (lambda: gs.GradientDescent(0.1, model=gs.Asymmetric(), width=2), ["model", "width", "leave"]),
        (lambda: gs.ScaledGD(0.1, model=gs.Symmetric(), symmetric=True), ["model", "symmetric", "leave"]),
        (lambda: gs.GradientDescent(0.1, model="Asymmetric"), ["model", "'Asymmetric'"]),
        (lambda: gs.GradientDescent(0.1, start="spectral"), ["init_scale", "'spectral'"]),
        (lambda: gs.GradientDescent(0.1, events=gs.ImbalanceStep(at=1)), ["events", "list", "ImbalanceStep"]),
        (lambda: gs.GradientDescent(0.1, events=["imbalance"]), ["events", "list", "'imbalance'"]),
        (lambda: gs.ScaledGD(0.1, damping="residuals"), ["damping", "'residuals'", "did you mean 'residual'"]),
        (lambda: gs.ImbalanceStep(), ["ImbalanceStep", "exactly one", "at", "below"]),
        (lambda: gs.ImbalanceStep(at=3, below=0.1), ["ImbalanceStep", "exactly one", "at", "below"]),
        (lambda: gs.Given(np.ones((2, 2, 2))), ["params", "1 or 2 dimensions", "(2, 2, 2)"]),
        (lambda: gs.Given([[1.0, NAN]]), ["params", "finite"]),
        (lambda: gs.Dense(5, redraw=True, design=1), ["redraw", "design", "leave"]),
        (lambda: gs.Dense(5, redraw=True, operator="gram"), ["redraw", "operator='gram'", "leave"]),
        (lambda: gs.Dense(5, operator="grams"), ["operator", "'grams'", "did you mean 'gram'"]),
        (
            lambda: gs.Dense(5).rows(given_environments(3), gs.Symmetric().space((3, 3))),
            ["design", "None", "give a number"],
        ),
        (lambda: gs.late_speed(np.ones((3, 2)), np.ones((3, 1)), 0.1, 1), ["cofactor", "1 columns", "2", "equal"]),
        (lambda: gs.late_speed(np.ones((3, 1)), np.ones((3, 1)), 0.1, 2), ["width 1", "rank 2", "raise width"]),
        (lambda: gs.late_speed(EYE, EYE, 0.1, 4, np.ones((5, 7))), ["matrices", "16 columns", "7"]),
        (lambda: gs.late_speed(np.ones(3), EYE, 0.1, 1), ["factor", "2 dimensions"]),
        (lambda: gs.late_speed(EYE, EYE, 0.1, 4).iterations(-1.0, 1e-3), ["loss", "above 0", "-1.0"]),
        (lambda: gs.late_speed(EYE, EYE, 0.1, 4).iterations(1.0, 0.0), ["tolerance", "above 0"]),
        (lambda: gs.DeepLinear(1), ["depth", "at least 2", "1", "hidden layer"]),
        (lambda: gs.DeepLinear(widths=(2, 2)), ["depth", "at least 2", "1"]),
        (lambda: gs.DeepLinear(-1), ["depth", "at least 1", "-1"]),
        (lambda: gs.DeepLinear(widths=()), ["widths", "w_0, ..., w_L", "()"]),
        (lambda: gs.DeepLinear(widths=5), ["widths", "w_0, ..., w_L", "5"]),
        (lambda: gs.DeepLinear(3, widths=(2, 5, 2)), ["widths", "leave depth and width out"]),
        (lambda: gs.Entries([]), ["pairs", "no observed entries"]),
        (lambda: gs.Entries([(0, 0), (1,)]), ["pairs", "(row, column)"]),
        (lambda: gs.Entries([(0.5, 0.0)]), ["pairs", "whole numbers"]),
        (lambda: gs.Entries([0, 1]), ["pairs", "(row, column)"]),
        (lambda: gs.Entries([(0, 0), (1, -1)]), ["pairs", "from zero", "(1, -1)"]),
        (lambda: gs.Entries([(0, 0), (1, 1), (0, 0)]), ["pairs", "distinct", "(0, 0)", "2 times"]),
        (lambda: gs.Entries(PAIRS, order="shufled"), ["order", "'shufled'", "did you mean 'shuffled'"]),
        (lambda: gs.Entries(PAIRS, order="shuffled"), ["order='shuffled'", "batch_size", "divide", "3"]),
        (lambda: gs.Entries(PAIRS, batch_size=2, order="shuffled"), ["batch_size", "divide", "2"]),
        (lambda: gs.Entries(PAIRS, batch_size=6, order="shuffled"), ["batch_size", "at most 3"]),
        (lambda: gs.RidgeStep("main"), ["convention", "'main'", "did you mean 'main_text'"]),
        (lambda: gs.RidgeDescent(FLAT, 0.1), ["step_size", "Schedule", "leave ridge out"]),
        (lambda: gs.RidgeDescent(0.1, start="orthogonal"), ["start", "'orthogonal'"]),
        (lambda: gs.WarmUp(5, 0.1, 0.2), ["then", "Schedule", "0.2"]),
        (lambda: gs.Annealing(0.1, FLAT, at=3), ["high", "Schedule", "0.1"]),
        (lambda: gs.Annealing(FLAT, None, at=3), ["low", "Schedule", "None"]),
        (lambda: gs.Periodic([]), ["phases", "empty"]),
        (lambda: gs.Periodic([FLAT]), ["phases", "(length, schedule)"]),
        (lambda: gs.Periodic([(5, 0.1)]), ["schedule", "0.1"]),
        (lambda: gs.Piecewise([]), ["pieces", "empty"]),
        (lambda: gs.Piecewise([(0, FLAT)]), ["pieces", "(start, stop, schedule)"]),
        (lambda: gs.Piecewise([(0, 5, FLAT), (7, None, FLAT)]), ["pieces", "gap", "5 and 7"]),
        (lambda: gs.Piecewise([(0, 5, FLAT), (3, None, FLAT)]), ["pieces", "overlap", "5 and 3"]),
        (lambda: gs.Piecewise([(2, None, FLAT)]), ["pieces", "gap", "0 and 2"]),
        (lambda: gs.Piecewise([(0, 5, FLAT)]), ["stop", "None", "5"]),
        (lambda: gs.Piecewise([(0, None, FLAT), (5, None, FLAT)]), ["stop", "a number", "None"]),
        (lambda: gs.Piecewise([(0, 0, FLAT), (0, None, FLAT)]), ["pieces", "positive length", "0 to 0"]),
        (lambda: gs.Piecewise([(0, -5, FLAT), (5, None, FLAT)]), ["stop", "-5"]),
        (lambda: gs.Piecewise([(0, 5, FLAT), (5, 3, FLAT), (3, None, FLAT)]), ["positive length", "5 to 3"]),
        (lambda: gs.RectangularEnvironments.of(np.zeros((2, 3))), ["matrix", "zero"]),
        (lambda: gs.RectangularEnvironments.of([1.0, 2.0]), ["matrix", "2 dimensions"]),
        (lambda: gs.absorbing(0.1, 3, 2, excess=0.5), ["excess", "below 1/2", "0.5"]),
        (lambda: margins((EYE,), gs.Region(1, 0.1, 0.1, 0.1, 1.0)), ["weights", "two layers", "1"]),
        (lambda: gs.jumps([[1.0, 2.0]], [0, 1]), ["values", "one step each", "(1, 2)", "(2,)"]),
        (lambda: gs.jumps([[1.0], [1.0]], [1, 0]), ["steps", "increase"]),
        (lambda: gs.jumps(np.ones((2, 0)), [0, 1]), ["values", "last dimension"]),
        (lambda: gs.jump_times([1.0, 2.0], [0, 1]), ["values", "one step each"]),
        (lambda: critical_points(EYE, [(0, 9)], 3, 0.1), ["pairs", "4 x 4", "(0, 9)"]),
        (lambda: critical_points(EYE, [], 3, 0.1), ["pairs", "no observed entries"]),
        (lambda: fold(2.0, 3), ["epsilon", "at most 1"]),
        (lambda: gs.Problem(EYE, gs.Identity()), ["environments", "RandomEnvironments"]),
        (lambda: gs.Problem(given_environments(), "Identity"), ["measurements", "'Identity'"]),
    ],
)
def test_measurements_algorithms_and_problems(make, words):
    refuses(make, *words)


# --- parts that do not fit, and the arguments of run ----------------------------------------------

ENVIRONMENTS = given_environments(3)
VECTORS = gs.VectorEnvironments([1.0, 0.0, 0.0], [1], gs.TwoPoint())
UNIFORM = given_environments(3, gs.Uniform())
UNEQUAL = given_environments(3, gs.Finite([1.0, 2.0], [0.3, 0.7]))
DATA = gs.DenseData(X3, np.ones(4), [0, 0, 1, 1])
HETERO = gs.HeteroSGD(0.1)
RECTANGLE = rectangular_environments(3, 2)
TWO = gs.Environments.diagonal(3, [2.0, 1.0])


def imbalance(step_size=0.1, start=0.1, width=2, model=None, **options) -> gs.GradientDescent:
    chosen = {"width": width} if model is None else {"model": model}
    return gs.GradientDescent(step_size, start=start, events=[gs.ImbalanceStep(**options)], **chosen)


MISMATCHES = [
    (gs.PooledSGD(0.1), ENVIRONMENTS, gs.FixedGaussian(5), ["FixedGaussian", "Pooled", "Full"]),
    (gs.HeteroSGD(0.1, order="cyclic"), UNIFORM, gs.Identity(), ["order='cyclic'", "Uniform", "continuous"]),
    (gs.HeteroSGD(0.1, order="shuffled"), UNIFORM, gs.Identity(), ["order='shuffled'", "continuous"]),
    (gs.HeteroSGD(0.1, order="cyclic"), UNEQUAL, gs.Identity(), ["order='cyclic'", "weights"]),
    (gs.PooledGD(0.1), UNIFORM, gs.FreshGaussian(5), ["Full", "Uniform", "continuous"]),
    (HETERO, UNIFORM, gs.FixedGaussian(5), ["FixedGaussian", "finite law", "Uniform"]),
    (HETERO, UNIFORM, gs.Dense(5), ["Dense", "finite law", "Uniform"]),
    (HETERO, UNIFORM, DATA, ["DenseData", "finite law"]),
    (gs.HeteroSGD(0.1, model=gs.Diagonal()), ENVIRONMENTS, gs.Identity(), ["Diagonal", "shape (3, 3)"]),
    (HETERO, VECTORS, gs.Identity(), ["Symmetric", "shape (3,)", "Diagonal"]),
    (
        gs.HeteroSGD(0.1, model=gs.SymmetricDifference()),
        VECTORS,
        gs.Identity(),
        ["SymmetricDifference", "(3,)"],
    ),
    (gs.QuadraticNetwork(0.1), ENVIRONMENTS, gs.FreshGaussian(5), ["Shrinkage", "FreshGaussian", "RankOne"]),
    (gs.QuadraticNetwork(0.1), ENVIRONMENTS, gs.Identity(), ["Shrinkage", "Identity"]),
    (gs.HeteroSGD(0.1, model=gs.Diagonal()), VECTORS, gs.RankOne(5), ["RankOne", "symmetric"]),
    (HETERO, given_environments(4), DATA, ["matrices", "(3, 3)", "(4, 4)"]),
    (HETERO, given_environments(3, gs.Finite([1.0, 2.0, 3.0])), DATA, ["3 environments", "2"]),
    (HETERO, RECTANGLE, gs.Identity(), ["Symmetric", "shape (3, 2)", "Asymmetric"]),
    (gs.PooledGD(0.1, model=gs.SymmetricDifference()), RECTANGLE, gs.Identity(), ["(3, 2)", "Asymmetric"]),
    (gs.GradientDescent(0.1, symmetric=True), RECTANGLE, gs.Identity(), ["Symmetric", "(3, 2)", "Asymmetric"]),
    (gs.GradientDescent(0.1), VECTORS, gs.Identity(), ["Asymmetric", "shape (3,)", "Diagonal"]),
    (gs.GradientDescent(0.1), ENVIRONMENTS, gs.RankOne(5), ["RankOne", "symmetric", "Symmetric"]),
    (gs.GradientDescent(0.1), UNIFORM, gs.FreshGaussian(5), ["Full", "Uniform", "continuous"]),
    (gs.GradientDescent(0.1), ENVIRONMENTS, gs.DenseData(np.ones((2, 3, 2)), [1.0, 1.0], [0, 1]), ["(3, 2)", "(3, 3)"]),
    (gs.ScaledGD(0.1, model=gs.Diagonal()), VECTORS, gs.Identity(), ["Diagonal", "preconditioned", "Symmetric"]),
    (gs.PrecGD(0.1, model=gs.Diagonal()), VECTORS, gs.Identity(), ["Diagonal", "preconditioned", "Asymmetric"]),
    (
        gs.GradientDescent(0.1, model=gs.Diagonal(), start=gs.Spectral()),
        VECTORS,
        gs.Identity(),
        ["Diagonal", "spectral", "use"],
    ),
    (
        gs.GradientDescent(0.1, symmetric=True, start=gs.ImbalancedGaussian(0.1)),
        ENVIRONMENTS,
        gs.Identity(),
        ["ImbalancedGaussian", "two factors", "Symmetric", "use Asymmetric"],
    ),
    (
        gs.PooledGD(0.1, model=gs.Symmetric()),
        RECTANGLE,
        gs.Identity(),
        ["Symmetric", "(3, 2)"],
    ),
    (
        gs.GradientDescent(0.1, model=gs.SymmetricDifference(), start=gs.OrthonormalZero()),
        ENVIRONMENTS,
        gs.Identity(),
        ["OrthonormalZero", "two factors", "SymmetricDifference", "use Asymmetric"],
    ),
    (
        gs.GradientDescent(0.1, width=4, start=gs.OrthonormalZero()),
        ENVIRONMENTS,
        gs.Identity(),
        ["OrthonormalZero", "width <= 3", "4"],
    ),
    (
        gs.GradientDescent(0.1, width=2, start=gs.Given(np.ones((3, 2)), np.ones((2, 2)))),
        ENVIRONMENTS,
        gs.Identity(),
        ["params", "((3, 2), (3, 2))", "((3, 2), (2, 2))", "Asymmetric"],
    ),
    (
        gs.GradientDescent(0.1, symmetric=True, start=gs.Given(np.ones((3, 3)), np.ones((3, 3)))),
        ENVIRONMENTS,
        gs.Identity(),
        ["params", "((3, 3),)", "Symmetric"],
    ),
    (
        imbalance(at=3, model=gs.Symmetric()),
        ENVIRONMENTS,
        gs.Identity(),
        ["ImbalanceStep", "Symmetric", "use Asymmetric"],
    ),
    (imbalance(at=3, model=gs.Diagonal()), VECTORS, gs.Identity(), ["ImbalanceStep", "Diagonal"]),
    (imbalance(at=3, width=4), ENVIRONMENTS, gs.Identity(), ["ImbalanceStep", "width", "at most 3", "4"]),
    (imbalance(at=3, beta=0.2), ENVIRONMENTS, gs.Identity(), ["beta", "between 0.224 and 4.47", "0.2", "unstable"]),
    (imbalance(at=3, beta=5.0), ENVIRONMENTS, gs.Identity(), ["beta", "between 0.224 and 4.47", "5"]),
    (imbalance(at=3, beta=0.4), TWO, gs.Identity(), ["beta", "between 0.449 and 4.45", "0.4"]),
    (imbalance(0.6, at=3, beta=1.0), TWO, gs.Identity(), ["step_size", "below 1 / sigma_1 = 0.5", "0.6"]),
    (gs.PooledSGD(0.1), ENVIRONMENTS, gs.Dense(5, operator="gram"), ["operator='gram'", "Pooled", "'rows' or 'auto'"]),
    (gs.PooledSGD(0.1), ENVIRONMENTS, gs.Dense(5, operator="gram", design=2), ["operator='gram'", "Pooled"]),
    (
        gs.RidgeDescent(0.1, model=gs.DeepLinear(widths=(3, 9, 3))),
        RECTANGLE,
        gs.Entries(PAIRS),
        ["widths (3, 9, 3)", "do not chain", "3 rows and 2 columns", "begin with 2"],
    ),
    (gs.RidgeDescent(0.1), VECTORS, gs.Identity(), ["DeepLinear", "shape (3,)", "Diagonal"]),
    (gs.RidgeDescent(0.1), RECTANGLE, gs.Entries([(0, 0), (1, 2)]), ["pairs", "3 x 2", "(1, 2)", "count from zero"]),
    (HETERO, ENVIRONMENTS, gs.Entries(PAIRS), ["Entries", "symmetric", "use Asymmetric or DeepLinear"]),
    (gs.ScaledGD(0.1, model=gs.DeepLinear()), ENVIRONMENTS, gs.Identity(), ["DeepLinear", "preconditioned"]),
    (
        gs.GradientDescent(0.1, model=gs.DeepLinear(2), start=gs.OrthonormalZero()),
        ENVIRONMENTS,
        gs.Identity(),
        ["OrthonormalZero", "two factors", "DeepLinear", "use Asymmetric"],
    ),
    (
        gs.GradientDescent(0.1, model=gs.Diagonal(), start=gs.Orthogonal()),
        VECTORS,
        gs.Identity(),
        ["Orthogonal", "layers", "Diagonal", "DeepLinear"],
    ),
    (
        gs.PooledSGD(0.1, model=gs.DeepLinear()),
        ENVIRONMENTS,
        gs.Entries(PAIRS, batch_size=1, order="shuffled"),
        ["order='shuffled'", "Pooled", "order='iid'"],
    ),
    (
        gs.HeteroSGD(0.1, model=gs.DeepLinear()),
        UNIFORM,
        gs.Entries(PAIRS, batch_size=1, order="shuffled"),
        ["Entries", "finite law", "Uniform"],
    ),
    (gs.HeteroSGD(0.1, model=gs.DeepLinear()), UNIFORM, gs.Entries(PAIRS, noise=0.1), ["Entries", "finite law"]),
]


@pytest.mark.parametrize("i", range(len(MISMATCHES)))
def test_parts_that_do_not_fit_are_refused_before_compilation(i):
    algorithm, places, measurements, words = MISMATCHES[i]
    watch = Watch()
    record = [watch.diagnostic]
    refuses(lambda: gs.run(algorithm, gs.Problem(places, measurements), num_steps=2, record=record), *words)
    # In a grid too, and even when only the last of its cells is wrong.
    good = (HETERO, gs.Problem(ENVIRONMENTS, gs.Identity()))
    bad = (algorithm, gs.Problem(places, measurements))
    refuses(lambda: gs.run_grid(lambda i: [good, bad][i], {"i": [0, 1]}, num_steps=2, record=record), *words)
    assert watch.traced == 0


GOOD = gs.Problem(ENVIRONMENTS, gs.Identity())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_steps": 0}, ["num_steps", "at least 1"]),
        ({"num_steps": 2.5}, ["num_steps", "whole number"]),
        ({"num_steps": [1, 2]}, ["num_steps", "a whole number", "[1, 2]"]),
        ({"seeds": 0}, ["seeds", "at least 1"]),
        ({"seeds": []}, ["seeds", "empty"]),
        ({"seeds": [1, -1]}, ["seeds", "-1"]),
        ({"seeds": "abc"}, ["seeds"]),
        ({"seed": 0.5}, ["seed", "0.5"]),
        ({"record": ["sginal"]}, ["diagnostic", "'sginal'", "did you mean 'signal'"]),
        ({"record": ["block_norms"]}, ["the diagnostic block_norms is gone", "function of the snapshot"]),
        ({"record": [3]}, ["record", "3"]),
        ({"record": "signal"}, ["record", "list", "'signal'"]),
        ({"record_at": 0}, ["record_at", "at least 1"]),
        ({"record_at": []}, ["record_at", "at least one step"]),
        ({"record_at": [0, 50]}, ["record_at", "at most 5", "num_steps"]),
        ({"record_at": [3, 1]}, ["record_at", "increasing"]),
        ({"record_at": [-1, 1]}, ["record_at", "-1"]),
        ({"tolerance": 0.0}, ["tolerance", "above 0", "0.0"]),
        ({"tolerance": -1e-3}, ["tolerance", "above 0"]),
        ({"tolerance": "small"}, ["tolerance", "'small'"]),
        ({"reduction": "sometimes"}, ["reduction", "'sometimes'", "auto, never, always"]),
        ({"reduction": "alway"}, ["reduction", "did you mean 'always'"]),
    ],
)
def test_arguments_of_run(options, words):
    refuses(lambda: gs.run(HETERO, GOOD, **({"num_steps": 5} | options)), *words)


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        (gs.Symmetric(1), 1),
        (gs.Asymmetric(1), 1),
        (gs.SymmetricDifference(1), 2),
    ],
)
def test_a_tolerance_out_of_reach_is_refused(model, limit):
    """Exact recovery needs the rank; without a tolerance a smaller width is nobody's mistake."""
    problem = gs.Problem(gs.Environments.diagonal(4, [3.0, 2.0, 1.0]), gs.Identity())
    algorithm = gs.GradientDescent(0.05, model=model)
    refuses(
        lambda: gs.run(algorithm, problem, num_steps=2, tolerance=1e-3),
        "tolerance",
        f"{type(model).__name__} makes rank {limit}",
        "rank 3",
        "raise width to at least",
    )
    check(algorithm, problem)


def test_a_tolerance_out_of_reach_of_a_recipe():
    problem = gs.Problem(gs.RandomRectangular(4, 3, 2), gs.Identity())
    refuses(
        lambda: gs.run(gs.GradientDescent(0.05, width=1), problem, num_steps=2, tolerance=1e-3), "tolerance", "rank 2"
    )


def test_arguments_of_run_that_are_not_parts():
    refuses(lambda: gs.run("HeteroSGD", GOOD, num_steps=2), "algorithm", "'HeteroSGD'")
    refuses(lambda: gs.run(HETERO, ENVIRONMENTS, num_steps=2), "problem", "Problem(environments, measurements)")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ["settings", "at least one axis"]),
        ({"eta": []}, ["settings", "at least one value"]),
        ({"eta": 0.1}, ["settings", "list"]),
        ({"eta": "0.1"}, ["settings", "list"]),
        ({"seed": [0.1]}, ["settings", "'seed'"]),
        ({"eta": [-1.0]}, ["step_size", "-1.0"]),
    ],
)
def test_settings_of_a_grid(settings, words):
    refuses(lambda: gs.run_grid(lambda eta: (gs.HeteroSGD(eta), GOOD), settings, num_steps=2), *words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"at": []}, ["at", "at least one step"]),
        ({"at": 3}, ["at", "at least one step", "3"]),
        ({"at": [3, -1]}, ["at", "-1"]),
        ({"num_steps": 0}, ["num_steps", "at least 1"]),
        ({"schedule": 0.1}, ["schedule", "Schedule", "0.1"]),
        ({"record_at": [0, 3]}, ["record_at", "whole number"]),
    ],
)
def test_arguments_of_offshoots(options, words):
    good = {"at": [3], "schedule": FLAT, "num_steps": 5}
    refuses(lambda: gs.offshoots(HETERO, GOOD, **(good | options)), *words)
    refuses(lambda: gs.offshoots("HeteroSGD", GOOD, **good), "algorithm", "'HeteroSGD'")


def test_listed_steps_need_one_horizon():
    def grid():
        gs.run_grid(lambda n: (HETERO, GOOD), {"n": [5, 9]}, num_steps=lambda n: n, record_at=[0, 3])

    refuses(grid, "record_at", "num_steps")


def test_the_error_is_a_value_error():
    assert issubclass(gs.GyrostatError, ValueError)
    assert orthonormal(0, 3, 2).shape == (3, 2)
    gs.Environments(orthonormal(0, 3, 2))  # and the checks let good input through


def record_of(function, **options):
    """Decorate a function as a diagnostic under a name that does not stay."""
    try:
        return gs.diagnostic(name="for_this_test", **options)(function)
    finally:
        gs.DIAGNOSTICS.pop("for_this_test", None)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda rng: OneEnvironment(lambda t: rng.integers(2)).check(gs.TwoPoint()), ["order draws random numbers"]),
        (lambda rng: gs.HeteroSGD(lambda t: 0.05 * rng.random()), ["the schedule <lambda> draws random numbers"]),
        (lambda rng: own_model(lambda u: u + rng.normal()).space((3,)), ["product draws random numbers"]),
        (lambda rng: record_of(lambda s: s.product.sum() * rng.random()), ["draws random numbers"]),
        (lambda rng: own_model(lambda A: A, symmetric=True).space((3, 3)), ["not symmetric", "(A + A.T) / 2"]),
        (lambda rng: record_of(lambda s: "text"), ["must give a number or an array", "'text'"]),
        (lambda rng: record_of(lambda s: s.product, dims=3), ["dims", "a list of words", "3"]),
        (lambda rng: gs.run(HETERO, GOOD, num_steps=5, record=[np.trace]), ["trace", "is a snapshot"]),
        (lambda rng: gs.run(HETERO, GOOD, num_steps=5, record=[lambda s: 1.0]), ["has no name", "gs.Diagnostic"]),
        (lambda rng: gs.HeteroSGD(0.05, rule=gs.Adam), ["rule", "the class Adam", "gs.Adam()"]),
        (lambda rng: gs.HeteroSGD(0.05, order=["Bern", "Oslo"]), ["order", "by number", "'Bern'", "labels"]),
        (lambda rng: gs.Environments.from_matrices(1j * np.eye(2), [np.eye(2)]), ["A_star", "complex", ".real"]),
        (lambda rng: gs.PooledSGD(0.05, order="iid"), ["no argument 'order'", "it takes step_size"]),
        (lambda rng: gs.theory.predict(gs.PooledSGD(0.05), GOOD, num_steps=5), ["no predictor covers this run"]),
    ],
)
def test_what_a_newcomer_tries(make, words):
    refuses(lambda: make(np.random.default_rng(0)), *words)


def own_model(function, **options):
    return gs.Model.from_function(function, lambda shape: [shape], **options)


def test_a_decorated_function_can_be_recorded():
    def trace_for_this_test(snapshot):
        return snapshot.product.trace()

    gs.diagnostic(trace_for_this_test)
    try:
        assert [d.name for d in resolve([trace_for_this_test])] == ["trace_for_this_test"]
    finally:
        del gs.DIAGNOSTICS["trace_for_this_test"]


@pytest.mark.parametrize(
    "made",
    [
        gs.HeteroSGD(0.05, rule=gs.Adam()),
        gs.HeteroSGD(1.0, rule=gs.Optax("adam", {"learning_rate": 0.1})),
        gs.GradientDescent(0.1, width=3, rule=gs.Momentum(0.5)),
    ],
    ids=repr,
)
def test_rules_print_as_the_calls_that_make_them(made):
    names = {name: getattr(gs, name) for name in dir(gs)}
    assert "GradientStep" not in repr(made) and eval(repr(made), names) == made
