"""The computations behind the page: curves, theory, phase diagram, and tables: columns, fits, comparisons.

Each job is a generator of messages (plain data). It yields None where it has nothing to say yet, so that the process that
runs it can turn to another job, or drop it, between any two of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gyrostat.engine.record import Values
from gyrostat.figures.palette import HEAT_COLOURS
from gyrostat.lab import runs
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import RECORDS, Lab, Plane, PlotView, Side
from gyrostat.lab.laboratories import lab_of
from gyrostat.theory.condition import condition_text

Message = dict[str, Any]

PATIENCE = 0.25
"""Seconds after which the seeds that are ready are drawn. Not less: one drawing costs the page as much as several seeds."""
SLOW = 0.4
"""Expected seconds of a first pass beyond which a pass of ``FIRST_SEEDS`` seeds goes before it, so that something is seen."""
FIRST_SEEDS = 4
"""As few as have quartiles. Their pass takes almost half as long as that of sixteen: every step has a cost of its own."""
REST = 0.12
"""Seconds that a slider must rest before its run is repeated in double precision; the page draws in the meantime."""
QUARTILES = (0.25, 0.75)
PHASE_SEEDS = 16
"""Runs of a cell of the phase diagram. All cells have the same seeds: when the first eight were lucky together, they moved the
whole boundary away from the predicted one. Twice as many took about a third longer."""

_compiled: set[tuple] = set()
"""The programs that this process has compiled."""
_pace: dict[tuple[str, int], float] = {}
"""The seconds per step of the last first pass of a side, on this machine under its present load, by laboratory and side."""

# ------------------------------------------------------------------------------------------------ curves


def curves(lab: str, setting: Setting, side: int) -> Iterator[Message | None]:
    """The quartiles of a side's curves: in single precision first where the engine offers it, then in double precision.

    Where runs are slow, those of a few seeds come before.
    """
    chosen = lab_of(lab)
    shown, view, seeds = chosen.sides(setting)[side], chosen.view(setting), setting["seeds"]
    cell, program = shown.build(), (lab, side, *chosen.program(setting))
    known = program in _compiled
    if not known:
        yield {"kind": "compiling", "side": shown.name}
    precisions = runs.backend_for(cell, view.record).precisions
    if len(precisions) > 1 and is_slow(
        (lab, side), setting
    ):  # the other engine has a program for every number of seeds
        for part in runs.parts(cell, view.record, setting["num_steps"], FIRST_SEEDS, precisions[0]):
            yield None if part is None else _curves_message(shown, view, part, seeds, precisions[0])
    for precision in precisions:
        first_pass, begun = precision == precisions[0], time.monotonic()
        while not first_pass and time.monotonic() - begun < REST:
            time.sleep(REST / 20)
            yield None
        parts: list[Values] = []
        begun = last_drawn = time.monotonic()
        for part in runs.parts(cell, view.record, setting["num_steps"], seeds, precision):
            _compiled.add(program)
            if part is None:
                yield None
                continue
            parts.append(part)
            if first_pass and known and len(parts) == 1:
                _pace[lab, side] = (time.monotonic() - begun) / setting["num_steps"]
            values = runs.joined(parts)
            complete = len(values["diverged"]) == seeds
            # Later passes replace a complete drawing, so they are drawn only when they are complete themselves.
            if complete or (first_pass and time.monotonic() - last_drawn > PATIENCE):
                last_drawn = time.monotonic()
                yield _curves_message(shown, view, values, seeds, precision)
            else:
                yield None


def is_slow(side: tuple[str, int], setting: Setting) -> bool:
    """Whether the first pass of all seeds will take long, by the pace of the last one."""
    return setting["seeds"] > FIRST_SEEDS and _pace.get(side, 0.0) * setting["num_steps"] > SLOW


def _curves_message(side: Side, view: PlotView, values: Values, seeds: int, precision: str) -> Message:
    return {
        "kind": "curves",
        "side": side.name,
        "seeds": len(values["diverged"]),
        "of": seeds,
        "precision": precision,
        "steps": values["step"].tolist(),
        "curves": {curve.key: quartiles(curve.of(values)) for curve in view.curves},
        "diverged": int((values["diverged"] >= 0).sum()),
    }


def quartiles(values: np.ndarray) -> dict[str, list[float | None]]:
    """Quartiles and median over the first axis. A run that has left the finite range counts as larger than any other.

    >>> quartiles(np.array([[1.0], [2.0], [np.nan]]))
    {'low': [1.0], 'middle': [2.0], 'high': [None]}
    """
    x = np.where(np.isfinite(values), values, np.inf)
    low, high = np.quantile(x, QUARTILES, axis=0, method="inverted_cdf")
    return {"low": json_numbers(low), "middle": json_numbers(np.median(x, axis=0)), "high": json_numbers(high)}


def json_numbers(values: np.ndarray) -> list[float | None]:
    """Numbers that JSON can hold: infinite ones become None, a gap in the curve.

    >>> json_numbers(np.array([1.0, np.inf]))
    [1.0, None]
    """
    return [float(x) if math.isfinite(x) else None for x in values]


# ------------------------------------------------------------------------------------------------ theory


def theory(lab: str, setting: Setting) -> Iterator[Message]:
    """Conditions with verdicts and the predicted curves, then the predicted outcome in sentences, which takes longer."""
    chosen = lab_of(lab)
    steps = np.round(np.linspace(0, setting["num_steps"], RECORDS)).astype(int)
    conditions = [condition_text(c)._asdict() | {"holds": bool(c.holds)} for c in chosen.conditions(setting)]
    predicted = [vars(curve) for curve in chosen.predicted(setting, setting["view"], steps)]
    yield {
        "kind": "conditions",
        "conditions": conditions,
        "lines": predicted,
        "headline": chosen.headline(setting),
    }
    yield {"kind": "predictions", "sentences": list(chosen.sentences(setting))}


# ----------------------------------------------------------------------------------------- phase diagram


def phase(lab: str, setting: Setting, count: int = 9) -> Iterator[Message | None]:
    """The phase diagram around the current point: its axes first, then cell by cell, the nearest cells first."""
    chosen = lab_of(lab)
    plane, controls = chosen.plane, {control.name: control for control in chosen.controls}
    xs, ys = (axis(chosen, setting, name, count) for name in (plane.across, plane.up))
    yield {
        "kind": "plane",
        "x": xs.tolist(),
        "y": ys.tolist(),
        "across": plane.across,
        "up": plane.up,
        "title": plane.title,
        "label": plane.label,
        "outcomes": plane.outcomes,
        "colours": HEAT_COLOURS.capitalize(),
        "boundary": plane.boundary(setting, xs, ys),
        "note": plane.note,
        "log_x": controls[plane.across].scale == "log",
        "log_y": controls[plane.up].scale == "log",
        "seeds": PHASE_SEEDS,
    }
    column, row = (int(np.argmin(np.abs(v - setting[n]))) for n, v in ((plane.across, xs), (plane.up, ys)))
    cells = [(i, j) for i in range(len(ys)) for j in range(len(xs))]
    cells.sort(key=lambda cell: (cell[0] - row) ** 2 + (cell[1] - column) ** 2)
    for done, (i, j) in enumerate(cells, start=1):
        there = {**setting, plane.across: float(xs[j]), plane.up: float(ys[i])}
        side = next(s for s in chosen.sides(there) if s.name == plane.side)
        parts: list[Values] = []
        for part in runs.parts(side.build(), plane.record, there["num_steps"], PHASE_SEEDS):
            if part is not None:
                parts.append(part)
            yield None
        found = plane.outcome(runs.joined(parts))
        yield {"kind": "cell", "i": i, "j": j, **_cell_value(plane, found), "done": done, "of": len(cells)}


def _cell_value(plane: Plane, found: np.ndarray) -> Message:
    """The most frequent outcome (the later one of equals, which is never success) with all counts, or the median."""
    if not plane.outcomes:
        (value,) = json_numbers(np.array([np.median(found)]))
        return {"value": value}
    counts = np.bincount(found, minlength=len(plane.outcomes))
    return {"value": int(len(counts) - 1 - np.argmax(counts[::-1])), "counts": counts.tolist()}


def axis(lab: Lab, setting: Setting, name: str, count: int) -> np.ndarray:
    """Values of a control around the current one, which is among them: the middle one if the range allows.

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


# ------------------------------------------------------------------------------------------- step by step


def steps(setting: Setting) -> Iterator[Message]:
    """One run of the first laboratory as matrices that change."""
    from gyrostat.lab.step_by_step import frames

    yield {"kind": "working"}
    yield frames(setting)


# ------------------------------------------------------------------------------------------------ tables


def columns(folder: str, name: str) -> Iterator[Message]:
    """The columns of a table."""
    from gyrostat.lab.uploaded_tables import describe_columns

    yield describe_columns(folder, name)


def fit(asked: dict[str, Any]) -> Iterator[Message]:
    """The effects that hold in every environment of a table, and the model of those."""
    from gyrostat.lab.uploaded_tables import TableRequest, fit_table

    yield {"kind": "working"}
    yield fit_table(TableRequest(**asked))


def compare(asked: dict[str, Any]) -> Iterator[Message]:
    """Methods compared on a table."""
    from gyrostat.lab.uploaded_tables import TableRequest, compare_table

    yield {"kind": "working"}
    yield compare_table(TableRequest(**asked))


JOBS: dict[str, Callable[..., Iterator[Message | None]]] = {
    "curves": curves,
    "theory": theory,
    "phase": phase,
    "steps": steps,
    "columns": columns,
    "fit": fit,
    "compare": compare,
}
BACKGROUND = ("phase",)
"""Jobs that go on only when no other job waits."""
