"""The curves that the server draws into the page: they are the shipped ones, at the right places."""

from __future__ import annotations

import math
import re

import pytest

from gyrostat.lab import shipped_curves
from gyrostat.lab.export import read_state, read_values
from gyrostat.lab.first_drawing import Axis, first_drawing


def last_place(path: str) -> tuple[float, float]:
    """The last point of a path, as shares of the panel from the left and from below."""
    x, y = re.findall(r"[\d.-]+", path)[-2:]
    return float(x) / 1000, 1 - float(y) / 1000


def value_at(height: float, ticks: list, log: bool) -> float:
    """What the labels of the axis say about a height."""
    (a, low), (b, high) = ticks[0], ticks[-1]
    low, high = (number(text) for text in (low, high))
    return (
        low + (high - low) * (100 * height - a) / (b - a)
        if not log
        else 10 ** (math.log10(low) + math.log10(high / low) * (100 * height - a) / (b - a))
    )


def number(text: str) -> float:
    plain = text.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return 10.0 ** float(plain[2:]) if plain != text else float(text)


@pytest.mark.parametrize("state", ["lab=environments", "lab=completion", "lab=factors"])
def test_the_ends_of_the_medians_can_be_read_off_the_axes(state):
    drawing, (lab, setting) = first_drawing(state), read_state(state)
    assert drawing is not None
    shipped = {side["side"]: side for side in shipped_curves.find(lab, setting)["sides"]}
    drawn = [curve for panel in drawing.panels for curve in panel.curves]
    wanted = [
        shipped[side.name]["curves"][curve.key] for side in lab.sides(setting) for curve in lab.view(setting).curves
    ]
    assert len(drawn) == len(wanted)
    for curve, values in zip(drawn, wanted, strict=True):
        x, height = last_place(curve.median)
        assert x == 1.0  # the last step is at the right end
        found = value_at(height, drawing.panels[0].up, drawing.log)
        # A place is rounded to a thousandth of the panel, which is the whole range: on log axes, tens of decades.
        if drawing.log:
            assert math.log10(found) == pytest.approx(math.log10(values["middle"][-1]), abs=0.05)
        else:
            assert found == pytest.approx(values["middle"][-1], abs=2e-3)


def test_only_shipped_curves_of_the_address_are_drawn():
    assert first_drawing("") is not None
    for other in ("spread=6.1", "tab=data", "tab=phase&lab=factors", "lab=nowhere", "nothing=1", "spread=<b>"):
        assert first_drawing(other) is None
    assert read_values("lab=factors&tab=data")[2] == "data"


def test_every_offered_setting_can_be_drawn():
    for state in shipped_curves.read():
        drawing = first_drawing(state)
        assert drawing is not None and all(curve.median for panel in drawing.panels for curve in panel.curves)


def test_ticks_lie_on_the_axis():
    for axis in (
        Axis(low=0, high=143, log=False),
        Axis(low=-31.2, high=1.9, log=True),
        Axis(low=0, high=1.06, log=False),
    ):
        ticks = axis.ticks(5)
        assert 3 <= len(ticks) <= 7 and all(0 <= tick.percent <= 100 for tick in ticks)
        assert all(axis.share(number(tick.text)) == pytest.approx(tick.percent / 100, abs=1e-3) for tick in ticks)
