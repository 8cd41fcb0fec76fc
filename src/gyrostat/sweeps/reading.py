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

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments.object_tables import is_object_table, with_setting
from gyrostat.sweeps.axes import Axis, axis
from gyrostat.sweeps.record import record
from gyrostat.sweeps.spec import NOUNS, Spec, found

SPECS = Path(__file__).parent / "specs"
TREE = (*NOUNS, "experiment", "settings", "num_steps")
KEYS = (*TREE, "title", "summary", "seed", "seeds", "tolerance", "reduction", "axes", "record", "success")
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
"""Names of the store that no axis may take."""


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
        tree,
        (),
        record(table.get("record", {}), table.get("success", {})),
        errors.integer("seeds", table.get("seeds", 20), least=1),
        errors.integer("seed", table.get("seed", 0)),
        {"tolerance": table.get("tolerance"), "reduction": table.get("reduction", "auto")},
        str(table.get("title", "A sweep")),
        " ".join(str(table.get("summary", "")).split()),
    )
    return replace(made, axes=_axes(table.get("axes", {}), made.paths))


def load_spec(given: Any, settings: Sequence[str] = (), changes: Mapping[str, Any] | None = None) -> Spec:
    """A spec with other values: ``settings`` as the command line has them, ``"spread=6"``; ``changes`` by keys of a spec."""
    table = {**(dict(given) if isinstance(given, Mapping) else _read(given)), **(changes or {})}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise GyrostatError(f"--set must be PATH=VALUE, as in --set dimension=50; got {setting!r}.")
        path = name if name.split(".")[0] in KEYS else found(name, spec(table).paths)
        table = with_setting(table, path, _toml(text))
    return spec(table)


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
        raise GyrostatError(
            f"cannot read the spec {str(path)!r} ({error.strerror}): see gyrostat sweep --list."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise GyrostatError(f"the spec {str(path)!r} is not TOML: {error}.") from None


def _tree(table: Mapping[str, Any]) -> dict[str, Any]:
    tree = {key: table[key] for key in TREE if key in table}
    needed = ("experiment",) if "experiment" in table else NOUNS
    for name in needed:
        if not is_object_table(tree.get(name)):
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
