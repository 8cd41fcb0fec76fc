"""`gyrostat check`: the theory's verdicts on a setting, from the command line."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import gyrostat as gs
from gyrostat import theory
from gyrostat.cli import app
from gyrostat.cli.check import build_law, show
from gyrostat.diagnostics import IsometryEstimate
from gyrostat.errors import GyrostatError


def test_the_table_has_every_condition_and_the_outcome():
    setting = theory.Setting(gs.TwoPoint(spread=8.0), dimension=20, num_samples=2000)
    found = theory.assess(setting, isometry_draws=2, runs=400)
    out = io.StringIO()
    show(setting, found, Console(file=out, width=200))
    text = out.getvalue()
    assert all(condition.name.split(" (")[0] in text for condition in found.conditions)
    assert "eliminated in a typical run (surrogate, in" in text and "M* = 4.16" in text and "at least" in text


def test_the_isometry_constant_is_estimated_on_request(monkeypatch):
    asked = []
    # The test above estimates it; here, asking for it is what counts.
    found = IsometryEstimate(value=0.3, low=0.2, high=0.4, draws=np.array([0.2, 0.4]))
    monkeypatch.setattr(theory.assessment, "isometry_constant", lambda *a, **k: asked.append(a) or found)
    setting = ["check", "--dimension", "12", "--num-samples", "500"]
    quick = CliRunner().invoke(app, setting)
    assert quick.exit_code == 0 and not asked
    assert "add --isometry" in quick.output and "Isometry constant" not in quick.output
    full = CliRunner().invoke(app, [*setting, "--isometry"])
    assert full.exit_code == 0 and asked
    assert "Isometry constant (rank 8): at least" in full.output and "overlap of the subspaces" in full.output
    assert "Predicted for step size 0.05, initial scale 0.001 and 200 steps:" in quick.output


def test_laws_by_name_and_by_list():
    assert isinstance(build_law("uniform", mean=1.0, spread=2.0, rank=1), gs.Uniform)
    law = build_law("two-point", mean=1.0, spread=6.0, rank=2, values="-5,7", weights=".25,.75")
    assert law.weights.tolist() == [0.25, 0.75] and law.rank == 2


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--law", "two-pont"], "two-point"),
        (["--values", "1,x"], "values"),
        (["--values", "0"], "got --values 0"),
        (["--values", "0,0", "--weights", ".5,.5"], "got --values 0,0"),
        (["--mean", "0", "--spread", "0"], "got --mean 0 and --spread 0"),
        (["--weights", "1"], "--values"),
        (["--values", "1,2", "--weights", ".5,.6"], "sum to one"),
        (["--spread", "-1"], "spread"),
        (["--rank", "200"], "rank"),
        (["--spurious-rank", "0"], "rank"),
    ],
)
def test_bad_options_are_refused_with_a_word_of_help(options, word):
    outcome = CliRunner().invoke(app, ["check", *options])
    assert isinstance(outcome.exception, GyrostatError)
    assert word in str(outcome.exception)
