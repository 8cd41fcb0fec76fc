"""No prediction outside its assumptions, judged by a table of its own: what each part of a run violates, in words."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gyrostat as gs
from checks import refuses
from gyrostat.figures.declarations import Line, Marker
from gyrostat.figures.result_plot import result_figure
from gyrostat.theory.covered_runs import obstacle

D = 12
LAW = gs.TwoPoint(spread=8.0)
SENSING = gs.FreshGaussian(4000)
TILTED = np.eye(D, 1) * 0.8 + np.eye(D, 1, k=-1) * 0.6


class OwnModel(gs.Symmetric):
    """Half of the product."""

    def product(self, params):
        return super().product(params) / 2


class OwnStart(gs.starts.ScaledIdentity): ...


class OwnSchedule(gs.schedules.Constant): ...


class OwnBatches(gs.batches.OneEnvironment): ...


class OwnMeasurements(gs.FreshGaussian): ...


class OwnLaw(gs.TwoPoint): ...


class LookingAhead(gs.rules.GradientStep):
    """A rule that overrides how a step is made."""


class LawPerSeed(gs.RandomEnvironments):
    """A recipe whose law has another spread for every seed."""

    def draw(self, key):
        return gs.RandomEnvironments(self.dimension, law=gs.TwoPoint(spread=float(key[0]))).draw(key)


def long_stays(t):
    return (t // 50) % 2


def heavy(key):
    return jax.random.t(key, 1.5)


def mild(key):
    return 1 + 6 * jax.random.rademacher(key, (), dtype=float)


# What a part violates, in a word of the refusal; None where it meets all assumptions.
PARTS = {
    "model": [
        (gs.Symmetric(), None),
        (gs.Symmetric(D), None),
        (gs.Symmetric(3), "as many columns"),
        (gs.Symmetric(gradient_factor=2.0), "gradient_factor 1"),
        (gs.models.SymmetricDifference(), "the model Symmetric"),
        (OwnModel(), "the model Symmetric"),
    ],
    "start": [
        (gs.starts.ScaledIdentity(1e-3), None),
        (gs.starts.ScaledIdentity(0.5), "small at first"),
        (gs.starts.ScaledGaussian(1e-3), "alpha I"),
        (OwnStart(1e-3), "alpha I"),
    ],
    "schedule": [
        (gs.schedules.Constant(0.05), None),
        (gs.schedules.Constant(0.05, ridge=0.1), "without a ridge"),
        (gs.schedules.Annealing(gs.schedules.Constant(0.05), gs.schedules.Constant(0.01), at=9), "constant step size"),
        (lambda t: (0.05 / (1 + t), 0.0), "constant step size"),
        (OwnSchedule(0.05), "constant step size"),
    ],
    "rule": [
        (gs.rules.GradientStep(), None),
        (gs.rules.Momentum(0.02), "only momentum"),
        (gs.rules.Nesterov(0.02), "only momentum"),
        (gs.rules.Momentum(0.5), "with momentum beta"),
        (gs.rules.Momentum(0.5, of=gs.rules.Preconditioned(0.1)), "plain gradient steps"),
        (gs.rules.RidgeStep(), "plain gradient steps"),
        (gs.rules.Adam(), "plain gradient steps"),
        (gs.rules.Optax(optax.adam(0.01)), "plain gradient steps"),
        (LookingAhead(), "plain gradient steps"),
    ],
    "batches": [
        (gs.batches.OneEnvironment(), None),
        (gs.batches.OneEnvironment("cyclic"), "only a list"),
        (gs.batches.OneEnvironment("shuffled"), "only a list"),
        (gs.batches.OneEnvironment(amplify=2.0), "only a list"),
        (gs.batches.OneEnvironment([0, 0, 1]), "order that is given by name"),
        (gs.batches.OneEnvironment(long_stays), "order that is given by name"),
        (gs.batches.Pooled(), "batches of one environment (HeteroSGD)"),
        (gs.batches.Full(), "batches of one environment (HeteroSGD)"),
        (OwnBatches(), "batches of one environment"),
    ],
    "events": [((), None), ((gs.events.Shrinkage(),), "no events")],
    "law": [
        (LAW, None),
        (gs.TwoPoint(spread=8.0, rank=2, independent=True), "only two directions"),
        (gs.Finite([-0.5, 1.0, 2.0]), None),
        (gs.Uniform(spread=9.0), "only continuous"),
        (gs.Gaussian(spread=9.0), "only continuous"),
        (gs.laws.Sampler(mild), "only continuous"),
        (gs.laws.Sampler(heavy), "second moment"),
        (gs.Finite([[[1.0, 2.0], [2.0, 1.0]]]), "diagonal"),
        (gs.laws.Absent(), "a spurious part"),
        (OwnLaw(spread=8.0), "a law of the library"),
    ],
    "environments": [
        (lambda law: gs.RandomEnvironments(D, law=law), None),
        (lambda law: gs.RandomEnvironments(D, law=law, overlap=0.2), None),
        (lambda law: gs.RandomEnvironments(D, 2, law=law), "only two directions"),
        (lambda law: gs.Environments(np.eye(D, 1), np.eye(D, law.rank, k=-1), law), None),
        (lambda law: gs.RandomEnvironments(D, law=law, overlap=0.5), "overlap"),
        (lambda law: gs.RandomEnvironments(D, law=law, placement="random"), "overlap"),
        (lambda law: gs.RandomEnvironments(D, law=law, values=[2.0]), "all 1"),
        (lambda law: LawPerSeed(D, law=law), "a Problem of Environments or RandomEnvironments"),
    ],
    "measurements": [
        (gs.Identity(), None),
        (SENSING, None),
        (gs.Dense(4000, redraw=True), None),
        (gs.FixedGaussian(4000), "fresh measurements"),
        (gs.Dense(4000), "fresh measurements"),
        (gs.FreshGaussian(4000, noise=3.0), "without noise"),
        (gs.FreshGaussian(10), "measurements in a batch"),
        (gs.RankOne(4000), "keep all norms"),
        (OwnMeasurements(4000), "keep all norms"),
    ],
}
NO_MATTER = {  # what "only" does not violate by itself; the growth of the invariant signal does not need the last seven either
    "elimination": {"only momentum", "only a list", "only two directions", "only continuous"},
    "growth": {
        *("only a list", "only two directions", "only continuous"),
        *("batches of one environment (HeteroSGD)", "diagonal", "a spurious part", "small at first"),
    },
}


@st.composite
def runs(draw):
    """A run whose parts are the first of their kind but for at most three, and what these violate."""
    changed = draw(st.sets(st.sampled_from(sorted(PARTS)), max_size=3))
    chosen = {
        name: draw(st.sampled_from(options)) if name in changed else options[0] for name, options in PARTS.items()
    }
    parts = {name: part for name, (part, _) in chosen.items()}
    problem = gs.Problem(parts.pop("environments")(parts.pop("law")), parts.pop("measurements"))
    violated = {word for _, word in chosen.values() if word is not None}
    if {"only a list", "only continuous"} <= violated:
        violated |= {"is continuous"}
    return gs.Algorithm(**parts), problem, violated


@settings(max_examples=100, deadline=None)
@given(runs())
def test_no_predictor_answers_for_a_run_outside_its_assumptions(run):
    algorithm, problem, violated = run
    against = violated - NO_MATTER["elimination"]
    if against:
        with pytest.raises(gs.GyrostatError) as caught:
            gs.theory.predict(algorithm, problem, num_steps=20)
        assert any(word in str(caught.value) for word in against), (str(caught.value), against)
    else:
        prediction = gs.theory.predict(algorithm, problem, num_steps=20)
        only_surrogate = violated - {"only continuous"}
        assert ("surrogate" in prediction.margins) == (not only_surrogate), violated

    unmet = obstacle(algorithm, problem, to="growth")
    plain = {"only momentum": "plain gradient steps", "with momentum beta": "plain gradient steps"}
    against = {plain.get(word, word) for word in violated} - NO_MATTER["growth"]
    assert (unmet is None) == (not against - {"is continuous"})
    assert unmet is None or any(word in unmet for word in against), (unmet, against)


def drawn_theory(algorithm, problem, num_steps=20):
    figure = result_figure(gs.run(algorithm, problem, num_steps=num_steps, record_at=3))
    lines = {s.label for panel in figure.panels for s in panel.series if isinstance(s, Line | Marker)}
    return lines, "Lyapunov" in figure.note


def test_the_promise_of_the_growth_is_kept_inside_the_assumptions_and_was_wrong_outside():
    problem = gs.Problem(gs.RandomEnvironments(20, law=LAW), SENSING)
    for model, is_near in ((gs.Symmetric(), True), (gs.Symmetric(3), False)):
        end = gs.run(gs.HeteroSGD(0.05, model=model), problem, num_steps=150, seeds=16, record_at=[150])
        promised = gs.theory.xu2024.calibration(0.05, 1e-3, 150)[-1] ** 2
        assert (abs(float(end.signal.median()) - promised) < 0.1) == is_near


@pytest.mark.parametrize(
    ("d", "rank", "law", "step_size", "order"),
    [
        (20, 1, LAW, 0.05, None),
        (12, 2, gs.Finite([[[1.0, 2.0], [2.0, 1.0]], [[1.0, -2.0], [-2.0, -1.0]]], [0.3, 0.7]), 0.2, None),
        (15, 1, gs.TwoPoint(spread=2.0), 0.05, "pooled"),
    ],
)
def test_the_least_number_of_measurements_keeps_the_promise_and_an_eighth_of_it_does_not(
    d, rank, law, step_size, order
):
    """The noise of a batch shrinks the signal by about ``.3 eta d (r1 + E ||Sigma||_F^2) / m``, whatever m / d."""
    algorithm = (gs.HeteroSGD if order is None else gs.PooledSGD)(step_size)
    steps = int(8.5 / np.log1p(step_size))  # the signal is learnt after log(1 / alpha) = 6.9
    promised = gs.theory.xu2024.calibration(step_size, 1e-3, steps)[-1] ** 2
    least = int(np.ceil(8 * step_size * d * (rank + law.second_moment)))
    for m, is_enough in ((least, True), (least // 8, False)):
        problem = gs.Problem(gs.RandomEnvironments(d, rank, law=law), gs.FreshGaussian(m))
        end = gs.run(algorithm, problem, num_steps=steps, seeds=48, record=["signal"], record_at=[steps])
        assert (abs(float(end.signal.median()) - promised) < 0.1) == is_enough
        assert (obstacle(algorithm, problem, to="growth") is None) == is_enough
    just_below = gs.Problem(problem.environments, gs.FreshGaussian(least - 1))
    assert "8 eta d (r1 + E ||Sigma||_F^2)" in obstacle(algorithm, just_below, to="growth")


def test_the_least_number_of_measurements_counts_momentum_and_amplification():
    """Twice the effective step needs twice as many; with kappa = 2, steps weigh the batches of two environments by 2 and -1."""
    law = gs.TwoPoint(spread=6.0)  # E Sigma^2 = 37
    for algorithm, least in (
        (gs.HeteroSGD(0.001, rule=gs.rules.Momentum(0.9)), 8 * 0.01 * D * 38),
        (gs.HeteroSGD(0.05, amplify=2.0), 8 * 0.05 * D * 38 * (2**2 + 1)),
    ):
        for m, is_enough in ((int(np.ceil(least)), True), (int(np.ceil(least)) - 1, False)):
            problem = gs.Problem(gs.RandomEnvironments(D, law=law), gs.FreshGaussian(m))
            assert (obstacle(algorithm, problem, to="elimination") is None) == is_enough


def test_an_order_that_stays_in_one_environment_is_not_said_to_eliminate():
    problem = gs.Problem(gs.RandomEnvironments(20, law=LAW), SENSING)
    algorithm = gs.HeteroSGD(0.05, order=long_stays)
    end = gs.run(algorithm, problem, num_steps=400, seeds=8, record_at=[400])
    assert float(end.spurious.median()) > 1
    assert drawn_theory(algorithm, problem) == (set(), False)  # a function is not in the settings of a result


def exponent_of_momentum(beta, eta, spread, *, runs=1000, steps=6000):
    """``q <- q + beta (q - q') + (1 - beta) eta xi q`` with xi = +-spread: the growth of typical products of 2 x 2 matrices."""
    rng = np.random.default_rng(0)
    q, before, growth = np.ones(runs), np.ones(runs), 0.0
    for t in range(steps):
        q, before = q + beta * (q - before) + (1 - beta) * eta * spread * rng.choice([-1, 1], runs) * q, q
        size = np.hypot(q, before)
        q, before = q / size, before / size
        growth += np.log(size).mean() if t >= steps / 10 else 0.0  # the first steps turn the pair
    return growth / (0.9 * steps)


@pytest.mark.parametrize("beta", [0.3, 0.9])
def test_momentum_has_the_exponent_of_its_effective_step_while_little_changes_and_not_beyond(beta):
    eta = 0.01
    for z, is_near in ((0.19, True), (0.28, False)):  # the guard's bound is z = 1/5
        spread = z * np.sqrt((1 - beta) / beta) / eta
        law = gs.TwoPoint(mean=0.0, spread=spread)
        ratio = exponent_of_momentum(beta, eta, spread) / gs.theory.ours.lyapunov_exponent(law, eta)
        assert (abs(ratio - 1) < 0.15) == is_near, ratio
        algorithm = gs.HeteroSGD((1 - beta) * eta, rule=gs.rules.Momentum(beta))
        problem = gs.Problem(gs.RandomEnvironments(D, law=law), gs.Identity())
        assert (obstacle(algorithm, problem, to="elimination") is None) == is_near


def test_off_the_diagonal_a_signal_grows_that_the_diagonal_does_not_show():
    """Sigma = [[0, 4], [4, 0]] has the eigenvalue 4; by its diagonal, lambda is 0 and nothing grows."""
    law = gs.Finite([[[0.0, 4.0], [4.0, 0.0]]])
    problem = gs.Problem(gs.RandomEnvironments(D, law=law), gs.Identity())
    assert gs.theory.ours.lyapunov_exponent(law, 0.05) == 0
    end = gs.run(gs.HeteroSGD(0.05), problem, num_steps=100, record_at=[100])
    assert float(end.spurious.max()) > 0.5


# --- laws whose moments draws do not tell -------------------------------------------------------------


@pytest.mark.parametrize("freedom", [1.0, 1.5])
def test_heavy_tails_have_no_bound_and_get_no_formula(freedom):
    law = gs.laws.Sampler(lambda key: jax.random.t(key, freedom))
    assert law.bound == np.inf
    for ask in (
        lambda: gs.theory.xu2024.constants(law),
        lambda: gs.theory.ours.error_law(law, dimension=12, rank=1, step_size=0.05, num_samples=4000),
        lambda: gs.theory.assess(gs.theory.Setting(law), isometry_draws=0),
    ):
        refuses(ask, "function", "tails", "jnp.clip")


@pytest.mark.parametrize(
    ("function", "bound", "second"),
    [
        (mild, 7.0, 37.0),
        (lambda key: jnp.clip(jax.random.normal(key), -2.0, 2.0), 2.0, None),
        (lambda key: jax.random.uniform(key), np.inf, 1 / 3),  # draws cannot tell where it ends
        (lambda key: 2 * jax.random.laplace(key), np.inf, 8.0),
    ],
)
def test_a_sampler_with_moments_has_them(function, bound, second):
    law = gs.laws.Sampler(function)
    assert law.bound == bound and law.has_second_moment
    if second is not None:
        assert law.second_moment == pytest.approx(second, rel=0.05)  # 2^16 draws
