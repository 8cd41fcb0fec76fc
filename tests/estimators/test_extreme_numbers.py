"""Numbers near overflow and underflow: estimators scale them, or refuse them by name. Nothing is silently wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from gyrostat.errors import GyrostatError
from gyrostat.estimators import (
    InvariantLinearRegressor,
    InvariantLogisticClassifier,
    InvariantMatrixRegressor,
    InvariantQuadraticRegressor,
    LowRankImputer,
    MatrixSensingRegressor,
)

HUGE, TINY = (1e72, 1e154, 1e300), (1e-72, 1e-170, 1e-300)
SITE = np.tile(["u", "v", "w"], 40)


def rows() -> tuple[pd.DataFrame, np.ndarray]:
    """Features and responses of three sites."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((120, 3)), columns=["dose", "age", "weight"])
    return X, (X.dose + 0.1 * rng.standard_normal(120)).to_numpy()


def matrices() -> tuple[np.ndarray, np.ndarray]:
    """Symmetric matrices and responses."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 3, 3))
    X = (X + X.mT) / 2
    return X, 2 * X[:, 0, 0] + 0.1 * rng.standard_normal(80)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [*HUGE, *TINY])
@pytest.mark.parametrize(
    "model",
    [
        InvariantLinearRegressor(family="gaussian"),
        InvariantLinearRegressor(family="poisson"),
        InvariantLogisticClassifier(),
        InvariantQuadraticRegressor(),
    ],
    ids=["linear", "poisson", "logistic", "quadratic"],
)
def test_a_column_with_extreme_numbers_is_named(model, unit):
    X, y = rows()
    y = (y > 0).astype(float) if not isinstance(model, InvariantQuadraticRegressor) else y
    with pytest.raises(GyrostatError, match=r"X holds .* in column age.*unit"):
        model.fit(X.assign(age=X.age * unit), y, environments=SITE)
    if not isinstance(model, InvariantLogisticClassifier):
        with pytest.raises(GyrostatError, match=r"y holds .*unit"):
            model.fit(X, y * unit, environments=SITE)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [*HUGE, *TINY])
@pytest.mark.parametrize("model", [InvariantMatrixRegressor(), MatrixSensingRegressor()])
def test_extreme_matrices_are_refused(model, unit):
    X, y = matrices()
    for name, one, other in (("X", X * unit, y), ("y", X, y * unit)):
        with pytest.raises(GyrostatError, match=rf"{name} holds .*unit"):
            model.fit(one, other)


def test_products_of_rank_one_measurements_are_refused():
    X, y = rows()
    with pytest.raises(GyrostatError, match=r"X holds .* too large"):
        MatrixSensingRegressor(measurements="rank-one").fit(X * 1e60, y)


def test_extreme_parts_are_refused():
    X, y = rows()
    with pytest.raises(GyrostatError, match=r"X of part 1 holds .* in column 1"):
        InvariantLinearRegressor().fit_parts(lambda: [(X.assign(age=X.age * 1e200), y, SITE)])


@pytest.mark.filterwarnings("error")
def test_numbers_within_the_limits_are_scaled():
    X, y = rows()
    usual = InvariantLinearRegressor(random_state=0).fit(X, y, environments=SITE)
    for unit in (1e69, 1e-69):
        found = InvariantLinearRegressor(random_state=0).fit(X.assign(age=X.age * unit), y * unit, environments=SITE)
        np.testing.assert_allclose(found.coef_ / [unit, 1, unit], usual.coef_, rtol=1e-6)
        np.testing.assert_allclose(found.coef_se_ / [unit, 1, unit], usual.coef_se_, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e154, 1e300, 1e-200])
def test_the_imputer_scales_or_refuses(unit):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20, 1)) @ rng.standard_normal((1, 5)) + 0.1 * rng.standard_normal((20, 5))
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    units = np.array([1.0, unit, 1.0, 1.0, 1.0])
    usual = LowRankImputer(random_state=0, scale_columns=True).fit_transform(holes)
    for scale in ("auto", True):
        filled = LowRankImputer(random_state=0, scale_columns=scale).fit_transform(holes * units) / units
        np.testing.assert_allclose(filled, usual, atol=1e-6)
    alike = LowRankImputer(random_state=0).fit(holes * 1e160)
    assert not alike.scaled_ and 0 < alike.validation_error_ < 1e160 and np.isfinite(alike.predict([0], [0])).all()
    if unit > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(GyrostatError, match=r"column 1, too large a number beside the other columns"):
                LowRankImputer(random_state=0, scale_columns=False).fit(holes * units)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("purpose", ["everywhere", "same-kind", "worst-case"])
def test_predictions_that_overflow_are_refused(purpose):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    y = X @ [5.0, -5.0] + rng.standard_normal(120)
    linear = InvariantLinearRegressor(random_state=0).fit(X, y, environments=SITE)
    classifier = InvariantLogisticClassifier(random_state=0).fit(X, y > 0, environments=SITE)
    for ask in (linear.predict, classifier.predict, classifier.predict_proba, classifier.decision_function):
        for far in (1e308, -1e308):
            with pytest.raises(GyrostatError, match="too large: 1 predictions, the first in row 2, are not finite"):
                ask([[1.0, 1.0], [far, far / 2]], purpose=purpose)
