"""What a laboratory is: controls, the sides that are run beside each other, views of them, theory, presets, a phase plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat.experiments.object_tables import ObjectTable, build
from gyrostat.lab.controls import Control, Setting, read_setting
from gyrostat.theory import Condition

if TYPE_CHECKING:
    from gyrostat.engine.simulate import Cell

RECORDS = 101
"""Recorded steps of every run: their number is part of a compiled program, so it never changes."""


@dataclass(frozen=True)
class Side:
    """One of the runs that are shown beside each other: its name, an algorithm and a problem."""

    name: str
    title: str
    algorithm: ObjectTable
    problem: ObjectTable

    def build(self) -> Cell:
        """The algorithm and the problem as objects."""
        return build(self.algorithm, "algorithm"), build(self.problem, "problem")


@dataclass(frozen=True)
class Curve:
    """A diagnostic to draw: its name in a result, its label, which component; ``half_square`` makes a distance a loss."""

    record: str
    label: str
    component: int | None = None
    half_square: bool = False

    @property
    def key(self) -> str:
        """A name of its own."""
        part = "" if self.component is None else f"_{self.component + 1}"
        return f"{self.record}{part}" + ("_loss" if self.half_square else "")

    def of(self, values: dict[str, np.ndarray]) -> np.ndarray:
        """Its values (seed, step)."""
        x = values[self.record]
        if self.component is not None:
            x = x[..., self.component]
        return x**2 / 2 if self.half_square else x


@dataclass(frozen=True)
class View:
    """A choice of curves: what to record, and the axes. ``together`` draws all sides into one panel."""

    name: str
    title: str
    curves: tuple[Curve, ...]
    label: str
    log: bool = False
    log_time: bool = False
    together: bool = False

    @property
    def record(self) -> tuple[str, ...]:
        """The diagnostics that it needs."""
        return tuple(dict.fromkeys(curve.record for curve in self.curves))


@dataclass(frozen=True)
class Line:
    """A predicted curve over a view: one side's curve ``key``, or all."""

    key: str
    side: str
    label: str
    x: list[float]
    y: list[float]


@dataclass(frozen=True)
class Plane:
    """The axes of a phase diagram and what a cell shows: the share (or size) that ``outcome`` finds in a run's end."""

    across: str
    up: str
    side: str
    title: str
    label: str
    log_value: bool
    outcome: Callable[[dict[str, np.ndarray]], float]
    record: tuple[str, ...]
    boundary: Callable[[Setting, np.ndarray, np.ndarray], tuple[str, list[float], list[float]] | None]
    note: str = ""


@dataclass(frozen=True)
class Preset:
    """A figure of a paper as a setting."""

    name: str
    title: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Lab:
    """A laboratory."""

    name: str
    title: str
    lead: str
    controls: tuple[Control, ...]
    sides: Callable[[Setting], list[Side]]
    views: Callable[[Setting], list[View]]
    program: Callable[[Setting], tuple]
    conditions: Callable[[Setting], list[Condition]]
    sentences: Callable[[Setting], list[str]]
    lines: Callable[[Setting, str, np.ndarray], list[Line]]
    plane: Plane
    presets: tuple[Preset, ...] = ()
    check: Callable[[Setting], None] = field(default=lambda setting: None)

    def read(self, given: dict[str, Any]) -> Setting:
        """The setting that some text values stand for, checked as a whole, before anything is compiled."""
        setting = read_setting(self.controls, given)
        self.check(setting)
        from gyrostat.engine.simulate import check

        for side in self.sides(setting):
            check(*side.build())
        return setting

    def view(self, setting: Setting) -> View:
        """The chosen view."""
        return next(view for view in self.views(setting) if view.name == setting["view"])
