"""Exact reductions: a run in a small space that is the run in the large one, to rounding.

When the measurements see the residual itself, every iterate's columns stay in the span of the targets' bases and of the
first factor's columns, and nothing depends on the coordinates of the rest. In an orthonormal basis of that span the run
has r1 + r2 + k rows instead of n, so factorisation costs nothing in n. (The rows outside the signal are replaced by the
k x k factor of their QR decomposition, and a little more for bases that overlap.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from gyrostat import errors
from gyrostat.algorithms import Algorithm
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.models import Params
from gyrostat.problem import Problem

MODES = ("auto", "never", "always")


class Stage(NamedTuple):
    """Where a run takes place: environments and parameters there, and the way back to the parameters of the whole."""

    environments: Environments
    params: Params
    lift: Callable[[Params], Params]


def decide(mode: str, algorithm: Algorithm, problem: Problem) -> bool:
    """Whether to reduce: ``"auto"`` when it is exact and smaller, ``"always"`` with an error when it is not exact."""
    errors.choice("reduction", mode, MODES)
    if mode == "never":
        return False
    obstacle = _obstacle(algorithm, problem)
    if obstacle is None:
        return mode == "always" or max(reduced_shape(algorithm, problem)) < max(problem.shape)
    if mode == "always":
        raise GyrostatError(f"reduction='always' is not exact here: {obstacle}; use reduction='auto' or 'never'.")
    return False


def _obstacle(algorithm: Algorithm, problem: Problem) -> str | None:
    if not problem.measurements.isotropic:
        return f"{type(problem.measurements).__name__} does not see the whole residual"
    if rank_of(problem.environments) is None:
        return f"{type(problem.environments).__name__} does not state its rank"
    parts: tuple[Any, ...] = (algorithm.model, algorithm.rule, *algorithm.events)
    for part in parts:
        if not part.rotates:
            return f"{type(part).__name__} depends on the coordinates"
    return None


def reduced_shape(algorithm: Algorithm, problem: Problem) -> tuple[int, ...]:
    """The shape of a target in the reduced run."""
    left, right = _columns(algorithm, problem)
    rows, columns = problem.shape
    return min(rows, left), min(columns, right)


def _columns(algorithm: Algorithm, problem: Problem) -> tuple[int, int]:
    """How many columns span everything on the left and on the right."""
    model, recipe = algorithm.model, problem.environments
    shapes = model.shapes(problem.shape)
    ranks = (rank_of(recipe) or 0) + recipe.law.rank
    params = [jnp.zeros(s) for s in shapes]
    factor, cofactor = model.factor(tuple(params)), model.cofactor(tuple(params))
    left = ranks + factor.shape[1]
    return left, left if cofactor is None else ranks + cofactor.shape[1]


def rank_of(recipe: object) -> int | None:
    """The rank of the truth of environments or of a recipe for them; None for a recipe that does not say."""
    if isinstance(recipe, Environments):
        return recipe.invariant_basis.shape[1]
    return getattr(recipe, "rank", None)


def compress(algorithm: Algorithm, environments: Environments, params: Params) -> Stage:
    """The run in an orthonormal basis of what it can reach."""
    model = algorithm.model
    cofactor = model.cofactor(params)
    L = _basis(environments.invariant_basis, environments.spurious_basis, model.factor(params))
    R = L if cofactor is None else _basis(environments.right_basis, environments.right_spurious_basis, cofactor)
    return Stage(
        environments.rotated(L.T, R.T), model.rotated(params, L.T, R.T), lambda small: model.rotated(small, L, R)
    )


def _basis(*columns: Array) -> Array:
    return jnp.linalg.qr(jnp.concatenate([jnp.asarray(c) for c in columns], axis=1))[0]


def whole(environments: Environments, params: Params) -> Stage:
    """The run where it was stated."""
    return Stage(environments, params, lambda params: params)
