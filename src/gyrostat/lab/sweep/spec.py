"""The spec of a sweep: an experiment put together from nouns, axes over any of its settings, what to keep.

A spec is a TOML file or the same as a dictionary::

    num_steps = "= 10 / step_size"
    seeds = 100
    algorithm = {kind = "HeteroSGD", step_size = 0.05}
    environments = {kind = "RandomEnvironments", dimension = 30, law = {kind = "TwoPoint", spread = 6.0}}
    measurements = {kind = "FreshGaussian", num_samples = "= 80 * dimension"}
    axes.spread = {linear = [1, 10], points = 10}
    success.spurious = {below = 0.1}
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.lab.store import plain
from gyrostat.lab.sweep.axes import Axis, axis
from gyrostat.lab.sweep.formulas import evaluate, is_formula
from gyrostat.lab.sweep.nouns import Tree, addresses, build, is_noun, kind_name, read, written
from gyrostat.lab.sweep.record import Record, record

if TYPE_CHECKING:
    from gyrostat.loop import Cell

SPECS = Path(__file__).parent / "specs"
NOUNS = ("algorithm", "environments", "measurements")
TREE = (*NOUNS, "experiment", "settings", "num_steps")
KEYS = (*TREE, "title", "summary", "seed", "seeds", "tolerance", "reduction", "axes", "record", "success")
RESERVED = (
    "kind", "seed", "record", "quantile", "done", "steps", "succeeded", "success", "success_low", "success_high",
    "diverged", "reached",
)  # fmt: skip
"""Names of the store that no axis may take."""



@dataclass(frozen=True)
class Spec:
    """A checked spec; :func:`spec` makes it."""

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
            tree = written(tree, ax.path, ax.values[i])
        return _worked_out(tree, tree, self.paths, ())

    def cell(self, point: tuple[int, ...]) -> tuple[Cell, int]:
        """The algorithm and the problem of one cell, and its number of steps."""
        from gyrostat.loop import check
        from gyrostat.problem import Problem

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


def spec(given: Any) -> Spec:
    """A spec from a file, the name of a ready-made one, or a mapping.

    >>> made = spec({
    ...     "num_steps": 100,
    ...     "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
    ...     "environments": {"kind": "RandomEnvironments", "dimension": 10, "law": {"kind": "TwoPoint"}},
    ...     "measurements": {"kind": "FreshGaussian", "num_samples": "= 80 * dimension"},
    ...     "axes": {"spread": [1.0, 6.0]},
    ...     "success": {"spurious": {"below": 0.1}},
    ... })
    >>> made.axes[0].path, float(made.cell((1,))[0][1].measurements.num_samples)
    ('environments.law.spread', 800.0)
    """
    if isinstance(given, Spec):
        return given
    table = dict(given) if isinstance(given, Mapping) else _read(given)
    for key in table:
        errors.choice("key of a spec", key, KEYS)
    tree = _tree(table)
    made = Spec(
        tree, (), record(table.get("record", {}), table.get("success", {})),
        errors.integer("seeds", table.get("seeds", 20), least=1), errors.integer("seed", table.get("seed", 0)),
        {"tolerance": table.get("tolerance"), "reduction": table.get("reduction", "auto")},
        str(table.get("title", "A sweep")), " ".join(str(table.get("summary", "")).split()),
    )  # fmt: skip
    axes = _axes(table.get("axes", {}), made.paths)
    return Spec(**{**{name: getattr(made, name) for name in Spec.__dataclass_fields__}, "axes": axes})


def load_spec(given: Any, settings: Sequence[str] = (), changes: Mapping[str, Any] | None = None) -> Spec:
    """A spec with other values: ``settings`` as the command line has them, ``"spread=6"``; ``changes`` by keys of a spec."""
    table = {**(dict(given) if isinstance(given, Mapping) else _read(given)), **(changes or {})}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise GyrostatError(f"--set must be PATH=VALUE, as in --set dimension=50; got {setting!r}.")
        path = name if name.split(".")[0] in KEYS else found(name, spec(table).paths)
        table = _changed(table, path, _toml(text))
    return spec(table)


def _changed(table: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    return {**table, first: _changed(table.get(first, {}), rest, value) if rest else value}


def _toml(text: str) -> Any:
    """A value as TOML has it; what is not TOML is a word."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def ready_made() -> dict[str, Spec]:
    """The specs that come with the package, by name."""
    return {path.stem: spec(path) for path in sorted(SPECS.glob("*.toml"))}


def _read(given: Any) -> dict[str, Any]:
    path = Path(given)
    if not path.suffix and not path.is_file():  # a folder of that name may be where the sweep goes
        path = SPECS / f"{errors.choice('ready-made spec', str(given), [p.stem for p in SPECS.glob('*.toml')])}.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GyrostatError(f"cannot read the spec {str(path)!r} ({error.strerror}): see gyrostat sweep --list.") from None
    except tomllib.TOMLDecodeError as error:
        raise GyrostatError(f"the spec {str(path)!r} is not TOML: {error}.") from None


def _tree(table: Mapping[str, Any]) -> Tree:
    tree = {key: table[key] for key in TREE if key in table}
    needed = ("experiment",) if "experiment" in table else NOUNS
    for name in needed:
        if not is_noun(tree.get(name)):
            raise GyrostatError(f"{name} must be a table with a kind; got {errors.shown(tree.get(name))}.")
    if "num_steps" not in tree:
        raise GyrostatError("num_steps is missing: say how many steps a run takes.")
    if "experiment" in table and any(name in table for name in NOUNS):
        raise GyrostatError("experiment stands for algorithm, environments and measurements: leave those out.")
    return tree


def _axes(table: Any, paths: list[str]) -> tuple[Axis, ...]:
    if not isinstance(table, Mapping) or not table:
        raise GyrostatError("axes must name at least one setting to vary, as in axes.spread = [1, 6].")
    from gyrostat.diagnostics import DIAGNOSTICS

    flat = dict(_unnested(table))
    where = {key: found(key, paths) for key in flat}
    taken = {*RESERVED, *DIAGNOSTICS}
    short = [path.rsplit(".", 1)[-1] for path in where.values()]
    made = []
    for (key, given), last in zip(flat.items(), short, strict=True):
        name = where[key].replace(".", "_") if short.count(last) > 1 or last in taken else last
        made.append(axis(name, where[key], given))
    if len({a.path for a in made}) < len(made):
        raise GyrostatError("axes name one setting twice: leave one out.")
    return tuple(made)


def _unnested(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``axes.algorithm.step_size = ...`` arrives from TOML as tables within tables."""
    for key, value in table.items():
        if isinstance(value, Mapping) and not set(value) & {"linear", "log", "list"}:
            yield from _unnested(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


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
        return _worked_out(read(tree, path), tree, paths, (*asking, path))

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
    from gyrostat.lab.sweep.nouns import maker

    return hashlib.sha256(inspect.getsource(maker(kind)).encode()).hexdigest()[:12]
