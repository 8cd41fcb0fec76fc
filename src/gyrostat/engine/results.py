"""Results: the steps to record, the recorded values of all runs, and the labelled Dataset that carries its settings."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

import gyrostat
from gyrostat import errors
from gyrostat.diagnostics.base import Diagnostic
from gyrostat.engine.summary import never_is_infinite, with_note
from gyrostat.errors import GyrostatError

if TYPE_CHECKING:
    import xarray as xr

    from gyrostat.algorithms.algorithm import Algorithm
    from gyrostat.measurements.problem import Problem

Values = dict[str, np.ndarray]
"""The recorded values of the runs of one cell by name, with leading dimension seed."""


@dataclass(frozen=True)
class Trajectories:
    """Recorded values of many runs: arrays with leading dimensions (cell, seed, record).

    ``ends`` holds numbers about whole runs, with dimensions (cell, seed): the step at which a run diverged, the step at
    which it reached the tolerance (-1 for never), the summaries of its events. ``steps`` (cell, record) are the recorded
    steps. ``notes`` are sentences that a reader should not miss.
    """

    record: tuple[Diagnostic, ...]
    values: dict[str, np.ndarray]
    ends: dict[str, np.ndarray]
    steps: np.ndarray
    seeds: np.ndarray
    notes: list[str]


def recording_grids(record_at: int | Sequence[int] | np.ndarray, horizons: list[int], starts: list[int]) -> np.ndarray:
    """The recorded steps of every cell (cell, record), equally many for each cell. A list counts from the start of a cell.

    >>> recording_grids(3, [4, 10], [0, 0]).tolist()
    [[0, 2, 4], [0, 5, 10]]
    >>> recording_grids([0, 1], [6, 9], [2, 5]).tolist()
    [[2, 3, 6], [5, 6, 9]]
    """
    lengths = [T - start for start, T in zip(starts, horizons, strict=True)]
    if isinstance(record_at, Sequence | np.ndarray):
        if len(set(lengths)) > 1:
            raise GyrostatError("record_at must be a number of points, not a list, when num_steps differs by setting.")
        T = lengths[0]
        steps = np.array([errors.integer("record_at", s, most=T, most_because=", num_steps") for s in record_at])
        if steps.size == 0 or (np.diff(steps) <= 0).any():
            raise GyrostatError("record_at must list at least one step, in increasing order.")
        # A run continues to num_steps even when the last recording is earlier, so that divergence is noticed.
        steps = steps if steps[-1] == T else np.append(steps, T)
        return np.array(starts)[:, None] + steps
    # At most as many points as the shortest run has steps, so that no step is recorded twice.
    points = min(errors.integer("record_at", record_at, least=1, most=errors.MOST_STEPS), min(lengths) + 1)
    first = 0 if points > 1 else 1
    spread = [np.round(np.linspace(first * T, T, points)).astype(int) for T in lengths]
    return np.array(starts)[:, None] + np.stack(spread)


def gather(
    cells: list[Values], record: Sequence[Diagnostic], events: Sequence[Any], steps: np.ndarray, seeds: Sequence[int]
) -> Trajectories:
    """The values of all cells in one set of arrays. ``events`` holds one event of each kind, which may add notes.

    A cell that lacks a number about its runs (that of an event of other cells) gets -1, or NaN for a real number.
    """
    values = {d.name: _stacked([cell[d.name] for cell in cells]) for d in record}
    names = sorted({name for cell in cells for name in cell} - values.keys())
    known = {name: [cell[name] for cell in cells if name in cell] for name in names}
    missing = {name: np.full_like(x[0], -1 if x[0].dtype.kind in "iu" else np.nan) for name, x in known.items()}
    ends = {name: np.stack([cell.get(name, missing[name]) for cell in cells]) for name in names}
    of_all_runs = {name: np.concatenate(x) for name, x in known.items()}
    notes = [note for event in events for note in event.notes(of_all_runs)]
    return Trajectories(tuple(record), values, ends, steps, np.asarray(seeds), notes)


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    """The values of cells as one array, padded with NaN where last dimensions differ (numbers of singular values)."""
    stack = np.full((len(arrays), *np.max([a.shape for a in arrays], axis=0)), np.nan)
    for row, a in zip(stack, arrays, strict=True):
        row[tuple(map(slice, a.shape))] = a
    return stack


def labelled(
    trajectories: Trajectories,
    settings: Mapping[str, Sequence[Any]],
    cells: Sequence[tuple[Algorithm, Problem]],
    seed: int,
) -> xr.Dataset:
    """A Dataset with dimensions for each setting, ``seed``, ``step`` (``record`` if steps differ) and those of diagnostics.

    Steps at which something happened to a run (``diverged``, ``reached``) are times: infinite if it never did, so that
    quantiles over seeds mean what they say. Every variable and coordinate has ``long_name``, ``units`` and ``one_means``.
    """
    xr = import_xarray()
    sizes, steps = tuple(len(values) for values in settings.values()), trajectories.steps
    along = "step" if (steps == steps[0]).all() else "record"

    def by_setting(x: np.ndarray) -> np.ndarray:
        return x.reshape(sizes + x.shape[1:])

    data: dict[str, Any] = {}
    for d in trajectories.record:
        data[d.name] = (*settings, "seed", along, *d.dims), by_setting(trajectories.values[d.name]), meaning_of(d)
    for name, x in trajectories.ends.items():
        data[name] = (*settings, "seed"), by_setting(never_is_infinite(x)), meaning_of_outcome(name)
    coordinates: dict[str, Any] = {
        name: (name, list(values), meaning_of_setting(name)) for name, values in settings.items()
    }
    coordinates["seed"] = "seed", trajectories.seeds, SEED_MEANING
    if along == "step":
        coordinates["step"] = "step", steps[0], STEP_MEANING
    else:
        coordinates["step"] = (*settings, "record"), by_setting(steps), STEP_MEANING
    algorithm, problem = cells[0]
    text = json.dumps({"algorithm": describe(algorithm), "problem": describe(problem)})
    attributes = {"gyrostat": gyrostat.__version__, "seed": seed, "settings": text}
    if trajectories.notes:
        attributes["notes"] = "\n".join(trajectories.notes)
    if settings:
        attributes["varied"] = json.dumps({name: [_plain(x) for x in values] for name, values in settings.items()})
    return with_note(xr.Dataset(data, coords=coordinates, attrs=attributes))


def import_xarray() -> ModuleType:
    """Import xarray without the dask that it imports for its first Dataset, where dask is installed.

    For each array, xarray asks whether it is one of dask's, and imports ``dask`` and ``dask.array`` to ask. That takes .4 s of
    the first result of a process that has nothing to do with dask. But nothing can be an array of a library that nobody has
    imported. No argument of xarray turns the question off: it is asked whenever a coordinate is indexed, as in
    ``result.isel(step=-1)``. The two names that are replaced are private; a version of xarray that lacks one is left as it is.
    """
    import xarray
    from xarray.namedarray import pycompat, utils

    kept: Any = getattr(pycompat, "_cached_duck_array_modules", None)
    asked: Any = getattr(utils, "is_dask_collection", None)
    if "dask" in sys.modules or kept is None or "dask" in kept or asked is None:
        return xarray

    class Dask:
        """Stands for what xarray keeps about dask, and gives its place to that as soon as dask is imported."""

        def __getattr__(self, name: str) -> Any:
            if name == "type" and "dask.array" not in sys.modules:
                return ()
            kept["dask"] = pycompat.DuckArrayModule("dask")
            return getattr(kept["dask"], name)

    kept["dask"] = Dask()
    utils.is_dask_collection = lambda x: "dask" in sys.modules and asked(x)  # type: ignore[assignment]
    return xarray


# --- what variables mean --------------------------------------------------------------------------------------


def _meaning(long_name: str, units: str, one_means: str) -> dict[str, str]:
    return {"long_name": long_name, "units": units, "one_means": one_means}


SEED_MEANING = _meaning("number of the run", "1", "the run whose key is fold_in(key(seed), 1)")
STEP_MEANING = _meaning("number of steps made", "steps", "after the first step")
BRANCH_MEANING = _meaning("step at which the branch begins", "steps", "after the first step")
OUTCOMES = {
    "diverged": _meaning("step at which the run diverged (inf: it did not)", "steps", "diverged in the first step"),
    "reached": _meaning(
        "first step at which ||A - A_star||_F^2 / 2 is below the tolerance (inf: none)", "steps", "after the first step"
    ),
    "imbalance_step": _meaning(
        "step after which the imbalance step was made (inf: not made)", "steps", "after the first step"
    ),
}


def meaning_of(diagnostic: Diagnostic) -> dict[str, str]:
    """The attributes of a recorded variable: what it is, its unit, and what a value of 1 means.

    >>> import gyrostat as gs
    >>> meaning_of(gs.diagnostics.DIAGNOSTICS["signal"])["one_means"]
    'the invariant signal is learnt in full'
    >>> meaning_of(gs.diagnostics.Diagnostic("my_norm", abs))
    {'long_name': 'my norm', 'units': '1', 'one_means': 'a value of 1, in the units of my_norm'}
    """
    unsaid = meaning_of_outcome(diagnostic.name)
    long_name = diagnostic.description.rstrip(".") or unsaid["long_name"]
    return _meaning(long_name, diagnostic.units, diagnostic.one_means or unsaid["one_means"])


def meaning_of_outcome(name: str) -> dict[str, str]:
    """The attributes of a number about a whole run."""
    return OUTCOMES.get(name) or _meaning(name.replace("_", " "), "1", f"a value of 1, in the units of {name}")


def meaning_of_setting(name: str) -> dict[str, str]:
    """The attributes of an axis of settings."""
    return BRANCH_MEANING if name == "branch" else _meaning(name.replace("_", " "), "1", f"{name} = 1")


# --- settings as plain data -----------------------------------------------------------------------------------

NOT_DESCRIBED = "array of shape"
MOST_DESCRIBED = 4096
"""Arrays with more numbers are described by their shape alone."""


def describe(part: Any) -> Any:
    """A module as plain data (names, numbers, short lists), which results carry as their settings.

    >>> import gyrostat as gs
    >>> describe(gs.FreshGaussian(8000))
    {'kind': 'FreshGaussian', 'num_samples': 8000.0, 'noise': 0.0}
    """
    if isinstance(part, eqx.Module):
        fields = {name: describe(getattr(part, name)) for name in field_names(type(part))}
        return {"kind": type(part).__name__, **fields}
    return [describe(x) for x in part] if isinstance(part, tuple | list) else _plain(part)


def field_names(kind: type[eqx.Module]) -> list[str]:
    """The fields of a class of modules, without attributes of the class."""
    return [field.name for field in dataclasses.fields(kind)]


def _plain(x: Any) -> Any:
    """A value as JSON can hold it: an array as lists (a large one as its shape), infinity as text, an object by its repr."""
    if isinstance(x, np.ndarray | np.generic):
        return _plain(x.tolist()) if x.size <= MOST_DESCRIBED else f"{NOT_DESCRIBED} {x.shape}"
    if isinstance(x, list):
        return [_plain(y) for y in x]
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)
    return x if isinstance(x, str | int | float | bool | None) else repr(x)


def described(description: Any) -> Any:
    """The module of a description, or None where this does not say enough: of a class of your own, a function, a large array.

    >>> import gyrostat as gs
    >>> described(describe(gs.HeteroSGD(0.05))) == gs.HeteroSGD(0.05)
    True
    """
    if isinstance(description, list):
        items = tuple(described(x) for x in description)
        return np.asarray(items) if items and all(isinstance(x, np.ndarray) or x == () for x in items) else items
    if isinstance(description, float) or description in ("inf", "-inf", "nan"):
        return np.asarray(float(description))
    if not isinstance(description, Mapping):
        return description
    kind: Any = gyrostat.public(description["kind"])
    fields = {name: described(x) for name, x in description.items() if name != "kind"}
    # A class of your own may have the name of a function of ours.
    if not (isinstance(kind, type) and issubclass(kind, eqx.Module)) or list(fields) != field_names(kind):
        return None
    for name, x in fields.items():
        is_unknown_module = x is None and isinstance(description[name], Mapping)
        if is_unknown_module or (isinstance(x, str) and x.startswith((NOT_DESCRIBED, "<"))):
            return None
    module = object.__new__(kind)
    for name, x in fields.items():
        object.__setattr__(module, name, x)
    return module
