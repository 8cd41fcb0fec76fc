"""The picture of a result: what it shows, where the theory applies, and diverged runs that cannot be missed."""

from __future__ import annotations

import matplotlib.figure
import numpy as np
import pytest
import xarray as xr

import gyrostat as gs
from checks import refuses
from gyrostat.figures.axis_scales import capped
from gyrostat.figures.declarations import Band, Figure, Line, Marker, Panel, band
from gyrostat.figures.matplotlib_renderer import draw
from gyrostat.figures.plotly_renderer import plotly_panels
from gyrostat.figures.result_plot import result_figure
from gyrostat.theory import calibration, error_law

ENVIRONMENTS = gs.RandomEnvironments(10, law=gs.TwoPoint(spread=6.0))


@pytest.fixture(scope="module")
def result() -> xr.Dataset:
    problem = gs.Problem(ENVIRONMENTS, gs.FreshGaussian(2000))
    return gs.run(gs.HeteroSGD(0.05), problem, num_steps=150, seeds=7, record_at=16)


def series(figure: Figure, kind: type) -> dict[str, object]:
    return {s.label: s for panel in figure.panels for s in panel.series if isinstance(s, kind)}


def test_the_bands_are_the_quartiles_and_the_theory_is_that_of_the_setting(result):
    figure = result_figure(result)
    assert [panel.title for panel in figure.panels] == ["Shares of the signals", "Errors"]
    shown = series(figure, Band)["spurious signal"]
    np.testing.assert_allclose(
        [shown.low, shown.middle, shown.high], np.quantile(result.spurious, [0.25, 0.5, 0.75], axis=0)
    )
    (line,) = series(figure, Line).values()
    np.testing.assert_array_equal(line.y, calibration(0.05, 1e-3, 150)[result.step] ** 2)
    (marker,) = series(figure, Marker).values()
    law = ENVIRONMENTS.law
    assert marker.at == error_law(law, dimension=10, rank=1, step_size=0.05, num_samples=2000, runs=300)
    assert "eliminated" in figure.note and "7 seeds" in figure.note


@pytest.mark.parametrize(
    ("algorithm", "measurements"),
    [
        (gs.HeteroSGD(0.05, model=gs.SymmetricDifference()), gs.FreshGaussian(900)),
        (gs.HeteroSGD(gs.Annealing(gs.Constant(0.05), gs.Constant(0.01), at=9)), gs.FreshGaussian(900)),
        (gs.GradientDescent(0.05), gs.Identity()),
    ],
)
def test_no_theory_where_it_does_not_apply(algorithm, measurements):
    found = gs.run(algorithm, gs.Problem(ENVIRONMENTS, measurements), num_steps=20, record_at=3)
    figure = result_figure(found)
    assert not series(figure, Line) and not series(figure, Marker) and "Lyapunov" not in figure.note


def test_theory_of_pooled_batches_is_the_growth_alone(result):
    found = gs.run(gs.PooledSGD(0.05), gs.Problem(ENVIRONMENTS, gs.FreshGaussian(900)), num_steps=20, record_at=3)
    assert list(series(result_figure(found), Line)) == ["R_t^2 of eq. (25)"] and not series(
        result_figure(found), Marker
    )
    assert not series(result_figure(result, theory=False), Line)


def test_diverged_runs_are_in_the_legend_the_note_and_the_band():
    problem = gs.Problem(gs.RandomEnvironments(6, law=gs.TwoPoint(spread=13.0)), gs.FreshGaussian(600))
    with pytest.warns(gs.DivergenceWarning):
        found = gs.run(gs.HeteroSGD(0.12), problem, num_steps=60, seeds=24, record_at=7)
    lost = int(np.isfinite(found.diverged).sum())
    figure = result_figure(found)
    assert f"{lost} of 24 runs" in figure.note
    assert all(f"({int(100 * lost / 24)} % of runs diverged)" in label for label in series(figure, Band))
    assert np.isinf(series(figure, Band).popitem()[1].high[-1]) == (lost > 6)
    drawn = gs.plot(found)
    for axes in drawn.axes:
        assert np.isfinite(axes.get_ylim()).all()


def test_a_file_and_a_figure(result, tmp_path):
    for name in ("a.png", "deep/a.svg", "a.pdf"):
        drawn = gs.plot(result, path=tmp_path / name)
        assert isinstance(drawn, matplotlib.figure.Figure) and (tmp_path / name).stat().st_size > 5000
    assert drawn._repr_png_().startswith(b"\x89PNG")
    refuses(lambda: gs.plot(result, path="a.doc"), "path", ".png", "a.doc")


def test_a_grid_has_a_panel_for_each_variable_and_a_band_for_each_setting():
    build = lambda eta: (gs.HeteroSGD(eta), gs.Problem(ENVIRONMENTS, gs.FreshGaussian(900)))  # noqa: E731
    etas = np.linspace(0.01, 0.05, 9).tolist()
    found = gs.run_grid(build, {"eta": etas}, num_steps=lambda eta: round(1 / eta), seeds=2, record_at=4)
    figure = result_figure(found)
    assert len(figure.panels) == 4 and all(len(panel.series) == 6 for panel in figure.panels)
    assert "6 of 9 settings" in figure.note
    np.testing.assert_array_equal(figure.panels[0].series[-1].x, found.step.isel(eta=-1))


def test_own_numbers_get_a_panel_and_an_unknown_truth_is_said():
    rng = np.random.default_rng(0)
    data = gs.DenseData(rng.standard_normal((20, 4)), rng.standard_normal(20), np.arange(20) % 2)
    size = gs.Diagnostic("size", lambda view: abs(view.product).sum(), description="sum of |coefficients|")
    problem = gs.Problem(gs.Observed((4,), 2), data)
    found = gs.run(gs.HeteroSGD(0.01, model=gs.Diagonal()), problem, num_steps=4, record=["signal", "spurious", size])
    figure = result_figure(found)
    assert [panel.title for panel in figure.panels] == ["sum of |coefficients|"]
    assert "truth is unknown: signal, spurious" in figure.note
    gs.plot(found)


def test_a_run_on_own_rows_of_which_nothing_is_known_says_so():
    rng = np.random.default_rng(0)
    data = gs.DenseData(rng.standard_normal((20, 4)), rng.standard_normal(20), np.arange(20) % 2)
    problem = gs.Problem(data.observed(), data)
    for record, names in (({}, "signal, spurious, error, distance"), ({"record": ["loss"]}, "loss")):
        with pytest.warns(UserWarning, match=f"^{names} will be NaN"):
            unknown = gs.run(gs.HeteroSGD(0.01, model=gs.Diagonal()), problem, num_steps=4, **record)
        refuses(lambda unknown=unknown: gs.plot(unknown), "nothing to draw", names, "truth")


def test_what_is_no_result_is_refused(result):
    refuses(lambda: gs.plot(3), "result", "gs.run", "int")
    refuses(lambda: gs.plot(result.isel(step=-1)), "one step only")
    refuses(lambda: gs.plot(result.drop_vars(["signal", "spurious", "error", "distance"])), "record")
    refuses(lambda: gs.plot(result.assign(done=1)), "sweep", "gyrostat plot")


# --- bands with diverged runs, in every figure --------------------------------------------------------


def torn_panel(yscale: str = "linear", **options) -> Panel:
    values = xr.DataArray([[1.0, 2.0], [1.0, 3.0], [2.0, np.nan]], dims=("seed", "step"), coords={"step": [0, 9]})
    return Panel(title="t", xlabel="x", ylabel="y", series=[band(values, "loss")], yscale=yscale, **options)


def test_a_band_counts_diverged_runs_as_infinite():
    (shown,) = torn_panel().series
    assert shown.label == "loss (33 % of runs diverged)"
    assert (
        shown.middle.tolist() == [1.0, 3.0]
        and shown.low.tolist() == [1.0, 2.5]
        and shown.high.tolist() == [1.5, np.inf]
    )


@pytest.mark.parametrize("yscale", ["linear", "log"])
@pytest.mark.parametrize("ylim", [None, (0.5, 20.0)])
def test_both_renderers_draw_an_infinite_end_to_the_top(yscale, ylim):
    panel = torn_panel(yscale, ylim=ylim)
    drawn = draw(Figure(title="t", panels=[panel]))
    (fill,) = (axes for axes in drawn.axes if axes.collections)
    top = fill.collections[0].get_paths()[0].vertices[:, 1].max()
    assert np.isfinite(top) and (top == 20.0 if ylim else top > 3.0)
    numbers = [y for trace in plotly_panels(Figure(title="t", panels=[panel]))[0]["data"] for y in trace["y"]]
    assert max(y for y in numbers if y is not None) == pytest.approx(top)


def test_finite_ends_stay_where_they_are():
    assert capped([1.0, 2.0], "linear", (0.0, 1.0)).tolist() == [1.0, 2.0]
