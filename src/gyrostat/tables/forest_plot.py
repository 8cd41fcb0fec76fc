"""Forest plots: the effect of each feature in each environment with its interval, and the band that counts as the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Canvas

from gyrostat.estimators.invariant.diagnosis import HeterogeneityReport
from gyrostat.estimators.invariant.influence import KEPT, REMOVED, UNCLEAR
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel, Span
from gyrostat.figures.matplotlib_renderer import draw, render

COLOURS = {KEPT: 0, REMOVED: 1, UNCLEAR: 6}
OUTCOMES = {"gaussian": "y", "binomial": "log-odds", "poisson": "log of y"}
"""What effects are measured on, for each family."""
MOST_PANELS, MOST_ENVIRONMENTS = 12, 30
"""The most panels of a figure, and the most environments of a panel. Only the first ones are drawn."""


def forest_figure(report: HeterogeneityReport) -> Figure:
    """A panel for each feature (removed ones first, then by the size of the effect) and each principal direction of variation.

    The last row of a panel is the mean effect over environments like these, with its interval.
    """
    features, directions = report.features, report.directions
    size = np.abs(features.effect_sd.fillna(0.0).mean("environment").values)
    order = np.lexsort((-size, [(REMOVED, UNCLEAR, KEPT).index(str(verdict)) for verdict in features.verdict.values]))
    data = [features.isel(feature=j) for j in order]
    data += [directions.isel(direction=j) for j in range(directions.sizes["direction"])]
    panels = [_panel(one, features.attrs["tolerance"]) for one in data[:MOST_PANELS]]
    left = len(data) - len(panels)
    title = "Effects in every environment" + (f" ({left} more are in the table)" if left else "")
    return Figure(title=title, panels=panels)


def forest(report: HeterogeneityReport) -> Canvas:
    """The figure on a matplotlib canvas.

    >>> from gyrostat import heterogeneity
    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((300, 2)), np.repeat(["a", "b", "c"], 100)
    >>> len(forest(heterogeneity(X, X[:, 0] + rng.standard_normal(300), site)).axes)
    2
    """
    return draw(forest_figure(report))


def draw_forest(report: HeterogeneityReport, base: Path) -> list[Path]:
    """Write the forest plot as ``base.png`` and ``base.svg``."""
    return render(forest_figure(report), base)


def _panel(data: xr.Dataset, tolerance: float) -> Panel:
    dim = "direction" if "direction" in data.coords else "feature"
    verdict, mean = str(data.verdict.item()), float(data["mean"])
    shown, room, of_y = (
        data.isel(environment=slice(MOST_ENVIRONMENTS)),
        tolerance * abs(mean),
        OUTCOMES[data.attrs["family"]],
    )
    unit = f"{of_y} per unit of the feature" if dim == "feature" else f"standard deviations of {of_y} per unit length"
    places = [_short(str(name)) for name in shown.environment.values]
    effects = shown.effect.values, shown.low.values, shown.high.values
    return Panel(
        title=f"{_short(str(data[dim].item()), 28)}: {verdict}",
        xlabel=f"effect ({unit})",
        ylabel="environment",
        series=[
            Span(mean - room, mean + room, "mean ± tolerance"),
            Dots(places, effects[0], verdict, low=effects[1], high=effects[2], colour=COLOURS[verdict]),
            Dots(
                ["mean effect"],
                [mean],
                "mean effect",
                low=[float(data.mean_low)],
                high=[float(data.mean_high)],
                colour=5,
            ),
            Marker(mean, "mean over environments", axis="x"),
            Marker(0.0, "no effect", axis="x", role="bound"),
        ],
        height=(0.7 + 0.2 * len(places)) / 2.5,
    )


def _short(text: str, most: int = 18) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
