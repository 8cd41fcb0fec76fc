"""Environments with a given truth: A_star, the spurious subspace, and the law of the spurious part on it.

Targets are symmetric matrices, vectors or rectangular matrices; :class:`Observed` is for data whose truth is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.laws import Absent, Finite, Law
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.jax_tools.small_products import times
from gyrostat.typing import Leaf

AnyEnvironments = TypeVar("AnyEnvironments", bound="Environments")


class Environments(ReadableModule):
    """``A_e = U* diag(values) U*^T + V* Sigma_e V*^T`` (Xu 2024, Assumption 1, and section D for unequal values).

    Both bases have orthonormal columns; they may overlap with each other. Without a spurious basis this is plain
    recovery of one matrix.

    >>> import numpy as np
    >>> basis = np.eye(4)
    >>> from gyrostat import TwoPoint
    >>> environments = Environments(basis[:, :1], basis[:, 1:2], TwoPoint(mean=1.0, spread=6.0))
    >>> np.diag(environments.mean_target).tolist()
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
        law = Absent() if law is None else checked_law(law)
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

    def arguments(self) -> Mapping[str, Any] | None:
        return {
            "invariant_basis": self.invariant_basis,
            "spurious_basis": self.spurious_basis,
            "law": self.law,
            "values": self.invariant_values,
        }

    @property
    def knows_truth(self) -> bool:
        """Whether the invariant and the spurious part are known. If not, diagnostics that compare with them are NaN."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return (self.invariant_basis.shape[0],) * 2

    def draw(self, key: PRNGKeyArray) -> Environments:
        """These environments themselves, which are given and not random."""
        return self

    @property
    def invariant(self) -> Float[Array, "d d"]:
        """A_star."""
        U, values = self.invariant_basis, self.invariant_values
        return times(U * values, U.T)

    def spurious(self, sigma: Float[Array, "r2 r2"]) -> Float[Array, "d d"]:
        """``V* Sigma V*^T``."""
        V = self.spurious_basis
        return times(times(V, sigma), V.T)

    def target(self, sigma: Float[Array, "r2 r2"]) -> Array:
        """The total signal of an environment."""
        return self.invariant + self.spurious(sigma)

    @property
    def mean_target(self) -> Array:
        """``A_star + E A_e``, the target of pooled data."""
        return self.target(self.law.mean)

    @property
    def right_basis(self) -> Float[Array, "n2 r1"]:
        """The basis of the columns of the invariant part; that of its rows unless the targets are rectangular."""
        return self.invariant_basis

    @property
    def right_spurious_basis(self) -> Float[Array, "n2 r2"]:
        """The basis of the columns of the spurious part; that of its rows unless the targets are rectangular."""
        return self.spurious_basis

    def signal_block(self, product: Array) -> Float[Array, "r1 r1"]:
        """``U*^T A U*``."""
        return self.invariant_basis.T @ product @ self.right_basis

    def spurious_block(self, product: Array) -> Float[Array, "r2 r2"]:
        """``V*^T A V*``."""
        return self.spurious_basis.T @ product @ self.right_spurious_basis

    def rotated(self, left: Float[Array, "q n1"], right: Float[Array, "p n2"]) -> Environments:
        """The same environments in other coordinates; all targets must lie in the row spaces of both maps."""
        U, V = left @ self.invariant_basis, left @ self.spurious_basis
        return unchecked(
            Environments, invariant_basis=U, spurious_basis=V, law=self.law, invariant_values=self.invariant_values
        )

    @staticmethod
    def diagonal(dimension: int, values: Any = (1.0,)) -> Environments:
        """One environment whose truth is ``diag(values, 0, 0, ...)``: plain recovery, as in Xiong 2024.

        >>> np.diag(Environments.diagonal(3, [2.0, 1.0]).invariant).tolist()
        [2.0, 1.0, 0.0]
        """
        d, x = errors.integer("dimension", dimension, least=1), errors.array("values", values, ndim=1)
        if not 1 <= x.size <= d:
            raise GyrostatError(f"values must list between 1 and dimension={d} numbers; got {x.size}.")
        return Environments(np.eye(d, x.size), values=x)


class VectorEnvironments(Environments):
    """Targets that are vectors: coefficients ``beta_e = beta_star + sum_j s_j e_j`` over chosen spurious coordinates.

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

    def arguments(self) -> Mapping[str, Any]:
        where = np.argmax(np.asarray(self.spurious_basis), axis=0).tolist()
        return {"coefficients": self.invariant, "spurious_coordinates": where, "law": self.law}

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.invariant_basis.shape[0],)

    @property
    def invariant(self) -> Float[Array, " p"]:
        return self.invariant_basis @ self.invariant_values

    def spurious(self, sigma: Float[Array, "r2 r2"]) -> Float[Array, " p"]:
        return self.spurious_basis @ jnp.diagonal(sigma)

    def signal_block(self, product: Float[Array, " p"]) -> Float[Array, "r1 r1"]:
        return self.invariant_basis.T @ (product[:, None] * self.invariant_basis)

    def spurious_block(self, product: Float[Array, " p"]) -> Float[Array, "r2 r2"]:
        return self.spurious_basis.T @ (product[:, None] * self.spurious_basis)


class RectangularEnvironments(Environments):
    """``A_e = U* diag(values) W*^T + V* Sigma_e Z*^T``, n1 x n2 targets with separate left and right bases.

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

    def arguments(self) -> Mapping[str, Any]:
        return {
            "left": self.invariant_basis,
            "right": self.right,
            "spurious_left": self.spurious_basis,
            "spurious_right": self.right_spurious,
            "law": self.law,
            "values": self.invariant_values,
        }

    @staticmethod
    def of(matrix: Any) -> RectangularEnvironments:
        """One environment whose truth is this matrix, for its recovery or completion.

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


class Observed(Environments):
    """Environments whose truth is unknown, for data that bring their own responses (:class:`DenseData`).

    Whatever compares with the truth (``signal``, ``spurious``, ``distance``, ...) is NaN.

    ``shape`` is the shape of a target, ``count`` the number of environments, and ``weights`` are theirs (equal by default).

    >>> Observed((20,), 2).shape, Observed((20,), 2).knows_truth
    ((20,), False)
    """

    size: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, shape: tuple[int, ...], count: int, weights: Any = None):
        if len(shape) not in (1, 2):
            raise GyrostatError(f"shape must be (p,) for vectors or (n1, n2) for matrices; got {shape}.")
        n = errors.integer("count", count, least=1)
        super().__init__(np.zeros((shape[0], 0)), law=Finite(np.zeros((n, 0, 0)), weights))
        self.size = tuple(shape)

    def arguments(self) -> Mapping[str, Any]:
        law: Any = self.law
        return {"shape": self.size, "count": law.count, "weights": law.weights}

    @property
    def knows_truth(self) -> bool:
        return False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    @property
    def right_basis(self) -> Float[Array, "n2 0"]:
        return jnp.zeros((self.size[-1], 0))

    @property
    def right_spurious_basis(self) -> Float[Array, "n2 0"]:
        return jnp.zeros((self.size[-1], 0))

    def signal_block(self, product: Array) -> Float[Array, "0 0"]:
        return jnp.zeros((0, 0))

    def spurious_block(self, product: Array) -> Float[Array, "0 0"]:
        return jnp.zeros((0, 0))

    def target(self, sigma: Float[Array, "r2 r2"]) -> Array:
        return jnp.full(self.size, jnp.nan, dtype=float)

    @property
    def invariant(self) -> Array:
        return jnp.full(self.size, jnp.nan, dtype=float)


def unchecked(kind: type[AnyEnvironments], **fields: Any) -> AnyEnvironments:
    """Environments from traced arrays, whose orthonormality cannot be checked while tracing."""
    environments = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(environments, name, value)
    return environments


def checked_law(law: Any) -> Law:
    """``law`` itself, or an error if it is not a :class:`Law`."""
    return errors.instance("law", law, Law, "TwoPoint, Uniform, Gaussian, Finite, Sampler or another Law")
