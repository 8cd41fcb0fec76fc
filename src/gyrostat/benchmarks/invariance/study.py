"""The study: every method on every simulation and on the real data, as rows that a page, a picture and records are made of."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from gyrostat.benchmarks.invariance.declare import MEASURES, Simulation
from gyrostat.benchmarks.invariance.intervals import over_repetitions, over_rows, summary
from gyrostat.benchmarks.invariance.methods import BY_MEAN, METHODS, OWN, REFERENCE, UNTUNED, Method, fitted
from gyrostat.benchmarks.invariance.real import RealData


@dataclass(frozen=True)
class Row:
    """One setting and one way to measure its error: all methods with their intervals (see ``intervals.summary``).

    ``solvable`` is None for real data, where nobody knows; ``statuses`` counts what our estimator, untuned, said of itself;
    ``best_other`` is the peer that did best in the first error of the setting.
    """

    setting: str
    measure: str
    source: str
    text: str
    solvable: bool | None
    why: str
    sample: str
    methods: dict[str, dict[str, Any]]
    best_other: str
    statuses: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON knows it."""
        return asdict(self)


def simulated(
    simulation: Simulation,
    repetitions: int,
    *,
    methods: Sequence[Method] = METHODS,
    rows: int | None = None,
    seed: int = 0,
) -> list[Row]:
    """A row for each measure of a simulation; repetition r is the same whatever else is run."""
    used = [method.name for method in methods if method.installed]
    name = zlib.crc32(simulation.name.encode())
    errors = np.empty((len(simulation.measures), repetitions, len(used)))
    statuses: Counter[str] = Counter()
    for r in range(repetitions):
        draw = simulation.draw(np.random.default_rng([seed, name, r]), rows or simulation.rows)
        lines = fitted(methods, draw.train)
        for i, measure in enumerate(simulation.measures):
            errors[i, r] = [MEASURES[measure](lines[method], draw) for method in used]
        statuses.update(lines[method].status for method in used if method == UNTUNED)
    sample = f"{repetitions} repetitions, {len(draw.train)} environments of {rows or simulation.rows} rows"
    about = {"source": simulation.source, "text": simulation.text, "why": simulation.why, "sample": sample}
    rng = np.random.default_rng([seed, name])
    found = [summary(used, e.mean(axis=0), over_repetitions(e, rng)) for e in errors]
    return _rows(simulation.name, simulation.measures, found, solvable=simulation.solvable, statuses=statuses, **about)


def on_real_data(
    data: RealData, *, methods: Sequence[Method] = METHODS, resamples: int = 500, seed: int = 0
) -> list[Row]:
    """Two rows: the mean and the worst squared error over environments left out one at a time.

    Errors are in units of the variance of the response over all rows. The intervals come from resampling the rows of the
    environment left out, the same for all methods: what other rows to learn from would have changed is not in them.
    """
    places = data.environments()
    used = [method.name for method in methods if method.installed]
    variance = np.concatenate([y for _, y in places.values()]).var()
    errors, statuses = [], Counter[str]()
    for left, (X, y) in places.items():
        lines = fitted(methods, [place for label, place in places.items() if label != left])
        errors.append(np.stack([(y - lines[name](X)) ** 2 for name in used], axis=1) / variance)
        statuses.update(lines[name].status for name in used if name == UNTUNED)
    means = np.stack([e.mean(axis=0) for e in errors])
    resampled = over_rows(errors, np.random.default_rng([seed, zlib.crc32(data.name.encode())]), resamples)
    sample = "rows: " + ", ".join(f"{label} {len(y)}" for label, (_, y) in places.items())
    about = {"source": ", ".join(data.packages), "text": data.text, "why": data.why, "sample": sample}
    found = [summary(used, judge(means, axis=0), judge(resampled, axis=1)) for judge in (np.mean, np.max)]
    return _rows(data.name, ("mean place", "worst place"), found, solvable=None, statuses=statuses, **about)


def _rows(name: str, measures: Sequence[str], found: list[dict], *, statuses: Counter[str], **about: Any) -> list[Row]:
    # By the first error, the answer itself: in non-causal weights a constant would be best.
    best = best_other(found[0])
    return [
        Row(name, measure, methods=entries, best_other=best, statuses=dict(statuses), **about)
        for measure, entries in zip(measures, found, strict=True)
    ]


def best_other(entries: dict[str, dict[str, Any]]) -> str:
    """The peer with the least error. It is picked afterwards: what chance does there is in its favour, not in ours."""
    others = [m.name for m in BY_MEAN if m.name in entries and m.name not in (REFERENCE, *OWN)]
    return min(others, key=lambda name: entries[name]["error"])
