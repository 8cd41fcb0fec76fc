"""A quick comparison of the low-rank fit of a table with iterated regressions by trees, on cells that are hidden."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from gyrostat.estimators import LowRankImputer
from gyrostat.estimators.low_rank.table_cells import column_groups

MOST_ROWS, MOST_COLUMNS = 600, 40
"""The largest part of a table that is looked at, so that the check takes seconds."""
HIDDEN, TREES, ROUNDS = 0.15, 30, 4
CLEARLY = 0.97
"""Trees win if their error is below this share of that of the low-rank fit."""


class TreeCheck(NamedTuple):
    """Errors at hidden cells, in column units, of three ways to fill them."""

    cells: int
    low_rank: float
    trees: float
    means: float

    @property
    def trees_win(self) -> bool:
        """Whether trees are clearly better."""
        return self.trees < CLEARLY * self.low_rank


def compared_with_trees(table: pd.DataFrame, imputer: LowRankImputer, seed: int) -> TreeCheck:
    """Hide some cells of a part of the table and fill them by the imputer with its options, by trees, and by means.

    Indicators of one category are hidden together.
    """
    random = np.random.default_rng(seed)
    groups = column_groups(imputer.column_groups, table.shape[1])
    kept = np.isin(groups, np.unique(groups)[:MOST_COLUMNS])
    rows = np.sort(random.choice(len(table), min(len(table), MOST_ROWS), replace=False))
    X = table.to_numpy(dtype=float)[np.ix_(rows, np.flatnonzero(kept))]
    X = X[:, usable] if not (usable := np.isfinite(X).sum(axis=0) > 2).all() else X
    own = groups[kept][usable]
    hidden = (random.random((len(X), int(groups.max()) + 1)) < HIDDEN)[:, own] & np.isfinite(X)
    holes = np.where(hidden, np.nan, X)
    unit = np.nanstd(X, axis=0)
    unit[unit == 0] = 1.0
    model = clone(imputer).set_params(column_groups=own, validation=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit of the whole table has given its warnings already
        filled = {
            "low_rank": model.fit_transform(holes),
            "trees": filled_by_trees(holes, seed),
            "means": np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes),
        }
    errors = {name: float(np.sqrt(np.mean((((Y - X) / unit)[hidden]) ** 2))) for name, Y in filled.items()}
    return TreeCheck(int(hidden.sum()), **errors)


def filled_by_trees(holes: np.ndarray, seed: int) -> np.ndarray:
    """Scikit-learn's IterativeImputer with extremely randomised trees, as in missForest."""
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    trees = ExtraTreesRegressor(n_estimators=TREES, min_samples_leaf=2, max_features=0.5, random_state=seed)
    return IterativeImputer(trees, max_iter=ROUNDS, random_state=seed, keep_empty_features=True).fit_transform(holes)
