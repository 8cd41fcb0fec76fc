"""One fixed Gaussian design per environment, exact in law and never materialised.

A run only needs ``X^T X b``, with X the m x D design of an environment. X is revealed one right direction at a time:
orthonormal q_1, q_2, ... that span the queries so far, and rows

    rho_k = chi_{m-k+1} q_k + (a Gaussian orthogonal to q_1 ... q_k)

of the triangular factor of X in the basis that starts with the q's. Then ``X^T X b = sum_k rho_k (rho_k . b)`` for
every b in the span, and a query outside the span appends a direction: a Bartlett decomposition in the directions that the
algorithm asks for. Time and memory per query are O(number of directions * D), whatever m.

Label noise is one more Gaussian column of X: (X_i, eps_i) is a row, and b is extended by -noise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import normal, split
from gyrostat.jax_tools.rejection_sampling import chi_square
from gyrostat.measurements.base import Demand, Measurements, Reading, Scene, require_finite_law, residual
from gyrostat.models.spaces import Space
from gyrostat.typing import Leaf

RELATIVE = 1e-11
"""A query counts as in the span if its new part is relatively smaller than this (rounding leaves about 1e-16)."""


class RevealedDesign(NamedTuple):
    """The revealed part of the design of every environment, in pages; the rows of a page belong to one environment."""

    directions: Float[Array, "pages rows D"]
    triangle: Float[Array, "pages rows D"]
    table: Int[Array, "K most"]
    known: Int[Array, " K"]
    pages: Int[Array, ""]


class FixedGaussian(Measurements):
    """The same m Gaussian measurements per environment at every step (finite data), exact in law.

    Parameters
    ----------
    num_samples
        The number m of measurements per environment.
    noise
        The standard deviation of the error in each response.

    >>> FixedGaussian(8000, noise=0.1).noise.item()
    0.1
    """

    num_samples: Leaf = errors.count()
    noise: Leaf = errors.nonnegative(default=0.0)

    vectorises = False

    def check(self, environments: Any, space: Space, mixes: bool) -> None:
        require_finite_law(self, environments)
        if mixes:
            raise GyrostatError(
                "FixedGaussian answers for all samples of an environment at once; a Pooled batch of single rows is not "
                "of that form: use Full (every sample at every step), FreshGaussian, or Dense."
            )

    def check_second_reading(self) -> None:
        raise GyrostatError(
            "the rule asks for a gradient at other parameters (reading.at), and FixedGaussian reveals its design along the "
            "path of the run alone: use Dense(num_samples)."
        )

    def init(self, key: PRNGKeyArray, environments: Environments, space: Space, demand: Demand) -> RevealedDesign:
        return nothing_revealed(environments.law.count, space.size + 1, demand.queries)  # type: ignore[attr-defined]

    def sense(
        self, state: RevealedDesign, key: PRNGKeyArray, scene: Scene, environment: Environment
    ) -> tuple[Reading, Any]:
        b = jnp.append(scene.space.coordinates(residual(scene, environment)), -self.noise)
        answer, state = gram_product(state, key, environment.index, b, self.num_samples)
        gradient = scene.space.element(answer[:-1] / self.num_samples)
        return Reading(gradient, b @ answer / self.num_samples), state

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        raise NotImplementedError("refused by check")


def nothing_revealed(K: int, D: int, queries: int) -> RevealedDesign:
    """The designs of K environments in D dimensions before the first of ``queries`` queries."""
    # A page of large D must stay in cache, and at least 4 rows amortise the loop.
    rows = int(np.clip(2**19 // (8 * D), 4, 64))
    most = math.ceil(min(queries, D) / rows)  # pages of one environment
    pages = min(math.ceil(queries / rows) + K, K * most)
    # One page more: a query in the span also writes its row, which is zero.
    empty = jnp.zeros((pages + 1, rows, D), dtype=float)
    table, none_known = jnp.zeros((K, most + 1), dtype=jnp.int32), jnp.zeros(K, dtype=jnp.int32)
    return RevealedDesign(empty, empty, table, none_known, jnp.zeros((), dtype=jnp.int32))


def gram_product(
    design: RevealedDesign, key: PRNGKeyArray, index: Int[Array, ""], b: Float[Array, " D"], m: Float[Array, ""]
) -> tuple[Float[Array, " D"], RevealedDesign]:
    """``X^T X b`` for the design of environment ``index``, after revealing the direction of ``b`` if it is new."""
    Q, P, table, known, pages = design
    rows = Q.shape[1]
    n = known[index]
    own_pages = table[index]
    in_use = (n + rows - 1) // rows
    squares, normals = split(key)

    def deflate(j: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        page, (q, z) = Q[own_pages[j]], pair
        return q - (page @ q) @ page, z - (page @ z) @ page

    def deflate_again(j: Array, q: Float[Array, " D"]) -> Float[Array, " D"]:
        page = Q[own_pages[j]]
        return q - (page @ q) @ page

    # b almost lies in the span, so one pass would leave errors that grow with the steps. The fresh Gaussian row z does not
    # lie near the span and is not normalised: one pass is enough for it.
    q, z = jax.lax.fori_loop(0, in_use, deflate, (b, normal(normals, b.size)))
    q = jax.lax.fori_loop(0, in_use, deflate_again, q)
    length = jnp.linalg.norm(q)
    is_new = (length > RELATIVE * jnp.linalg.norm(b)) & (n < jnp.minimum(m, b.size))
    q = jnp.where(is_new, q / jnp.where(length > 0, length, 1.0), 0.0)
    chi = jnp.sqrt(chi_square(squares, jnp.maximum(m - n, 1.0)))
    row = jnp.where(is_new, z - q * (q @ z) + chi * q, 0.0)

    opens = n % rows == 0
    page = jnp.where(opens, pages, own_pages[jnp.maximum(in_use - 1, 0)])
    Q = jax.lax.dynamic_update_slice(Q, q[None, None], (page, n % rows, jnp.zeros_like(n)))
    P = jax.lax.dynamic_update_slice(P, row[None, None], (page, n % rows, jnp.zeros_like(n)))
    took = is_new.astype(n.dtype)
    table = table.at[index, n // rows].set(jnp.where(is_new & opens, page, own_pages[n // rows]))
    design = RevealedDesign(Q, P, table, known.at[index].add(took), pages + jnp.where(opens, took, 0))

    own_pages = table[index]
    in_use = (n + took + rows - 1) // rows

    def gather(j: Array, answer: Float[Array, " D"]) -> Float[Array, " D"]:
        page = P[own_pages[j]]
        return answer + (page @ b) @ page

    return jax.lax.fori_loop(0, in_use, gather, jnp.zeros_like(b)), design
