"""MatrixSensingRegressor: the core's own steps as the oracle, known answers, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

import gyrostat as gs
from gyrostat.algorithms import events
from gyrostat.errors import GyrostatError
from gyrostat.estimators import MatrixSensingRegressor
from gyrostat.estimators.low_rank import sensing_descent as low_rank_descent
from gyrostat.estimators.low_rank.measurement_operators import Responses, measurement_operator
from gyrostat.estimators.low_rank.sensing_descent import imbalanced, sensing_descent


class Columns(MatrixSensingRegressor):
    """The same estimator for tables: every row is a measurement of an n x 1 matrix. Scikit-learn's checks only make tables."""

    def fit(self, X, y, *, environments=None):
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        return super().fit(X[:, :, None], y, environments=environments)

    def predict(self, X):
        check_is_fitted(self)
        return super().predict(validate_data(self, X, reset=False, dtype=np.float64)[:, :, None])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        return tags


@parametrize_with_checks([Columns(max_iter=200)])  # none is skipped or expected to fail
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


def target(seed: int, shape=(12, 10), values=(3.0, 2.0)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((n, len(values))))[0] for n in shape)
    return U * values @ V.T


def test_the_steps_are_those_of_the_core():
    rng = np.random.default_rng(0)
    A, X = target(0), rng.standard_normal((60, 12, 10))
    F0, G0 = rng.standard_normal((12, 3)), rng.standard_normal((10, 3))
    y = np.einsum("mij,ij->m", X, A)
    environments = gs.RectangularEnvironments(*(np.linalg.qr(rng.standard_normal((n, 2)))[0] for n in (12, 10)))
    problem = gs.Problem(environments, gs.DenseData(X, y, np.zeros(60, dtype=int)))
    data = Responses(measurement_operator(X, "dense", None, False), y, np.zeros(60, dtype=int), False)
    for name, kind in (("gd", gs.GradientDescent), ("prec", gs.PrecGD)):
        ours = sensing_descent(data, F0, G0, solver=name, step_size=0.01, limit=3, tolerance=1e-12)
        core = gs.run(
            kind(0.01, width=3, start=gs.starts.Given(F0, G0)), problem, num_steps=3, record=["product"], record_at=[3]
        )
        np.testing.assert_allclose(ours[0] @ ours[1].T, core["product"].values[0, 0], atol=1e-10)


def test_the_imbalance_step_is_that_of_the_core(monkeypatch, x64):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12, 10))
    y, eta, steps = np.einsum("mij,ij->m", X, target(0, values=(3.0, 0.25))), 0.05, []

    def noted(F, G, beta):
        steps.append((F, G, beta, imbalanced(F, G, beta)))
        return steps[-1][-1]

    monkeypatch.setattr(low_rank_descent, "imbalanced", noted)
    data = Responses(measurement_operator(X, "dense", None, False), y, np.zeros(300, dtype=int), False)
    F, G = 0.1 * rng.standard_normal((12, 3)), 0.03 * rng.standard_normal((10, 3))
    sensing_descent(data, F, G, solver="imbalance", step_size=eta, limit=500, tolerance=1e-9)
    ((F, G, beta, after),) = steps
    for ours, theirs in zip(after, events.imbalanced((F, G), beta), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    residual = np.sqrt(data.loss(data.residual(F, G)))
    assert low_rank_descent.MARGIN == events.MARGIN
    assert beta == pytest.approx(float(events.automatic_beta(F @ G.T, residual, eta)), rel=1e-12)


@pytest.mark.parametrize("kind", ["dense", "rank-one", "entries"])
def test_operators_agree_with_matrices_written_out(kind):
    rng = np.random.default_rng(2)
    u, v, at = rng.standard_normal((7, 4)), rng.standard_normal((7, 3)), np.array([[0, 1], [3, 2], [1, 1], [0, 0]])
    X = {"dense": rng.standard_normal((7, 12)), "rank-one": (u, v), "entries": at}[kind]
    full = {
        "dense": lambda: X.reshape(7, 4, 3),
        "rank-one": lambda: np.einsum("mi,mj->mij", u, v),
        "entries": lambda: np.eye(4)[at[:, 0], :, None] * np.eye(3)[at[:, 1], None, :],
    }[kind]()
    seen, F, G = measurement_operator(X, kind, (4, 3), False), rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
    e = rng.standard_normal(len(full))
    np.testing.assert_allclose(seen.measure(F, G), np.einsum("mij,ij->m", full, F @ G.T), atol=1e-12)
    M = np.einsum("m,mij->ij", e, full)
    gradient = seen.gradient(e)
    np.testing.assert_allclose(gradient @ G, M @ G, atol=1e-12)
    np.testing.assert_allclose(gradient.mT @ F, M.T @ F, atol=1e-12)
    dF, dG = rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
    change = np.einsum("mij,ij->m", full, dF @ G.T + F @ dG.T)
    np.testing.assert_allclose(seen.jacobian(F, G) @ np.r_[dF.ravel(), dG.ravel()], change, atol=1e-12)
    assert seen.mean_square() == pytest.approx(np.mean(full**2))


@pytest.mark.parametrize("solver", ["auto", "gd", "imbalance", "scaled", "prec"])
def test_every_solver_finds_the_matrix_and_its_rank(solver):
    rng = np.random.default_rng(3)
    A, X = target(3), rng.standard_normal((220, 12, 10))
    model = MatrixSensingRegressor(solver=solver, random_state=0).fit(X, 5 + np.einsum("mij,ij->m", X, A))
    assert model.rank_ == 2 and model.converged_ and model.n_iter_ > 0
    np.testing.assert_allclose(model.matrix_, A, atol=1e-4)
    assert model.intercept_ == pytest.approx(5, abs=1e-4)
    np.testing.assert_allclose(model.predict(X[:3].reshape(3, 12, 10)), 5 + np.einsum("mij,ij->m", X[:3], A), atol=1e-3)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("solver", ["gd", "imbalance", "scaled", "prec"])
def test_the_rate_at_the_point_reached_is_predicted(solver):
    ratios = []
    for seed in range(3 if solver == "gd" else 10):
        rng = np.random.default_rng(seed)
        A, X = target(seed, values=(3.0, 3.0)), rng.standard_normal((300, 12, 10))
        model = MatrixSensingRegressor(solver=solver, random_state=seed).fit(X, np.einsum("mij,ij->m", X, A))
        ratios.append(model.actual_rate_ / model.predicted_rate_)
    # the slope is taken over the last tenth of the steps, on which faster directions are still dying out
    assert np.isfinite(ratios).mean() > 0.6 and 0.95 < np.nanmedian(ratios) < 1.15  # NaN: at the edge of stability


def test_no_rate_is_predicted_where_noise_is_left():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((200, 6, 5))
    y = np.einsum("mij,ij->m", X, target(7, shape=(6, 5))) + 0.5 * rng.standard_normal(200)
    assert np.isnan(MatrixSensingRegressor(random_state=0).fit(X, y).predicted_rate_)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_quadratic_measurements_and_indefinite_matrices(noise):
    rng = np.random.default_rng(4)
    Q = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    A, x = Q * [2.0, -1.5] @ Q.T, rng.standard_normal((600, 8))
    y = np.einsum("mi,ij,mj->m", x, A, x) + 1 + noise * rng.standard_normal(600)
    model = MatrixSensingRegressor(measurements="rank-one", symmetric=True, random_state=0).fit(x, y)
    assert model.rank_ == 2
    np.testing.assert_allclose(model.matrix_, model.matrix_.T, atol=0)
    np.testing.assert_allclose(model.matrix_, A, atol=1e-3 if noise == 0 else 0.2)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_component_that_all_measurements_share_does_not_make_descent_diverge(fit_intercept):
    """Without an intercept the training R^2 was -1e8: the shared component is 30 times as large as the rest."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A, C = target(seed, shape=(8, 6)), np.outer(rng.standard_normal(8), rng.standard_normal(6)) / 7
        X = 30 * C + rng.standard_normal((160, 8, 6))
        y = np.einsum("mij,ij->m", X, A) + 0.05 * rng.standard_normal(160)
        model = MatrixSensingRegressor(random_state=0, fit_intercept=fit_intercept).fit(X, y)
        assert model.shared_components_ == (0 if fit_intercept else 1) and model.score(X, y) > 0.99
        np.testing.assert_allclose(model.matrix_, A, atol=0.1)


def test_a_step_that_is_too_long_is_refused_and_a_fit_that_is_no_fit_is_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 6, 5))
    y = np.einsum("mij,ij->m", X, target(0, shape=(6, 5)))
    with pytest.raises(GyrostatError, match=r"step_size=50 makes the descent diverge: use step_size="):
        MatrixSensingRegressor(step_size=50.0, random_state=0).fit(X, y)
    X[0] *= 1e6  # one measurement rules all others; with 1e9 the errors were equal but for rounding
    with pytest.warns(UserWarning, match="worse than a constant"):
        MatrixSensingRegressor(random_state=0, max_iter=1).fit(X, y)


def test_symmetric_measurements_give_a_symmetric_matrix():
    rng = np.random.default_rng(8)
    Q = np.linalg.qr(rng.standard_normal((8, 2)))[0]
    A, X = Q * [2.0, -1.0] @ Q.T, rng.standard_normal((200, 8, 8))
    X = (X + X.mT) / 2
    model = MatrixSensingRegressor(random_state=0).fit(X, np.einsum("mij,ij->m", X, A))
    assert (
        model.symmetric_ and not MatrixSensingRegressor(symmetric=False, random_state=0).fit(X, X[:, 0, 0]).symmetric_
    )
    np.testing.assert_allclose(model.matrix_, A, atol=1e-3)


def test_entries_are_completion():
    rng = np.random.default_rng(5)
    A = target(5, shape=(20, 15), values=(20.0, 15.0))
    at = np.argwhere(rng.random(A.shape) < 0.7)
    model = MatrixSensingRegressor(measurements="entries", shape=A.shape, fit_intercept=False, random_state=0)
    model.fit(at, A[at[:, 0], at[:, 1]])
    assert model.rank_ == 2 and np.linalg.norm(model.matrix_ - A) < 1e-3 * np.linalg.norm(A)


def test_environments_have_intercepts_of_their_own():
    rng = np.random.default_rng(6)
    A, X, site = target(6), rng.standard_normal((300, 12, 10)), np.repeat(["a", "b"], [100, 200])
    y = np.einsum("mij,ij->m", X, A) + np.where(site == "a", -30.0, 30.0)
    model = MatrixSensingRegressor(random_state=0).fit(X, y, environments=site)
    np.testing.assert_allclose(model.matrix_, A, atol=1e-3)
    assert model.environments_ == ["a", "b"] and model.intercept_ == pytest.approx(0, abs=1e-3)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"solver": "newton"}, np.ones((5, 2, 2)), "solver"),
        ({}, np.ones((5, 4)), "shape"),
        ({"shape": (3, 3)}, np.ones((5, 4)), "make them equal"),
        ({"measurements": "entries", "shape": (2, 2)}, np.full((5, 2), 3), "inside the 2 x 2"),
        ({"measurements": "entries", "shape": (2, 2)}, np.ones((5, 2)), "whole numbers"),
        ({"symmetric": True}, np.ones((5, 2, 3)), "square"),
        ({}, np.ones((4, 2, 2)), "one response"),
    ],
)
def test_bad_input_is_refused(options, X, message):
    with pytest.raises(GyrostatError, match=message):
        MatrixSensingRegressor(**options).fit(X, np.arange(5.0))


def test_a_matrix_that_measurements_do_not_determine_is_reported():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="do not determine the matrix"):
        MatrixSensingRegressor(random_state=0).fit(rng.standard_normal((150, 8, 6)), rng.standard_normal(150))


def test_a_descent_that_was_cut_off_is_reported():
    """Columns in different units: predictions are good, but the entries of the small columns are far off."""
    rng = np.random.default_rng(0)
    X, A = (
        rng.standard_normal((150, 8, 6)) * np.geomspace(1, 100, 6),
        rng.standard_normal((8, 2)) @ rng.standard_normal((2, 6)),
    )
    y = np.einsum("mij,ij->m", X, A)
    with pytest.warns(ConvergenceWarning, match="one unit"):
        model = MatrixSensingRegressor(max_iter=20, random_state=0).fit(X, y + 0.1 * y.std() * rng.standard_normal(150))
    assert not model.converged_
