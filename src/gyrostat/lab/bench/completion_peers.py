"""The peers of ``bench completion``: each is tuned on the same validation entries and then fitted to all that is seen."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from gyrostat.completion import Factors, Observed
from gyrostat.completion.ridge import solved
from gyrostat.completion.spectrum import top
from gyrostat.lab.bench.completion_tables import Hidden

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]
Fit = Callable[[Observed, Any], Predict]
RANKS = (1, 2, 3, 5, 8, 10, 15)


class Peer(NamedTuple):
    """A method: how to fit it with one setting, which settings to try, what it needs, and the largest table it is asked for."""

    fit: Fit
    settings: tuple
    package: str = "numpy"
    most_cells: float = np.inf
    knows_rank: bool = False

    def available(self) -> bool:
        """Whether its package is installed."""
        return importlib.util.find_spec(self.package) is not None


def tuned(peer: Peer, problem: Hidden) -> np.ndarray:
    """Predictions of the test cells."""
    settings: Iterable[Any] = [problem.rank] if peer.knows_rank else peer.settings
    best, error = None, np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that do not converge say so for every setting
        for setting in settings:
            valid = problem.valid
            found = _error(peer.fit(problem.train, setting)(valid.rows, valid.columns), valid.values)
            if found < error or best is None:
                best, error = setting, found
        return peer.fit(problem.seen, best)(problem.test.rows, problem.test.columns)


def _error(predicted: np.ndarray, truth: np.ndarray) -> float:
    wrong = float(np.sqrt(np.mean((predicted - truth) ** 2)))
    return wrong if np.isfinite(wrong) else np.inf


def _table(seen: Observed, centre: float = 0.0) -> np.ndarray:
    X = np.full(seen.shape, np.nan)
    X[seen.rows, seen.columns] = seen.values - centre
    return X


def soft_impute(seen: Observed, share: float) -> Predict:
    """Mazumder, Hastie, Tibshirani 2010: ``X <- shrunken SVD of (observed + X elsewhere)``, at this share of the largest ridge.

    Offsets are one mean for all; the SVD is of sparse plus low rank.
    """
    mean = float(seen.values.mean())
    y, factors = seen.values - mean, Factors(np.zeros((seen.shape[0], 1)), np.zeros((seen.shape[1], 1)))
    ridge, s = None, np.zeros(0)
    for step in range(60):
        left = y - factors.at(seen.rows, seen.columns)
        S, St = seen.matrix(left), seen.transposed(left)
        F, G = factors
        count = min(int(np.sum(s > 0)) + 5, 60, *seen.shape)
        U, s, V = top(
            lambda x, S=S, F=F, G=G: S @ x + F @ (G.T @ x), lambda x, S=St, F=F, G=G: S @ x + G @ (F.T @ x), seen.shape, count,
            tolerance=1e-3,
        )  # fmt: skip
        ridge = share * s[0] if ridge is None else ridge
        s = np.maximum(s - ridge, 0.0)
        new = Factors(U * s, V)
        moved = np.sum((new.at(seen.rows, seen.columns) - factors.at(seen.rows, seen.columns)) ** 2)
        factors = new
        if step and moved < 1e-8 * np.sum(y**2):
            break
    return lambda i, j: mean + factors.at(i, j)


def least_squares(seen: Observed, rank: int, sweeps: int = 200) -> Predict:
    """Alternating least squares told the rank: a ceiling."""
    F, s, V = top(
        lambda x: seen.matrix(seen.values) @ x, lambda x: seen.transposed(seen.values) @ x, seen.shape, rank, tolerance=1e-3
    )
    G, small = V * np.sqrt(s / seen.share), np.full(rank, 1e-6)
    for _ in range(sweeps):
        F = solved(seen, G, small, transposed=False)
        G = solved(seen, F, small, transposed=True)
    return Factors(F, G).at


def cmfrec(seen: Observed, setting: tuple[int, float]) -> Predict:
    """cmfrec's ALS with user and item biases."""
    import pandas as pd
    from cmfrec import CMF

    rank, ridge = setting
    model = CMF(k=rank, lambda_=ridge, niter=30, nthreads=1, verbose=False, use_cg=False)
    model.fit(pd.DataFrame({"UserId": seen.rows, "ItemId": seen.columns, "Rating": seen.values}))
    return lambda i, j: np.nan_to_num(model.predict(i, j), nan=float(seen.values.mean()))


def tensorly(seen: Observed, rank: int) -> Predict:
    """Tensorly's PARAFAC of a matrix with a mask."""
    import tensorly as tl
    from tensorly.decomposition import parafac

    X, mask = np.nan_to_num(_table(seen)), ~np.isnan(_table(seen))
    found = parafac(X, rank=rank, mask=mask, init="svd", n_iter_max=200, tol=1e-8)
    A = tl.cp_to_tensor(found)
    return lambda i, j: A[i, j]


def pymanopt(seen: Observed, rank: int) -> Predict:
    """Conjugate gradients on the manifold of matrices of this rank."""
    import pymanopt as pm

    manifold = pm.manifolds.FixedRankEmbedded(*seen.shape, rank)

    def at(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> np.ndarray:
        return Factors(u * s, vt.T).at(seen.rows, seen.columns)

    @pm.function.numpy(manifold)
    def cost(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> float:
        return float(np.sum((at(u, s, vt) - seen.values) ** 2)) / 2

    @pm.function.numpy(manifold)
    def gradient(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> tuple:
        S = seen.matrix(at(u, s, vt) - seen.values)
        left = S @ vt.T
        return left * s, np.einsum("ik,ik->k", u, left), (S.T @ (u * s)).T

    U, s, V = top(
        lambda x: seen.matrix(seen.values) @ x, lambda x: seen.transposed(seen.values) @ x, seen.shape, rank, tolerance=1e-3
    )
    problem = pm.Problem(manifold, cost, euclidean_gradient=gradient)
    solver = pm.optimizers.ConjugateGradient(max_iterations=200, verbosity=0, min_gradient_norm=1e-9)
    u, s, vt = solver.run(problem, initial_point=(U, s / seen.share, V.T)).point
    return Factors(u * s, vt.T).at


def iterative(seen: Observed, neighbours: int) -> Predict:
    """Scikit-learn's IterativeImputer: each column regressed on the columns nearest to it."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    near = min(neighbours, seen.shape[1] - 1)
    model = IterativeImputer(n_nearest_features=near, max_iter=5, random_state=0, keep_empty_features=True)
    A = model.fit_transform(_table(seen))
    return lambda i, j: A[i, j]


def nearest(seen: Observed, neighbours: int) -> Predict:
    """Scikit-learn's KNNImputer."""
    from sklearn.impute import KNNImputer

    A = KNNImputer(n_neighbors=neighbours, keep_empty_features=True).fit_transform(_table(seen))
    return lambda i, j: A[i, j]


PEERS = {
    "soft-impute": Peer(soft_impute, (0.5, 0.3, 0.2, 0.1, 0.05, 0.02)),
    "cmfrec": Peer(cmfrec, tuple((k, x) for k in (3, 5, 10, 20) for x in (0.1, 1.0, 10.0)), "cmfrec"),
    "tensorly": Peer(tensorly, RANKS[2:6], "tensorly", 1e5),
    "pymanopt": Peer(pymanopt, RANKS, "pymanopt", 3e5),
    "IterativeImputer": Peer(iterative, (10, 30), most_cells=2e4),
    "KNNImputer": Peer(nearest, (3, 10, 30), most_cells=3e5),
    "ALS told the rank": Peer(least_squares, (), knows_rank=True),
}
