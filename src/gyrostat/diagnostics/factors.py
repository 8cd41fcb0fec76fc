"""Diagnostics of two factors (Xiong 2024): imbalance, the blocks U, V, J, K, row norms, principal angles."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from gyrostat.diagnostics.signals import View, diagnostic
from gyrostat.errors import GyrostatError
from gyrostat.models import DeepLinear


def factors(view: View) -> tuple[Array, Array]:
    """F and G with A = F G^T; for U U^T both are U."""
    F, G = view.model.factor(view.params), view.model.cofactor(view.params)
    if (G is None and len(view.params) > 1) or isinstance(view.model, DeepLinear):
        raise GyrostatError(
            f"{type(view.model).__name__} is not a product F G^T: record diagnostics of the product, "
            "or use Asymmetric or Symmetric."
        )
    return F, F if G is None else G


def blocks(view: View) -> tuple[Array, Array, Array, Array]:
    """U and V (r x k), the factors on the invariant subspace, and J and K, what they have outside it."""
    F, G = factors(view)
    left, right = view.environments.invariant_basis, view.environments.right_basis
    U, V = left.T @ F, right.T @ G
    return U, V, F - left @ U, G - right @ V


def _imbalance(view: View) -> Float[Array, "k k"]:
    F, G = factors(view)
    return F.T @ F - G.T @ G


def _norm(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x * x))


@diagnostic(rotates=True)
def imbalance(view: View) -> Array:
    """||F^T F - G^T G||_F."""
    return _norm(_imbalance(view))


@diagnostic("component", rotates=True)
def imbalance_values(view: View) -> Array:
    """The eigenvalues of F^T F - G^T G, smallest first: (D.6) of Xiong 2024 bounds them."""
    return jnp.linalg.eigvalsh(_imbalance(view))


@diagnostic("component", "partner", rotates=True)
def imbalance_matrix(view: View) -> Array:
    """F^T F - G^T G itself; its change since the start is the drift."""
    return _imbalance(view)


@diagnostic("block", rotates=True)
def block_norms(view: View) -> Array:
    """The operator norms of U, V, J and K."""
    return jnp.stack([jnp.linalg.norm(x, 2) for x in blocks(view)])


@diagnostic("block", rotates=True)
def block_errors(view: View) -> Array:
    """The Frobenius norms of the error's four blocks: U V^T - Sigma, J V^T, U K^T and J K^T (Xiong 2024, eq. 4.3)."""
    U, V, J, K = blocks(view)
    return jnp.stack(
        [_norm(U @ V.T - jnp.diag(view.environments.invariant_values)), _norm(J @ V.T), _norm(U @ K.T), _norm(J @ K.T)]
    )


@diagnostic("component", rotates=True)
def factor_values(view: View) -> Array:
    """The singular values of F, largest first."""
    return jnp.linalg.svd(factors(view)[0], compute_uv=False)


@diagnostic("component", rotates=True)
def cofactor_values(view: View) -> Array:
    """The singular values of G, largest first."""
    return jnp.linalg.svd(factors(view)[1], compute_uv=False)


@diagnostic("invariant_direction", rotates=True)
def principal_cosines(view: View) -> Array:
    """Cosines of the principal angles between the truth's left subspace and the product's leading one of its rank."""
    basis = view.environments.invariant_basis
    U, _, _ = jnp.linalg.svd(view.product, full_matrices=False)
    return jnp.linalg.svd(basis.T @ U[:, : basis.shape[1]], compute_uv=False)


@diagnostic(rotates=True)
def potential(view: View) -> Array:
    """A_t of section 3 of Xiong 2024: the sum of squares of the rows of F outside the signal."""
    J = blocks(view)[2]
    return jnp.sum(J * J)


@diagnostic("row")
def row_norms(view: View) -> Array:
    """Squared norms ||x_i||^2 of the rows of F, in the coordinates of the target."""
    F, _ = factors(view)
    return jnp.sum(F * F, axis=1)


@diagnostic("row", "component")
def left_factor(view: View) -> Array:
    """F itself."""
    return factors(view)[0]


@diagnostic("column", "component")
def right_factor(view: View) -> Array:
    """G itself (F for a symmetric model)."""
    return factors(view)[1]
