"""What the worker process does: each job is a generator of messages, so that it can be put aside or dropped between two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gyrostat.lab.drawing import curves
from gyrostat.lab.plane import phase
from gyrostat.lab.saying import theory

Message = dict[str, Any]


def diagnose(path: str, target: str, environment: str, missing: str) -> Iterator[Message]:
    """How effects differ between environments, in a table."""
    from gyrostat.lab.tables import diagnosed

    yield {"kind": "working"}
    yield diagnosed(path, target, environment, missing)


def columns(path: str) -> Iterator[Message]:
    """The columns of a table."""
    from gyrostat.lab.tables import described

    yield described(path)


JOBS: dict[str, Callable[..., Iterator[Message | None]]] = {
    "curves": curves,
    "theory": theory,
    "phase": phase,
    "diagnose": diagnose,
    "columns": columns,
}
BACKGROUND = ("phase",)
