"""The calibration suite: shares over repetitions, records and what the page shows."""

from __future__ import annotations

import numpy as np

import page_records
from benchmarks import calibration, runner
from benchmarks.calibration import CalibrationDraw, CalibrationSetting, CalibrationSizes


def test_measures_are_means_over_repetitions_and_are_on_the_page(monkeypatch):
    def draw(rng):
        X, sites = rng.standard_normal((120, 2)), np.repeat(range(3), 40)
        return CalibrationDraw(X, X @ [1.0, 0.0] + rng.standard_normal(120), sites, np.array([1.0, np.nan]))

    def wrong_truth(rng):
        return draw(rng)._replace(truth=np.array([9.0, np.nan]))

    alternating = iter([1.0, 0.0, 1.0, np.nan])
    measures = {**calibration.NULL, "alternating": lambda draw, model, report: next(alternating)}
    settings = (
        CalibrationSetting("right", "the truth is told", draw, measures),
        CalibrationSetting("wrong", "another truth is told", wrong_truth, {"coverage": calibration.covers}),
    )
    monkeypatch.setattr(calibration, "SETTINGS", settings)
    report = calibration.run(lambda text: None, CalibrationSizes(repetitions=4))
    found = {record.id: record for record in report.records}
    assert found["calibration/right-alternating"].ours == 2 / 3
    assert found["calibration/right-alternating"].settings["repetitions"] == 3
    assert found["calibration/right-coverage"].ours > found["calibration/wrong-coverage"].ours == 0
    shown = calibration.evidence(report)
    assert ["wrong", "another truth is told", "coverage", "0.000 +- 0.000", "4"] in shown["measures"]["rows"]
    assert shown["right-settings"] == 1 and shown["coverage-least"] == 0 < shown["coverage-most"]
    assert set(shown) == set(page_records.values("calibration"))
    assert "calibration" in runner.ON_REQUEST


def test_every_setting_draws_what_it_says():
    for setting in calibration.SETTINGS:
        first, again, other = (setting.draw(np.random.default_rng(seed)) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first.X, again.X)
        assert not np.array_equal(first.y, other.y) and len(first.truth) == first.X.shape[1], setting.name
    counts = np.unique(calibration.base_rates(np.random.default_rng(0)).y)
    assert counts.tolist() == [0.0, 1.0]
