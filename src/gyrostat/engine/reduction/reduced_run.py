"""The environments, the model and the parameters of a reduced run, and the maps back to the stated ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.events import Event
from gyrostat.engine.reduction import hidden_layers
from gyrostat.engine.reduction.choose import Reduction
from gyrostat.environments import Environments
from gyrostat.jax_tools.sequential_lapack import SequentialLapack
from gyrostat.models import Model
from gyrostat.typing import Params


class ReducedRun(NamedTuple):
    """A run in reduced coordinates: environments, model and initial parameters, and events that the reduction needs.

    Three functions turn reduced parameters into those of the algorithm's model: ``as_reduced`` keeps all reduced
    coordinates, ``in_stated_coordinates`` undoes the reduction of rows and columns, ``as_stated`` undoes everything.
    """

    environments: Environments
    model: Model
    params: Params
    events: tuple[Event, ...]
    as_reduced: Callable[[Params], Params]
    in_stated_coordinates: Callable[[Params], Params]
    as_stated: Callable[[Params], Params]


def reduce_run(algorithm: Algorithm, environments: Environments, params: Params, reduction: Reduction) -> ReducedRun:
    """The run in the chosen small spaces; the run as stated if nothing is reduced."""
    reduce_rows = _with_fewer_rows if reduction.rows else _as_it_is
    run = reduce_rows(algorithm, environments, params)
    return run if reduction.widths is None else _with_narrow_layers(run, reduction.widths)


def _as_it_is(algorithm: Algorithm, environments: Environments, params: Params) -> ReducedRun:
    return ReducedRun(environments, algorithm.model, params, (), _same, _same, _same)


def _same(params: Params) -> Params:
    return params


def _with_fewer_rows(algorithm: Algorithm, environments: Environments, params: Params) -> ReducedRun:
    """The run in an orthonormal basis of the rows and columns that it can reach."""
    model = algorithm.model
    cofactor = model.cofactor(params)

    def bases() -> tuple[Array, Array]:
        L = _basis(environments.invariant_basis, environments.spurious_basis, model.factor(params))
        if cofactor is None:
            return L, L
        return L, _basis(environments.right_basis, environments.right_spurious_basis, cofactor)

    L, R = SequentialLapack()(bases)

    def back(reduced: Params) -> Params:
        return model.rotated(reduced, L, R)

    return ReducedRun(environments.rotated(L.T, R.T), model, model.rotated(params, L.T, R.T), (), _same, back, back)


def _basis(*columns: Array) -> Array:
    return jnp.linalg.qr(jnp.concatenate([jnp.asarray(c) for c in columns], axis=1))[0]


def _with_narrow_layers(run: ReducedRun, kind: str) -> ReducedRun:
    """The run in the subspaces of the hidden layers that it can reach."""
    start = run.params
    make_bases = hidden_layers.krylov_bases if kind == "krylov" else hidden_layers.closed_bases
    bases = SequentialLapack()(lambda: make_bases(start))
    model, params = hidden_layers.narrowed(start, bases)
    rows, columns = run.environments.shape
    # The last block of the Krylov spaces: images of the other outer layer when the number of levels is even.
    last = (rows, columns) if hidden_layers.LEVELS % 2 == 0 else (columns, rows)
    events = (hidden_layers.KrylovLeak(last),) if kind == "krylov" else ()

    def layers(narrow: Params) -> Params:
        return narrow[:-1]

    def in_stated_coordinates(narrow: Params) -> Params:
        return run.in_stated_coordinates(layers(narrow))

    def as_stated(narrow: Params) -> Params:
        return run.as_stated(hidden_layers.widened(layers(narrow), narrow[-1], start, bases))

    return ReducedRun(run.environments, model, params, events, layers, in_stated_coordinates, as_stated)
