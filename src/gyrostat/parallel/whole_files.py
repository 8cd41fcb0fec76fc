"""Files that are written whole or not at all, folders that are checked before use, and values as plain JSON."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gyrostat.errors import GyrostatError


def write_whole(path: Path, text: str) -> None:
    """Write a file by replacing it, so that a reader finds the old or the new content, even after a kill or a power loss."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.part")
    try:
        with hidden.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # before the name: else a power loss can leave the new name with no content
        os.replace(hidden, path)
    except OSError:
        hidden.unlink(missing_ok=True)  # on a full disk the part would take the room that is left
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder written to the disk, where the system can do that."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reason(error: OSError) -> str:
    """Why a file cannot be written or read, in the words of the system.

    >>> reason(OSError(28, "No space left on device"))
    'No space left on device'
    """
    return error.strerror or type(error).__name__


def writable(folder: Path, *inside: Path) -> None:
    """Create ``folder`` and the folders ``inside`` it, and raise an error that names ``folder`` if one cannot be written to."""
    try:
        for needed in (folder, *inside):
            needed.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=needed):
                pass
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        why = reason(error) if isinstance(error, OSError) else error
        raise GyrostatError(
            f"cannot write results to {str(folder)!r} ({why}): choose another folder with --out."
        ) from None


def plain(x: Any) -> Any:
    """``x`` as the numbers, strings, lists and dicts of JSON; a number that is not finite becomes None.

    >>> plain({"rate": float("nan"), "steps": (1, 2)})
    {'rate': None, 'steps': [1, 2]}
    """
    if isinstance(x, Mapping):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(value) for value in x]
    if hasattr(x, "tolist"):
        return plain(x.tolist())
    if isinstance(x, float):
        return x if math.isfinite(x) else None
    return x if isinstance(x, str | int | bool | type(None)) else repr(x)
