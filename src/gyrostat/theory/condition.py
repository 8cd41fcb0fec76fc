"""A condition of a theorem as data: the value, the bound it must meet, whether it does; and the same as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Relation = Literal["<", "<=", ">", ">=", "in"]


@dataclass(frozen=True)
class Condition:
    """``value relation bound``. Where the paper leaves a constant open, ``note`` says so, and the constant is taken as 1.

    Parameters
    ----------
    name
        The condition in words.
    source
        Where the paper states it.
    value
        The left side.
    relation
        ``"<"``, ``"<="``, ``">"``, ``">="`` or ``"in"``.
    bound
        The right side, or an interval.
    note
        What to know about the constants.

    >>> Condition("step size", "Theorem 2", 0.05, "<", 0.1).holds
    True
    """

    name: str
    source: str
    value: float
    relation: Relation
    bound: float | tuple[float, float]
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the relation is true."""
        if isinstance(self.bound, tuple):
            low, high = self.bound
            return low < self.value < high
        compare = {"<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__}[self.relation]
        return bool(compare(float(self.value), float(self.bound)))


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
