"""From names such as ``xu2024``, ``xu2024/fig3`` or ``mypaper.py`` to tasks that can run in any process, one per experiment."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from gyrostat import __version__, errors
from gyrostat.experiments import registry
from gyrostat.experiments.paper_files import code_files
from gyrostat.parallel.whole_files import plain
from gyrostat.stores.fingerprint import fingerprint, short

if TYPE_CHECKING:
    import xarray as xr

    from gyrostat.experiments.experiment import Experiment
    from gyrostat.experiments.papers import Paper


class ComputedExperiment(NamedTuple):
    """The data of an experiment, and the CPU seconds of all threads that it took."""

    dataset: xr.Dataset
    cpu_seconds: float


@dataclass(frozen=True)
class ExperimentTask:
    """One experiment at one size with one seed; small enough to send to another process.

    ``address`` tells a process where to find the paper; without it, the registry is asked. ``code`` is a digest of the code
    that computes, as it was before the run: a file may be edited while it lasts.
    """

    name: str
    size: str
    seed: int
    address: str = ""
    code: str = ""

    @property
    def paper(self) -> Paper:
        """The paper of the experiment."""
        name = self.name.split("/")[0]
        return registry.load_paper(self.address) if self.address else registry.find_paper(name)

    @property
    def experiment(self) -> Experiment:
        """The declaration that this task runs; the task's name is ``paper/experiment``."""
        name = self.name.split("/")[1]
        return next(experiment for experiment in self.paper.experiments if experiment.name == name)

    @property
    def weight(self) -> float:
        """The declared cost."""
        return self.experiment.weight

    @property
    def items(self) -> int:
        """One experiment."""
        return 1

    @property
    def program(self) -> Hashable:
        """Experiments with the same ``compute`` share their compiled programs."""
        return function_of(self.experiment)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of ``compute`` at this size."""
        return self.experiment.settings(self.size)

    @property
    def fingerprint(self) -> str:
        """Stored data can be used for this task if they have the same fingerprint."""
        return task_digest(f"{__version__}+{self.code}", self.seed, self.size, self.settings)

    @property
    def derived_seed(self) -> int:
        """The seed of this experiment."""
        return seed_of(self.seed, self.name)

    def compute(self, progress: Callable[[float, int], None]) -> tuple[ComputedExperiment, float]:
        """Run the experiment; returns its data with the CPU seconds, and the seconds it took."""
        start, cpu_start = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            # Claims and figures count diverged runs as infinite; experiments about divergence would warn at every setting.
            warnings.simplefilter("ignore", errors.DivergenceWarning)
            dataset = self.experiment.data(seed=self.derived_seed, progress=progress, **self.settings)
        return ComputedExperiment(dataset, time.process_time() - cpu_start), time.perf_counter() - start


def experiment_task(name: str, size: str, seed: int) -> ExperimentTask:
    """The task of an experiment with the digest of its code: what ``compute`` reaches, and all files of a paper of others.

    >>> experiment_task("xu2024/fig3", "smoke", 0).code == experiment_task("xiong2024/fig1.1", "smoke", 0).code
    False
    """
    address = registry.paper_address(name.split("/")[0])
    task = ExperimentTask(name, size, seed, address)
    files = () if address.startswith(("gyrostat.papers.", "gyrostat.studies")) else code_files(address)
    experiment = task.experiment
    values = {"compute": function_of(experiment), "experiment": type(experiment)}
    return replace(task, code=short(fingerprint(values, files=files)))


def function_of(experiment: Experiment) -> Callable[..., xr.Dataset]:
    """What computes the data of an experiment, without the object that it is a method of."""
    return getattr(experiment.compute, "__func__", experiment.compute)


def task_digest(version: str, seed: int, size: str, settings: Mapping[str, Any]) -> str:
    """A short text that changes when the version, the seed, the size or the settings change.

    >>> task_digest("1.0", 0, "smoke", {"seeds": 4}) == task_digest("1.0", 1, "smoke", {"seeds": 4})
    False
    """
    text = json.dumps([version, seed, size, plain(settings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def seed_of(seed: int, name: str) -> int:
    """The seed of one experiment, from the user's seed and the name; it does not depend on order or workers.

    >>> seed_of(0, "xu2024/fig3") == seed_of(0, "xu2024/fig3") != seed_of(0, "xu2024/fig4")
    True
    """
    return int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:4]) >> 1


def select(names: Sequence[str]) -> list[str]:
    """Every ``paper/experiment`` in ``names``, which are papers or experiments; no name selects all built-in papers.

    A name may also be a file (``mypaper.py``, ``mypaper.py/fig1``) or a module (``module:NAME``).

    >>> select(["xu2024/fig3"])
    ['xu2024/fig3']
    """
    selected: list[str] = []
    for name in names or registry.PAPERS:
        paper, experiment = registry.resolve(name)
        known = registry.paper_names()
        options = experiments_of(paper) if paper in known else []
        if options and not experiment:
            selected += options
        else:
            everything = [*known, *(n for p in registry.PAPERS for n in experiments_of(p))]
            wanted = f"{paper}/{experiment}" if experiment else paper
            selected.append(errors.choice("paper or figure", wanted, options or everything))
    return list(dict.fromkeys(selected))


def experiments_of(paper: str) -> list[str]:
    """Every ``paper/experiment`` of a paper."""
    return [f"{paper}/{name}" for name in registry.experiments(paper)]
