"""Counts how often the verdict on each claim is not the expected one, over many seeds, and writes docs/surprises.md.

    python tools/surprises.py [PAPER | PAPER/FIGURE ...] --smoke 1:20 --standard 1:5 --out results/surprises

runs what `gyrostat reproduce` runs once for every size and seed, each in a folder of its own (`DIR/smoke-1`). What is finished
there is kept, so the same command resumes. Status 1 means that a claim surprised in more than 2 % of its runs, or that an
experiment failed.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from gyrostat.experiments.experiment import SIZES
from gyrostat.experiments.statistics import wilson
from gyrostat.reproduce.claims import is_surprise
from gyrostat.reproduce.runner import reproduce

PAGE = Path(__file__).parents[1] / "docs" / "surprises.md"
LARGEST_SHARE = 0.02
"""A claim with a larger share of surprises is wrong, too sharp, or looks at too few runs."""


class ClaimCount(NamedTuple):
    """How often a claim was judged, and at which seeds its verdict was not the expected one."""

    id: str
    expected: str
    runs: int
    at: list[int]

    @property
    def share(self) -> float:
        return len(self.at) / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        low, high = wilson(len(self.at), self.runs)
        return float(low), float(high)


class SizeCount(NamedTuple):
    """The counts of all claims at one size, the experiments that failed, and the command that counts again."""

    size: str
    seeds: range
    command: str
    claims: list[ClaimCount]
    failures: dict[str, str]

    @property
    def verdicts(self) -> int:
        return sum(claim.runs for claim in self.claims)

    @property
    def surprises(self) -> int:
        return sum(len(claim.at) for claim in self.claims)

    @property
    def too_often(self) -> list[ClaimCount]:
        return [claim for claim in self.claims if claim.share > LARGEST_SHARE]


def seed_range(text: str) -> range:
    """The seeds of ``K1:K2``, both included."""
    first, last = map(int, text.split(":"))
    if first > last:
        raise ValueError  # as above: argparse says which option is wrong
    return range(first, last + 1)


def count(names: Sequence[str], size: str, seeds: range, folder: Path, jobs: int | None) -> SizeCount:
    """Run every seed and count the surprises of each claim."""
    judged, expected, failures = defaultdict(dict), {}, {}
    for seed in seeds:
        out = folder / f"{size}-{seed}"
        summary = reproduce(names, size=size, seed=seed, out=out, jobs=jobs, console=Console(quiet=True))
        if summary.interrupted or summary.cannot_write:
            print(
                f"{summary.cannot_write or 'Interrupted'} in {out}: run the same command again to resume.",
                file=sys.stderr,
            )
            sys.exit(summary.status)
        for record in summary.records:
            judged[record["id"]][seed] = is_surprise(record)
            expected[record["id"]] = record["expected"]
        failures |= {f"{name} (seed {seed})": line for name, line in summary.failures.items()}
        surprises = [record["id"] for record in summary.records if is_surprise(record)]
        print(f"{out}: {len(summary.records)} verdicts, surprises: {', '.join(surprises) or 'none'}", flush=True)
    command = shlex.join(["python", "tools/surprises.py", *names, f"--{size}", f"{seeds[0]}:{seeds[-1]}"])
    claims = [
        ClaimCount(name, expected[name], len(by_seed), [seed for seed, odd in by_seed.items() if odd])
        for name, by_seed in judged.items()
    ]
    return SizeCount(size, seeds, command, claims, failures)


def page(counts: Sequence[SizeCount]) -> str:
    """The page: claims with a surprise one by one, the others by experiment."""
    lines = [
        "# How often a verdict surprises",
        "",
        *(
            f"At size {c.size} {c.surprises} of {c.verdicts} verdicts ({c.surprises / max(c.verdicts, 1):.2%}) were not the "
            f"expected ones; {len(c.too_often)} of {len(c.claims)} claims surprised in more than {LARGEST_SHARE:.0%} of "
            "their runs."
            for c in counts
        ),
        "",
        "A surprise is a verdict that is not the expected one ([what a claim means](claims.md)). This page counts them",
        f"over many seeds. A claim with a share above {LARGEST_SHARE:.0%} is wrong, too sharp, or looks at too few runs.",
        "Intervals are 95 % intervals (Wilson).",
    ]
    for c in counts:
        lines += [
            "",
            f"## Size {c.size}: {c.surprises} surprises in {c.verdicts} verdicts",
            "",
            f"`{c.command}` ({datetime.now(UTC):%Y-%m-%d}, {len(c.claims)} claims, {len(c.seeds)} seeds)",
            "",
        ]
        if c.surprises:
            lines += [
                "| claim | expected | runs | surprises | share | 95 % interval | seeds |",
                "|---|---|---|---|---|---|---|",
            ]
            lines += [
                f"| `{claim.id}` | {claim.expected} | {claim.runs} | {len(claim.at)} | {claim.share:.1%} "
                f"| {claim.interval[0]:.1%} to {claim.interval[1]:.1%} | {','.join(map(str, claim.at))} |"
                for claim in sorted(c.claims, key=lambda claim: -claim.share)
                if claim.at
            ]
            lines.append("")
        if c.failures:
            lines += [*(f"- {name} failed: {line}" for name, line in c.failures.items()), ""]
        lines += ["Claims without a surprise, by experiment:", ""]
        lines += ["| experiment | claims | runs of each | share at most |", "|---|---|---|---|"]
        calm = (claim for claim in c.claims if not claim.at)
        for name, group in groupby(calm, key=lambda claim: claim.id.rsplit("/", 1)[0]):
            claims = list(group)
            fewest = min(claims, key=lambda claim: claim.runs)
            lines.append(f"| `{name}` | {len(claims)} | {fewest.runs} | {fewest.interval[1]:.1%} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="PAPER | PAPER/FIGURE", help="what to run, by default every built-in paper"
    )
    for size in SIZES:
        parser.add_argument(f"--{size}", type=seed_range, metavar="K1:K2", help=f"the seeds of the size {size}")
    parser.add_argument(
        "--out", type=Path, default=Path("results/surprises"), metavar="DIR", help="the folder of all results"
    )
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE.md", help="the page to write")
    parser.add_argument("--jobs", type=int, metavar="N", help="number of worker processes, by default one per core")
    options = parser.parse_args(arguments)
    asked = {size: seeds for size in SIZES if (seeds := getattr(options, size))}
    if not asked:
        parser.error("give a size and its seeds, as in --smoke 1:20")
    counts = [count(options.names, size, seeds, options.out, options.jobs) for size, seeds in asked.items()]
    options.page.write_text(page(counts))
    print(options.page)
    return int(any(c.too_often or c.failures for c in counts))


if __name__ == "__main__":
    sys.exit(main())
