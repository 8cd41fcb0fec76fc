"""``gyrostat compare-methods`` on a table, and the short form that ``gyrostat fit`` prints."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from gyrostat.cli import app
from gyrostat.estimators.comparison import leave_one_out, peer_methods
from gyrostat.estimators.comparison.compared_methods import FIXED, OURS, OWN, PEERS, REFERENCE, SAME_KIND, Method
from gyrostat.tables import fit_and_predict
from gyrostat.tables.method_comparison import comparison_figure


@pytest.fixture
def frame():
    """Four sites with levels and slopes of their own."""
    rng = np.random.default_rng(0)
    site = np.repeat(["Aarhus", "Bergen", "Cork", "Delft"], 60)
    dose, slope = rng.standard_normal(240), np.repeat([1.0, 0.6, 1.4, 0.9], 60)
    level = np.repeat([1.5, -1.5, -1.0, 1.0], 60)
    outcome = slope * dose + level + 0.3 * rng.standard_normal(240)
    return pd.DataFrame({"dose": dose, "age": rng.standard_normal(240), "site": site, "outcome": outcome})


@pytest.fixture
def few(monkeypatch):
    """Methods that choose nothing, to save time."""
    ours = (Method(OURS, peer_methods.ours, (), 0.5), Method(SAME_KIND, peer_methods.same_kind))
    monkeypatch.setattr(leave_one_out, "COMPARED", (PEERS[REFERENCE], PEERS[FIXED], *ours))


def command(frame, tmp_path, *arguments):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    given = ["--target", "outcome", "--environment", "site", "--out", str(tmp_path / "out"), *arguments]
    return CliRunner().invoke(app, ["compare-methods", str(tmp_path / "rows.csv"), *given])


def test_the_command_prints_a_table_and_says_what_to_deploy(frame, tmp_path, few):
    done = command(frame, tmp_path)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "For new environments of the same kind:" in said and "For environments that may be unlike these:" in said
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert names == {"comparison.csv", "environments.csv", "comparison.png", "comparison.svg"}
    table = pd.read_csv(tmp_path / "out" / "comparison.csv", index_col=0)
    places = pd.read_csv(tmp_path / "out" / "environments.csv", index_col=0)
    assert list(places) == ["Aarhus", "Bergen", "Cork", "Delft"]
    np.testing.assert_allclose(table["mean"] ** 2, places.mean(axis=1))
    np.testing.assert_allclose(table["worst"] ** 2, places.max(axis=1))
    named = re.search(r"of the same kind: ([a-z, ]+)\.", said).group(1)
    assert table.loc[named, "mean_ratio"] <= 1


@pytest.mark.parametrize(
    ("change", "arguments", "sentence"),
    [
        (lambda f: f[f.site < "C"], (), "has 2 values with enough rows, and 3 are needed"),
        (lambda f: f.assign(dose=f.dose.where(f.index > 3)), (), "4 of 240 rows have missing values"),
        (lambda f: f, ("--choose-by", "luck"), "choose_by"),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(frame, tmp_path, few, change, arguments, sentence):
    done = command(change(frame), tmp_path, *arguments)
    assert done.exit_code != 0 and sentence in str(done.exception)


def test_the_picture_has_a_panel_for_each_error(frame, few):
    found = leave_one_out.compare_methods(frame[["dose", "age"]], frame["outcome"], frame["site"], resamples=50)
    figure = comparison_figure(found, "a title")
    assert [p.title for p in figure.panels] == ["Mean over environments", "Worst environment"]
    ours, others, _ = figure.panels[0].series
    drawn = np.isfinite(np.stack([ours.values, others.values]))
    assert (drawn.sum(axis=0) == 1).all() and set(ours.categories) == {FIXED, OURS, SAME_KIND}


def test_fit_prints_the_short_form_and_predict_takes_the_purpose(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    said = io.StringIO()
    options = {"target": "outcome", "environment": "site", "out": tmp_path / "out"}
    fit_and_predict.fit(tmp_path / "rows.csv", console=Console(file=said, width=400), **options)
    assert "For new environments of the same kind: predict with --purpose" in said.getvalue()
    predict = ["predict", str(tmp_path / "out"), str(tmp_path / "rows.csv"), "--out", str(tmp_path / "p.csv")]
    values = []
    for purpose in ("everywhere", "same-kind"):
        assert CliRunner().invoke(app, [*predict, "--purpose", purpose]).exit_code == 0
        values.append(pd.read_csv(tmp_path / "p.csv")["prediction"])
    assert not np.allclose(*values)
    assert "--purpose" in str(CliRunner().invoke(app, [*predict, "--purpose", "any"]).exception)


def test_the_short_form_recommends_nothing_that_is_worse_than_least_squares():
    """A law in which the mean of an effect predicts, and removing it does not: the purpose decides."""
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((1500, 1)), np.repeat(np.arange(5), 300)
    y = np.array([2.0, 0.5, 3.0, 1.5, 0.2])[site] * X[:, 0] + 0.3 * rng.standard_normal(1500)
    same, unlike = leave_one_out.deployment_sentences(X, y, site, directions="features")
    methods = (PEERS[REFERENCE], *OWN[1:], Method(OURS, peer_methods.ours, (), 0.5))
    found = leave_one_out.comparison(leave_one_out.by_environment(X, y, site), methods, 0.95, 50, 0)
    for sentence, error in ((same, "mean"), (unlike, "worst")):
        better = (found.table[f"{error}_ratio"] <= 1)[[m.name for m in OWN]].any()
        assert ("predict with --purpose least-squares, not" in sentence) == (not better)


def test_what_is_as_good_as_least_squares_is_called_so():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((2000, 2)), np.repeat(np.arange(5), 400)
    same, _ = leave_one_out.deployment_sentences(X, X @ [1.0, 2.0] + rng.standard_normal(2000), site)
    assert "--purpose least-squares or same-kind, whose mean square error is within one percent of that" in same


def test_many_environments_get_one_sentence():
    rng = np.random.default_rng(0)
    X, site = rng.standard_normal((400, 1)), np.repeat(np.arange(40), 10)
    (said,) = leave_one_out.deployment_sentences(X, X[:, 0], site)
    assert "gyrostat compare-methods compares methods" in said
