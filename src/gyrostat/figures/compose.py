"""Short forms for what most figures are made of: panels, and series of labelled arrays over their runs.

A diverged run (NaN) counts as infinite in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gyrostat import errors
from gyrostat.figures.declarations import (
    Dots,
    Figure,
    Line,
    Panel,
    Points,
    Printed,
    Role,
    Scale,
    Series,
    band,
    other_coordinates,
    over_runs,
)
from gyrostat.figures.panel_canvas import Limits

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["band", "dots", "figure", "lines", "panel", "spread"]


@errors.explains_keywords
def panel(
    title: str,
    xlabel: str,
    ylabel: str,
    *series: Series | Iterable[Series],
    xscale: Scale = "linear",
    yscale: Scale = "linear",
    xlim: Limits = None,
    ylim: Limits = None,
    height: float = 1.0,
) -> Panel:
    """One set of axes with its series, or lists of series.

    >>> panel("Loss", "step", "loss", Line([0, 1], [1.0, 0.1], "descent"), yscale="log").yscale
    'log'
    """
    together = [one for part in series for one in ([part] if isinstance(part, Series) else part)]
    return Panel(
        title=title,
        xlabel=xlabel,
        ylabel=ylabel,
        series=together,
        xscale=xscale,
        yscale=yscale,
        xlim=xlim,
        ylim=ylim,
        height=height,
    )


@errors.explains_keywords
def figure(
    *panels: Panel,
    title: str = "",
    note: str = "",
    columns: int = 3,
    printed: Mapping[str, tuple[str, float | str]] | None = None,
) -> Figure:
    """Panels side by side. ``printed`` has what a paper prints and what we find, by quantity.

    The title of the experiment stands above a figure that has none of its own.

    >>> shown = figure(panel("Runs", "M", "share"), printed={"transition in M": ("around 5", 3.84)})
    >>> shown.printed[0].paper, shown.printed[0].ours
    ('around 5', 3.84)
    """
    rows = [Printed(quantity=what, paper=paper, ours=ours) for what, (paper, ours) in (printed or {}).items()]
    return Figure(title=title, panels=panels, note=note, columns=columns, printed=rows)


def spread(
    values: xr.DataArray, label: str, *, x: object = None, over: str = "seed", within: tuple[float, float] = (0.0, 1.0),
    colour: int | None = None,
) -> Points:  # fmt: skip
    """Medians over the runs with whiskers, along the one other dimension.

    The whiskers reach from one quantile to another, ``within``; from the least to the largest run unless told otherwise.

    >>> import xarray as xr
    >>> shown = spread(xr.DataArray([[1.0, 2.0, 6.0]], dims=("width", "seed"), coords={"width": [4]}), "rate")
    >>> shown.x.tolist(), shown.y.tolist(), shown.high.tolist()
    ([4], [2.0], [6.0])
    """
    low, middle, high = over_runs(values, over, (within[0], 0.5, within[1]))
    return Points(other_coordinates(values, over) if x is None else x, middle, label, low=low, high=high, colour=colour)


def lines(values: xr.DataArray, dim: str, label: str = "{}", *, colour: int = 0, role: Role = "measured") -> list[Line]:
    """A curve for every coordinate of ``dim``, along the other dimension; ``label`` names it: ``"n = {}"``.

    >>> import xarray as xr
    >>> rates = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("n", "step"), coords={"n": [5, 7], "step": [0, 1]})
    >>> [line.label for line in lines(rates, "n", "n = {}")]
    ['n = 5', 'n = 7']
    """
    along, rows = other_coordinates(values, dim), values.transpose(dim, ...).values
    return [
        Line(
            along,
            y,
            label.format(int(at) if isinstance(at, float) and at.is_integer() else at),
            role=role,
            colour=colour + i,
        )
        for i, (at, y) in enumerate(zip(values[dim].values.tolist(), rows, strict=True))
    ]


def dots(values: xr.DataArray, label: str, *, over: str = "", colour: int | None = None) -> Dots:
    """A point for every coordinate of one dimension: medians ``over`` the runs with their ranges, or single values.

    >>> import xarray as xr
    >>> dots(xr.DataArray([0.5, 2.0], dims="rule", coords={"rule": ["plain", "scaled"]}), "ratio").categories
    ['plain', 'scaled']
    """
    low, middle, high = over_runs(values, over, (0.0, 0.5, 1.0)) if over else (None, values.values, None)
    names = [f"{x:g}" if isinstance(x, float) else str(x) for x in other_coordinates(values, over).tolist()]
    return Dots(names, middle, label, low=low, high=high, colour=colour)
