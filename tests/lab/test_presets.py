"""The presets of the laboratory against the runs that the experiments of the same name ask for."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_limits

import gyrostat as gs
from gyrostat.engine.results import describe
from gyrostat.engine.simulate import DEFAULT_RECORD
from gyrostat.experiments.registry import experiments
from gyrostat.lab.laboratories import LABS, all_presets, lab_of

PAPERS = ("xu2024", "xiong2024", "wang2023")
PRESETS = {preset.name: (LABS[lab], preset) for lab, presets in all_presets().items() for preset in presets}

STEPS = {"num_steps"}
SAME: set[str] = set()
COMPARED: dict[str, dict[str, set[str]]] = {
    "xu2024/fig1": {"hetero": SAME, "pooled": {"problem.measurements.num_samples"}},
    "xu2024/fig3": {"hetero": SAME},
    "xu2024/fig3-m1": {"hetero": SAME},
    "xu2024/fig4": {"hetero": SAME},
    "xu2024/fig4-small": {"hetero": SAME},
    "xu2024/fig5": {"hetero": SAME, "pooled": {"problem.measurements.num_samples"}},
    "xu2024/fig6": {"pooled": SAME},
    "xiong2024/fig1.1": {"symmetric": STEPS, "asymmetric": STEPS},
    "xiong2024/fig1.2a": {"asymmetric": SAME},
    "xiong2024/fig1.2b": {"asymmetric": SAME},
    "xiong2024/fig1.2c": {"asymmetric": SAME, "stepped": SAME},
    "xiong2024/figI1": {
        "symmetric": {"algorithm.start.kind", "algorithm.start.scale", "num_steps", "problem.measurements.kind"},
        "asymmetric": {"num_steps", "problem.measurements.kind"},
    },
    "xiong2024/figI2": {"asymmetric": SAME},
    "xiong2024/figI3": {"asymmetric": SAME},
    "xiong2024/figI4": {"symmetric": STEPS, "asymmetric": SAME, "stepped": SAME},
    "xiong2024/figI5": {"asymmetric": SAME},
    "wang2023/fig1": {"sgd": SAME, "gd": SAME},
    "wang2023/fig2-L3": {"sgd": {"algorithm.schedule.low.step_size"}, "gd": {"algorithm.schedule.low.step_size"}},
    "wang2023/fig2-L4": {"sgd": {"algorithm.schedule.low.step_size"}, "gd": {"algorithm.schedule.low.step_size"}},
    "wang2023/fig3": {"sgd": SAME, "gd": SAME},
    "wang2023/fig4": {"sgd": SAME, "gd": SAME},
}
"""The sides of a preset that its experiment runs too, each with what no slider can show; the preset's note names it."""

COMPONENTS = {
    "factor_values": {"component": 10},
    "singular_values": {"singular_value": 50},
    "left_factor": {"row": 50, "column": 10},
    "right_factor": {"row": 50, "column": 10},
    "product": {"row": 2, "column": 2},
}
"""Dimensions of the records that are not one number per step."""


def experiment_name(preset: str) -> str:
    return re.sub(r"(-.*|(?<=\.2)[abc])$", "", preset)


class Asked:
    """Stands for ``gs.run`` and its kin: keeps what is asked for and answers with ones in the right shape."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []

    def run(self, algorithm: Any, problem: Any, *, num_steps: int, **options: Any) -> xr.Dataset:
        return self.run_grid(lambda: (algorithm, problem), {}, num_steps=num_steps, **options)

    def run_grid(self, build: Any, settings: Any, *, num_steps: Any, **options: Any) -> xr.Dataset:
        points = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
        steps = [num_steps(**point) if callable(num_steps) else num_steps for point in points]
        self.runs += [flat(*build(**point), count) for point, count in zip(points, steps, strict=True)]
        return ones(settings, steps, **options)

    def offshoots(self, algorithm: Any, problem: Any, *, at: Any, num_steps: int, **options: Any) -> xr.Dataset:
        return ones({"branch": at}, [t + num_steps for t in at], **options)  # not compared


def ones(
    settings: Any, steps: list[int], *, seeds: int = 1, record: Any = DEFAULT_RECORD, record_at: Any = 101, **_: Any
) -> xr.Dataset:
    points = record_at if isinstance(record_at, int) else len(record_at)
    grids = np.array([np.round(np.linspace(0, count, points)).astype(int) for count in steps])
    along = "step" if len(set(steps)) == 1 else "record"
    sizes = {name: len(values) for name, values in settings.items()} | {"seed": seeds}

    def array(**more: int) -> xr.DataArray:
        return xr.DataArray(1.0).expand_dims(sizes | more).copy()

    data = {name: array(**{along: points} | COMPONENTS.get(name, {})) for name in record}
    coordinates = {name: list(values) for name, values in settings.items()} | {"seed": np.arange(seeds)}
    axes = *settings, along
    by_setting = grids.reshape(*(sizes[name] for name in settings), points)
    coordinates["step"] = ("step", grids[0]) if along == "step" else (axes, by_setting)
    return xr.Dataset(data | {"diverged": array()}, coords=coordinates, attrs={"settings": ""})


def flat(algorithm: Any, problem: Any, num_steps: int) -> dict[str, Any]:
    """A run as one table of settings, without the number of a design (it names a draw) and a switch after the last step."""
    parts = {"algorithm": describe(algorithm), "problem": describe(problem), "num_steps": num_steps}
    parts["problem"]["measurements"].pop("design", None)
    schedule = parts["algorithm"]["schedule"]
    if schedule["kind"] == "Annealing" and schedule["at"] >= num_steps:
        parts["algorithm"]["schedule"] = schedule["high"]

    def leaves(value: Any, address: str) -> Any:
        if not isinstance(value, dict):
            return [(address.lstrip("."), value)]
        return [leaf for name, inner in value.items() for leaf in leaves(inner, f"{address}.{name}")]

    return dict(leaves(parts, ""))


def differences(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


@pytest.fixture(scope="module")
def asked() -> Any:
    """The runs that an experiment asks for at its standard size, by the experiment's name."""
    known: dict[str, list[dict[str, Any]]] = {}

    def runs(name: str) -> list[dict[str, Any]]:
        if name not in known:
            paper, _, figure = name.partition("/")
            experiment, recorder = experiments(paper)[figure], Asked()
            # Few seeds, starts and designs: they are not part of a setting. (Wang's experiments draw eight runs.)
            few = {"seeds": 8, "starts": 1, "designs": 1, "figure_starts": 1, "shuffled": 8}
            sizes = {
                size: few.get(size, value)
                for size, value in experiment.settings("full" if figure == "figI1" else "standard").items()
            }
            # With several threads the small products of Figure 1.2 took 40 s instead of 1 s on a busy machine.
            with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
                for home, function in ((gs, "run"), (gs, "run_grid"), (gs.engine, "offshoots")):
                    patch.setattr(home, function, getattr(recorder, function))
                experiment.data(seed=3, **sizes)
            known[name] = recorder.runs
        return known[name]

    return runs


def test_presets_cover_the_figures_of_the_papers():
    figures = {f"{paper}/{name}" for paper in PAPERS for name in experiments(paper) if re.fullmatch(r"fig[\w.]+", name)}
    assert {experiment_name(name) for name in PRESETS} == figures
    assert set(COMPARED) == set(PRESETS) - {"xu2024/fig2"}  # it runs nothing


@pytest.mark.parametrize("name", COMPARED)
def test_a_preset_runs_what_its_experiment_runs(name, asked):
    lab, preset = PRESETS[name]
    setting = lab.read(preset.values)
    sides = {side.name: side for side in lab.sides(setting)}
    for side, allowed in COMPARED[name].items():
        mine = flat(*sides[side].build(), setting["num_steps"])
        assert allowed in [differences(mine, run) for run in asked(experiment_name(name))]
        assert preset.note or allowed == SAME


def test_a_preset_that_has_drifted_is_found(asked):
    # What the preset of Figure 4 was once: M = 6, a step size that the figure does not have, another number of steps.
    lab, preset = PRESETS["xu2024/fig4"]
    setting = lab.read({**preset.values, "spread": 6.0, "step_size": 0.1, "num_steps": 200})
    mine = flat(*lab.sides(setting)[0].build(), setting["num_steps"])
    wrong = [differences(mine, run) for run in asked("xu2024/fig4")]
    assert all({"algorithm.schedule.step_size", "problem.environments.law.values"} <= names for names in wrong)


def test_figure_2_of_xu_has_the_setting_of_its_exact_sums():
    experiment = experiments("xu2024")["fig2"]
    ds = experiment.data(seed=0, **experiment.settings("standard"))
    values = PRESETS["xu2024/fig2"][1].values
    assert values["step_size"] == ds.attrs["step_size"] and values["num_steps"] == ds.step.values[-1]
    assert values["spread"] in ds.spread.values and values["measurements"] == "population"


def test_every_update_rule_is_one_of_the_library_and_its_program_makes_it():
    """Rules of optax are among them; predictions are made for those with an effective step only."""
    from gyrostat.experiments.objects_from_dicts import build, python_source
    from gyrostat.lab.laboratories import environments

    for rule in environments.RULES:
        setting = lab_of("environments").read({"rule": rule})
        algorithm = lab_of("environments").sides(setting)[0].algorithm
        assert eval(python_source(algorithm), {"gs": gs}) == build(algorithm, "algorithm")
        assert bool(lab_of("environments").conditions(setting)) == (rule in ("plain", "momentum", "Nesterov"))
