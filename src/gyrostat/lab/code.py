"""What is on the screen as Python and as a command."""

from __future__ import annotations

import shlex
from urllib.parse import urlencode

from gyrostat.experiments.object_tables import python_source
from gyrostat.lab.controls import Setting
from gyrostat.lab.lab import RECORDS, Lab


def python(lab: Lab, setting: Setting) -> str:
    """A program that makes the curves on the screen, number for number."""
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
    lines += ["}", "for name, result in results.items():", '    end = result.isel(step=-1).median("seed")']
    lines += [f"    print(name, {{key: end[key].values.tolist() for key in [{record}]}})", ""]
    return "\n".join(lines)


def state(lab: Lab, setting: Setting) -> str:
    """The whole state as it stands in the address: what differs from the defaults."""
    plain = {c.name: setting[c.name] for c in lab.controls if setting[c.name] != c.default}
    return urlencode({"lab": lab.name, **plain})


def command(lab: Lab, setting: Setting) -> str:
    """The command that writes the curves on the screen to a file."""
    return f"gyrostat lab --state {shlex.quote(state(lab, setting))} --csv curves.csv"
