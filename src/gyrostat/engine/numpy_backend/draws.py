"""What is random in runs, apart from the noise of a batch: drawn for so many seeds and steps at a time by small programs.

Keys are split as in ``engine.simulate``, ``algorithms.batches`` and ``measurements.fresh_gaussian``. No shape depends on a
dimension, so that moving one compiles nothing.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat.algorithms.batches import OneEnvironment
from gyrostat.environments import Law
from gyrostat.jax_tools.random_streams import fold_in, normal_slice, split
from gyrostat.jax_tools.rejection_sampling import chi_square, multinomial
from gyrostat.measurements.fresh_gaussian import BLOCK

LANES, STEPS, PIECE = 16, 25, 1024
"""Seeds and steps of one call, and the normals that are drawn at a time."""


@jax.jit
def run_keys(first: Array) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """The keys with which seeds ``first`` ... draw their subspaces and take their steps."""

    def one(number: Array) -> PRNGKeyArray:
        return split(fold_in(jax.random.key(0), number), 4)

    keys = jax.vmap(one)(first + jnp.arange(LANES))
    return keys[:, 0], keys[:, 3]


def _over_steps(function: Any, stepping: PRNGKeyArray, first: Array) -> Any:
    """``function(run's key, step's number, step's key)`` of all steps and seeds: (step, seed, ...)."""

    def at(t: Array) -> Any:
        return jax.vmap(lambda key: function(key, t, fold_in(key, t)))(stepping)

    return jax.vmap(at)(first + jnp.arange(STEPS))


@eqx.filter_jit
def normal_keys(stepping: PRNGKeyArray, first: Array, way: str, voices: int) -> PRNGKeyArray:
    """The keys of the normals of every step: (step, seed, voice)."""

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> PRNGKeyArray:
        return jax.vmap(lambda k: split(k)[1])(_voices(key, way, voices))

    return _over_steps(one, stepping, first)


def _voices(key: PRNGKeyArray, way: str, voices: int) -> PRNGKeyArray:
    """The keys by which a step measures: of its batch, or of a batch of every environment (an amplified step)."""
    sensing = split(key)[1] if way == "drawn" else key  # the other key chooses the environment
    return sensing[None] if voices == 0 else jax.vmap(lambda e: fold_in(sensing, e))(jnp.arange(voices))


@jax.jit
def normals(keys: PRNGKeyArray, start: Array) -> Float[Array, "keys piece"]:
    """Numbers ``start`` ... of the stream of normals of every key."""
    return jax.lax.map(lambda key: normal_slice(key, start, PIECE), keys)


@eqx.filter_jit
def places(stepping: PRNGKeyArray, first: Array, batches: OneEnvironment, law: Law) -> tuple[Array, Array]:
    """The number and the Sigma of the environment that every step sees."""

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> Any:
        choosing = split(key)[0] if batches.order == "iid" else key
        return tuple(batches._choose(law, t, run, choosing))

    return _over_steps(one, stepping, first)


@eqx.filter_jit
def squares(stepping: PRNGKeyArray, first: Array, m: Array, way: str, voices: int) -> Float[Array, "step seed voice"]:
    """The chi-squares of batches that come from one environment each."""

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> Array:
        return jax.vmap(lambda k: chi_square(split(k)[0], m))(_voices(key, way, voices))

    return _over_steps(one, stepping, first)


@eqx.filter_jit
def shared_squares(stepping: PRNGKeyArray, first: Array, m: Array, weights: Array) -> Float[Array, "step seed place"]:
    """The chi-squares of the samples that each of some environments has in a mixed batch."""

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> Array:
        counting, drawing = split(split(key)[0])
        counts = multinomial(counting, m, weights)
        drawn = jax.vmap(chi_square)(split(drawing, weights.size), jnp.maximum(counts, 1.0))
        return jnp.where(counts > 0, drawn, 0.0)

    return _over_steps(one, stepping, first)


@eqx.filter_jit
def moments(stepping: PRNGKeyArray, first: Array, m: Array, law: Any, size: int) -> Float[Array, "step seed q q"]:
    """``sum_i y_i y_i^T`` over the samples of a mixed batch, each with a Sigma of its own.

    Sample i has the coordinates g_i in the span and Sigma_i = (centre + spread u_i) I. With h_i the sum of the g_i along the
    diagonal of Sigma, its response is a combination of y_i = (g_i, u_i h_i), so that these sums give every mixture, whatever
    the iterate, the centre and the spread.
    """
    r2 = law.rank
    diagonal = jnp.zeros(size).at[jnp.cumsum(jnp.array([0, *range(r2, 1, -1)]))].set(1.0)

    def one(run: PRNGKeyArray, t: Array, key: PRNGKeyArray) -> Array:
        in_span = split(key)[0]

        def block(i: Array, total: Array) -> Array:
            drawing, gaussians = split(fold_in(in_span, i))
            u = jax.vmap(lambda k: law.draw(k).sigma[0, 0])(split(drawing, BLOCK))
            g = jax.random.normal(gaussians, (BLOCK, size + 1), dtype=float)
            g = g[:, :-1]  # the last is for label noise, of which there is none
            y = jnp.concatenate([g, (u * (g @ diagonal))[:, None]], axis=1)
            y = jnp.where((i * BLOCK + jnp.arange(BLOCK) < m)[:, None], y, 0.0)
            return total + y.T @ y

        return jax.lax.fori_loop(0, jnp.ceil(m / BLOCK).astype(int), block, jnp.zeros((size + 1, size + 1)))

    return _over_steps(one, stepping, first)
