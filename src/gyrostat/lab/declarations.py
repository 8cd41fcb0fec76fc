"""The parts of which a laboratory is declared: controls, algorithms to compare, views, theory, a phase plane."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from gyrostat import errors
from gyrostat.engine.program import Cell
from gyrostat.engine.simulate import check
from gyrostat.experiments.objects_from_dicts import ObjectTable, build
from gyrostat.figures.declarations import Line
from gyrostat.lab.controls import Control, Setting
from gyrostat.theory import Condition

RECORDS = 101
"""Recorded steps of every run. Compiled programs depend on their number, so it is the same for all runs."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Side:
    """One side of a comparison: an algorithm on a problem, both as tables that are built to run and shown as Python."""

    name: str
    title: str
    algorithm: ObjectTable
    problem: ObjectTable

    def build(self) -> Cell:
        """The algorithm and the problem as objects."""
        return build(self.algorithm, "algorithm"), build(self.problem, "problem")


@dataclass(frozen=True)
class Curve:
    """A recorded diagnostic to draw, or one ``component`` of it. ``half_square`` turns a distance into a loss."""

    record: str
    label: str
    _: KW_ONLY
    component: int | None = None
    half_square: bool = False

    @property
    def key(self) -> str:
        """The name of the curve in messages and files.

        >>> Curve("singular_values", "σ₁", component=0).key, Curve("distance", "loss", half_square=True).key
        ('singular_values_1', 'distance_loss')
        """
        part = "" if self.component is None else f"_{self.component + 1}"
        return f"{self.record}{part}" + ("_loss" if self.half_square else "")

    def of(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The values of the curve, of shape (seed, step)."""
        x = values[self.record]
        if self.component is not None:
            x = x[..., self.component]
        return x**2 / 2 if self.half_square else x


@dataclass(frozen=True)
class PlotView:
    """A choice of curves and their axes. ``together`` draws all sides into one panel."""

    name: str
    title: str
    label: str
    curves: Sequence[Curve]
    _: KW_ONLY
    log: bool = False
    log_time: bool = False
    together: bool = False

    @property
    def record(self) -> tuple[str, ...]:
        """The diagnostics to record."""
        return tuple(dict.fromkeys(curve.record for curve in self.curves))


def singular_values_view(count: int, *, log: bool = True) -> PlotView:
    """The view of the largest singular values.

    >>> singular_values_view(10).curves[-1].label
    'σ₁₀'
    """
    labels = ["σ" + str(i + 1).translate(SUBSCRIPTS) for i in range(count)]
    curves = [Curve("singular_values", label, component=i) for i, label in enumerate(labels)]
    return PlotView("singular values", "Singular values", "singular values of A", curves, log=log)


@dataclass(frozen=True, kw_only=True)
class Plane:
    """The phase diagram of a laboratory: two controls as axes, the side that is run, and what it records.

    A cell shows what :meth:`Lab.outcome` makes of its runs, in colours from ``low`` to ``high``.
    """

    across: str
    up: str
    side: str
    title: str
    label: str
    record: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    note: str = ""


class Lab(ABC):
    """A laboratory: what can be set, what is then run and drawn, and what the theory says. ``s`` is a setting everywhere."""

    name: ClassVar[str]
    title: ClassVar[str]
    lead: ClassVar[str]
    groups: ClassVar[Mapping[str, Sequence[Control]]]
    """The controls, by the heading of their group."""
    plane: ClassVar[Plane]

    @property
    def controls(self) -> dict[str, Control]:
        """All controls by name."""
        return {control.name: control for group in self.groups.values() for control in group}

    def read(self, values: Mapping[str, Any]) -> Setting:
        """The value of every control: what is in ``values``, and the defaults of the others.

        All of it is checked before anything is compiled.
        """
        for name in values:
            errors.choice("setting", name, self.controls)
        setting = {name: control.read(values.get(name, control.default)) for name, control in self.controls.items()}
        self.check(setting)
        for side in self.sides(setting):
            check(*side.build())
        return setting

    def check(self, s: Setting) -> None:  # noqa: B027  (most settings are fine)
        """Refuse settings that take too long for sliders."""

    def is_slow(self, s: Setting) -> bool:
        """Whether runs take so long that a few are drawn before all of them."""
        return False

    @abstractmethod
    def sides(self, s: Setting) -> Sequence[Side]:
        """What is compared."""

    @abstractmethod
    def views(self, s: Setting) -> Sequence[PlotView]:
        """What can be looked at: a view for each option of the control ``view``."""

    def view(self, s: Setting) -> PlotView:
        """The chosen view."""
        return next(view for view in self.views(s) if view.name == s["view"])

    def conditions(self, s: Setting) -> Sequence[Condition]:
        """The conditions of the theory that can be checked at once."""
        return ()

    def headline(self, s: Setting) -> str:
        """The prediction in one sentence."""
        return "No theory covers this setting."

    def sentences(self, s: Setting) -> Sequence[str]:
        """The predicted outcome with its numbers, which may take a second."""
        return ()

    def predicted(self, s: Setting, steps: np.ndarray) -> Mapping[str, Line]:
        """The curves that the theory predicts in the chosen view, by the name of their side."""
        return {}

    @abstractmethod
    def outcome(self, values: Mapping[str, np.ndarray]) -> float:
        """The number of a cell of the phase diagram, of all its runs."""

    def boundary(self, s: Setting, across: np.ndarray, up: np.ndarray) -> Line | None:
        """The predicted boundary in the phase diagram; None where the theory has none."""
        return None
