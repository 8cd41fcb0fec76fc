"""The curves that are part of the package: of the present settings, with the present numbers, and small."""

from __future__ import annotations

import numpy as np

from gyrostat.lab import shipped_curves
from gyrostat.lab.laboratories import LABS

REMEDY = "python -m gyrostat.lab.shipped_curves brings the file up to date"


def preset_setting(lab: str, name: str) -> dict:
    return LABS[lab].read(next(preset.values for preset in LABS[lab].presets() if preset.name == name))


def test_every_default_and_every_preset_has_its_curves_and_nothing_else_has():
    assert set(shipped_curves.read()) == set(shipped_curves.offered()), REMEDY


def test_the_sides_and_the_curves_are_those_of_the_present_laboratories():
    for state, (lab, setting) in shipped_curves.offered().items():
        found = shipped_curves.read()[state]
        assert found["version"] != "0+unknown"
        assert [side["side"] for side in found["sides"]] == [side.name for side in lab.sides(setting)]
        for side in found["sides"]:
            assert set(side["curves"]) == {curve.key for curve in lab.view(setting).curves}
            assert side["seeds"] == setting["seeds"] and side["steps"][-1] == setting["num_steps"]


def test_the_numbers_are_those_that_a_run_gives_now():
    """One preset stands for all: its programs compile in a second."""
    lab, setting = LABS["environments"], preset_setting("environments", "xu2024/fig2")
    kept, now = shipped_curves.find(lab, setting), shipped_curves.compute(lab, setting)
    assert kept is not None
    for mine, found in zip(kept["sides"], now["sides"], strict=True):
        for key, curve in found["curves"].items():
            for name, values in curve.items():
                # Four digits are kept; another machine rounds other sums.
                np.testing.assert_allclose(mine["curves"][key][name], values, rtol=2e-3, atol=1e-9, err_msg=REMEDY)


def test_another_setting_has_none():
    lab = LABS["environments"]
    assert shipped_curves.find(lab, lab.read({})) is not None
    assert shipped_curves.find(lab, lab.read({"spread": "6.1"})) is None


def test_the_file_is_small():
    assert shipped_curves.FILE.stat().st_size < 400_000
