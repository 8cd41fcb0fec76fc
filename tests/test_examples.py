"""The examples run, at a small size, and show what their pages say."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import coloured_digits  # noqa: E402
import coloured_digits_figure  # noqa: E402


@pytest.fixture(scope="module")
def found():
    return coloured_digits.run(seeds=3, steps=200, spreads=(0.0, 0.4), step_sizes=(0.1, 0.4))


def test_the_result_is_labelled_and_whole(found):
    assert dict(found.sizes) == {"network": 2, "batches": 2, "spread": 2, "step_size": 2, "seed": 3, "step": 21}
    assert list(found.data_vars) == ["agreeing", "random", "reversed", "grey", "colour_effect", "colour_share"]
    assert np.isfinite(found.colour_effect).all()
    for values in found.drop_vars("colour_effect").data_vars.values():
        assert np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()
    same = found.colour_share.isel(step=0, spread=0, step_size=0)
    assert np.array_equal(same.sel(batches="pooled"), same.sel(batches="hetero"))  # compared from the same start


def test_one_environment_per_batch_makes_the_quadratic_network_forget_the_colour(found):
    ds = found.sel(network="quadratic", step_size=0.4)
    lost = (ds.agreeing - ds.reversed).mean("seed")
    share = ds.colour_share.isel(step=-1).mean("seed")
    # At ten seeds and 400 steps: .05 against .20, and a first layer with .07 against .24 on the colours.
    assert lost.sel(batches="hetero", spread=0.4) < 0.6 * lost.sel(batches="pooled", spread=0.4)
    assert share.sel(batches="hetero", spread=0.4) < 0.6 * share.sel(batches="pooled", spread=0.4)
    # Environments that are alike: nothing oscillates, nothing is gained.
    assert lost.sel(batches="hetero", spread=0.0) > 0.6 * lost.sel(batches="pooled", spread=0.0)


def test_environments_differ_by_the_agreement_of_the_colour_alone():
    one = coloured_digits.digits(0.4, seed=3)
    red = one.rows[:, -2].numpy() > 0
    agrees = red == (one.labels.numpy() > 0)
    shares = [agrees[one.environments == e].mean() for e in (0, 1)]
    assert shares[0] == 1.0 and abs(shares[1] - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 650)
    alike = coloured_digits.digits(0.0, seed=3)
    assert torch.equal(one.rows[:, :-2], alike.rows[:, :-2]) and torch.equal(one.labels, alike.labels)
    np.testing.assert_allclose(one.rows[:, :-2].numpy().var(axis=0, ddof=1), 1, rtol=1e-9)
    for digits in (one, alike):
        ink = digits.rows[:, -2:].numpy()
        assert np.allclose((ink**2).sum(axis=1), 2) and ((ink > 0).sum(axis=1) == 1).all()


def test_the_boundary_is_where_two_steps_multiply_to_one():
    for eta in (0.2, 0.5):
        s, spread = 2 * eta * coloured_digits_figure.LEFT, coloured_digits_figure.boundary(eta, 400)
        high, low = (1 + s * (0.2 + sign * 2 * spread) for sign in (1, -1))
        assert high * low == pytest.approx(1, abs=1e-12)
        # Below it, the predicted effect is where the colour that is left to explain makes them so; above, nothing is left.
        b = coloured_digits_figure.predicted_effect(np.array(eta), 0.8 * spread)
        high, low = (1 + 2 * eta * (0.75 * (0.2 + sign * 1.6 * spread) - b) for sign in (1, -1))
        assert high * low == pytest.approx(1, abs=1e-12) and 0 < b < 0.15
        assert coloured_digits_figure.predicted_effect(np.array(eta), 1.01 * spread) == 0


def test_the_figure_shows_labelled_data(found):
    figure = coloured_digits_figure.draw(found)
    assert len(figure.panels) == 6 and figure.note
    assert all(panel.xlabel and panel.ylabel and panel.series for panel in figure.panels)
    low, mean, high = coloured_digits_figure.interval(found.grey)
    from scipy import stats

    values = found.grey.isel(network=0, batches=0, spread=0, step_size=0).values
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (float(low[0, 0, 0, 0]), float(high[0, 0, 0, 0])) == pytest.approx((expected.low, expected.high))
    assert float(mean[0, 0, 0, 0]) == pytest.approx(values.mean())
