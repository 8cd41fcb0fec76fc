"""A checked spec: the settings of every cell, and what identifies a sweep. :mod:`gyrostat.sweeps.reading` makes it."""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments.object_tables import addresses, build, find_callable, kind_name, setting_at, with_setting
from gyrostat.parallel.whole_files import plain
from gyrostat.sweeps.axes import Axis
from gyrostat.sweeps.formulas import evaluate, is_formula
from gyrostat.sweeps.record import Record

if TYPE_CHECKING:
    from gyrostat.engine.compile import Cell

Tree = dict[str, Any]
NOUNS = ("algorithm", "environments", "measurements")


@dataclass(frozen=True)
class Spec:
    """An experiment as a tree of nouns, axes over its settings, what to keep."""

    tree: Tree
    axes: tuple[Axis, ...]
    record: Record
    seeds: int
    seed: int
    options: dict[str, Any]
    title: str
    summary: str

    @cached_property
    def paths(self) -> list[str]:
        """Every setting that can be an axis or stand in a formula."""
        return list(addresses(self.tree))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each axis."""
        return tuple(len(a.values) for a in self.axes)

    def points(self) -> Iterator[tuple[int, ...]]:
        """The indices of all cells, the last axis fastest."""
        return itertools.product(*(range(n) for n in self.shape))

    def resolved(self, point: tuple[int, ...]) -> Tree:
        """All settings of one cell, its formulas worked out."""
        tree = self.tree
        for ax, i in zip(self.axes, point, strict=True):
            tree = with_setting(tree, ax.path, ax.values[i])
        return _worked_out(tree, tree, self.paths, ())

    def cell(self, point: tuple[int, ...]) -> tuple[Cell, int]:
        """The algorithm and the problem of one cell, and its number of steps."""
        from gyrostat.engine.simulate import check
        from gyrostat.measurements.problem import Problem

        tree = self.resolved(point)
        if "experiment" in tree:
            made = build(tree["experiment"], "experiment")
        else:
            algorithm, environments, measurements = (build(tree[name], name) for name in NOUNS)
            made = algorithm, Problem(environments, measurements)
        check(*made)
        # A formula such as 10 / 0.03 asks for the nearest whole number of steps.
        steps = tree["num_steps"]
        steps = errors.integer("num_steps", round(steps) if isinstance(steps, float) else steps, least=1)
        if self.record.along and steps < self.record.points - 1:
            raise GyrostatError(f"num_steps is {steps} here, too few for record.points = {self.record.points}.")
        return made, steps

    def identity(self) -> dict[str, Any]:
        """What decides the numbers, as plain data: a store of another identity is refused."""
        varied = {a.path for a in self.axes}
        tree = {path: value for path, value in _flat(self.tree).items() if path not in varied}
        kept = {f"record.{k}": plain(v) for k, v in vars(self.record).items()}
        axes = {f"axes.{a.name}": [a.path, [plain(v) for v in a.values]] for a in self.axes}
        return {**tree, **kept, **axes, "seeds": self.seeds, "seed": self.seed, **self.options}


def found(name: str, paths: list[str]) -> str:
    """The path that a name stands for: the path itself, or its end when only one path ends so.

    >>> found("spread", ["algorithm.step_size", "environments.law.spread"])
    'environments.law.spread'
    """
    matches = [path for path in paths if path == name] or [path for path in paths if path.endswith(f".{name}")]
    if len(matches) > 1:
        raise GyrostatError(f"setting {name!r} could be {' or '.join(matches)}: write the whole path.")
    if matches:
        return matches[0]
    ends = {path.rsplit(".", 1)[-1]: path for path in paths}
    return errors.choice("setting", name, [*ends, *paths])


def _worked_out(value: Any, tree: Tree, paths: list[str], asking: tuple[str, ...]) -> Any:
    """A value with its formulas replaced; ``asking`` are the settings whose formulas wait for it."""

    def look_up(name: str) -> Any:
        path = found(name, paths)
        if path in asking:
            raise GyrostatError(f"formulas go in a circle: {' needs '.join((*asking, path))}.")
        return _worked_out(setting_at(tree, path), tree, paths, (*asking, path))

    if is_formula(value):
        return evaluate(value, look_up)
    if isinstance(value, Mapping):
        return {name: _worked_out(x, tree, paths, asking) for name, x in value.items()}
    return [_worked_out(x, tree, paths, asking) for x in value] if isinstance(value, list) else value


def _flat(tree: Tree, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flat(dict(value), f"{prefix}{name}.")
        elif name == "kind" and (callable(value) or ":" in str(value)):
            flat[prefix + name] = [kind_name(value), _source(value)]
        else:
            flat[prefix + name] = plain(value)
    return flat


def _source(kind: Any) -> str:
    """A digest of a user's function: a store must not be continued by another one of the same name."""
    return hashlib.sha256(inspect.getsource(find_callable(kind)).encode()).hexdigest()[:12]
