"""Labelled results: trajectories as an xarray Dataset that carries its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from gyrostat import __version__
from gyrostat.engine.compile import Cell
from gyrostat.engine.record import Trajectories

if TYPE_CHECKING:
    import xarray as xr


def labelled(
    trajectories: Trajectories, settings: Mapping[str, Sequence[Any]], cells: list[Cell], seed: int
) -> xr.Dataset:
    """A Dataset with dimensions for each setting, ``seed``, ``step`` (``record`` if steps differ) and those of diagnostics."""
    import xarray as xr

    sizes = tuple(len(v) for v in settings.values())
    axes, steps = tuple(settings), trajectories.steps
    same_steps = bool((steps == steps[0]).all())
    along = "step" if same_steps else "record"

    def by_setting(x: np.ndarray) -> np.ndarray:
        return x.reshape(sizes + x.shape[1:])

    data: dict[str, Any] = {
        name: ((*axes, "seed", along, *trajectories.dims[name]), by_setting(x))
        for name, x in trajectories.values.items()
    }
    data |= {name: ((*axes, "seed"), by_setting(x)) for name, x in trajectories.ends.items()}
    coordinates: dict[str, Any] = {name: list(values) for name, values in settings.items()}
    coordinates["seed"] = trajectories.seeds
    coordinates["step"] = ("step", steps[0]) if same_steps else ((*axes, "record"), by_setting(steps))
    described = {"algorithm": describe(cells[0][0]), "problem": describe(cells[0][1])}
    attributes = {"gyrostat": __version__, "seed": seed, "settings": json.dumps(described)}
    if trajectories.notes:
        attributes["notes"] = "\n".join(trajectories.notes)
    if settings:
        attributes["varied"] = json.dumps({k: [_plain(x) for x in v] for k, v in settings.items()})
    return xr.Dataset(data, coords=coordinates, attrs=attributes)


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


def _plain(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        return _plain(x.tolist()) if x.size <= 64 else f"array of shape {x.shape}"
    if isinstance(x, list):
        return [_plain(y) for y in x]
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)  # JSON has no infinity
    return x if isinstance(x, str | int | float | bool | type(None)) else repr(x)
