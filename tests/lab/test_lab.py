"""The laboratory without a server: controls, its engine against ``gyrostat.run``, what it exports, phase diagrams."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import gyrostat as gs
from gyrostat import cli
from gyrostat.engine.numpy_backend.cached_draws import SEEDS_AT_ONCE
from gyrostat.engine.numpy_backend.symmetric_runs import simulate_blocks
from gyrostat.errors import GyrostatError
from gyrostat.lab import computations, runs
from gyrostat.lab.controls import number
from gyrostat.lab.export import csv_command, python_program, read_state, state_text
from gyrostat.lab.laboratories import LABS, deep_completion, environments, lab_of

SMALL = {"dimension": "5", "num_steps": "100", "seeds": "6", "num_samples": "400"}


LAW = gs.TwoPoint(mean=1.0, spread=4.0, rank=2)


def cell(kind: Any, d: int, measurements: Any, law: Any = LAW, step: float = 0.05, **options: Any) -> Any:
    return kind(step, **options), gs.Problem(gs.RandomEnvironments(d, rank=2, law=law, overlap=0.2), measurements)


@pytest.mark.parametrize(
    ("kind", "options", "measurements", "law"),
    [
        (gs.HeteroSGD, {"order": "shuffled", "amplify": 1.5}, gs.FreshGaussian(400), LAW),
        (gs.HeteroSGD, {"amplify": 1.5}, gs.Identity(), LAW),
        (gs.PooledSGD, {}, gs.Identity(), LAW),
        (gs.PooledSGD, {}, gs.FreshGaussian(1400), gs.Uniform(mean=1.0, spread=4.0, rank=2)),
    ],
)
def test_engine_gives_the_numbers_of_run(kind, options, measurements, law):
    # The same numbers summed in another order: 1e-12 is far above rounding and far below the difference of two draws. (The
    # test of the copied program compares fresh batches of HeteroSGD in iid order and of PooledSGD.)
    at = cell(kind, 7, measurements, law, **options)
    record = ("signal", "spurious", "error", "distance")
    if isinstance(measurements, gs.Identity):  # its programs compile quickly
        record += ("distance_to_mean", "loss", "singular_values")
    mine = runs.run(at, record, 120, 3)
    found = gs.run(*at, num_steps=120, seeds=3, record=record)
    for name in record:
        np.testing.assert_allclose(mine[name], found[name].values, rtol=0, atol=1e-12)
    assert mine["step"].tolist() == found.step.values.tolist()


@pytest.mark.parametrize("figure", ["xu2024/fig1", "xu2024/fig6"])
def test_single_precision_looks_the_same(figure):
    lab, record = lab_of("environments"), ("signal", "spurious", "error")
    setting = lab.read(next(preset.values for preset in lab.presets() if preset.name == figure))
    for side in lab.sides(setting):
        at, found = side.build(), {}
        for precision in runs.backend_for(at, record).precisions:
            (*_, found[precision]) = runs.parts(at, record, setting["num_steps"], 4, precision)
        # A line is a 200th of the plot wide; rounding errors of hundreds of steps stay far below that.
        assert found["single"]["step"].tolist() == found["double"]["step"][::2].tolist()  # half of the steps
        for name in record:
            np.testing.assert_allclose(found["single"][name], found["double"][name][:, ::2], rtol=0, atol=5e-5)


def test_divergence_is_that_of_run():
    at = cell(gs.HeteroSGD, 7, gs.Identity(), LAW, step=0.9)
    mine = runs.run(at, ("distance",), 100, 3)
    found = gs.run(*at, num_steps=100, seeds=3, record=["distance"])
    assert (mine["diverged"] == found.diverged.values).all() and (mine["diverged"] > 0).all()
    assert (np.isnan(mine["distance"]) == np.isnan(found.distance.values)).all()


def test_nothing_is_compiled_when_a_dimension_moves():
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: compiled.append(name))
    jax.jit(lambda x: x + len(compiled))(1.0)
    assert any("compile" in name for name in compiled)  # the listener works
    for d in (5, 6, 40):
        at = cell(gs.HeteroSGD, d, gs.FreshGaussian(300 + d), LAW, step=0.001 * d, init_scale=0.001 * d)
        runs.run(at, ("distance",), 100 + d, 2)
        if d == 5:
            compiled.clear()
    assert not any("compile" in name for name in compiled)


@pytest.mark.parametrize("name", LABS)
def test_every_preset_can_be_read_and_says_what_it_runs(name):
    lab = lab_of(name)
    for preset in lab.presets():
        setting = lab.read(preset.values)
        assert read_state(state_text(lab, setting)) == (lab, setting)
        assert compile(python_program(lab, setting), preset.name, "exec")
        assert csv_command(lab, setting).startswith("gyrostat lab --state ")


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "1e9", "two", "0.5; import os"])
def test_bad_numbers_are_refused(text):
    control = number("spread", label="", symbol="M", default=1.0, low=0.0, high=20.0)
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
        ends = {key: curve["middle"][-1] for key, curve in last["curves"].items()}
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
    assert mine == pytest.approx(last["curves"]["signal"]["middle"])


def test_a_bad_state_is_one_sentence():
    with pytest.raises(GyrostatError, match="unknown setting 'stepsize': did you mean 'step_size'"):
        read_state("lab=environments&stepsize=1")
    with pytest.raises(GyrostatError, match="FixedGaussian keeps data"):
        read_state("measurements=fixed&law=gaussian")


def test_phase_diagram_begins_at_the_current_point_and_knows_its_boundary():
    setting = lab_of("environments").read({**SMALL, "num_steps": "200"})
    plane, *cells = [message for message in computations.phase("environments", setting) if message is not None]
    assert plane["boundary"][0] == "predicted transition M*"
    assert (plane["x"][cells[0]["j"]], plane["y"][cells[0]["i"]]) == (6.0, 0.05)
    assert sorted((c["i"], c["j"]) for c in cells) == [(i, j) for i in range(9) for j in range(9)]
    # At the step size in the middle, M = 1 keeps the spurious signal and M = 11 forgets it. With the smallest step neither
    # signal is learnt: no success, although the spurious signal is gone there, too.
    found = {(c["i"], c["j"]): plane["outcomes"][c["value"]] for c in cells}
    assert found[4, 0].startswith("spurious") and found[4, 8].startswith("success")
    assert found[0, 8].startswith("invariant signal not learnt")
    assert all(sum(c["counts"]) == plane["seeds"] for c in cells)


def test_success_asks_for_both_signals():
    ends = {"signal": [0.9, 0.9, 0.2, 0.2, np.nan, 0.9], "spurious": [0.05, 0.4, 0.05, 0.4, np.nan, np.nan]}
    found = environments.fate({name: np.array(values)[:, None] for name, values in ends.items()})
    assert found.tolist() == [0, 1, 2, 2, 2, 2]


def test_ranks_of_diverged_runs_are_no_ranks():
    ends = np.array([[[1.0, 1e-9]], [[1.0, 0.9]], [[0.0, 0.0]], [[np.nan, np.nan]]])
    assert deep_completion.final_rank({"singular_values": ends}).tolist() == [0, 1, 2, 2]


def test_noise_of_other_seeds_is_other_noise():
    lab = lab_of("environments")
    setting = lab.read(SMALL)
    side, record, grid = lab.sides(setting)[0], ("signal",), np.arange(0, 101, 10)
    at = side.build()

    def ends(first: int, seeds: int) -> np.ndarray:
        (*_, found) = simulate_blocks(at, record, grid, first, seeds, float)
        return found["signal"]

    one, two, three = ends(0, 4), ends(SEEDS_AT_ONCE, 4), ends(0, 4)
    assert (one == three).all() and (one[:, -1] != two[:, -1]).all()
    assert np.allclose(ends(0, 2), one[:2], rtol=0, atol=1e-14)  # BLAS may sum fewer runs in another order


def test_few_seeds_come_first_where_runs_are_slow(monkeypatch):
    """The pace of the last move decides; the few seeds are the first of all, and the numbers of all are the same."""
    monkeypatch.setattr(computations, "_pace", {})
    monkeypatch.setattr(computations, "_compiled", set())
    lab = lab_of("environments")
    setting = lab.read({"dimension": "5", "num_steps": "100", "seeds": "8", "measurements": "population"})

    def drawn() -> list[dict[str, Any]]:
        return [m for m in computations.curves("environments", setting, 0) if m and m["kind"] == "curves"]

    whole = [(8, 8, "single"), (8, 8, "double")]
    monkeypatch.setattr(computations, "SLOW", 0.0)  # every pace is slow
    assert [(m["seeds"], m["of"], m["precision"]) for m in drawn()] == whole  # of unknown pace, and compiled just now
    quick = drawn()
    assert [(m["seeds"], m["of"], m["precision"]) for m in quick] == whole  # it was measured now
    few, *rest = drawn()
    assert (few["seeds"], few["of"], few["precision"]) == (4, 8, "single") and rest == quick
    monkeypatch.setattr(computations, "SLOW", np.inf)
    assert drawn() == quick
    cell = lab.sides(setting)[0].build()
    alone = gs.run(*cell, num_steps=100, seeds=4, record=["signal"], record_at=few["steps"])
    middle = np.median(alone.signal.values, axis=alone.signal.dims.index("seed"))
    np.testing.assert_allclose(few["curves"]["signal"]["middle"], middle, atol=1e-5)  # single precision
