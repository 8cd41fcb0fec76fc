"""Measurements instead of cells: steps, errors and rates of every solver of ``MatrixSensingRegressor``, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.records import grid


class MeasurementSetting(NamedTuple):
    """Gaussian measurements of an n x n matrix; ``noise`` is a share of the deviation of responses."""

    condition: float = 1.0
    noise: float = 0.0
    n: int = 20
    rank: int = 2
    measurements: int = 400
    max_iter: int = 5000

    @property
    def name(self) -> str:
        """The name in the id of a record."""
        return f"kappa-{self.condition:g}" + (f"-noise-{self.noise:g}" if self.noise else "")


SETTINGS = tuple(MeasurementSetting(condition, noise) for noise in (0.0, 0.05) for condition in (1.0, 10.0))


def sensed(setting: MeasurementSetting, draws: int) -> dict[str, Any]:
    """For every solver: the medians over draws of its steps, error and rates, and how often it found the rank."""
    from gyrostat.estimators.low_rank.sensing_descent import SOLVERS

    problems = [drawn(setting, seed) for seed in range(draws)]
    return {
        "setting": setting._asdict(),
        "name": setting.name,
        "draws": draws,
        "solvers": {
            solver: _median([_fitted(solver, setting, *problem) for problem in problems]) for solver in SOLVERS
        },
    }


def drawn(setting: MeasurementSetting, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix, its measurements and the responses.

    >>> A, X, y = drawn(MeasurementSetting(condition=10.0), 0)
    >>> X.shape, np.linalg.svd(A)[1][:3].round(6).tolist()
    ((400, 20, 20), [1.0, 0.1, 0.0])
    """
    rng, n, r = np.random.default_rng(seed), setting.n, setting.rank
    U, V = (np.linalg.qr(rng.standard_normal((n, r)))[0] for _ in range(2))
    A = U * np.geomspace(1, 1 / setting.condition, r) @ V.T
    X = rng.standard_normal((setting.measurements, n, n))
    y = np.einsum("mij,ij->m", X, A)
    return A, X, y + setting.noise * np.std(y) * rng.standard_normal(len(y))


def _fitted(solver: str, setting: MeasurementSetting, A: np.ndarray, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    from gyrostat.estimators import MatrixSensingRegressor

    model = MatrixSensingRegressor(solver=solver, max_iter=setting.max_iter, random_state=0).fit(X, y)
    wrong = float(np.linalg.norm(model.matrix_ - A) / np.linalg.norm(A))
    return {
        "steps": float(model.n_iter_),
        "error": wrong,
        "predicted": model.predicted_rate_,
        "actual": model.actual_rate_,
        "rank_found": model.rank_ == setting.rank,
        "took": model.solver_,
    }


def _median(fits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    middle = {name: float(np.median([fit[name] for fit in fits])) for name in ("steps", "error")}
    predicted = [fit for fit in fits if np.isfinite(fit["predicted"])]
    for name in ("predicted", "actual"):
        middle[name] = float(np.median([fit[name] for fit in predicted])) if predicted else float("nan")
    right = sum(fit["rank_found"] for fit in fits)
    return {**middle, "rank_found": int(right), "took": sorted({fit["took"] for fit in fits})}


def values(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the page shows: the number of draws, a table of steps and errors, and one of rates."""
    heads = ["", *(one["name"] for one in results)]
    solvers = list(results[0]["solvers"])

    def table(cell: Callable[[dict[str, Any], str], str]) -> dict[str, Any]:
        return grid(heads, [[f"`{solver}`", *(cell(one, solver) for one in results)] for solver in solvers])

    return {"draws": results[0]["draws"], "steps": table(_steps), "rates": table(_rates)}


def _steps(one: dict[str, Any], solver: str) -> str:
    fit, draws = one["solvers"][solver], one["draws"]
    limit = " (limit)" if fit["steps"] > one["setting"]["max_iter"] else ""
    took = f" ({' or '.join(fit['took'])})" if fit["took"] != [solver] else ""
    right_rank = "" if fit["rank_found"] == draws else f" ({fit['rank_found']} of {draws})"
    return f"{fit['steps']:.0f}{limit}{took}, {fit['error']:.1g}{right_rank}"


def _rates(one: dict[str, Any], solver: str) -> str:
    fit = one["solvers"][solver]
    return "-" if np.isnan(fit["predicted"]) else f"{fit['predicted']:.2g} / {fit['actual']:.2g}"
