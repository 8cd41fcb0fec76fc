"""Rules that ask for the gradient of the same batch at other parameters, against plain loops in NumPy."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
import reference
from conftest import Watch, given_environments, rectangular_environments
from gyrostat.engine.reduction import choose_reduction

ETA, ALPHA, RADIUS, STEPS = 0.05, 0.4, 0.1, 25


class Sharpness(gs.rules.UpdateRule):
    """Sharpness-aware minimisation: the gradient at a distance up the gradient."""

    radius: float
    rotates = True

    def __call__(self, model, params, reading, step_size, ridge):
        up = model.pullback(params, reading.gradient)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in up))
        worse = tuple(p + self.radius * g / norm for p, g in zip(params, up, strict=True))
        gradients = model.pullback(worse, reading.at(worse).gradient)
        return tuple(p - step_size * g for p, g in zip(params, gradients, strict=True))


class Extragradient(gs.rules.UpdateRule):
    """A step with the gradient of the point where a gradient step would lead."""

    def __call__(self, model, params, reading, step_size, ridge):
        ahead = gs.rules.GradientStep()(model, params, reading, step_size, ridge)
        gradients = model.pullback(ahead, reading.at(ahead).gradient)
        return tuple(p - step_size * g for p, g in zip(params, gradients, strict=True))


class Twice(gs.rules.UpdateRule):
    """A gradient step with the second reading of a batch, after one far away, and one through another reading."""

    def __call__(self, model, params, reading, step_size, ridge):
        far = reading.at(tuple(p + 1.0 for p in params))
        return gs.rules.GradientStep()(model, params, far.at(params), step_size, ridge)


def path(rule, measurements, environments, model="Asymmetric", *, make=gs.HeteroSGD, **options) -> np.ndarray:
    algorithm = make(ETA, init_scale=ALPHA, model=gs.public(model)(), rule=rule, **options)
    asked = {"num_steps": STEPS, "seeds": 2, "record": [Watch().diagnostic], "record_at": STEPS + 1}
    return gs.run(algorithm, gs.Problem(environments, measurements), **asked).params.values


@pytest.mark.parametrize("rule", [Sharpness(RADIUS), Extragradient()], ids=["sharpness", "extragradient"])
def test_the_steps_are_those_of_a_plain_loop(rule):
    """On rows with noise, one environment after the other."""
    environments, model = rectangular_environments(), gs.Asymmetric()
    measurements = gs.Dense(9, noise=0.1, design=3, operator="rows")
    rows = measurements.rows(environments, model.space(environments.shape))
    X = np.asarray(rows.matrices).reshape(2, 9, *environments.shape)
    targets = [np.asarray(environments.target(environments.law.values[e])) for e in (0, 1)]
    y = [np.tensordot(X[e], targets[e], axes=2) + np.asarray(rows.noises[e]) for e in (0, 1)]

    def gradients(params, e):
        return reference.pullback("Asymmetric", params, reference.gradient(params[0] @ params[1].T, X[e], y[e]))

    params, recorded = (
        reference.start("Asymmetric", 4, ALPHA, 3),
        path(rule, measurements, environments, order="cyclic"),
    )
    for t in range(STEPS):
        G = gradients(params, t % 2)
        length = ETA if isinstance(rule, Extragradient) else -RADIUS / np.sqrt(sum(np.sum(g * g) for g in G))
        elsewhere = tuple(p - length * g for p, g in zip(params, G, strict=True))
        params = tuple(p - ETA * g for p, g in zip(params, gradients(elsewhere, t % 2), strict=True))
        np.testing.assert_allclose(recorded[0, t + 1], np.concatenate([p.ravel() for p in params]), rtol=0, atol=1e-12)


PAIRS = [(0, 0), (1, 2), (3, 1), (2, 2), (3, 0), (1, 1)]
SEEN = {
    "entries, shuffled": (
        gs.Entries(PAIRS, batch_size=2, order="shuffled", noise=0.1),
        "Asymmetric",
        {"order": "shuffled"},
    ),
    "single entries": (gs.Entries(PAIRS, batch_size=1), "DeepLinear", {}),
    "drawn anew": (gs.Dense(9, redraw=True, noise=0.1), "Asymmetric", {"amplify": 1.5}),
    "rank one": (gs.RankOne(40, truncation=1.5, noise=0.1), "Symmetric", {}),
    "mixed rows": (gs.Dense(9, noise=0.1), "Asymmetric", {"make": gs.PooledSGD}),
    "all": (gs.Identity(), "Symmetric", {"make": gs.PooledGD}),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_second_reading_is_of_the_same_batch_and_changes_nothing(name):
    """The environments, samples and noise of a step are the same ones, and those of later steps too."""
    measurements, model, options = SEEN[name]
    environments = given_environments(4) if model == "Symmetric" else rectangular_environments()
    again = path(Twice(), measurements, environments, model, **options)
    once = path(gs.rules.GradientStep(), measurements, environments, model, **options)
    np.testing.assert_allclose(again, once, rtol=1e-12, atol=1e-13)
    assert np.abs(once[:, -1] - once[:, 0]).max() > 1e-2


def test_a_rule_that_says_that_it_rotates_may_be_reduced():
    problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(spread=4.0)), gs.Identity())
    algorithm = gs.HeteroSGD(0.05, init_scale=0.1, model=gs.Symmetric(2), rule=Sharpness(RADIUS))
    assert choose_reduction("auto", algorithm, problem).rows
    options = {"num_steps": 40, "record": [Watch().diagnostic], "record_at": 3}
    small, whole = (gs.run(algorithm, problem, reduction=mode, **options).params for mode in ("always", "never"))
    np.testing.assert_allclose(small, whole, rtol=0, atol=1e-11)
    plain = gs.HeteroSGD(0.05, init_scale=0.1, model=gs.Symmetric(2), rule=Extragradient())
    assert not choose_reduction("auto", plain, problem)


@pytest.mark.parametrize("measurements", [gs.FreshGaussian(30), gs.FixedGaussian(30)])
def test_gradients_that_are_drawn_without_samples_are_refused(measurements):
    with pytest.raises(gs.GyrostatError, match=r"gradient at other parameters .*use Dense\(num_samples"):
        path(Extragradient(), measurements, rectangular_environments())
