"""Objects described by tables: ``{"kind": "TwoPoint", "spread": 6.0}`` stands for ``gyrostat.TwoPoint(spread=6.0)``.

A table can be built and shown as Python source, and every argument in it has a path such as ``law.spread``. Specs of
sweeps, the lab and ``gyrostat check`` all describe their objects in this way.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gyrostat
from gyrostat import errors
from gyrostat.errors import GyrostatError

ObjectTable = dict[str, Any]
"""A ``kind`` and the arguments of its call, which may be tables themselves."""

LAWS = {"two-point": "TwoPoint", "uniform": "Uniform", "gaussian": "Gaussian"}
"""The laws of spurious strengths that the lab and ``gyrostat check`` offer: the user's word and the kind."""


def object_table(kind: str, /, **arguments: Any) -> ObjectTable:
    """The table of a call.

    >>> object_table("TwoPoint", mean=1.0, spread=6.0)
    {'kind': 'TwoPoint', 'mean': 1.0, 'spread': 6.0}
    """
    return {"kind": kind, **arguments}


def is_object_table(value: Any) -> bool:
    """Whether a value is a table that names a kind."""
    return isinstance(value, Mapping) and "kind" in value


def build(table: Any, where: str) -> Any:
    """Build the object that a table describes, inner tables first; other values are returned as they are.

    ``where`` is the path of the table, for error messages.

    >>> build({"kind": "TwoPoint", "mean": 1.0, "spread": 6.0}, "law").bound
    7.0
    """
    if isinstance(table, list):
        return [build(item, where) for item in table]
    if not is_object_table(table):
        return table
    kind = table["kind"]
    known = parameters(kind)
    arguments = {name: value for name, value in table.items() if name != "kind"}
    for name in arguments:
        errors.choice(f"setting of {where} ({kind_name(kind)})", name, known)
    missing = [name for name, p in known.items() if p.default is p.empty and name not in arguments]
    if missing:
        raise GyrostatError(f"{where} ({kind_name(kind)}) needs {missing[0]}: write {where}.{missing[0]}.")
    return find_callable(kind)(**{name: build(value, f"{where}.{name}") for name, value in arguments.items()})


def python_source(value: Any) -> str:
    """The Python expression that builds the same object, after ``import gyrostat as gs``.

    >>> python_source({"kind": "RandomEnvironments", "dimension": 5, "law": {"kind": "Finite", "values": [-1.0, 3.0]}})
    'gs.RandomEnvironments(dimension=5, law=gs.Finite(values=[-1.0, 3.0]))'
    """
    if isinstance(value, list):
        return "[" + ", ".join(map(python_source, value)) + "]"
    if not is_object_table(value):
        return repr(value)
    arguments = (f"{name}={python_source(x)}" for name, x in value.items() if name != "kind")
    name, _, constructor = value["kind"].partition(".")
    place = gyrostat.places().get(name, name)
    return f"gs.{place}{constructor and '.' + constructor}({', '.join(arguments)})"


def find_callable(kind: Any) -> Callable[..., Any]:
    """The class or function that a kind names: a public name of gyrostat, ``"module:function"``, or a function itself.

    >>> find_callable("TwoPoint").__name__, find_callable("Environments.diagonal").__name__
    ('TwoPoint', 'diagonal')
    """
    if callable(kind):
        return kind
    if not isinstance(kind, str):
        raise GyrostatError(f"kind must be a name such as 'HeteroSGD'; got {errors.shown(kind)}.")
    if ":" in kind:
        return _import_function(kind)
    name, *inner = kind.split(".")
    target: Any = gyrostat.public(errors.choice("kind", name, gyrostat.places()))
    for part in inner:
        target = getattr(target, errors.choice(f"kind of {name}", part, _alternative_constructors(target)))
    if not inner and not isinstance(target, type):
        raise GyrostatError(f"kind {kind!r} makes no object: name a class such as 'HeteroSGD'.")
    return target


def named_code(value: Any) -> str | None:
    """The first kind in a table that runs code from outside gyrostat, as text; None if there is none.

    >>> named_code({"experiment": {"kind": "os:system", "command": "true"}}), named_code({"kind": "TwoPoint"})
    ('os:system', None)
    """
    if isinstance(value, Mapping):
        kinds = value.get("kind", ())
        for kind in kinds if isinstance(kinds, list | tuple) else [kinds]:
            if callable(kind) or ":" in str(kind):
                return kind_name(kind)
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return next((found for item in inner if (found := named_code(item)) is not None), None)


def _alternative_constructors(owner: type) -> list[str]:
    return [name for name, x in vars(owner).items() if isinstance(x, staticmethod | classmethod)]


def _import_function(kind: str) -> Callable[..., Any]:
    module, _, name = kind.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever a user's module raises while it is imported
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        raise GyrostatError(f"kind {kind!r} cannot be imported ({reason}): write it as 'module:function'.") from None
    if not callable(found):
        raise GyrostatError(
            f"kind {kind!r} is not a function but {errors.shown(found)}: write it as 'module:function'."
        )
    return found


def kind_name(kind: Any) -> str:
    """A kind as text; a function as ``module:name``."""
    return kind if isinstance(kind, str) else f"{kind.__module__}:{getattr(kind, '__qualname__', type(kind).__name__)}"


def parameters(kind: Any) -> dict[str, inspect.Parameter]:
    """The named parameters of a kind."""
    try:
        found = inspect.signature(find_callable(kind)).parameters.values()
    except (TypeError, ValueError) as error:
        if isinstance(error, GyrostatError):
            raise
        raise GyrostatError(
            f"kind {kind_name(kind)!r} does not say its arguments: wrap it in a function of your own."
        ) from None
    return {p.name: p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def setting_paths(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The path of every setting below ``tree``: of those written there and of the other parameters of its kinds.

    >>> list(setting_paths({"law": {"kind": "TwoPoint", "spread": 6.0}}))
    ['law', 'law.kind', 'law.mean', 'law.spread', 'law.rank', 'law.independent']
    """
    known = {"kind": None, **parameters(tree["kind"]), **tree} if "kind" in tree else tree
    for name in known:
        yield prefix + name
        if isinstance(tree.get(name), Mapping):
            yield from setting_paths(tree[name], f"{prefix}{name}.")


def setting_at(tree: Mapping[str, Any], path: str) -> Any:
    """The setting at a path: the value written there, or the default of its kind."""
    *outer, last = path.split(".")
    for name in outer:
        tree = tree[name]
    if last in tree or "kind" not in tree:
        return tree[last]
    default = parameters(tree["kind"])[last].default
    if default is inspect.Parameter.empty:
        raise GyrostatError(f"{path} is not given and has no default: write it down.")
    return default


def with_setting(tree: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of the tree with another value at a path; tables on the way there are created if they are missing.

    >>> with_setting({"law": {"spread": 1}, "rank": 2}, "law.spread", 6)
    {'law': {'spread': 6}, 'rank': 2}
    """
    first, _, rest = path.partition(".")
    return {**tree, first: with_setting(tree.get(first, {}), rest, value) if rest else value}
