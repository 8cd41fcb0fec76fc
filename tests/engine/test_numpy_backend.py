"""The NumPy backend against the compiled engine: every model, every update rule, divergence; and that it needs no JAX."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gyrostat as gs
from gyrostat.algorithms import events
from gyrostat.engine.numpy_backend import update_rules
from gyrostat.engine.numpy_backend.loop import constant, descend, path_and_late_mean
from gyrostat.engine.numpy_backend.models import (
    NumpyAsymmetric,
    NumpyDiagonal,
    NumpyModel,
    NumpySymmetric,
    NumpySymmetricDifference,
)
from gyrostat.engine.numpy_backend.symmetric_runs import simulate_blocks, supports
from gyrostat.engine.numpy_backend.update_rules import (
    NumpyAdam,
    NumpyGradientStep,
    NumpyMomentum,
    NumpyPreconditioned,
    NumpyReading,
)
from gyrostat.engine.one_run import LIMIT

RUNS, STEPS, WIDTH, RIDGE = 3, 25, 2, 0.3
FACTOR = 1.5
PAIRS: dict[str, tuple[gs.Model, NumpyModel]] = {
    "symmetric": (gs.Symmetric(WIDTH, gradient_factor=FACTOR), NumpySymmetric(FACTOR)),
    "difference": (gs.SymmetricDifference(WIDTH, gradient_factor=FACTOR), NumpySymmetricDifference(FACTOR)),
    "diagonal": (gs.Diagonal(gradient_factor=FACTOR), NumpyDiagonal(FACTOR)),
    "asymmetric": (gs.Asymmetric(WIDTH), NumpyAsymmetric()),
}
RULES = {
    "gradient": (gs.GradientStep(decay=1.5), NumpyGradientStep(decay=1.5)),
    "scaled": (gs.Preconditioned(0.05), NumpyPreconditioned(0.05)),
    "prec": (gs.Preconditioned("residual"), NumpyPreconditioned("residual")),
    "momentum": (gs.Momentum(0.7, of=gs.GradientStep(1.5)), NumpyMomentum(0.7, decay=1.5)),
    "nesterov": (gs.Nesterov(0.6), NumpyMomentum(0.6, looks_ahead=True)),
    "adam": (gs.Adam(0.8, 0.95, 1e-6), NumpyAdam(0.8, 0.95, 1e-6)),
}


def environments(model: str) -> gs.Environments:
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((n, 2)))[0] for n in (5, 4))
    if model == "diagonal":
        return gs.VectorEnvironments([1.0, -0.5, 0.0, 0.0, 0.3])
    if model == "asymmetric":
        return gs.RectangularEnvironments(U, V, values=[1.0, 0.6])
    return gs.Environments(U, values=[1.0, 0.6])


def starts(model: str) -> tuple[np.ndarray, ...]:
    """Parameters of several runs."""
    rng = np.random.default_rng(1)
    shapes = PAIRS[model][0].shapes(environments(model).shape)
    return tuple(0.5 * rng.standard_normal((RUNS, *shape)) for shape in shapes)


def compiled(model: str, rule: gs.UpdateRule, eta: float, steps: int = STEPS):
    """The products of every run and step, and the steps of divergence, from the compiled engine."""
    product = gs.Diagnostic("product", lambda view: view.product, ("row", "column")[: len(environments(model).shape)])
    found = []
    for run in range(RUNS):
        start = gs.Given(*(p[run] for p in starts(model)))
        algorithm = gs.Algorithm(PAIRS[model][0], start, gs.Pooled(), gs.Constant(eta, ridge=RIDGE), rule)
        problem = gs.Problem(environments(model), gs.Identity())
        options = {"num_steps": steps, "record": [product], "record_at": steps + 1, "reduction": "never"}
        found.append(gs.run(algorithm, problem, **options))
    return [np.stack(x) for x in zip(*((f["product"].values[0], f.diverged.values[0]) for f in found), strict=True)]


def in_numpy(model: str, rule, eta: float, steps: int = STEPS, params=None):
    """The same from the NumPy backend, all runs at once."""
    target = np.asarray(environments(model).invariant)

    def sense(state):
        residual = state.product - target
        return NumpyReading(residual, np.sum(residual**2, axis=tuple(range(1, residual.ndim))))

    found = []
    schedule = lambda step: (eta, RIDGE)  # noqa: E731
    with np.errstate(all="ignore"):
        for state in descend(PAIRS[model][1], params or starts(model), sense, rule, schedule, steps, LIMIT):
            found.append(state.product.copy())
    return np.stack(found, axis=1), state.diverged


CASES = [(model, rule) for rule in RULES for model in PAIRS if rule not in ("scaled", "prec") or model != "diagonal"]


@pytest.mark.parametrize(("model", "rule"), CASES)
def test_every_model_and_rule_takes_the_steps_of_the_engine(model, rule):
    theirs, ours = RULES[rule]
    products, diverged = in_numpy(model, ours, 0.1)
    wanted, _ = compiled(model, theirs, 0.1)
    np.testing.assert_allclose(products, wanted, rtol=0, atol=1e-12)
    assert (diverged == -1).all()
    assert np.abs(wanted[:, -1] - wanted[:, 0]).max() > 0.1  # something happened


@pytest.mark.parametrize("model", PAIRS)
def test_divergence_is_noted_at_the_step_of_the_engine(model):
    products, diverged = in_numpy(model, NumpyGradientStep(decay=1.5), 6.0)
    wanted, steps = compiled(model, gs.GradientStep(decay=1.5), 6.0)
    assert diverged.tolist() == steps.tolist() and (diverged > 1).all()
    for run, t in enumerate(diverged):  # the numbers before are large, and equal as far as their digits go
        np.testing.assert_allclose(
            products[run, :t], wanted[run, :t], rtol=1e-9, atol=1e-9 * np.abs(wanted[run, t - 1]).max()
        )


def test_the_loop_leaves_the_start_alone_and_records_what_was_asked():
    start = starts("diagonal")
    before = [p.copy() for p in start]
    sense = lambda state: NumpyReading(state.product - 1.0)  # noqa: E731
    states = descend(NumpyDiagonal(), start, sense, NumpyGradientStep(), constant(0.1), 10)
    steps, path, late = path_and_late_mean(states, 10, 5)
    every = [s.product.copy() for s in descend(NumpyDiagonal(), start, sense, NumpyGradientStep(), constant(0.1), 10)]
    assert all((p == q).all() for p, q in zip(start, before, strict=True))
    assert steps.tolist() == [0, 2, 4, 6, 8, 10] and len(every) == 11
    np.testing.assert_allclose(path, [every[t].mean(axis=0) for t in steps], atol=1e-15)
    np.testing.assert_allclose(late, np.mean(every[6:], axis=0), atol=1e-15)


def test_the_imbalance_step_is_that_of_the_engine(x64):
    rng = np.random.default_rng(3)
    F, G = rng.standard_normal((6, 2)), rng.standard_normal((5, 2))
    assert update_rules.MARGIN == events.MARGIN
    for ours, theirs in zip(update_rules.imbalanced((F, G), 0.7), events.imbalanced((F, G), 0.7), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    values = update_rules.singular_values((F, G))
    np.testing.assert_allclose(values, np.linalg.svd(F @ G.T, compute_uv=False)[:2], atol=1e-12)
    for residual, eta in ((1e-3, 0.01), (values[1], 0.01), (1e3, 0.5)):
        wanted = float(events.automatic_beta(F @ G.T, residual, eta))
        assert update_rules.automatic_beta(values, residual, eta) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("rule", [gs.Momentum(0.8), gs.Nesterov(0.8), gs.Adam(0.8, 0.99)])
@pytest.mark.parametrize("order", ["iid", [0, 1, 1]])
def test_the_laboratory_gets_the_runs_of_the_engine_with_memory_and_any_order(rule, order):
    problem = gs.Problem(gs.RandomEnvironments(6, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(600))
    algorithm = gs.HeteroSGD(gs.Constant(0.01, ridge=0.02), init_scale=0.1, rule=rule, order=order)
    record = ("signal", "spurious", "distance")
    assert supports((algorithm, problem), record)
    *_, found = simulate_blocks((algorithm, problem), record, np.arange(0, 41, 10), 0, 3, float)
    wanted = gs.run(algorithm, problem, num_steps=40, seeds=3, record=record, record_at=5)
    for name in record:
        np.testing.assert_allclose(found[name], wanted[name].values, rtol=1e-9, atol=1e-11)
    assert not supports((gs.HeteroSGD(0.01, rule=gs.Optax("adam", {"learning_rate": 1.0})), problem), record)


def test_the_loop_needs_no_jax():
    code = "import sys, gyrostat.engine.numpy_backend.loop; sys.exit('jax' in sys.modules or 'equinox' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
