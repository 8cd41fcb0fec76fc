"""No prediction outside its assumptions: `theory.predict` refuses and `gs.plot` draws none, for the same reasons."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import gyrostat as gs
from checks import refuses
from gyrostat.figures.declarations import Line, Marker
from gyrostat.figures.result_plot import result_figure

LAW = gs.TwoPoint(spread=8.0)
RECIPE = gs.RandomEnvironments(12, law=LAW)
SENSING = gs.FreshGaussian(4000)
TILTED = gs.Environments(np.eye(12, 1), np.eye(12, 1) * 0.8 + np.eye(12, 1, k=-1) * 0.6, LAW)


def long_stays(t):
    return (t // 50) % 2


OUTSIDE = {
    "fewer columns": (gs.HeteroSGD(0.05, model=gs.Symmetric(3)), RECIPE, SENSING, "as many columns as rows"),
    "another model": (gs.HeteroSGD(0.05, model=gs.SymmetricDifference()), RECIPE, SENSING, "the model Symmetric"),
    "a factor of the gradient": (
        gs.HeteroSGD(0.05, model=gs.Symmetric(gradient_factor=2.0)),
        RECIPE,
        SENSING,
        "gradient_factor 1",
    ),
    "another start": (gs.HeteroSGD(0.05, start=gs.ScaledGaussian(1e-3)), RECIPE, SENSING, "the start alpha I"),
    "a schedule": (
        gs.HeteroSGD(gs.Annealing(gs.Constant(0.05), gs.Constant(0.01), at=9)),
        RECIPE,
        SENSING,
        "constant step size",
    ),
    "a ridge": (gs.HeteroSGD(gs.Constant(0.05, ridge=0.1)), RECIPE, SENSING, "without a ridge"),
    "a rule of optax": (gs.HeteroSGD(1.0, rule=gs.Optax(optax.adam(0.01))), RECIPE, SENSING, "plain gradient steps"),
    "an event": (
        gs.Algorithm(
            gs.Symmetric(), gs.ScaledIdentity(1e-3), gs.OneEnvironment(), gs.Constant(0.05), events=[gs.Shrinkage()]
        ),
        RECIPE,
        gs.RankOne(400),
        "no events",
    ),
    "other eigenvalues": (gs.HeteroSGD(0.05), gs.RandomEnvironments(12, law=LAW, values=[2.0]), SENSING, "all 1"),
    "overlap": (gs.HeteroSGD(0.05), TILTED, SENSING, "overlap"),
    "rank-one measurements": (gs.HeteroSGD(0.01), RECIPE, gs.RankOne(4000), "keep all norms"),
    "noise": (gs.HeteroSGD(0.05), RECIPE, gs.FreshGaussian(4000, noise=3.0), "without noise"),
    "a small batch": (gs.HeteroSGD(0.05), RECIPE, gs.FreshGaussian(20), "measurements in a batch"),
}
ONLY_GROWTH = {
    "pooled batches": (gs.PooledSGD(0.05), RECIPE, SENSING, "batches of one environment"),
    "a listed order": (gs.HeteroSGD(0.05, order=[0, 0, 1, 1]), RECIPE, SENSING, "an order that is given by name"),
    "nothing spurious": (gs.HeteroSGD(0.05), gs.RandomEnvironments(12), SENSING, "a spurious part"),
}


def drawn_theory(algorithm, problem, num_steps=20):
    figure = result_figure(gs.run(algorithm, problem, num_steps=num_steps, record_at=3))
    lines = {s.label for panel in figure.panels for s in panel.series if isinstance(s, Line | Marker)}
    return lines, "Lyapunov" in figure.note


@pytest.mark.filterwarnings("ignore::gyrostat.DivergenceWarning")
@pytest.mark.parametrize("case", [*OUTSIDE, *ONLY_GROWTH])
def test_a_run_outside_the_assumptions_gets_no_prediction(case):
    algorithm, environments, measurements, reason = (OUTSIDE | ONLY_GROWTH)[case]
    problem = gs.Problem(environments, measurements)
    refuses(lambda: gs.theory.predict(algorithm, problem, num_steps=20), "no predictor covers this run", reason)
    lines = {"R_t^2 of eq. (25)"} if case in ONLY_GROWTH else set()
    assert drawn_theory(algorithm, problem) == (lines, False)


def test_the_promise_of_the_growth_is_kept_inside_the_assumptions_and_was_wrong_outside():
    problem = gs.Problem(gs.RandomEnvironments(20, law=LAW), SENSING)
    for model, is_near in ((gs.Symmetric(), True), (gs.Symmetric(3), False)):
        end = gs.run(gs.HeteroSGD(0.05, model=model), problem, num_steps=150, seeds=16, record_at=[150])
        promised = gs.theory.calibration(0.05, 1e-3, 150)[-1] ** 2
        assert (abs(float(end.signal.median()) - promised) < 0.1) == is_near


def test_an_order_that_stays_in_one_environment_is_not_said_to_eliminate():
    problem = gs.Problem(gs.RandomEnvironments(20, law=LAW), SENSING)
    algorithm = gs.HeteroSGD(0.05, order=long_stays)
    end = gs.run(algorithm, problem, num_steps=400, seeds=8, record_at=[400])
    assert float(end.spurious.median()) > 1
    assert drawn_theory(algorithm, problem) == (set(), False)
    refuses(lambda: gs.theory.predict(algorithm, problem, num_steps=400), "an order that is given by name")


# --- laws whose moments draws do not tell -------------------------------------------------------------


@pytest.mark.parametrize("freedom", [1.0, 1.5])
def test_heavy_tails_have_no_bound_and_get_no_prediction(freedom):
    law = gs.Sampler(lambda key: jax.random.t(key, freedom))
    assert law.bound == np.inf
    problem = gs.Problem(gs.RandomEnvironments(12, law=law), SENSING)
    refuses(lambda: gs.theory.predict(gs.HeteroSGD(0.05), problem, num_steps=20), "second moment is known")
    for ask in (
        lambda: gs.theory.heterogeneity(law),
        lambda: gs.theory.error_law(law, dimension=12, rank=1, step_size=0.05, num_samples=4000),
        lambda: gs.theory.assess(gs.theory.Setting(law), isometry_draws=0),
    ):
        refuses(ask, "function", "tails", "jnp.clip")


@pytest.mark.parametrize(
    ("function", "bound", "second"),
    [
        (lambda key: 1 + 6 * jax.random.rademacher(key, (), dtype=float), 7.0, 37.0),
        (lambda key: jnp.clip(jax.random.normal(key), -2.0, 2.0), 2.0, None),
        (lambda key: jax.random.uniform(key), np.inf, 1 / 3),  # draws cannot tell where it ends
        (lambda key: 2 * jax.random.laplace(key), np.inf, 8.0),
    ],
)
def test_a_sampler_with_moments_has_them(function, bound, second):
    law = gs.Sampler(function)
    assert law.bound == bound and law.has_second_moment
    if second is not None:
        assert law.second_moment == pytest.approx(second, rel=0.05)  # 2^16 draws
    problem = gs.Problem(gs.RandomEnvironments(12, law=law), SENSING)
    assert "Lyapunov rule (ours)" in gs.theory.predict(gs.HeteroSGD(0.05), problem, num_steps=20)
