"""Figures and tables of sweeps, the predictors over them, and the commands."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from test_sweep_run import with_
from typer.testing import CliRunner

import gyrostat as gs
from checks import refuses
from gyrostat.cli import app
from gyrostat.figures.declarations import Contour, Figure, Heat, Marker, Panel, Points
from gyrostat.figures.matplotlib_renderer import draw
from gyrostat.sweeps import plots, read_spec, tables
from gyrostat.sweeps.plots import load_predictions, predict
from gyrostat.sweeps.store import load_sweep, with_success
from gyrostat.theory import RULES


def made_up(order=("iid",), seeds=40) -> xr.Dataset:
    """A sweep whose share of successes is one half where spread = 100 * step_size, except a cell that is not done."""
    etas, spreads = np.linspace(0.02, 0.1, 5), np.linspace(1, 11, 21)
    share = 1 / (1 + np.exp(-2 * (spreads[None] - 100 * etas[:, None])))
    hits = np.arange(seeds)[None, None] < np.round(share * seeds)[:, :, None]
    dims, size = ("step_size", "spread", "order"), (5, 21, len(order))
    data = np.broadcast_to(hits[:, :, None], (*size, seeds)).astype("int8")
    done = np.full(size, seeds)
    done[0, 20] = 0
    ds = xr.Dataset(
        {
            "succeeded": ((*dims, "seed"), data),
            "diverged": ((*dims, "seed"), np.full((*size, seeds), -1)),
            "spurious": ((*dims, "seed"), 1.0 - data),
            "done": (dims, done),
            "steps": (dims, np.full(size, 200)),
        },
        coords={"step_size": etas, "spread": spreads, "order": list(order), "seed": np.arange(seeds)},
        attrs={"success": "spurious below 0.1"},
    )
    ds.step_size.attrs.update(label="step size eta", scale="log")
    return with_success(ds)


def heats(figure: Figure) -> list[list]:
    return [[s for s in panel.series if isinstance(s, Heat)] for panel in figure.panels]


def test_the_boundary_is_drawn_where_half_of_the_runs_succeed():
    (panel,) = plots.diagram(made_up(), "T", "S", {}).panels
    assert panel.xscale == "log" and panel.xlabel == "step size eta"
    lines = draw(Figure(title="T", panels=[panel])).axes[0].lines
    x, y = (end[:-1] for end in lines[0].get_data())  # a gap ends each piece
    assert np.allclose(y, 100 * x, rtol=0.08)  # a step of the grid is half a unit


def test_a_panel_for_every_other_setting_and_holes_filled():
    figure = plots.diagram(made_up(("iid", "cyclic")), "T", "S", {})
    assert [panel.title for panel in figure.panels] == ["order: iid", "order: cyclic"] and figure.columns == 2
    assert all(np.isfinite(heat.z).all() for (heat,) in heats(figure))
    assert "208 of 210 cells were computed" in figure.note
    drawn = plots.slices(made_up(("iid", "cyclic")), "T")
    assert {panel.ylim for panel in drawn.panels} == {(-0.05, 1.05)}  # shares beside each other have one scale
    points = [s for s in drawn.panels[0].series if isinstance(s, Points)]
    assert len(points) == 4 and (points[0].low[:-1] <= points[0].y[:-1]).all()


def test_one_axis_gives_a_curve_with_marks():
    one = made_up().isel(step_size=2, drop=True)
    rising = xr.DataArray(np.linspace(-1, 1, 21)[:, None], coords={"spread": one.spread, "order": ["iid"]})
    (panel,) = plots.diagram(one, "T", "", {"rule": rising}).panels
    assert [type(s) for s in panel.series] == [Points, Marker] and panel.series[1].at == pytest.approx(6.0)
    assert plots.slices(one, "T") is None
    draw(Figure(title="T", panels=[panel]))


def test_the_table_of_the_boundary():
    ds = made_up()
    headings, rows = tables.boundary_table(ds, {})
    assert headings == ["step_size", "order", "spread at one half"]
    assert [float(row[2]) for row in rows] == pytest.approx([2, 4, 6, 8, 10], abs=0.1)
    table = tables.cell_table(ds)
    assert len(table) == 104 and list(table.columns[:3]) == ["step_size", "spread", "order"]


def test_without_success_the_median_is_shown():
    ds = made_up().drop_vars(["success", "succeeded", "success_low", "success_high"])
    (panel,) = plots.diagram(ds, "T", "", {}).panels
    assert [type(s) for s in panel.series] == [Heat] and "median of spurious" in panel.series[0].label
    assert tables.boundary_table(ds, {}) == ([], [])


def test_contours_are_drawn_in_pieces_with_one_entry():
    x = np.linspace(-2, 2, 41)
    two_rings = np.minimum((x[None] - 1) ** 2, (x[None] + 1) ** 2) + x[:, None] ** 2
    axes = draw(
        Figure(
            title="T",
            panels=[Panel(title="P", xlabel="x", ylabel="y", series=[Contour(x, x, two_rings, "rings", level=0.25)])],
        )
    ).axes[0]
    assert np.isnan(axes.lines[0].get_xdata()).sum() == 2 and axes.get_legend_handles_labels()[1] == ["rings"]
    x, y = axes.lines[0].get_xydata()[~np.isnan(axes.lines[0].get_xdata())].T
    assert np.allclose(y**2 + (np.abs(x) - 1) ** 2, 0.25, atol=0.01)


def test_predictions_are_kept_beside_the_store(tmp_path):
    table = with_(
        axes={"spread": {"linear": [1, 20], "points": 40}, "order": ["iid", "cyclic"], "step_size": [0.05, 0.1]}
    )
    predict(read_spec(table), tmp_path)
    found = load_predictions(tmp_path)
    assert set(found) == {"surrogate", *RULES} and found["lyapunov"].sizes == {"spread": 16, "order": 2, "step_size": 2}
    only_iid = found["surrogate"].notnull()
    assert only_iid.sel(order="iid").all() and not only_iid.sel(order="cyclic").any()
    assert load_predictions(tmp_path / "elsewhere") == {}


def test_commands(tmp_path, monkeypatch):
    run = CliRunner().invoke
    listed = run(app, ["sweep", "--list"])
    assert listed.exit_code == 0 and "step-spread" in listed.output
    file = tmp_path / "small.toml"
    file.write_text(
        'title = "Small"\nnum_steps = 40\nseeds = 3\nmeasurements.kind = "Identity"\n'
        'algorithm = {kind = "HeteroSGD", step_size = 0.05, init_scale = 0.05}\n'
        'environments = {kind = "RandomEnvironments", dimension = 3, law.kind = "TwoPoint"}\n'
        "axes.spread = [2.0, 8.0, 14.0]\naxes.step_size = [0.05, 0.07]\nsuccess.spurious.below = 0.1\n"
    )
    out = tmp_path / "out"
    done = run(app, ["sweep", str(file), "--out", str(out), "--jobs", "0", "--set", "axes.spread=[2.0, 8.0]"])
    assert done.exit_code == 0, done.output
    assert "4 of 4 cells done" in done.output and "The boundary" in done.output
    wanted = {
        "diagram.png",
        "diagram.svg",
        "slices.png",
        "slices.svg",
        "table.csv",
        "theory.json",
        "sweep.json",
        "store.zarr",
    }
    assert wanted <= {path.name for path in out.iterdir()}
    gs.sweep(read_spec(file, ["axes.spread=[2.0, 8.0]"]), out=tmp_path / "python", jobs=0)
    assert (tmp_path / "python" / "theory.json").read_bytes() == (out / "theory.json").read_bytes()
    before = (out / "diagram.png").read_bytes()
    (out / "diagram.png").unlink()
    monkeypatch.setattr("gyrostat.engine.simulate.simulate", None)  # drawing again computes nothing
    assert run(app, ["plot", str(out)]).exit_code == 0 and (out / "diagram.png").read_bytes() == before
    assert (out / "table.csv").read_text().startswith("spread,step_size,seeds")
    for arguments in (["plot", str(tmp_path)], ["sweep"], ["sweep", str(file), "--out", str(out)]):
        assert isinstance(run(app, arguments).exception, gs.GyrostatError)


def test_a_folder_without_a_sweep(tmp_path):
    refuses(lambda: load_sweep(tmp_path), "holds no sweep")
