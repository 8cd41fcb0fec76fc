"""Other methods for missing cells: each is tuned on the same validation cells and then fitted to all observed cells."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.completion.problems import HiddenCells
from gyrostat.estimators.low_rank.solver.observed_entries import Factors, ObservedEntries, entries_svd, truncated_svd
from gyrostat.estimators.low_rank.solver.ridge_path import ridge_regressions

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]
RANKS = (5, 1, 2, 3, 8, 10, 15)
EITHER = (True, False)


class Peer(NamedTuple):
    """A method: how to fit it with one setting, which settings to try, what it needs, and the largest table it is run on.

    ``settings`` lists the values of every hyper-parameter, the middle one first: they are chosen one after the other. With
    ``path`` the settings are decreasing ridges, each fit starts from the one before, and the path ends when the error rises.
    """

    fit: Callable[..., Any]
    settings: tuple[tuple, ...] = ()
    package: str = "numpy"
    most_cells: float = np.inf
    knows_rank: bool = False
    path: bool = False

    def available(self) -> bool:
        """Whether its package is installed."""
        return importlib.util.find_spec(self.package) is not None


def tuned(peer: Peer, problem: HiddenCells) -> np.ndarray:
    """Predictions of the test cells with the settings that are best on the validation cells, fitted to all observed cells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that do not converge warn at every setting
        if peer.path:
            return _along_path(peer, problem)(problem.test.rows, problem.test.columns)
        chosen = [problem.rank] if peer.knows_rank else [values[0] for values in peer.settings]
        least = np.inf if peer.knows_rank else _tried(peer, problem, chosen)
        for number, values in enumerate(peer.settings):
            for value in values[1:]:
                trial = [*chosen[:number], value, *chosen[number + 1 :]]
                error = _tried(peer, problem, trial)
                if error < least:
                    chosen, least = trial, error
        return _predicted(peer, problem.seen, chosen, problem.test)


def _tried(peer: Peer, problem: HiddenCells, setting: list) -> float:
    return _error(_predicted(peer, problem.train, setting, problem.valid), problem.valid.values)


def _predicted(peer: Peer, seen: ObservedEntries, setting: list, at: ObservedEntries) -> np.ndarray:
    try:
        return peer.fit(seen, *setting)(at.rows, at.columns)
    except np.linalg.LinAlgError:  # pymanopt breaks down on some settings: counted as the largest error
        return np.full(len(at), np.nan)


def _along_path(peer: Peer, problem: HiddenCells, patience: int = 3) -> Predict:
    """Follow the path until ``patience`` fits in a row are worse than the best, then fit all cells along it up to the best."""
    (shares,), valid = peer.settings, problem.valid
    start, errors = None, []
    for share in shares:
        start = peer.fit(problem.train, share, start)
        errors.append(_error(start(valid.rows, valid.columns), valid.values))
        if len(errors) - 1 - int(np.argmin(errors)) >= patience:
            break
    last = None
    for share in shares[: int(np.argmin(errors)) + 1]:
        last = peer.fit(problem.seen, share, last)
    assert last is not None
    return last


def _error(predicted: np.ndarray, truth: np.ndarray) -> float:
    wrong = float(np.sqrt(np.mean((predicted - truth) ** 2)))
    return wrong if np.isfinite(wrong) else np.inf


def _table(seen: ObservedEntries, centre: float = 0.0) -> np.ndarray:
    X = np.full(seen.shape, np.nan)
    X[seen.rows, seen.columns] = seen.values - centre
    return X


class SoftImpute(NamedTuple):
    """The state of soft-impute: it predicts, and the fit with the next ridge starts from it."""

    mean: float
    largest: float
    factors: Factors

    def __call__(self, rows: np.ndarray, columns: np.ndarray, /) -> np.ndarray:
        """Predictions of single cells."""
        return self.mean + self.factors.at(rows, columns)


def soft_impute(seen: ObservedEntries, share: float, start: SoftImpute | None = None, limit: int = 30) -> SoftImpute:
    """Mazumder, Hastie, Tibshirani 2010: ``X <- shrunken SVD of (observed + X elsewhere)``, at this share of the largest ridge.

    The only offset is one overall mean; the SVD is that of a sparse plus a low-rank matrix.
    """
    if start is None:
        mean = float(seen.values.mean())
        nothing = Factors(np.zeros((seen.shape[0], 1)), np.zeros((seen.shape[1], 1)))
        start = SoftImpute(mean, float(entries_svd(seen, seen.values - mean, 1)[1][0]), nothing)
    y, factors, ridge = seen.values - start.mean, start.factors, share * start.largest
    fitted = factors.at(seen.rows, seen.columns)
    for _ in range(limit):
        S, St, (F, G) = seen.matrix(y - fitted), seen.transposed(y - fitted), factors
        count = min(factors.rank + 5, 60, *seen.shape)
        U, s, V = truncated_svd(
            lambda x, S=S, F=F, G=G: S @ x + F @ (G.T @ x),
            lambda x, S=St, F=F, G=G: S @ x + G @ (F.T @ x),
            seen.shape,
            count,
            tolerance=1e-3,
        )
        kept = s > ridge
        factors = Factors(U[:, kept] * (s[kept] - ridge), V[:, kept])
        before, fitted = fitted, factors.at(seen.rows, seen.columns)
        if np.sum((fitted - before) ** 2) < 1e-6 * np.sum(y**2):
            break
    return start._replace(factors=factors)


def least_squares(seen: ObservedEntries, rank: int, sweeps: int = 200) -> Predict:
    """Alternating least squares that is told the rank: an upper limit of what can be reached."""
    F, s, V = entries_svd(seen, seen.values, rank)
    G, small = V * np.sqrt(s / seen.share), np.full(rank, 1e-6)
    for _ in range(sweeps):
        F = ridge_regressions(seen, G, small, transposed=False)
        G = ridge_regressions(seen, F, small, transposed=True)
    return Factors(F, G).at


def cmfrec(seen: ObservedEntries, rank: int, ridge: float, offsets: bool) -> Predict:
    """cmfrec's ALS, with a mean and user and item biases or without."""
    import pandas as pd
    from cmfrec import CMF

    model = CMF(
        k=rank,
        lambda_=ridge,
        niter=30,
        nthreads=1,
        verbose=False,
        use_cg=False,
        center=offsets,
        user_bias=offsets,
        item_bias=offsets,
    )
    model.fit(pd.DataFrame({"UserId": seen.rows, "ItemId": seen.columns, "Rating": seen.values}))
    return lambda i, j: np.nan_to_num(model.predict(i, j), nan=float(seen.values.mean()))


def tensorly(seen: ObservedEntries, rank: int, offset: bool) -> Predict:
    """Tensorly's PARAFAC of a matrix with a mask, about the mean or about zero."""
    import tensorly as tl
    from tensorly.decomposition import parafac

    mean = float(seen.values.mean()) if offset else 0.0
    X = _table(seen, mean)
    factors = parafac(np.nan_to_num(X), rank=rank, mask=~np.isnan(X), init="svd", n_iter_max=500, tol=1e-8)
    A = tl.cp_to_tensor(factors)
    return lambda i, j: mean + A[i, j]


def pymanopt(seen: ObservedEntries, rank: int, offset: bool) -> Predict:
    """Conjugate gradients on the manifold of matrices of this rank, about the mean or about zero."""
    import jax

    double = jax.config.read("jax_enable_x64")
    import pymanopt as pm

    jax.config.update("jax_enable_x64", double)  # importing pymanopt turns on double precision for the whole process

    mean = float(seen.values.mean()) if offset else 0.0
    y, manifold = seen.values - mean, pm.manifolds.FixedRankEmbedded(*seen.shape, rank)

    def left(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> np.ndarray:
        return Factors(u * s, vt.T).at(seen.rows, seen.columns) - y

    @pm.function.numpy(manifold)
    def cost(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> float:
        return float(np.sum(left(u, s, vt) ** 2)) / 2

    @pm.function.numpy(manifold)
    def gradient(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> tuple:
        S = seen.matrix(left(u, s, vt))
        rows = S @ vt.T
        return rows * s, np.einsum("ik,ik->k", u, rows), (S.T @ (u * s)).T

    U, s, V = entries_svd(seen, y, rank)
    problem = pm.Problem(manifold, cost, euclidean_gradient=gradient)
    solver = pm.optimizers.ConjugateGradient(max_iterations=200, verbosity=0, min_gradient_norm=1e-9)
    u, s, vt = solver.run(problem, initial_point=(U, s / seen.share, V.T)).point
    factors = Factors(u * s, vt.T)
    return lambda i, j: mean + factors.at(i, j)


def iterative(seen: ObservedEntries, neighbours: int) -> Predict:
    """Scikit-learn's IterativeImputer: each column regressed on the columns nearest to it."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    near = min(neighbours, seen.shape[1] - 1)
    model = IterativeImputer(n_nearest_features=near, max_iter=5, random_state=0, keep_empty_features=True)
    A = model.fit_transform(_table(seen))
    return lambda i, j: A[i, j]


def nearest(seen: ObservedEntries, neighbours: int) -> Predict:
    """Scikit-learn's KNNImputer."""
    from sklearn.impute import KNNImputer

    A = KNNImputer(n_neighbors=neighbours, keep_empty_features=True).fit_transform(_table(seen))
    return lambda i, j: A[i, j]


PEERS = {
    "soft-impute": Peer(soft_impute, (tuple(0.6 ** np.arange(1, 13)),), path=True),
    "cmfrec": Peer(cmfrec, ((10, 3, 5, 20), (1.0, 0.001, 0.01, 0.1, 3.0, 10.0, 30.0), EITHER), "cmfrec"),
    "tensorly": Peer(tensorly, (RANKS, EITHER), "tensorly", 1e5),
    "pymanopt": Peer(pymanopt, (RANKS, EITHER), "pymanopt", 5e6),
    "IterativeImputer": Peer(iterative, ((10, 30),), most_cells=2e4),
    "KNNImputer": Peer(nearest, ((10, 3, 30),), most_cells=3e5),
    "ALS told the rank": Peer(least_squares, knows_rank=True),
}
