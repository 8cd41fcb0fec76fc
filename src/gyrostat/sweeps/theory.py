"""The predictors of the theory over the cells of a sweep, kept in ``theory.json`` for the pictures."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gyrostat.parallel.whole_files import plain, write_whole
from gyrostat.sweeps.spec import Spec
from gyrostat.sweeps.store import words

MOST = 16
"""Values of an axis at which a prediction is made; their boundaries are smooth."""

NAME = "theory.json"


def predict(spec: Spec, folder: Path) -> None:
    """Ask every predictor that speaks of these runs, on a thinned grid, and keep the answers."""
    kept = [_thinned(a.values) if a.ordered else list(range(len(a.values))) for a in spec.axes]
    axes = {
        a.name: [a.values[i] if a.ordered else words(a.values[i]) for i in indices]
        for a, indices in zip(spec.axes, kept, strict=True)
    }
    shape = tuple(len(ks) for ks in kept)
    answers: dict[str, np.ndarray] = {}
    for index, point in zip(np.ndindex(shape), itertools.product(*kept), strict=True):
        for name, value in _answers(spec, point).items():
            answers.setdefault(name, np.full(shape, np.nan))[index] = value
    write_whole(folder / NAME, json.dumps({"axes": axes, "predictors": plain(answers)}) + "\n")


def predictions(folder: Path) -> dict[str, Any]:
    """What :func:`predict` kept, as labelled arrays by the name of the predictor."""
    import xarray as xr

    path = folder / NAME
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    return {
        name: xr.DataArray(np.array(values, dtype=float), coords=found["axes"], dims=list(found["axes"]))
        for name, values in found["predictors"].items()
    }


def _answers(spec: Spec, point: tuple[int, ...]) -> dict[str, float]:
    from gyrostat.errors import GyrostatError
    from gyrostat.theory.predictors import PREDICTORS, predictors, question

    limits = [limit for name, test, limit in spec.record.success if (name, test) == ("spurious", "below")]
    if not limits:
        return {}
    try:
        (algorithm, problem), steps = spec.cell(point)
    except GyrostatError:  # a cell that cannot be built has no prediction; the sweep reports it
        return {}
    asked = question(algorithm, problem, steps, limits[0])
    return {} if asked is None else {name: PREDICTORS[name](asked) for name in predictors(algorithm, problem)}


def _thinned(values: Sequence[Any]) -> list[int]:
    order = np.argsort(np.array(values)).tolist()
    return [order[i] for i in sorted(set(np.linspace(0, len(order) - 1, min(MOST, len(order))).round().astype(int)))]
