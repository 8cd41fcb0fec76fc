"""The compiled engine: schedules, divergence, many seeds and many cells."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
import reference
from conftest import Watch, given_environments
from gyrostat.engine.one_run import LIMIT
from gyrostat.engine.results import recording_grids
from gyrostat.engine.simulate import simulate
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import Reading


def population(law=None, d: int = 4) -> gs.Problem:
    return gs.Problem(given_environments(d, law), gs.Identity())


@pytest.mark.parametrize("model", ["Symmetric", "SymmetricDifference"])
def test_cyclic_population_run_is_the_recursion(model):
    """Nothing is random, so NumPy computes the whole trajectory from the equations alone."""
    law, eta, alpha, steps = gs.Finite([-1.0, 3.0, 0.5]), 0.05, 0.2, 50
    problem, watch = population(law), Watch()
    algorithm = gs.HeteroSGD(eta, init_scale=alpha, order="cyclic", model=getattr(gs.models, model)())
    found = gs.run(algorithm, problem, num_steps=steps, record=[watch.diagnostic, "distance"], record_at=steps + 1)
    environments = problem.environments
    U, V = environments.invariant_basis, environments.spurious_basis
    targets = [U @ U.T + s * V @ V.T for s in (-1.0, 3.0, 0.5)]
    path = reference.population_run(
        model, reference.start(model, 4, alpha), targets, [t % 3 for t in range(steps)], eta
    )
    twin = np.stack([np.concatenate([p.ravel() for p in params]) for params in path])
    # Fifty steps, each amplifying a rounding error of 1e-16 by at most 1 + 3 eta: 1e-16 * 1.15^50 is about
    # 1e-13.
    np.testing.assert_allclose(found.params[0], twin, atol=1e-10)
    distance = [np.linalg.norm(reference.product(model, p) - U @ U.T) for p in path]
    np.testing.assert_allclose(found.distance[0], distance, atol=1e-10)


def test_ridge_and_decay():
    rule = gs.rules.GradientStep(decay=3.0)
    parts = gs.HeteroSGD(gs.schedules.Constant(0.1, ridge=0.2), init_scale=0.5, order="cyclic")
    algorithm = gs.Algorithm(parts.model, parts.start, parts.batches, parts.schedule, rule)
    problem, watch = population(gs.Finite([1.0])), Watch()
    found = gs.run(algorithm, problem, num_steps=1, record=[watch.diagnostic], record_at=[1])
    U = 0.5 * np.eye(4)
    wanted = (1 - 3 * 0.1 * 0.2) * U - 0.1 * (U @ U.T - np.asarray(problem.environments.target(np.ones((1, 1))))) @ U
    np.testing.assert_allclose(found.params[0, 0].values.reshape(4, 4), wanted, rtol=1e-12, atol=1e-14)


# --- divergence -----------------------------------------------------------------------------------


def first_bad(path: list) -> int:
    for t, params in enumerate(path):
        with np.errstate(all="ignore"):
            if not max(np.abs(p).max() for p in params) < LIMIT:
                return t
    return -1


@pytest.mark.parametrize(("eta", "diverges"), [(0.05, False), (1.5, True), (30.0, True)])
def test_divergence_is_noted_at_the_first_bad_step(eta, diverges):
    problem, steps = population(gs.Finite([2.0, 4.0])), 25
    algorithm = gs.HeteroSGD(eta, init_scale=0.5, order="cyclic")
    found = gs.run(
        algorithm,
        problem,
        num_steps=steps,
        record=["signal", "error", "singular_values"],
        record_at=steps + 1,
    )
    targets = [np.asarray(problem.environments.target(s)) for s in problem.environments.law.values]
    with np.errstate(all="ignore"):
        order = [t % 2 for t in range(steps)]
        path = reference.population_run("Symmetric", reference.start("Symmetric", 4, 0.5), targets, order, eta)
    wanted = first_bad(path)
    assert (wanted >= 0) == diverges and float(found.diverged[0]) == (wanted if diverges else np.inf)
    for name in ("signal", "error"):
        bad = np.isnan(found[name].values[0])
        assert bad.tolist() == [diverges and t >= wanted for t in range(steps + 1)]


def test_divergence_of_one_seed_leaves_the_others_alone():
    """A start that is small or lucky survives: about half of the seeds diverge."""
    problem = population(gs.Finite([0.0, 60.0]))
    algorithm = gs.HeteroSGD(0.1, init_scale=0.1)
    watch = Watch()
    options = {"num_steps": 7, "record": [watch.diagnostic], "record_at": 8}
    found = gs.run(algorithm, problem, seeds=24, **options)
    fine = np.isinf(found.diverged.values)
    assert 0 < fine.sum() < 24
    assert np.isfinite(found.params.values[fine]).all()
    assert np.isnan(found.params.values[~fine, -1]).all()
    for s in np.flatnonzero(~fine):
        at = int(found.diverged[s])
        assert np.isfinite(found.params.values[s, :at]).all() and np.isnan(found.params.values[s, at:]).all()
    alone = gs.run(algorithm, problem, seeds=np.flatnonzero(fine), **options)
    # Another number of runs is another program: rounding, amplified by 7 per step at most.
    np.testing.assert_allclose(alone.params, found.params.values[fine], rtol=1e-9)


def test_divergence_is_seen_after_the_last_recording():
    algorithm = gs.HeteroSGD(30.0, init_scale=0.5, order="cyclic")
    found = gs.run(algorithm, population(), num_steps=20, record=["signal"], record_at=[0, 1])
    assert found.step.values.tolist() == [0, 1, 20] and int(found.diverged[0]) > 1
    assert np.isfinite(found.signal[0, 0]) and np.isnan(found.signal[0, -1])


# --- the step at which a tolerance is reached -----------------------------------------------------

REACHING = {"num_steps": 60, "record": ["distance"], "reduction": "never"}


def reaching(tolerance: float, record_at=2):
    """Descent on a rectangle from a given start: the run, and the losses of its NumPy twin."""
    rng, eta = np.random.default_rng(11), 0.3
    environments = gs.RectangularEnvironments(np.eye(4, 1), np.eye(3, 1))
    start = 0.5 * rng.standard_normal((4, 1)), 0.5 * rng.standard_normal((3, 1))
    algorithm = gs.GradientDescent(eta, width=1, start=gs.starts.Given(*start))
    problem = gs.Problem(environments, gs.Identity())
    found = gs.run(algorithm, problem, tolerance=tolerance, record_at=record_at, **REACHING)
    path = reference.population_run("Asymmetric", start, [np.eye(4, 3) * np.eye(1, 3)], [0] * 60, eta)
    return found, np.array([np.sum((F @ G.T - np.eye(4, 3) * np.eye(1, 3)) ** 2) / 2 for F, G in path])


@pytest.mark.parametrize("at", [0, 1, 7, 30, 60])
def test_reached_is_the_first_step_below_the_tolerance(at):
    """The level lies between two losses of the twin, far from rounding; the last step counts too."""
    _, losses = reaching(1.0)
    assert (np.diff(losses) < 0).all()  # so there is one first step for every level
    level = 2 * losses[0] if at == 0 else np.sqrt(losses[at - 1] * losses[at])
    found, _ = reaching(level)
    assert found.reached.values.tolist() == [at]


def test_reached_is_checked_at_every_step_and_may_be_never():
    found, losses = reaching(1e-3, record_at=[0])
    often, _ = reaching(1e-3, record_at=61)
    assert found.reached.values.tolist() == often.reached.values.tolist() == [int(np.argmax(losses < 1e-3))]
    never, _ = reaching(losses[-1] / 2)
    assert never.reached.values.tolist() == [np.inf]
    options = REACHING | {"record_at": 2}
    without = gs.run(gs.PooledGD(0.1), population(), **options)
    assert "reached" not in without


def test_a_run_that_diverges_never_reaches():
    found = gs.run(gs.HeteroSGD(30.0, init_scale=0.5, order="cyclic"), population(), tolerance=1e-6, **REACHING)
    assert 0 < float(found.diverged[0]) < np.inf and np.isinf(found.reached[0])


# --- many seeds, many cells -----------------------------------------------------------------------


def test_more_runs_than_fit_into_one_call():
    """64 runs go into one call at this size; the last call is filled up and its copies are dropped."""
    seen = []
    options = {"num_steps": 3, "record": ["distance"], "record_at": 2}
    problem = gs.Problem(given_environments(3), gs.Identity())
    algorithm = gs.HeteroSGD(0.1, init_scale=0.3)
    found = gs.run(algorithm, problem, seeds=150, progress=lambda done, total: seen.append((done, total)), **options)
    # Between the calls, runs that are under way count by their steps.
    assert {(64, 150), (128, 150)} < set(seen) and seen == sorted(seen) and seen[-1] == (150, 150)
    assert found.sizes["seed"] == 150
    some = gs.run(algorithm, problem, seeds=[5, 63, 64, 149], **options)
    np.testing.assert_allclose(some.distance, found.distance.sel(seed=[5, 63, 64, 149]), rtol=1e-12)
    assert len(np.unique(found.distance[:, -1].values.round(12))) == 2**3  # all orders of two environments occur


def test_cells_that_differ_in_numbers_share_one_program():
    watch = Watch()

    def cell(eta, spread, m):
        environments = given_environments(3, gs.TwoPoint(spread=spread))
        return gs.HeteroSGD(eta, init_scale=0.3), gs.Problem(environments, gs.FreshGaussian(m))

    settings = [(0.02, 1.0, 5), (0.05, 2.0, 50), (0.01, 3.0, 500)]
    options = {"num_steps": 20, "record": [watch.diagnostic], "record_at": 2}
    together = simulate([cell(*s) for s in settings], seeds=2, **options)
    assert watch.traced == 2  # in begin, which makes room for its values, and in advance
    simulate([cell(2 * eta, spread, m) for eta, spread, m in settings], seeds=[7, 9], seed=3, **options)
    assert watch.traced == 2
    for i, s in enumerate(settings):
        alone = simulate([cell(*s)], seeds=2, **options)
        np.testing.assert_allclose(alone.values["params"][0], together.values["params"][i], rtol=1e-12, atol=1e-14)


def test_cells_that_differ_in_structure_run_side_by_side():
    cells = [
        (gs.HeteroSGD(0.05), gs.Problem(given_environments(d), measurements))
        for d, measurements in [(3, gs.Identity()), (5, gs.Identity()), (3, gs.Dense(4, redraw=True))]
    ]
    found = simulate(cells, num_steps=[4, 6, 4], record=["singular_values"], record_at=3)
    assert found.steps.tolist() == [[0, 2, 4], [0, 3, 6], [0, 2, 4]]
    values = found.values["singular_values"]
    assert values.shape == (3, 1, 3, 5)
    assert np.isnan(values[[0, 2]][..., 3:]).all() and np.isfinite(values[1]).all()


@pytest.mark.parametrize(
    ("points", "horizons", "steps"),
    [(101, [4], [[0, 1, 2, 3, 4]]), (101, [2, 40], [[0, 1, 2], [0, 20, 40]]), (1, [4], [[4]])],
)
def test_recorded_steps_are_never_repeated(points, horizons, steps):
    assert recording_grids(points, horizons, [0] * len(horizons)).tolist() == steps


class Counting(gs.measurements.Measurements):
    """Measurements of a user that keep the entry (0, 0) of every gradient in a state with one place for each reading."""

    def init(self, key, environments, space, demand):
        return jnp.zeros(demand.queries), 0

    def sense(self, state, key, scene, environment):
        kept, count = state
        gradient = scene.product - scene.environments.target(environment.sigma)
        return Reading(gradient, jnp.sum(gradient**2)), (kept.at[count].set(gradient[0, 0]), count + 1)

    def mix(self, state, key, scene):
        raise NotImplementedError


@pytest.mark.parametrize(("algorithm", "readings"), [(gs.HeteroSGD(0.05), 1), (gs.PooledGD(0.05), 2)])
def test_measurements_are_told_how_many_readings_a_run_takes(algorithm, readings):
    """Also those that share a program with other runs; what does not ask shares one with runs of other lengths."""
    kept = gs.diagnostics.Diagnostic("kept", lambda view: view.data[0], ("reading",))
    problem = gs.Problem(given_environments(3), Counting())
    for steps in (5, 7):
        result = gs.run(algorithm, problem, num_steps=steps, seeds=2, record=[kept], record_at=[steps])
        assert result.kept.shape == (2, 1, readings * steps) and (result.kept != 0).all()
    watch = Watch()
    for steps in (5, 7):
        gs.run(algorithm, population(), num_steps=steps, record=[watch.diagnostic], record_at=[steps])
    assert watch.traced == 2  # in begin and in advance


def test_key_of_a_run_is_folded_from_the_seed():
    """The documented rule, recomputed: placement is the first of four parts of fold_in(key(seed), index)."""
    recipe = gs.RandomEnvironments(4, law=gs.TwoPoint())
    basis = gs.diagnostics.Diagnostic("basis", lambda view: view.environments.invariant_basis[:, 0], ("entry",))
    found = gs.run(gs.PooledGD(0.1), gs.Problem(recipe, gs.Identity()), num_steps=1, seed=7, seeds=[5], record=[basis])
    with double():
        key = jax.random.split(jax.random.fold_in(jax.random.key(7), 5), 4)[0]
        np.testing.assert_allclose(found.basis[0, 0], recipe.draw(key).invariant_basis[:, 0], rtol=1e-12)


def hetero_cell(spread, *, measurements=None, order="iid", overlap=0.0, dimension=5):
    environments = gs.RandomEnvironments(dimension, law=gs.TwoPoint(spread=spread), overlap=overlap)
    return gs.HeteroSGD(0.05, init_scale=0.1, order=order), gs.Problem(
        environments, measurements or gs.FreshGaussian(50)
    )


def network_cell(step_size):
    model = gs.DeepLinear(3, 12)
    environments = gs.environments.RandomRectangular(3, 3)
    pairs = [(i, j) for i in range(3) for j in range(3)]
    return gs.RidgeDescent(step_size, 0.01, model=model, start=gs.starts.Orthogonal()), gs.Problem(
        environments, gs.Entries(pairs)
    )


@pytest.mark.parametrize(
    "cells",
    [
        [hetero_cell(M, order="cyclic") for M in (1.0, 3.0)],
        [hetero_cell(M, overlap=e) for M, e in ((1.0, 0.0), (3.0, 0.3), (6.0, 0.3))],
        [hetero_cell(M, measurements=gs.FixedGaussian(50)) for M in (1.0, 3.0)],
        [network_cell(eta) for eta in (0.05, 0.2)],
    ],
    ids=["cyclic", "overlaps", "fixed data", "networks"],
)
def test_with_reproducible_bits_a_run_is_the_same_in_any_call(cells):
    options = {"num_steps": 30, "record": ("signal",), "record_at": 2, "reproducible_bits": True}
    together = simulate(cells, seeds=5, **options).values["signal"]
    for i, one in enumerate(cells):
        alone = simulate([one], seeds=[4, 2], **options).values["signal"]
        assert np.array_equal(alone[0], together[i][[4, 2]])
    backwards = simulate(cells[::-1], seeds=[3, 0], **options).values["signal"]
    assert np.array_equal(backwards[::-1], together[:, [3, 0]])
