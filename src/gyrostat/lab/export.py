"""The screen in other forms: its state as text and back, a Python program, a command, and the curves as a CSV file."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import python_source
from gyrostat.lab import computations
from gyrostat.lab.controls import Setting, read_setting
from gyrostat.lab.declarations import RECORDS, Lab
from gyrostat.lab.laboratories import LABS, lab_of


def state_text(lab: Lab, setting: Setting) -> str:
    """The state as the address of the page holds it after the question mark: what differs from the defaults."""
    changed = {c.name: setting[c.name] for c in lab.controls if setting[c.name] != c.default}
    return urlencode({"lab": lab.name, **changed})


def read_state(text: str) -> tuple[Lab, Setting]:
    """The laboratory and the setting that a state describes.

    >>> lab, setting = read_state("lab=environments&spread=8")
    >>> lab.name, setting["spread"]
    ('environments', 8.0)
    """
    lab, given, _ = _parsed(text)
    return lab, lab.read(given)


def read_values(text: str) -> tuple[Lab, Setting, str]:
    """The laboratory, the setting and the tab of a state. What the setting builds is not checked, which is quick."""
    lab, given, tab = _parsed(text)
    return lab, read_setting(lab.controls, given), tab


def _parsed(text: str) -> tuple[Lab, dict[str, str], str]:
    given = dict(parse_qsl(text.lstrip("?"), keep_blank_values=True))
    return lab_of(given.pop("lab", next(iter(LABS)))), given, given.pop("tab", "curves")


def python_program(lab: Lab, setting: Setting) -> str:
    """A program that computes the curves on the screen, with the same numbers, and draws those of each side to a file."""
    view, sides = lab.view(setting), lab.sides(setting)
    record = ", ".join(repr(name) for name in view.record)
    options = f"num_steps={setting['num_steps']}, seeds={setting['seeds']}, record=[{record}], record_at={RECORDS}"
    problems = list(dict.fromkeys(python_source(side.problem) for side in sides))
    names = {problem: "problem" if len(problems) == 1 else f"problem_{i + 1}" for i, problem in enumerate(problems)}
    lines = ["import gyrostat as gs", "", *(f"{names[problem]} = {problem}" for problem in problems)]
    lines += [f"options = dict({options})", "results = {"]
    for side in sides:
        algorithm, problem = python_source(side.algorithm), names[python_source(side.problem)]
        lines.append(f"    {side.name!r}: gs.run({algorithm}, {problem}, **options),")
    lines += ["}", "for name, result in results.items():"]
    lines.append("    end = gs.summary(result).isel(step=-1).sel(quantile=0.5)  # a diverged run counts as infinite")
    lines.append(f"    medians = {{key: end[key].values.tolist() for key in [{record}]}}")
    lines.append("    print(name, medians, 'diverged:', float(end.diverged_share))")
    lines += ["    gs.plot(result, path=f'{name}.png')", ""]
    return "\n".join(lines)


def csv_command(lab: Lab, setting: Setting) -> str:
    """The command that writes the curves on the screen to a file."""
    return f"gyrostat lab --state {shlex.quote(state_text(lab, setting))} --csv curves.csv"


def write_curves(state: str, path: Path) -> int:
    """Write the curves of a state, one row per side, curve and step; the number of rows is returned."""
    lab, setting = read_state(state)
    rows = []
    for i in range(len(lab.sides(setting))):
        *_, last = (message for message in computations.curves(lab.name, setting, i) if message is not None)
        for key, curve in last["curves"].items():
            columns = zip(last["steps"], curve["low"], curve["middle"], curve["high"], strict=True)
            rows += [(last["side"], key, *numbers) for numbers in columns]
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("side", "curve", "step", "low", "median", "high"), *rows])
    except OSError as error:
        raise GyrostatError(f"--csv {str(path)!r} cannot be written ({error.strerror}): choose another path.") from None
    return len(rows)
