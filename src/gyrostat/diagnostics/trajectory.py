"""Diagnostics of a state: the parts R, Q, E of Xu 2024 (17)-(18), signals, singular values, distances, losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.models import Model, Params


class View(NamedTuple):
    """What a diagnostic may look at."""

    environments: Environments
    model: Model
    params: Params

    @property
    def product(self) -> Array:
        """A(theta)."""
        return self.model.product(self.params)


class Diagnostic(NamedTuple):
    """A named function of a view; ``dims`` names the dimensions of its value, empty for a number."""

    name: str
    function: Callable[[View], Array]
    dims: tuple[str, ...] = ()
    description: str = ""


DIAGNOSTICS: dict[str, Diagnostic] = {}


def diagnostic(*dims: str) -> Callable[[Callable[[View], Array]], Callable[[View], Array]]:
    """Register a function of a :class:`View` under its name, so that ``record=[name]`` finds it."""

    def register(function: Callable[[View], Array]) -> Callable[[View], Array]:
        text = (function.__doc__ or "").strip().splitlines()
        DIAGNOSTICS[function.__name__] = Diagnostic(function.__name__, function, dims, text[0] if text else "")
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
    """R = U^T U*, Q = U^T V*, E = U - U* R^T - V* Q^T (Xu 2024, eq. 17 and 18)."""
    U = view.model.factor(view.params)
    U_star, V_star = view.environments.invariant_basis, view.environments.spurious_basis
    R, Q = U.T @ U_star, U.T @ V_star
    return R, Q, U - U_star @ R.T - V_star @ Q.T


def _norm(x: Array) -> Array:
    return jnp.sqrt(jnp.sum(x * x))


@diagnostic()
def signal(view: View) -> Array:
    """Share of the invariant signal that is learnt: ||U*^T A U*||_F / ||A_star||_F."""
    places = view.environments
    return _norm(places.compress(places.invariant_basis, view.product)) / _norm(places.invariant_values)


@diagnostic()
def spurious(view: View) -> Array:
    """Share of the mean spurious signal that is learnt: ||V*^T A V*||_F / ||E Sigma||_F (over sqrt(r2) if that is 0)."""
    places = view.environments
    mean = _norm(places.law.mean)
    scale = jnp.where(mean > 0, mean, max(places.law.rank, 1) ** 0.5)
    return _norm(places.compress(places.spurious_basis, view.product)) / scale


@diagnostic("invariant_direction")
def signal_values(view: View) -> Array:
    """The diagonal of U*^T A U*, signs kept."""
    places = view.environments
    return jnp.diagonal(places.compress(places.invariant_basis, view.product))


@diagnostic("spurious_direction")
def spurious_values(view: View) -> Array:
    """The diagonal of V*^T A V*, signs kept."""
    places = view.environments
    return jnp.diagonal(places.compress(places.spurious_basis, view.product))


@diagnostic()
def error(view: View) -> Array:
    """||E||_F of eq. (18): the part of the factor outside both subspaces."""
    return _norm(parts(view)[2])


@diagnostic()
def error_operator(view: View) -> Array:
    """||E||, the operator norm of the same."""
    return jnp.linalg.norm(parts(view)[2], 2)


@diagnostic()
def spurious_part(view: View) -> Array:
    """||Q||_F of eq. (17)."""
    return _norm(parts(view)[1])


@diagnostic("invariant_direction")
def invariant_singular_values(view: View) -> Array:
    """The singular values of R of eq. (17), largest first."""
    return jnp.linalg.svd(parts(view)[0], compute_uv=False)


@diagnostic("singular_value")
def singular_values(view: View) -> Array:
    """The singular values of A, largest first."""
    A = view.product
    return jnp.sort(jnp.abs(A))[::-1] if A.ndim == 1 else jnp.linalg.svd(A, compute_uv=False)


@diagnostic()
def distance(view: View) -> Array:
    """||A - A_star||_F."""
    return _norm(view.product - view.environments.invariant)


@diagnostic()
def distance_to_mean(view: View) -> Array:
    """||A - A_star - E A_e||_F."""
    return _norm(view.product - view.environments.mean_target)


@diagnostic()
def loss(view: View) -> Array:
    """The loss on infinitely many pooled samples: E_e ||A - A_e||_F^2 / 2."""
    places = view.environments
    mean = places.law.mean
    centred = _norm(view.product - places.target(mean)) ** 2
    return (centred + places.law.scatter) / 2
