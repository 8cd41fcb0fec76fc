"""Exact reductions: a run in a small space that is the run in the large one, to rounding.

Of rows and columns: when the measurements see the residual itself, every iterate's columns stay in the span of the
targets' bases and of the first factor's columns, and nothing depends on the coordinates of the rest. In an orthonormal
basis of that span the run has r1 + r2 + k rows instead of n, so factorisation costs nothing in n. (The rows outside the
signal are replaced by the k x k factor of their QR decomposition, and a little more for bases that overlap.)

Of widths: a deep linear network stays in a few dimensions of every hidden layer (``hidden_layers``), whatever the measurements
see. Both may apply to one run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.events import Event
from gyrostat.engine.reduction import hidden_layers as confined
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.lapack_order import SequentialLapack
from gyrostat.measurements.problem import Problem
from gyrostat.models import DeepLinear, Model
from gyrostat.typing import Params

MODES = ("auto", "never", "always")

EXACT = 1e-12
"""The agreement of a reduced run with the whole one that is promised."""

LEAKS = {"product": EXACT**0.5, "layers": EXACT}
"""A run at whose last Krylov level more arrives is made again where it was stated.

From level to level W_2 hands on a share of what a layer holds, eta G W_2 summed over the steps. A leak e is what is left after
the last level that is kept; the first one that is cut off would hold a share of e, and that is what the layers lack: at most e.
The product is made of paths from the input to the output, which begin and end in the first levels, because nowhere else do
W_1 and W_3 start. A path through what is cut off goes out and comes back through the same levels, by W_2 and its transpose,
and is weakened twice: at most e^2. (Measured over seven orders of magnitude: .01 to .07 e and .0003 to .006 e^2.)"""


@dataclasses.dataclass(frozen=True)
class Reduction:
    """What is reduced: rows and columns, and widths (``"closed"``, ``"krylov"`` or not at all)."""

    rows: bool = False
    widths: str | None = None

    def __bool__(self) -> bool:
        return self.rows or self.widths is not None


class Stage(NamedTuple):
    """Where a run takes place: environments, model and parameters there, events of its own, and the ways back.

    ``show`` gives the parameters of the algorithm's model as they are there, ``unturn`` those with the rows and columns as
    stated, ``lift`` those of the whole.
    """

    environments: Environments
    model: Model
    params: Params
    events: tuple[Event, ...]
    show: Callable[[Params], Params]
    unturn: Callable[[Params], Params]
    lift: Callable[[Params], Params]


def decide(mode: str, algorithm: Algorithm, problem: Problem) -> Reduction:
    """What to reduce: ``"auto"`` what is exact and smaller, ``"always"`` with an error when nothing is exact."""
    errors.choice("reduction", mode, MODES)
    if mode == "never":
        return Reduction()
    rows, widths = _obstacle(algorithm, problem), _width_obstacle(algorithm, problem)
    if mode == "always" and rows is not None and widths is not None:
        reason = widths if isinstance(algorithm.model, DeepLinear) else rows
        raise GyrostatError(f"reduction='always' is not exact here: {reason}; use reduction='auto' or 'never'.")
    smaller = rows is None and max(reduced_shape(algorithm, problem)) < max(problem.shape)
    kept = Reduction(rows=rows is None and (mode == "always" or smaller))
    if widths is not None:
        return kept
    kind = confined.kind(algorithm.model, algorithm.start, problem.shape)  # type: ignore[arg-type]
    shape = reduced_shape(algorithm, problem) if kept.rows else problem.shape
    hidden = [s[0] for s in algorithm.model.shapes(problem.shape)[:-1]]
    needed = confined.krylov_widths(*shape) if kind == "krylov" else [sum(shape)] * len(hidden)
    fits = [k <= w for k, w in zip(needed, hidden, strict=True)]
    if all(fits) and (mode == "always" or needed != hidden):
        return dataclasses.replace(kept, widths=kind)
    if mode == "always" and not kept:
        raise GyrostatError(
            f"reduction='always' is not exact here: {max(needed)} dimensions of a hidden layer are reached and the "
            f"narrowest has {min(hidden)}; use reduction='auto' or 'never'."
        )
    return kept


def _width_obstacle(algorithm: Algorithm, problem: Problem) -> str | None:
    model, start = algorithm.model, algorithm.start
    if not isinstance(model, DeepLinear):
        return f"{type(model).__name__} has no hidden layers"
    if confined.kind(model, start, problem.shape) is None:
        name = type(start).__name__
        return f"{name} at depth {model.depth} may reach all of the hidden layers: start square ones with Orthogonal"
    return _turning(algorithm.rule, *algorithm.events)


def _turning(*parts: Any) -> str | None:
    for part in parts:
        if not part.rotates:
            return f"{type(part).__name__} depends on the coordinates"
    return None


def _obstacle(algorithm: Algorithm, problem: Problem) -> str | None:
    if not problem.measurements.isotropic:
        return f"{type(problem.measurements).__name__} does not see the whole residual"
    if rank_of(problem.environments) is None:
        return f"{type(problem.environments).__name__} does not state its rank"
    return _turning(algorithm.model, algorithm.rule, *algorithm.events)


def size(algorithm: Algorithm, problem: Problem, reduction: Reduction) -> int:
    """The number of entries of the largest array of a run: a target, or a parameter."""
    shape = reduced_shape(algorithm, problem) if reduction.rows else problem.shape
    target = int(np.prod(shape))
    if not isinstance(algorithm.model, DeepLinear):
        return target
    if reduction.widths is None:
        return max(target, *(int(np.prod(s)) for s in algorithm.model.shapes(problem.shape)))
    return max(target, max(confined.krylov_widths(*shape)) ** 2 if reduction.widths == "krylov" else sum(shape) ** 2)


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


def stage(algorithm: Algorithm, environments: Environments, params: Params, reduction: Reduction) -> Stage:
    """Where the run takes place: where it was stated, or in the small spaces that it can reach."""
    here = _turned(algorithm, environments, params) if reduction.rows else _whole(algorithm, environments, params)
    return here if reduction.widths is None else _narrowed(here, reduction.widths)


def _whole(algorithm: Algorithm, environments: Environments, params: Params) -> Stage:
    return Stage(environments, algorithm.model, params, (), _same, _same, _same)


def _same(params: Params) -> Params:
    return params


def _turned(algorithm: Algorithm, environments: Environments, params: Params) -> Stage:
    """The run in an orthonormal basis of the rows and columns that it can reach."""
    model = algorithm.model
    cofactor = model.cofactor(params)

    def bases() -> tuple[Array, Array]:
        L = _basis(environments.invariant_basis, environments.spurious_basis, model.factor(params))
        if cofactor is None:
            return L, L
        return L, _basis(environments.right_basis, environments.right_spurious_basis, cofactor)

    L, R = SequentialLapack()(bases)

    def back(small: Params) -> Params:
        return model.rotated(small, L, R)

    return Stage(environments.rotated(L.T, R.T), model, model.rotated(params, L.T, R.T), (), _same, back, back)


def _basis(*columns: Array) -> Array:
    return jnp.linalg.qr(jnp.concatenate([jnp.asarray(c) for c in columns], axis=1))[0]


def _layers(small: Params) -> Params:
    return small[:-1]


def _narrowed(stage: Stage, kind: str) -> Stage:
    """The run in the subspaces of the hidden layers that it can reach."""
    start = stage.params
    bases = SequentialLapack()(
        lambda: confined.krylov_bases(start) if kind == "krylov" else confined.closed_bases(start)
    )
    model, params = confined.confined(start, bases)
    rows, columns = stage.environments.shape
    # The last block of the Krylov spaces: images of the other outer layer when the number of levels is even.
    last = (rows, columns) if confined.LEVELS % 2 == 0 else (columns, rows)
    events = (confined.Leak(last),) if kind == "krylov" else ()

    def lift(small: Params) -> Params:
        return stage.lift(confined.restored(small[:-1], small[-1], start, bases))

    def unturn(small: Params) -> Params:
        return stage.unturn(small[:-1])

    return Stage(stage.environments, model, params, events, _layers, unturn, lift)
