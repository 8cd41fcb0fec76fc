"""What a results folder holds, gathered for the page: every declared experiment and every one that is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gyrostat.experiments import registry
from gyrostat.experiments.declarations import Experiment
from gyrostat.figures.declarations import Figure
from gyrostat.figures.matplotlib_renderer import render
from gyrostat.parallel.workers import explain
from gyrostat.reproduce.report import status
from gyrostat.reproduce.report.status import Status
from gyrostat.reproduce.store import ClaimRecord, ResultsStore, experiment_of
from gyrostat.reproduce.tasks import experiments_of


@dataclass(frozen=True)
class Entry:
    """One experiment: its declaration, how it was run, its claims, its figure; what is not there is None or empty."""

    name: str
    declared: Experiment | None
    run: dict[str, Any] | None
    records: Sequence[ClaimRecord]
    error: str = ""

    @property
    def paper(self) -> str:
        return self.name.split("/")[0]

    @property
    def title(self) -> str:
        return self.declared.title if self.declared else self.name

    @property
    def status(self) -> Status:
        if self.error:
            return status.FAILED
        return status.ABSENT if self.run is None else status.of_figure(self.records)


def gather(store: ResultsStore) -> list[Entry]:
    """The experiments of every paper that the folder knows, in the order of the papers."""
    finished, records = set(store.finished()), store.claims()
    failed = [name for paper in registry.PAPERS for name in experiments_of(paper) if store.error(name).is_file()]
    known = {name.split("/")[0] for name in [*finished, *failed]}
    names = [name for paper in registry.PAPERS if paper in known for name in experiments_of(paper)]
    return [
        Entry(
            name,
            _declared(name),
            store.run(name) if name in finished else None,
            [record for record in records if experiment_of(record) == name],
            store.error(name).read_text(encoding="utf-8") if name in failed else "",
        )
        for name in dict.fromkeys([*names, *sorted(finished)])
    ]


def _declared(name: str) -> Experiment | None:
    paper, experiment = name.split("/")
    return registry.experiments(paper).get(experiment) if paper in registry.PAPERS else None


def figure_of(store: ResultsStore, entry: Entry) -> tuple[Figure | None, str]:
    """The figure of a finished experiment, made again from its data; or None and why there is none.

    Its files are drawn as well if they are missing.
    """
    if entry.declared is None:
        return None, "This version of gyrostat no longer declares this experiment, so only its file is shown."
    dataset = store.load(entry.name)
    if dataset is None:
        return None, ""
    try:
        figure = entry.declared.draw(dataset)
        if not store.figure(entry.name).with_name(f"{entry.declared.name}.png").exists():
            render(figure, store.figure(entry.name))
    except Exception as error:  # data of another version: the page says so, and shows all that it can
        return None, f"The stored data cannot be drawn by this version of gyrostat: {explain(error)[0]}"
    return figure, ""
