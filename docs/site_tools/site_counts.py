"""Count what the documentation promises: ``python docs/site_tools/site_counts.py``.

It prints how many shell commands on the pages the tests execute, which ones they only parse and why, how many parameters of
public names no docstring mentions, and how many warnings (broken links and anchors among them) a strict build gives.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import docstring_markup
import griffe
import reference_pages
import tutorial_pages

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = {
    r"make (reproduce|test)\b": "takes a quarter of an hour",
    r"pip ": "installs packages",
    r"gyrostat lab\b": "opens a server",
    r"dask |TLS=|.* --scheduler ": "needs a cluster",
    r"gyrostat compare-methods ": "takes a minute of CPU time",
    r"gyrostat sweep overlap-spread ": "makes 25 500 runs",
    r"gyrostat reproduce xu2024/fig1 ": "tests/test_docs.py runs it at the size smoke",
    r"gyrostat reproduce smith2026/fig1": "needs the paper to be installed",
    r"gyrostat reproduce smith2026/smith2026.py --size smoke$": "the tutorial on your own paper runs it",
}
"""Commands that the tests only parse, by how they begin, and why."""


class Command(NamedTuple):
    """A line of a shell block: its page, its text without the comment, and why the tests do not execute it, if they do not."""

    page: Path
    text: str
    reason: str | None


def shell_commands(page: Path) -> list[Command]:
    """The commands in the shell blocks of a page."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)
    lines = [re.split(r"\s+# ", line)[0].strip() for block in blocks for line in block.splitlines()]
    return [Command(page, line, reason_not_run(line)) for line in lines if line]


def reason_not_run(command: str) -> str | None:
    """Why the tests do not execute a command."""
    return next((reason for pattern, reason in NOT_RUN.items() if re.match(pattern, command)), None)


def is_tutorial(page: Path) -> bool:
    """Whether a page is made by executing a tutorial, commands included."""
    return page.parent == tutorial_pages.FOLDER


def documented_parameters(text: str) -> set[str]:
    """The parameters that a docstring mentions."""
    sections = griffe.Docstring(docstring_markup.readable(text)).parse("numpy", warnings=False)
    found = [section.value for section in sections if section.kind is griffe.DocstringSectionKind.parameters]
    return {name.strip() for section in found for each in section for name in each.name.split(",")}


def documented_fields(each: type) -> set[str]:
    """Fields of a class that are followed by a docstring of their own."""
    body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0].body  # type: ignore[attr-defined]
    pairs = [(a, b) for a, b in itertools.pairwise(body) if isinstance(a, ast.AnnAssign) and isinstance(b, ast.Expr)]
    return {field.target.id for field, text in pairs if isinstance(text.value, ast.Constant)}


def undocumented() -> dict[str, list[str]]:
    """The parameters of public names that their docstrings do not mention."""
    found = {}
    for address, each in reference_pages.public_objects().items():
        if isinstance(each, type) and issubclass(each, BaseException):
            continue  # exceptions take a message
        documented = documented_parameters(inspect.getdoc(each) or "")
        documented |= documented_fields(each) if isinstance(each, type) else set()
        parameters = inspect.signature(each).parameters
        missing = [name for name in parameters if name not in documented and not name.startswith("_")]
        found |= {address: missing} if missing else {}
    return found


def build_warnings() -> list[str]:
    """The warnings of a build of the site: broken links and anchors, docstrings that cannot be read."""
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder]
        ran = subprocess.run(build, cwd=ROOT, text=True, capture_output=True, check=True)
    return [line for line in ran.stderr.splitlines() if line.startswith("WARNING")]


def report() -> Iterator[str]:
    """The counts, line by line."""
    commands = [command for page in PAGES for command in shell_commands(page)]
    executed = [command for command in commands if command.reason is None]
    yield f"shell commands executed by the tests: {len(executed)} of {len(commands)}"
    for command in commands:
        if command.reason:
            yield f"  only parsed, {command.page.relative_to(ROOT)}: {command.text} ({command.reason})"
    yield f"undocumented parameters of public names: {sum(map(len, undocumented().values()))}"
    yield f"warnings of a strict build (broken links and anchors among them): {len(build_warnings())}"


if __name__ == "__main__":
    for line in report():
        print(line, flush=True)
