"""The curves of one side: quartiles over seeds, over some of them first where all take long."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrostat.engine.record import Values
from gyrostat.lab import runs
from gyrostat.lab.controls import Setting
from gyrostat.lab.lab import Side, View
from gyrostat.lab.laboratories import lab_of

PATIENCE = 0.25
"""Seconds after which something is to be seen, if only of some seeds: a drawing costs the page as much as several seeds."""
REST = 0.12
"""Seconds that a slider rests before its run is made again in double precision: the page is drawing meanwhile."""
QUARTILES = (0.25, 0.75)
_compiled: set[tuple] = set()


def curves(lab: str, setting: Setting, side: int) -> Iterator[dict[str, Any] | None]:
    """Messages with the quartiles of a side's curves, None in between."""
    chosen = lab_of(lab)
    shown, view, total = chosen.sides(setting)[side], chosen.view(setting), setting["seeds"]
    cell, program = shown.build(), (lab, side, *chosen.program(setting))
    if program not in _compiled:
        yield {"kind": "compiling", "side": shown.name}
    ways = runs.backend_for(cell, view.record).precisions
    for way in ways:
        found: list[Values] = []
        told = time.monotonic()
        while way != ways[0] and time.monotonic() - told < REST:
            time.sleep(REST / 20)
            yield None
        for part in runs.parts(cell, view.record, setting["num_steps"], total, way):
            _compiled.add(program)
            if part is None:
                yield None
                continue
            found.append(part)
            values = runs.joined(found)
            whole = len(values["diverged"]) == total
            # The second way replaces what is there, when all of it is.
            if whole or (way == ways[0] and time.monotonic() - told > PATIENCE):
                told = time.monotonic()
                yield _message(shown, view, values, total, way)
            else:
                yield None


def _message(side: Side, view: View, values: Values, total: int, precision: str) -> dict[str, Any]:
    return {
        "kind": "curves",
        "side": side.name,
        "seeds": len(values["diverged"]),
        "of": total,
        "precision": precision,
        "steps": values["step"].tolist(),
        "curves": {curve.key: quartiles(curve.of(values)) for curve in view.curves},
        "diverged": int((values["diverged"] >= 0).sum()),
    }


def quartiles(values: np.ndarray) -> dict[str, list[float | None]]:
    """Quartiles and median over the first axis. A run that has left the finite range is larger than any other.

    >>> quartiles(np.array([[1.0], [2.0], [np.nan]]))
    {'low': [1.0], 'middle': [2.0], 'high': [None]}
    """
    x = np.where(np.isfinite(values), values, np.inf)
    low, high = np.quantile(x, QUARTILES, axis=0, method="inverted_cdf")
    return {"low": plain(low), "middle": plain(np.median(x, axis=0)), "high": plain(high)}


def plain(values: np.ndarray) -> list[float | None]:
    """Numbers that JSON can hold: what is infinite is a gap.

    >>> plain(np.array([1.0, np.inf]))
    [1.0, None]
    """
    return [float(x) if math.isfinite(x) else None for x in values]
