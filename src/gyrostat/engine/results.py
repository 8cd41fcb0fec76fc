"""Labelled results: trajectories as an xarray Dataset that carries its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

import gyrostat
from gyrostat import __version__
from gyrostat.diagnostics.base import Diagnostic
from gyrostat.engine.compile import Cell
from gyrostat.engine.record import Trajectories
from gyrostat.engine.summary import never_is_infinite, with_note

if TYPE_CHECKING:
    import xarray as xr


def labelled(
    trajectories: Trajectories, settings: Mapping[str, Sequence[Any]], cells: list[Cell], seed: int
) -> xr.Dataset:
    """A Dataset with dimensions for each setting, ``seed``, ``step`` (``record`` if steps differ) and those of diagnostics.

    Steps at which something happened to a run (``diverged``, ``reached``) are times: infinite if it never did, so that
    quantiles over seeds mean what they say. Every variable and coordinate has ``long_name``, ``units`` and ``one_means``.
    """
    import xarray as xr

    sizes = tuple(len(v) for v in settings.values())
    axes, steps = tuple(settings), trajectories.steps
    same_steps = bool((steps == steps[0]).all())
    along = "step" if same_steps else "record"

    meanings = {d.name: meaning_of(d) for d in trajectories.record}

    def by_setting(x: np.ndarray) -> np.ndarray:
        return x.reshape(sizes + x.shape[1:])

    data: dict[str, Any] = {
        name: ((*axes, "seed", along, *trajectories.dims[name]), by_setting(x), meanings.get(name, {}))
        for name, x in trajectories.values.items()
    }
    data |= {
        name: ((*axes, "seed"), by_setting(never_is_infinite(x)), meaning_of_outcome(name))
        for name, x in trajectories.ends.items()
    }
    coordinates: dict[str, Any] = {
        name: (name, list(values), meaning_of_setting(name)) for name, values in settings.items()
    }
    coordinates["seed"] = ("seed", trajectories.seeds, SEED_MEANING)
    where = (("step",), steps[0]) if same_steps else ((*axes, "record"), by_setting(steps))
    coordinates["step"] = (*where, STEP_MEANING)
    described = {"algorithm": describe(cells[0][0]), "problem": describe(cells[0][1])}
    attributes = {"gyrostat": __version__, "seed": seed, "settings": json.dumps(described)}
    if trajectories.notes:
        attributes["notes"] = "\n".join(trajectories.notes)
    if settings:
        attributes["varied"] = json.dumps({k: [_plain(x) for x in v] for k, v in settings.items()})
    return with_note(xr.Dataset(data, coords=coordinates, attrs=attributes))


SEED_MEANING = {
    "long_name": "number of the run",
    "units": "1",
    "one_means": "the run whose key is fold_in(key(seed), 1)",
}
STEP_MEANING = {"long_name": "number of steps made", "units": "steps", "one_means": "after the first step"}
OUTCOMES = {
    "diverged": ("step at which the run diverged (inf: it did not)", "diverged in the first step"),
    "reached": (
        "first step at which ||A - A_star||_F^2 / 2 is below the tolerance (inf: none)",
        "after the first step",
    ),
    "imbalance_step": ("step after which the imbalance step was made (inf: not made)", "after the first step"),
}


def meaning_of(diagnostic: Diagnostic) -> dict[str, str]:
    """The attributes of a recorded variable: what it is, its unit, and what a value of 1 means.

    >>> import gyrostat as gs
    >>> meaning_of(gs.DIAGNOSTICS["signal"])["one_means"]
    'the invariant signal is learnt in full'
    >>> meaning_of(gs.Diagnostic("my_norm", abs))
    {'long_name': 'my norm', 'units': '1', 'one_means': 'a value of 1, in the units of my_norm'}
    """
    return {
        "long_name": diagnostic.description.rstrip(".") or diagnostic.name.replace("_", " "),
        "units": diagnostic.units,
        "one_means": diagnostic.one_means or f"a value of 1, in the units of {diagnostic.name}",
    }


def meaning_of_outcome(name: str) -> dict[str, str]:
    """The attributes of a number about a whole run."""
    if name in OUTCOMES:
        long_name, one = OUTCOMES[name]
        return {"long_name": long_name, "units": "steps", "one_means": one}
    return {"long_name": name.replace("_", " "), "units": "1", "one_means": f"a value of 1, in the units of {name}"}


def meaning_of_setting(name: str) -> dict[str, str]:
    """The attributes of an axis of settings."""
    if name == "branch":
        return {"long_name": "step at which the branch begins", "units": "steps", "one_means": "after the first step"}
    return {"long_name": name.replace("_", " "), "units": "1", "one_means": f"{name} = 1"}


def describe(part: Any) -> Any:
    """A module as plain data (names, numbers, short lists), which results carry as their settings.

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


def described(description: Any) -> Any:
    """The module of a description, or None where this does not say enough: of a class of your own, a function, a large array.

    >>> import gyrostat as gs
    >>> described(describe(gs.HeteroSGD(0.05))) == gs.HeteroSGD(0.05)
    True
    """
    if isinstance(description, list):
        inner = tuple(described(x) for x in description)
        return np.asarray(inner) if inner and all(isinstance(x, np.ndarray) or x == () for x in inner) else inner
    if isinstance(description, float) or description in ("inf", "-inf", "nan"):
        return np.asarray(float(description))
    if not isinstance(description, Mapping):
        return description
    kind = getattr(gyrostat, description["kind"], None) if description["kind"] in gyrostat.__all__ else None
    fields = {name: described(x) for name, x in description.items() if name != "kind"}
    if kind is None or set(fields) != set(kind.__dataclass_fields__):
        return None
    if any(isinstance(x, str) and x.startswith((NOT_DESCRIBED, "<")) for x in fields.values()):
        return None
    if any(x is None and isinstance(description[name], Mapping) for name, x in fields.items()):
        return None
    module = object.__new__(kind)
    for name, x in fields.items():
        object.__setattr__(module, name, x)
    return module


NOT_DESCRIBED = "array of shape"
MOST_DESCRIBED = 4096
"""Arrays with more numbers are described by their shape alone."""


def _plain(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        return _plain(x.tolist()) if x.size <= MOST_DESCRIBED else f"{NOT_DESCRIBED} {x.shape}"
    if isinstance(x, list):
        return [_plain(y) for y in x]
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)  # JSON has no infinity
    return x if isinstance(x, str | int | float | bool | type(None)) else repr(x)
