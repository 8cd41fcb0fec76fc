"""Diagnostics of two factors (Xiong 2024): imbalance, the factors and their values, rows outside the signal."""

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


def _imbalance(snapshot: Snapshot) -> Float[Array, "k k"]:
    F, G = factors(snapshot)
    return F.T @ F - G.T @ G


@diagnostic(rotates=True, one_means="F^T F and G^T G differ by a matrix of Frobenius norm 1")
def imbalance(snapshot: Snapshot) -> Array:
    """||F^T F - G^T G||_F."""
    return frobenius_norm(_imbalance(snapshot))


@diagnostic("component", "partner", rotates=True, one_means="an entry of 1 of F^T F - G^T G")
def imbalance_matrix(snapshot: Snapshot) -> Array:
    """F^T F - G^T G itself; its change since the start is the drift."""
    return _imbalance(snapshot)


@diagnostic("component", rotates=True, one_means="a singular value of 1 of F")
def factor_values(snapshot: Snapshot) -> Array:
    """The singular values of F, largest first."""
    return jnp.linalg.svd(factors(snapshot)[0], compute_uv=False)


@diagnostic(rotates=True, one_means="rows outside the signal with squares that sum to 1", needs_truth=True)
def potential(snapshot: Snapshot) -> Array:
    """A_t of section 3 of Xiong 2024: the sum of squares of the rows of F outside the signal."""
    F, U_star = factors(snapshot)[0], snapshot.environments.invariant_basis
    J = F - U_star @ (U_star.T @ F)
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
