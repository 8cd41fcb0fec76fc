"""The screen in other forms: its state as text and back, a Python program, a command, and the curves as a CSV file."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import python_source
from gyrostat.lab import computations
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import RECORDS, Lab
from gyrostat.lab.laboratories import LABS, lab_of
from gyrostat.what_went import instead_of


def state_text(lab: Lab, setting: Setting) -> str:
    """The state as the address of the page holds it after the question mark: what differs from the defaults."""
    changed = {c.name: setting[c.name] for c in lab.controls.values() if setting[c.name] != c.default}
    return urlencode({"lab": lab.name, **changed})


def read_state(text: str) -> tuple[Lab, Setting]:
    """The laboratory and the setting that a state describes.

    >>> lab, setting = read_state("lab=environments&spread=8")
    >>> lab.name, setting["spread"]
    ('environments', 8.0)
    """
    values = dict(parse_qsl(text.lstrip("?"), keep_blank_values=True))
    lab = lab_of(values.pop("lab", next(iter(LABS))))
    values.pop("figure", None)  # only says whose setting it is
    if sentence := instead_of(f"the tab {values.pop('tab', '')} of the laboratory"):
        raise GyrostatError(sentence)
    return lab, lab.read(values)


PROGRAM = """\
import gyrostat as gs

{problems}
options = dict(num_steps={num_steps}, seeds={seeds}, record={record}, record_at={record_at})
results = {{
{runs}
}}
for name, result in results.items():
    end = gs.summary(result).isel(step=-1).sel(quantile=0.5)  # a diverged run counts as infinite
    medians = {{key: end[key].values.tolist() for key in {record}}}
    print(name, medians, 'diverged:', float(end.diverged_share))
    gs.plot(result, path=f'{{name}}.png')
"""


def python_program(lab: Lab, setting: Setting) -> str:
    """A program that computes the curves on the screen, with the same numbers, and draws those of each side to a file."""
    sides = [(side.name, python_source(side.algorithm), python_source(side.problem)) for side in lab.sides(setting)]
    problems = list(dict.fromkeys(problem for _, _, problem in sides))
    names = {problem: "problem" if len(problems) == 1 else f"problem_{i + 1}" for i, problem in enumerate(problems)}
    return PROGRAM.format(
        problems="\n".join(f"{names[problem]} = {problem}" for problem in problems),
        runs="\n".join(f"    {side!r}: gs.run({a}, {names[problem]}, **options)," for side, a, problem in sides),
        num_steps=setting["num_steps"],
        seeds=setting["seeds"],
        record=list(lab.view(setting).record),
        record_at=RECORDS,
    )


def csv_command(lab: Lab, setting: Setting) -> str:
    """The command that writes the curves on the screen to a file."""
    return f"gyrostat lab --state {shlex.quote(state_text(lab, setting))} --csv curves.csv"


def csv_text(found: Mapping[str, Any]) -> str:
    """The curves of all sides as a table, one row per side, curve and step."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("side", "curve", "step", "low", "median", "high"))
    for side, message in found.items():
        for key, quartiles in message["curves"].items():
            table.writerows((side, key, *row) for row in zip(message["steps"], *quartiles.tolist(), strict=True))
    return text.getvalue()


def write_curves(state: str, path: Path) -> int:
    """Write the curves of a state, one row per side, curve and step; the number of rows is returned."""
    lab, setting = read_state(state)
    found = {}
    for i, side in enumerate(lab.sides(setting)):
        *_, found[side.name] = computations.curves(lab.name, setting, i)
    text = csv_text(found)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GyrostatError(f"--csv {str(path)!r} cannot be written ({error.strerror}): choose another path.") from None
    return text.count("\n") - 1
