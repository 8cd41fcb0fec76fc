"""A fitted table ``mean + row offset + column offset + F G^T * scale``: its cells, and F of rows that may be new."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.errors import GyrostatError
from gyrostat.estimators.low_rank.solver import Baseline, Completion, Factors, Observed
from gyrostat.estimators.low_rank.solver.observed import balanced
from gyrostat.estimators.low_rank.solver.ridge import Ridge, solved

MOST_CELLS = 200_000_000
"""The largest table that is ever written out in full."""


class LowRankTable(NamedTuple):
    """Offsets and scales, the number of every row's environment, F and G, and the ridge of rows that come in."""

    base: Baseline
    codes: np.ndarray
    factors: Factors
    singular_values: np.ndarray
    ridge: Ridge

    @classmethod
    def of(cls, found: Completion, base: Baseline, seen: Observed, codes: np.ndarray) -> LowRankTable:
        """What was found, with F fitted to all rows once more (an exact fit is left as it is)."""
        factors, s = balanced(found.factors)
        table = cls(base, codes, factors, s, Ridge(found.ridge, found.depth))
        return table if found.exact else table._replace(factors=Factors(table.rows(seen, codes), factors.right))

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Cells of the table fitted."""
        low = self.factors.at(rows, columns)
        return self.base.at(rows, columns, self.codes) + low * self.base.spread(rows, columns)

    def rows(self, seen: Observed, codes: np.ndarray) -> np.ndarray:
        """F of rows that may be new: ridge regressions on G."""
        if not len(self.singular_values):
            return np.zeros((seen.shape[0], 0))
        base = self.base.for_rows(seen, codes)
        w = np.maximum(self.ridge.weights(self.singular_values), 1e-9 * self.singular_values.max())
        return solved(base.standard(seen, codes), self.factors.right, w, transposed=False)

    def of_new(self, given: Observed, rows: np.ndarray, columns: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Single cells of rows that may be new, from what is given of those rows; nothing is written out."""
        base = self.base.for_rows(given, codes)
        low = Factors(self.rows(given, codes), self.factors.right).at(rows, columns)
        return base.at(rows, columns, codes) + low * base.spread(rows, columns)

    def written_out(self, seen: Observed, codes: np.ndarray) -> np.ndarray:
        """Every cell of these rows."""
        n, m = seen.shape
        if n * m > MOST_CELLS:
            raise GyrostatError(f"X has {n} x {m} cells, too many to write out: use predict(rows, columns).")
        base = self.base.for_rows(seen, codes)
        offsets = base.mean + base.rows[:, None] + base.columns[codes]
        return offsets + self.rows(seen, codes) @ self.factors.right.T * base.scale * base.row_scale[:, None]
