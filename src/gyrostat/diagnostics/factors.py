"""Diagnostics of two factors (Xiong 2024): imbalance, the blocks U, V, J, K, row norms, principal angles."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from gyrostat.diagnostics.base import Snapshot, diagnostic
from gyrostat.diagnostics.signal_and_loss import frobenius_norm
from gyrostat.errors import GyrostatError
from gyrostat.models import DeepLinear


def factors(snapshot: Snapshot) -> tuple[Array, Array]:
    """F and G with A = F G^T; for U U^T both are U."""
    F, G = snapshot.model.factor(snapshot.params), snapshot.model.cofactor(snapshot.params)
    if (G is None and len(snapshot.params) > 1) or isinstance(snapshot.model, DeepLinear):
        raise GyrostatError(
            f"{type(snapshot.model).__name__} is not a product F G^T: record diagnostics of the product, "
            "or use Asymmetric or Symmetric."
        )
    return F, F if G is None else G


def blocks(snapshot: Snapshot) -> tuple[Array, Array, Array, Array]:
    """U and V (r x k), the factors on the invariant subspace, and J and K, the factors outside it."""
    F, G = factors(snapshot)
    left, right = snapshot.environments.invariant_basis, snapshot.environments.right_basis
    U, V = left.T @ F, right.T @ G
    return U, V, F - left @ U, G - right @ V


def _imbalance(snapshot: Snapshot) -> Float[Array, "k k"]:
    F, G = factors(snapshot)
    return F.T @ F - G.T @ G


@diagnostic(rotates=True, one_means="F^T F and G^T G differ by a matrix of Frobenius norm 1")
def imbalance(snapshot: Snapshot) -> Array:
    """||F^T F - G^T G||_F."""
    return frobenius_norm(_imbalance(snapshot))


@diagnostic("component", rotates=True, one_means="an eigenvalue of 1 of F^T F - G^T G")
def imbalance_values(snapshot: Snapshot) -> Array:
    """The eigenvalues of F^T F - G^T G, smallest first: (D.6) of Xiong 2024 bounds them."""
    return jnp.linalg.eigvalsh(_imbalance(snapshot))


@diagnostic("component", "partner", rotates=True, one_means="an entry of 1 of F^T F - G^T G")
def imbalance_matrix(snapshot: Snapshot) -> Array:
    """F^T F - G^T G itself; its change since the start is the drift."""
    return _imbalance(snapshot)


@diagnostic("block", rotates=True, one_means="a block of operator norm 1", needs_truth=True)
def block_norms(snapshot: Snapshot) -> Array:
    """The operator norms of U, V, J and K."""
    return jnp.stack([jnp.linalg.norm(x, 2) for x in blocks(snapshot)])


@diagnostic("block", rotates=True, one_means="a block of the error of Frobenius norm 1", needs_truth=True)
def block_errors(snapshot: Snapshot) -> Array:
    """The Frobenius norms of the error's four blocks: U V^T - Sigma, J V^T, U K^T and J K^T (Xiong 2024, eq. 4.3)."""
    U, V, J, K = blocks(snapshot)
    signal_error = U @ V.T - jnp.diag(snapshot.environments.invariant_values)
    return jnp.stack([frobenius_norm(x) for x in (signal_error, J @ V.T, U @ K.T, J @ K.T)])


@diagnostic("component", rotates=True, one_means="a singular value of 1 of F")
def factor_values(snapshot: Snapshot) -> Array:
    """The singular values of F, largest first."""
    return jnp.linalg.svd(factors(snapshot)[0], compute_uv=False)


@diagnostic("component", rotates=True, one_means="a singular value of 1 of G")
def cofactor_values(snapshot: Snapshot) -> Array:
    """The singular values of G, largest first."""
    return jnp.linalg.svd(factors(snapshot)[1], compute_uv=False)


@diagnostic("invariant_direction", rotates=True, one_means="the subspaces share this direction", needs_truth=True)
def principal_cosines(snapshot: Snapshot) -> Array:
    """Cosines of the principal angles between the truth's left subspace and the product's leading one of its rank."""
    basis = snapshot.environments.invariant_basis
    U, _, _ = jnp.linalg.svd(snapshot.product, full_matrices=False)
    return jnp.linalg.svd(basis.T @ U[:, : basis.shape[1]], compute_uv=False)


@diagnostic(rotates=True, one_means="rows outside the signal with squares that sum to 1", needs_truth=True)
def potential(snapshot: Snapshot) -> Array:
    """A_t of section 3 of Xiong 2024: the sum of squares of the rows of F outside the signal."""
    J = blocks(snapshot)[2]
    return jnp.sum(J * J)


@diagnostic("row", one_means="a row of norm 1")
def row_norms(snapshot: Snapshot) -> Array:
    """Squared norms ||x_i||^2 of the rows of F, in the coordinates of the target."""
    F, _ = factors(snapshot)
    return jnp.sum(F * F, axis=1)


@diagnostic("row", "component", one_means="an entry of 1 of F")
def left_factor(snapshot: Snapshot) -> Array:
    """F itself."""
    return factors(snapshot)[0]


@diagnostic("column", "component", one_means="an entry of 1 of G")
def right_factor(snapshot: Snapshot) -> Array:
    """G itself (F for a symmetric model)."""
    return factors(snapshot)[1]
