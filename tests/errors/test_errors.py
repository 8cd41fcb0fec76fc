"""Bad input: refused before any compilation, in one sentence that names the argument."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from conftest import Watch, given_environments, orthonormal, rectangular_environments
from gyrostat.diagnostics.base import resolve
from gyrostat.engine.simulate import check
from gyrostat.theory.wang2023 import critical_points, fold, margins
from public_calls import public_calls

EYE = np.eye(4)
NAN, INF = float("nan"), float("inf")
X3 = np.stack([np.eye(3)] * 4)
PAIRS = [(0, 0), (1, 0), (1, 1)]
FLAT = gs.schedules.Constant(0.1, 0.1)
COMPILED = ("run", "run_grid", "offshoots")
"""Their numbers are refused below."""


ZERO_IS_REFUSED = (
    *("alpha", "batch_size", "below", "beta", "columns", "depth", "dimension", "draws", "epsilon", "excess"),
    *("gradient_factor", "init_scale", "largest", "num_samples", "rank", "ratio", "ridge", "rows", "size", "step_size"),
    *("tries", "truncation", "width"),
)
ZERO_IS_FINE = ("at", "damping", "decay", "design", "noise", "num_steps", "overlap", "spread", "zero")
EXCEPT_IN = {
    *(
        ("theory.wang2023.Region", "alpha"),
        ("theory.wang2023.Region", "excess"),
        ("theory.wang2023.Region", "rank"),
        ("Finite", "rank"),
        ("theory.wang2023.absorbing", "rank"),
    ),
    *(("jump_times", "rank"), ("Momentum", "beta"), ("Nesterov", "beta"), ("Adam", "epsilon")),
    *(("Constant", "ridge"), ("RidgeDescent", "ridge")),
}
"""Where zero is fine all the same."""

OTHERS = [  # numbers that the argument holds, or that have another name in their sentence
    *(
        ("init_scale", start)
        for start in (gs.starts.ScaledIdentity, gs.starts.ScaledGaussian, gs.starts.SymmetricGaussian)
    ),
    *(
        ("init_scale", start)
        for start in (gs.starts.ImbalancedGaussian, gs.starts.OrthonormalZero, gs.starts.FanInUniform)
    ),
    *(("init_scale", start) for start in (gs.starts.FanInGaussian, gs.starts.Orthogonal)),
    ("init_scale", lambda x: gs.GradientDescent(0.1, start=x)),
    ("dimension", gs.Environments.diagonal),
    ("widths", lambda x: gs.DeepLinear(widths=(2, x, 2))),
    ("length", lambda x: gs.schedules.Periodic([(x, FLAT)])),
    ("steps", lambda x: gs.diagnostics.isometry_constant(3, 10, 1, steps=x)),
]


IN_THEORY = ("theory.wang2023.absorbing", "theory.wang2023.critical_points", "theory.wang2023.fold")


@pytest.mark.parametrize("name", [*ZERO_IS_REFUSED, *ZERO_IS_FINE])
def test_numbers_out_of_range(name):
    tested = 0
    for call in public_calls():
        if name in call.parameters and (call.name in IN_THEORY or "." not in call.name):
            zero = (0,) if name in ZERO_IS_REFUSED and (call.name, name) not in EXCEPT_IN else ()
            for bad in (-1, NAN, "many", [1.0, 2.0], *zero) if call.name not in COMPILED else ():
                refuses(lambda call=call, bad=bad: call.function(**{**call.good, name: bad}), name)
                tested += 1
    assert tested


@pytest.mark.parametrize(("name", "make"), OTHERS)
def test_other_numbers_out_of_range(name, make):
    for bad in (-1, NAN, "many", [1.0, 2.0], 0):
        refuses(lambda bad=bad: make(bad), name)


def test_numbers_say_what_they_got_and_need():
    assert refuses(lambda: gs.HeteroSGD(-0.5), "above 0", "-0.5")
    assert refuses(lambda: gs.RandomEnvironments(4, 7), "rank", "at most 4", "dimension", "7")
    assert refuses(lambda: gs.RandomEnvironments(4, overlap=1.5), "overlap", "at most 1")
    assert refuses(lambda: gs.Dense(2.5), "num_samples", "whole number", "2.5")
    assert refuses(lambda: gs.TwoPoint(rank=13, independent=True), "rank", "12")
    assert refuses(lambda: gs.environments.RandomRectangular(3, 5, 4), "rank", "at most 3", "smaller side", "4")
    assert refuses(lambda: gs.HeteroSGD(np.ones(3)), "step_size", "shape (3,)")


# --- environments and laws ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.Environments(np.ones(4)), ["invariant_basis", "2 dimensions"]),
        (lambda: gs.Environments(np.ones((4, 2))), ["invariant_basis", "orthonormal", "qr"]),
        (lambda: gs.Environments(np.ones((2, 3))), ["invariant_basis", "3 columns", "dimension 2"]),
        (lambda: gs.Environments(np.where(EYE == 1, NAN, 0)), ["invariant_basis", "finite", "4 of its 16"]),
        (lambda: gs.Environments(EYE[:, :1], 2 * EYE[:, 1:2], gs.TwoPoint()), ["spurious_basis", "orthonormal"]),
        (lambda: gs.Environments(EYE[:, :1], np.eye(3)[:, :1], gs.TwoPoint()), ["spurious_basis", "3 rows", "4"]),
        (lambda: gs.Environments(EYE[:, :1], EYE[:, 1:3], gs.TwoPoint()), ["law", "rank 1", "2 columns"]),
        (lambda: gs.Environments(EYE[:, :1], None, "two-point"), ["law", "TwoPoint"]),
        (lambda: gs.Environments(EYE[:, :2], values=[1.0]), ["values", "2"]),
        (lambda: gs.RandomEnvironments(4, 3, gs.TwoPoint(rank=2)), ["rank 3", "rank 2", "dimension 4", "5"]),
        (lambda: gs.RandomEnvironments(4, placement="orthoganal"), ["placement", "'orthogonal'"]),
        (lambda: gs.environments.FeatureEnvironments(2, 1, gs.TwoPoint(rank=3)), ["law's rank", "at most 2"]),
        (lambda: gs.VectorEnvironments([1.0, 0.0], [2], gs.TwoPoint()), ["spurious_coordinates", "[2]"]),
        (lambda: gs.VectorEnvironments([1.0, 0, 0], [1, 1], gs.TwoPoint(rank=2)), ["coordinates", "distinct"]),
        (lambda: gs.VectorEnvironments([1.0, 0.0], [1.7], gs.TwoPoint()), ["spurious_coordinates", "1.7"]),
        (lambda: gs.VectorEnvironments([1.0, 2.0], [1], gs.TwoPoint()), ["coefficients", "zero on spurious"]),
        (lambda: gs.VectorEnvironments([0.0, 0.0], [1], gs.TwoPoint()), ["coefficients", "all zero"]),
        (lambda: gs.VectorEnvironments([1.0, 0, 0], [1, 2], gs.Finite([np.ones((2, 2))])), ["law", "diagonal"]),
        (lambda: gs.Environments.diagonal(2, [1.0, 2.0, 3.0]), ["values", "dimension=2", "3"]),
        (lambda: gs.Environments.diagonal(2, []), ["values", "between 1 and", "0"]),
        (lambda: gs.RectangularEnvironments(EYE[:, :1], np.ones((3, 1))), ["right", "orthonormal", "qr"]),
        (lambda: gs.RectangularEnvironments(EYE[:, :2], np.eye(3, 1)), ["right", "1 columns", "2", "equal"]),
        (
            lambda: gs.RectangularEnvironments(EYE[:, :1], np.eye(3, 1), EYE[:, 1:2], np.eye(4, 1), gs.TwoPoint()),
            ["spurious_right", "(3, 1)", "(4, 1)"],
        ),
        (
            lambda: gs.environments.RandomRectangular(4, 3, 2, gs.TwoPoint(rank=2)),
            ["rank 2", "smaller side 3", "raise"],
        ),
        (lambda: gs.environments.RandomRectangular(4, 3, 2, values=[1.0]), ["values", "rank=2", "1"]),
        (lambda: gs.Finite([]), ["values", "zero environments"]),
        (lambda: gs.Finite(np.ones((2, 2, 3))), ["values", "square"]),
        (lambda: gs.Finite([[[1.0, 2.0], [0.0, 1.0]]]), ["values", "symmetric"]),
        (lambda: gs.Finite([1.0, 2.0], [0.5, 0.4]), ["weights", "sum to one", "0.9"]),
        (lambda: gs.Finite([1.0, 2.0], [1.5, -0.5]), ["weights", "non-negative"]),
        (lambda: gs.laws.Sampler("noise"), ["function", "key"]),
        (lambda: gs.laws.Sampler(lambda key: np.ones(3), rank=2), ["function", "2 x 2"]),
    ],
)
def test_environments_and_laws(make, words):
    refuses(make, *words)


# --- measurements and algorithms ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.DenseData(np.ones(3), np.ones(3), [0, 0, 0]), ["matrices", "dimensions"]),
        (lambda: gs.DenseData(X3, np.ones(3), [0] * 4), ["matrices, responses and environment", "4, 3, 4"]),
        (lambda: gs.DenseData(X3, [1.0, NAN, 1.0, 1.0], [0] * 4), ["responses", "finite", "1 of its 4"]),
        (lambda: gs.DenseData(X3, np.ones(4), [0.5] * 4), ["environment", "whole numbers"]),
        (lambda: gs.DenseData(X3, np.ones(4), [0, 0, 2, 2]), ["environment", "renumber"]),
        (lambda: gs.DenseData(np.ones((0, 3, 3)), [], np.zeros(0, dtype=int)), ["matrices", "no rows"]),
        (lambda: gs.HeteroSGD(0.1, order="cylic"), ["order", "'cylic'", "did you mean 'cyclic'"]),
        (lambda: gs.Algorithm(gs.Symmetric(), 0.1, gs.batches.Full(), gs.schedules.Constant(0.1)), ["start", "0.1"]),
        (
            lambda: gs.Algorithm(gs.Symmetric(), gs.starts.ScaledIdentity(1.0), gs.batches.Full(), "fast"),
            ["schedule", "'fast'"],
        ),
        (lambda: gs.GradientDescent(0.1, model=gs.Asymmetric(), width=2), ["model", "width", "leave"]),
        (lambda: gs.ScaledGD(0.1, model=gs.Symmetric(), symmetric=True), ["model", "symmetric", "leave"]),
        (lambda: gs.GradientDescent(0.1, start="spectral"), ["init_scale", "'spectral'"]),
        (lambda: gs.GradientDescent(0.1, events=gs.events.ImbalanceStep(at=1)), ["events", "list", "ImbalanceStep"]),
        (lambda: gs.events.ImbalanceStep(at=3, below=0.1), ["ImbalanceStep", "exactly one", "at", "below"]),
        (lambda: gs.starts.Given(np.ones((2, 2, 2))), ["params", "1 or 2 dimensions", "(2, 2, 2)"]),
        (lambda: gs.Dense(5, redraw=True, design=1), ["redraw", "design", "leave"]),
        (lambda: gs.Dense(5, operator="grams"), ["operator", "'grams'", "did you mean 'gram'"]),
        (
            lambda: gs.Dense(5).rows(given_environments(3), gs.Symmetric().space((3, 3))),
            ["design", "None", "give a number"],
        ),
        (
            lambda: gs.diagnostics.late_speed(np.ones((3, 2)), np.ones((3, 1)), 0.1, 1),
            ["cofactor", "1 columns", "2", "equal"],
        ),
        (lambda: gs.diagnostics.late_speed(EYE, EYE, 0.1, 4, np.ones((5, 7))), ["matrices", "16 columns", "7"]),
        (lambda: gs.diagnostics.late_speed(EYE, EYE, 0.1, 4).iterations(-1.0, 1e-3), ["loss", "above 0", "-1.0"]),
        (lambda: gs.DeepLinear(1), ["depth", "at least 2", "1", "hidden layer"]),
        (lambda: gs.DeepLinear(widths=5), ["widths", "w_0, ..., w_L", "5"]),
        (lambda: gs.DeepLinear(3, widths=(2, 5, 2)), ["widths", "leave depth and width out"]),
        (lambda: gs.Entries([]), ["pairs", "no observed entries"]),
        (lambda: gs.Entries([(0.5, 0.0)]), ["pairs", "whole numbers"]),
        (lambda: gs.Entries([(0, 0), (1, -1)]), ["pairs", "from zero", "(1, -1)"]),
        (lambda: gs.Entries([(0, 0), (1, 1), (0, 0)]), ["pairs", "distinct", "(0, 0)", "2 times"]),
        (lambda: gs.Entries(PAIRS, order="shuffled"), ["order='shuffled'", "batch_size", "divide", "3"]),
        (lambda: gs.Entries(PAIRS, batch_size=6, order="shuffled"), ["batch_size", "at most 3"]),
        (lambda: gs.RidgeDescent(FLAT, 0.1), ["step_size", "Schedule", "leave ridge out"]),
        (lambda: gs.RidgeDescent(0.1, start="orthogonal"), ["start", "'orthogonal'"]),
        (lambda: gs.schedules.WarmUp(5, 0.1, "fast"), ["then", "Schedule", "'fast'"]),
        (lambda: gs.schedules.Periodic([]), ["phases", "at least one"]),
        (lambda: gs.schedules.Periodic([FLAT]), ["phases", "(length, schedule)"]),
        (lambda: gs.schedules.Piecewise([]), ["pieces", "begin at step 0", "[]"]),
        (lambda: gs.schedules.Piecewise([(0, 5, FLAT), (7, None, FLAT)]), ["where the one before stops", "(7, None)"]),
        (lambda: gs.schedules.Piecewise([(0, 5, FLAT), (3, None, FLAT)]), ["where the one before stops", "(3, None)"]),
        (lambda: gs.schedules.Piecewise([(0, 5, FLAT)]), ["the last with stop None", "(0, 5)"]),
        (
            lambda: gs.schedules.Piecewise([(0, None, FLAT), (5, None, FLAT)]),
            ["where the one before stops", "(0, None)"],
        ),
        (
            lambda: gs.schedules.Piecewise([(0, 5, FLAT), (5, 3, FLAT), (3, None, FLAT)]),
            ["where the one before stops", "(5, 3)"],
        ),
        (lambda: gs.RectangularEnvironments.of(np.zeros((2, 3))), ["matrix", "zero"]),
        (lambda: gs.theory.wang2023.absorbing(0.1, 3, 2, excess=0.5), ["excess", "below 1/2", "0.5"]),
        (lambda: margins((EYE,), gs.theory.wang2023.Region(1, 0.1, 0.1, 0.1, 1.0)), ["weights", "two layers", "1"]),
        (lambda: gs.diagnostics.jumps([[1.0, 2.0]], [0, 1]), ["values", "one step each", "(1, 2)", "(2,)"]),
        (lambda: gs.diagnostics.jumps([[1.0], [1.0]], [1, 0]), ["steps", "increase"]),
        (lambda: gs.diagnostics.jumps(np.ones((2, 0)), [0, 1]), ["values", "last dimension"]),
        (lambda: critical_points(EYE, [(0, 9)], 3, 0.1), ["pairs", "4 x 4", "(0, 9)"]),
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
    return gs.GradientDescent(step_size, start=start, events=[gs.events.ImbalanceStep(**options)], **chosen)


MISMATCHES = [
    (gs.PooledSGD(0.1), ENVIRONMENTS, gs.FixedGaussian(5), ["FixedGaussian", "Pooled", "Full"]),
    (gs.HeteroSGD(0.1, order="cyclic"), UNIFORM, gs.Identity(), ["order='cyclic'", "Uniform", "continuous"]),
    (gs.HeteroSGD(0.1, order="cyclic"), UNEQUAL, gs.Identity(), ["order='cyclic'", "weights"]),
    (HETERO, UNIFORM, gs.FixedGaussian(5), ["FixedGaussian", "finite law", "Uniform"]),
    (gs.HeteroSGD(0.1, model=gs.Diagonal()), ENVIRONMENTS, gs.Identity(), ["Diagonal", "shape (3, 3)"]),
    (HETERO, VECTORS, gs.Identity(), ["Symmetric", "shape (3,)", "Diagonal"]),
    (gs.QuadraticNetworkSGD(0.1), ENVIRONMENTS, gs.FreshGaussian(5), ["Shrinkage", "FreshGaussian", "RankOne"]),
    (gs.HeteroSGD(0.1, model=gs.Diagonal()), VECTORS, gs.RankOne(5), ["RankOne", "symmetric"]),
    (HETERO, given_environments(4), DATA, ["matrices", "(3, 3)", "(4, 4)"]),
    (HETERO, given_environments(3, gs.Finite([1.0, 2.0, 3.0])), DATA, ["3 environments", "2"]),
    (HETERO, RECTANGLE, gs.Identity(), ["Symmetric", "shape (3, 2)", "Asymmetric"]),
    (gs.GradientDescent(0.1), ENVIRONMENTS, gs.RankOne(5), ["RankOne", "symmetric", "Symmetric"]),
    (gs.GradientDescent(0.1), UNIFORM, gs.FreshGaussian(5), ["Full", "Uniform", "continuous"]),
    (gs.ScaledGD(0.1, model=gs.Diagonal()), VECTORS, gs.Identity(), ["Diagonal", "preconditioned", "Symmetric"]),
    (
        gs.GradientDescent(0.1, model=gs.Diagonal(), start=gs.starts.Spectral()),
        VECTORS,
        gs.Identity(),
        ["Diagonal", "spectral", "use"],
    ),
    (
        gs.GradientDescent(0.1, symmetric=True, start=gs.starts.ImbalancedGaussian(0.1)),
        ENVIRONMENTS,
        gs.Identity(),
        ["ImbalancedGaussian", "two factors", "Symmetric", "use Asymmetric"],
    ),
    (
        gs.GradientDescent(0.1, width=4, start=gs.starts.OrthonormalZero()),
        ENVIRONMENTS,
        gs.Identity(),
        ["OrthonormalZero", "width <= 3", "4"],
    ),
    (
        gs.GradientDescent(0.1, width=2, start=gs.starts.Given(np.ones((3, 2)), np.ones((2, 2)))),
        ENVIRONMENTS,
        gs.Identity(),
        ["params", "((3, 2), (3, 2))", "((3, 2), (2, 2))", "Asymmetric"],
    ),
    (
        imbalance(at=3, model=gs.Symmetric()),
        ENVIRONMENTS,
        gs.Identity(),
        ["ImbalanceStep", "Symmetric", "use Asymmetric"],
    ),
    (imbalance(at=3, width=4), ENVIRONMENTS, gs.Identity(), ["ImbalanceStep", "width", "at most 3", "4"]),
    (imbalance(at=3, beta=0.2), ENVIRONMENTS, gs.Identity(), ["beta", "between 0.224 and 4.47", "0.2", "unstable"]),
    (imbalance(0.6, at=3, beta=1.0), TWO, gs.Identity(), ["step_size", "below 1 / sigma_1 = 0.5", "0.6"]),
    (gs.PooledSGD(0.1), ENVIRONMENTS, gs.Dense(5, operator="gram"), ["operator='gram'", "Pooled", "'rows' or 'auto'"]),
    (
        gs.RidgeDescent(0.1, model=gs.DeepLinear(widths=(3, 9, 3))),
        RECTANGLE,
        gs.Entries(PAIRS),
        ["widths (3, 9, 3)", "do not chain", "3 rows and 2 columns", "begin with 2"],
    ),
    (gs.RidgeDescent(0.1), VECTORS, gs.Identity(), ["DeepLinear", "shape (3,)", "Diagonal"]),
    (gs.RidgeDescent(0.1), RECTANGLE, gs.Entries([(0, 0), (1, 2)]), ["pairs", "3 x 2", "(1, 2)", "count from zero"]),
    (HETERO, ENVIRONMENTS, gs.Entries(PAIRS), ["Entries", "symmetric", "use Asymmetric or DeepLinear"]),
    (
        gs.GradientDescent(0.1, model=gs.Diagonal(), start=gs.starts.Orthogonal()),
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
        ({"record": ["sginal"]}, ["diagnostic", "'sginal'", "did you mean 'signal'"]),
        ({"record": ["block_norms"]}, ["the diagnostic block_norms is gone", "function of the snapshot"]),
        ({"record": [3]}, ["record", "3"]),
        ({"record": "signal"}, ["record", "list", "'signal'"]),
        ({"record_at": 0}, ["record_at", "at least 1"]),
        ({"record_at": []}, ["record_at", "at least one step"]),
        ({"record_at": [0, 50]}, ["record_at", "at most 5", "num_steps"]),
        ({"record_at": [3, 1]}, ["record_at", "increasing"]),
        ({"tolerance": 0.0}, ["tolerance", "above 0", "0.0"]),
        ({"tolerance": "small"}, ["tolerance", "'small'"]),
        ({"reduction": "sometimes"}, ["reduction", "'sometimes'", "auto, never, always"]),
    ],
)
def test_arguments_of_run(options, words):
    refuses(lambda: gs.run(HETERO, GOOD, **({"num_steps": 5} | options)), *words)


@pytest.mark.parametrize(
    ("model", "limit"),
    [
        (gs.Symmetric(1), 1),
        (gs.Asymmetric(1), 1),
        (gs.models.SymmetricDifference(1), 2),
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
    problem = gs.Problem(gs.environments.RandomRectangular(4, 3, 2), gs.Identity())
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
        ({"at": [3, -1]}, ["at", "-1"]),
        ({"num_steps": 0}, ["num_steps", "at least 1"]),
        ({"schedule": 0.1}, ["schedule", "Schedule", "0.1"]),
        ({"record_at": [0, 30]}, ["record_at", "at most 5"]),
    ],
)
def test_arguments_of_offshoots(options, words):
    good = {"at": [3], "schedule": FLAT, "num_steps": 5}
    refuses(lambda: gs.engine.offshoots(HETERO, GOOD, **(good | options)), *words)
    refuses(lambda: gs.engine.offshoots("HeteroSGD", GOOD, **good), "algorithm", "'HeteroSGD'")


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
        gs.diagnostics.DIAGNOSTICS.pop("for_this_test", None)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: own_model(lambda A: A, symmetric=True).space((3, 3)), ["not symmetric", "(A + A.T) / 2"]),
        (lambda: record_of(lambda s: s.product, dims=3), ["dims", "a list of words", "3"]),
        (lambda: gs.run(HETERO, GOOD, num_steps=5, record=[np.trace]), ["trace", "is a snapshot"]),
        (
            lambda: gs.run(HETERO, GOOD, num_steps=5, record=[lambda s: 1.0]),
            ["has no name", "gs.diagnostics.Diagnostic"],
        ),
        (lambda: gs.HeteroSGD(0.05, rule=gs.rules.Adam), ["rule", "the class Adam", "gs.rules.Adam()"]),
        (lambda: gs.HeteroSGD(0.05, order=["Bern", "Oslo"]), ["order", "by number", "'Bern'", "labels"]),
        (lambda: gs.Environments.from_matrices(1j * np.eye(2), [np.eye(2)]), ["A_star", "complex", ".real"]),
        (lambda: gs.PooledSGD(0.05, order="iid"), ["no argument 'order'", "it takes step_size"]),
        (lambda: gs.theory.predict(gs.PooledSGD(0.05), GOOD, num_steps=5), ["no predictor covers this run"]),
    ],
)
def test_what_a_newcomer_tries(make, words):
    refuses(make, *words)


def own_model(function, **options):
    return gs.Model.from_function(function, lambda shape: [shape], **options)


def test_a_decorated_function_can_be_recorded():
    def trace_for_this_test(snapshot):
        return snapshot.product.trace()

    gs.diagnostic(trace_for_this_test)
    try:
        assert [d.name for d in resolve([trace_for_this_test])] == ["trace_for_this_test"]
    finally:
        del gs.diagnostics.DIAGNOSTICS["trace_for_this_test"]


@pytest.mark.parametrize(
    "made",
    [
        gs.HeteroSGD(0.05, rule=gs.rules.Adam()),
        gs.HeteroSGD(1.0, rule=gs.rules.Optax("adam", {"learning_rate": 0.1})),
        gs.GradientDescent(0.1, width=3, rule=gs.rules.Momentum(0.5)),
    ],
    ids=repr,
)
def test_rules_print_as_the_calls_that_make_them(made):
    names = {name: gs.public(name) for name in gs.places()}
    assert "GradientStep" not in repr(made) and eval(repr(made), names) == made
