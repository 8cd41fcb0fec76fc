"""The evidence: how values are chosen, what intervals mean, and that records, page and picture tell all."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import page_records
from benchmarks import runner
from benchmarks.invariance import evidence, suite, suite_methods
from benchmarks.invariance.simulations import SIMULATIONS
from benchmarks.invariance.study import (
    InvarianceRow,
    best_other,
    on_real_data,
    over_repetitions,
    simulated,
    summary,
)
from benchmarks.records import curve_panels
from gyrostat.estimators.comparison import compared_methods, peer_methods
from gyrostat.estimators.comparison.leave_one_out import over_rows
from gyrostat.estimators.linear_predictor import LinearPredictor
from gyrostat.tables import examples

NAMES = {s.name: s for s in SIMULATIONS}
QUICK = tuple(m for m in suite_methods.METHODS if m.name not in ("anchor", "anchor (worst)", "ICP"))


@pytest.fixture(scope="module")
def environments():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3, 60, 3))
    return [(x, x @ [1.0, e, 0.0] + rng.standard_normal(60)) for e, x in enumerate(X)]


def test_a_value_is_chosen_by_environments_left_out_by_mean_or_by_the_worst(environments):
    def fit(given, value):
        return LinearPredictor(np.zeros(3), value)

    levels = [(X, np.full(len(y), level)) for (X, y), level in zip(environments, (0.0, 0.0, 9.0), strict=True)]
    for rule, best in (("mean", 3.0), ("worst", 4.5)):
        method = compared_methods.Method("constant", fit, (0.0, 3.0, 4.5, 9.0), 0.0, rule=rule)
        assert compared_methods.Fits(levels).chosen(method) == best
        assert compared_methods.Fits(levels[:2]).chosen(method) == 0.0  # two environments: the default
    flat = compared_methods.Method("flat", lambda given, value: LinearPredictor(np.zeros(3), 0.0), (1.0, 2.0, 3.0), 2.0)
    assert compared_methods.Fits(environments).chosen(flat) == 2.0  # a tie: the default


def test_predictors_come_back_in_their_own_units(environments):
    moved = [(X * [1.0, 10.0, 100.0] + 5, 3 * y - 7) for X, y in environments]
    others = ("mean of slopes", "mixed model", "invariance-guided", "ours, same kind")
    more = [m for m in compared_methods.COMPARED if m.name in others]
    for method in (m for m in (*suite_methods.BY_MEAN, *more) if m.name != "ICP"):
        before, after = (compared_methods.fitted([method], given)[method.name] for given in (environments, moved))
        X = environments[0][0]
        np.testing.assert_allclose(after(X * [1.0, 10.0, 100.0] + 5), 3 * before(X) - 7, atol=1e-2, err_msg=method.name)


def test_intervals_cover_and_pair():
    rng = np.random.default_rng(0)
    covered, cases = 0, 200
    for _ in range(cases):
        low, high = np.quantile(over_repetitions(rng.exponential(size=(40, 1)), rng)[:, 0], [0.025, 0.975])
        covered += low < 1 < high
    assert 0.86 < covered / cases <= 0.98  # percentile intervals of 40 skewed numbers cover a little too rarely
    hard = rng.exponential(size=(30, 1))  # common to all methods: pairing takes it out
    errors = np.hstack([hard + 0.1, hard, hard + 0.1])
    found = summary(["least squares", "ours", "other"], errors.mean(axis=0), over_repetitions(errors, rng))
    assert found["least squares"]["ours"] == "wins" and found["ours"]["ours"] == "ties"
    swapped = summary(["ours", "least squares", "other"], errors.mean(axis=0), over_repetitions(errors, rng))
    assert swapped["least squares"]["ours"] == "loses"


def test_rows_are_resampled_within_environments():
    rng = np.random.default_rng(0)
    errors = [rng.exponential(size=(400, 1)), np.full((50, 1), 2.0)]
    found = over_rows(errors, rng, 1000)
    assert found.shape == (1000, 2, 1) and np.allclose(found[:, 1], 2)
    assert found[:, 0, 0].std() == pytest.approx(errors[0].std() / 20, rel=0.15)


def test_no_ratio_where_least_squares_makes_no_error():
    zero = np.zeros((5, 2))
    found = summary(["least squares", "ours"], zero[0], zero)
    assert found["ours"]["ratio"] is None and found["ours"]["ours"] == "ties"


def test_the_best_other_is_a_peer_and_what_is_better_is_told():
    def entry(error, ours="loses"):
        return {
            "error": error,
            "low": error,
            "high": error,
            "ratio": error,
            "ratio_low": error,
            "ratio_high": error,
            "ours": ours,
        }

    entries = {"least squares": entry(1.0), "ICP": entry(0.0), "IRMv1": entry(0.25), "V-REx": entry(3.0, "wins")}
    entries |= {"ours": entry(0.5, "ties"), "ours, untuned": entry(0.1), "ours (worst)": entry(0.5)}
    assert best_other(entries) == "ICP"
    row = InvarianceRow("a", "coefficients", "s", "t", True, "sample", entries, "ICP")
    shown = evidence.values([row])
    assert shown["beaten"] == ["a, coefficients: ICP (no error), IRMv1 (2.00 times)."]
    assert shown["against-a"] == "coefficients: loses; **not as expected**"
    assert [shown[f"meant-{word}"] for word in ("wins", "ties", "loses", "comparisons")] == [0, 0, 1, 1]


def test_a_refusal_of_ours_is_a_constant_that_says_so():
    rng = np.random.default_rng(0)
    few = [(X, 2.0 + X[:, 0]) for X in rng.standard_normal((3, 4, 6))]  # fewer rows than effects
    found = peer_methods.ours(few, 0.5)
    assert found.status == "refused" and not found.coef.any()
    assert found.intercept == pytest.approx(np.mean([y for _, y in few]))


def test_ours_finds_the_answer_of_the_diagonal_model():
    used = [m for m in QUICK if not m.grid] + [compared_methods.Method("ours", peer_methods.ours, default=0.5)]
    row, _ = simulated(NAMES["diagonal"], 3, methods=used)
    assert row.methods["ours, untuned"] == row.methods["ours"] and row.methods["ours"]["ratio"] < 0.2
    assert row.statuses == {"settled": 3} and row.sample == "3 repetitions, 8 environments of 500 rows"


@pytest.fixture(scope="module")
def report():
    """The suite on two settings and small pretended data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "SIMULATIONS", (NAMES["flips"], NAMES["example-2"]))
        rng = np.random.default_rng(0)
        X = rng.standard_normal((180, 2))
        pretended = pd.DataFrame(X).assign(place=np.repeat(list("abc"), 60), y=X[:, 0] + rng.standard_normal(180))
        about = {"text": "text", "target": "y"}
        here = examples.RealTable(
            name="bikeshare", read=lambda: pretended, packages=("numpy",), install="install", **about
        )
        away = examples.RealTable(
            name="college", read=pd.DataFrame, packages=("no_such_package",), install="pip install it", **about
        )
        patch.setattr(suite, "REAL_TABLES", (here, away))
        sizes = suite.InvarianceSizes(2, 60, 40, QUICK, (300, 4, 3), 1)
        yield suite.run(lambda text: None, sizes)


def test_the_suite_gives_records_and_tells_what_is_missing(report):
    ids = [record.id for record in report.records]
    assert len(set(ids)) == len(ids) == 3 * (2 + 1 + 2) + 1
    assert "invariance/flips-coefficients-vs-least-squares" in ids and ids[-1] == "invariance/speed-fit"
    goals = {record.id: record.goal for record in report.records}
    assert goals["invariance/flips-coefficients-vs-least-squares"] == 1
    assert goals["invariance/example-2-wrong-labels-vs-least-squares"] is None
    assert report.notes == ["college: no_such_package not installed; pip install it."]
    assert json.loads(json.dumps([record.as_dict() for record in report.records], allow_nan=False))
    assert report.records[-1].settings["seconds"] > 0


def test_the_suite_finishes_with_a_table_a_record_and_a_picture(report, tmp_path):
    out = io.StringIO()
    suite.finish(report, tmp_path, Console(file=out, width=250))
    assert "flips" in out.getvalue() and "least squares" in out.getvalue()
    shown = json.loads((tmp_path / "evidence" / "invariance.json").read_text())["values"]
    assert "no_such_package not installed" in shown["notes"][0]
    assert shown["ours"]["rows"][-1][:2] == ["college", "not installed"]
    assert (tmp_path / "images" / "invariance.png").stat().st_size > 0
    assert curve_panels(report.records) == []


def test_the_command_lets_the_suite_finish(report, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "in_child", lambda name, say: (report, ""))
    assert runner.run_suites(["invariance"], tmp_path, Console(file=io.StringIO())) == 0
    assert (tmp_path / "evidence" / "invariance.json").exists() and not (
        tmp_path / "bench.png"
    ).exists()  # no curve of time
    assert len(json.loads((tmp_path / "bench.json").read_text())) == len(report.records)


def test_the_record_in_the_docs_has_the_form_of_one_made_now(report):
    rows = [InvarianceRow(**record.settings["row"]) for record in report.records if "row" in record.settings]
    made, kept = evidence.values(rows), page_records.values("invariance")
    assert {name for name in set(made) ^ set(kept) if not name.startswith("against-")} == set()
    for name in ("ours", "ratios", "ratios-by-worst"):
        assert {len(line) for line in kept[name]["rows"]} == {len(kept[name]["columns"])}
    assert made["ours"]["columns"] == kept["ours"]["columns"]
    settings = {(s.name, measure) for s in SIMULATIONS for measure in s.measures}
    settings |= {
        (data.name, measure) for data in examples.REAL_TABLES for measure in ("mean environment", "worst environment")
    }
    assert {(line[0], line[1]) for line in kept["ours"]["rows"]} == settings
    assert {line[6] for line in kept["ours"]["rows"]} <= {"wins", "ties", "loses"}
    for line in kept["ours"]["rows"]:  # the page has a mark, and words, for each of these (see test_evidence_pages.py)
        assert line[6] == "wins" or f"against-{line[0]}" in kept


# --- real data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", examples.REAL_TABLES, ids=lambda data: data.name)
def test_real_data_are_read_whole(data):
    if data.missing:
        pytest.skip(data.missing)
    environments = data.environments()
    rows = {"bikeshare": 8645, "earnings": 260 + 15992 + 2490, "college": 4739}[data.name]
    assert sum(len(y) for _, y in environments.values()) == rows and len(environments) in (3, 4)
    for X, y in environments.values():
        assert np.isfinite(X).all() and np.isfinite(y).all() and (X.std(axis=0) > 0).sum() >= X.shape[1] - 1


def test_one_environment_is_left_out_at_a_time():
    """Constant predictions, so that every error is known: the squared distance of the mean of the other environments."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": rng.standard_normal(150), "y": np.repeat([0.0, 3.0, 6.0], 50), "place": np.repeat(list("abc"), 50)}
    )
    data = examples.RealTable(
        name="pretended", text="text", read=lambda: table, target="y", packages=("numpy",), install="install"
    )

    def mean(given, _):
        return LinearPredictor(np.zeros(1), float(np.concatenate([y for _, y in given]).mean()))

    named = [compared_methods.Method(name, mean) for name in ("least squares", "ours", "ridge")]
    of_mean, of_worst = on_real_data(data, methods=named, resamples=20)
    variance = np.repeat([0.0, 3.0, 6.0], 50).var()
    assert of_mean.methods["ours"]["error"] == pytest.approx((4.5**2 + 0 + 4.5**2) / 3 / variance)
    assert of_worst.methods["ours"]["error"] == pytest.approx(4.5**2 / variance)
    assert of_mean.methods["ours"]["low"] == pytest.approx(of_mean.methods["ours"]["high"])
