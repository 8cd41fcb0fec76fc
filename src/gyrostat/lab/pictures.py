"""What the computations find, as figures: the page and the files draw them as they draw the figures of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gyrostat.figures.declarations import Band, Figure, Heat, Panel, Points, Series
from gyrostat.figures.panel_canvas import edges
from gyrostat.figures.plotly_renderer import plotly_panels
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import RECORDS, Lab

INK, GRID = "#111111", "#7A7A7A33"
"""Colours of the page that it replaces on a dark one, as those of the data."""


def curves_figure(lab: Lab, setting: Setting, found: Mapping[str, Any]) -> Figure:
    """Medians and quartiles of the sides with the predicted curves, a panel for each side or one for all.

    ``found`` has the message of every side; where it is empty, nothing is measured yet, and the predicted curves stand alone.
    """
    view, sides = lab.view(setting), lab.sides(setting)
    steps = np.round(np.linspace(0, setting["num_steps"], RECORDS)).astype(int)
    predicted, ends = lab.predicted(setting, steps), _shared_ends(found, view.log)
    panels = []
    for group in [sides] if view.together else [[side] for side in sides]:
        series: list[Series] = []
        for side in group if found else ():
            for curve in view.curves:
                low, middle, high = found[side.name]["curves"][curve.key]
                label = side.title if view.together else curve.label
                series.append(Band(found[side.name]["steps"], low, middle, high, label))
        panels.append(
            Panel(
                title=view.title if view.together else group[0].title,
                xlabel="step",
                ylabel=view.label,
                series=[*series, *(predicted[side.name] for side in group if side.name in predicted)],
                xscale="log" if view.log_time else "linear",
                yscale="log" if view.log else "linear",
                xlim=None if view.log_time else (0, setting["num_steps"]),
                ylim=ends,
            )
        )
    return Figure(title=lab.title, panels=panels)


def _shared_ends(found: Mapping[str, Any], log: bool) -> tuple[float, float] | None:
    """The ends of the axis of all sides, so that they can be compared. What explodes is cut off at three times the median."""
    curves = [curve for side in found.values() for curve in side["curves"].values()]
    if log:
        values = np.array(curves)
        seen = values[np.isfinite(values) & (values > 0)]
        return (float(seen.min()) / 2, float(seen.max()) * 2) if seen.size else None
    top = 0.0
    for _, middle, high in curves:
        median, most = (float(x[np.isfinite(x)].max(initial=0.0)) for x in (middle, high))
        top = max(top, min(most, 3 * median), min(median, 50.0))
    return 0.0, 1.06 * (top or 1.0)


def phase_figure(lab: Lab, setting: Setting, found: Mapping[str, Any]) -> Figure:
    """The phase diagram with the predicted boundary and the current point."""
    plane, x, y = lab.plane, found["x"], found["y"]
    across, up = lab.controls[plane.across], lab.controls[plane.up]
    boundary = lab.boundary(setting, x, y)
    panel = Panel(
        title=plane.title,
        xlabel=f"{across.label} {across.symbol}",
        ylabel=f"{up.label} {up.symbol}",
        series=[
            Heat(x, y, found["z"], plane.label, low=plane.low, high=plane.high),
            *([boundary] if boundary else []),
            Points([setting[plane.across]], [setting[plane.up]], "the current setting", colour=1),
        ],
        xscale=across.scale,  # type: ignore[arg-type]
        yscale=up.scale,  # type: ignore[arg-type]
        xlim=tuple(edges(x, across.scale)[[0, -1]].tolist()),
        ylim=tuple(edges(y, up.scale)[[0, -1]].tolist()),
    )
    return Figure(title=lab.title, panels=[panel], note=plane.note)


def page_panels(figure: Figure) -> list[dict[str, Any]]:
    """The panels of a figure as the page draws them: with a text for who cannot see them, and a quiet frame."""
    panels = []
    for panel, drawn in zip(figure.panels, plotly_panels(figure), strict=True):
        heats = [trace for trace in drawn["data"] if trace["type"] == "heatmap"]
        for trace in heats:
            meta = trace["meta"]
            trace["colorbar"] = {"thickness": 12, "outlinewidth": 0, "title": {"text": meta["label"], "side": "right"}}
            trace["customdata"] = [
                [[x, y] for x in meta["x"]] for y in meta["y"]
            ]  # centres of cells, named by their texts
        layout = drawn["layout"]
        for axis, text in ((layout["xaxis"], panel.xlabel), (layout["yaxis"], panel.ylabel if heats else "")):
            axis |= {"gridcolor": GRID, "zerolinecolor": GRID, "automargin": True, "nticks": 6}
            axis |= {"title": {"text": text, "standoff": 6}, "exponentformat": "none"}
            if axis["type"] == "log":
                axis["exponentformat"] = "power"
                if "range" in axis and axis["range"][1] - axis["range"][0] < 2:
                    axis |= {"dtick": "D2", "tickformat": "~g"}
        layout |= {
            "showlegend": False,
            "hovermode": "closest" if heats else "x",
            "margin": {"l": 40, "r": 80 if heats else 16, "t": 8, "b": 40},
            "paper_bgcolor": "#0000",
            "plot_bgcolor": GRID if heats else "#0000",  # cells that are not known
            "font": {"family": "system-ui, sans-serif", "size": 12, "color": INK},
        }
        description = f"{panel.title}: {panel.ylabel} against {panel.xlabel}"
        panels.append({"title": panel.title, "description": description, **drawn})
    return panels
