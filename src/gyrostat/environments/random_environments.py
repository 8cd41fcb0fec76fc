"""Random environments: recipes that draw new subspaces, and so a new truth, for every seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.given_environments import (
    Environments,
    RectangularEnvironments,
    law_of_rank,
    values_of_rank,
)
from gyrostat.environments.laws import Absent, Law, law_of_run, unchecked
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.typing import Leaf


class RandomEnvironments(ReadableModule):
    """Environments with new random subspaces for every seed.

    ``placement="orthogonal"`` makes every principal cosine between the two subspaces equal to ``overlap``
    (epsilon_1 of Assumption 1; zero by default); ``"random"`` draws two independent uniform subspaces (Prop. 1).

    Parameters
    ----------
    dimension
        The side d of the matrices.
    rank
        The rank of the invariant part.
    law
        The law of Sigma_e over environments; by default there is no spurious part.
    values
        The eigenvalues (singular values) of the invariant part; all 1 by default.
    overlap
        Every principal cosine between the two subspaces (epsilon_1 of Assumption 1).
    placement
        ``"orthogonal"``, or ``"random"`` for two independent uniform subspaces.

    >>> import jax
    >>> from gyrostat import TwoPoint
    >>> recipe = RandomEnvironments(10, rank=2, law=TwoPoint(spread=4.0), overlap=0.1)
    >>> environments = recipe.draw(jax.random.key(0))
    >>> cosines = jnp.linalg.norm(environments.invariant_basis.T @ environments.spurious_basis, 2)
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
        self.dimension = d = errors.integer("dimension", dimension, least=1)
        self.rank = errors.integer("rank", rank, least=1, most=d, most_because=", the dimension")
        self.placement = errors.choice("placement", placement, ("orthogonal", "random"))
        self.overlap = errors.number("overlap", overlap, least=0, most=1)
        self.law, self.values = law_of_rank(law), values_of_rank(values, self.rank)
        r1, r2 = self.rank, self.law.rank
        needed = r1 + r2 if self.placement == "orthogonal" else max(r1, r2)
        if needed > d:
            raise GyrostatError(
                f"rank {r1} and spurious rank {r2} do not fit in dimension {d}: raise dimension to at least {needed} or "
                "lower the ranks."
            )

    def implied(self) -> Mapping[str, Any]:
        return {"law": Absent(), "values": np.ones(self.rank)}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return self.dimension, self.dimension

    def draw(self, key: PRNGKeyArray) -> Environments:
        """Environments with subspaces drawn by ``key``."""
        d, r1, r2 = self.dimension, self.rank, self.law.rank
        if self.placement == "random":
            one, two = jax.random.split(key)
            U, V = haar(one, d, r1), haar(two, d, r2)
        else:
            basis = haar(key, d, r1 + r2)
            U, W = basis[:, :r1], basis[:, r1:]
            shared = min(r1, r2)
            tilted = self.overlap * U[:, :shared] + jnp.sqrt(1 - self.overlap**2) * W[:, :shared]
            V = jnp.concatenate([tilted, W[:, shared:]], axis=1)
        return _environments(Environments, self, key, invariant_basis=U, spurious_basis=V)


class FeatureEnvironments(ReadableModule):
    """Example 1 of Xu 2024: ``A_e = sum_j a_j a_j^T + sum_k s_k b_k b_k^T`` with N(0, I/d) features a_j and b_k.

    The features are only nearly orthonormal, so A_star has unequal eigenvalues and Sigma_e, written in an
    orthonormal basis of the spurious features, is not quite diagonal.

    Parameters
    ----------
    dimension
        The side d of the matrices.
    rank
        The number of invariant features a_j.
    law
        The law of the strengths s_k; its rank is the number of spurious features.
    """

    dimension: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    law: Law

    def __init__(self, dimension: int, rank: int, law: Law):
        self.dimension = d = errors.integer("dimension", dimension, least=1)
        self.rank = errors.integer("rank", rank, least=1, most=d, most_because=", the dimension")
        self.law = law_of_rank(law)
        errors.integer("law's rank", self.law.rank, least=1, most=d, most_because=", the dimension")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return self.dimension, self.dimension

    def draw(self, key: PRNGKeyArray) -> Environments:
        """Environments with features drawn by ``key``."""
        one, two = jax.random.split(key)
        d = self.dimension
        features = jax.random.normal(one, (d, self.rank), dtype=float) / np.sqrt(d)
        spurious = jax.random.normal(two, (d, self.law.rank), dtype=float) / np.sqrt(d)
        U, s, _ = jnp.linalg.svd(features, full_matrices=False)
        V, R = jnp.linalg.qr(spurious)
        law = law_of_run(self.law, key).in_basis(R)
        return unchecked(Environments, invariant_basis=U, spurious_basis=V, law=law, invariant_values=s**2)


class RandomRectangular(ReadableModule):
    """Rectangular environments with new random subspaces for every seed, spurious orthogonal to invariant ones.

    Parameters
    ----------
    rows
        The number n1 of rows.
    columns
        The number n2 of columns.
    rank
        The rank of the invariant part.
    law
        The law of Sigma_e over environments; by default there is no spurious part.
    values
        The eigenvalues (singular values) of the invariant part; all 1 by default.

    >>> RandomRectangular(20, 30, rank=2).shape
    (20, 30)
    """

    rows: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    law: Law
    values: Leaf

    def __init__(self, rows: int, columns: int, rank: int = 1, law: Law | None = None, *, values: Any = None):
        self.rows, self.columns = errors.integer("rows", rows, least=1), errors.integer("columns", columns, least=1)
        side = min(self.rows, self.columns)
        self.rank = errors.integer("rank", rank, least=1, most=side, most_because=", the smaller side")
        self.law, self.values = law_of_rank(law), values_of_rank(values, self.rank)
        if self.rank + self.law.rank > side:
            raise GyrostatError(
                f"rank {self.rank} and spurious rank {self.law.rank} do not fit in the smaller side {side}: "
                "raise rows and columns or lower the ranks."
            )

    def implied(self) -> Mapping[str, Any]:
        return {"law": Absent(), "values": np.ones(self.rank)}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return self.rows, self.columns

    def draw(self, key: PRNGKeyArray) -> Environments:
        """Environments with subspaces drawn by ``key``."""
        one, two = jax.random.split(key)
        r1, ranks = self.rank, self.rank + self.law.rank
        L, R = haar(one, self.rows, ranks), haar(two, self.columns, ranks)
        return _environments(
            RectangularEnvironments,
            self,
            key,
            invariant_basis=L[:, :r1],
            spurious_basis=L[:, r1:],
            right=R[:, :r1],
            right_spurious=R[:, r1:],
        )


def _environments(
    kind: type[Environments], recipe: RandomEnvironments | RandomRectangular, key: PRNGKeyArray, **bases: Array
) -> Environments:
    """Environments with these bases, and the law and the values of the recipe."""
    return unchecked(kind, law=law_of_run(recipe.law, key), invariant_values=jnp.asarray(recipe.values), **bases)


def haar(key: PRNGKeyArray, d: int, r: int) -> Float[Array, "d r"]:
    """A uniformly random d x r matrix with orthonormal columns."""
    return orthonormal_columns(jax.random.normal(key, (d, r), dtype=float))


def orthonormal_columns(matrix: Float[Array, "d r"]) -> Float[Array, "d r"]:
    """Q of ``Q R = matrix`` with a positive diagonal of R; uniformly random if the entries are independent normals."""
    # The signs that LAPACK chooses depend on the entries, so its Q is not uniform. Where columns are mixed (an overlap), the
    # signs change the spans.
    Q, R = jnp.linalg.qr(matrix)
    return Q * jnp.where(jnp.diagonal(R) < 0, -1.0, 1.0)
