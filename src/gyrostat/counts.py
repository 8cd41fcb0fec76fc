"""Binomial and multinomial counts, exact in law, by one rejection loop that compiles sooner than JAX's two."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import gammaln, xlog1py, xlogy
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from gyrostat.threefry import fold_in, split, uniform

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

    def log_mass(k: Array) -> Array:
        ways = gammaln(k + 1) + gammaln(count - k + 1)
        return xlogy(k, share) + xlog1py(count - k, -share) - ways

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Bool[Array, ""]]:
        tries = state[0]
        u, v = uniform(fold_in(key, tries), 2)
        k = jnp.floor(mean + 0.5 + width * (v - 0.5) / (1 - u))
        mass, most = log_mass(jnp.stack([jnp.clip(k, 0, count), mode]))
        return tries + 1, k, (k >= 0) & (k <= count) & (2 * jnp.log1p(-u) <= mass - most)

    start = (jnp.zeros((), dtype=jnp.uint32), jnp.zeros_like(mean), jnp.asarray(False))
    return lax.while_loop(lambda state: ~state[2], attempt, start)[1]
