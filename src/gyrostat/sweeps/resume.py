"""Whether a store can go on under a spec: the same one, or one that only adds values to axes (or seeds)."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping
from typing import Any

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.parallel.whole_files import plain
from gyrostat.reproduce.code_digest import code_digest
from gyrostat.sweeps.spec import Spec


def made_by() -> dict[str, str]:
    """The programs that decide the bits."""
    return {"gyrostat": f"{__version__}+{code_digest()}", "jax": importlib.metadata.version("jax")}


def accept(spec: Spec, stated: Mapping[str, Any], *, extend: bool) -> None:
    """Refuse a spec that is not the one of the store, with the difference; ``extend`` lets axes and seeds grow."""
    changed: list[str] = []
    grown: list[str] = []
    for name, before, now in _differences(
        {**stated["identity"], **stated["made_by"]}, {**spec.identity(), **made_by()}
    ):
        (grown if _grows(name, before, now) else changed).append(f"{name}: {_told(name, before)} -> {_told(name, now)}")
    if changed:
        raise GyrostatError(
            f"the folder holds another sweep ({'; '.join(changed)}): choose another --out, or --fresh to compute anew."
        )
    if grown and not extend:
        raise GyrostatError(f"the spec has other points than the folder ({'; '.join(grown)}): add them with --extend.")


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    now = plain(now)
    for name in sorted(before.keys() | now.keys()):
        if _in_order(name, before.get(name)) != _in_order(name, now.get(name)):
            yield name, before.get(name), now.get(name)


def _in_order(name: str, value: Any) -> Any:
    """The values of an axis come in the order in which they were added: that is no difference."""
    return [value[0], sorted(value[1], key=repr)] if name.startswith("axes.") and value is not None else value


def _grows(name: str, before: Any, now: Any) -> bool:
    """Whether a difference is one of points: values of one axis, or the number of seeds."""
    if name == "seeds":
        return before < now
    return name.startswith("axes.") and before is not None and now is not None and before[0] == now[0]


def _told(name: str, value: Any) -> str:
    if name.startswith("axes.") and value is not None:
        return f"{len(value[1])} values {errors.shown(value[1])}"
    return "absent" if value is None else errors.shown(value)
