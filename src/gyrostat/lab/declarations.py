"""The parts of which a laboratory is declared: controls, algorithms to compare, views, theory, a phase plane, presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from gyrostat.engine.program import Cell
from gyrostat.engine.simulate import check
from gyrostat.experiments.objects_from_dicts import ObjectTable, build
from gyrostat.lab.controls import Control, Setting, read_setting
from gyrostat.theory import Condition

RECORDS = 101
"""Recorded steps of every run. Compiled programs depend on their number, so it is the same for all runs."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, kw_only=True)
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


def sigma(component: int) -> str:
    """The name of a singular value, counted from 0, as it is written in a legend.

    >>> sigma(0), sigma(9)
    ('σ₁', 'σ₁₀')
    """
    return "σ" + str(component + 1).translate(SUBSCRIPTS)


@dataclass(frozen=True, kw_only=True)
class PlotView:
    """A choice of curves and their axes. ``together`` draws all sides into one panel."""

    name: str
    title: str
    curves: tuple[Curve, ...]
    label: str
    log: bool = False
    log_time: bool = False
    together: bool = False

    @property
    def record(self) -> tuple[str, ...]:
        """The diagnostics to record."""
        return tuple(dict.fromkeys(curve.record for curve in self.curves))


@dataclass(frozen=True)
class PredictedCurve:
    """A curve that the theory predicts for a side, drawn over its measured ones."""

    side: str
    label: str
    x: Any
    y: Any


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


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The setting of a paper's figure. ``note`` says what differs from the figure, or what it shows besides."""

    name: str
    title: str
    values: Mapping[str, Any]
    note: str = ""


Boundary = tuple[str, Sequence[float], Sequence[float]]
"""A predicted curve in a phase diagram: its label, x and y."""


class Lab:
    """A laboratory: what can be set, what is then run and drawn, and what the theory says. ``s`` is a setting everywhere."""

    name: ClassVar[str]
    title: ClassVar[str]
    lead: ClassVar[str]
    groups: ClassVar[Mapping[str, Sequence[Control]]]
    """The controls, by the heading of their group. The control ``view`` names one of :meth:`views`."""
    plane: ClassVar[Plane]

    @property
    def controls(self) -> dict[str, Control]:
        """All controls by name."""
        return {control.name: control for group in self.groups.values() for control in group}

    def read(self, values: Mapping[str, Any]) -> Setting:
        """The setting that text values stand for. All of it is checked before anything is compiled."""
        setting = read_setting(list(self.controls.values()), values)
        self.check(setting)
        for side in self.sides(setting):
            check(*side.build())
        return setting

    def check(self, s: Setting) -> None:
        """Refuse settings that take too long for sliders."""

    def is_slow(self, s: Setting) -> bool:
        """Whether runs take so long that a few are drawn before all of them."""
        return False

    def sides(self, s: Setting) -> Sequence[Side]:
        """What is compared."""
        raise NotImplementedError(f"{type(self).__name__} must say what it compares: give it a method sides(self, s).")

    def views(self, s: Setting) -> Sequence[PlotView]:
        """What can be looked at."""
        raise NotImplementedError(f"{type(self).__name__} must say what it shows: give it a method views(self, s).")

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

    def predicted(self, s: Setting, steps: np.ndarray) -> Sequence[PredictedCurve]:
        """The predicted curves of the chosen view."""
        return ()

    def outcome(self, values: Mapping[str, np.ndarray]) -> float:
        """The number of a cell of the phase diagram, of all its runs."""
        raise NotImplementedError(f"{type(self).__name__} must judge runs: give it a method outcome(self, values).")

    def boundary(self, s: Setting, across: np.ndarray, up: np.ndarray) -> Boundary | None:
        """The predicted boundary in the phase diagram; None where the theory has none."""
        return None

    def presets(self) -> Sequence[Preset]:
        """The settings of built-in papers; a method, because the papers take a while to import."""
        return ()
