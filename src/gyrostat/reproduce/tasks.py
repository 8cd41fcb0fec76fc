"""What to run: names given by the user become tasks, one per experiment."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gyrostat
from gyrostat import __version__, errors
from gyrostat.experiments import registry
from gyrostat.reproduce.store import fingerprint

if TYPE_CHECKING:
    import xarray as xr

    from gyrostat.experiments.declarations import Experiment


@dataclass(frozen=True)
class Task:
    """One experiment at one size with one seed; small enough to send to another process."""

    name: str
    size: str
    seed: int

    @property
    def declared(self) -> Experiment:
        """The declaration that this task runs; its name is ``paper/experiment``."""
        paper, experiment = self.name.split("/")
        return registry.experiments(paper)[experiment]

    @property
    def weight(self) -> float:
        """A rough cost."""
        return self.declared.weight

    @property
    def items(self) -> int:
        """One experiment."""
        return 1

    @property
    def program(self) -> Hashable:
        """Experiments that share ``compute`` share their compiled programs."""
        return self.declared.compute

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of ``compute`` at this size."""
        return dict(self.declared.sizes[self.size])

    @property
    def fingerprint(self) -> str:
        """What decides whether stored data can stand for this task."""
        return fingerprint(f"{__version__}+{code_digest()}", self.seed, self.size, self.settings)

    def compute(self, progress: Callable[[int, int], None]) -> tuple[xr.Dataset, float]:
        """Run the experiment; its data and the seconds it took."""
        start = time.perf_counter()
        dataset = self.declared.compute(seed=seed_of(self.seed, self.name), progress=progress, **self.settings)
        return dataset, time.perf_counter() - start


ROOMS = (
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
"""The code that can change a number of an experiment."""


@functools.cache
def code_digest() -> str:
    """A digest of all code that can change a number of an experiment.

    With it, data computed by another state of the code is computed again, as after another version.
    """
    home = Path(gyrostat.__file__).parent
    digest = hashlib.sha256()
    files = [home / "errors.py", *(path for room in ROOMS for path in (home / room).rglob("*.py"))]
    for path in sorted(files):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def seed_of(seed: int, name: str) -> int:
    """The seed of one experiment: from the user's seed and its name, whatever the order and the workers.

    >>> seed_of(0, "xu2024/fig3") == seed_of(0, "xu2024/fig3") != seed_of(0, "xu2024/fig4")
    True
    """
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:4]) >> 1


def select(names: Sequence[str]) -> list[str]:
    """All ``paper/experiment`` that ``names`` (papers or experiments; none for all) stand for, in order.

    >>> select(["xu2024/fig3"])
    ['xu2024/fig3']
    """
    chosen: list[str] = []
    for name in names or registry.PAPERS:
        paper = name.split("/")[0]
        options = experiments_of(paper) if paper in registry.PAPERS else []
        if name in registry.PAPERS:
            chosen += options
        else:
            everything = [*registry.PAPERS, *(n for p in registry.PAPERS for n in experiments_of(p))]
            chosen.append(errors.choice("paper or figure", name, options or everything))
    return list(dict.fromkeys(chosen))


def experiments_of(paper: str) -> list[str]:
    """All ``paper/experiment`` of a paper."""
    return [f"{paper}/{name}" for name in registry.experiments(paper)]
