"""The random numbers of runs, drawn by small compiled programs and kept for the next move of a slider.

Keys are split as in ``engine.step``, ``algorithms.batches`` and ``measurements.fresh_gaussian``, so the numbers are those of
:func:`gyrostat.run`. No shape depends on a dimension, so moving one compiles nothing. The noise of a step depends on neither
the step size nor the strength of a signal, and drawing it takes several times as long as using it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat.algorithms.batches import OneEnvironment
from gyrostat.environments import Law
from gyrostat.jax_tools.fast_random import fold_in, normal_slice, split
from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.rejection_sampling import chi_square, multinomial
from gyrostat.measurements.fresh_gaussian import BLOCK
from gyrostat.models.spaces import SymmetricMatrices
from gyrostat.models.symmetric_coordinates import upper_triangle

SEEDS_AT_ONCE, STEPS_AT_ONCE, NORMALS_AT_ONCE = 16, 25, 1024
"""The seeds, steps and normals that one call of a program draws."""

MOST_BYTES = 250_000_000
"""The size of all arrays that are kept."""


# --- programs --------------------------------------------------------------------------------------


@jax.jit
def run_keys(first_seed: Array) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """The keys with which seeds ``first_seed``, ... draw their environments and take their steps."""

    def one(number: Array) -> PRNGKeyArray:
        return split(fold_in(jax.random.key(0), number), 4)

    keys = jax.vmap(one)(first_seed + jnp.arange(SEEDS_AT_ONCE))
    return keys[:, 0], keys[:, 3]


def _over_steps(function: Any, stepping: PRNGKeyArray, first_step: Array) -> Any:
    """``function(key of the run, step, key of the step)`` for all steps and seeds: (step, seed, ...)."""

    def at(t: Array) -> Any:
        return jax.vmap(lambda key: function(key, t, fold_in(key, t)))(stepping)

    return jax.vmap(at)(first_step + jnp.arange(STEPS_AT_ONCE))


@eqx.filter_jit
def normal_keys(stepping: PRNGKeyArray, first_step: Array, key_use: str, batches: int) -> PRNGKeyArray:
    """The keys of the normals of every step: (step, seed, batch)."""

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> PRNGKeyArray:
        return jax.vmap(lambda k: split(k)[1])(_batch_keys(key, key_use, batches))

    return _over_steps(one, stepping, first_step)


def _batch_keys(key: PRNGKeyArray, key_use: str, batches: int) -> PRNGKeyArray:
    """The keys of the batches of a step: of its only batch (0), or of one for every environment (an amplified step)."""
    sensing = split(key)[1] if key_use == "iid" else key  # the other half chooses the environment
    return sensing[None] if batches == 0 else jax.vmap(lambda e: fold_in(sensing, e))(jnp.arange(batches))


@jax.jit
def normals(keys: PRNGKeyArray, start: Array) -> Float[Array, "keys piece"]:
    """Numbers ``start``, ... of the stream of normals of every key."""
    return jax.lax.map(lambda key: normal_slice(key, start, NORMALS_AT_ONCE), keys)


@eqx.filter_jit
def chosen_environments(
    stepping: PRNGKeyArray, first_step: Array, batches: OneEnvironment, law: Law
) -> tuple[Array, Array]:
    """The number and the Sigma of the environment that every step sees."""

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> Any:
        choosing = split(key)[0] if batches.order == "iid" else key
        return tuple(batches._choose(law, t, run, choosing))

    return _over_steps(one, stepping, first_step)


@eqx.filter_jit
def chi_squares(
    stepping: PRNGKeyArray, first_step: Array, m: Array, key_use: str, batches: int
) -> Float[Array, "step seed batch"]:
    """The chi-squares of batches that come from one environment each."""

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> Array:
        return jax.vmap(lambda k: chi_square(split(k)[0], m))(_batch_keys(key, key_use, batches))

    return _over_steps(one, stepping, first_step)


@eqx.filter_jit
def mixed_chi_squares(
    stepping: PRNGKeyArray, first_step: Array, m: Array, weights: Array
) -> Float[Array, "step seed environment"]:
    """The chi-squares of the samples that each environment has in a mixed batch."""

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> Array:
        counting, drawing = split(split(key)[0])
        counts = multinomial(counting, m, weights)
        drawn = jax.vmap(chi_square)(split(drawing, weights.size), jnp.maximum(counts, 1.0))
        return jnp.where(counts > 0, drawn, 0.0)

    return _over_steps(one, stepping, first_step)


@eqx.filter_jit
def mixed_moments(
    stepping: PRNGKeyArray, first_step: Array, m: Array, law: Any, size: int
) -> Float[Array, "step seed q q"]:
    """``sum_i y_i y_i^T`` over the samples of a mixed batch, each with a Sigma of its own.

    Sample i has the coordinates g_i in the span and Sigma_i = (centre + spread u_i) I. With h_i the sum of the g_i along the
    diagonal of Sigma, its response is a combination of y_i = (g_i, u_i h_i). These sums therefore give every mixture, for all
    iterates, centres and spreads.
    """
    r2 = law.rank
    diagonal = jnp.zeros(size).at[jnp.cumsum(jnp.array([0, *range(r2, 1, -1)]))].set(1.0)

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> Array:
        in_span = split(key)[0]

        def block(i: Array, total: Array) -> Array:
            drawing, gaussians = split(fold_in(in_span, i))
            u = jax.vmap(lambda k: law.draw(k).sigma[0, 0])(split(drawing, BLOCK))
            g = jax.random.normal(gaussians, (BLOCK, size + 1), dtype=float)
            g = g[:, :-1]  # the last one is for label noise, which these runs do not have
            y = jnp.concatenate([g, (u * (g @ diagonal))[:, None]], axis=1)
            y = jnp.where((i * BLOCK + jnp.arange(BLOCK) < m)[:, None], y, 0.0)
            return total + y.T @ y

        return jax.lax.fori_loop(0, jnp.ceil(m / BLOCK).astype(int), block, jnp.zeros((size + 1, size + 1)))

    return _over_steps(one, stepping, first_step)


# --- arrays that are kept --------------------------------------------------------------------------


class NoiseSource(NamedTuple):
    """The origin of noise: ``key_use`` says what else the key of a step is for (``"iid"``: it chooses the environment;
    ``"ordered"``: nothing; ``"mixed"``: the environments of samples), ``batches`` is the number of batches of a step (0 for a
    single one, whose key has no number).
    """

    key_use: str
    batches: int
    first_seed: int


class BatchNoise(NamedTuple):
    """Noise of a block of steps: normals (step, batch, seed, extra), symmetric Gaussian matrices (step, batch, seed, d, d)."""

    normals: np.ndarray
    matrices: np.ndarray


class DrawCache:
    """The arrays that were used last, up to a number of bytes."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self.kept: OrderedDict[tuple, np.ndarray] = OrderedDict()

    def get(self, label: tuple, make: Callable[[], np.ndarray]) -> np.ndarray:
        """The array with this label, made if it is not there.

        >>> cache = DrawCache(20)
        >>> [cache.get((i,), lambda: np.zeros(2)).size for i in range(3)], list(cache.kept)
        ([2, 2, 2], [(2,)])
        """
        if label not in self.kept:
            self.kept[label] = make()
            while len(self.kept) > 1 and sum(x.nbytes for x in self.kept.values()) > self.most:
                self.kept.popitem(last=False)
        self.kept.move_to_end(label)
        return self.kept[label]

    def noise(self, source: NoiseSource, block: int, extra: int, dimension: int, dtype: type) -> BatchNoise:
        """The noise of a block of steps: ``extra`` normals, then a matrix."""
        needed = extra + SymmetricMatrices(dimension).size
        pieces = -(-needed // NORMALS_AT_ONCE)
        raw = self.get((source, block, pieces), lambda: _noise_streams(source, block, pieces))
        label = (source, block, extra, dimension, np.dtype(dtype).name)
        matrices = self.get(label, lambda: _matrices(raw[..., extra:needed], dimension, dtype))
        return BatchNoise(raw[..., :extra], matrices)


CACHE = DrawCache()
"""The arrays that this process keeps."""


def _noise_streams(source: NoiseSource, block: int, pieces: int) -> np.ndarray:
    with double():
        _, stepping = run_keys(jnp.asarray(source.first_seed))
        keys = normal_keys(stepping, jnp.asarray(block * STEPS_AT_ONCE), source.key_use, source.batches)
        return _streams(jnp.swapaxes(keys, 1, 2), pieces)


def _streams(keys: PRNGKeyArray, pieces: int) -> np.ndarray:
    """The beginning of the stream of normals of every key."""
    flat = keys.reshape(-1)
    parts = [normals(flat, jnp.asarray(i * NORMALS_AT_ONCE)) for i in range(pieces)]
    return np.concatenate([np.asarray(part).reshape(*keys.shape, -1) for part in parts], axis=-1)


def _matrices(coordinates: np.ndarray, dimension: int, dtype: type) -> np.ndarray:
    """Symmetric matrices with these isometric coordinates, as :class:`SymmetricMatrices` makes them."""
    table = upper_triangle(dimension)
    # XLA multiplies by the inverse of a constant instead of dividing by it; `smat` divides, which rounds differently.
    return np.take((coordinates * (1 / table.scale)).astype(dtype), table.position, axis=-1)


def environment_normals(first_seed: int, count: int) -> np.ndarray:
    """The first normals of the streams with which seeds draw their environments: (seed, count)."""

    def draw() -> np.ndarray:
        with double():
            drawing, _ = run_keys(jnp.asarray(first_seed))
            return _streams(drawing, -(-count // NORMALS_AT_ONCE))[:, :count]

    return CACHE.get(("environments", first_seed, count), draw)


def block_of_draws(make: Callable[..., Any], block: int, first_seed: int, *given: Any) -> Any:
    """The arrays that one of the programs above draws for a block of steps of some seeds."""
    with double():
        _, stepping = run_keys(jnp.asarray(first_seed))
        # A float is a number of samples, which is an argument of the program and not a part of it.
        numbers = [jnp.asarray(x) if isinstance(x, float) else x for x in given]
        return jax.tree.map(np.asarray, make(stepping, jnp.asarray(block * STEPS_AT_ONCE), *numbers))


def as_arguments(part: Any) -> Any:
    """A module whose numbers are JAX arrays: a program takes these as arguments, and NumPy scalars as constants."""
    with double():
        return jax.tree.map(lambda x: jnp.asarray(x) if eqx.is_array_like(x) else x, part)
