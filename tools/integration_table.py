"""The table of integrations: how each is run, what is measured, and the page it is written to.

    PYTHONPATH=tests/tools python tools/integration_table.py

runs every row in processes of its own, kills and resumes each once, and writes the table into
``docs/one-environment-per-step.md``. ``tests/torch`` checks the rows.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import one_environment_loops as loops
import trainer_loops as trainers
from gyrostat.torch import EnvironmentBatchSampler
from one_environment_loops import LABELS, Run, killed_and_resumed

PAGE = Path(__file__).parents[1] / "docs" / "one-environment-per-step.md"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
LENGTHS = {(1, 1): 27, (2, 1): 12, (1, 4): 9}
"""Optimiser steps of an epoch by processes and accumulation; alone, 6 + 8 + 11 batches in whole rounds of three."""


@dataclass(frozen=True)
class Measured:
    """What a loop did: steps, those that mixed environments, whether a killed run went on exactly, rows of the first epoch."""

    steps: int
    mixed: int
    exact: bool
    rows: int
    expected_rows: int
    total_rows: int

    def cells(self) -> list[str]:
        covered = f"{self.rows} of {self.total_rows} ({self.rows / self.total_rows:.0%})"
        return [f"{self.mixed} of {self.steps}", "yes" if self.exact else "no", covered]


@dataclass(frozen=True)
class Row:
    """One integration: its loop, its processes, workers and accumulation, and the package that it needs."""

    name: str
    loop: Callable[[Run], None]
    world: int = 1
    workers: int = 0
    accumulate: int = 1
    needs: str = "torch"

    @property
    def available(self) -> bool:
        return find_spec(self.needs) is not None

    def measure(self, folder: Path) -> Measured:
        kill_at = LENGTHS.get((self.world, self.accumulate), 9) + 4  # in epoch 1, one step after a checkpoint
        options = {"world": self.world, "workers": self.workers, "accumulate": self.accumulate}
        found = killed_and_resumed(self.loop, folder, kill_at=kill_at, **options)
        audit, first = found.undisturbed.audit(), found.undisturbed.rows_of_first_epoch()
        if audit["mixed"] != found.undisturbed.mixed_steps() or found.resumed.notes() <= audit["steps"]:
            raise RuntimeError(f"{self.name}: the audit and the rows disagree, or nothing was killed")
        expected, total = self.expected()
        return Measured(audit["steps"], audit["mixed"], found.exact(), len(first), expected, total)

    def expected(self) -> tuple[int, int]:
        """The rows that an epoch should cover by ``coverage()``, and all rows."""
        if self.loop is loops.stream:
            whole = loops.batch_stream(loops.BATCH * self.world)
            list(whole)
            return sum(part["used"] for part in whole.counts.values()), len(LABELS)
        options = {
            "order": "shuffled",
            "seed": loops.SEED,
            "hold": self.accumulate,
            "rank": 0,
            "num_replicas": self.world,
        }
        subset = self.loop is loops.subset
        sampler = loops.subset_sampler() if subset else EnvironmentBatchSampler(LABELS, loops.BATCH, **options)
        parts = sampler.coverage(0).parts.values()
        return sum(part.rows_seen for part in parts), sum(part.rows for part in parts)


LIGHT = [
    Row("plain loop", loops.plain),
    Row("plain loop, 2 workers", loops.plain, workers=2),
    Row("DDP, 2 gloo processes", loops.plain, world=2),
    Row("DDP, 2 gloo processes, 2 workers each", loops.plain, world=2, workers=2),
    Row("accumulation of 4, hold=4", loops.plain, accumulate=4),
    Row("part of random_split of a Subset", loops.subset),
    Row("stream", loops.stream),
    Row("stream, 2 gloo processes, 2 workers each", loops.stream, world=2, workers=2),
]
HEAVY = [
    Row("StatefulDataLoader", trainers.stateful, needs="torchdata"),
    Row("StatefulDataLoader, 2 workers", trainers.stateful, workers=2, needs="torchdata"),
    Row("accelerate", trainers.accelerated, needs="accelerate"),
    Row("accelerate, 2 gloo processes", trainers.accelerated, world=2, needs="accelerate"),
    Row("Lightning", trainers.lightning, needs="lightning"),
    Row("Lightning, 2 workers", trainers.lightning, workers=2, needs="lightning"),
    Row("Lightning, DDP by default, 2 gloo processes", trainers.lightning, world=2, needs="lightning"),
    Row("Hugging Face Trainer", trainers.hugging_face, needs="transformers"),
    Row("Hugging Face Trainer, 2 gloo processes", trainers.hugging_face, world=2, needs="transformers"),
    Row("Hugging Face Trainer, accumulation of 4, hold=4", trainers.hugging_face, accumulate=4, needs="transformers"),
    Row("Grain", trainers.grain, needs="grain"),
]

TRAINERS = ["accelerate", "lightning", "transformers"]
"""What takes seconds to import."""


def main() -> None:
    if missing := sorted({row.needs for row in HEAVY if not row.available}):
        sys.exit(f"not installed: {', '.join(missing)}; run make test-integrations first, which installs them")
    loops.PRELOADED += TRAINERS
    lines = [
        "| integration | steps that mixed environments | resume exact after `kill -9` | rows covered by an epoch |"
    ]
    lines.append("|---|---|---|---|")
    for row in [*LIGHT, *HEAVY]:
        print(row.name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            lines.append(f"| {' | '.join([row.name, *row.measure(Path(folder)).cells()])} |")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n\n" + END + after)


if __name__ == "__main__":
    main()
