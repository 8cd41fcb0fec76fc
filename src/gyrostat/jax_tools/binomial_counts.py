"""Binomial and multinomial counts, exact in law, by one rejection loop that compiles sooner than JAX's two."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import gammaln, xlog1py, xlogy
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gyrostat.jax_tools.random_bits import fold_in, split, uniform

SLOPE, OFFSET = 2 * math.sqrt(2 / math.e), 3 - 2 * math.sqrt(3 / math.e)


def multinomial(key: PRNGKeyArray, count: Float[Array, ""], weights: Float[Array, " K"]) -> Float[Array, " K"]:
    """How many of ``count`` draws fall to each of K places with these weights (their sum is one)."""
    rest = jnp.cumsum(weights[::-1])[::-1]
    shares = (weights / jnp.where(rest > 0, rest, 1.0))[:-1]

    def place(left: Array, at: tuple[Array, PRNGKeyArray]) -> tuple[Array, Array]:
        share, key = at
        taken = binomial(key, left, share)
        return left - taken, taken

    left, taken = lax.scan(place, jnp.asarray(count, dtype=float), (shares, split(key, shares.size)))
    return jnp.append(taken, left)


def binomial(key: PRNGKeyArray, count: Float[Array, ""], share: Float[Array, ""]) -> Float[Array, ""]:
    """Successes among ``count`` trials, by Stadlober's ratio of uniforms (1990), for every count and share.

    k = floor(mean + 1/2 + width (v - 1/2)/u) is accepted when u^2 <= mass(k)/mass(mode). It is exact because
    |x - mean - 1/2| sqrt(mass(k)/mass(mode)) <= width/2 for every x in [k, k + 1] (tests/test_counts.py).
    """
    mean, mode = count * share, jnp.minimum(jnp.floor((count + 1) * share), count)
    width = SLOPE * jnp.sqrt(mean * (1 - share) + 0.5) + OFFSET

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Bool[Array, ""]]:
        tries = state[0]
        u, v = uniform(fold_in(key, tries), 2)
        k = jnp.floor(mean + 0.5 + width * (v - 0.5) / (1 - u))
        mass, most = log_mass(jnp.stack([jnp.clip(k, 0, count), mode]), count, share)
        return tries + 1, k, (k >= 0) & (k <= count) & (2 * jnp.log1p(-u) <= mass - most)

    start = (jnp.zeros((), dtype=jnp.uint32), jnp.zeros_like(mean), jnp.asarray(False))
    return lax.while_loop(lambda state: ~state[2], attempt, start)[1]


def log_mass(k: Array, count: Array, share: Array) -> Array:
    """The logarithm of the binomial mass at ``k``, up to a constant.

    As deviances from the mean (Loader 2000): with factorials written out, the mass of 1e12 trials would be a difference
    of numbers of size 1e13, and wrong in its first digit.
    """
    mean = count * share
    return -_deviance(k, mean) - _deviance(count - k, count - mean) - _excess(k) - _excess(count - k)


def _deviance(k: Array, mean: Array) -> Array:
    """``k log(k/mean) - (k - mean)``."""
    safe = jnp.where(mean > 0, mean, 1.0)
    gap = (k - mean) / safe
    return jnp.where(mean > 0, mean * (xlog1py(1 + gap, gap) - gap), jnp.where(k > 0, jnp.inf, 0.0))


def _excess(k: Array) -> Array:
    """``log k! - k log k + k``: half of log(2 pi k) and a series from 100 on, where its error is below 1e-13."""
    small, large = jnp.minimum(k, 100.0), jnp.maximum(k, 100.0)
    series = jnp.log(2 * math.pi * large) / 2 + 1 / (12 * large) - 1 / (360 * large**3)
    return jnp.where(k > 100, series, gammaln(small + 1) - xlogy(small, small) + small)
