"""Which environments a step sees."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
from conftest import given_environments
from gyrostat.algorithms.batches import Batches
from gyrostat.measurements import Measurements, Reading
from gyrostat.measurements.base import Scene
from gyrostat.models.spaces import SymmetricMatrices


class Which(Measurements):
    """Measurements whose reading is the index of the environment; the state counts the readings."""

    def sense(self, state, key, scene, environment):
        index = environment.index.astype(float)
        return Reading(index, index**2), state + 1

    def mix(self, state, key, scene):
        raise NotImplementedError


def visited(batches: Batches, law, steps: int, seed: int = 0) -> np.ndarray:
    environments = given_environments(4, law)
    scene = Scene(environments, SymmetricMatrices(4), jnp.eye(4))
    run = jax.random.key(seed)

    @eqx.filter_jit
    def one(t):
        return batches.read(Which(), 0, t, run, jax.random.fold_in(run, t), scene)[0].gradient

    return np.asarray(jax.vmap(one)(jnp.arange(steps)))


LAW = gs.Finite([1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("cyclic", [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]),
        ([0, 0, 1, 1], [0, 0, 1, 1] * 3),
        (np.array([4, 2, 2]), [4, 2, 2] * 4),
        (lambda t: (t // 5) % 3, [0] * 5 + [1] * 5 + [2] * 2),
    ],
)
def test_a_given_order_is_followed(order, wanted, x64):
    assert visited(gs.batches.OneEnvironment(order), LAW, 12).tolist() == wanted


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([0, 5], "order must name environments from 0 to 4, of which the law has 5; got 5"),
        ([], "order must be 'iid', 'cyclic', 'shuffled', a list of environments"),
        ([0, 0.5], "order must be a whole number of at least 0; got 0.5"),
        (3, "order must be 'iid'"),
        ("random", "unknown order 'random'"),
        (lambda t: t % 7, "got 5"),
        (lambda t: t / 2, "use // for division"),
        (lambda t: 0 if t < 9 else 1, "jnp.where instead of if"),
    ],
)
def test_an_order_that_cannot_be_followed_is_refused(order, words):
    with pytest.raises(gs.GyrostatError, match=words):
        gs.batches.OneEnvironment(order).check(LAW)


def test_shuffled_visits_each_environment_once_per_pass(x64):
    seen = visited(gs.batches.OneEnvironment("shuffled"), LAW, 5 * 400).reshape(400, 5)
    assert (np.sort(seen, axis=1) == np.arange(5)).all()
    # Passes are uniform permutations, independent of each other: every position holds every environment equally
    # often.
    counts = np.stack([np.bincount(seen[:, j].astype(int), minlength=5) for j in range(5)])
    assert min(stats.chisquare(row).pvalue for row in counts) > 1e-3 / 5
    repeats = (seen[1:] == seen[:-1]).mean()
    assert abs(repeats - 0.2) < 5 * np.sqrt(0.16 / 1995)
    assert not np.array_equal(seen.ravel(), visited(gs.batches.OneEnvironment("shuffled"), LAW, 2000, seed=1))


def test_iid_follows_the_weights(x64):
    weights = np.array([0.5, 0.1, 0.4])
    seen = visited(gs.batches.OneEnvironment("iid"), gs.Finite([1.0, 2.0, 3.0], weights), 6000).astype(int)
    assert stats.chisquare(np.bincount(seen, minlength=3), 6000 * weights).pvalue > 1e-3
    pairs = np.bincount(3 * seen[1:] + seen[:-1], minlength=9).reshape(3, 3)  # successive draws are independent
    assert stats.chi2_contingency(pairs).pvalue > 1e-3


def test_full_averages_by_weights(x64):
    law = gs.Finite([1.0, 2.0, 3.0], [0.5, 0.2, 0.3])
    scene = Scene(given_environments(4, law), SymmetricMatrices(4), jnp.eye(4))
    reading, asked = gs.batches.Full().read(Which(), jnp.asarray(0), 0, jax.random.key(0), jax.random.key(1), scene)
    assert int(asked) == 3 == gs.batches.Full().queries(law)
    assert float(reading.gradient) == pytest.approx(0.2 + 2 * 0.3, rel=1e-14)
    assert float(reading.residual_square) == pytest.approx(0.2 + 4 * 0.3, rel=1e-14)  # the mean of squares
