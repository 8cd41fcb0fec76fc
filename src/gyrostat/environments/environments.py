"""The truth A_star, the spurious subspace, and the law of what happens on it."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.laws import Absent, Congruent, Finite, Law
from gyrostat.errors import GyrostatError
from gyrostat.spaces import Leaf


class Environments(eqx.Module):
    """``A_e = U* diag(values) U*^T + V* Sigma_e V*^T`` (Xu 2024, Assumption 1, and section D for unequal values).

    Both bases have orthonormal columns; they may overlap with each other. Without a spurious basis this is plain
    recovery of one matrix.

    >>> import numpy as np
    >>> basis = np.eye(4)
    >>> from gyrostat import TwoPoint
    >>> places = Environments(basis[:, :1], basis[:, 1:2], TwoPoint(mean=1.0, spread=6.0))
    >>> np.diag(places.mean_target).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    invariant_basis: Leaf
    spurious_basis: Leaf
    law: Law
    invariant_values: Leaf

    def __init__(self, invariant_basis: Any, spurious_basis: Any = None, law: Law | None = None, *, values: Any = None):
        U = errors.orthonormal("invariant_basis", invariant_basis)
        V = (
            np.zeros((U.shape[0], 0))
            if spurious_basis is None
            else errors.orthonormal("spurious_basis", spurious_basis)
        )
        if V.shape[0] != U.shape[0]:
            raise GyrostatError(
                f"spurious_basis has {V.shape[0]} rows, invariant_basis has {U.shape[0]}: make them equal."
            )
        law = Absent() if law is None else _is_law(law)
        if law.rank != V.shape[1]:
            raise GyrostatError(
                f"law has rank {law.rank} but spurious_basis has {V.shape[1]} columns: give the law rank={V.shape[1]}."
            )
        x = np.ones(U.shape[1]) if values is None else errors.array("values", values, ndim=1)
        if x.shape != (U.shape[1],):
            raise GyrostatError(
                f"values must have one entry per column of invariant_basis ({U.shape[1]}); got {x.size}."
            )
        self.invariant_basis, self.spurious_basis, self.law, self.invariant_values = U, V, law, x

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return (self.invariant_basis.shape[0],) * 2

    def draw(self, key: PRNGKeyArray) -> Environments:
        """Itself: these environments are given, not random."""
        return self

    @property
    def invariant(self) -> Float[Array, "d d"]:
        """A_star."""
        U, values = self.invariant_basis, self.invariant_values
        return (U * values) @ U.T

    def spurious(self, sigma: Float[Array, "r2 r2"]) -> Float[Array, "d d"]:
        """``V* Sigma V*^T``."""
        V = self.spurious_basis
        return V @ sigma @ V.T

    def target(self, sigma: Float[Array, "r2 r2"]) -> Array:
        """The total signal of an environment."""
        return self.invariant + self.spurious(sigma)

    @property
    def mean_target(self) -> Array:
        """``A_star + E A_e``: what pooled data ask for."""
        return self.target(self.law.mean)

    def compress(self, basis: Float[Array, "d r"], product: Array) -> Float[Array, "r r"]:
        """``B^T A B``."""
        return basis.T @ product @ basis


class VectorEnvironments(Environments):
    """The diagonal case: coefficients ``beta_e = beta_star + sum_j s_j e_j`` over chosen spurious coordinates.

    >>> from gyrostat import TwoPoint
    >>> VectorEnvironments([1.0, -1.0, 0.0], [2], TwoPoint(mean=1.0, spread=6.0)).mean_target.tolist()
    [1.0, -1.0, 1.0]
    """

    def __init__(self, coefficients: Any, spurious_coordinates: Any = (), law: Law | None = None):
        beta = errors.array("coefficients", coefficients, ndim=1)
        listed = np.asarray(spurious_coordinates).reshape(-1).tolist()
        where = np.array([errors.integer("spurious_coordinates", i) for i in listed], dtype=int)
        if where.size and (where.min() < 0 or where.max() >= beta.size or len(set(where.tolist())) < where.size):
            raise GyrostatError(
                f"spurious_coordinates must be distinct and between 0 and {beta.size - 1}; got {where.tolist()}."
            )
        if (beta[where] != 0).any():
            raise GyrostatError(
                "coefficients must be zero on spurious_coordinates: put their mean into the law instead."
            )
        support, identity = np.flatnonzero(beta), np.eye(beta.size)
        if support.size == 0:
            raise GyrostatError("coefficients are all zero: there is no invariant signal to recover.")
        super().__init__(identity[:, support], identity[:, where], law, values=beta[support])
        if self.law.off_diagonal > 0:
            raise GyrostatError("law must be diagonal for vectors: coordinates cannot interact.")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.invariant_basis.shape[0],)

    @property
    def invariant(self) -> Float[Array, " p"]:
        return self.invariant_basis @ self.invariant_values

    def spurious(self, sigma: Float[Array, "r2 r2"]) -> Float[Array, " p"]:
        return self.spurious_basis @ jnp.diagonal(sigma)

    def compress(self, basis: Float[Array, "p r"], product: Float[Array, " p"]) -> Float[Array, "r r"]:
        return basis.T @ (product[:, None] * basis)


class Observed(Environments):
    """Places whose truth is not known, for data that come with their own responses (:class:`DenseData`).

    >>> Observed((20,), 2).mean_target.shape
    (20,)
    """

    size: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, shape: tuple[int, ...], count: int, weights: Any = None):
        if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != shape[1]):
            raise GyrostatError(f"shape must be (p,) for vectors or (d, d) for matrices; got {shape}.")
        n = errors.integer("count", count, least=1)
        super().__init__(np.zeros((shape[0], 0)), law=Finite(np.zeros((n, 0, 0)), weights))
        self.size = tuple(shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    def target(self, sigma: Float[Array, "r2 r2"]) -> Array:
        return jnp.zeros(self.size, dtype=float)

    @property
    def invariant(self) -> Array:
        return jnp.zeros(self.size, dtype=float)


class RandomEnvironments(eqx.Module):
    """Environments with subspaces drawn anew for every seed.

    ``placement="orthogonal"`` makes every principal cosine between the two subspaces equal to ``overlap``
    (epsilon_1 of Assumption 1; zero by default); ``"random"`` draws two independent uniform subspaces (Prop. 1).

    >>> import jax
    >>> from gyrostat import TwoPoint
    >>> recipe = RandomEnvironments(10, rank=2, law=TwoPoint(spread=4.0), overlap=0.1)
    >>> places = recipe.draw(jax.random.key(0))
    >>> cosines = jnp.linalg.norm(places.invariant_basis.T @ places.spurious_basis, 2)
    >>> round(float(cosines), 3)
    0.1
    """

    dimension: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    law: Law
    values: Leaf
    overlap: Leaf
    placement: str = eqx.field(static=True)

    def __init__(
        self,
        dimension: int,
        rank: int = 1,
        law: Law | None = None,
        *,
        values: Any = None,
        overlap: float = 0.0,
        placement: str = "orthogonal",
    ):
        d = errors.integer("dimension", dimension, least=1)
        law = Absent() if law is None else _is_law(law)
        self.dimension, self.law = d, law
        self.rank = errors.integer("rank", rank, least=1, most=d, most_because=", the dimension")
        self.placement = errors.choice("placement", placement, ("orthogonal", "random"))
        needed = self.rank + law.rank if self.placement == "orthogonal" else max(self.rank, law.rank)
        if needed > d:
            raise GyrostatError(
                f"rank {self.rank} and spurious rank {law.rank} do not fit in dimension {d}: "
                f"raise dimension to at least {needed} or lower the ranks."
            )
        self.values = np.ones(self.rank) if values is None else errors.array("values", values, ndim=1)
        if self.values.shape != (self.rank,):
            raise GyrostatError(f"values must have rank={self.rank} entries; got {self.values.size}.")
        self.overlap = errors.number("overlap", overlap, least=0, most=1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return (self.dimension, self.dimension)

    def draw(self, key: PRNGKeyArray) -> Environments:
        """Environments with subspaces drawn by ``key``."""
        d, r1, r2 = self.dimension, self.rank, self.law.rank
        if self.placement == "random":
            one, two = jax.random.split(key)
            U, V = _haar(one, d, r1), _haar(two, d, r2)
        else:
            basis = _haar(key, d, r1 + r2)
            U, W = basis[:, :r1], basis[:, r1:]
            shared = min(r1, r2)
            tilted = self.overlap * U[:, :shared] + jnp.sqrt(1 - self.overlap**2) * W[:, :shared]
            V = jnp.concatenate([tilted, W[:, shared:]], axis=1)
        return _unchecked(U, V, self.law, jnp.asarray(self.values))


class FeatureEnvironments(eqx.Module):
    """Example 1 of Xu 2024: ``A_e = sum_j a_j a_j^T + sum_k s_k b_k b_k^T`` with N(0, I/d) features a_j and b_k.

    The features are only nearly orthonormal, so A_star has unequal eigenvalues and Sigma_e, written in an
    orthonormal basis of the spurious features, is not quite diagonal.
    """

    dimension: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    law: Law

    def __init__(self, dimension: int, rank: int, law: Law):
        self.dimension = errors.integer("dimension", dimension, least=1)
        self.law = _is_law(law)
        self.rank = errors.integer("rank", rank, least=1, most=self.dimension, most_because=", the dimension")
        errors.integer("law's rank", self.law.rank, least=1, most=self.dimension, most_because=", the dimension")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return (self.dimension, self.dimension)

    def draw(self, key: PRNGKeyArray) -> Environments:
        """Environments with features drawn by ``key``."""
        one, two = jax.random.split(key)
        d = self.dimension
        features = jax.random.normal(one, (d, self.rank), dtype=float) / np.sqrt(d)
        spurious = jax.random.normal(two, (d, self.law.rank), dtype=float) / np.sqrt(d)
        U, s, _ = jnp.linalg.svd(features, full_matrices=False)
        V, R = jnp.linalg.qr(spurious)
        return _unchecked(U, V, Congruent(self.law, R), s**2)


def _haar(key: PRNGKeyArray, d: int, r: int) -> Float[Array, "d r"]:
    # LAPACK's signs depend on the entries; with R's diagonal positive Q is uniform. An overlap mixes columns, so the
    # signs matter to the spans.
    Q, R = jnp.linalg.qr(jax.random.normal(key, (d, r), dtype=float))
    return Q * jnp.where(jnp.diagonal(R) < 0, -1.0, 1.0)


def _unchecked(U: Array, V: Array, law: Law, values: Array) -> Environments:
    """Environments from traced arrays, whose orthonormality cannot be checked while tracing."""
    places = object.__new__(Environments)
    for name, value in (("invariant_basis", U), ("spurious_basis", V), ("law", law), ("invariant_values", values)):
        object.__setattr__(places, name, value)
    return places


def _is_law(law: Any) -> Law:
    if not isinstance(law, Law):
        got = errors.shown(law)
        raise GyrostatError(f"law must be TwoPoint, Uniform, Gaussian, Finite, Sampler or another Law; got {got}.")
    return law
