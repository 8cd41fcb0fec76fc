"""The parts of which a laboratory is declared: controls, algorithms to compare, views, theory, a phase plane, presets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from gyrostat.engine.compile import Cell
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


@dataclass(frozen=True, kw_only=True)
class PredictedCurve:
    """A curve that the theory predicts, drawn over the curve ``key`` of a side."""

    key: str
    side: str
    label: str
    x: list[float]
    y: list[float]


@dataclass(frozen=True, kw_only=True)
class Plane:
    """The phase diagram of a laboratory: two controls as axes, and what ``outcome`` finds in every run of a cell.

    With ``outcomes`` (sentences, each with a colour) it is the number of one of them, and a cell has the colour of the most
    frequent one. Without, it is a positive number, and a cell shows the logarithm of its median over runs.
    ``boundary`` gives a predicted boundary to draw over the cells (name, x, y), or None where the theory has none.
    """

    across: str
    up: str
    side: str
    title: str
    label: str
    outcomes: tuple[str, ...] = ()
    record: tuple[str, ...]
    outcome: Callable[[Mapping[str, np.ndarray]], np.ndarray]
    boundary: Callable[[Setting, np.ndarray, np.ndarray], tuple[str, list[float], list[float]] | None]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The setting of a paper's figure. ``note`` says what differs from the figure, or what it shows besides."""

    name: str
    title: str
    values: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A laboratory: what can be set, what is then run and drawn, and what the theory says.

    ``sides``, ``views``, ``conditions``, ``headline`` (the prediction in one line) and ``sentences`` are functions of a
    setting; ``predicted`` is one of a setting, the name of a view and the recorded steps. ``program`` is everything that the
    compiled programs of a setting depend on. ``presets`` is a function, because the papers' packages take a while to import
    and only the page lists presets.
    """

    name: str
    title: str
    lead: str
    controls: tuple[Control, ...]
    check: Callable[[Setting], None] = field(default=lambda setting: None)
    sides: Callable[[Setting], Sequence[Side]]
    views: Callable[[Setting], Sequence[PlotView]]
    program: Callable[[Setting], tuple]
    conditions: Callable[[Setting], Sequence[Condition]]
    headline: Callable[[Setting], str]
    sentences: Callable[[Setting], Sequence[str]]
    predicted: Callable[[Setting, str, np.ndarray], Sequence[PredictedCurve]]
    plane: Plane
    presets: Callable[[], Sequence[Preset]]

    def read(self, given: Mapping[str, Any]) -> Setting:
        """The setting that text values stand for. All of it is checked before anything is compiled."""
        setting = read_setting(self.controls, given)
        self.check(setting)
        for side in self.sides(setting):
            check(*side.build())
        return setting

    def compiling_controls(self, setting: Setting) -> list[str]:
        """The sliders whose next notch needs another program."""
        here = self.program(setting)
        numbers = [control for control in self.controls if control.kind != "choice"]
        return [c.name for c in numbers if self.program({**setting, c.name: c.next_notch(setting[c.name])}) != here]

    def view(self, setting: Setting) -> PlotView:
        """The chosen view."""
        return next(view for view in self.views(setting) if view.name == setting["view"])
