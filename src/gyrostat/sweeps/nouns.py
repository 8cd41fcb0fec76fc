"""Nouns as tables: ``{kind = "TwoPoint", spread = 6.0}`` is a call, and every argument of every call can be addressed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gyrostat
from gyrostat import errors
from gyrostat.errors import GyrostatError

Tree = dict[str, Any]


def maker(kind: Any) -> Callable[..., Any]:
    """What a kind stands for: a public name of gyrostat, ``"module:function"``, or a function itself.

    >>> maker("TwoPoint").__name__, maker("Environments.diagonal").__name__
    ('TwoPoint', 'diagonal')
    """
    if callable(kind):
        return kind
    if not isinstance(kind, str):
        raise GyrostatError(f"kind must be a name such as 'HeteroSGD'; got {errors.shown(kind)}.")
    if ":" in kind:
        return _imported(kind)
    name, *inner = kind.split(".")
    found = getattr(gyrostat, errors.choice("kind", name, gyrostat.__all__))
    for part in inner:
        found = getattr(found, errors.choice(f"kind of {name}", part, _builders(found)))
    if not callable(found):
        raise GyrostatError(f"kind {kind!r} cannot be called: name a class such as 'HeteroSGD'.")
    return found


def _builders(kind: type) -> list[str]:
    return [name for name, x in vars(kind).items() if isinstance(x, staticmethod | classmethod)]


def _imported(kind: str) -> Callable[..., Any]:
    module, _, name = kind.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise GyrostatError(f"kind {kind!r} cannot be imported ({error}): write it as 'module:function'.") from None


def parameters(kind: Any) -> dict[str, inspect.Parameter]:
    """The named arguments of a kind."""
    found = inspect.signature(maker(kind)).parameters.values()
    return {p.name: p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def is_noun(value: Any) -> bool:
    """Whether a value is a table that names a kind."""
    return isinstance(value, Mapping) and "kind" in value


def addresses(tree: Tree, prefix: str = "") -> Iterator[str]:
    """Every setting below ``tree`` as a path with dots: what is written there, and what its kinds would take.

    >>> list(addresses({"law": {"kind": "TwoPoint", "spread": 6.0}}))
    ['law', 'law.kind', 'law.mean', 'law.spread', 'law.rank', 'law.independent']
    """
    known = {"kind": None, **parameters(tree["kind"]), **tree} if "kind" in tree else tree
    for name in known:
        yield prefix + name
        if isinstance(tree.get(name), Mapping):
            yield from addresses(tree[name], f"{prefix}{name}.")


def read(tree: Tree, path: str) -> Any:
    """The setting at a path: as written, or the default of its kind."""
    *outer, last = path.split(".")
    for name in outer:
        tree = tree[name]
    if last in tree or "kind" not in tree:
        return tree[last]
    default = parameters(tree["kind"])[last].default
    if default is inspect.Parameter.empty:
        raise GyrostatError(f"{path} is not given and has no default: write it down.")
    return default


def written(tree: Tree, path: str, value: Any) -> Tree:
    """The tree with another value at a path; the old tree stays as it is.

    >>> written({"law": {"spread": 1}, "rank": 2}, "law.spread", 6)
    {'law': {'spread': 6}, 'rank': 2}
    """
    first, _, rest = path.partition(".")
    return {**tree, first: written(tree[first], rest, value) if rest else value}


def build(noun: Any, where: str) -> Any:
    """Make what a table describes, its inner tables first; other values stand for themselves.

    >>> build({"kind": "TwoPoint", "mean": 1.0, "spread": 6.0}, "law").bound
    7.0
    """
    if isinstance(noun, list):
        return [build(item, where) for item in noun]
    if not is_noun(noun):
        return noun
    known = parameters(noun["kind"])
    settings = {name: value for name, value in noun.items() if name != "kind"}
    for name in settings:
        errors.choice(f"setting of {where} ({kind_name(noun['kind'])})", name, known)
    missing = [name for name, p in known.items() if p.default is p.empty and name not in settings]
    if missing:
        raise GyrostatError(f"{where} ({kind_name(noun['kind'])}) needs {missing[0]}: write {where}.{missing[0]}.")
    return maker(noun["kind"])(**{name: build(value, f"{where}.{name}") for name, value in settings.items()})


def kind_name(kind: Any) -> str:
    """A kind as text: for functions the module and the name."""
    return kind if isinstance(kind, str) else f"{kind.__module__}:{kind.__qualname__}"
