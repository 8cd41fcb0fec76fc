"""Forest plots: the effect of each feature in each environment with its interval, and the band that counts as the same."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gyrostat.estimators.invariant.diagnosis import HeterogeneityReport
from gyrostat.estimators.invariant.influence import KEPT, REMOVED, UNCLEAR
from gyrostat.figures.matplotlib_renderer import STYLE, save, settle
from gyrostat.figures.palette import COLOURS

LOOKS = {KEPT: (COLOURS[0], "o"), REMOVED: (COLOURS[1], "s"), UNCLEAR: (COLOURS[6], "D")}
OUTCOMES = {"gaussian": "y", "binomial": "log-odds", "poisson": "log of y"}
"""What effects are measured on, for each family."""
MOST_PANELS, MOST_ENVIRONMENTS = 12, 30
"""The most panels of a figure, and the most environments of a panel. Only the first ones are drawn."""


def forest(report: HeterogeneityReport) -> Figure:
    """A figure with a panel for each feature (removed ones first) and each principal direction of variation.

    The last row of a panel is the mean effect over environments like these, with its interval.

    >>> from gyrostat import heterogeneity
    >>> rng = np.random.default_rng(0)
    >>> X, site = rng.standard_normal((300, 2)), np.repeat(["a", "b", "c"], 100)
    >>> len(forest(heterogeneity(X, X[:, 0] + rng.standard_normal(300), site)).axes)
    2
    """
    panels = [(report.features.isel(feature=j), "feature") for j in _order(report.features)]
    panels += [(report.directions.isel(direction=j), "direction") for j in range(report.directions.sizes["direction"])]
    shown = panels[:MOST_PANELS]
    rows, columns = -(-len(shown) // 3), min(3, len(shown))
    environments = min(report.features.sizes["environment"], MOST_ENVIRONMENTS)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        size = (1.2 + 3.7 * columns, rows * (1.3 + 0.24 * (environments + 1)) + 0.9)
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.12))
        panel_axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (data, dim) in zip(panel_axes, shown, strict=False):
            _panel(axes, data, dim, report.features.attrs["tolerance"])
        for axes in panel_axes[len(shown) :]:
            axes.set_axis_off()
        figure.legend(handles=_handles(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        left = len(panels) - len(shown)
        title = "Effects in every environment" + (f" ({left} more are in the table)" if left else "")
        figure.suptitle(title, fontweight="bold", fontsize=12)
    return figure


def draw_forest(report: HeterogeneityReport, base: Path) -> list[Path]:
    """Write the forest plot as ``base.png`` and ``base.svg``."""
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure = forest(report)
        settle(figure)
        return save(figure, base)


def _order(features: xr.Dataset) -> list[int]:
    """Features by verdict (removed, unclear, kept), then by the size of their mean effects."""
    rank = {REMOVED: 0, UNCLEAR: 1, KEPT: 2}
    size = -np.abs(features.effect_sd.fillna(0.0).mean("environment").values)
    return sorted(range(features.sizes["feature"]), key=lambda j: (rank[str(features.verdict.values[j])], size[j]))


def _panel(axes: Axes, data: xr.Dataset, dim: str, tolerance: float) -> None:
    colour, marker = LOOKS[str(data.verdict.item())]
    effects = data.effect.values[:MOST_ENVIRONMENTS]
    at, mean = np.arange(len(effects)), float(data["mean"])
    axes.axvspan(mean - tolerance * abs(mean), mean + tolerance * abs(mean), color=COLOURS[5], alpha=0.18, linewidth=0)
    axes.axvline(0, color="#111111", linewidth=0.8)
    axes.axvline(mean, color="#111111", linestyle=(0, (5, 2)), linewidth=1.1)
    whiskers = np.abs(
        np.stack([effects - data.low.values[:MOST_ENVIRONMENTS], data.high.values[:MOST_ENVIRONMENTS] - effects])
    )
    axes.errorbar(effects, at, xerr=whiskers, fmt=marker, color=colour, markersize=5, capsize=2, linewidth=1.2)
    ends = [[mean - float(data.mean_low)], [float(data.mean_high) - mean]]
    axes.errorbar([mean], [len(at)], xerr=ends, fmt="d", color="#111111", markersize=5, capsize=2, linewidth=1.2)
    names = [_short(str(name)) for name in data.environment.values[:MOST_ENVIRONMENTS]]
    axes.set_yticks(np.arange(len(at) + 1), [*names, "mean effect"])
    axes.set_ylim(len(at) + 0.5, -0.5)
    axes.set_ylabel("environment")
    axes.locator_params(axis="x", nbins=5)
    of_y = OUTCOMES[data.attrs["family"]]
    unit = f"standard deviations of {of_y} per unit length" if dim == "direction" else f"{of_y} per unit of the feature"
    axes.set_xlabel(f"effect ({unit})", fontsize=8.5)
    axes.set_title(f"{_short(str(data[dim].item()), 28)}: {data.verdict.item()}", color=colour, fontsize=10)


def _handles() -> list:
    looks = [Line2D([], [], color=c, marker=m, linestyle="", label=word) for word, (c, m) in LOOKS.items()]
    return [
        *looks,
        Line2D([], [], color="#111111", linestyle=(0, (5, 2)), label="mean effect over environments"),
        Patch(color=COLOURS[5], alpha=0.18, label="mean ± tolerance"),
        Line2D([], [], color="#111111", linewidth=0.8, label="no effect"),
    ]


def _short(text: str, most: int = 18) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
