"""Exact reductions: a run in a small space that equals the full run up to rounding.

Rows and columns: when the measurements see the residual itself, the columns of every iterate stay in the span of the
targets' bases and of the first factor's columns, and nothing depends on the coordinates outside it. In an orthonormal basis
of that span a run has r1 + r2 + k rows instead of n, so the cost of a factorisation does not depend on n. (The rows outside
the signal are replaced by the k x k factor of their QR decomposition, and by a few more rows for bases that overlap.)

Hidden layers: a deep linear network stays in a few dimensions of every hidden layer (``hidden_layers``), for all kinds of
measurements. Both reductions may apply to one run.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.events import Event
from gyrostat.engine import hidden_layers
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.measurements.problem import Problem
from gyrostat.models import DeepLinear, Model
from gyrostat.typing import Params

MODES = ("auto", "never", "always")

EXACT = 1e-12
"""The promised agreement of a reduced run with the full run."""

LEAK_LIMITS = {"product": EXACT**0.5, "layers": EXACT}
"""A run whose :class:`~gyrostat.engine.hidden_layers.KrylovLeak` is larger is computed again without reduction.

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


class Reduced(eqx.Module):
    """A run in reduced coordinates: environments, model, events that the reduction needs, and the ways back.

    ``sides`` are the bases of the rows and of the columns, ``hidden`` those of the hidden layers, ``start`` the layers at the
    start, of which the part outside of those bases only shrinks; each is None where nothing is reduced.
    """

    environments: Environments
    model: Model
    stated_model: Model
    events: tuple[Event, ...] = ()
    sides: tuple[Array, Array] | None = None
    hidden: list[Array] | None = None
    start: Params | None = None

    def as_reduced(self, params: Params) -> Params:
        """Parameters of the stated model, in all reduced coordinates."""
        return params if self.hidden is None else params[:-1]

    def in_stated_coordinates(self, params: Params) -> Params:
        """Parameters with all rows and columns; hidden layers stay reduced."""
        return self._with_all_rows(self.as_reduced(params))

    def as_stated(self, params: Params) -> Params:
        """The parameters of the whole run."""
        if self.hidden is None:
            return self._with_all_rows(params)
        return self._with_all_rows(hidden_layers.widened(params[:-1], params[-1], self.start, self.hidden))  # type: ignore[arg-type]

    def _with_all_rows(self, params: Params) -> Params:
        return params if self.sides is None else self.stated_model.rotated(params, *self.sides)


def reduced_run(
    algorithm: Algorithm, environments: Environments, params: Params, reduction: Reduction
) -> tuple[Reduced, Params]:
    """The run in the chosen small spaces and its parameters there; as stated if nothing is reduced."""
    model, sides = algorithm.model, None
    if reduction.rows:
        cofactor = model.cofactor(params)
        L = _basis(environments.invariant_basis, environments.spurious_basis, model.factor(params))
        R = L if cofactor is None else _basis(environments.right_basis, environments.right_spurious_basis, cofactor)
        sides, environments, params = (L, R), environments.rotated(L.T, R.T), model.rotated(params, L.T, R.T)
    if reduction.widths is None:
        return Reduced(environments, model, model, sides=sides), params
    is_krylov = reduction.widths == "krylov"
    bases = (hidden_layers.krylov_bases if is_krylov else hidden_layers.closed_bases)(params)
    narrow, inside = hidden_layers.narrowed(params, bases)
    # The last block of the Krylov spaces: images of the other outer layer when the number of levels is even.
    rows, columns = environments.shape
    last = (rows, columns) if hidden_layers.LEVELS % 2 == 0 else (columns, rows)
    events = (hidden_layers.KrylovLeak(last),) if is_krylov else ()
    return Reduced(environments, narrow, model, events, sides, bases, params), inside


def _basis(*columns: Array) -> Array:
    return jnp.linalg.qr(jnp.concatenate([jnp.asarray(c) for c in columns], axis=1))[0]
