"""Diagnostics of a state: the parts R, Q, E of Xu 2024 (17)-(18), signals, singular values, distances, losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.models import Model
from gyrostat.typing import Params


class View(NamedTuple):
    """What a diagnostic may look at: environments and parameters, and the shape of the target as it was stated.

    A run that was reduced shows its small environments and parameters to diagnostics that rotate.
    """

    environments: Environments
    model: Model
    params: Params
    shape: tuple[int, ...]

    @property
    def product(self) -> Array:
        """A(theta)."""
        return self.model.product(self.params)


class Diagnostic(NamedTuple):
    """A named function of a view; ``dims`` names the dimensions of its value, empty for a number.

    ``rotates`` says that the value is the same in any orthonormal coordinates of the product, so that it can be taken
    from a reduced run as it is; otherwise the parameters are brought back to the stated coordinates first. ``of_product``
    says that it is a function of the product alone, in the stated coordinates, so that hidden layers may stay reduced.
    """

    name: str
    function: Callable[[View], Array]
    dims: tuple[str, ...] = ()
    description: str = ""
    rotates: bool = False
    of_product: bool = False

    @property
    def sees(self) -> str:
        """Which view it is given: ``"small"``, ``"product"`` or ``"stated"``."""
        return "small" if self.rotates else "product" if self.of_product else "stated"


DIAGNOSTICS: dict[str, Diagnostic] = {}


def diagnostic(
    *dims: str, rotates: bool = False, of_product: bool = False
) -> Callable[[Callable[[View], Array]], Callable[[View], Array]]:
    """Register a function of a :class:`View` under its name, so that ``record=[name]`` finds it."""

    def register(function: Callable[[View], Array]) -> Callable[[View], Array]:
        text = (function.__doc__ or "").strip().splitlines()
        name = function.__name__
        DIAGNOSTICS[name] = Diagnostic(name, function, dims, text[0] if text else "", rotates, of_product)
        return function

    return register


def resolve(names: Sequence[str | Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics of these names; a :class:`Diagnostic` stands for itself."""
    if isinstance(names, str | Diagnostic):
        raise GyrostatError(f"record must be a list of names or Diagnostic objects; got {names!r}: put it in brackets.")
    chosen = []
    for name in names:
        if isinstance(name, Diagnostic):
            chosen.append(name)
        elif isinstance(name, str):
            chosen.append(DIAGNOSTICS[errors.choice("diagnostic", name, DIAGNOSTICS)])
        else:
            raise GyrostatError(f"diagnostics must be names or Diagnostic objects; got {name!r}.")
    return tuple(chosen)


def parts(view: View) -> tuple[Float[Array, "k r1"], Float[Array, "k r2"], Float[Array, "d k"]]:
    """R = U^T U*, Q = U^T V*, E = U - U* R^T - V* Q^T (Xu 2024, eq. 17 and 18).

    For two factors these are R and Q of F above those of G, and E of F and of G as the blocks of a diagonal: their rows
    belong to different spaces.
    """
    U, environments = view.model.factor(view.params), view.environments
    left = _split(U, environments.invariant_basis, environments.spurious_basis)
    W = view.model.cofactor(view.params)
    if W is None:
        return left
    right = _split(W, environments.right_basis, environments.right_spurious_basis)
    R, Q = (jnp.concatenate(pair) for pair in zip(left[:2], right[:2], strict=True))
    return R, Q, block_diag(left[2], right[2])


def _split(U: Array, U_star: Array, V_star: Array) -> tuple[Array, Array, Array]:
    R, Q = U.T @ U_star, U.T @ V_star
    return R, Q, U - U_star @ R.T - V_star @ Q.T


def _norm(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x * x))


@diagnostic(rotates=True)
def signal(view: View) -> Array:
    """Share of the invariant signal that is learnt: ||U*^T A U*||_F / ||A_star||_F."""
    environments = view.environments
    return _norm(environments.signal_block(view.product)) / _norm(environments.invariant_values)


@diagnostic(rotates=True)
def spurious(view: View) -> Array:
    """Share of the mean spurious signal that is learnt: ||V*^T A V*||_F / ||E Sigma||_F (over sqrt(r2) if that is 0)."""
    environments = view.environments
    mean = _norm(environments.law.mean)
    scale = jnp.where(mean > 0, mean, max(environments.law.rank, 1) ** 0.5)
    return _norm(environments.spurious_block(view.product)) / scale


@diagnostic("invariant_direction", rotates=True)
def signal_values(view: View) -> Array:
    """The diagonal of U*^T A U*, signs kept."""
    environments = view.environments
    return jnp.diagonal(environments.signal_block(view.product))


@diagnostic("spurious_direction", rotates=True)
def spurious_values(view: View) -> Array:
    """The diagonal of V*^T A V*, signs kept."""
    environments = view.environments
    return jnp.diagonal(environments.spurious_block(view.product))


@diagnostic(rotates=True)
def error(view: View) -> Array:
    """||E||_F of eq. (18): the part of the factor outside both subspaces."""
    return _norm(parts(view)[2])


@diagnostic(rotates=True)
def error_operator(view: View) -> Array:
    """||E||, the operator norm of the same."""
    return jnp.linalg.norm(parts(view)[2], 2)


@diagnostic(rotates=True)
def spurious_part(view: View) -> Array:
    """||Q||_F of eq. (17)."""
    return _norm(parts(view)[1])


@diagnostic("invariant_direction", rotates=True)
def invariant_singular_values(view: View) -> Array:
    """The singular values of R of eq. (17), largest first."""
    return jnp.linalg.svd(parts(view)[0], compute_uv=False)


@diagnostic("singular_value", rotates=True)
def singular_values(view: View) -> Array:
    """The singular values of A, largest first."""
    A = view.product
    values = jnp.sort(jnp.abs(A))[::-1] if A.ndim == 1 else jnp.linalg.svd(A, compute_uv=False)
    return jnp.pad(values, (0, min(view.shape) - values.size))  # a reduced run leaves out values that are zero


@diagnostic(rotates=True)
def distance(view: View) -> Array:
    """||A - A_star||_F."""
    return _norm(view.product - view.environments.invariant)


@diagnostic(rotates=True)
def distance_to_mean(view: View) -> Array:
    """||A - A_star - E A_e||_F."""
    return _norm(view.product - view.environments.mean_target)


@diagnostic(rotates=True)
def loss(view: View) -> Array:
    """The loss on infinitely many pooled samples: E_e ||A - A_e||_F^2 / 2."""
    environments = view.environments
    mean = environments.law.mean
    centred = _norm(view.product - environments.target(mean)) ** 2
    return (centred + environments.law.scatter) / 2
