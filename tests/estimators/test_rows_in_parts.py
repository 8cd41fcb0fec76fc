"""Rows that are read in parts give the numbers of rows in memory, and are read as often as the numbers require."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import gyrostat as gs
from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor
from gyrostat.estimators.invariant import rows_in_parts
from gyrostat.estimators.invariant.diagnosis import heterogeneity_of_parts

NUMBERS = ("coef_", "coef_se_", "coef_dof_", "effects_", "effect_errors_", "intercept_", "path_")


def awkward(n: int = 1500, seed: int = 0) -> pd.DataFrame:
    """A feature far from zero, one that repeats another, one that is constant within sites, uneven noise, a wild row."""
    rng = np.random.default_rng(seed)
    site = rng.integers(4, size=n)
    a, b, far = rng.standard_normal(n), rng.standard_normal(n), 1e4 + 100 * rng.standard_normal(n)
    y = a + np.array([1.0, -1.0, 0.3, 2.0])[site] * b + (1 + np.abs(a)) * rng.standard_normal(n)
    y[17] += 40
    same = a + 0.01 * rng.standard_normal(n)
    return pd.DataFrame({"a": a, "b": b, "far": far, "same": same, "size": site**2.0, "y": y, "site": site})


def in_parts(frame: pd.DataFrame, rows: int = 130):
    """A function that returns the parts of a table, and the list of its calls."""
    calls = []

    def read():
        calls.append(1)
        for start in range(0, len(frame), rows):
            part = frame.iloc[start : start + rows]
            yield part.drop(columns=["y", "site"]).to_numpy(), part.y.to_numpy(), part.site.to_numpy()

    return read, calls


@pytest.mark.parametrize("options", [{}, {"adjust": False}, {"fit_intercept": False}, {"directions": "principal"}])
def test_a_fit_in_parts_is_the_fit(options):
    frame = awkward()
    X = frame.drop(columns=["y", "site"]).to_numpy()
    whole = InvariantLinearRegressor(random_state=0, **options).fit(X, frame.y, environments=frame.site)
    read, calls = in_parts(frame)
    parts = InvariantLinearRegressor(random_state=0, **options).fit_parts(read)
    for name in NUMBERS:
        wanted, found = (np.asarray(getattr(model, name)) for model in (whole, parts))
        scale = np.nanmax(np.abs(wanted), initial=0.0)  # collinear features lose digits: 1e4 of them are in the fit
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * scale, err_msg=name)
    rows = [[i.row for i in model._measured.influences] for model in (whole, parts)]
    assert rows[0] == rows[1] and whole.status_ == parts.status_ and whole.environments_ == parts.environments_
    assert len(calls) <= 3  # moments, residuals, and residuals without the removed features


def test_the_report_on_a_dask_dataframe_is_the_report():
    dd = pytest.importorskip("dask.dataframe")
    frame = awkward()
    table, names = dd.from_pandas(frame, npartitions=5, sort=False), ["a", "b", "far", "same", "size"]
    whole = gs.heterogeneity(frame[names], frame.y, frame.site)
    parts = gs.heterogeneity(table[names], table["y"], table["site"])
    assert whole.advice == parts.advice and whole.row[:3] == parts.row[:3]
    for name, wanted in whole.features.items():
        found = parts.features[name].values
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted.values, rtol=1e-7, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(found, wanted.values, err_msg=name)
    model = InvariantLinearRegressor(random_state=0).fit(table[names], table["y"], environments=table["site"])
    assert list(model.feature_names_in_) == names
    np.testing.assert_allclose(
        table[names].map_partitions(model.predict).compute()[:3], model.predict(frame[names][:3])
    )


def test_a_report_reads_four_times_and_larger_environments_by_a_sample_of_medians(monkeypatch):
    frame = awkward()
    exact = gs.heterogeneity(frame.drop(columns=["y", "site"]), frame.y, frame.site).features
    monkeypatch.setattr(rows_in_parts, "SAMPLE", 100)
    read, calls = in_parts(frame)
    found = heterogeneity_of_parts(read).features
    assert len(calls) <= 4
    np.testing.assert_allclose(found.shift_mean_p, exact.shift_mean_p.values, rtol=1e-7)
    assert not np.allclose(found.shift_variance_p, exact.shift_variance_p.values, rtol=1e-7)
    # The mean distance is least at the median, so that a median of 100 rows hardly changes it.
    np.testing.assert_allclose(found.shift_variance_p, exact.shift_variance_p.values, atol=0.1)


def test_memory_is_that_of_a_part():
    def peak(parts: int) -> int:
        def read():
            rng = np.random.default_rng(0)
            for _ in range(parts):
                yield rng.standard_normal((2000, 10)), rng.standard_normal(2000), rng.integers(3, size=2000)

        tracemalloc.start()
        InvariantLinearRegressor(random_state=0, num_steps=50).fit_parts(read)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(2)  # what is imported on first use does not count
    assert peak(60) < 1.2 * peak(12)  # the samples for medians are full after eight parts


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ((np.full((3, 2), np.nan), np.ones(3), ["a", "b", "a"]), "part 2 holds missing or infinite numbers"),
        ((np.ones((3, 1)), np.ones(3), ["a", "b", "a"]), "every part must have the same features; got 2 and 1"),
    ],
)
def test_bad_parts_are_refused(part, message):
    good = (np.random.default_rng(0).standard_normal((20, 2)), np.arange(20.0), ["a", "b"] * 10)
    with pytest.raises(GyrostatError, match=message):
        InvariantLinearRegressor().fit_parts(lambda: [good, part])


def test_what_needs_rows_in_memory_is_refused():
    dd = pytest.importorskip("dask.dataframe")
    frame = awkward(100)
    table = dd.from_pandas(frame, npartitions=2)
    X, y, site = table[["a", "b"]], table["y"], table["site"]
    with pytest.raises(GyrostatError, match="cluster needs the rows in memory"):
        InvariantLinearRegressor().fit(X, y, environments=site, cluster=site)
    with pytest.raises(GyrostatError, match="family='poisson' reads rows many times"):
        InvariantLinearRegressor(family="poisson").fit(X, y, environments=site)
    with pytest.raises(GyrostatError, match="environments must be a column of the Dask dataframe"):
        InvariantLinearRegressor().fit(X, y, environments=frame.site)
