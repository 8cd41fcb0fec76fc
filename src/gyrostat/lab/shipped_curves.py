"""Curves that are part of the package, shown until live ones are ready: those of all defaults and of all presets.

``python -m gyrostat.lab.shipped_curves`` computes those that ``shipped_curves.json`` does not hold yet, and drops those that
nothing offers any more. Without the file it computes all of them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gyrostat import __version__
from gyrostat.lab import computations
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import Lab
from gyrostat.lab.export import state_text
from gyrostat.lab.laboratories import LABS
from gyrostat.parallel.whole_files import write_whole

FILE = Path(__file__).with_suffix(".json")
EVERY = 2
"""Of the recorded steps every second one is kept, as in a first drawing."""
DIGITS = 4
"""Significant digits of the numbers: the width of a line is a hundred times more."""

Shipped = dict[str, dict[str, Any]]
"""The version that computed the curves and the messages with the curves of each side, by the text of the state."""


@functools.cache
def read() -> Shipped:
    """What the file holds; nothing without the file."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def find(lab: Lab, setting: Setting) -> dict[str, Any] | None:
    """The shipped curves of exactly this setting, or None.

    >>> lab = LABS["environments"]
    >>> [side["side"] for side in find(lab, lab.read({}))["sides"]], find(lab, lab.read({"spread": 6.3}))
    (['hetero', 'pooled'], None)
    """
    return read().get(state_text(lab, setting))


def offered() -> dict[str, tuple[Lab, Setting]]:
    """The settings whose curves are shipped, by the text of the state: the defaults and the presets of built-in papers."""
    wanted: list[tuple[Lab, Mapping[str, Any]]] = [(lab, {}) for lab in LABS.values()]
    wanted += [(lab, preset.values) for lab in LABS.values() for preset in lab.presets()]
    found = [(lab, lab.read(values)) for lab, values in wanted]
    return {state_text(lab, setting): (lab, setting) for lab, setting in found}


def compute(lab: Lab, setting: Setting) -> dict[str, Any]:
    """The curves of a setting, in double precision and with all seeds, with the version that computed them."""
    sides = []
    for i in range(len(lab.sides(setting))):
        *_, last = (message for message in computations.curves(lab.name, setting, i) if message is not None)
        curves = {key: {name: _thin(x) for name, x in curve.items()} for key, curve in last["curves"].items()}
        sides.append(last | {"steps": last["steps"][::EVERY], "curves": curves})
    return {"version": __version__, "sides": sides}


def _thin(values: list[float | None]) -> list[float | None]:
    return [None if x is None else float(f"{x:.{DIGITS}g}") for x in values[::EVERY]]


def update() -> Iterator[str]:
    """Bring the file up to date, one setting at a time; yields the states that it computes."""
    wanted, kept = offered(), read()
    entries = {state: kept[state] for state in wanted if state in kept}
    for state, (lab, setting) in wanted.items():
        if state not in entries:
            yield state
            entries[state] = compute(lab, setting)
            _write(entries)
    _write(entries)


def _write(entries: Shipped) -> None:
    """One line per setting, in an order that does not depend on when it was computed."""
    lines = (f"{json.dumps(state)}: {json.dumps(entries[state], separators=(',', ':'))}" for state in sorted(entries))
    write_whole(FILE, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    for computed in update():
        print(computed, flush=True)
