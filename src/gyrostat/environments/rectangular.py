"""Rectangular targets: left and right bases that differ."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.laws import Absent, Law
from gyrostat.environments.random_environments import haar
from gyrostat.environments.targets import Environments, is_law, unchecked
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.small_products import times
from gyrostat.typing import Leaf


class RectangularEnvironments(Environments):
    """``A_e = U* diag(values) W*^T + V* Sigma_e Z*^T``: n1 x n2 targets with bases of their own on either side.

    Without spurious bases this is plain recovery of one matrix (Xiong 2024, setting 2).

    >>> import numpy as np
    >>> RectangularEnvironments(np.eye(2, 1), np.eye(3, 1), values=[2.0]).invariant.tolist()
    [[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    right: Leaf
    right_spurious: Leaf

    def __init__(
        self,
        left: Any,
        right: Any,
        spurious_left: Any = None,
        spurious_right: Any = None,
        law: Law | None = None,
        *,
        values: Any = None,
    ):
        super().__init__(left, spurious_left, law, values=values)
        self.right = errors.orthonormal("right", right)
        if self.right.shape[1] != self.invariant_basis.shape[1]:
            raise GyrostatError(
                f"right has {self.right.shape[1]} columns, left has {self.invariant_basis.shape[1]}: make them equal."
            )
        n2, r2 = self.right.shape[0], self.law.rank
        V = np.zeros((n2, 0)) if spurious_right is None else errors.orthonormal("spurious_right", spurious_right)
        if V.shape != (n2, r2):
            raise GyrostatError(f"spurious_right must have shape {(n2, r2)} to go with right and law; got {V.shape}.")
        self.right_spurious = V

    @staticmethod
    def of(matrix: Any) -> RectangularEnvironments:
        """One place, whose truth is this matrix: plain recovery or completion of it.

        >>> RectangularEnvironments.of([[1.0, 4.0], [0.25, 1.0]]).invariant_basis.shape[1]
        1
        """
        A = errors.array("matrix", matrix, ndim=2)
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        rank = int((s > 1e-12 * s.max(initial=0.0)).sum())
        if rank == 0:
            raise GyrostatError("matrix is zero: there is nothing to recover.")
        return RectangularEnvironments(U[:, :rank], Vt[:rank].T, values=s[:rank])

    @property
    def shape(self) -> tuple[int, ...]:
        return self.invariant_basis.shape[0], self.right.shape[0]

    @property
    def right_basis(self) -> Float[Array, "n2 r1"]:
        return self.right

    @property
    def right_spurious_basis(self) -> Float[Array, "n2 r2"]:
        return self.right_spurious

    @property
    def invariant(self) -> Float[Array, "n1 n2"]:
        return times(self.invariant_basis * self.invariant_values, self.right.T)

    def spurious(self, sigma: Float[Array, "r2 r2"]) -> Float[Array, "n1 n2"]:
        return times(times(self.spurious_basis, sigma), self.right_spurious.T)

    def rotated(self, left: Float[Array, "q n1"], right: Float[Array, "p n2"]) -> Environments:
        return unchecked(
            RectangularEnvironments,
            invariant_basis=left @ self.invariant_basis,
            spurious_basis=left @ self.spurious_basis,
            law=self.law,
            invariant_values=self.invariant_values,
            right=right @ self.right,
            right_spurious=right @ self.right_spurious,
        )


class RandomRectangular(eqx.Module):
    """Rectangular environments with subspaces drawn anew for every seed; spurious ones orthogonal to invariant ones.

    >>> RandomRectangular(20, 30, rank=2).shape
    (20, 30)
    """

    rows: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)
    law: Law
    values: Leaf

    def __init__(self, rows: int, columns: int, rank: int = 1, law: Law | None = None, *, values: Any = None):
        self.rows = errors.integer("rows", rows, least=1)
        self.columns = errors.integer("columns", columns, least=1)
        self.law = Absent() if law is None else is_law(law)
        small = min(self.rows, self.columns)
        self.rank = errors.integer("rank", rank, least=1, most=small, most_because=", the smaller side")
        if self.rank + self.law.rank > small:
            raise GyrostatError(
                f"rank {self.rank} and spurious rank {self.law.rank} do not fit in the smaller side {small}: "
                "raise rows and columns or lower the ranks."
            )
        self.values = np.ones(self.rank) if values is None else errors.array("values", values, ndim=1)
        if self.values.shape != (self.rank,):
            raise GyrostatError(f"values must have rank={self.rank} entries; got {self.values.size}.")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return self.rows, self.columns

    def draw(self, key: PRNGKeyArray) -> Environments:
        """Environments with subspaces drawn by ``key``."""
        one, two = jax.random.split(key)
        r1, r2 = self.rank, self.law.rank
        L, R = haar(one, self.rows, r1 + r2), haar(two, self.columns, r1 + r2)
        return unchecked(
            RectangularEnvironments,
            invariant_basis=L[:, :r1],
            spurious_basis=L[:, r1:],
            law=self.law,
            invariant_values=jnp.asarray(self.values),
            right=R[:, :r1],
            right_spurious=R[:, r1:],
        )
