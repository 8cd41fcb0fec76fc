"""Prints the lowest version of every dependency that ``pyproject.toml`` allows, as pins for pip (``make lowest``).

PyTorch is not among them: every release but the one in ``constraints.txt`` comes with several GB of CUDA packages.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("dask", "lab", "test")
"""The extras whose lower bounds are installed too; those of ``datasets`` and ``bench`` are used by benchmarks only."""

NOT_PINNED = ("gyrostat", "torch")
TOOLS = ("ruff", "mypy", "import-linter", "playwright", "setuptools")
"""Tools of developers, which the smoke test does not need."""


def pins(project: Path) -> list[str]:
    """``name==lowest`` for each dependency of the project and of :data:`EXTRAS`."""
    declared = tomllib.loads(project.read_text())["project"]
    extras = [line for extra in EXTRAS for line in declared["optional-dependencies"][extra]]
    found = {}
    for line in [*declared["dependencies"], *extras]:
        name, lowest = re.match(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", line).groups()
        if name not in (*NOT_PINNED, *TOOLS):
            found[name] = lowest
    # jax and jaxlib are released together; jax alone would take a newer jaxlib where it may.
    return [f"{name}=={lowest}" for name, lowest in {**found, "jaxlib": found["jax"]}.items()]


if __name__ == "__main__":
    print("\n".join(pins(Path(__file__).parents[1] / "pyproject.toml")))
