"""Environments with a given truth: A_star, the spurious subspace, and the law of the spurious part on it.

Targets are symmetric or rectangular matrices, vectors or arrays; :class:`Observed` is for data whose truth is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.laws import Absent, Finite, Law, law_of_run, unchecked
from gyrostat.environments.subspaces import DEPENDENT, checked_features, checked_targets, generic_sum, gram_schmidt
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.jax_tools.small_products import times
from gyrostat.typing import Leaf


class Environments(ReadableModule):
    """``A_e = U* diag(values) U*^T + V* Sigma_e V*^T`` (Xu 2024, Assumption 1, and section D for unequal values).

    Both bases have orthonormal columns; they may overlap with each other. Without a spurious basis this is plain
    recovery of one matrix.

    Parameters
    ----------
    invariant_basis
        U*, with orthonormal columns.
    spurious_basis
        V*, with orthonormal columns; None for no spurious part.
    law
        The law of Sigma_e over environments; by default there is no spurious part.
    values
        The eigenvalues (singular values) of the invariant part; all 1 by default.

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
        V = np.zeros((len(U), 0)) if spurious_basis is None else errors.orthonormal("spurious_basis", spurious_basis)
        if len(V) != len(U):
            raise GyrostatError(f"spurious_basis has {len(V)} rows, invariant_basis has {len(U)}: make them equal.")
        self.invariant_basis, self.spurious_basis = U, V
        self.law = law_of_rank(law, V.shape[1], "spurious_basis has {} columns")
        self.invariant_values = values_of_rank(values, U.shape[1])

    def arguments(self) -> Mapping[str, Any] | None:
        return {
            "invariant_basis": self.invariant_basis,
            "spurious_basis": self.spurious_basis,
            "law": self.law,
            "values": self.invariant_values,
        }

    def implied(self) -> Mapping[str, Any]:
        absent = {"law": Absent(), "spurious_basis": np.zeros((len(self.invariant_basis), 0))}
        return {**absent, "values": np.ones(self.invariant_basis.shape[1])}

    def draw(self, key: PRNGKeyArray) -> Environments:
        """These environments themselves, which are given and not random; with the law of one run if their law is random."""
        law = law_of_run(self.law, key)
        return self if law is self.law else unchecked(type(self), **{**vars(self), "law": law})

    # --- targets -------------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a target."""
        return self.invariant_basis.shape[0], self.right_basis.shape[0]

    @property
    def right_basis(self) -> Float[Array, "n2 r1"]:
        """The basis of the columns of the invariant part; the same as that of its rows unless the targets are rectangular."""
        return self.invariant_basis

    @property
    def right_spurious_basis(self) -> Float[Array, "n2 r2"]:
        """The basis of the columns of the spurious part; the same as that of its rows unless the targets are rectangular."""
        return self.spurious_basis

    @property
    def invariant(self) -> Array:
        """A_star."""
        return times(self.invariant_basis * self.invariant_values, self.right_basis.T)

    def spurious(self, sigma: Float[Array, "r2 r2"]) -> Array:
        """``V* Sigma V*^T``."""
        return times(times(self.spurious_basis, sigma), self.right_spurious_basis.T)

    def target(self, sigma: Float[Array, "r2 r2"]) -> Array:
        """The total signal of an environment."""
        return self.invariant + self.spurious(sigma)

    @property
    def mean_target(self) -> Array:
        """``E A_e = A_star + V* E Sigma_e V*^T``, the target of pooled data."""
        return self.target(self.law.mean)

    # --- what diagnostics look at --------------------------------------------------------------------------------------------

    @property
    def knows_truth(self) -> bool:
        """Whether the invariant and the spurious part are known. If not, diagnostics that compare with them are NaN."""
        return True

    def signal_block(self, product: Array) -> Float[Array, "r1 r1"]:
        """``U*^T A U*``."""
        return self.invariant_basis.T @ product @ self.right_basis

    def spurious_block(self, product: Array) -> Float[Array, "r2 r2"]:
        """``V*^T A V*``."""
        return self.spurious_basis.T @ product @ self.right_spurious_basis

    @property
    def overlap(self) -> float:
        """The largest cosine between a direction of the invariant and one of the spurious subspace (epsilon_1).

        >>> Environments(np.eye(3, 1), np.eye(3, 1, k=-1), Finite([1.0])).overlap
        0.0
        """
        sides = (self.invariant_basis, self.spurious_basis), (self.right_basis, self.right_spurious_basis)
        cosines = [np.linalg.norm(np.asarray(U).T @ np.asarray(V), 2) for U, V in sides if U.shape[1] and V.shape[1]]
        return float(min(max(cosines, default=0.0), 1.0))

    def rotated(self, left: Float[Array, "q n1"], right: Float[Array, "p n2"]) -> Environments:
        """The same environments in other coordinates; all targets must lie in the row spaces of both maps."""
        return unchecked(type(self), **{**vars(self), **self._rotated_bases(left, right)})

    def _rotated_bases(self, left: Array, right: Array) -> dict[str, Array]:
        return {"invariant_basis": left @ self.invariant_basis, "spurious_basis": left @ self.spurious_basis}

    # --- other ways to say them ----------------------------------------------------------------------------------------------

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

    @staticmethod
    def from_matrices(A_star: Any, matrices: Any, *, weights: Any = None, tolerance: float = 1e-10) -> Environments:
        """Environments with your own targets A_1, ..., A_K; the two subspaces are found from them.

        The invariant basis U* holds the eigenvectors of ``A_star`` with an eigenvalue that is not zero. The spurious basis
        V* spans the columns of all ``A_e - A_star``, and ``Sigma_e = V*^T (A_e - A_star) V*``. Every Sigma_e is diagonal, if
        the differences commute. Targets of deficient rank, equal targets (then nothing is spurious) and subspaces that
        overlap are all allowed.

        The recorded variables then have these meanings: ``signal`` is ``||U*^T A U*||_F / ||A_star||_F``, and ``spurious``
        is ``||V*^T A V*||_F / ||E Sigma||_F``, where the expectation is weighted by ``weights`` (if E Sigma is zero, that
        is, if A_star is the mean of the targets, it is divided by sqrt(r2) instead). If the subspaces overlap
        (:attr:`overlap`), each of the two also includes the part of the other signal that lies in its subspace: at A =
        A_star, ``spurious`` is ``||V*^T A_star V*||_F / ||E Sigma||_F`` and not zero. ``distance`` is ``||A - A_star||_F``
        in every case.

        Args:
            A_star: what is true in every environment, a symmetric d x d matrix that is not zero.
            matrices: the K targets A_e, each symmetric and d x d: a list, or an array (K, d, d).
            weights: the probability of each environment; equal ones by default.
            tolerance: eigenvalues and differences below this share of the largest one count as zero.

        >>> A_star = np.diag([2.0, 0.0, 0.0])
        >>> environments = Environments.from_matrices(A_star, [np.diag([2.0, -5.0, 0.0]), np.diag([2.0, 7.0, 0.0])])
        >>> environments.law.values.ravel().tolist(), environments.overlap
        ([-5.0, 7.0], 0.0)
        """
        A, targets, share = checked_targets(A_star, matrices, tolerance)
        both = np.stack([A, *targets])
        size = np.abs(both).max()
        if A.shape[0] != A.shape[1] or not np.allclose(both, np.swapaxes(both, 1, 2), rtol=0, atol=1e-9 * size):
            raise GyrostatError(
                f"A_star and matrices must be symmetric; got shape {A.shape}"
                f"{' and entries that differ across the diagonal' if A.shape[0] == A.shape[1] else ''}: "
                "symmetrise them with (A + A.T) / 2, or use RectangularEnvironments.from_matrices."
            )
        both = (both + np.swapaxes(both, 1, 2)) / 2
        values, U = np.linalg.eigh(both[0])
        kept = np.abs(values) > share * np.abs(values).max()

        differences = both[1:] - both[0]
        span, sizes, _ = np.linalg.svd(np.concatenate(list(differences), axis=1), full_matrices=False)
        V = span[:, sizes > share * size]
        # The eigenvectors of a generic sum of matrices that commute are eigenvectors of each of them.
        V = V @ np.linalg.eigh(V.T @ generic_sum(differences) @ V)[1]
        sigmas = V.T @ differences @ V
        sigmas = (sigmas + np.swapaxes(sigmas, 1, 2)) / 2
        off = sigmas * (1 - np.eye(V.shape[1]))
        if np.abs(off).max(initial=0.0) <= max(1e-9 * np.abs(sigmas).max(initial=0.0), share * size):
            sigmas = sigmas - off
        return Environments(U[:, kept], V, Finite(sigmas, weights), values=values[kept])

    @staticmethod
    def from_features(features: Any, spurious_features: Any = None, law: Law | None = None) -> Environments:
        """``A_e = sum_j a_j a_j^T + sum_kl Sigma_kl b_k b_l^T`` for given feature vectors (Xu 2024, Example 1).

        The features need be neither orthogonal nor of length one. Each of the two bases is made orthonormal separately. The
        targets are still those of the formula: A_star gets the eigenvalues of ``sum_j a_j a_j^T``, and the law is expressed
        in the new spurious basis (Gram-Schmidt in the given order), so its matrices are diagonal only if the b_k are
        orthogonal. Features that depend linearly on the others lower the rank. An overlap between the a_j and the b_k is not
        removed: see :attr:`overlap`, and :meth:`from_matrices` for the meaning of ``signal`` and ``spurious`` in that case.

        Args:
            features: the a_j as the columns of a (d, r1) array, or one vector of length d.
            spurious_features: the b_k as the columns of a (d, r2) array, or one vector; None for plain recovery.
            law: the law of Sigma_e (r2 x r2), for example ``TwoPoint(mean=1.0, spread=6.0, rank=r2)``.

        >>> from gyrostat import TwoPoint
        >>> environments = Environments.from_features([2.0, 0.0, 0.0], [0.6, 0.8, 0.0], TwoPoint(spread=6.0))
        >>> environments.invariant_values.tolist(), round(environments.overlap, 3)
        ([4.0], 0.6)
        """
        a = checked_features("features", features)
        U, lengths, _ = np.linalg.svd(a, full_matrices=False)
        kept = lengths > DEPENDENT * lengths[0]
        U, values = U[:, kept], lengths[kept] ** 2
        if spurious_features is None:
            return Environments(U, law=law, values=values)
        b = checked_features("spurious_features", spurious_features)
        if len(b) != len(a):
            raise GyrostatError(f"spurious_features has {len(b)} rows, features has {len(a)}: make them equal.")
        V = gram_schmidt(b)
        law = law_of_rank(law, b.shape[1], "there are {} spurious features").in_basis(V.T @ b)
        return Environments(U, V, law, values=values)


class RectangularEnvironments(Environments):
    """``A_e = U* diag(values) W*^T + V* Sigma_e Z*^T``, n1 x n2 targets with separate left and right bases.

    Without spurious bases this is plain recovery of one matrix (Xiong 2024, setting 2).

    Parameters
    ----------
    left
        U*, with orthonormal columns.
    right
        W*, with orthonormal columns.
    spurious_left
        V*, with orthonormal columns.
    spurious_right
        Z*, with orthonormal columns.
    law
        The law of Sigma_e over environments; by default there is no spurious part.
    values
        The eigenvalues (singular values) of the invariant part; all 1 by default.

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
        W = errors.orthonormal("right", right)
        if W.shape[1] != self.invariant_basis.shape[1]:
            raise GyrostatError(
                f"right has {W.shape[1]} columns, left has {self.invariant_basis.shape[1]}: make them equal."
            )
        shape = len(W), self.law.rank
        Z = np.zeros((len(W), 0)) if spurious_right is None else errors.orthonormal("spurious_right", spurious_right)
        if Z.shape != shape:
            raise GyrostatError(f"spurious_right must have shape {shape} to go with right and law; got {Z.shape}.")
        self.right, self.right_spurious = W, Z

    def arguments(self) -> Mapping[str, Any]:
        return {
            "left": self.invariant_basis,
            "right": self.right,
            "spurious_left": self.spurious_basis,
            "spurious_right": self.right_spurious,
            "law": self.law,
            "values": self.invariant_values,
        }

    def implied(self) -> Mapping[str, Any]:
        absent = {"spurious_left": self.spurious_basis[:, :0], "spurious_right": self.right_spurious[:, :0]}
        return {**super().implied(), **absent}

    @property
    def right_basis(self) -> Float[Array, "n2 r1"]:
        return self.right

    @property
    def right_spurious_basis(self) -> Float[Array, "n2 r2"]:
        return self.right_spurious

    def _rotated_bases(self, left: Array, right: Array) -> dict[str, Array]:
        sides = {"right": right @ self.right, "right_spurious": right @ self.right_spurious}
        return {**super()._rotated_bases(left, right), **sides}

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

    @staticmethod
    def from_matrices(
        A_star: Any, matrices: Any, *, weights: Any = None, tolerance: float = 1e-10
    ) -> RectangularEnvironments:
        """Environments with your own n1 x n2 targets, as :meth:`Environments.from_matrices` for symmetric ones.

        The invariant bases are the singular vectors of ``A_star``. The differences ``A_e - A_star`` must have common left
        and right singular vectors, which become the spurious bases: the same patterns in every environment, with strengths
        of their own, so that every Sigma_e is diagonal. (This always holds if there is only one pattern, or if there are two
        environments and one is A_star itself.) Other differences are refused.

        Args:
            A_star: what is true in every environment, an n1 x n2 matrix that is not zero.
            matrices: the K targets A_e: a list, or an array (K, n1, n2).
            weights: the probability of each environment; equal ones by default.
            tolerance: singular values and differences below this share of the largest one count as zero.

        >>> A_star, pattern = np.eye(2, 3), np.outer([0.0, 1.0], [0.0, 0.0, 1.0])
        >>> environments = RectangularEnvironments.from_matrices(A_star, [A_star - 5 * pattern, A_star + 7 * pattern])
        >>> np.abs(environments.law.values.ravel()).round(9).tolist()
        [5.0, 7.0]
        """
        A, targets, share = checked_targets(A_star, matrices, tolerance)
        U, s, Wt = np.linalg.svd(A, full_matrices=False)
        rank, smallest = int((s > share * s[0]).sum()), share * np.abs(np.stack([A, *targets])).max()

        differences = targets - A
        V, sizes, Zt = np.linalg.svd(generic_sum(differences), full_matrices=False)
        V, Z = V[:, sizes > smallest], Zt[sizes > smallest].T
        strengths = np.einsum("ik,eij,jk->ek", V, differences, Z)
        rest = differences - np.einsum("ek,ik,jk->eij", strengths, V, Z)
        if np.abs(rest).max() > max(1e-8 * np.abs(differences).max(), smallest):
            raise GyrostatError(
                "matrices minus A_star have no common left and right singular vectors, which rectangular environments need: "
                "give targets A_star + sum_k s_ek v_k z_k^T with the same orthonormal v_k and z_k in every environment."
            )
        return RectangularEnvironments(U[:, :rank], Wt[:rank].T, V, Z, Finite(strengths, weights), values=s[:rank])


class _Coordinates(Environments):
    """Targets without rows and columns: ``A_e = sum_i values_i u_i + sum_j Sigma_jj v_j``, arrays u_i and v_j flattened."""

    size: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, size: tuple[int, ...], U: np.ndarray, V: np.ndarray, law: Law | None, values: np.ndarray):
        super().__init__(U, V, law, values=values)
        self.size = size

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    @property
    def invariant(self) -> Array:
        return jnp.reshape(self.invariant_basis @ self.invariant_values, self.size)

    def spurious(self, sigma: Float[Array, "r2 r2"]) -> Array:
        return jnp.reshape(self.spurious_basis @ jnp.diagonal(sigma), self.size)

    def signal_block(self, product: Array) -> Float[Array, "r1 r1"]:
        return jnp.diag(self.invariant_basis.T @ jnp.ravel(product))

    def spurious_block(self, product: Array) -> Float[Array, "r2 r2"]:
        return jnp.diag(self.spurious_basis.T @ jnp.ravel(product))


class VectorEnvironments(_Coordinates):
    """Targets that are vectors: coefficients ``beta_e = beta_star + sum_j s_j e_j`` over chosen spurious coordinates.

    Parameters
    ----------
    coefficients
        beta_star.
    spurious_coordinates
        The coordinates that vary.
    law
        The law of the strengths s_j.

    >>> from gyrostat import TwoPoint
    >>> VectorEnvironments([1.0, -1.0, 0.0], [2], TwoPoint(mean=1.0, spread=6.0)).mean_target.tolist()
    [1.0, -1.0, 1.0]
    """

    def __init__(self, coefficients: Any, spurious_coordinates: Any = (), law: Law | None = None):
        beta = errors.array("coefficients", coefficients, ndim=1)
        listed = np.asarray(spurious_coordinates).reshape(-1).tolist()
        where = [errors.integer("spurious_coordinates", i, most=errors.MOST_SIDE) for i in listed]
        if len(set(where)) < len(where) or max(where, default=0) >= beta.size:
            raise GyrostatError(
                f"spurious_coordinates must be distinct and between 0 and {beta.size - 1}; got {where}."
            )
        if beta[where].any():
            raise GyrostatError(
                "coefficients must be zero on spurious_coordinates: put their mean into the law instead."
            )
        if not beta.any():
            raise GyrostatError("coefficients are all zero: there is no invariant signal to recover.")
        axes = np.eye(beta.size)
        super().__init__(beta.shape, axes[:, beta != 0], axes[:, where], law, beta[beta != 0])
        if law_of_run(self.law, jax.random.key(0)).off_diagonal > 0:
            raise GyrostatError("law must be diagonal for vectors: coordinates cannot interact.")

    def arguments(self) -> Mapping[str, Any]:
        where = np.argmax(np.asarray(self.spurious_basis), axis=0).tolist()
        return {"coefficients": self.invariant, "spurious_coordinates": where, "law": self.law}


class ArrayEnvironments(_Coordinates):
    """Targets that are arrays of any shape: ``A_e = A_star + S_e``, for tensors and outputs of networks.

    The diagnostic ``signal`` is then the coordinate of the product along A_star, divided by the norm of A_star. ``spurious``
    is the norm of its coordinates in the span of the S_e, divided by that of the mean of the S_e.

    Parameters
    ----------
    invariant
        A_star, an array that is not zero.
    spurious
        S_e for every environment: an array with one more dimension, the environments first. Without it there is one
        environment with the target A_star.
    weights
        How often each environment is drawn; equally often by default.

    >>> import numpy as np
    >>> tensor = np.zeros((2, 3, 4)); tensor[0, 0, 0] = 2.0
    >>> other = np.zeros((2, 3, 4)); other[1, 1, 1] = 1.0
    >>> environments = ArrayEnvironments(tensor, [5 * other, -3 * other])
    >>> environments.shape, float(environments.mean_target[1, 1, 1])
    ((2, 3, 4), 1.0)
    """

    # For the text alone: the bases hold them with rounding errors.
    array: Leaf
    differences: Leaf

    def __init__(self, invariant: Any, spurious: Any = None, weights: Any = None):
        A = errors.array("invariant", invariant, ndim=tuple(range(1, 9)))
        if not A.any():
            raise GyrostatError("invariant is zero: there is no invariant signal to recover.")
        if spurious is None and weights is not None:
            raise GyrostatError("weights are those of spurious, which is missing: leave weights out.")
        S = np.zeros((1, *A.shape)) if spurious is None else errors.array("spurious", spurious, ndim=A.ndim + 1)
        if S.shape[1:] != A.shape or len(S) == 0:
            raise GyrostatError(
                f"spurious must list an array of shape {A.shape} for every environment; got shape {S.shape}."
            )
        flat = S.reshape(len(S), -1)
        _, strengths, axes = np.linalg.svd(flat, full_matrices=False)
        V = axes[strengths > 1e-12 * strengths.max()].T
        norm = np.linalg.norm(A)
        super().__init__(A.shape, A.reshape(-1, 1) / norm, V, Finite(flat @ V, weights), np.array([norm]))
        self.array, self.differences = A, S

    def arguments(self) -> Mapping[str, Any]:
        law: Any = self.law
        return {"invariant": self.array, "spurious": self.differences, "weights": law.weights}

    def implied(self) -> Mapping[str, Any]:
        return {"spurious": np.zeros((1, *self.size)), **self.law.implied()}


class Observed(Environments):
    """Environments whose truth is unknown, for data that bring their own responses (:class:`DenseData`).

    Everything that compares with the truth (``signal``, ``spurious``, ``distance``, ...) is NaN.

    Parameters
    ----------
    shape
        The shape of a target.
    count
        The number of environments.
    weights
        How often each environment is drawn; equally often by default.

    >>> Observed((20,), 2).shape, Observed((20,), 2).knows_truth
    ((20,), False)
    """

    size: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, shape: tuple[int, ...], count: int, weights: Any = None):
        if not isinstance(shape, list | tuple) or len(shape) == 0:
            raise GyrostatError(
                f"shape must be (p,) for vectors, (n1, n2) for matrices, or longer; got {errors.shown(shape)}."
            )
        self.size = tuple(errors.size("shape", side) for side in shape)
        super().__init__(
            np.zeros((self.size[0], 0)), law=Finite(np.zeros((errors.size("count", count), 0, 0)), weights)
        )

    def arguments(self) -> Mapping[str, Any]:
        law: Any = self.law
        return {"shape": self.size, "count": law.count, "weights": law.weights}

    def implied(self) -> Mapping[str, Any]:
        return self.law.implied()

    @property
    def knows_truth(self) -> bool:
        return False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    @property
    def right_basis(self) -> Float[Array, "n2 0"]:
        return jnp.zeros((self.size[-1], 0))

    right_spurious_basis = right_basis

    @property
    def invariant(self) -> Array:
        return jnp.full(self.size, jnp.nan, dtype=float)

    def target(self, sigma: Float[Array, "0 0"]) -> Array:
        return self.invariant

    def signal_block(self, product: Array) -> Float[Array, "0 0"]:
        return jnp.zeros((0, 0))

    spurious_block = signal_block


# --- arguments of constructors -----------------------------------------------------------------------------------------------


def law_of_rank(law: Any, rank: int | None = None, because: str = "") -> Law:
    """``law`` itself, or :class:`Absent` for None; an error if it is not a law, or not of this rank (None: of any)."""
    law = Absent() if law is None else law
    errors.instance("law", law, Law, "TwoPoint, Uniform, Gaussian, Finite, Sampler or another Law")
    if rank is not None and law.rank != rank:
        raise GyrostatError(f"law has rank {law.rank} but {because.format(rank)}: give the law rank={rank}.")
    return law


def values_of_rank(values: Any, rank: int) -> np.ndarray:
    """The eigenvalues (singular values) of an invariant part of this rank: all 1 by default."""
    x = np.ones(rank) if values is None else errors.array("values", values, ndim=1)
    if x.size != rank:
        raise GyrostatError(f"values must have one entry for each invariant direction, rank={rank}; got {x.size}.")
    return x
