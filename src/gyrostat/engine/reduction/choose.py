"""Which exact reductions a run allows, and the sizes that result."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.engine.reduction import hidden_layers
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.measurements.problem import Problem
from gyrostat.models import DeepLinear

MODES = ("auto", "never", "always")

EXACT = 1e-12
"""The promised agreement of a reduced run with the full run."""

LEAK_LIMITS = {"product": EXACT**0.5, "layers": EXACT}
"""A run whose :class:`~gyrostat.engine.reduction.hidden_layers.KrylovLeak` is larger is computed again without reduction.

The limit depends on what is recorded: the product alone, or the layers. W_2 passes a share of the contents of a level on to
the next level: eta G W_2 summed over the steps. A leak e is what is left after the last level that is kept. The first level
that is cut off would hold a share of e, and the layers lack that share: at most e. The product is made of paths from the
input to the output, which begin and end in the first levels, because W_1 and W_3 start nowhere else. A path through the
levels that are cut off leaves and returns through the same levels, by W_2 and its transpose, and is weakened twice: at most
e^2. (Measured over seven orders of magnitude: .01 to .07 e and .0003 to .006 e^2.)"""


@dataclasses.dataclass(frozen=True)
class Reduction:
    """What is reduced: rows and columns, and the widths of hidden layers (``"closed"``, ``"krylov"`` or None)."""

    rows: bool = False
    widths: str | None = None

    def __bool__(self) -> bool:
        return self.rows or self.widths is not None


def choose_reduction(mode: str, algorithm: Algorithm, problem: Problem) -> Reduction:
    """``"auto"`` reduces what is exact and smaller; ``"always"`` raises an error when no reduction is exact."""
    errors.choice("reduction", mode, MODES)
    if mode == "never":
        return Reduction()
    no_rows, no_widths = _why_not_rows(algorithm, problem), _why_not_widths(algorithm, problem)
    if mode == "always" and no_rows is not None and no_widths is not None:
        reason = no_widths if isinstance(algorithm.model, DeepLinear) else no_rows
        raise GyrostatError(f"reduction='always' is not exact here: {reason}; use reduction='auto' or 'never'.")
    smaller = no_rows is None and max(reduced_shape(algorithm, problem)) < max(problem.shape)
    chosen = Reduction(rows=no_rows is None and (mode == "always" or smaller))
    if no_widths is not None:
        return chosen
    kind = hidden_layers.kind(algorithm.model, algorithm.start, problem.shape)  # type: ignore[arg-type]
    shape = reduced_shape(algorithm, problem) if chosen.rows else problem.shape
    hidden = [s[0] for s in algorithm.model.shapes(problem.shape)[:-1]]
    needed = hidden_layers.krylov_widths(*shape) if kind == "krylov" else [sum(shape)] * len(hidden)
    fits = [k <= w for k, w in zip(needed, hidden, strict=True)]
    if all(fits) and (mode == "always" or needed != hidden):
        return dataclasses.replace(chosen, widths=kind)
    if mode == "always" and not chosen:
        raise GyrostatError(
            f"reduction='always' is not exact here: {max(needed)} dimensions of a hidden layer are reached and the "
            f"narrowest has {min(hidden)}; use reduction='auto' or 'never'."
        )
    return chosen


def _why_not_rows(algorithm: Algorithm, problem: Problem) -> str | None:
    """Why rows and columns cannot be reduced, or None if they can."""
    if not problem.measurements.isotropic:
        return f"{type(problem.measurements).__name__} does not see the whole residual"
    if rank_of(problem.environments) is None:
        return f"{type(problem.environments).__name__} does not state its rank"
    return _depends_on_coordinates(algorithm.model, algorithm.rule, *algorithm.events)


def _why_not_widths(algorithm: Algorithm, problem: Problem) -> str | None:
    """Why the widths of hidden layers cannot be reduced, or None if they can."""
    model, start = algorithm.model, algorithm.start
    if not isinstance(model, DeepLinear):
        return f"{type(model).__name__} has no hidden layers"
    if hidden_layers.kind(model, start, problem.shape) is None:
        name = type(start).__name__
        return f"{name} at depth {model.depth} may reach all of the hidden layers: start square ones with Orthogonal"
    return _depends_on_coordinates(algorithm.rule, *algorithm.events)


def _depends_on_coordinates(*parts: Any) -> str | None:
    for part in parts:
        if not part.rotates:
            return f"{type(part).__name__} depends on the coordinates"
    return None


def largest_array(algorithm: Algorithm, problem: Problem, reduction: Reduction) -> int:
    """The number of entries of the largest array of a run: a target, or a parameter."""
    shape = reduced_shape(algorithm, problem) if reduction.rows else problem.shape
    target = int(np.prod(shape))
    if not isinstance(algorithm.model, DeepLinear):
        return target
    if reduction.widths is None:
        return max(target, *(int(np.prod(s)) for s in algorithm.model.shapes(problem.shape)))
    width = max(hidden_layers.krylov_widths(*shape)) if reduction.widths == "krylov" else sum(shape)
    return max(target, width**2)


def reduced_shape(algorithm: Algorithm, problem: Problem) -> tuple[int, ...]:
    """The shape of a target in the reduced run."""
    model, environments = algorithm.model, problem.environments
    ranks = (rank_of(environments) or 0) + environments.law.rank
    params = tuple(jnp.zeros(s) for s in model.shapes(problem.shape))
    factor, cofactor = model.factor(params), model.cofactor(params)
    left = ranks + factor.shape[1]
    right = left if cofactor is None else ranks + cofactor.shape[1]
    rows, columns = problem.shape
    return min(rows, left), min(columns, right)


def rank_of(environments: object) -> int | None:
    """The rank of the truth of environments, or of a recipe that draws them; None for a recipe that does not state it."""
    if isinstance(environments, Environments):
        return environments.invariant_basis.shape[1]
    return getattr(environments, "rank", None)
