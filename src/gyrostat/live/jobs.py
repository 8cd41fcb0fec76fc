"""What the worker process does: each job is a generator of messages, so that it can be put aside or dropped between two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gyrostat.live import engine
from gyrostat.live.controls import Setting
from gyrostat.live.lab import RECORDS, Lab, Side, View
from gyrostat.live.labs import lab_of
from gyrostat.theory import Condition

Message = dict[str, Any]
PHASE_SEEDS = 8
RELATIONS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "in": "∈"}
QUARTILES = (0.25, 0.5, 0.75)
_compiled: set[tuple] = set()


def curves(lab: str, setting: Setting, side: int) -> Iterator[Message | None]:
    """The quartiles of one side's curves, from the first seeds, from four times as many, and so on to all; None in between."""
    chosen = lab_of(lab)
    shown, view = chosen.sides(setting)[side], chosen.view(setting)
    cell, total = (shown.algorithm.build(), shown.problem.build()), setting["seeds"]
    program, lanes = (lab, side, *chosen.program(setting)), engine.lanes(cell)
    if program not in _compiled:
        yield {"kind": "compiling", "side": shown.name}
    found: list[engine.Values] = []
    due = lanes
    for first in range(0, total, lanes):
        found.append(engine.run(cell, view.record, setting["num_steps"], range(first, first + lanes)))
        _compiled.add(program)
        count = min(first + lanes, total)
        if count < min(due, total):
            yield None
            continue
        due = 4 * count
        values = {name: np.concatenate([part[name] for part in found])[:count] for name in found[0] if name != "step"}
        yield _curves_message(shown, view, values, found[0]["step"], total)


def _curves_message(side: Side, view: View, values: engine.Values, steps: np.ndarray, total: int) -> Message:
    drawn = {}
    for curve in view.curves:
        x = curve.of(values)
        # A run that has left the finite range is larger than any other, and an infinite quartile is a gap.
        quartiles = np.quantile(np.where(np.isfinite(x), x, np.inf), QUARTILES, axis=0, method="inverted_cdf")
        middle = np.median(np.where(np.isfinite(x), x, np.inf), axis=0)
        drawn[curve.key] = {"low": plain(quartiles[0]), "middle": plain(middle), "high": plain(quartiles[2])}
    return {
        "kind": "curves", "side": side.name, "seeds": len(values["diverged"]), "of": total, "steps": steps.tolist(),
        "curves": drawn, "diverged": int((values["diverged"] >= 0).sum()),
    }  # fmt: skip


def plain(values: np.ndarray) -> list[float | None]:
    """Numbers that JSON can hold.

    >>> plain(np.array([1.0, np.inf]))
    [1.0, None]
    """
    return [float(x) if math.isfinite(x) else None for x in values]


def theory(lab: str, setting: Setting) -> Iterator[Message]:
    """Conditions with verdicts and predicted curves at once, then sentences."""
    chosen = lab_of(lab)
    steps = np.round(np.linspace(0, setting["num_steps"], RECORDS)).astype(int)
    lines = [vars(line) for line in chosen.lines(setting, setting["view"], steps)]
    yield {"kind": "conditions", "conditions": [_condition(c) for c in chosen.conditions(setting)], "lines": lines}
    yield {"kind": "predictions", "sentences": chosen.sentences(setting)}


def _condition(c: Condition) -> Message:
    bound = f"({c.bound[0]:.3g}, {c.bound[1]:.3g})" if isinstance(c.bound, tuple) else f"{c.bound:.4g}"
    if isinstance(c.bound, tuple) and not c.bound[0] < c.bound[1]:
        bound += ", empty"
    shown = {
        "name": c.name,
        "source": c.source,
        "value": f"{c.value:.4g}",
        "relation": RELATIONS[c.relation],
        "bound": bound,
    }
    return {**shown, "note": c.note, "holds": bool(c.holds)}


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


def phase(lab: str, setting: Setting, count: int = 9) -> Iterator[Message]:
    """The phase diagram around the current point, cell by cell, the nearest first."""
    chosen = lab_of(lab)
    plane = chosen.plane
    xs, ys = (axis(chosen, setting, name, count) for name in (plane.across, plane.up))
    boundary = plane.boundary(setting, xs, ys)
    controls = {c.name: c for c in chosen.controls}
    yield {
        "kind": "plane", "x": xs.tolist(), "y": ys.tolist(), "across": plane.across, "up": plane.up, "title": plane.title,
        "label": plane.label, "log_value": plane.log_value, "boundary": boundary,
        "log_x": controls[plane.across].scale == "log", "log_y": controls[plane.up].scale == "log",
    }  # fmt: skip
    at = {name: int(np.argmin(np.abs(values - setting[name]))) for name, values in ((plane.across, xs), (plane.up, ys))}
    cells = [(i, j) for i in range(len(ys)) for j in range(len(xs))]
    cells.sort(key=lambda cell: (cell[0] - at[plane.up]) ** 2 + (cell[1] - at[plane.across]) ** 2)
    for done, (i, j) in enumerate(cells, start=1):
        there = {**setting, plane.across: float(xs[j]), plane.up: float(ys[i])}
        side = next(s for s in chosen.sides(there) if s.name == plane.side)
        cell, record = (side.algorithm.build(), side.problem.build()), plane.record
        lanes = engine.lanes(cell)
        parts = [
            engine.run(cell, record, there["num_steps"], range(k, k + lanes)) for k in range(0, PHASE_SEEDS, lanes)
        ]
        value = plane.outcome({name: np.concatenate([part[name] for part in parts]) for name in record})
        yield {
            "kind": "cell",
            "i": i,
            "j": j,
            "value": value if math.isfinite(value) else None,
            "done": done,
            "of": len(cells),
        }


def diagnose(path: str, target: str, environment: str, missing: str) -> Iterator[Message]:
    """How effects differ between environments, in a table."""
    from gyrostat.live.tables import diagnosed

    yield {"kind": "working"}
    yield diagnosed(path, target, environment, missing)


def columns(path: str) -> Iterator[Message]:
    """The columns of a table."""
    from gyrostat.live.tables import described

    yield described(path)


JOBS: dict[str, Callable[..., Iterator[Message | None]]] = {
    "curves": curves,
    "theory": theory,
    "phase": phase,
    "diagnose": diagnose,
    "columns": columns,
}
BACKGROUND = ("phase",)
