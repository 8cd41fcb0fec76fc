"""The picture of a result: what it shows, where the theory applies, and nothing that misleads."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import gyrostat as gs
from checks import refuses
from gyrostat.figures.declarations import Band, Dots, Figure, Line, Marker
from gyrostat.figures.result_plot import result_figure
from gyrostat.theory.ours import error_law
from gyrostat.theory.xu2024 import calibration

ENVIRONMENTS = gs.RandomEnvironments(10, law=gs.TwoPoint(spread=6.0))


@pytest.fixture(scope="module")
def result() -> xr.Dataset:
    problem = gs.Problem(ENVIRONMENTS, gs.FreshGaussian(2000))
    return gs.run(gs.HeteroSGD(0.05), problem, num_steps=150, seeds=7, record_at=16)


def grid(**axes) -> xr.Dataset:
    """What ``run_grid`` returns, made up: the spurious signal grows with the spread, and the number of steps falls with eta."""
    sizes = {name: len(values) for name, values in axes.items()}
    dims = (*axes, "seed", "record")
    shape = (*sizes.values(), 3, 4)
    spread = np.arange(np.prod(shape)).reshape(shape) / np.prod(shape)
    data = {
        "signal": (dims, 0 * spread + 1),
        "spurious": (dims, 2.5 * spread),
        "diverged": (dims[:-1], np.inf + spread[..., 0]),
    }
    step = xr.DataArray(np.arange(4) * np.ones((*sizes.values(), 1), dtype=int), dims=(*axes, "record"))
    return xr.Dataset(data, coords={**axes, "step": step})


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
    assert not series(result_figure(result, theory=False), Line)


@pytest.mark.parametrize(
    ("algorithm", "measurements", "lines"),
    [
        (gs.HeteroSGD(0.05, model=gs.models.SymmetricDifference()), gs.FreshGaussian(900), []),
        (
            gs.HeteroSGD(gs.schedules.Annealing(gs.schedules.Constant(0.05), gs.schedules.Constant(0.01), at=9)),
            gs.FreshGaussian(900),
            [],
        ),
        (gs.PooledSGD(0.05), gs.FreshGaussian(900), ["R_t^2 of eq. (25)"]),
    ],
)
def test_no_theory_where_it_does_not_apply(algorithm, measurements, lines):
    figure = result_figure(gs.run(algorithm, gs.Problem(ENVIRONMENTS, measurements), num_steps=20, record_at=3))
    assert list(series(figure, Line)) == lines and not series(figure, Marker) and "Lyapunov" not in figure.note


def test_diverged_runs_are_in_the_legend_the_note_and_the_band():
    problem = gs.Problem(gs.RandomEnvironments(6, law=gs.TwoPoint(spread=13.0)), gs.FreshGaussian(600))
    with pytest.warns(gs.errors.DivergenceWarning):
        exploded = gs.run(gs.HeteroSGD(0.12), problem, num_steps=60, seeds=24, record_at=7)
    lost = int(np.isfinite(exploded.diverged).sum())
    figure = result_figure(exploded)
    assert f"{lost} of 24 runs" in figure.note
    assert all(f"({int(100 * lost / 24)} % of runs diverged)" in label for label in series(figure, Band))
    assert np.isinf(series(figure, Band).popitem()[1].high[-1]) == (lost > 6)


@pytest.mark.parametrize("name", ["a.png", "deep/a.svg", "a.pdf", "a.pgf"])
def test_a_file_for_print(result, tmp_path, name):
    drawn = gs.plot(result, path=tmp_path / name, width="column")
    assert (tmp_path / name).stat().st_size > 5000
    assert drawn.get_figwidth() == 3.3 and drawn._suptitle.get_text() == ""


def test_a_notebook_shows_it_and_what_is_no_width_or_file_is_refused(result, tmp_path):
    assert gs.plot(result)._repr_png_().startswith(b"\x89PNG")
    refuses(lambda: gs.plot(result, width="wide"), "width", "'column'", "'wide'")
    for path in ("a.doc", 3):
        refuses(lambda path=path: gs.plot(result, path=path), "path", ".png", ".pgf", str(path))
    (tmp_path / "file").touch()
    refuses(lambda: gs.plot(result, path=tmp_path / "file" / "a.png"), "path", "cannot be written", "a.png")


def test_one_axis_of_a_grid_varies_at_a_time():
    """Settings used to be chosen along the diagonal of the grid, so that every axis changed from one band to the next."""
    wide = grid(eta=[0.01, 0.02, 0.05], m=[100, 200, 400, 800])
    figure = result_figure(wide)
    assert [panel.title for panel in figure.panels][:2] == [
        "invariant signal, eta varies",
        "invariant signal, m varies",
    ]
    assert [one.label for one in figure.panels[1].series] == ["m = 100", "m = 200", "m = 400", "m = 800"]
    assert figure.columns == 2 and "around eta = 0.02, m = 400" in figure.note and "6 of 12 settings" in figure.note
    np.testing.assert_array_equal(figure.panels[1].series[-1].x, wide.step.isel(eta=1, m=3))
    few = result_figure(grid(eta=[0.01, 0.02], m=[100, 200]))
    assert [one.label for one in few.panels[0].series][1:3] == ["eta = 0.01, m = 200", "eta = 0.02, m = 100"]


def test_panels_of_shares_have_one_scale_and_sizes_a_log_axis():
    """Signal and spurious signal used to have axes of their own: a share of 2.5 looked like one of 1."""
    result = grid(eta=[0.01, 0.02, 0.05])
    shares, others, sizes = result_figure(result.assign(error=result.signal + 1e-8 * result.spurious)).panels
    assert shares.ylim == others.ylim and others.ylim[1] > 2
    assert (shares.yscale, sizes.yscale) == ("linear", "log")  # on a linear axis, 1e-8 of an error would fill the panel


def test_a_vector_has_a_band_for_each_of_its_first_components():
    """A diagnostic that gives several numbers used to be left out without a word."""
    problem = gs.Problem(ENVIRONMENTS, gs.Identity())
    found = gs.run(gs.HeteroSGD(0.05), problem, num_steps=6, record=["signal", "singular_values"], seeds=2)
    figure = result_figure(found)
    assert [panel.ylabel for panel in figure.panels] == ["share that is learnt", "singular_values"]
    assert [one.label for one in figure.panels[1].series] == [f"singular_values[{i}]" for i in range(4)]
    np.testing.assert_allclose(figure.panels[1].series[1].middle, found.singular_values[..., 1].median("seed"))
    assert "singular_values: the first 4 of 10 components" in figure.note
    several = grid(eta=[1, 2]).assign(x=(("eta", "seed", "record", "i"), np.ones((2, 3, 4, 2))))
    assert [panel.ylabel for panel in result_figure(several).panels] == ["signal", "spurious", "x[0]", "x[1]"]


def test_the_end_against_an_axis():
    found = grid(eta=[0.05, 0.01], rule=["plain", "scaled"])
    first, second = result_figure(found, against="eta").panels
    assert (second.title, second.xlabel, second.ylabel) == ("spurious signal at the end", "eta", "spurious")
    assert [one.label for one in first.series] == ["rule = plain", "rule = scaled"] and first.ylim == second.ylim
    band = second.series[0]
    assert band.x.tolist() == [0.01, 0.05]
    np.testing.assert_allclose(band.middle, found.spurious.isel(record=-1, rule=0).median("seed").values[::-1])
    by_rule = result_figure(found, against="rule").panels[1]
    assert [type(one) for one in by_rule.series] == [Dots, Dots] and by_rule.series[0].categories == ["plain", "scaled"]
    wide = result_figure(grid(eta=10.0 ** np.arange(-4, 0)), against="eta")
    assert wide.panels[0].xscale == "log" and len(wide.panels[0].series) == 1
    refuses(lambda: gs.plot(found, against="et"), "against", "eta, rule", "'et'")


@pytest.mark.filterwarnings("ignore:.* will be NaN")
def test_own_numbers_get_a_panel_and_an_unknown_truth_is_said():
    rng = np.random.default_rng(0)
    data = gs.DenseData(rng.standard_normal((20, 4)), rng.standard_normal(20), np.arange(20) % 2)
    size = gs.diagnostics.Diagnostic("size", lambda view: abs(view.product).sum(), description="sum of |coefficients|")
    algorithm, problem = gs.HeteroSGD(0.01, model=gs.Diagonal()), gs.Problem(gs.Observed((4,), 2), data)
    figure = result_figure(gs.run(algorithm, problem, num_steps=4, record=["signal", "spurious", size]))
    assert [panel.title for panel in figure.panels] == ["sum of |coefficients|"]
    assert "truth is unknown: signal, spurious" in figure.note
    unknown = gs.run(algorithm, problem, num_steps=4, record=["full_loss"])
    refuses(lambda: gs.plot(unknown), "nothing to draw", "full_loss", "truth")


def test_what_is_no_result_is_refused(result):
    refuses(lambda: gs.plot(3), "result", "gs.run", "int")
    refuses(lambda: gs.plot(result.isel(step=-1)), "one step only")
    refuses(lambda: gs.plot(result.drop_vars(["signal", "spurious", "error", "distance"])), "record")
    refuses(lambda: gs.plot(result.assign(done=1)), "sweep", "gyrostat plot")
    refuses(lambda: gs.plot(result, against="eta"), "against", "has none", "'eta'")
