"""Surprise rates (``gyrostat reproduce --seeds``): how often each claim has an unexpected verdict over many seeds.

Every seed has a results folder of its own, ``DIR/seeds/SIZE-K``. A worker runs the seeds of an experiment one after the other,
so that they share its compiled programs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments.declarations import SIZES
from gyrostat.experiments.statistics import wilson
from gyrostat.parallel.checked_files import read_json
from gyrostat.parallel.interrupts import interrupts_noted
from gyrostat.parallel.progress import ProgressDisplay, print_line
from gyrostat.parallel.threads import one_thread
from gyrostat.parallel.whole_files import write_whole
from gyrostat.reproduce.claims import is_surprise
from gyrostat.reproduce.runner import FolderSession, ReproductionSummary, how_it_stopped, run_session
from gyrostat.reproduce.store import ResultsStore
from gyrostat.reproduce.tasks import ComputedExperiment, ExperimentTask, experiment_task, select

LARGEST_SHARE = 0.02
"""A claim with a larger share of surprises is wrong, too sharp, or looks at too few runs."""

MOST_SEEDS = 10_000
"""More seeds than this are taken for a slip."""


@dataclass(frozen=True)
class SurpriseRate:
    """How often a claim had a verdict that was not expected: in ``surprises`` of ``runs``, at the seeds ``at``."""

    id: str
    expected: str
    runs: int
    surprises: int
    at: tuple[int, ...] = ()

    @property
    def share(self) -> float:
        """The share of runs with a surprise."""
        return self.surprises / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share (Wilson).

        >>> rate = SurpriseRate("paper/fig1/slug", "holds", 20, 1, (7,))
        >>> rate.share, [round(end, 3) for end in rate.interval]
        (0.05, [0.009, 0.236])
        """
        low, high = wilson(np.asarray(self.surprises), self.runs)
        return float(low), float(high)


@dataclass(frozen=True)
class SurpriseCount:
    """The outcome of :func:`count_surprises`: a rate for every claim, and experiments that could not be computed."""

    command: str
    size: str
    seeds: tuple[int, ...]
    rates: tuple[SurpriseRate, ...]
    failures: dict[str, str] = field(default_factory=dict)
    stopped: int = 0

    @property
    def too_many(self) -> list[SurpriseRate]:
        """The claims with a share above ``LARGEST_SHARE``, the largest first."""
        above = [rate for rate in self.rates if rate.share > LARGEST_SHARE]
        return sorted(above, key=lambda rate: -rate.share)

    @property
    def status(self) -> int:
        """The exit status: 0 when no claim is above 2 %, 1 when one is or an experiment failed, 2 for a full disk, 130."""
        return self.stopped or int(bool(self.failures or self.too_many))


def read_seeds(text: str) -> list[int]:
    """The seeds that a text means: numbers and ranges ``K1:K2``, both ends included, separated by commas or spaces.

    >>> read_seeds("1:3, 7")
    [1, 2, 3, 7]
    """
    seeds: list[int] = []
    for part in re.split(r"[,\s]+", text.strip()):
        match = re.fullmatch(r"(\d{1,18})(?::(\d{1,18}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last - first >= MOST_SEEDS:
            raise GyrostatError(
                f"--seeds must be numbers or ranges, as in 1,2,7 or 1:20 (at most {MOST_SEEDS} of them); "
                f"got {errors.shown(text)}."
            )
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def count_surprises(
    names: Sequence[str] = (),
    *,
    seeds: Sequence[int],
    size: str = "standard",
    out: str | Path = "results",
    jobs: int | None = None,
    fresh: bool = False,
    console: Console | None = None,
) -> SurpriseCount:
    """Run the experiments ``names`` with every seed and count the surprises of each claim.

    Writes ``surprises.json`` and ``surprises.md`` to the folder ``out``, which have a section for each size, and the results
    of every seed to ``out/seeds``. An experiment that is finished there with the same code, seed, size and settings is not
    computed again, unless ``fresh``; its claims are judged again on the stored data.

    Parameters
    ----------
    names : papers, ``paper/figure``, files or ``module:NAME``; without names, all built-in papers.
    seeds : the seeds to run, each as ``gyrostat reproduce --seed`` would.
    size : ``smoke``, ``standard`` or ``full``.
    out : the results folder.
    jobs : the number of worker processes; one per core by default.
    fresh : compute finished experiments again.
    console : where to print.
    """
    console = Console() if console is None else console
    errors.choice("size", size, SIZES)
    jobs = (os.cpu_count() or 1) if jobs is None else errors.integer("jobs", jobs, least=1)
    seeds = tuple(dict.fromkeys(errors.integer("seeds", seed) for seed in seeds))
    selected = select(names)
    first = [experiment_task(name, size, 0) for name in selected]
    # The seeds of an experiment follow each other, so that they share its programs in one process, too.
    tasks = [replace(task, seed=seed) for task in first for seed in seeds]
    folder = Path(out)
    earlier = _sections(folder)
    stores = {seed: ResultsStore(folder / "seeds" / f"{size}-{seed}") for seed in seeds}
    for store in stores.values():
        store.prepare()
    with one_thread(quick=size == "smoke"), interrupts_noted(), ProgressDisplay(console, "runs") as display:
        session = SeedSessions(stores, display)
        run_session(tasks, session, display, jobs=jobs, fresh=fresh)
    count = session.count(_command(names, size, seeds), size, seeds, selected)
    if count.stopped:
        done = f"{session.done} of {len(tasks)} runs"
        print_line(console, how_it_stopped(session.summary, done, folder))
        return count
    sections = {**earlier, size: _section(count)}
    write_whole(folder / "surprises.json", json.dumps(sections, indent=1, allow_nan=False) + "\n")
    write_whole(folder / "surprises.md", markdown(sections))
    _show(count, folder, console)
    return count


class SeedSessions:
    """Passes on what the workers report to the session of the task's seed."""

    def __init__(self, stores: dict[int, ResultsStore], display: ProgressDisplay):
        self.of = {seed: FolderSession(store, display, data_only=True) for seed, store in stores.items()}
        self.summary = ReproductionSummary()

    def reuse(self, task: ExperimentTask) -> bool:
        return self.of[task.seed].reuse(task)

    def started(self, task: ExperimentTask) -> None:
        self.of[task.seed].started(task)

    def progress(self, task: ExperimentTask, done: float, total: int) -> None:
        self.of[task.seed].progress(task, done, total)

    def finished(self, task: ExperimentTask, result: ComputedExperiment, seconds: float) -> None:
        self.of[task.seed].finished(task, result, seconds)

    def failed(self, task: ExperimentTask, line: str, details: str) -> Sequence[ExperimentTask]:
        return self.of[task.seed].failed(task, line, details)

    @property
    def done(self) -> int:
        """The number of runs that are finished."""
        return sum(len(session.summary.reused) + len(session.summary.computed) for session in self.of.values())

    def count(self, command: str, size: str, seeds: tuple[int, ...], names: Sequence[str]) -> SurpriseCount:
        """The rates of all claims, in the order of the experiments ``names``."""
        records = [(seed, record) for seed, session in self.of.items() for record in session.summary.records]
        runs = Counter(record["id"] for _, record in records)
        order = {name: i for i, name in enumerate(names)}
        expected = {record["id"]: record["expected"] for _, record in records}
        at = {name: tuple(seed for seed, r in records if r["id"] == name and is_surprise(r)) for name in runs}
        rates = tuple(
            SurpriseRate(name, expected[name], runs[name], len(at[name]), at[name])
            for name in sorted(runs, key=lambda name: order[name.rsplit("/", 1)[0]])
        )
        failures = {
            f"{name} (seed {seed})": line
            for seed, session in self.of.items()
            for name, line in session.summary.failures.items()
        }
        stopped = 130 if self.summary.interrupted else 2 if self.summary.cannot_write else 0
        return SurpriseCount(command, size, seeds, rates, failures, stopped)


def _command(names: Sequence[str], size: str, seeds: Sequence[int]) -> str:
    """The command that makes the same count again."""
    return shlex.join(["gyrostat", "reproduce", *names, "--size", size, "--seeds", seeds_text(seeds)])


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as :func:`read_seeds` reads them.

    >>> seeds_text([1, 2, 3, 7])
    '1:3,7'
    """
    runs = groupby(enumerate(sorted(seeds)), key=lambda pair: pair[1] - pair[0])
    ends = [(block[0][1], block[-1][1]) for block in (list(pairs) for _, pairs in runs)]
    return ",".join(f"{first}:{last}" if first < last else str(first) for first, last in ends)


def _sections(folder: Path) -> dict[str, Any]:
    """The sections of ``surprises.json``, by size; none if there is no such file yet."""
    path = folder / "surprises.json"
    try:
        found = read_json(path)
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict) or not set(found) <= set(SIZES):
        raise GyrostatError(f"{str(path)!r} is not a table of surprises: delete it or choose another --out.")
    return found


def _section(count: SurpriseCount) -> dict[str, Any]:
    """A count as ``surprises.json`` has it."""
    return {
        "command": count.command,
        "seeds": list(count.seeds),
        "version": __version__,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "failures": count.failures,
        "claims": [
            {**asdict(rate), "share": rate.share, "low": rate.interval[0], "high": rate.interval[1]}
            for rate in count.rates
        ],
    }


def _show(count: SurpriseCount, folder: Path, console: Console) -> None:
    if count.too_many:
        title = f"Claims with more than {LARGEST_SHARE:.0%} surprises"
        table = Table(
            "claim", "runs", "surprises", "share", "95 % interval", "seeds", title=title, title_justify="left"
        )
        for rate in count.too_many:
            low, high = rate.interval
            words = (rate.id, f"{rate.runs}", f"{rate.surprises}", f"{rate.share:.1%}", f"{low:.1%} to {high:.1%}")
            table.add_row(*map(Text, words), Text(seeds_text(rate.at)))
        console.print(table)
    for name, line in count.failures.items():
        print_line(console, f"{name} failed: {line}")
    print_line(
        console,
        f"{len(count.rates)} claims at {len(count.seeds)} seeds: {sum(rate.surprises for rate in count.rates)} surprises in "
        f"{sum(rate.runs for rate in count.rates)} verdicts, {len(count.too_many)} claims above {LARGEST_SHARE:.0%}, "
        f"{len(count.failures)} failures.",
    )
    for name in ("surprises.json", "surprises.md", "seeds"):
        print_line(console, f"  {folder / name}")


def markdown(sections: dict[str, Any]) -> str:
    """The page of all sections: claims with a surprise one by one, the others by experiment."""
    lines = [
        "# How often a verdict surprises",
        "",
        *(_verdict(size, sections[size]["claims"]) for size in SIZES if size in sections),
        "",
        "A surprise is a verdict that is not the expected one ([what a claim means](claims.md)). This page counts them",
        f"over many seeds. A claim with a share above {LARGEST_SHARE:.0%} is wrong, too sharp, or looks at too few runs.",
        "Intervals are 95 % intervals (Wilson).",
    ]
    for size in SIZES:
        lines += _section_lines(size, sections[size]) if size in sections else []
    return "\n".join(lines) + "\n"


def _verdict(size: str, claims: Sequence[dict[str, Any]]) -> str:
    """The message of a section in a sentence.

    >>> _verdict("smoke", [{"runs": 20, "surprises": 1, "share": 0.05}, {"runs": 20, "surprises": 0, "share": 0.0}])
    'At size smoke 1 of 40 verdicts (2.50%) were not the expected ones; 1 of 2 claims surprised in more than 2% of their runs.'
    """
    verdicts, surprises = (sum(c[key] for c in claims) for key in ("runs", "surprises"))
    often = sum(c["share"] > LARGEST_SHARE for c in claims)
    return (
        f"At size {size} {surprises} of {verdicts} verdicts ({surprises / max(verdicts, 1):.2%}) were not the expected ones; "
        f"{often} of {len(claims)} claims surprised in more than {LARGEST_SHARE:.0%} of their runs."
    )


def _section_lines(size: str, section: dict[str, Any]) -> list[str]:
    claims = section["claims"]
    odd = sorted((c for c in claims if c["surprises"]), key=lambda c: -c["share"])
    verdicts, surprises = (sum(c[key] for c in claims) for key in ("runs", "surprises"))
    lines = [
        "",
        f"## Size {size}: {surprises} surprises in {verdicts} verdicts",
        "",
        f"`{section['command']}` ({section['time'][:10]}, {len(claims)} claims, {len(section['seeds'])} seeds)",
        "",
    ]
    if odd:
        lines += [
            "| claim | expected | runs | surprises | share | 95 % interval | seeds |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| `{c['id']}` | {c['expected']} | {c['runs']} | {c['surprises']} | {c['share']:.1%} "
            f"| {c['low']:.1%} to {c['high']:.1%} | {seeds_text(c['at'])} |"
            for c in odd
        ]
        lines.append("")
    if section["failures"]:
        lines += [*(f"- {name} failed: {line}" for name, line in section["failures"].items()), ""]
    calm = [c for c in claims if not c["surprises"]]
    lines += ["Claims without a surprise, by experiment:", "", "| experiment | claims | runs of each | share at most |"]
    lines.append("|---|---|---|---|")
    for name, group in groupby(calm, key=lambda c: c["id"].rsplit("/", 1)[0]):
        them = list(group)
        fewest = min(them, key=lambda c: c["runs"])
        lines.append(f"| `{name}` | {len(them)} | {fewest['runs']} | {fewest['high']:.1%} |")
    return lines
