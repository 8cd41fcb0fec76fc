"""The laboratory without a server: controls, its runs against ``gyrostat.run``, what it exports, phase diagrams."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import gyrostat as gs
from gyrostat import cli
from gyrostat.errors import GyrostatError
from gyrostat.figures.matplotlib_renderer import draw
from gyrostat.figures.plotly_renderer import plotly_panels
from gyrostat.lab import computations
from gyrostat.lab.controls import number
from gyrostat.lab.export import csv_command, python_program, read_state, state_text
from gyrostat.lab.laboratories import LABS, all_presets, lab_of
from gyrostat.lab.pictures import curves_figure, phase_figure

SMALL = {"num_steps": "100", "seeds": "6", "measurements": "population"}


@pytest.mark.parametrize(("seeds", "counts"), [("3", [3]), ("16", [16]), ("20", [16, 20])])
@pytest.mark.parametrize("is_slow", [False, True])
def test_curves_are_the_quartiles_of_runs_and_few_come_first_where_runs_are_slow(monkeypatch, seeds, counts, is_slow):
    lab = lab_of("environments")
    monkeypatch.setattr(type(lab), "is_slow", lambda self, s: is_slow)
    setting = lab.read({**SMALL, "seeds": seeds})
    messages = list(computations.curves("environments", setting, 0))
    assert [message["seeds"] for message in messages] == [4] * (is_slow and seeds != "3") + counts
    for message in messages:
        result = gs.run(
            *lab.sides(setting)[0].build(), num_steps=100, seeds=message["seeds"], record=["signal", "error"]
        )
        for name in ("signal", "error"):
            quartiles = np.quantile(result[name].transpose("seed", ...).values, (0.25, 0.5, 0.75), axis=0)
            np.testing.assert_allclose(message["curves"][name], quartiles, rtol=0, atol=1e-12)
        assert message["steps"].tolist() == result.step.values.tolist()


def test_a_diverged_run_counts_as_infinite():
    setting = lab_of("environments").read({**SMALL, "step_size": "0.5", "spread": "20"})
    (message,) = computations.curves("environments", setting, 0)
    assert message["diverged"] == 6 and np.isinf(message["curves"]["error"][:, -1]).all()
    assert len(draw(curves_figure(lab_of("environments"), setting, {"hetero": message, "pooled": message})).axes) == 2


@pytest.mark.parametrize("name", LABS)
def test_every_preset_can_be_read_and_says_what_it_runs(name):
    lab = lab_of(name)
    for preset in all_presets()[name]:
        setting = lab.read(preset.values)
        assert read_state(state_text(lab, setting)) == (lab, setting)
        assert compile(python_program(lab, setting), preset.name, "exec")
        assert csv_command(lab, setting).startswith("gyrostat lab --state ")


@pytest.mark.parametrize("name", LABS)
def test_theory_has_a_headline_and_conditions_at_the_ends_of_every_control(name):
    lab = lab_of(name)
    for control in lab.controls.values():
        for value in control.options or (control.low, control.high):
            try:
                setting = lab.read({control.name: value})
            except GyrostatError:  # too slow for sliders, or not possible
                continue
            assert lab.headline(setting) and all(condition.source for condition in lab.conditions(setting))


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "1e9", "two", "0.5; import os"])
def test_bad_numbers_are_refused(text):
    control = number("spread", "", "M", 1.0, 0.0, 20.0)
    with pytest.raises(GyrostatError, match="spread must be a number between 0 and 20"):
        control.read(text)


def test_copied_python_gives_the_numbers_of_the_curves_and_draws_them(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lab = lab_of("environments")
    setting = lab.read(SMALL)
    exec(python_program(lab, setting), {})
    printed = dict(re.findall(r"(\w+) (\{.*\})", capsys.readouterr().out))
    for i, side in enumerate(("hetero", "pooled")):
        *_, last = computations.curves("environments", setting, i)
        ends = {key: curve[1, -1] for key, curve in last["curves"].items()}
        copied = json.loads(printed[side].replace("'", '"'))
        assert ends == pytest.approx(copied, rel=0, abs=1e-12)
        assert (tmp_path / f"{side}.png").read_bytes().startswith(b"\x89PNG")


def test_command_writes_the_curves(tmp_path: Path):
    path = tmp_path / "curves.csv"
    state = "lab=environments&" + "&".join(f"{name}={value}" for name, value in SMALL.items())
    found = CliRunner().invoke(cli.app, ["lab", "--state", state, "--csv", str(path)])
    assert found.exit_code == 0, found.output
    rows = list(csv.DictReader(path.open()))
    assert {row["side"] for row in rows} == {"hetero", "pooled"}
    lab, setting = read_state(state)
    *_, last = computations.curves(lab.name, setting, 1)
    mine = [float(row["median"]) for row in rows if (row["side"], row["curve"]) == ("pooled", "signal")]
    assert mine == pytest.approx(last["curves"]["signal"][1])


@pytest.mark.parametrize("name", LABS)
def test_every_view_of_every_laboratory_is_drawn_by_both_canvases(name):
    lab = lab_of(name)
    steps, rng = np.arange(0, 101), np.random.default_rng(0)
    for view in lab.controls["view"].options:
        setting = lab.read({"view": view})
        curves = {curve.key: np.sort(rng.random((3, 101)), axis=0) for curve in lab.view(setting).curves}
        sides = {side.name: {"steps": steps, "curves": curves} for side in lab.sides(setting)}
        for measured in ({}, sides):
            figure = curves_figure(lab, setting, measured)
            assert len(plotly_panels(figure)) == len(draw(figure, "column").axes) == len(figure.panels)
            assert len({panel.ylim for panel in figure.panels}) == 1  # so that the sides can be compared


def test_phase_diagram_begins_at_the_current_point_and_knows_its_boundary():
    lab = lab_of("environments")
    setting = lab.read({**SMALL, "num_steps": "200"})
    first, *_, last = computations.phase("environments", setting)
    ((i, j),) = np.argwhere(np.isfinite(first["z"]))
    assert (first["x"][j], first["y"][i]) == (6.0, 0.05) and np.isfinite(last["z"]).all()
    # At the step size in the middle, M = 1 keeps the spurious signal and M = 11 forgets it. With the smallest step neither
    # signal is learnt: no success, although the spurious signal is gone there, too.
    assert last["z"][4, 0] == 0 and last["z"][4, 8] > 0.7 and last["z"][0, 8] == 0
    panel = phase_figure(lab, setting, last).panels[0]
    assert [series.label for series in panel.series] == [
        "share of runs",
        "predicted transition M*",
        "the current setting",
    ]
    assert len(draw(phase_figure(lab, setting, first)).axes) == 1  # unknown cells are gaps


ENDS = {"signal": [0.9, 0.9, 0.2, 0.2, np.nan, 0.9], "spurious": [0.05, 0.4, 0.05, 0.4, np.nan, np.nan]}
RANKS = {"singular_values": [[1.0, 1e-9], [1.0, 0.9], [0.0, 0.0], [np.nan, np.nan], [np.inf, 1.0]]}


@pytest.mark.parametrize(
    ("name", "ends", "outcome"),
    [
        ("environments", ENDS, 1 / 6),  # success asks for both signals
        ("completion", RANKS, 1 / 5),
        ("factors", {"distance": [0.2, 0.2, np.nan, 0.0]}, np.log10(0.02)),
        ("factors", {"distance": [0.2, np.nan, np.nan, 0.0]}, np.nan),
    ],
)
def test_a_cell_counts_diverged_runs_as_failures(name, ends, outcome):
    values = {record: np.array(x)[:, None] for record, x in ends.items()}
    assert lab_of(name).outcome(values) == pytest.approx(outcome, nan_ok=True)
