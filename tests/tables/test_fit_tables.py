"""Tables in, models and pages out: ``gyrostat fit`` and ``gyrostat predict``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats
from sklearn.linear_model import LinearRegression

from gyrostat.cli import app
from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor, InvariantQuadraticRegressor
from gyrostat.tables import examples, fit_and_predict
from gyrostat.tables.forest_plot import forest
from gyrostat.tables.saved_model import Column, SavedModel
from gyrostat.tables.table_files import read_table

SITES = np.repeat(["Aarhus", "Bergen", "Cork", "Delft"], 150)


@pytest.fixture
def frame():
    """The dose has one effect, the protocol another in every environment, and the sex a baseline."""
    rng = np.random.default_rng(0)
    X, sex = rng.standard_normal((600, 2)), rng.choice(["f", "m"], 600)
    strength = np.repeat([1.2, -0.6, 0.9, -0.3], 150)
    y = 3 + X[:, 0] + strength * X[:, 1] + 0.6 * (sex == "m") + 0.3 * rng.standard_normal(600)
    return pd.DataFrame({"dose": X[:, 0], "protocol": X[:, 1], "sex": sex, "site": SITES, "outcome": y})


@pytest.fixture
def quiet(tmp_path):
    return Console(file=(tmp_path / "said.txt").open("w"), width=140)


def run(arguments: list[str]):
    from typer.testing import CliRunner

    return CliRunner().invoke(app, arguments)


def fitted(frame, tmp_path, quiet, **options):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return fit_and_predict.fit(
        tmp_path / "rows.csv", target="outcome", environment="site", out=tmp_path / "out", console=quiet, **options
    )


def test_fit_and_predict_by_the_command_line(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out"
    done = run(
        ["fit", str(tmp_path / "rows.parquet"), "--target", "outcome", "--environment", "site", "--out", str(out)]
    )
    assert done.exit_code == 0 and "removed: protocol" in done.output
    assert sorted(p.name for p in out.iterdir()) == [
        "forest.png",
        "forest.svg",
        "heterogeneity.csv",
        "model.json",
        "summary.html",
    ]
    done = run(["predict", str(out), str(tmp_path / "rows.parquet"), "--out", str(tmp_path / "p.csv")])
    assert (
        done.exit_code == 0 and "600 predictions of outcome" in done.output and "Root mean square error" in done.output
    )
    X = np.column_stack([frame.dose, frame.protocol, frame.sex == "m"]).astype(float)
    model = InvariantLinearRegressor(random_state=0).fit(X, frame.outcome, environments=frame.site)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, model.predict(X), rtol=1e-9)


def test_a_quadratic_model_is_that_of_the_estimator(frame, tmp_path, quiet):
    frame["outcome"] = frame.dose**2 + frame.protocol**2 * np.repeat([1.5, -0.7, 1.2, -0.2], 150)
    numbers = frame.drop(columns="sex")
    saved, _ = fitted(numbers, tmp_path, quiet, kind="quadratic")
    X = numbers[["dose", "protocol"]].to_numpy()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = InvariantQuadraticRegressor(random_state=0).fit(Z, frame.outcome, environments=SITES)
    np.testing.assert_allclose(
        SavedModel.read(tmp_path / "out" / "model.json").predict(numbers), model.predict(Z), rtol=1e-9
    )
    page = (tmp_path / "out" / "summary.html").read_text()
    assert page.index("Kept: +1.00 dose") < page.index("Removed: +1.00 protocol") < page.index("about linear effects")
    assert saved.about["status"] == "settled"


def test_the_model_is_plain_json(frame, tmp_path, quiet):
    saved, _ = fitted(frame, tmp_path, quiet)
    record = json.loads((tmp_path / "out" / "model.json").read_text())
    assert record["format"] == "gyrostat-model" and record["features"] == ["dose", "protocol", "sex=m"]
    again = SavedModel.read(tmp_path / "out" / "model.json")
    np.testing.assert_array_equal(again.predict(frame), saved.predict(frame))
    frame.loc[3, "dose"], frame.loc[5, "sex"] = np.nan, None
    assert np.flatnonzero(np.isnan(again.predict(frame))).tolist() == [3, 5]


def test_the_page_needs_nothing_else_and_escapes_what_it_shows(frame, tmp_path, quiet):
    frame = frame.rename(columns={"protocol": "<script>alert(1)</script>"})
    fitted(frame, tmp_path, quiet)
    page = (tmp_path / "out" / "summary.html").read_text()
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert not re.search(r"(src|href)=.?https?:", page)
    for words in (
        "What was found",
        "Lyapunov exponent",
        "How to read this",
        "Principal directions",
        "gyrostat predict",
    ):
        assert words in page


def test_the_forest_has_a_panel_for_each_feature_with_the_removed_ones_first(frame, tmp_path, quiet):
    _, found = fitted(frame, tmp_path, quiet)
    titles = [axes.get_title() for axes in forest(found).axes if axes.get_title()]
    assert titles[0] == "protocol: removed" and titles[-1] == "direction 1: removed" and len(titles) == 4
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in forest(found).axes if axes.get_title())
    points = forest(found).axes[0].containers[0][0]
    np.testing.assert_allclose(points.get_xdata(), found.features.effect.sel(feature="protocol"))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (None, {"kind": "cubic"}, "unknown kind 'cubic'"),
        (None, {"features": "doze"}, "unknown --features 'doze': did you mean 'dose'?"),
        (None, {"drop": "dose,protocol,sex"}, "no feature is left in addition to target 'outcome'"),
        (lambda f: f.assign(site="here"), {}, "environment 'site' has only one value, 'here'"),
        (
            lambda f: f.assign(sex=[f"p{i}" for i in range(600)]),
            {},
            "column 'sex' holds 600 different words.*--drop sex",
        ),
        (lambda f: f.assign(dose=[np.inf, *f.dose[1:]]), {}, "column 'dose' holds inf in row 1: correct or delete"),
        (lambda f: f.rename(columns={"outcome": "out"}), {}, "unknown --target 'outcome': did you mean 'out'"),
        (lambda f: f.assign(outcome=1.0), {}, "target 'outcome' is 1 in every row"),
        (lambda f: f.assign(dose=1.0, protocol=2.0, sex="f"), {}, "every feature has only one value"),
        (
            lambda f: f.assign(dose=f.dose.where(f.index > 9)),
            {},
            r"10 of 600 rows have missing values, most in column 'dose' \(10\): use --missing drop",
        ),
        (None, {"family": "logit"}, "unknown --family 'logit'"),
        (None, {"family": "binomial"}, "--family binomial needs a target from 0 to 1.*divide percentages by 100"),
        (None, {"ordered": ["sex"]}, "--ordered 'sex' must name a column and its levels"),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(frame, tmp_path, quiet, change, options, message):
    with pytest.raises(GyrostatError, match=message):
        fitted(change(frame) if change else frame, tmp_path, quiet, **options)


def test_bad_files_are_refused_in_one_sentence(frame, tmp_path, quiet):
    (tmp_path / "empty.csv").write_text("a,b\n")
    (tmp_path / "nothing.csv").write_text("")
    (tmp_path / "no.parquet").write_text("not a parquet file")
    for name, message in [
        (
            "rows.xlsx",
            "DATA 'rows.xlsx' is not a known kind of table: save the sheet as CSV. The name must end in .csv",
        ),
        ("absent.csv", "there is no file .*absent.csv"),
        ("empty.csv", "has no rows"),
        ("nothing.csv", "cannot be read as .csv"),
        ("no.parquet", "cannot be read as .parquet"),
    ]:
        with pytest.raises(GyrostatError, match=message):
            read_table(tmp_path / name)
    saved, _ = fitted(frame, tmp_path, quiet)
    with pytest.raises(GyrostatError, match="column 'sex' has 'x' in row 1, which no row had"):
        saved.predict(frame.assign(sex="x"))
    with pytest.raises(GyrostatError, match="column 'dose' must hold numbers; row 1 has 'much'"):
        saved.predict(frame.assign(dose="much"))
    with pytest.raises(GyrostatError, match="unknown column 'dose'"):
        saved.predict(frame.drop(columns="dose"))


def test_an_unwritable_folder_is_told(frame, tmp_path, quiet):
    (tmp_path / "out").write_text("a file where a folder should be")
    with pytest.raises(GyrostatError, match=r"--out .* cannot be written"):
        fitted(frame, tmp_path, quiet)
    assert (tmp_path / "out").read_text() == "a file where a folder should be"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: "no json", "is not a JSON file"),
        (lambda r: json.dumps({"format": "pickle"}), "is not a gyrostat model"),
        (lambda r: json.dumps({**r, "format_version": 9}), "has format_version 9, and this gyrostat reads 1"),
        (lambda r: json.dumps({**r, "coefficients": [1.0]}), r"is damaged \(coefficients has 1 entries and should"),
        (lambda r: json.dumps({**r, "scale": [True, 1, 1]}), r"scale\[0\] must be a finite number; got True"),
        (lambda r: json.dumps({**r, "scale": [1, 0, 1]}), "scale must be above zero; got 0"),
        (lambda r: json.dumps(r).replace(json.dumps(r["intercept"]), "1e999"), "1e999 is not a finite number"),
        (lambda r: json.dumps({**r, "features": ["dose", "protocol", "sex=f"]}), "features are not those of columns"),
        (lambda r: json.dumps({**r, "target": "dose"}), "'dose' occurs twice among columns"),
        (lambda r: json.dumps({**r, "matrix": [[1.0]]}), "matrix must be null in a linear model"),
        (lambda r: json.dumps({**r, "colour": 1}), "colour is not a field"),
        (lambda r: json.dumps({**r, "columns": [{"name": "dose", "levels": ["a", "a"]}]}), "levels must be different"),
        (lambda r: json.dumps(r)[:-1] + ', "kind": "linear"}', "'kind' occurs twice"),
        (lambda r: "[" * 100_000, "nested 100000 deep"),
        (lambda r: json.dumps({k: v for k, v in r.items() if k != "columns"}), r"is damaged \(columns is missing"),
    ],
)
def test_damaged_models_are_refused(tmp_path, change, message):
    path, columns = tmp_path / "model.json", (Column("dose"), Column("protocol"), Column("sex", ("f", "m")))
    SavedModel("linear", "outcome", "site", columns, [0.0] * 3, [1.0] * 3, 0.125, coefficients=[1.0, 0.0, -1.0]).write(
        path
    )
    SavedModel.read(path)
    path.write_text(change(json.loads(path.read_text())))
    with pytest.raises(GyrostatError, match=message):
        SavedModel.read(path)


def test_examples_have_their_known_answers(tmp_path, quiet, monkeypatch):
    options = {"target": "outcome", "environment": "site", "out": tmp_path / "out", "console": quiet}
    model, found = fit_and_predict.fit(Path("example:sites"), **options)
    words = found.features.verdict.to_series()
    assert words[["dose", "age", "sex=m"]].eq("kept").all() and words.protocol == "removed" and words.noise == "unclear"
    np.testing.assert_allclose(np.delete(model.coefficients, 3), [1.0, -0.5, 0.0, 0.6], atol=0.1)
    _, found = fit_and_predict.fit(Path("example:consequence"), **options)
    assert found.features.consequence.to_series().to_dict() == {"cause": False, "after": True}
    monkeypatch.setattr(examples, "is_installed", lambda package: False)
    with pytest.raises(GyrostatError, match=r"bikeshare: ISLP not installed; pip install"):
        read_table(Path("example:bikeshare"))
    with pytest.raises(GyrostatError, match="unknown example 'site': did you mean 'sites'"):
        read_table(Path("example:site"))


# --- families and clusters ------------------------------------------------------------------------


def patients(seed: int = 0) -> pd.DataFrame:
    """0/1 outcomes of 60 patients in each of four sites, five rows each, with base rates of their own."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(240), 5)
    site = np.array(["Aarhus", "Bergen", "Cork", "Delft"])[patient // 60]
    X = rng.standard_normal((1200, 2))
    base = np.array([-2.0, -1.0, 0.0, 1.0])[patient // 60] + 0.5 * rng.standard_normal(240)[patient]
    ill = rng.random(1200) < 1 / (1 + np.exp(-base - X[:, 0]))
    return pd.DataFrame({"patient": patient, "dose": X[:, 0], "age": X[:, 1], "site": site, "ill": ill.astype(int)})


def test_0_1_and_counts_are_refused_with_the_options_to_choose_from(tmp_path, quiet):
    frame = patients().rename(columns={"ill": "outcome"})
    with pytest.raises(GyrostatError, match=r"target 'outcome' holds only two values: use --family binomial"):
        fitted(frame, tmp_path, quiet)
    with pytest.raises(
        GyrostatError, match=r"target 'outcome' holds only 1 and 2: write them as 0 and 1 and use --family"
    ):
        fitted(frame.assign(outcome=frame.outcome + 1), tmp_path, quiet)
    counts = frame.assign(outcome=np.random.default_rng(0).poisson(1.5, len(frame)))
    with pytest.raises(GyrostatError, match=r"target 'outcome' looks like counts: use --family poisson"):
        fitted(counts, tmp_path, quiet)


def test_shares_of_unequal_levels_are_noted_and_can_be_fitted_as_shares(frame, tmp_path, quiet):
    mean = 1 / (1 + np.exp(-np.repeat([-3.5, -2.5, -1.0, 0.0], 150) - 0.5 * frame.dose))
    frame["outcome"] = np.random.default_rng(0).beta(20 * mean, 20 * (1 - mean))
    fitted(frame, tmp_path, quiet)
    saved, _ = fitted(frame, tmp_path, quiet, family="binomial")
    quiet.file.flush()
    said = " ".join((tmp_path / "said.txt").read_text().split())
    assert said.count("outcome is between 0 and 1") == 1 and "; use --family binomial, whose verdicts do not" in said
    p = saved.predict(frame)
    assert ((p > 0) & (p < 1)).all() and p.mean() == pytest.approx(frame.outcome.mean(), abs=1e-9)


def test_a_binomial_fit_with_clusters_by_the_command_line(tmp_path):
    frame, out = patients(), tmp_path / "out"
    words = frame.assign(ill=np.where(frame.ill, "yes", "no"))
    words.to_csv(tmp_path / "rows.csv", index=False)
    options = ["--target", "ill", "--environment", "site", "--family", "binomial", "--out", str(out)]
    hinted = run(["fit", str(tmp_path / "rows.csv"), *options])
    said = " ".join(hinted.output.split())
    assert hinted.exit_code == 0 and "use --cluster patient" in said and "yes counts as 1, and no as 0" in said
    done = run(["fit", str(tmp_path / "rows.csv"), *options, "--cluster", "patient"])
    assert done.exit_code == 0 and "use --cluster" not in " ".join(done.output.split())
    record = json.loads((out / "model.json").read_text())
    assert record["family"] == "binomial" and record["features"] == ["dose", "age"]
    assert record["about"]["cluster"] == "patient" and all(0 < x < 0.3 for x in record["standard_errors"])
    page = (out / "summary.html").read_text()
    assert "log-odds of the response" in page and "rows of the same patient" in page
    low, high = pd.read_csv(out / "heterogeneity.csv", index_col=0).loc["dose", ["mean_low", "mean_high"]]
    assert low < 1 < high and f"{low:.3g} to {high:.3g}" in page


def test_models_of_earlier_versions_are_read_and_bad_standard_errors_refused(frame, tmp_path, quiet):
    saved, _ = fitted(frame, tmp_path, quiet)
    path = tmp_path / "out" / "model.json"
    record = json.loads(path.read_text())
    assert record["standard_errors"][1] is None and record["coefficients"][1] == 0  # protocol was removed
    np.testing.assert_array_equal(SavedModel.read(path).predict(frame, "same-kind"), saved.predict(frame, "same-kind"))
    assert not np.allclose(saved.predict(frame, "same-kind"), saved.predict(frame))  # of protocol, a part is used
    later = ("family", "standard_errors", "best_purpose", "least_squares", "same_kind", "worst_case")
    path.write_text(json.dumps({k: v for k, v in record.items() if k not in later}))
    np.testing.assert_array_equal(SavedModel.read(path).predict(frame), saved.predict(frame))
    with pytest.raises(GyrostatError, match="--purpose same-kind is not in this model: fit"):
        SavedModel.read(path).predict(frame, "same-kind")
    with pytest.raises(GyrostatError, match="--purpose"):
        SavedModel.read(path).predict(frame, "other")
    bad = {"intercept": 1.0, "coefficients": [1.0]}
    for change in (
        {"family": "normal"},
        {"standard_errors": ["a", None, None]},
        {"same_kind": bad},
        {"best_purpose": 1},
    ):
        path.write_text(json.dumps({**record, **change}))
        with pytest.raises(GyrostatError, match="is damaged"):
            SavedModel.read(path)


def test_predictions_too_large_for_a_number_are_refused():
    columns = (Column("dose"), Column("age"))
    units = {"centre": np.zeros(2), "scale": np.ones(2), "intercept": 0.0}
    linear = SavedModel("linear", "y", "site", columns, **units, coefficients=[1e250, -1e250])
    quadratic = SavedModel("quadratic", "y", "site", columns, **units, matrix=1e200 * np.eye(2))
    frame = pd.DataFrame({"dose": [1.0, np.nan, 1e69], "age": [1.0, 1.0, 1e69]})
    for saved in (linear, quadratic):
        assert np.isfinite(saved.predict(frame[:1])).all() and np.isnan(saved.predict(frame[1:2])).all()
        with pytest.raises(GyrostatError, match="too large: 1 predictions, the first in row 3, are not finite"):
            saved.predict(frame)
    with pytest.raises(GyrostatError, match="'dose' holds 1e\\+300 in row 3"):  # of the file, not of the complete rows
        linear.predict(frame.assign(dose=[1.0, np.nan, 1e300]))


# --- mean effects and the error in environments left out -------------------------------------------------------------------


def test_the_command_prints_the_mean_effects_of_the_estimator_with_their_intervals(frame, tmp_path, quiet):
    _, report = fitted(frame, tmp_path, quiet)
    quiet.file.flush()
    said, page = (path.read_text() for path in (tmp_path / "said.txt", tmp_path / "out" / "summary.html"))
    X = np.column_stack([frame.dose, frame.protocol, frame.sex == "m"]).astype(float)
    model = InvariantLinearRegressor(random_state=0).fit(X, frame.outcome, environments=frame.site)
    half = stats.t.isf(0.025, model.mean_effect_dof_) * model.mean_effect_se_
    shown = [f"{m:.3g} ({m - h:.3g} to {m + h:.3g})" for m, h in zip(model.mean_effects_, half, strict=True)]
    lines = [line for line in said.splitlines() if line.startswith("│")]
    for name, text in zip(("dose", "protocol", "sex=m"), shown, strict=True):
        (line,) = [line for line in lines if line.startswith(f"│{name} ")]
        assert line.split("│")[2].strip() == text and f"<td>{text}</td>" in page
    assert "mean effect (95% interval)" in said and "coefficient (" not in said + page
    drawn = forest(report).axes[0]  # of protocol, which is removed, and so comes first
    assert drawn.get_title().startswith("protocol") and drawn.get_yticklabels()[-1].get_text() == "mean effect"
    (segment,) = drawn.collections[-1].get_segments()
    np.testing.assert_allclose(segment[:, 0], model.mean_effects_[1] + np.array([-1, 1]) * half[1])


def states(years=15):
    """A panel: twelve states, whose sizes differ far more than their years do, and effects of either sign within states."""
    rng = np.random.default_rng(0)
    state = np.repeat(np.arange(12), years)
    size, slope = 2 * rng.standard_normal(12), np.tile([-1.5, 2.5], 6)
    labour, capital = size[state, None].T + 0.1 * rng.standard_normal((2, len(state)))
    outcome = size[state] + 0.5 * (labour - size[state]) + slope[state] * (capital - size[state])
    outcome += 0.05 * rng.standard_normal(len(state))
    return pd.DataFrame({"labour": labour, "capital": capital, "site": [f"s{s}" for s in state], "outcome": outcome})


def test_fit_says_the_errors_in_environments_left_out_and_predict_uses_the_better_one(tmp_path, quiet):
    frame = states()
    fitted(frame, tmp_path, quiet)
    X = frame[["labour", "capital"]].to_numpy()
    model = InvariantLinearRegressor(random_state=0).fit(X, frame.outcome, environments=frame.site)
    ours, plain = (model.left_out_errors_[name] for name in ("everywhere", "least-squares"))
    sentence = (
        f"Error in environments left out: {ours:.4g} by what holds everywhere, {plain:.4g} by least squares. Predictions use "
        "least squares; --purpose everywhere asks for what holds everywhere."
    )
    quiet.file.flush()
    page = re.sub("</?span[^>]*>", "", (tmp_path / "out" / "summary.html").read_text())
    assert ours > 3 * plain and sentence in (tmp_path / "said.txt").read_text() and sentence in page
    read = SavedModel.read(tmp_path / "out" / "model.json")
    wanted = {
        "best": LinearRegression().fit(X, frame.outcome).predict(X),
        "everywhere": X @ model.coef_ + model.intercept_,
    }
    wanted["least-squares"] = wanted["best"]
    for purpose, values in wanted.items():
        np.testing.assert_allclose(read.predict(frame, purpose), values, rtol=1e-9)
    np.testing.assert_allclose(read.predict(frame), wanted["best"], rtol=1e-9)
    done = run(["predict", str(tmp_path / "out"), str(tmp_path / "rows.csv"), "--out", str(tmp_path / "p.csv")])
    assert done.exit_code == 0 and "Predictions use least squares (--purpose least-squares)." in done.output
    np.testing.assert_allclose(pd.read_csv(tmp_path / "p.csv").prediction, wanted["best"], rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"family": "poisson"}])
def test_without_errors_in_environments_left_out_it_is_said_that_they_are_not_known(options, tmp_path, quiet):
    frame = states()
    frame = frame.assign(outcome=np.exp(frame.outcome)) if options else frame[frame.site.isin(["s0", "s1"])]
    saved, _ = fitted(frame, tmp_path, quiet, **options)
    quiet.file.flush()
    assert "Predictions use what holds everywhere. Errors in environments left out are not known: they need three" in (
        (tmp_path / "said.txt").read_text().replace("\n", " ")
    )
    np.testing.assert_array_equal(saved.predict(frame), saved.predict(frame, "everywhere"))
    if options:
        with pytest.raises(GyrostatError, match="--purpose least-squares is not in this model: fit a gaussian model"):
            saved.predict(frame, "least-squares")
