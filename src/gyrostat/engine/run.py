"""Public entries: run one algorithm, a grid of settings, or branches of a run; each returns a labelled Dataset."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.schedules import Annealing, Schedule
from gyrostat.diagnostics import Diagnostic
from gyrostat.engine.compile import Cell
from gyrostat.engine.progress import Progress
from gyrostat.engine.results import labelled
from gyrostat.engine.simulate import DEFAULT_RECORD, simulate
from gyrostat.engine.summary import warn_of_divergence
from gyrostat.errors import GyrostatError
from gyrostat.measurements.problem import Problem

if TYPE_CHECKING:
    import xarray as xr


@errors.explains_keywords
def run(
    algorithm: Algorithm,
    problem: Problem,
    *,
    num_steps: int,
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic] = DEFAULT_RECORD,
    record_at: int | Sequence[int] | np.ndarray = 101,
    tolerance: float | None = None,
    reduction: str = "auto",
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Run one algorithm on one problem for many seeds; dimensions ``seed`` and ``step``.

    ``diverged`` is the step at which a run diverged, or infinity if it did not. From that step on its values are NaN, and a
    :class:`DivergenceWarning` says how many runs diverged. :func:`gyrostat.summary` counts them as infinite. With
    ``tolerance``, ``reached`` is the first step at which ``||A - A_star||_F^2 / 2`` is below it, or infinity. ``reduction``
    is ``"auto"`` (run in a small subspace when that is exact), ``"never"`` or ``"always"``. ``progress=True`` shows a bar
    with the time left on standard error; a function is called with the number of runs that are done and of all runs. By
    default only a compilation of more than a second is announced, and only on a terminal; ``False`` is silent.

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
        Names of diagnostics (``gs.DIAGNOSTICS`` lists them), :class:`Diagnostic` objects, or functions of a snapshot.
    record_at
        How many steps to record, evenly spaced with the first and the last, or a list of steps. Recording does not
        change a run.
    tolerance
        If given, ``reached`` holds the first step at which ``||A - A_star||_F^2 / 2`` is below it.
    reduction
        ``"auto"``: run in a small subspace where that is exact. ``"never"`` or ``"always"``.
    progress
        True for a bar on standard error, False for silence, or a function of the runs done and all runs.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(mean=1.0, spread=8.0)), gs.FreshGaussian(4000))
    >>> result = gs.run(gs.HeteroSGD(0.05), problem, num_steps=200, seeds=16)
    >>> end = gs.summary(result).isel(step=-1).sel(quantile=0.5)
    >>> bool(end.signal > 0.9), bool(end.spurious < 0.1)
    (True, True)
    """
    trajectories = simulate(
        [(algorithm, problem)],
        num_steps=num_steps,
        seeds=seeds,
        seed=seed,
        record=record,
        record_at=record_at,
        tolerance=tolerance,
        reduction=reduction,
        progress=progress,
    )
    return warn_of_divergence(labelled(trajectories, {}, [(algorithm, problem)], seed), stacklevel=3)


@errors.explains_keywords
def run_grid(
    build: Callable[..., Cell],
    settings: Mapping[str, Sequence[Any]],
    *,
    num_steps: int | Callable[..., int],
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic] = DEFAULT_RECORD,
    record_at: int | Sequence[int] | np.ndarray = 101,
    tolerance: float | None = None,
    reduction: str = "auto",
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Run ``build(**setting)`` (an algorithm and a problem) for every combination of ``settings`` and every seed.

    ``num_steps`` may be a function of the same settings; ``step`` is then a coordinate that differs from cell to cell,
    along the dimension ``record``. ``progress=True`` shows a bar, as in :func:`run`.

    Parameters
    ----------
    build
        A function of the settings that returns an algorithm and a problem.
    settings
        The values of every axis by its name.
    num_steps
        The number of steps, or a function of the settings.
    seeds
        The number of runs, or a list of distinct seeds.
    seed
        The key from which the keys of all runs are made.
    record
        Names of diagnostics (``gs.DIAGNOSTICS`` lists them), :class:`Diagnostic` objects, or functions of a snapshot.
    record_at
        How many steps to record, evenly spaced with the first and the last, or a list of steps. Recording does not
        change a run.
    tolerance
        If given, ``reached`` holds the first step at which ``||A - A_star||_F^2 / 2`` is below it.
    reduction
        ``"auto"``: run in a small subspace where that is exact. ``"never"`` or ``"always"``.
    progress
        True for a bar on standard error, False for silence, or a function of the runs done and all runs.

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
    if taken := sorted({"seed", "step", "record"} & set(settings)):
        raise GyrostatError(f"settings cannot name an axis {taken[0]!r}: that is a dimension of every result.")
    points = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
    _check_takes("build", build, list(settings))
    cells = [build(**point) for point in points]
    if callable(num_steps):
        _check_takes("num_steps", num_steps, list(settings))
    horizons = [num_steps(**point) for point in points] if callable(num_steps) else num_steps
    trajectories = simulate(
        cells,
        num_steps=horizons,
        seeds=seeds,
        seed=seed,
        record=record,
        record_at=record_at,
        tolerance=tolerance,
        reduction=reduction,
        progress=progress,
    )
    return warn_of_divergence(labelled(trajectories, settings, cells, seed), stacklevel=3)


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
def offshoots(
    algorithm: Algorithm,
    problem: Problem,
    *,
    at: Sequence[int],
    schedule: Schedule,
    num_steps: int,
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic] = DEFAULT_RECORD,
    record_at: int = 101,
    reduction: str = "auto",
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Branches of one run: each follows ``algorithm`` up to a step of ``at``, and ``schedule`` for ``num_steps`` more.

    The keys of steps do not depend on schedules, so every branch leaves the trajectory that :func:`run` computes for the
    same seed. Dimensions ``branch`` (the steps of ``at``), ``seed`` and ``record``; the ``record_at`` recorded steps of a
    branch lie between its first and its last step.

    Parameters
    ----------
    algorithm
        What to run, such as ``HeteroSGD(0.05)``.
    problem
        What to run it on: environments and measurements.
    at
        The steps at which branches leave the run.
    schedule
        The schedule of the branches.
    num_steps
        The number of steps of a branch.
    seeds
        The number of runs, or a list of distinct seeds.
    seed
        The key from which the keys of all runs are made.
    record
        Names of diagnostics (``gs.DIAGNOSTICS`` lists them), :class:`Diagnostic` objects, or functions of a snapshot.
    record_at
        How many steps of a branch to record.
    reduction
        ``"auto"``: run in a small subspace where that is exact. ``"never"`` or ``"always"``.
    progress
        True for a bar on standard error, False for silence, or a function of the runs done and all runs.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.Environments.diagonal(4, [1.0]), gs.Identity())
    >>> trunk = gs.GradientDescent(0.1, width=2)
    >>> late = gs.offshoots(trunk, problem, at=[5, 20], schedule=gs.Constant(0.01), num_steps=10, record_at=2)
    >>> late.step.values.tolist()
    [[5, 15], [20, 30]]
    """
    points = [errors.integer("at", t) for t in at] if isinstance(at, Sequence | np.ndarray) else []
    if not points:
        raise GyrostatError(f"at must list at least one step at which to branch; got {errors.shown(at)}.")
    length = errors.integer("num_steps", num_steps, least=1)
    errors.instance("algorithm", algorithm, Algorithm, "an Algorithm")
    cells: list[Cell] = [
        (eqx.tree_at(lambda a: a.schedule, algorithm, Annealing(algorithm.schedule, schedule, t)), problem)
        for t in points
    ]
    trajectories = simulate(
        cells,
        num_steps=[t + length for t in points],
        seeds=seeds,
        seed=seed,
        record=record,
        record_at=errors.integer("record_at", record_at, least=1),
        record_from=points,
        reduction=reduction,
        progress=progress,
    )
    return warn_of_divergence(labelled(trajectories, {"branch": points}, cells, seed), stacklevel=3)
