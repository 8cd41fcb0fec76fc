"""Chi-square, binomial and multinomial numbers, exact in law, by rejection.

The numbers differ from those of JAX. Each law needs one short loop, which compiles sooner than the loops of JAX.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import gammaln, xlog1py, xlogy
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gyrostat.jax_tools.fast_random import few_normals, fold_in, split, uniform

SLOPE, OFFSET = 2 * math.sqrt(2 / math.e), 3 - 2 * math.sqrt(3 / math.e)
"""The width of the hat of :func:`binomial` as a function of the standard deviation (Stadlober 1990)."""


def chi_square(key: PRNGKeyArray, freedom: Float[Array, ""]) -> Float[Array, ""]:
    """A chi-square number with ``freedom`` >= 1 degrees of freedom, by the rejection of Marsaglia and Tsang (2000).

    With a = freedom/2, d = a - 1/3 and x normal, d (1 + x/sqrt(9d))^3 is accepted as Gamma(a). The method rests on the
    inequality 3 log y <= y^3 - 1 - 9/2 (y - 1)^2 for y > 0, which does not involve a, so a > 1/3 is enough. Half the sum
    of two squared normals is the exponential number of the test. Compiles in half the time of ``jax.random.chisquare``.
    """
    d = freedom / 2 - 1 / 3

    def rejected(state: tuple[Array, Float[Array, " 3"]]) -> Array:
        x, a, b = state[1]
        t = x / jnp.sqrt(9 * d)
        surplus = d * (t**3 - 1.5 * t**2 + 3 * (t - jnp.log1p(t)))
        return (t <= -1) | ((a * a + b * b) / 2 <= surplus)

    def attempt(state: tuple[Array, Float[Array, " 3"]]) -> tuple[Array, Float[Array, " 3"]]:
        return state[0] + 1, few_normals(fold_in(key, state[0]), 3)

    # Zeros are rejected, so the loop runs at least once.
    _, z = lax.while_loop(rejected, attempt, (jnp.zeros((), dtype=jnp.uint32), jnp.zeros(3, dtype=float)))
    return 2 * d * (1 + z[0] / jnp.sqrt(9 * d)) ** 3


def multinomial(key: PRNGKeyArray, count: Float[Array, ""], weights: Float[Array, " K"]) -> Float[Array, " K"]:
    """The number of draws, out of ``count``, that fall into each of K classes with these weights (which sum to one)."""
    rest = jnp.cumsum(weights[::-1])[::-1]
    shares = (weights / jnp.where(rest > 0, rest, 1.0))[:-1]

    def take(left: Array, share_and_key: tuple[Array, PRNGKeyArray]) -> tuple[Array, Array]:
        share, key = share_and_key
        taken = binomial(key, left, share)
        return left - taken, taken

    left, taken = lax.scan(take, jnp.asarray(count, dtype=float), (shares, split(key, shares.size)))
    return jnp.append(taken, left)


def binomial(key: PRNGKeyArray, count: Float[Array, ""], share: Float[Array, ""]) -> Float[Array, ""]:
    """Successes among ``count`` trials, by Stadlober's ratio of uniforms (1990), for every count and share.

    k = floor(mean + 1/2 + width (v - 1/2)/u) is accepted when u^2 <= mass(k)/mass(mode). It is exact because
    |x - mean - 1/2| sqrt(mass(k)/mass(mode)) <= width/2 for every x in [k, k + 1], which the tests check.
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

    It is written with deviances from the mean (Loader 2000). With factorials, the mass of 1e12 trials would be a difference
    of numbers of size 1e13 and wrong in its first digit.
    """
    mean = count * share
    return -_deviance(k, mean) - _deviance(count - k, count - mean) - _excess(k) - _excess(count - k)


def _deviance(k: Array, mean: Array) -> Array:
    """``k log(k/mean) - (k - mean)``."""
    safe = jnp.where(mean > 0, mean, 1.0)
    gap = (k - mean) / safe
    return jnp.where(mean > 0, mean * (xlog1py(1 + gap, gap) - gap), jnp.where(k > 0, jnp.inf, 0.0))


def _excess(k: Array) -> Array:
    """``log k! - k log k + k``; from k = 100 on by Stirling's series, whose error there is below 1e-13."""
    small, large = jnp.minimum(k, 100.0), jnp.maximum(k, 100.0)
    series = jnp.log(2 * math.pi * large) / 2 + 1 / (12 * large) - 1 / (360 * large**3)
    return jnp.where(k > 100, series, gammaln(small + 1) - xlogy(small, small) + small)
