"""Diagnostics of any run: invariant and spurious signal, singular values, distances, losses.

R, Q and E are the parts of the factor in Xu 2024, (17) and (18).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from gyrostat.diagnostics.base import Snapshot, diagnostic
from gyrostat.environments.laws import Environment
from gyrostat.measurements.base import Scene


def parts(snapshot: Snapshot) -> tuple[Float[Array, "k r1"], Float[Array, "k r2"], Float[Array, "d k"]]:
    """R = U^T U*, Q = U^T V*, E = U - U* R^T - V* Q^T (Xu 2024, eq. 17 and 18).

    For two factors, R and Q stack those of F and of G, and E is block diagonal, because the rows of F and of G belong to
    different spaces.
    """
    U, environments = snapshot.model.factor(snapshot.params), snapshot.environments
    R, Q, E = _split(U, environments.invariant_basis, environments.spurious_basis)
    W = snapshot.model.cofactor(snapshot.params)
    if W is None:
        return R, Q, E
    R2, Q2, E2 = _split(W, environments.right_basis, environments.right_spurious_basis)
    return jnp.concatenate([R, R2]), jnp.concatenate([Q, Q2]), block_diag(E, E2)


def _split(U: Array, U_star: Array, V_star: Array) -> tuple[Array, Array, Array]:
    R, Q = U.T @ U_star, U.T @ V_star
    return R, Q, U - U_star @ R.T - V_star @ Q.T


def frobenius_norm(x: Array) -> Array:
    """||x||_F of an array with any number of dimensions."""
    return jnp.sqrt(jnp.sum(x * x))


def values_of(product: Array) -> Float[Array, " k"]:
    """The singular values of a matrix, or the absolute values of a vector, largest first."""
    return jnp.sort(jnp.abs(product))[::-1] if product.ndim == 1 else jnp.linalg.svd(product, compute_uv=False)


@diagnostic(rotates=True, one_means="the invariant signal is learnt in full", needs_truth=True)
def signal(snapshot: Snapshot) -> Array:
    """Share of the invariant signal that is learnt: ||U*^T A U*||_F / ||A_star||_F."""
    environments = snapshot.environments
    return frobenius_norm(environments.signal_block(snapshot.product)) / frobenius_norm(environments.invariant_values)


ROUNDING = 1e-12
"""A mean of the law that is relatively smaller is zero: the strengths of its environments cancel, but for rounding."""


@diagnostic(rotates=True, one_means="the mean spurious signal is learnt in full", needs_truth=True)
def spurious(snapshot: Snapshot) -> Array:
    """Share of the mean spurious signal that is learnt: ||V*^T A V*||_F / ||E Sigma||_F (over sqrt(r2) if that is 0)."""
    environments = snapshot.environments
    law, mean = environments.law, frobenius_norm(environments.law.mean)
    # Targets less A_star leave rounding errors of the size of A_star, sums over environments such of the size of Sigma.
    size = frobenius_norm(environments.invariant_values) + jnp.sqrt(law.scatter)
    scale = jnp.where(mean > ROUNDING * size, mean, max(law.rank, 1) ** 0.5)
    return frobenius_norm(environments.spurious_block(snapshot.product)) / scale


@diagnostic(
    "invariant_direction",
    rotates=True,
    one_means="an entry of 1 along this invariant direction",
    needs_truth=True,
)
def signal_values(snapshot: Snapshot) -> Array:
    """The diagonal of U*^T A U*, signs kept."""
    environments = snapshot.environments
    return jnp.diagonal(environments.signal_block(snapshot.product))


@diagnostic(
    "spurious_direction", rotates=True, one_means="an entry of 1 along this spurious direction", needs_truth=True
)
def spurious_values(snapshot: Snapshot) -> Array:
    """The diagonal of V*^T A V*, signs kept."""
    environments = snapshot.environments
    return jnp.diagonal(environments.spurious_block(snapshot.product))


@diagnostic(
    rotates=True, one_means="a part of the factor of Frobenius norm 1 lies outside both subspaces", needs_truth=True
)
def error(snapshot: Snapshot) -> Array:
    """||E||_F of eq. (18): the part of the factor outside both subspaces."""
    return frobenius_norm(parts(snapshot)[2])


@diagnostic(
    rotates=True, one_means="a part of the factor of operator norm 1 lies outside both subspaces", needs_truth=True
)
def error_operator(snapshot: Snapshot) -> Array:
    """||E||, the operator norm of the part of the factor outside both subspaces."""
    return jnp.linalg.norm(parts(snapshot)[2], 2)


@diagnostic(
    rotates=True, one_means="a part of the factor of Frobenius norm 1 lies in the spurious subspace", needs_truth=True
)
def spurious_part(snapshot: Snapshot) -> Array:
    """||Q||_F of eq. (17)."""
    return frobenius_norm(parts(snapshot)[1])


@diagnostic(
    "invariant_direction",
    rotates=True,
    one_means="learnt in full, if the eigenvalue is 1",
    needs_truth=True,
)
def invariant_singular_values(snapshot: Snapshot) -> Array:
    """The singular values of R of eq. (17), largest first."""
    return jnp.linalg.svd(parts(snapshot)[0], compute_uv=False)


@diagnostic("singular_value", rotates=True, one_means="a singular value of 1, in the units of the target")
def singular_values(snapshot: Snapshot) -> Array:
    """The singular values of A, largest first."""
    values = values_of(snapshot.product)
    return jnp.pad(values, (0, min(snapshot.shape) - values.size))  # a reduced run leaves out values that are zero


@diagnostic(rotates=True, one_means="a Frobenius norm of 1 away from A_star", needs_truth=True)
def distance(snapshot: Snapshot) -> Array:
    """||A - A_star||_F."""
    return frobenius_norm(snapshot.product - snapshot.environments.invariant)


@diagnostic(rotates=True, one_means="a Frobenius norm of 1 away from the mean target", needs_truth=True)
def distance_to_mean(snapshot: Snapshot) -> Array:
    """||A - E A_e||_F, with A_e the whole target of an environment."""
    return frobenius_norm(snapshot.product - snapshot.environments.mean_target)


@diagnostic(rotates=True, one_means="a mean squared Frobenius distance of 2 to the targets", needs_truth=True)
def full_loss(snapshot: Snapshot) -> Array:
    """The loss over all entries of the targets, that of infinitely many pooled samples: E_e ||A - A_e||_F^2 / 2."""
    environments = snapshot.environments
    mean = environments.law.mean
    centred = frobenius_norm(snapshot.product - environments.target(mean)) ** 2
    return (centred + environments.law.scatter) / 2


@diagnostic(of_product=True, one_means="a mean squared residual of 2 over the data")
def training_loss(snapshot: Snapshot) -> Array:
    """The loss over the data that a run is given, E_e (1/2m) sum_i (<X_i, A> - y_i)^2: observed entries, or rows."""
    environments, measurements = snapshot.environments, snapshot.measurements
    scene = Scene(environments, snapshot.model.space(snapshot.shape), snapshot.product)
    values, weights = environments.law.nodes()

    def mean_square(index: Array, sigma: Array) -> Array:
        return measurements.read_all(snapshot.data, scene, Environment(index, sigma)).residual_square

    indices = jnp.arange(len(weights), dtype=jnp.int32)
    return jnp.asarray(weights) @ jax.vmap(mean_square)(indices, jnp.asarray(values)) / 2
