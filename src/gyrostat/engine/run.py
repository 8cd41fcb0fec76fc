"""Labelled results: run an algorithm, or a grid of settings, and get an xarray Dataset that carries its settings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.schedules import Annealing, Schedule
from gyrostat.diagnostics import Diagnostic
from gyrostat.engine.simulate import DEFAULT_RECORD, Cell, Progress, Trajectories, simulate
from gyrostat.errors import GyrostatError
from gyrostat.measurements.problem import Problem
from gyrostat.version import __version__

if TYPE_CHECKING:
    import xarray as xr


def run(
    algorithm: Algorithm,
    problem: Problem,
    *,
    num_steps: int,
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic] = DEFAULT_RECORD,
    record_at: int | Sequence[int] = 101,
    tolerance: float | None = None,
    reduction: str = "auto",
    progress: Progress | None = None,
) -> xr.Dataset:
    """Run one algorithm on one problem for many seeds; dimensions ``seed`` and ``step``.

    ``diverged`` holds the step at which a run left the finite range (-1 if it did not); its values are NaN from there.
    With ``tolerance``, ``reached`` holds the first step at which ``||A - A_star||_F^2 / 2`` is below it (-1 for never).
    ``reduction`` is ``"auto"`` (run in a small subspace when that is exact), ``"never"`` or ``"always"``.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(mean=1.0, spread=8.0)), gs.FreshGaussian(4000))
    >>> result = gs.run(gs.HeteroSGD(0.05), problem, num_steps=200, seeds=16)
    >>> bool(result.signal.isel(step=-1).median() > 0.9), bool(result.spurious.isel(step=-1).median() < 0.1)
    (True, True)
    """
    found = simulate(
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
    return _dataset(found, {}, [(algorithm, problem)], seed)


def run_grid(
    build: Callable[..., Cell],
    settings: Mapping[str, Sequence[Any]],
    *,
    num_steps: int | Callable[..., int],
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic] = DEFAULT_RECORD,
    record_at: int | Sequence[int] = 101,
    tolerance: float | None = None,
    reduction: str = "auto",
    progress: Progress | None = None,
) -> xr.Dataset:
    """Run ``build(**setting)`` (an algorithm and a problem) for every combination of ``settings`` and every seed.

    ``num_steps`` may be a function of the same settings; ``step`` is then a coordinate that differs from cell to cell,
    along the dimension ``record``.

    >>> import gyrostat as gs
    >>> def build(spread):
    ...     places = gs.RandomEnvironments(20, law=gs.TwoPoint(spread=spread))
    ...     return gs.HeteroSGD(0.05), gs.Problem(places, gs.FreshGaussian(4000))
    >>> result = gs.run_grid(build, {"spread": [1.0, 8.0]}, num_steps=200, seeds=16)
    >>> result.spurious.isel(step=-1).median("seed").round().values.tolist()
    [1.0, 0.0]
    """
    sequences = all(isinstance(v, Sequence | np.ndarray) and not isinstance(v, str) for v in settings.values())
    if not settings or not sequences or any(len(v) == 0 for v in settings.values()):
        raise GyrostatError("settings must name at least one axis, each with a list of at least one value.")
    if taken := sorted({"seed", "step", "record"} & set(settings)):
        raise GyrostatError(f"settings cannot name an axis {taken[0]!r}: that is a dimension of every result.")
    points = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
    cells = [build(**point) for point in points]
    horizons = [num_steps(**point) for point in points] if callable(num_steps) else num_steps
    found = simulate(
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
    return _dataset(found, settings, cells, seed)


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
    progress: Progress | None = None,
) -> xr.Dataset:
    """Branches of one run: each follows ``algorithm`` up to a step of ``at``, and ``schedule`` for ``num_steps`` more.

    The keys of the steps do not know of schedules, so every branch leaves the trunk that :func:`run` shows for the same
    seed. Dimensions ``branch`` (the steps of ``at``), ``seed`` and ``record``; the ``record_at`` recorded steps of a branch
    run from where it leaves to its end.

    >>> import gyrostat as gs
    >>> places = gs.Environments.diagonal(4, [1.0])
    >>> trunk = gs.GradientDescent(0.1, width=2)
    >>> late = gs.offshoots(
    ...     trunk, gs.Problem(places, gs.Identity()), at=[5, 20], schedule=gs.Constant(0.01), num_steps=10, record_at=2
    ... )
    >>> late.step.values.tolist()
    [[5, 15], [20, 30]]
    """
    points = [errors.integer("at", t) for t in at] if isinstance(at, Sequence | np.ndarray) else []
    if not points:
        raise GyrostatError(f"at must list at least one step at which to branch; got {errors.shown(at)}.")
    length = errors.integer("num_steps", num_steps, least=1)
    if not isinstance(algorithm, Algorithm):
        raise GyrostatError(f"algorithm must be an Algorithm; got {errors.shown(algorithm)}.")
    cells: list[Cell] = [
        (eqx.tree_at(lambda a: a.schedule, algorithm, Annealing(algorithm.schedule, schedule, t)), problem)
        for t in points
    ]
    found = simulate(
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
    return _dataset(found, {"branch": points}, cells, seed)


def _dataset(found: Trajectories, settings: Mapping[str, Sequence[Any]], cells: list[Cell], seed: int) -> xr.Dataset:
    import xarray as xr

    sizes = tuple(len(v) for v in settings.values())
    axes = tuple(settings)
    shared = bool((found.steps == found.steps[0]).all())
    along = "step" if shared else "record"

    def shaped(x: np.ndarray) -> np.ndarray:
        return x.reshape(sizes + x.shape[1:])

    data: dict[str, Any] = {
        name: ((*axes, "seed", along, *found.dims[name]), shaped(x)) for name, x in found.values.items()
    }
    data |= {name: ((*axes, "seed"), shaped(x)) for name, x in found.ends.items()}
    coordinates: dict[str, Any] = {name: list(values) for name, values in settings.items()}
    coordinates["seed"] = found.seeds
    coordinates["step"] = ("step", found.steps[0]) if shared else ((*axes, "record"), shaped(found.steps))
    described = {"algorithm": describe(cells[0][0]), "problem": describe(cells[0][1])}
    attributes = {"gyrostat": __version__, "seed": seed, "settings": json.dumps(described)}
    if found.notes:
        attributes["notes"] = "\n".join(found.notes)
    if settings:
        attributes["varied"] = json.dumps({k: [_plain(x) for x in v] for k, v in settings.items()})
    return xr.Dataset(data, coords=coordinates, attrs=attributes)


def describe(part: Any) -> Any:
    """A module as plain data (names, numbers, short lists), for results to carry.

    >>> import gyrostat as gs
    >>> describe(gs.FreshGaussian(8000))
    {'kind': 'FreshGaussian', 'num_samples': 8000.0, 'noise': 0.0}
    """
    if isinstance(part, eqx.Module):
        fields = {name: describe(getattr(part, name)) for name in part.__dataclass_fields__}
        return {"kind": type(part).__name__, **fields}
    if isinstance(part, tuple | list):
        return [describe(x) for x in part]
    return _plain(part)


def _plain(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        return _plain(x.tolist()) if x.size <= 64 else f"array of shape {x.shape}"
    if isinstance(x, list):
        return [_plain(y) for y in x]
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)  # JSON has no infinity
    return x if isinstance(x, str | int | float | bool | type(None)) else repr(x)
