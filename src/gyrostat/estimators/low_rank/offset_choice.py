"""With offsets or without, by the error at held-out cells: offsets of a model that is judged know nothing of those cells."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver import Baseline, Completion, Observed, Options, baseline, refitted, searched
from gyrostat.estimators.low_rank.solver.path import root_mean_square
from gyrostat.estimators.low_rank.solver.search import LARGE, rounded

PLAIN = 100
"""Held-out cells from which on they may make it plain whether offsets are needed, before anything is fitted."""
USELESS, NEEDED = 0.95, 0.7
"""The error with offsets alone, as a share of that without: above the first they are left out, below the second kept."""


class Choice(NamedTuple):
    """How to search: the number of every row's environment, the solver's options, whether columns and rows are scaled."""

    codes: np.ndarray
    options: Options
    scale_columns: bool
    scale_rows: bool
    seed: int
    verbose: bool

    def best(self, seen: Observed, held: np.ndarray, offsets: bool | None) -> tuple[Completion, Baseline]:
        """The best model on the cells held out, fitted to all, and its offsets; ``offsets`` None asks for a choice."""
        train = seen.take(~held)
        tried: list[tuple[float, int, Completion, Baseline, bool]] = []
        for with_offsets in self._choices(seen, held, train) if offsets is None else (bool(offsets),):
            base = self.base(train, with_offsets)
            found = self._searched(base.standard(seen, self.codes), held, with_offsets)
            tried.append((_judged(found, base), len(tried), found, base, with_offsets))
            if found.exact or found.interrupted:
                break
        *_, found, base, with_offsets = min(tried, key=lambda one: one[:2]) if not found.exact else tried[-1]
        if found.exact or found.interrupted:
            return found, base
        whole = self.base(seen, with_offsets)
        return refitted(whole.standard(seen, self.codes), found), whole

    def base(self, seen: Observed, offsets: bool) -> Baseline:
        """Offsets and scales from these cells."""
        return baseline(seen, self.codes, offsets=offsets, scale_columns=self.scale_columns, scale_rows=self.scale_rows)

    def _searched(self, standard: Observed, held: np.ndarray, with_offsets: bool) -> Completion:
        # Offsets that are estimated leave nothing exact to find.
        auto = with_offsets and self.options.exact == "auto"
        options = self.options._replace(exact=False) if auto else self.options
        return searched(standard, held, options, np.random.RandomState(self.seed), _say if self.verbose else _silent)

    def _choices(self, seen: Observed, held: np.ndarray, train: Observed) -> tuple[bool, ...]:
        out = seen.take(held)
        bases = (self.base(train, offsets) for offsets in (False, True))
        without, with_them = (root_mean_square(out.values - b.at(out.rows, out.columns, self.codes)) for b in bases)
        if len(out) >= PLAIN and with_them > USELESS * without:
            return (False,)  # they would only add to the rank: what is taken off is a matrix of rank two
        if len(out) >= PLAIN and (len(seen) > LARGE or (with_them < NEEDED * without and rounded(seen))):
            return (True,)
        return False, True


def _judged(found: Completion, base: Baseline) -> float:
    """The validation error in the units of the data; any number beats NaN."""
    value = found.validation_error * base.unit
    return np.inf if np.isnan(value) else value


def _say(what: str, stage: Any) -> None:
    text = (
        f"{what}: depth {stage.depth:g}, ridge {stage.ridge:.3g}, rank {stage.rank}, error {stage.validation_error:.4g}"
    )
    print(text, file=sys.stderr, flush=True)


def _silent(what: str, stage: Any) -> None:
    pass
