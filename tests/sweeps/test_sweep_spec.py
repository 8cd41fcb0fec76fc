"""Specs of sweeps: axes, formulas, paths of settings, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from gyrostat.sweeps import read_spec, ready_made_specs
from gyrostat.sweeps.formulas import evaluate
from gyrostat.sweeps.spec import read_axis

LAW = {"kind": "TwoPoint", "mean": 1.0, "spread": 6.0}
TABLE = {
    "num_steps": 20,
    "seeds": 3,
    "settings": {"ratio": 10},
    "algorithm": {"kind": "HeteroSGD", "step_size": 0.05, "model": {"kind": "Symmetric", "width": 2}},
    "environments": {"kind": "RandomEnvironments", "dimension": 4, "law": LAW},
    "measurements": {"kind": "FreshGaussian", "num_samples": "= ratio * dimension"},
    "axes": {"spread": [1.0, 6.0]},
    "record": {"final": ["signal"]},
}


def with_(**changes):
    return {**TABLE, **changes}


@pytest.mark.parametrize(
    ("given", "values", "scale"),
    [
        ([1, 2.5], (1, 2.5), "linear"),
        ({"linear": [0, 0.3], "points": 4}, (0.0, 0.1, 0.2, 0.3), "linear"),
        ({"log": [0.01, 1], "points": 3}, (0.01, 0.1, 1.0), "log"),
        ({"log": [1, 10], "points": 4, "whole": True}, (1, 2, 5, 10), "log"),
        ({"list": [10, 100, 1000]}, (10, 100, 1000), "log"),
        (["iid", "cyclic"], ("iid", "cyclic"), "list"),
        (np.array([3, 4]), (3, 4), "linear"),
    ],
)
def test_axes(given, values, scale):
    made = read_axis("a", "x.a", given)
    assert made.values == values and made.scale == scale
    assert made.ordered == (scale != "list")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"linear": [0, 1], "log": [1, 2]}, "exactly one"),
        ({"linear": [1, 0]}, "upwards"),
        ({"log": [0, 1]}, "above 0"),
        ({"linear": [0, 1, 2]}, "two ends"),
        ({"linear": [0, 1], "pionts": 3}, "'points'"),
        ([], "at least one value"),
        ("iid", "at least one value"),
        ([1, 1], "twice"),
    ],
)
def test_bad_axes(given, word):
    refuses(lambda: read_axis("a", "x.a", given), "axis a" if word != "'points'" else "a", word)


def test_formulas():
    known = {"a": 3, "b.c": 0.5}
    assert evaluate("= -a + 2 * b.c ** 2", known.__getitem__) == -2.5
    assert evaluate("= spaced(0, 1, a)", known.__getitem__) == [0.0, 0.5, 1.0]
    for bad in ("= a +", "= __import__('os')", "= a[0]", "= 1 / 0", "= eval(a)", "= 'text'", "= sqrt(x=1)"):
        refuses(lambda bad=bad: evaluate(bad, known.__getitem__))


@pytest.mark.parametrize(
    ("path", "values", "seen"),
    [  # an axis over a setting, and where its values turn up in the cell (algorithm, problem), steps
        ("algorithm.step_size", [0.01, 0.1], lambda c, T: float(c[0].schedule.step_size)),
        ("init_scale", [1e-4, 1e-2], lambda c, T: float(c[0].start.scale)),
        ("order", ["iid", "cyclic"], lambda c, T: c[0].batches.order),
        ("algorithm.model.width", [1, 3], lambda c, T: c[0].model.width),
        ("algorithm.kind", ["HeteroSGD", "PooledSGD"], lambda c, T: type(c[0]).__name__),
        ("dimension", [4, 6], lambda c, T: c[1].shape[0]),
        ("overlap", [0.0, 0.5], lambda c, T: float(c[1].environments.overlap)),
        ("environments.law.kind", ["TwoPoint", "Uniform"], lambda c, T: type(c[1].environments.law).__name__),
        (
            "environments.law",
            [LAW, {**LAW, "spread": 2.0}],
            lambda c, T: {**LAW, "spread": c[1].environments.law.bound - 1},
        ),
        ("measurements.kind", ["FreshGaussian", "FixedGaussian"], lambda c, T: type(c[1].measurements).__name__),
        ("noise", [0.0, 0.3], lambda c, T: float(c[1].measurements.noise)),
        ("settings.ratio", [10, 20], lambda c, T: float(c[1].measurements.num_samples) / 4),
        ("num_steps", [5, 7], lambda c, T: T),
    ],
)
def test_any_setting_of_any_noun_can_be_an_axis(path, values, seen):
    made = read_spec(with_(axes={path: values}))
    assert [seen(*made.cell((i,))) for i in range(2)] == values


def test_a_function_is_an_experiment_too():
    def build(spread, dimension=4):
        return gs.HeteroSGD(0.05), gs.Problem(
            gs.RandomEnvironments(dimension, law=gs.TwoPoint(spread=spread)), gs.Identity()
        )

    table = {"num_steps": 5, "experiment": {"kind": build, "spread": 1.0}, "record": {"final": ["signal"]}}
    made = read_spec({**table, "axes": {"dimension": [3, 5]}})
    assert [made.cell((i,))[0][1].shape for i in range(2)] == [(3, 3), (5, 5)]
    assert made.identity()["experiment.kind"].startswith("test_sweep_spec:")
    refuses(lambda: read_spec({**table, "axes": {"dimensoin": [3]}}), "'dimensoin'", "'dimension'")
    refuses(
        lambda: read_spec({**table, "algorithm": {"kind": "HeteroSGD"}, "axes": {"spread": [1]}}), "leave those out"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"axes": {"spraed": [1]}}, ("'spraed'", "'spread'")),
        ({"axes": {}}, ("axes",)),
        ({"axes": {"kind": ["x"]}}, ("whole path",)),
        ({"axes": {"spread": [1], "environments.law.spread": [2]}}, ("twice",)),
        ({"algorithm": {"kind": "HeteroSDG", "step_size": 1}}, ("'HeteroSDG'", "'HeteroSGD'")),
        ({"algorithm": {"kind": 3}}, ("kind",)),
        ({"algorithm": None}, ("algorithm",)),
        ({"algoritm": {}}, ("'algoritm'", "'algorithm'")),
        ({"seeds": 0}, ("seeds",)),
        ({"record": {"final": ["signl"]}}, ("'signl'", "'signal'")),
        ({"record": {"final": "signal"}}, ("record.final",)),
        ({"record": {"final": ["singular_values"]}}, ("singular_values",)),
        ({"record": {"last": ["signal"]}}, ("'last'",)),
        ({"record": {}}, ("keeps nothing",)),
        ({"success": {"spurious": {"under": 1}}}, ("'under'",)),
        ({"success": {"spurious": 0.1}}, ("success.spurious",)),
        ({"success": {"spurios": {"below": 1}}}, ("'spurios'", "'spurious'")),
    ],
)
def test_bad_specs_are_refused_before_anything_is_computed(change, words):
    refuses(lambda: read_spec(with_(**change)), *words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"algorithm": {"kind": "HeteroSGD", "step_sise": 0.1}}, ("'step_sise'", "'step_size'")),
        ({"algorithm": {"kind": "HeteroSGD"}}, ("algorithm.step_size",)),
        ({"settings": {"ratio": "= ratio + 1"}}, ("circle",)),
        ({"measurements": {"kind": "FreshGaussian", "num_samples": "= 3 * dimensoin"}}, ("'dimensoin'", "'dimension'")),
        ({"record": {"paths": ["signal"], "points": 50}}, ("num_steps", "record.points")),
        ({"num_steps": 0}, ("num_steps",)),
    ],
)
def test_bad_cells_say_what_is_wrong(change, words):
    refuses(lambda: read_spec(with_(**change)).cell((0,)), *words)


def test_files_and_settings_of_the_command_line(tmp_path, monkeypatch):
    path = tmp_path / "a.toml"
    path.write_text(
        'num_steps = 3\nalgorithm = {kind = "HeteroSGD", step_size = 0.1}\nmeasurements.kind = "Identity"\n'
        'environments = {kind = "RandomEnvironments", dimension = 3, law.kind = "TwoPoint"}\n'
        "axes.law.spread = {linear = [1, 2], points = 2}\nrecord.final = ['signal']\n"
    )
    made = read_spec(path, ["dimension=5", "environments.law.kind=Uniform", "axes.law.spread.points=3"], {"seeds": 7})
    assert made.shape == (3,) and made.seeds == 7 and made.axes[0].path == "environments.law.spread"
    (_, problem), steps = made.cell((2,))
    assert problem.shape == (5, 5) and problem.environments.law == gs.Uniform(1.0, 2.0) and steps == 3
    refuses(lambda: read_spec(path, ["dimension"]), "PATH=VALUE")
    path.write_text("axes = [")
    refuses(lambda: read_spec(path), "not TOML")
    refuses(lambda: read_spec(tmp_path / "absent.toml"), "absent.toml")
    refuses(lambda: read_spec("step-spraed"), "'step-spread'")
    (tmp_path / "step-spread").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_spec("step-spread").axes  # a folder of the same name, from `--out step-spread`, is not the spec


def test_ready_made_specs_can_be_built():
    for name, made in ready_made_specs().items():
        assert made.summary and made.record.success, name
        for corner in (tuple(0 for _ in made.shape), tuple(n - 1 for n in made.shape)):
            made.cell(corner)
