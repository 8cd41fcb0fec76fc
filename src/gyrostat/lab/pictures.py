"""What the computations find, as figures: the page and the files draw them as they draw the figures of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gyrostat.figures.declarations import Band, Figure, Heat, Line, Panel, Points, Series
from gyrostat.figures.panel_canvas import edges
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import RECORDS, Lab


def curves_figure(lab: Lab, setting: Setting, sides: Mapping[str, Any]) -> Figure:
    """Medians and quartiles of the sides with the predicted curves, a panel for each side or one for all.

    Where ``sides`` is empty, nothing is measured yet, and the predicted curves stand alone.
    """
    view = lab.view(setting)
    steps = np.round(np.linspace(0, setting["num_steps"], RECORDS)).astype(int)
    predicted, ends = lab.predicted(setting, steps), _shared_ends(sides, view.log)
    panels = []
    for group in [lab.sides(setting)] if view.together else [[side] for side in lab.sides(setting)]:
        series: list[Series] = []
        for side in group if sides else ():
            for curve in view.curves:
                low, middle, high = sides[side.name]["curves"][curve.key]
                label = side.title if view.together else curve.label
                series.append(Band(sides[side.name]["steps"], low, middle, high, label))
        names = [side.name for side in group]
        series += [Line(line.x, line.y, line.label, role="theory") for line in predicted if line.side in names]
        panels.append(
            Panel(
                title=view.title if view.together else group[0].title,
                xlabel="step",
                ylabel=view.label,
                series=series,
                xscale="log" if view.log_time else "linear",
                yscale="log" if view.log else "linear",
                xlim=None if view.log_time else (0, setting["num_steps"]),
                ylim=ends,
            )
        )
    return Figure(title=lab.title, panels=panels)


def _shared_ends(sides: Mapping[str, Any], log: bool) -> tuple[float, float] | None:
    """The ends of the axis of all sides, so that they can be compared. What explodes is cut off at three times the median."""
    curves = [curve for side in sides.values() for curve in side["curves"].values()]
    if log:
        values = np.concatenate([curve.ravel() for curve in curves]) if curves else np.empty(0)
        seen = values[np.isfinite(values) & (values > 0)]
        return (float(seen.min()) / 2, float(seen.max()) * 2) if seen.size else None
    top = 0.0
    for _, middle, high in curves:
        median, most = (float(x[np.isfinite(x)].max(initial=0.0)) for x in (middle, high))
        top = max(top, min(most, 3 * median), min(median, 50.0))
    return 0.0, 1.06 * (top or 1.0)


def phase_figure(lab: Lab, setting: Setting, cells: Mapping[str, Any]) -> Figure:
    """The phase diagram with the predicted boundary and the current point."""
    plane, x, y = lab.plane, cells["x"], cells["y"]
    across, up = lab.controls[plane.across], lab.controls[plane.up]
    series: list[Series] = [Heat(x, y, cells["z"], plane.label, low=plane.low, high=plane.high)]
    if boundary := lab.boundary(setting, x, y):
        label, across_values, up_values = boundary
        series.append(Line(across_values, up_values, label, role="theory"))
    series.append(Points([setting[plane.across]], [setting[plane.up]], "the current setting", colour=1))
    panel = Panel(
        title=plane.title,
        xlabel=f"{across.label} {across.symbol}",
        ylabel=f"{up.label} {up.symbol}",
        series=series,
        xscale=across.scale,  # type: ignore[arg-type]
        yscale=up.scale,  # type: ignore[arg-type]
        xlim=tuple(edges(x, across.scale)[[0, -1]].tolist()),
        ylim=tuple(edges(y, up.scale)[[0, -1]].tolist()),
    )
    return Figure(title=lab.title, panels=[panel], note=plane.note)
