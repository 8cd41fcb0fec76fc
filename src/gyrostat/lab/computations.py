"""What the page asks for: the curves of a side, the sentences of the theory, a phase diagram.

Each is a generator of messages (plain data), so that the process that runs it can turn to another one, or drop it, between
two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gyrostat.engine.summary import QUARTILES, quantiles_with_infinity
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import Lab
from gyrostat.lab.laboratories import lab_of
from gyrostat.lab.runs import growing_runs

Message = dict[str, Any]

PHASE_SEEDS, PHASE_CELLS = 16, 9
"""Runs of a cell of the phase diagram, and cells along each axis. All cells have the same seeds: when the first eight were
lucky together, they moved the whole boundary away from the predicted one. Twice as many took about a third longer."""


def curves(lab: str, setting: Setting, side: int) -> Iterator[Message]:
    """Median and quartiles of the curves of a side, of a few runs first where runs are slow."""
    laboratory = lab_of(lab)
    shown, view = laboratory.sides(setting)[side], laboratory.view(setting)
    sizes = setting["num_steps"], setting["seeds"]
    for values in growing_runs(shown.build(), view.record, *sizes, few_first=laboratory.is_slow(setting)):
        yield {
            "kind": "curves",
            "side": shown.name,
            "seeds": len(values["diverged"]),
            "steps": values["step"],
            "curves": {curve.key: quartiles(curve.of(values)) for curve in view.curves},
            "diverged": int((values["diverged"] >= 0).sum()),
        }


def quartiles(values: np.ndarray) -> np.ndarray:
    """Quartiles and median over the first axis. A run that has left the finite range counts as larger than any other.

    >>> quartiles(np.array([[1.0], [2.0], [np.nan]])).tolist()
    [[1.5], [2.0], [inf]]
    """
    return quantiles_with_infinity(np.where(np.isfinite(values), values, np.inf), QUARTILES)


def sentences(lab: str, setting: Setting) -> Iterator[Message]:
    """The predicted outcome."""
    yield {"kind": "sentences", "sentences": list(lab_of(lab).sentences(setting))}


def phase(lab: str, setting: Setting) -> Iterator[Message]:
    """The phase diagram around the current point, with one more cell each time, the nearest cells first."""
    laboratory = lab_of(lab)
    plane = laboratory.plane
    x, y = (around(laboratory, setting, name) for name in (plane.across, plane.up))
    column, row = np.argmin(abs(x - setting[plane.across])), np.argmin(abs(y - setting[plane.up]))
    cells = sorted(np.ndindex(y.size, x.size), key=lambda cell: (cell[0] - row) ** 2 + (cell[1] - column) ** 2)
    z = np.full((y.size, x.size), np.nan)
    for done, (i, j) in enumerate(cells, start=1):
        there = {**setting, plane.across: float(x[j]), plane.up: float(y[i])}
        side = next(side for side in laboratory.sides(there) if side.name == plane.side)
        (values,) = growing_runs(side.build(), plane.record, there["num_steps"], PHASE_SEEDS)
        z[i, j] = laboratory.outcome(values)
        yield {"kind": "phase", "x": x, "y": y, "z": z.copy(), "done": done, "of": len(cells), "seeds": PHASE_SEEDS}


def around(lab: Lab, setting: Setting, name: str) -> np.ndarray:
    """Values of a control around the current one, which is among them: the middle one if the range allows.

    >>> around(lab_of("environments"), {"spread": 6.0}, "spread").tolist()[3:6]
    [4.75, 6.0, 7.25]
    """
    control, here = lab.controls[name], setting[name]
    offsets = np.arange(-PHASE_CELLS, PHASE_CELLS + 1)
    linear = here + offsets * (control.high - control.low) / 16
    values = linear if control.scale == "linear" else here * 2.0 ** (offsets / 2)
    inside = values[(values >= control.low) & (values <= control.high)]
    middle = int(np.argmin(abs(inside - here)))
    first = max(min(middle - PHASE_CELLS // 2, inside.size - PHASE_CELLS), 0)
    return inside[first : first + PHASE_CELLS]


COMPUTATIONS: dict[str, Callable[..., Iterator[Message]]] = {"curves": curves, "sentences": sentences, "phase": phase}
