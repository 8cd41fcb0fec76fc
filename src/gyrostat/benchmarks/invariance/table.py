"""Rows of the study as cells of tables: the same for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gyrostat.benchmarks.invariance.methods import METHODS, OURS, REFERENCE, UNTUNED, WORST
from gyrostat.benchmarks.invariance.study import Row

ABSENT = "not installed"
HEADINGS = (
    "setting",
    "error of",
    "expected",
    "least squares",
    "ours",
    "ours / least squares",
    "ours against that",
    "untuned / least squares",
    "chosen by worst / least squares",
    "best other",
    "best other / least squares",
    "ours against best other",
)
IN_TERMINAL = (0, 1, 2, 5, 6, 7, 8, 9, 10, 11)
"""The columns that fit there: errors themselves are left to the page."""


def expectation(row: Row) -> str:
    """What was said beforehand."""
    return {True: "solved", False: "not solved", None: "unknown"}[row.solvable]


def main_cells(row: Row) -> list[str]:
    """One line of the main table."""
    base, mine, other = row.methods[REFERENCE], row.methods[OURS], row.best_other
    return [
        row.setting,
        row.measure,
        expectation(row),
        error(base),
        error(mine),
        ratio(mine),
        base["ours"],
        ratio(row.methods[UNTUNED]),
        ratio(row.methods[OURS + WORST]),
        other,
        ratio(row.methods[other]),
        row.methods[other]["ours"],
    ]


def ratio_table(rows: Sequence[Row], *, worst: bool) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of all methods relative to least squares; by the rule of the worst place, those that choose."""
    names = [m.name for m in METHODS if (m.rule == "worst") == worst and m.name != REFERENCE]
    cells = [
        [row.setting, row.measure, *(ratio(row.methods.get(name)) for name in names)] for row in rows if row.methods
    ]
    return ["setting", "error of", *(name.removesuffix(WORST) for name in names)], cells


def error(entry: dict[str, Any]) -> str:
    """An error with its interval.

    >>> error({"error": 0.123456, "low": 0.1, "high": 0.2})
    '0.123 [0.1, 0.2]'
    """
    return f"{entry['error']:.3g} [{entry['low']:.3g}, {entry['high']:.3g}]"


def ratio(entry: dict[str, Any] | None) -> str:
    """A ratio to least squares with its interval; words where there is none.

    >>> ratio(None), ratio({"ratio": None}), ratio({"ratio": 0.5, "ratio_low": 0.4, "ratio_high": 0.6})
    ('not installed', 'both 0', '0.50 [0.40, 0.60]')
    """
    if entry is None:
        return ABSENT
    if entry["ratio"] is None:
        return "both 0" if not entry.get("error") else "over 0"
    return f"{short(entry['ratio'])} [{short(entry['ratio_low'])}, {short(entry['ratio_high'])}]"


def short(x: float) -> str:
    """Two decimals, or two digits where these say nothing.

    >>> short(0.987), short(0.00123), short(117.3), short(0.0)
    ('0.99', '0.0012', '117', '0')
    """
    return f"{x:.2f}" if 0.1 <= x < 10 else f"{x:.2g}" if x < 100 else f"{x:.0f}"
