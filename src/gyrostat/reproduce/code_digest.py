"""A digest of the code that computes results, so that results are computed again when that code changes."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import gyrostat

ROOMS = (
    "errors",
    "jax_tools",
    "models",
    "environments",
    "measurements",
    "algorithms",
    "diagnostics",
    "engine",
    "theory",
    "experiments",
    "papers",
)
"""The code that can change a number of an experiment.

Papers also import ``figures`` and ``typing``. Figures are drawn again from the stored data, and types change no number.
"""


@functools.cache
def code_digest(*more: str) -> str:
    """The first digits of the SHA-256 of all files in ``ROOMS``, and of ``more`` files and folders of the package."""
    home = Path(gyrostat.__file__).parent
    digest = hashlib.sha256()
    files = [
        path for room in (*ROOMS, *more) for path in (home / room, *(home / room).rglob("*.py")) if path.suffix == ".py"
    ]
    for path in sorted(files):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
