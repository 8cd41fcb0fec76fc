"""A condition of a theorem as data: what it asks, what was found, whether it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Relation = Literal["<", "<=", ">", ">=", "in"]


@dataclass(frozen=True)
class Condition:
    """``value relation bound``; ``holds`` is None when the paper leaves a constant open and only a size can be given.

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
