"""What the page ``docs/invariance.md`` shows, made from the rows of a study: counts, tables, lists and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.invariance.study import SAME, InvarianceRow
from benchmarks.invariance.suite_methods import BY_MEAN, METHODS, OURS, OWN, PRINCIPAL, UNTUNED, WORST
from benchmarks.records import grid
from gyrostat.estimators.comparison.compared_methods import REFERENCE
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel
from gyrostat.tables.examples import REAL_TABLES

PEERS = tuple(m.name for m in BY_MEAN if m.name not in (REFERENCE, *OWN))


def values(rows: Sequence[InvarianceRow], notes: Sequence[str] = ()) -> dict[str, Any]:
    """Everything by the names of the page's marks."""
    against = [row.methods[REFERENCE]["ours"] for row in rows]
    counts = {
        "least-squares": against,
        "meant": [verdict for row, verdict in zip(rows, against, strict=True) if row.solvable],
        "best": [row.methods[row.best_other]["ours"] for row in rows],
        "untuned": [_by_interval(row.methods[UNTUNED]) for row in rows],
    }
    return {
        **{f"{name}-{word}": words.count(word) for name, words in counts.items() for word in ("wins", "ties", "loses")},
        **{f"{name}-comparisons": len(counts[name]) for name in ("least-squares", "meant")},
        "ours": main_table(rows),
        "notes": list(notes),
        **_explained(rows),
        "beaten": _beaten(rows),
        "ratios": grid(*ratio_table(rows, worst=False)),
        "ratios-by-worst": grid(*ratio_table(rows, worst=True)),
        "settings": _settings(rows),
    }


def _by_interval(entry: dict[str, Any]) -> str:
    if entry["ratio"] is None or abs(entry["ratio"] - 1) < SAME or entry["ratio_low"] <= 1 <= entry["ratio_high"]:
        return "ties"
    return "wins" if entry["ratio"] < 1 else "loses"


# --- tables, for the page and for the terminal -----------------------------------------------------------------------------

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
"""The columns that fit into a terminal; the errors themselves are only on the page."""


def main_table(rows: Sequence[InvarianceRow]) -> dict[str, Any]:
    """One line for each setting and error; real data that are not installed say so."""
    present = {row.setting for row in rows}
    absent = [[data.name, *[ABSENT] * (len(HEADINGS) - 1)] for data in REAL_TABLES if data.name not in present]
    return grid(HEADINGS, [main_cells(row) for row in rows] + absent)


def main_cells(row: InvarianceRow) -> list[str]:
    """One line of the main table."""
    base, mine, other = row.methods[REFERENCE], row.methods[OURS], row.best_other
    return [
        row.setting,
        row.measure,
        {True: "solved", False: "not solved", None: "unknown"}[row.solvable],
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


def ratio_table(rows: Sequence[InvarianceRow], *, worst: bool) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: all methods relative to least squares; with ``worst``, those that choose by the worst error."""
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
    """Two decimals, or two digits where decimals would not help.

    >>> short(0.987), short(0.00123), short(117.3), short(0.0)
    ('0.99', '0.0012', '117', '0')
    """
    return f"{x:.2f}" if 0.1 <= x < 10 else f"{x:.2g}" if x < 100 else f"{x:.0f}"


# --- lists -----------------------------------------------------------------------------------------------------------------


def _explained(rows: Sequence[InvarianceRow]) -> dict[str, str]:
    """The verdicts on each setting that the page has to explain: not won throughout, or of real data."""
    verdicts = {}
    for setting in dict.fromkeys(row.setting for row in rows):
        own = [row for row in rows if row.setting == setting]
        words = [row.methods[REFERENCE]["ours"] for row in own]
        if set(words) != {"wins"} or own[0].solvable is None:
            odd = "; **not as expected**" if own[0].solvable and words[0] != "wins" else ""
            verdicts[f"against-{setting}"] = "; ".join(map(_verdict_words, own)) + odd
    return verdicts


def _verdict_words(row: InvarianceRow) -> str:
    """The verdict; on real data also against fixed effects, which tell a gain from levels and one from effects apart."""
    words = f"{row.measure}: {row.methods[REFERENCE]['ours']}"
    fixed = row.methods.get("fixed effects")
    return f"{words}, against fixed effects {fixed['ours']}" if row.solvable is None and fixed else words


def _beaten(rows: Sequence[InvarianceRow]) -> list[str]:
    """For each error, the methods with less of it, the best first, with our error as a multiple of theirs."""
    lines = []
    for row in rows:
        mine = row.methods[OURS]["error"]
        better = [
            (row.methods[name]["error"], name) for name in PEERS if row.methods.get(name, {}).get("ours") == "loses"
        ]
        words = [f"{name} ({short(mine / its) + ' times' if its else 'no error'})" for its, name in sorted(better)]
        lines += [f"{row.setting}, {row.measure}: {', '.join(words)}."] if words else []
    return lines


def _settings(rows: Sequence[InvarianceRow]) -> list[str]:
    """What was drawn or read, and the statuses of our untuned estimator."""
    lines = []
    for row in {row.setting: row for row in rows}.values():
        states = ", ".join(f"{status} {count}" for status, count in sorted(row.statuses.items()))
        lines.append(f"**{row.setting}** ({row.source}; {row.sample}). {row.text} Status of ours: {states or 'none'}.")
    return lines


# --- the picture -----------------------------------------------------------------------------------------------------------

SHOWN = (OURS, UNTUNED, PRINCIPAL, "IRMv1", "V-REx", "GroupDRO", "ANDMask")
"""As many as there are colours; ridge, fixed effects, anchor regression and ICP are in the tables."""
FLOOR = 1e-3
"""Ratios below this, including zero, are drawn here."""

PICTURE_GROUPS: tuple[tuple[str, Callable[[InvarianceRow], bool]], ...] = (
    ("Effects that vary, and EILLS", lambda row: row.setting in ("diagonal", "flips", "one-sign", "eills")),
    ("Linear unit tests", lambda row: row.setting.startswith("example-")),
    ("Real data, one environment left out", lambda row: row.solvable is None),
    ("IRM 5.1: causal weights", lambda row: row.setting.startswith("irm-") and row.measure == "causal weights"),
    ("IRM 5.1: non-causal weights", lambda row: row.setting.startswith("irm-") and row.measure != "causal weights"),
)


def picture(rows: Sequence[InvarianceRow]) -> Figure:
    """Every error relative to least squares, as dots with intervals; a panel for each group of settings with a ratio."""
    panels = [_panel(title, [row for row in rows if belongs(row)]) for title, belongs in PICTURE_GROUPS]
    return Figure(
        title="Errors relative to pooled least squares",
        panels=[panel for panel in panels if panel is not None],
        note=(
            "Left of the line is better than least squares. Intervals of 95 percent (bootstrap over repetitions, or over rows "
            f"of the environment left out). Ratios below {FLOOR:g}, including zero, are drawn there. Settings in which least "
            "squares makes no error are left out. Hyper-parameters are chosen by the mean error in training environments "
            "left out."
        ),
    )


def _panel(title: str, rows: Sequence[InvarianceRow]) -> Panel | None:
    shown = [row for row in rows if row.methods[OURS]["ratio"] is not None]
    if not shown:
        return None
    series: list[Any] = [_dots(shown, name, colour) for colour, name in enumerate(SHOWN)]
    series = [dots for dots in series if dots.categories]
    series.append(Marker(1.0, "least squares", axis="x"))
    return Panel(
        title=title, xlabel="error / error of least squares", ylabel="", series=series, xscale="log", height=2.0
    )


def _dots(rows: Sequence[InvarianceRow], name: str, colour: int) -> Dots:
    have = [row for row in rows if name in row.methods]
    values, low, high = (
        [max(row.methods[name][key], FLOOR) for row in have] for key in ("ratio", "ratio_low", "ratio_high")
    )
    return Dots(
        [_label(row) for row in have], np.array(values), name, low=np.array(low), high=np.array(high), colour=colour
    )


def _label(row: InvarianceRow) -> str:
    plain = row.setting.startswith(("irm-", "example-"))
    word = row.measure.removesuffix(" environments").removesuffix(" place")
    return row.setting if plain else f"{row.setting}\n{word}"
