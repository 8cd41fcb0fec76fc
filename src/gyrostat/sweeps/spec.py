"""The spec of a sweep: an experiment, axes over any of its settings, what to record, and what counts as a success.

A spec is a TOML file or the equivalent dictionary::

    num_steps = "= 10 / step_size"
    seeds = 100
    algorithm = {kind = "HeteroSGD", step_size = 0.05}
    environments = {kind = "RandomEnvironments", dimension = 30, law = {kind = "TwoPoint", spread = 6.0}}
    measurements = {kind = "FreshGaussian", num_samples = "= 80 * dimension"}
    axes.spread = {linear = [1, 10], points = 10}
    success.spurious = {below = 0.1}

:func:`read_spec` reads and checks it. A cell is one setting of the grid of all axes.

A spec is code: a kind ``"module:function"`` imports that module and calls that function. ``read_spec(..., code=False)``
refuses such kinds; all others make objects of gyrostat only, and formulas are arithmetic.
"""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import (
    build,
    find_callable,
    is_object_table,
    kind_name,
    named_code,
    parameters,
    setting_at,
    setting_paths,
    with_setting,
)
from gyrostat.stores.fingerprint import differences, fingerprint, short
from gyrostat.sweeps.formulas import evaluate, is_formula

if TYPE_CHECKING:
    from gyrostat.engine.program import Cell

SPECS_FOLDER = Path(__file__).parent / "specs"
PARTS = ("algorithm", "environments", "measurements")
SETTINGS = (*PARTS, "experiment", "settings", "num_steps")
CODE = ("sweeps/formulas.py", "sweeps/plan.py", "sweeps/spec.py")
"""The code of sweeps that can change a number of a cell, besides what experiments run through."""

KEYS = (*SETTINGS, "title", "summary", "seed", "seeds", "tolerance", "reduction", "axes", "record", "success")
RESERVED = (
    "kind",
    "seed",
    "record",
    "quantile",
    "done",
    "steps",
    "succeeded",
    "success",
    "success_low",
    "success_high",
    "diverged",
    "reached",
)
"""Names in the store that no axis may take."""

AXIS_KEYS = ("linear", "log", "list", "points", "whole", "label")
RECORD_KEYS = ("final", "paths", "quantiles", "points")
REDUCTIONS = ("auto", "never", "always")
RUN_OUTCOMES = ("diverged", "reached")
"""Numbers about a whole run that the engine returns besides the diagnostics: a step, or -1 for never."""

MOST_SEEDS, MOST_CELLS, MOST_VALUES = 1_000_000, 1_000_000, 100_000
"""Bounds of a grid: the seeds of a cell, all cells, and the values of an axis."""

MOST_STEPS = 2**31 - 2
"""Steps of a run: the store keeps them as 32-bit numbers."""

CELLS_TRIED = 64
"""Cells that are built before a sweep begins if none of them can be."""

MOST_DEPTH = 20
"""How deep tables may be nested in a spec."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SUCCESS_TESTS = {"below": np.less, "above": np.greater}
NOTHING_LEARNT = {
    "signal": 0.0,
    "spurious": 0.0,
    "spurious_part": 0.0,
    "imbalance": 0.0,
    "diverged": np.inf,
    "reached": np.inf,
}
"""What may be tested, for a run whose product stays zero. The other diagnostics then depend on the truth."""

Point = tuple[int, ...]
"""A cell of the grid: its index along every axis."""

Scale = Literal["linear", "log", "list"]


@dataclass(frozen=True)
class SweepAxis:
    """A setting that is varied: its path, the name of its dimension in the results, and its values as given."""

    name: str
    path: str
    values: tuple[Any, ...]
    scale: Scale
    label: str

    @property
    def ordered(self) -> bool:
        """Whether there are several values and all are numbers."""
        return len(self.values) > 1 and _are_numbers(self.values)


@dataclass(frozen=True)
class RecordSpec:
    """Which diagnostics are kept (last values, paths, quantiles over seeds), at how many steps, and what a success is.

    >>> read_record({"final": ["signal"]}, {"spurious": {"below": 0.1}}).diagnostics
    ('signal', 'spurious')
    """

    final: tuple[str, ...]
    paths: tuple[str, ...]
    quantiles: tuple[str, ...]
    points: int
    success: tuple[tuple[str, str, float], ...]

    @property
    def diagnostics(self) -> tuple[str, ...]:
        """Every diagnostic that must be recorded during a run."""
        tested = tuple(name for name, _, _ in self.success if name not in RUN_OUTCOMES)
        return tuple(dict.fromkeys((*self.final, *self.paths, *self.quantiles, *tested)))

    @property
    def along(self) -> bool:
        """Whether anything is kept from steps before the last."""
        return bool(self.paths or self.quantiles)

    @property
    def success_text(self) -> str:
        """The success in words.

        >>> read_record({}, {"spurious": {"below": 0.1}}).success_text
        'spurious below 0.1'
        """
        return " and ".join(f"{name} {test} {limit:g}" for name, test, limit in self.success)

    @property
    def note(self) -> str:
        """A sentence if runs that have learnt nothing are successes, too; else nothing."""
        counts_nothing = self.success and all(
            name in NOTHING_LEARNT and SUCCESS_TESTS[test](NOTHING_LEARNT[name], limit)
            for name, test, limit in self.success
        )
        remedy = "add a condition on the signal, such as success.signal = {above = 0.5}"
        return (
            f"success ({self.success_text}) also counts runs that have learnt nothing: {remedy}."
            if counts_nothing
            else ""
        )

    def successes(self, last: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which runs succeed, given the last values of all runs; a run that diverged (NaN) does not."""
        return np.logical_and.reduce([SUCCESS_TESTS[test](last[name], limit) for name, test, limit in self.success])


@dataclass(frozen=True)
class Spec:
    """A checked spec. ``tree`` holds all settings of the experiment as nested tables, ``options`` those of the engine.

    ``code`` is the fingerprint of the code that computes, as it was when the spec was read.
    """

    tree: dict[str, Any]
    axes: tuple[SweepAxis, ...]
    record: RecordSpec
    seeds: int
    seed: int
    options: dict[str, Any]
    title: str
    summary: str
    code: dict[str, str] = field(default_factory=dict)

    @cached_property
    def paths(self) -> list[str]:
        """The path of every setting that can be an axis or appear in a formula."""
        return list(setting_paths(self.tree))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each axis."""
        return tuple(len(a.values) for a in self.axes)

    @property
    def num_cells(self) -> int:
        """The number of cells of the whole grid."""
        return int(np.prod(self.shape))

    def points(self) -> Iterator[Point]:
        """All cells; the last axis varies fastest."""
        return itertools.product(*(range(n) for n in self.shape))

    def axis_values(self, point: Point) -> dict[str, Any]:
        """The values of the axes at a cell, by the names of the axes."""
        return {a.name: a.values[i] for a, i in zip(self.axes, point, strict=True)}

    def settings(self, point: Point) -> dict[str, Any]:
        """All settings of a cell, with the formulas evaluated."""
        tree = self.tree
        for a, i in zip(self.axes, point, strict=True):
            tree = with_setting(tree, a.path, a.values[i])
        return _evaluated(tree, tree, self.paths, (), {})

    def cell(self, point: Point) -> tuple[Cell, int]:
        """The algorithm and the problem of a cell, and its number of steps."""
        from gyrostat.engine.simulate import check
        from gyrostat.measurements.problem import Problem

        tree = self.settings(point)
        if "experiment" in tree:
            built = build(tree["experiment"], "experiment")
        else:
            algorithm, environments, measurements = (build(tree[name], name) for name in PARTS)
            built = algorithm, Problem(environments, measurements)
        check(*built)
        # A formula such as 10 / 0.03 asks for the nearest whole number of steps.
        steps = tree["num_steps"]
        steps = round(float(errors.number("num_steps", steps))) if isinstance(steps, float) else steps
        steps = errors.integer("num_steps", steps, least=1, most=MOST_STEPS)
        if self.record.along and steps < self.record.points - 1:
            raise GyrostatError(f"num_steps is {steps} here, too few for record.points = {self.record.points}.")
        return built, steps

    def check_cells(self) -> None:
        """Refuse a grid of which no cell can be built, for one reason that all the cells share."""
        reasons: dict[str, str] = {}
        points = list(itertools.islice(self.points(), 0, None, max(1, self.num_cells // CELLS_TRIED)))
        for point in points:
            try:
                self.cell(point)
                return
            except GyrostatError as error:
                reasons.setdefault(
                    str(error).partition("; got ")[0], str(error)
                )  # what it got differs from cell to cell
            if len(reasons) > 1:
                return
        raise GyrostatError(f"no cell of this sweep can be built: {next(iter(reasons.values()))}")

    def identity(self) -> dict[str, Any]:
        """Everything but code that decides the numbers, as plain data. A store with another identity is refused."""
        varied = {a.path for a in self.axes}
        tree = {path: value for path, value in _flat(self.tree).items() if path not in varied}
        record = {f"record.{key}": as_data(value) for key, value in vars(self.record).items()}
        axes = {f"axes.{a.name}": [a.path, as_data(a.values)] for a in self.axes}
        return {**tree, **record, **axes, "seeds": self.seeds, "seed": self.seed, **self.options}

    def code_here(self) -> dict[str, str]:
        """The fingerprint of the code that computes, as it is in this process now."""
        settings: dict[str, list[Any]] = {}
        for path, value in (*self.tree.items(), *((a.path, value) for a in self.axes for value in a.values)):
            for name, setting in _objects(path, value):
                settings.setdefault(name, []).append(setting)
        return fingerprint(settings, core=CODE)

    def with_code(self) -> Spec:
        """The spec with the fingerprint of today."""
        spec = replace(self, code=self.code_here())
        _same_code.add(short(spec.code))
        return spec


_same_code: set[str] = set()
"""The fingerprints that are known to be those of this process."""


def check_code(spec: Spec) -> None:
    """Refuse a spec whose code is another one in this worker: another version, or a value that was set while a program ran."""
    if short(spec.code) not in _same_code:
        if changed := differences(spec.code, spec.code_here()):
            raise GyrostatError(
                f"this worker has other code than the sweep ({'; '.join(changed)}): "
                "install the same code everywhere, and set values in files, or use jobs=0."
            )
        _same_code.add(short(spec.code))


# Reading


def read_spec(
    source: Any, settings: Sequence[str] = (), changes: Mapping[str, Any] | None = None, *, code: bool = True
) -> Spec:
    """Read and check a spec: a TOML file, the name of a ready-made spec, or a mapping.

    ``changes`` replaces keys of the spec, and ``settings`` changes single settings as ``--set`` does: ``"spread=6"``.
    ``code=False`` refuses kinds that run code from outside gyrostat, for specs from strangers.

    >>> spec = read_spec({
    ...     "num_steps": 100,
    ...     "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
    ...     "environments": {"kind": "RandomEnvironments", "dimension": 10, "law": {"kind": "TwoPoint"}},
    ...     "measurements": {"kind": "FreshGaussian", "num_samples": "= 80 * dimension"},
    ...     "axes": {"spread": [1.0, 6.0]},
    ...     "success": {"spurious": {"below": 0.1}},
    ... })
    >>> spec.axes[0].path, float(spec.cell((1,))[0][1].measurements.num_samples)
    ('environments.law.spread', 800.0)
    """
    if isinstance(source, Spec) and not settings and not changes:
        return source.with_code()
    table = {**(source if isinstance(source, Mapping) else _read_file(source)), **(changes or {})}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not all(name.split(".")):
            raise GyrostatError(f"--set must be PATH=VALUE, as in --set dimension=50; got {setting!r}.")
        path = name if name.split(".")[0] in KEYS else full_path(name, _checked(table, code=code).paths)
        table = with_setting(table, path, _toml_value(text))
    return _checked(table, code=code).with_code()


def ready_made_specs() -> dict[str, Spec]:
    """The specs that come with the package, by name."""
    return {path.stem: read_spec(path) for path in sorted(SPECS_FOLDER.glob("*.toml"))}


def _read_file(source: Any) -> dict[str, Any]:
    if not isinstance(source, str | Path):
        raise GyrostatError(f"spec must be a TOML file, a name or a mapping; got {errors.shown(source)}.")
    path = Path(source)
    if not path.suffix and not path.is_file():  # a folder of that name may be the one that --out names
        names = [p.stem for p in SPECS_FOLDER.glob("*.toml")]
        path = SPECS_FOLDER / f"{errors.choice('ready-made spec', str(source), names)}.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GyrostatError(
            f"cannot read the spec {str(path)!r} ({error.strerror}): see gyrostat sweep --list."
        ) from None
    except UnicodeDecodeError as error:
        raise GyrostatError(
            f"the spec {str(path)!r} is not UTF-8 (byte {error.start}): save it in UTF-8, as TOML files are."
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise GyrostatError(f"the spec {str(path)!r} is not TOML: {error}.") from None
    except ValueError as error:  # a whole number of thousands of digits, a null byte in the name
        raise GyrostatError(f"cannot read the spec {str(path)!r}: {error}.") from None


def _toml_value(text: str) -> Any:
    """A value in the syntax of TOML; text that is not TOML stands for itself."""
    try:
        found = tomllib.loads(f"x = {text}")
    except (ValueError, RecursionError):
        return text
    return found["x"] if set(found) == {"x"} else text


def _checked(table: Mapping[str, Any], *, code: bool) -> Spec:
    for key in table:
        errors.choice("key of a spec", key, KEYS)
    _check_depth(table)
    if not code and (kind := named_code(table)) is not None:
        raise GyrostatError(f"kind {kind!r} runs code from outside gyrostat, which --no-code refuses: read it first.")
    spec = Spec(
        tree=_read_tree(table),
        axes=(),
        record=read_record(table.get("record", {}), table.get("success", {})),
        seeds=errors.integer("seeds", table.get("seeds", 20), least=1, most=MOST_SEEDS),
        seed=errors.integer("seed", table.get("seed", 0), most=errors.LARGEST_SEED),
        options=_read_options(table),
        title=errors.text("title", table.get("title", "A sweep")),
        summary=" ".join(errors.text("summary", table.get("summary", "")).split()),
    )
    spec = replace(spec, axes=_read_axes(table.get("axes", {}), spec.paths))
    if math.prod(spec.shape) > MOST_CELLS:
        raise GyrostatError(f"axes make {math.prod(spec.shape)} cells; {MOST_CELLS} are allowed: take fewer values.")
    _check_names(spec.tree, {a.path for a in spec.axes})
    return spec


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > MOST_DEPTH:
        raise GyrostatError(f"tables and lists of a spec are nested more than {MOST_DEPTH} levels deep: simplify it.")
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for item in inner:
        _check_depth(item, depth + 1)


def _read_options(table: Mapping[str, Any]) -> dict[str, Any]:
    tolerance = table.get("tolerance")
    if tolerance is not None:
        tolerance = float(errors.number("tolerance", tolerance, above=0))
    return {"tolerance": tolerance, "reduction": errors.choice("reduction", table.get("reduction", "auto"), REDUCTIONS)}


def _check_names(tree: Mapping[str, Any], varied: set[str], where: str = "") -> None:
    """Refuse a setting that its kind does not have, with the closest one, before anything runs.

    The settings of a kind that an axis varies are not checked here: each cell has its own.
    """
    if "kind" in tree and f"{where}kind" not in varied:
        for name in tree:
            known = ["kind", *parameters(tree["kind"])]
            errors.choice(f"setting of {where.rstrip('.')} ({kind_name(tree['kind'])})", name, known)
    for name, value in tree.items():
        if isinstance(value, Mapping):
            _check_names(value, varied, f"{where}{name}.")


def _read_tree(table: Mapping[str, Any]) -> dict[str, Any]:
    tree = {key: table[key] for key in SETTINGS if key in table}
    for name in ("experiment",) if "experiment" in table else PARTS:
        if not is_object_table(tree.get(name)):
            raise GyrostatError(f"{name} must be a table with a kind; got {errors.shown(tree.get(name))}.")
    if "num_steps" not in tree:
        raise GyrostatError("num_steps is missing: say how many steps a run takes.")
    if "experiment" in table and any(name in table for name in PARTS):
        raise GyrostatError("experiment replaces algorithm, environments and measurements: leave those out.")
    return tree


# Axes


def _read_axes(table: Any, paths: list[str]) -> tuple[SweepAxis, ...]:
    if not isinstance(table, Mapping) or not table:
        raise GyrostatError("axes must name at least one setting to vary, as in axes.spread = [1, 6].")
    from gyrostat.diagnostics import DIAGNOSTICS

    given = [(full_path(key, paths), values) for key, values in _unnested(table)]
    if len({path for path, _ in given}) < len(given):
        raise GyrostatError("axes name one setting twice: leave one out.")
    taken = {*RESERVED, *DIAGNOSTICS}
    last_names = [path.rsplit(".", 1)[-1] for path, _ in given]
    axes = []
    for (path, values), last in zip(given, last_names, strict=True):
        unique = last_names.count(last) == 1 and last not in taken
        axes.append(read_axis(last if unique else path.replace(".", "_"), path, values))
    return tuple(axes)


def _unnested(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """``axes.algorithm.step_size = ...`` arrives from TOML as nested tables: give each axis its path."""
    for key, value in table.items():
        if isinstance(value, Mapping) and not set(value) & {"linear", "log", "list"}:
            yield from _unnested(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def full_path(name: str, paths: list[str]) -> str:
    """The path that a name stands for: the name itself, or the only path that ends with it.

    >>> full_path("spread", ["algorithm.step_size", "environments.law.spread"])
    'environments.law.spread'
    """
    matches = [path for path in paths if path == name] or [path for path in paths if path.endswith(f".{name}")]
    if len(matches) > 1:
        raise GyrostatError(f"setting {name!r} could be {' or '.join(matches)}: write the whole path.")
    if matches:
        return matches[0]
    ends = {path.rsplit(".", 1)[-1]: path for path in paths}
    return errors.choice("setting", name, [*ends, *paths])


def read_axis(name: str, path: str, given: Any) -> SweepAxis:
    """An axis from ``[1, 2, 3]``, ``{linear = [0, 1], points = 5}``, ``{log = [.01, 1], points = 9}`` or ``{list = [...]}``.

    ``whole = true`` rounds to whole numbers, and ``label`` is the text of the axis in figures.

    >>> read_axis("spread", "law.spread", {"linear": [0.0, 1.0], "points": 3}).values
    (0.0, 0.5, 1.0)
    """
    table = given if isinstance(given, Mapping) else {"list": given}
    for key in table:
        errors.choice(f"key of axis {name}", key, AXIS_KEYS)
    kinds = [key for key in ("linear", "log", "list") if key in table]
    if len(kinds) != 1:
        raise GyrostatError(f"axis {name} must say exactly one of linear, log and list; got {kinds or 'none'}.")
    (kind,) = kinds
    values = _listed(name, table["list"]) if kind == "list" else _ranged(name, kind, table)
    if errors.flag(f"whole of axis {name}", table.get("whole", False)):
        if not _are_numbers(values):
            raise GyrostatError(
                f"axis {name} must list numbers to be rounded to whole ones; got {errors.shown(values)}."
            )
        values = [int(v) for v in dict.fromkeys(np.round(values).astype(int).tolist())]
    if len(set(map(data_text, values))) < len(values):
        raise GyrostatError(f"axis {name} lists a value twice: leave one out.")
    scale: Any = _scale_of(values) if kind == "list" else kind
    label = errors.text(f"label of axis {name}", table.get("label", name.replace("_", " ")))
    return SweepAxis(name, path, tuple(values), scale, label)


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
        raise GyrostatError(f"axis {name} must list at least one value; got {errors.shown(values)}.")
    if len(values) > MOST_VALUES:
        raise GyrostatError(f"axis {name} lists {len(values)} values; {MOST_VALUES} are allowed: take fewer.")
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            raise GyrostatError(f"axis {name} must list finite numbers; got {value}.")
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _scale_of(values: Sequence[Any]) -> Scale:
    """Listed numbers that span a factor of ten or more (10, 30, 100, 300) are shown on a log axis."""
    if not _are_numbers(values):
        return "list"
    x = np.sort(np.array(values, dtype=float))
    return "log" if len(x) > 2 and x[0] > 0 and x[-1] / x[0] >= 10 else "linear"


def _ranged(name: str, kind: str, table: Mapping[str, Any]) -> list[float]:
    ends = _listed(name, table[kind])
    if len(ends) != 2:
        raise GyrostatError(f"axis {name} must give two ends, as in {kind} = [0.01, 1]; got {len(ends)} numbers.")
    low, high = (float(errors.number(f"axis {name}", end, above=0 if kind == "log" else None)) for end in ends)
    if not low < high:
        raise GyrostatError(f"axis {name} must go upwards; got {low:g} to {high:g}.")
    points = errors.integer(f"points of axis {name}", table.get("points", 11), least=2, most=MOST_VALUES)
    values = np.geomspace(low, high, points) if kind == "log" else np.linspace(low, high, points)
    # Twelve digits: nobody means a step size of 0.30000000000000004, and a value must stay the same when an axis is extended.
    return [float(f"{v:.12g}") for v in values]


# What to record


def read_record(kept: Any, success: Any) -> RecordSpec:
    """Read the tables ``[record]`` and ``[success]`` of a spec."""
    if not isinstance(kept, Mapping) or not isinstance(success, Mapping):
        raise GyrostatError("record and success must be tables, as in success.spurious = {below = 0.1}.")
    for key in kept:
        errors.choice("key of record", key, RECORD_KEYS)
    record = RecordSpec(
        final=_diagnostic_names("final", kept.get("final", ())),
        paths=_diagnostic_names("paths", kept.get("paths", ())),
        quantiles=_diagnostic_names("quantiles", kept.get("quantiles", ())),
        points=errors.integer("record.points", kept.get("points", 21), least=2, most=MOST_VALUES),
        success=tuple(_read_success_test(name, given) for name, given in success.items()),
    )
    if not record.diagnostics and not record.success:
        raise GyrostatError("record keeps nothing: name diagnostics in record.final, record.paths or success.")
    return record


def _diagnostic_names(key: str, given: Any) -> tuple[str, ...]:
    from gyrostat.diagnostics.base import named

    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise GyrostatError(
            f"record.{key} must list names of diagnostics; got {errors.shown(given)}: a function gets a name that workers and "
            "stores know by @gs.diagnostic."
        )
    for name in given:
        if named(name).dims:
            raise GyrostatError(f"{name} is not one number: a sweep keeps numbers only; see gyrostat.run_grid.")
    return tuple(given)


def _read_success_test(name: str, given: Any) -> tuple[str, str, float]:
    if name not in RUN_OUTCOMES:
        _diagnostic_names("final", [name])
    if not isinstance(given, Mapping) or len(given) != 1:
        raise GyrostatError(f"success.{name} must say below or above one number; got {errors.shown(given)}.")
    ((test, limit),) = given.items()
    chosen = errors.choice(f"test of success.{name}", test, SUCCESS_TESTS)
    return name, chosen, float(errors.number(f"success.{name}", limit))


# Settings of a cell, and the identity of a sweep


def _evaluated(
    value: Any, tree: dict[str, Any], paths: list[str], waiting: tuple[str, ...], known: dict[str, Any]
) -> Any:
    """A value with its formulas evaluated.

    ``waiting`` are the settings whose formulas need this value, and ``known`` the settings that were evaluated before: without
    it, settings that each name the one before twice would take a time that doubles with every one.
    """

    def look_up(name: str) -> Any:
        path = full_path(name, paths)
        if path in waiting:
            raise GyrostatError(f"formulas depend on each other in a circle: {' needs '.join((*waiting, path))}.")
        if len(waiting) > MOST_DEPTH:
            raise GyrostatError(f"formulas refer to each other more than {MOST_DEPTH} levels deep: simplify them.")
        if path not in known:
            known[path] = _evaluated(setting_at(tree, path), tree, paths, (*waiting, path), known)
        return known[path]

    if is_formula(value):
        return evaluate(value, look_up)
    if isinstance(value, Mapping):
        return {name: _evaluated(x, tree, paths, waiting, known) for name, x in value.items()}
    return [_evaluated(x, tree, paths, waiting, known) for x in value] if isinstance(value, list) else value


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """All settings by their paths, as plain data."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: as_data(value)}
    return flat


def as_data(value: Any) -> Any:
    """A setting as the numbers, texts, lists and tables of JSON; functions and other objects by name.

    >>> as_data({"law": as_data, "limits": (0.5, float("inf"))})
    {'law': 'gyrostat.sweeps.spec:as_data', 'limits': [0.5, 'inf']}
    """
    if isinstance(value, Mapping):
        return {str(name): as_data(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [as_data(x) for x in value]
    if hasattr(value, "tolist"):
        return as_data(value.tolist())
    if callable(value):
        return kind_name(value)
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # JSON has no word for it
    return value if isinstance(value, str | int | float | None) else type(value).__qualname__


def data_text(value: Any) -> str:
    """A setting as text that is equal for equal settings only: a function may tell 1 from 1.0 and from True."""
    return json.dumps(as_data(value), sort_keys=True)


def _objects(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a setting holds besides plain data, by name: functions, also those named by a kind, arrays, other objects."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _objects(f"{path}.{name}", inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _objects(path, inner)
    elif isinstance(value, str):
        if ":" in value and path.endswith("kind"):
            with suppress(GyrostatError):  # cells of a kind that cannot be imported fail, and say why
                yield f"{path} = {value}", find_callable(value)
    elif callable(value):
        yield f"{path} = {kind_name(value)}", value
    elif not isinstance(value, int | float | None):
        yield path, value
