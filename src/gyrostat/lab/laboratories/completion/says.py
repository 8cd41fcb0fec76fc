"""What the theory of Wang 2023 says of a setting."""

from __future__ import annotations

import functools

import numpy as np

from gyrostat import theory
from gyrostat.diagnostics import ranks
from gyrostat.lab.controls import Setting
from gyrostat.lab.lab import Line
from gyrostat.theory import Condition


@functools.lru_cache(maxsize=256)
def _fold(epsilon: float, depth: int) -> float:
    """In weight-decay units, which are four times those of the main text."""
    return 4 * theory.fold(epsilon, depth).ridge


def _has_fold(s: Setting) -> bool:
    return s["target"] == "2 × 2" and s["depth"] >= 3


def conditions(s: Setting) -> list[Condition]:
    known = [Condition("steps stable against the ridge", "ours", s["step_size"] * s["ridge"], "<", 2.0, "η λ < 2")]
    if _has_fold(s):
        fold = _fold(s["epsilon"], s["depth"])
        known.insert(
            0, Condition("a rank-2 minimum exists", "Wang 2023, section 3.1", s["ridge"], "<", fold, "λ below the fold")
        )
    return known


def sentences(s: Setting) -> list[str]:
    if not _has_fold(s):
        return ["The fold of the rank-2 minimum is known for the 2 × 2 matrix with three layers or more."]
    fold = _fold(s["epsilon"], s["depth"])
    if s["ridge"] >= fold:
        return [f"The ridge is above the fold, λ = {fold:.3g}: rank 2 cannot last, with noise or without."]
    share = s["ridge"] / fold
    hope = (
        "near it, where noise makes SGD jump to rank 1 sooner or later"
        if share > 0.5
        else "far below it: jumps are rare"
    )
    return [
        f"The fold is at λ = {fold:.3g}; the ridge is {share:.0%} of it, {hope}.",
        "GD stays at rank 2: it does not cross the barrier that noise crosses.",
        "A jump is one-way: after it σ₂ dies out, at the rate of the ridge and a little more.",
    ]


def lines(s: Setting, view: str, steps: np.ndarray) -> list[Line]:
    """No curve is predicted, only where rank 2 ends."""
    return []


def jumped(values: dict[str, np.ndarray]) -> float:
    return float(np.mean(ranks(values["singular_values"][:, -1]) == 1))


def boundary(s: Setting, across: np.ndarray, up: np.ndarray) -> tuple[str, list[float], list[float]] | None:
    if not _has_fold(s):
        return None
    fold = _fold(s["epsilon"], s["depth"])
    return "fold of the rank-2 minimum", [fold, fold], [float(up[0]), float(up[-1])]
