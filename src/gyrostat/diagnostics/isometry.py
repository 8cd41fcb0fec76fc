"""An estimate of the restricted isometry constant of Gaussian measurements."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.jax_tools.compile_cache import use_compile_cache
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.fixed_gaussian import gram_product, nothing_revealed
from gyrostat.models.spaces import RectangularMatrices, Space, SymmetricMatrices


class IsometryEstimate(NamedTuple):
    """An estimate of the isometry constant: the mean over independent designs, a 95 % interval, and the value of each."""

    value: float
    low: float
    high: float
    draws: np.ndarray


@errors.explains_keywords
def isometry_constant(
    dimension: int,
    num_samples: int,
    rank: int,
    *,
    symmetric: bool = True,
    draws: int = 5,
    steps: int = 15,
    seed: int = 0,
) -> IsometryEstimate:
    """A lower estimate of the restricted isometry constant delta of m Gaussian measurements, for matrices of a given rank.

    delta is that of Definition 1 in Xu 2024 and of Definition 2.1 in Xiong 2024. ``symmetric`` measurements see symmetric
    matrices (Xu 2024), others all square matrices (Xiong 2024).

    Maximises ``| (1/m) sum <X_i, M>^2 - 1 |`` over unit matrices M of the rank by projected power iterations, upwards
    and downwards, on a design that is never written out: its answers have the exact law, as in :class:`FixedGaussian`.
    A maximum found by search is a lower bound of the constant of that design; the interval is over designs (Student's t).

    Parameters
    ----------
    dimension
        The side d of the matrices.
    num_samples
        The number m of measurements.
    rank
        The rank of the matrices.
    symmetric
        True for symmetric measurements (Xu 2024), False for general ones (Xiong 2024).
    draws
        The number of designs.
    steps
        The number of power iterations.
    seed
        The seed of the designs.

    >>> estimate = isometry_constant(10, 2000, rank=2, draws=3, steps=8)
    >>> 0.05 < estimate.value < 0.6
    True
    """
    d = errors.integer("dimension", dimension, least=1)
    m = errors.integer("num_samples", num_samples, least=1)
    s = errors.integer("rank", rank, least=1)
    n = errors.integer("draws", draws, least=2)
    space = SymmetricMatrices(d) if symmetric else RectangularMatrices(d, d)
    use_compile_cache()
    with double():
        keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(seed), i))(jnp.arange(n))
        climbs = errors.integer("steps", steps, least=1)
        constants = np.array([float(_search(key, jnp.asarray(float(m)), space, min(s, d), climbs)) for key in keys])
    from scipy import stats

    half = stats.t.ppf(0.975, n - 1) * constants.std(ddof=1) / np.sqrt(n)
    return IsometryEstimate(
        float(constants.mean()), float(constants.mean() - half), float(constants.mean() + half), constants
    )


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _search(key: PRNGKeyArray, m: Float[Array, ""], space: Space, rank: int, steps: int) -> Float[Array, ""]:
    design, only = nothing_revealed(1, space.size, 2 * (steps + 1)), jnp.zeros((), dtype=jnp.int32)
    best = jnp.zeros(())
    for sign in (1.0, -1.0):
        start = jax.random.fold_in(key, 1 if sign > 0 else 2)
        M = _unit(space.project(_truncate(space.gaussian(start), rank)))

        def climb(t: Array, carry: tuple[Any, ...], sign: float = sign) -> tuple[Any, ...]:
            M, design, best = carry
            query = jax.random.fold_in(jax.random.fold_in(key, 3 if sign > 0 else 4), t)
            answer, design = gram_product(design, query, only, space.coordinates(M), m)
            GM = space.element(answer / m)
            best = jnp.maximum(best, sign * (jnp.sum(M * GM) - 1))
            # Without the 1 that all eigenvalues share, the speed of the climb does not depend on m. The shift has the size
            # of the restricted spectrum and keeps the climb from jumping between its two ends.
            ahead = sign * (GM - M) + jnp.sqrt(space.shape[0] * rank / m) * M
            # Rounding errors leave the space of symmetric matrices; without the projection the climb would leave it too.
            return _unit(space.project(_truncate(ahead, rank))), design, best

        M, design, best = jax.lax.fori_loop(0, steps + 1, climb, (M, design, best))
    return best


def _truncate(M: Float[Array, "d d"], rank: int) -> Float[Array, "d d"]:
    U, s, Vt = jnp.linalg.svd(M, full_matrices=False)
    return (U[:, :rank] * s[:rank]) @ Vt[:rank]


def _unit(M: Array) -> Array:
    return M / jnp.sqrt(jnp.sum(M * M))
