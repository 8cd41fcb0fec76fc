"""Deep linear networks: the model, observed entries, schedules in phases, conventions, starts and offshoots."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
import reference
from completion_problem import ENVIRONMENTS, OBSERVED, TRUTH
from conftest import Watch, rectangular_environments
from gyrostat.algorithms.update_rules import CONVENTIONS
from gyrostat.measurements import Demand
from gyrostat.measurements.base import EntryGradient, Reading, Scene

pytestmark = pytest.mark.usefixtures("hasty")

SHAPE = (3, 4)
MODELS = [gs.DeepLinear(2, 5), gs.DeepLinear(3, 2), gs.DeepLinear(5, 6), gs.DeepLinear(widths=(4, 7, 2, 5, 3))]
LEVEL = 1e-4
"""Of each of the five tests of a law in this file; keys are fixed."""


def layers_of(model: gs.DeepLinear, seed: int, shape=SHAPE) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(s) for s in model.shapes(shape))


# --- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("i", range(len(MODELS)))
def test_product_and_pullback_equal_the_twin_and_torch(i, x64):
    torch = pytest.importorskip("torch")
    model, G = MODELS[i], np.random.default_rng(9).standard_normal(SHAPE)
    params = layers_of(model, i)
    found, moved = jax.jit(lambda params: (model.product(params), model.pullback(params, G)))(params)
    np.testing.assert_allclose(found, reference.product("DeepLinear", params), rtol=1e-12, atol=1e-12)
    theta = [torch.tensor(p, requires_grad=True) for p in params]
    A = theta[0]
    for W in theta[1:]:
        A = W @ A
    (A * torch.tensor(G)).sum().backward()
    twins = reference.pullback("DeepLinear", params, G)
    for ours, twin, theirs in zip(moved, twins, theta, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-11, atol=1e-11)  # products of five matrices, in another order
        np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("i", range(len(MODELS)))
def test_one_entry_is_an_entry_of_the_product_and_so_is_its_pullback(i, x64):
    model = MODELS[i]
    params = layers_of(model, i)

    @jax.jit
    def seen(row, column):
        layers = tuple(map(jnp.asarray, params))
        pairs = model.entry_pullback(layers, row, column, -1.7)
        return model.entry(layers, row, column), [(pair.matrix, pair.square) for pair in pairs]

    for row, column in itertools.product(range(3), range(4)):
        entry, pairs = seen(row, column)
        np.testing.assert_allclose(entry, reference.product("DeepLinear", params)[row, column], rtol=1e-12)
        G = np.zeros(SHAPE)
        G[row, column] = -1.7
        for (matrix, square), whole in zip(pairs, reference.pullback("DeepLinear", params, G), strict=True):
            np.testing.assert_allclose(matrix, whole, rtol=1e-12, atol=1e-12)
            assert float(square) == pytest.approx(float(np.sum(whole**2)), rel=1e-12)
    assert gs.Asymmetric(2).entry_pullback((jnp.ones((3, 2)), jnp.ones((4, 2))), 0, 0, 1.0) is None


@pytest.mark.parametrize("rule", [gs.GradientStep(0.7), *(gs.RidgeStep(name) for name in CONVENTIONS)])
def test_the_sum_of_squares_is_followed_without_looking(rule, x64):
    """300 steps on single entries by pairs of vectors: the parameters are those of the dense gradient, the sum theirs."""
    model, rng = gs.DeepLinear(3, 6), np.random.default_rng(2)
    params = dense = tuple(0.5 * W for W in layers_of(model, 1))
    square = sum(np.sum(W * W) for W in params)
    target = jnp.asarray(rng.standard_normal(SHAPE))

    @jax.jit
    def step(square, params, dense, i, j):
        value = model.product(params)[i, j]
        whole = Reading(jnp.zeros(SHAPE).at[i, j].set(value - target[i, j]), jnp.asarray(0.0))
        single = whole._replace(entry=EntryGradient(i, j, value - target[i, j], value))
        assert rule.squared_norm(square, model, params, whole, 0.05, 0.1) is None
        after = (rule(model, p, seen, 0.05, 0.1) for p, seen in ((params, single), (dense, whole)))
        return rule.squared_norm(square, model, params, single, 0.05, 0.1), *after

    for _ in range(300):
        square, params, dense = step(square, params, dense, *(int(rng.integers(n)) for n in SHAPE))
    for a, b in zip(params, dense, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert float(square) == pytest.approx(sum(float(np.sum(np.square(W))) for W in params), rel=1e-12)


@pytest.mark.parametrize("reduction", ["never", "auto"])
def test_a_run_on_single_entries_that_diverges_is_lost_from_that_step_on(reduction):
    """Found by hand: the twin's layers exceed 1e8 in the same step, and everything recorded is NaN from there."""
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
    algorithm = gs.RidgeDescent(0.9, 0.01, model=gs.DeepLinear(3, 10), start=gs.Orthogonal(1.3))
    record = ["product", "layer_norms", "imbalances"]
    found = gs.run(algorithm, problem, num_steps=60, seeds=6, record=record, record_at=61, reduction=reduction)
    lost = found.diverged.values
    assert (lost > 0).sum() >= 3  # most do
    for seed in np.flatnonzero(lost > 0):
        at = lost[seed]
        for name in record:
            values = found[name].values[seed]
            assert np.isfinite(values[:at]).all() and np.isnan(values[at:]).all()
        assert found.layer_norms.values[seed, :at].sum(axis=1).max() < 1e16


@pytest.mark.parametrize("i", range(len(MODELS)))
def test_rank_limit_balanced_factors_and_turned_coordinates(i, x64):
    model, rng = MODELS[i], np.random.default_rng(i)
    params = layers_of(model, i)
    A = np.asarray(model.product(params))
    assert model.rank_limit(SHAPE) == np.linalg.matrix_rank(A)
    found = [np.asarray(W) for W in model.factorise(jnp.asarray(A))]
    assert tuple(W.shape for W in found) == model.shapes(SHAPE)
    np.testing.assert_allclose(model.product(found), A, rtol=1e-9, atol=1e-9)  # roots of small values lose digits
    for a, b in itertools.pairwise(found):
        np.testing.assert_allclose(a @ a.T, b.T @ b, rtol=1e-11, atol=1e-11)
    L, R = rng.standard_normal((2, 3)), rng.standard_normal((5, 4))
    np.testing.assert_allclose(model.product(model.rotated(params, L, R)), L @ A @ R.T, rtol=1e-11, atol=1e-11)
    assert model.factor(params).shape[0] == 3 and model.cofactor(params).shape[0] == 4


def test_a_truncated_factorisation_is_the_best_of_its_rank(x64):
    A = np.random.default_rng(0).standard_normal((5, 4))
    s = np.linalg.svd(A, compute_uv=False)
    model = gs.DeepLinear(3, 2)
    gap = A - np.asarray(model.product(model.factorise(jnp.asarray(A))))
    np.testing.assert_allclose(np.linalg.norm(gap), np.sqrt(s[2] ** 2 + s[3] ** 2), rtol=1e-12)  # Eckart and Young


# --- entries --------------------------------------------------------------------------------------


def sensed(measurements, product, key=0, environments=None, index=0):
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0])) if environments is None else environments
    space = gs.DeepLinear().space(SHAPE)
    state = measurements.init(jax.random.key(99), environments, space, Demand(1, False))
    scene, environment = Scene(environments, space, product), environments.law.at(index)
    return measurements.sense(state, jax.random.key(key), scene, environment), environments


PAIRS = [(0, 0), (2, 3), (1, 1), (2, 0)]


@pytest.mark.parametrize("index", [0, 1])
def test_the_whole_set_is_the_gradient_of_the_mean_square(index, x64):
    A = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE))
    (reading, _), environments = sensed(gs.Entries(PAIRS), A, index=index)
    target = np.asarray(environments.target(environments.law.at(index).sigma))
    rows, columns = np.array(PAIRS).T

    def loss(A):
        return jnp.sum((A[rows, columns] - target[rows, columns]) ** 2) / (2 * len(PAIRS))

    np.testing.assert_allclose(reading.gradient, jax.grad(loss)(A), rtol=1e-13, atol=1e-14)
    assert float(reading.residual_square) == pytest.approx(2 * float(loss(A)), rel=1e-13)
    assert float(reading.response_mean) == pytest.approx(target[rows, columns].mean(), rel=1e-13)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_with_replacement_draws_every_entry_equally_often(batch, x64):
    A = jnp.asarray(np.random.default_rng(1).standard_normal(SHAPE))
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0]))
    measurements, n = gs.Entries(PAIRS, batch_size=batch), 3000

    def one(key):
        space = gs.DeepLinear().space(SHAPE)
        state = measurements.init(key, environments, space, Demand(1, False))
        return measurements.sense(state, key, Scene(environments, space, A), environments.law.at(0))[0]

    found = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), n))
    residual = np.asarray(A - environments.target(environments.law.at(0).sigma))
    rows, columns = np.array(PAIRS).T
    counts = np.round(np.asarray(found.gradient)[:, rows, columns] * batch / residual[rows, columns]).astype(int)
    assert (counts.sum(axis=1) == batch).all()
    outside = np.ones(SHAPE, dtype=bool)
    outside[rows, columns] = False
    assert np.abs(np.asarray(found.gradient)[:, outside]).max() == 0
    assert stats.chisquare(counts.sum(axis=0)).pvalue > LEVEL
    squares = counts @ residual[rows, columns] ** 2 / batch
    np.testing.assert_allclose(found.residual_square, squares, rtol=1e-12)


def test_without_replacement_every_pass_sees_every_entry_once_in_a_new_order(x64):
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0]))
    measurements, space = gs.Entries(PAIRS, batch_size=2, order="shuffled"), gs.DeepLinear().space(SHAPE)
    A = np.random.default_rng(1).standard_normal(SHAPE) + 9.0
    state = measurements.init(jax.random.key(0), environments, space, Demand(1, False))

    @jax.jit
    def sense(state, number, index):
        key = jax.random.fold_in(jax.random.key(1), number)
        reading, state = measurements.sense(
            state, key, Scene(environments, space, jnp.asarray(A)), environments.law.at(index)
        )
        return reading.gradient, state

    rows, columns = np.array(PAIRS).T
    orders = []
    for t in range(40):  # the other environment in between has an order of its own
        for index in (0, 1, 1) if t % 2 else (0,):
            gradient, state = sense(state, 10 * t + index, index)
            if index == 0:
                orders.append(tuple(np.flatnonzero(np.asarray(gradient)[rows, columns])))
    assert all(len(batch) == 2 for batch in orders)
    passes = [set(a) | set(b) for a, b in zip(orders[::2], orders[1::2], strict=True)]
    assert passes == [{0, 1, 2, 3}] * 20
    assert len({a for a in orders[::2]}) > 3


def test_a_mixture_draws_an_environment_for_every_entry(x64):
    environments = rectangular_environments(*SHAPE, gs.Finite([-1.0, 2.0], [0.25, 0.75]))
    measurements, space, n = gs.Entries(PAIRS, batch_size=1), gs.DeepLinear().space(SHAPE), 4000
    A = jnp.zeros(SHAPE)

    def one(key):
        state = measurements.init(key, environments, space, Demand(1, True))
        return measurements.mix(state, key, Scene(environments, space, A))[0].gradient

    found = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), n)))
    counts = []
    for i, j in PAIRS:
        for index in (0, 1):
            y = float(environments.target(environments.law.at(index).sigma)[i, j])
            counts.append(int(np.isclose(-found[:, i, j], y, rtol=1e-9, atol=0).sum()))
    assert sum(counts) == n  # the two environments differ at each of these entries
    assert stats.chisquare(counts, n / 4 * np.tile([0.25, 0.75], 4)).pvalue > LEVEL


def test_noise_is_drawn_once_per_run_and_environment(x64):
    measurements = gs.Entries(PAIRS, noise=0.5)
    (one, _), _environments = sensed(measurements, jnp.zeros(SHAPE), key=1)
    (two, _), _ = sensed(measurements, jnp.zeros(SHAPE), key=2)
    np.testing.assert_array_equal(one.gradient, two.gradient)
    (clean, _), _ = sensed(gs.Entries(PAIRS), jnp.zeros(SHAPE))
    rows, columns = np.array(PAIRS).T
    wide = rectangular_environments(30, 30, gs.Finite([-1.0, 2.0]))
    many = gs.Entries([(i, j) for i in range(30) for j in range(30)], noise=0.5)
    noises = many.init(jax.random.key(0), wide, gs.DeepLinear().space((30, 30)), Demand(1, False)).noises
    assert stats.kstest(np.asarray(noises).ravel() / 0.5, "norm").pvalue > LEVEL
    assert (np.asarray(one.gradient - clean.gradient)[rows, columns] != 0).all()


# --- the run against the twin ---------------------------------------------------------------------

CHAIN = gs.WarmUp(3, 0.02, gs.Annealing(gs.Constant(0.1, 0.2), gs.Constant(0.05, 0.01), at=6))
EXPECTED = [(0.02, 0.2)] * 3 + [(0.1, 0.2)] * 3 + [(0.05, 0.01)] * 4


@pytest.mark.parametrize("convention", sorted(reference.CONVENTIONS))
def test_descent_on_a_schedule_is_the_printed_update(convention):
    watch, model = Watch(), gs.DeepLinear(4, 3)
    algorithm = gs.RidgeDescent(CHAIN, model=model, convention=convention)
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED))
    found = gs.run(algorithm, problem, num_steps=10, seeds=2, record=[watch.diagnostic], record_at=11).params.values
    cuts = np.cumsum([a * b for a, b in model.shapes((2, 2))])[:-1]
    for path in found:
        params = tuple(x.reshape(s) for x, s in zip(np.split(path[0], cuts), model.shapes((2, 2)), strict=True))
        for (eta, ridge), recorded in zip(EXPECTED, path[1:], strict=True):
            params = reference.completion_step(params, TRUTH, OBSERVED, eta, ridge, convention)
            np.testing.assert_allclose(recorded, np.concatenate([p.ravel() for p in params]), rtol=1e-11, atol=1e-13)


def test_weight_decay_is_what_torch_does():
    torch = pytest.importorskip("torch")
    watch, model = Watch(), gs.DeepLinear(3, 3)
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED))
    found = gs.run(gs.RidgeDescent(0.1, 0.2, model=model), problem, num_steps=5, record=[watch.diagnostic], record_at=6)
    path = found.params.values[0]
    cuts = np.cumsum([a * b for a, b in model.shapes((2, 2))])[:-1]
    theta = [
        torch.tensor(x.reshape(s), requires_grad=True)
        for x, s in zip(np.split(path[0], cuts), model.shapes((2, 2)), strict=True)
    ]
    optimiser = torch.optim.SGD(theta, lr=0.1, weight_decay=0.2)
    rows, columns = np.array(OBSERVED).T
    y = torch.tensor(TRUTH)[rows, columns]
    for _ in range(5):
        optimiser.zero_grad()
        ((theta[2] @ theta[1] @ theta[0])[rows, columns] - y).square().mean().backward()
        optimiser.step()
    theirs = np.concatenate([p.detach().numpy().ravel() for p in theta])
    np.testing.assert_allclose(path[-1], theirs, rtol=1e-11, atol=1e-13)


def test_heterogeneous_entries_visit_one_environment_at_a_time(x64):
    environments = rectangular_environments(3, 4, gs.Finite([-1.0, 2.0]))
    algorithm = gs.RidgeDescent(0.05, 0.01, model=gs.DeepLinear(3, 4), batches=gs.OneEnvironment("cyclic"))
    watch = Watch()
    found = gs.run(
        algorithm, gs.Problem(environments, gs.Entries(PAIRS)), num_steps=4, record=[watch.diagnostic], record_at=5
    )
    shapes = algorithm.model.shapes((3, 4))
    cuts = np.cumsum([a * b for a, b in shapes])[:-1]
    path = found.params.values[0]
    params = tuple(x.reshape(s) for x, s in zip(np.split(path[0], cuts), shapes, strict=True))
    for t in range(4):
        truth = np.asarray(environments.target(np.array([[[-1.0]], [[2.0]]])[t % 2]))
        params = reference.completion_step(params, truth, PAIRS, 0.05, 0.01, "weight_decay")
        np.testing.assert_allclose(path[t + 1], np.concatenate([p.ravel() for p in params]), rtol=1e-11, atol=1e-13)


# --- schedules ------------------------------------------------------------------------------------

LOW, HIGH = gs.Constant(0.1, 0.001), gs.Constant(0.4, 0.1)


def table(schedule, steps) -> list[tuple[float, float]]:
    return [tuple(round(float(x), 6) for x in schedule(jnp.asarray(t))) for t in steps]


def test_schedules_say_what_they_are():
    pieces = gs.Piecewise([(0, 5, LOW), (5, 7, HIGH), (7, None, gs.Constant(0.2))])
    assert table(pieces, (0, 4, 5, 6, 7, 900)) == [(0.1, 0.001)] * 2 + [(0.4, 0.1)] * 2 + [(0.2, 0.0)] * 2
    periodic = gs.Periodic([(10, LOW), (5, HIGH)], start=3)
    wanted = [0 if t < 3 or (t - 3) % 15 < 10 else 1 for t in range(50)]
    assert [int(periodic.phase(t)) for t in range(50)] == wanted
    assert table(periodic, range(50)) == [[(0.1, 0.001), (0.4, 0.1)][k] for k in wanted]
    assert table(gs.WarmUp(2, 0.3, periodic), (0, 1, 13)) == [(0.1, 0.001), (0.1, 0.001), (0.4, 0.1)]  # never raised
    assert table(gs.WarmUp(20, 0.3, periodic), (13, 20)) == [(0.3, 0.1), (0.1, 0.001)]
    assert table(gs.Annealing(HIGH, LOW, at=0), (0,)) == [(0.1, 0.001)]
    geometric = gs.Geometric(gs.Constant(0.4, 0.1), gs.Constant(0.1, 0.001), num_steps=4)
    assert table(geometric, (0, 2, 4, 9)) == [(0.4, 0.1), (0.2, 0.01), (0.1, 0.001), (0.1, 0.001)]


# --- starts ---------------------------------------------------------------------------------------


def test_uniform_start_has_the_law_of_torch(x64):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    found = gs.FanInUniform()(gs.DeepLinear(3, 100), (2, 9), jax.random.key(1))
    for W in found:
        theirs = torch.nn.Linear(W.shape[1], W.shape[0], bias=False).weight.detach().numpy()
        assert theirs.shape == W.shape
        bound = W.shape[1] ** -0.5
        assert stats.kstest(np.asarray(W).ravel(), "uniform", args=(-bound, 2 * bound)).pvalue > LEVEL / 3
        assert np.abs(theirs).max() <= bound + 1e-6


def test_gaussian_and_orthogonal_starts(x64):
    model, key = gs.DeepLinear(4, 40), jax.random.key(2)
    starts = (gs.FanInGaussian(0.5), gs.Orthogonal(0.5))
    gaussian, orthogonal = jax.jit(lambda key: [start(model, (3, 5), key) for start in starts])(key)
    for W in gaussian:
        assert abs(np.std(W) * W.shape[1] ** 0.5 - 0.5) < 5 * 0.5 / np.sqrt(2 * W.size)  # five standard errors
    found = [np.asarray(W) for W in orthogonal]
    assert tuple(W.shape for W in found) == model.shapes((3, 5))
    for W in found:
        gram = W.T @ W if W.shape[0] >= W.shape[1] else W @ W.T
        np.testing.assert_allclose(gram, 0.25 * np.eye(len(gram)), atol=1e-13)
    # Uniform: an entry of a column of length 40 has mean 0 and variance 1 / 40.
    keys = jax.random.split(jax.random.key(3), 2000)
    corner = np.asarray(jax.jit(jax.vmap(lambda k: gs.Orthogonal()(gs.DeepLinear(2, 3), (3, 3), k)[0][2, 2]))(keys))
    assert stats.kstest(corner, "uniform", args=(-1, 2)).pvalue > LEVEL  # Archimedes: on the sphere in three dimensions


# --- offshoots ------------------------------------------------------------------------------------


def test_offshoots_leave_the_trunk_and_then_follow_their_own_schedule():
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
    high, low = gs.WarmUp(5, 0.03, gs.Constant(0.2, 0.1)), gs.Constant(0.02, 0.001)
    trunk = gs.RidgeDescent(high, model=gs.DeepLinear(3, 8), start=gs.Orthogonal())
    options = {"seeds": 2, "record": ["product"]}
    main = gs.run(trunk, problem, num_steps=30, record_at=31, **options)
    found = gs.offshoots(trunk, problem, at=[0, 10, 25], schedule=low, num_steps=12, record_at=4, **options)
    assert found.product.dims == ("branch", "seed", "record", "row", "column")
    assert found.step.values.tolist() == [[0, 4, 8, 12], [10, 14, 18, 22], [25, 29, 33, 37]]
    for k, t in enumerate((0, 10, 25)):
        np.testing.assert_allclose(found.product[k, :, 0], main.product.sel(step=t), rtol=1e-11, atol=1e-13)
        alone = gs.RidgeDescent(gs.Annealing(high, low, at=t), model=gs.DeepLinear(3, 8), start=gs.Orthogonal())
        whole = gs.run(alone, problem, num_steps=t + 12, record_at=[t + 12], **options)
        np.testing.assert_allclose(found.product[k, :, -1], whole.product[:, -1], rtol=1e-11, atol=1e-13)
    assert not np.allclose(found.product[2, :, -1], main.product.sel(step=30), atol=1e-3)
