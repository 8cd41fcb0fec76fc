"""Run the tutorials and write their pages: ``python docs/site_tools/tutorial_pages.py [NAME ...]``.

A tutorial is a script in the percent format of jupytext, so it opens as a notebook (``jupytext --to ipynb first_run.py``). Its
cells run in order in an empty folder. The page shows every cell, what it prints, and every picture that it saves. A cell of
lines that begin with ``# !`` is a shell command.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "tutorials"
PROGRESS = re.compile(r"^(\S+ started|\d+/\d+ .* left|\[\d+/\d+\] .* finished in .*)\n", re.MULTILINE)
"""Lines that a command prints while it works; their times differ from run to run."""
PICTURES = Path(__file__).parents[1] / "images" / "tutorials"


class Cell(NamedTuple):
    """A cell of a tutorial: ``markdown``, ``python`` or ``sh``, and its text."""

    kind: str
    text: str


def cells(script: str) -> Iterator[Cell]:
    """The cells of a script."""
    for part in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        lines = body.strip("\n").splitlines()
        if "[markdown]" in head:
            yield Cell("markdown", "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines))
        elif lines and all(line.startswith("# !") for line in lines):
            yield Cell("sh", "\n".join(line.removeprefix("# !") for line in lines))
        else:
            yield Cell("python", "\n".join(lines))


def printed_by(cell: Cell, names: dict[str, object], run_commands: Callable[[str], str]) -> str:
    """What a cell prints when it runs in the current folder."""
    if cell.kind == "sh":
        return run_commands(cell.text)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(cell.text, "tutorial", "exec"), names)
    return out.getvalue()


def in_a_shell(commands: str) -> str:
    """What commands print in a shell, without their progress."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "108",
    }
    ran = subprocess.run(commands, shell=True, text=True, capture_output=True, env=environment, check=True)
    return PROGRESS.sub("", ran.stdout)


def run_cells(script: str, run_commands: Callable[[str], str] = in_a_shell) -> Iterator[tuple[Cell, str, list[Path]]]:
    """Every cell of a script, what it prints, and the pictures that it saves, in the current folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    known: set[Path] = set()
    for cell in cells(script):
        text = "" if cell.kind == "markdown" else printed_by(cell, names, run_commands)
        pictures = [path for path in sorted(Path().glob("*.png")) if path not in known]
        known.update(pictures)
        yield cell, text, pictures


def page(name: str, pictures_to: Path | None = None) -> str:
    """The page of a tutorial, made in a temporary folder; its pictures are copied if a folder is given."""
    parts = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell, text, pictures in run_cells((FOLDER / f"{name.replace('-', '_')}.py").read_text()):
            parts.append(cell.text if cell.kind == "markdown" else f"```{cell.kind}\n{cell.text}\n```")
            parts += [f"```text\n{text.rstrip()}\n```"] if text else []
            for picture in pictures:
                parts.append(f"![{picture.stem.replace('-', ' ')}](../images/tutorials/{name}-{picture.name})")
                if pictures_to:
                    shutil.copy(picture, pictures_to / f"{name}-{picture.name}")
    file = f"docs/tutorials/{name.replace('-', '_')}.py"
    return "\n\n".join([*parts, f"*This page is made by running `{file}`, which also opens as a notebook.*"]) + "\n"


def tutorial_names() -> list[str]:
    """The names of all tutorials."""
    return sorted(path.stem.replace("_", "-") for path in FOLDER.glob("*.py"))


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    for each in (given.replace("_", "-") for given in sys.argv[1:] or tutorial_names()):
        (FOLDER / f"{each}.md").write_text(page(each, PICTURES))
