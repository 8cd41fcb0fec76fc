"""The phase diagram around the current point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrostat.lab import runs
from gyrostat.lab.controls import Setting
from gyrostat.lab.lab import Lab
from gyrostat.lab.laboratories import lab_of

PHASE_SEEDS = 8


def axis(lab: Lab, setting: Setting, name: str, count: int) -> np.ndarray:
    """Values of a control around the current one, which is one of them, the middle one if the range allows.

    >>> axis(lab_of("environments"), {"spread": 6.0}, "spread", 3).tolist()
    [4.75, 6.0, 7.25]
    """
    control = next(c for c in lab.controls if c.name == name)
    here, offsets = setting[name], np.arange(-count, count + 1)
    values = here + offsets * (control.high - control.low) / 16
    if control.scale == "log":
        values = here * 2.0 ** (offsets / 2)
    inside = values[(values >= control.low) & (values <= control.high)]
    middle = int(np.argmin(np.abs(inside - here)))
    first = max(min(middle - count // 2, len(inside) - count), 0)
    return inside[first : first + count]


def phase(lab: str, setting: Setting, count: int = 9) -> Iterator[dict[str, Any] | None]:
    """The phase diagram around the current point, cell by cell, the nearest first; None in between."""
    chosen = lab_of(lab)
    plane = chosen.plane
    xs, ys = (axis(chosen, setting, name, count) for name in (plane.across, plane.up))
    boundary = plane.boundary(setting, xs, ys)
    controls = {c.name: c for c in chosen.controls}
    yield {
        "kind": "plane",
        "x": xs.tolist(),
        "y": ys.tolist(),
        "across": plane.across,
        "up": plane.up,
        "title": plane.title,
        "label": plane.label,
        "log_value": plane.log_value,
        "boundary": boundary,
        "note": plane.note,
        "log_x": controls[plane.across].scale == "log",
        "log_y": controls[plane.up].scale == "log",
    }
    at = {name: int(np.argmin(np.abs(values - setting[name]))) for name, values in ((plane.across, xs), (plane.up, ys))}
    cells = [(i, j) for i in range(len(ys)) for j in range(len(xs))]
    cells.sort(key=lambda cell: (cell[0] - at[plane.up]) ** 2 + (cell[1] - at[plane.across]) ** 2)
    for done, (i, j) in enumerate(cells, start=1):
        there = {**setting, plane.across: float(xs[j]), plane.up: float(ys[i])}
        side = next(s for s in chosen.sides(there) if s.name == plane.side)
        cell, record = side.build(), plane.record
        found = []
        for part in runs.parts(cell, record, there["num_steps"], PHASE_SEEDS):
            found += [] if part is None else [part]
            yield None
        value = plane.outcome(runs.joined(found))
        shown = value if math.isfinite(value) else None
        yield {"kind": "cell", "i": i, "j": j, "value": shown, "done": done, "of": len(cells)}
