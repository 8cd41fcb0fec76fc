"""What the theory says of a setting: conditions with verdicts, predicted curves, sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gyrostat.lab.controls import Setting
from gyrostat.lab.lab import RECORDS
from gyrostat.lab.laboratories import lab_of
from gyrostat.theory import Condition
from gyrostat.theory.conditions import condition_text


def theory(lab: str, setting: Setting) -> Iterator[dict[str, Any]]:
    """Conditions with verdicts and predicted curves at once, then sentences."""
    chosen = lab_of(lab)
    steps = np.round(np.linspace(0, setting["num_steps"], RECORDS)).astype(int)
    lines = [vars(line) for line in chosen.lines(setting, setting["view"], steps)]
    yield {"kind": "conditions", "conditions": [_condition(c) for c in chosen.conditions(setting)], "lines": lines}
    yield {"kind": "predictions", "sentences": chosen.sentences(setting)}


def _condition(condition: Condition) -> dict[str, Any]:
    return condition_text(condition)._asdict() | {"holds": bool(condition.holds)}
