"""The skeleton of a paper of one's own (``gyrostat new paper NAME``): a module, its test, and what makes it installable."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path

from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.parallel.whole_files import writable, write_whole

TEMPLATES = Path(__file__).parent / "skeleton"
FILES = {
    "paper.py.txt": "NAME.py",
    "test_paper.py.txt": "test_NAME.py",
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
}
"""Template -> file; ``NAME`` is the name of the paper, also in the text."""


def write_paper_skeleton(name: str, folder: str | Path | None = None) -> list[Path]:
    """Write a paper that works: settings, a figure with the theory over it, two claims, a test and an entry point.

    ``name`` becomes the name of the paper and of its module. ``folder`` is where the files go, by default a new folder of that
    name. Returns the files. A name that is taken and a folder with files in it are refused.

    >>> import tempfile
    >>> [path.name for path in write_paper_skeleton("mine2026", tempfile.mkdtemp())]
    ['mine2026.py', 'test_mine2026.py', 'pyproject.toml', 'README.md']
    """
    _check_name(name)
    folder = Path(name if folder is None else folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise GyrostatError(f"the folder {str(folder)!r} is not empty: choose another one with --out.")
    writable(folder)
    files = []
    for template, file in FILES.items():
        path = folder / file.replace("NAME", name)
        write_whole(path, (TEMPLATES / template).read_text(encoding="utf-8").replace("NAME", name))
        files.append(path)
    return files


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise GyrostatError(
            "the name of a paper is also that of its module: use lower-case letters, digits and '_', as in smith2026; "
            f"got {name!r}."
        )
    if name in registry.paper_names():
        raise GyrostatError(f"there is a paper {name!r} already: choose another name.")
    if importlib.util.find_spec(name) is not None:
        raise GyrostatError(
            f"there is a Python module {name!r} already, which would hide the paper: choose another name."
        )
