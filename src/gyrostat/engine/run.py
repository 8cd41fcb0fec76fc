"""Public entries: run one algorithm, a grid of settings, or branches of a run; each returns a labelled Dataset."""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import equinox as eqx
import numpy as np

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.schedules import Annealing, Schedule
from gyrostat.diagnostics.base import RESERVED, Diagnostic, SnapshotFunction, resolve
from gyrostat.engine.program import Cell
from gyrostat.engine.progress import Progress
from gyrostat.engine.results import labelled
from gyrostat.engine.simulate import DEFAULT_RECORD, no_garbage_collection, simulate
from gyrostat.engine.summary import warn_of_divergence
from gyrostat.errors import GyrostatError
from gyrostat.measurements.problem import Problem

if TYPE_CHECKING:
    import xarray as xr

Function = TypeVar("Function", bound=Callable[..., Any])


@errors.explains_keywords
def run(
    algorithm: Algorithm,
    problem: Problem,
    *,
    num_steps: int,
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic | SnapshotFunction] = DEFAULT_RECORD,
    record_at: int | Sequence[int] | np.ndarray = 101,
    tolerance: float | None = None,
    reduction: str = "auto",
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Run one algorithm on one problem for many seeds; dimensions ``seed`` and ``step``.

    ``diverged`` is the step at which a run diverged, or infinity if it did not. From that step on its values are NaN, and a
    :class:`DivergenceWarning` says how many runs diverged. :func:`gyrostat.summary` counts them as infinite.

    Parameters
    ----------
    algorithm
        What to run, such as ``HeteroSGD(0.05)``.
    problem
        What to run it on: environments and measurements.
    num_steps
        The number of steps.
    seeds
        The number of runs, or a list of distinct seeds.
    seed
        The key from which the keys of all runs are made.
    record
        Names of diagnostics (``gs.diagnostics.list()`` shows them), :class:`Diagnostic` objects, or functions of a snapshot
        that return a number. The name of a function is the name of its variable.
    record_at
        How many steps to record, evenly spaced with the first and the last, or a list of steps. Recording does not
        change a run.
    tolerance
        If given, ``reached`` is the first step at which ``||A - A_star||_F^2 / 2`` is below it, or infinity if there is none.
        Every step is checked.
    reduction
        ``"auto"``: run in a small subspace where that is exact. ``"never"`` or ``"always"``.
    progress
        True for a bar with the time left on standard error, False for silence, or a function that is called with the number
        of runs done and of all runs. By default only a compilation of more than a second is announced, on a terminal.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(mean=1.0, spread=8.0)), gs.FreshGaussian(4000))
    >>> result = gs.run(gs.HeteroSGD(0.05), problem, num_steps=200, seeds=16)
    >>> end = gs.summary(result).isel(step=-1).sel(quantile=0.5)
    >>> bool(end.signal > 0.9), bool(end.spurious < 0.1)
    (True, True)
    """
    return _labelled_runs(
        [(algorithm, problem)],
        {},
        num_steps=num_steps,
        seeds=seeds,
        seed=seed,
        record=record,
        record_at=record_at,
        tolerance=tolerance,
        reduction=reduction,
        progress=progress,
    )


def _labelled_runs(
    cells: list[Cell], settings: Mapping[str, Sequence[Any]], *, seed: int, **options: Any
) -> xr.Dataset:
    with no_garbage_collection():  # until xarray is imported too
        result = labelled(simulate(cells, seed=seed, **options), settings, cells, seed)
    return warn_of_divergence(result, stacklevel=4)


def _says_options_as_run(function: Function) -> Function:
    """A decorator: in the docstring, parameters "as in :func:`run`" get the text that they have there."""
    texts = dict(re.findall(r"^(\w+)\n((?: {4}.+\n)+)", inspect.cleandoc(run.__doc__ or ""), re.MULTILINE))

    def in_full(entry: re.Match[str]) -> str:
        return textwrap.indent("".join(f"{name}\n{texts[name]}" for name in entry[2].split(", ")), entry[1])

    documented = r"^( *)(\w+(?:, \w+)*)\n +As in :func:`run`\.\n"
    function.__doc__ = re.sub(documented, in_full, function.__doc__ or "", flags=re.MULTILINE)
    return function


@errors.explains_keywords
@_says_options_as_run
def run_grid(
    build: Callable[..., tuple[Algorithm, Problem]],
    settings: Mapping[str, Sequence[Any]],
    *,
    num_steps: int | Callable[..., int],
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic | SnapshotFunction] = DEFAULT_RECORD,
    record_at: int | Sequence[int] | np.ndarray = 101,
    tolerance: float | None = None,
    reduction: str = "auto",
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Run ``build(**setting)`` (an algorithm and a problem) for every combination of ``settings`` and every seed.

    Parameters
    ----------
    build
        A function of the settings that returns an algorithm and a problem.
    settings
        The values of every axis by its name.
    num_steps
        The number of steps, or a function of the settings. If it differs from cell to cell, so does the coordinate ``step``,
        along the dimension ``record``.
    seeds, seed, record, record_at, tolerance, reduction, progress
        As in :func:`run`.

    >>> import gyrostat as gs
    >>> def build(spread):
    ...     environments = gs.RandomEnvironments(20, law=gs.TwoPoint(spread=spread))
    ...     return gs.HeteroSGD(0.05), gs.Problem(environments, gs.FreshGaussian(4000))
    >>> result = gs.run_grid(build, {"spread": [1.0, 8.0]}, num_steps=200, seeds=16)
    >>> gs.summary(result).spurious.sel(quantile=0.5).isel(step=-1).round().values.tolist()
    [1.0, 0.0]
    """
    errors.function_of("build", build, "the settings")
    if not isinstance(settings, Mapping):
        raise GyrostatError(f"settings must be a dictionary of lists; got {errors.shown(settings)}.")
    sequences = all(isinstance(v, Sequence | np.ndarray) and not isinstance(v, str) for v in settings.values())
    if not settings or not sequences or any(len(v) == 0 for v in settings.values()):
        raise GyrostatError("settings must name at least one axis, each with a list of at least one value.")
    names = {*RESERVED, *(word for d in resolve(record) for word in (d.name, *d.dims))}
    if taken := sorted(names & set(settings)):
        raise GyrostatError(
            f"settings cannot name an axis {taken[0]!r}, a name that the result has already: rename it."
        )
    points = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
    _check_takes("build", build, list(settings))
    cells = [build(**point) for point in points]
    if callable(num_steps):
        _check_takes("num_steps", num_steps, list(settings))
    return _labelled_runs(
        cells,
        settings,
        num_steps=[num_steps(**point) for point in points] if callable(num_steps) else num_steps,
        seeds=seeds,
        seed=seed,
        record=record,
        record_at=record_at,
        tolerance=tolerance,
        reduction=reduction,
        progress=progress,
    )


def _check_takes(name: str, function: Callable[..., Any], settings: Sequence[str]) -> None:
    """Refuse a function that cannot be called with the settings by name."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(settings))
    except (TypeError, ValueError) as error:  # the second: a built-in function that has no signature
        raise GyrostatError(
            f"{name} must be a function of the settings {', '.join(settings)}; got {errors.shown(function)}, "
            f"which does not take them ({error})."
        ) from None


@errors.explains_keywords
@_says_options_as_run
def offshoots(
    algorithm: Algorithm,
    problem: Problem,
    *,
    at: Sequence[int],
    schedule: Schedule,
    num_steps: int,
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic | SnapshotFunction] = DEFAULT_RECORD,
    record_at: int | Sequence[int] | np.ndarray = 101,
    tolerance: float | None = None,
    reduction: str = "auto",
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Branches of one run: each follows ``algorithm`` up to a step of ``at``, and ``schedule`` for ``num_steps`` more.

    The keys of steps do not depend on schedules, so every branch leaves the trajectory that :func:`run` computes for the
    same seed. Dimensions ``branch`` (the steps of ``at``), ``seed`` and ``record``; the recorded steps of a branch lie
    between its first and its last step, and ``step`` counts from the beginning of the run.

    Parameters
    ----------
    algorithm, problem
        As in :func:`run`.
    at
        The steps at which branches leave the run.
    schedule
        The schedule of the branches.
    num_steps
        The number of steps of a branch.
    record_at
        How many steps of a branch to record, or a list of steps, counted from its first.
    seeds, seed, record, tolerance, reduction, progress
        As in :func:`run`.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.Environments.diagonal(4, [1.0]), gs.Identity())
    >>> trunk = gs.GradientDescent(0.1, width=2)
    >>> late = gs.engine.offshoots(trunk, problem, at=[5, 20], schedule=gs.schedules.Constant(0.01), num_steps=10, record_at=2)
    >>> late.step.values.tolist()
    [[5, 15], [20, 30]]
    """
    points = [errors.integer("at", t) for t in at] if isinstance(at, Sequence | np.ndarray) else []
    if not points:
        raise GyrostatError(f"at must list at least one step at which to branch; got {errors.shown(at)}.")
    length = errors.integer("num_steps", num_steps, least=1)
    errors.instance("algorithm", algorithm, Algorithm, "an Algorithm")
    schedules = [Annealing(algorithm.schedule, schedule, t) for t in points]
    cells = [(eqx.tree_at(lambda a: a.schedule, algorithm, each), problem) for each in schedules]
    return _labelled_runs(
        cells,
        {"branch": points},
        num_steps=[t + length for t in points],
        seeds=seeds,
        seed=seed,
        record=record,
        record_at=record_at,
        record_from=points,
        tolerance=tolerance,
        reduction=reduction,
        progress=progress,
    )
