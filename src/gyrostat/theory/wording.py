"""Conditions and predictions of the theory in words, for the terminal and for the lab."""

from __future__ import annotations

from typing import NamedTuple

from gyrostat.theory.assessment import Assessment, Setting
from gyrostat.theory.conditions import Condition

RELATIONS = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "in": "∈"}


class ConditionText(NamedTuple):
    """The columns of a table of conditions."""

    name: str
    source: str
    value: str
    relation: str
    bound: str
    verdict: str
    note: str


def condition_text(condition: Condition) -> ConditionText:
    """A condition as text.

    >>> condition_text(Condition("step size", "Theorem 2", 0.05, "in", (0.2, 0.1))).bound
    '(0.2, 0.1), empty'
    """
    if isinstance(condition.bound, tuple):
        low, high = condition.bound
        bound = f"({low:.3g}, {high:.3g})" + ("" if low < high else ", empty")
    else:
        bound = f"{condition.bound:.4g}"
    return ConditionText(
        condition.name,
        condition.source,
        f"{condition.value:.4g}",
        RELATIONS[condition.relation],
        bound,
        "holds" if condition.holds else "fails",
        condition.note,
    )


def assessment_sentences(setting: Setting, assessment: Assessment) -> list[str]:
    """The isometry constant and the predicted outcome in words."""
    delta, prediction = assessment.isometry, assessment.prediction
    outcome = "eliminated" if prediction.lyapunov else "learnt"
    sentences = [
        f"Isometry constant (rank {min(4 * (setting.rank + setting.law.rank), setting.dimension)}): at least "
        f"{delta.value:.3g} [{delta.low:.3g}, {delta.high:.3g}], found by search on {len(delta.draws)} designs.",
        f"Predicted: the spurious signal is {outcome} in a typical run; {prediction.eliminated:.0%} of runs end "
        "without it (surrogate).",
    ]
    if prediction.critical_spread is not None:
        sentences.append(
            f"Predicted transition: M* = {prediction.critical_spread:.3g} at this step size, initial scale and horizon."
        )
    if prediction.eliminated > 0.05:
        sentences.append(f"Where it is eliminated, the error ||UU^T - A_star||_F is about {prediction.error:.3g}.")
    if prediction.pooled_gap is not None:
        sentences.append(f"Pooled training never comes closer to A_star than {prediction.pooled_gap:.3g}.")
    return sentences
