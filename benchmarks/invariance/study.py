"""The study: every method on every simulation and on the real data, with bootstrap intervals and a verdict on ours.

A row of the study is one setting and one measure of error; the page, its picture and the records are made from rows.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from benchmarks.invariance.simulations import MEASURES, Simulation
from benchmarks.invariance.suite_methods import BY_MEAN, METHODS, OURS, OWN, UNTUNED
from gyrostat.estimators.comparison.compared_methods import REFERENCE, Method, fitted
from gyrostat.estimators.comparison.leave_one_out import left_out, over_rows
from gyrostat.tables.examples import RealTable


@dataclass(frozen=True)
class InvarianceRow:
    """One setting and one measure of its error: all methods with their intervals (see :func:`summary`).

    ``solvable`` is None for real data, where nobody knows; ``statuses`` counts the statuses that our untuned estimator
    reported; ``best_other`` is the peer with the least value of the first measure of the setting.
    """

    setting: str
    measure: str
    source: str
    text: str
    solvable: bool | None
    sample: str
    methods: dict[str, dict[str, Any]]
    best_other: str
    statuses: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The row in a form that JSON can hold."""
        return asdict(self)


def simulated(
    simulation: Simulation,
    repetitions: int,
    *,
    methods: Sequence[Method] = METHODS,
    rows: int | None = None,
    seed: int = 0,
) -> list[InvarianceRow]:
    """A row for each measure of a simulation; repetition r does not depend on what else is run."""
    used = [method.name for method in methods]
    name = zlib.crc32(simulation.name.encode())
    errors = np.empty((len(simulation.measures), repetitions, len(used)))
    statuses: Counter[str] = Counter()
    for r in range(repetitions):
        draw = simulation.draw(np.random.default_rng([seed, name, r]), rows or simulation.rows)
        predictors = fitted(methods, draw.train)
        for i, measure in enumerate(simulation.measures):
            errors[i, r] = [MEASURES[measure](predictors[method], draw) for method in used]
        statuses.update(predictors[method].status for method in used if method == UNTUNED)
    sample = f"{repetitions} repetitions, {len(draw.train)} environments of {rows or simulation.rows} rows"
    about = {"source": simulation.source, "text": simulation.text, "sample": sample}
    rng = np.random.default_rng([seed, name])
    summaries = [summary(used, e.mean(axis=0), over_repetitions(e, rng)) for e in errors]
    return _rows(
        simulation.name, simulation.measures, summaries, solvable=simulation.solvable, statuses=statuses, **about
    )


def on_real_data(
    data: RealTable, *, methods: Sequence[Method] = METHODS, resamples: int = 500, seed: int = 0
) -> list[InvarianceRow]:
    """Two rows: the mean and the worst squared error over environments left out one at a time.

    Errors are in units of the variance of the response over all rows. The intervals come from resampling the rows of the
    environment left out, the same rows for all methods; the variation from other training rows is not in them.
    """
    environments = data.environments()
    used = [method.name for method in methods]
    variance = np.concatenate([y for _, y in environments.values()]).var()
    found = left_out(list(environments.values()), methods)
    errors = [squares / variance for squares in found.squares]
    statuses = Counter(said[used.index(UNTUNED)] for said in found.statuses if UNTUNED in used)
    means = np.stack([e.mean(axis=0) for e in errors])
    resampled = over_rows(errors, np.random.default_rng([seed, zlib.crc32(data.name.encode())]), resamples)
    sample = "rows: " + ", ".join(f"{label} {len(y)}" for label, (_, y) in environments.items())
    about = {"source": ", ".join(data.packages), "text": data.text, "sample": sample}
    summaries = [summary(used, judge(means, axis=0), judge(resampled, axis=1)) for judge in (np.mean, np.max)]
    return _rows(
        data.name, ("mean environment", "worst environment"), summaries, solvable=None, statuses=statuses, **about
    )


def _rows(
    name: str, measures: Sequence[str], summaries: list[dict], *, statuses: Counter[str], **about: Any
) -> list[InvarianceRow]:
    # By the first measure, which is the error of the answer itself: in non-causal weights a constant would be best.
    best = best_other(summaries[0])
    return [
        InvarianceRow(name, measure, methods=entries, best_other=best, statuses=dict(statuses), **about)
        for measure, entries in zip(measures, summaries, strict=True)
    ]


def best_other(entries: dict[str, dict[str, Any]]) -> str:
    """The peer with the least error. It is picked afterwards, so chance works in its favour, not in ours."""
    others = [m.name for m in BY_MEAN if m.name in entries and m.name not in (REFERENCE, *OWN)]
    return min(others, key=lambda name: entries[name]["error"])


# --- intervals by the bootstrap --------------------------------------------------------------------------------------------

RESAMPLES = 2000
COVER = (0.025, 0.975)
SAME = 0.01
"""Errors that differ by less than this share of the other's are a tie, however certain the difference is."""


def over_repetitions(errors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Resampled means of the errors (repetitions, methods), with the same repetitions for all methods."""
    picks = rng.integers(len(errors), size=(RESAMPLES, len(errors)))
    return errors[picks].mean(axis=1)


def summary(names: Sequence[str], means: np.ndarray, resampled: np.ndarray) -> dict[str, dict[str, Any]]:
    """For each method: its error, the ratio to least squares, both with intervals, and the verdict on ours against it.

    The verdict is under ``ours`` (see :func:`verdict`). Ratios are None where least squares makes no error.

    >>> entries = summary(["least squares", "ours"], np.array([2.0, 1.0]), np.array([[2.0, 1.0], [2.2, 1.1]]))
    >>> entries["ours"]["ratio"], entries["least squares"]["ours"]
    (0.5, 'wins')
    """
    base, mine = names.index(REFERENCE), names.index(OURS)
    entries = {}
    for j, name in enumerate(names):
        low, high = np.quantile(resampled[:, j], COVER)
        entry: dict[str, Any] = {"error": float(means[j]), "low": float(low), "high": float(high)}
        entry |= {"ratio": None, "ratio_low": None, "ratio_high": None}
        if (resampled[:, base] > 0).all() and means[base] > 0:
            low, high = np.quantile(resampled[:, j] / resampled[:, base], COVER)
            entry |= {"ratio": float(means[j] / means[base]), "ratio_low": float(low), "ratio_high": float(high)}
        entry["ours"] = verdict(means[mine], means[j], resampled[:, mine] - resampled[:, j])
        entries[name] = entry
    return entries


def verdict(ours: float, other: float, differences: np.ndarray) -> str:
    """The verdict from two errors and resampled differences (ours minus the other): "wins", "ties" or "loses".

    A tie is an interval of differences with zero in it, or errors that are the same to one percent.

    >>> verdict(1.0, 2.0, np.array([-1.5, -0.5])), verdict(1.0, 2.0, np.array([-3.0, 1.0]))
    ('wins', 'ties')
    >>> verdict(1.2, 1.0, np.array([0.1, 0.3])), verdict(1.002, 1.0, np.array([0.001, 0.003]))
    ('loses', 'ties')
    """
    low, high = np.quantile(differences, COVER)
    if low <= 0 <= high or abs(ours - other) < SAME * other:
        return "ties"
    return "wins" if high < 0 else "loses"
