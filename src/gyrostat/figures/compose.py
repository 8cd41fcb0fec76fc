"""Short forms for what most figures are made of: panels, and series of labelled arrays over their runs.

A diverged run (NaN) counts as infinite in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from gyrostat import errors
from gyrostat.engine.summary import quantiles_with_infinity
from gyrostat.errors import GyrostatError
from gyrostat.figures.declarations import Dots, Figure, Line, Panel, Points, Printed, Role, Scale, Series, band
from gyrostat.figures.panel_canvas import Limits

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["band", "dots", "figure", "lines", "panel", "spread"]
RANGE = (0.0, 0.5, 1.0)


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
    low, middle, high = _quantiles(values, over, (within[0], 0.5, within[1]))
    return Points(_other(values, over) if x is None else x, middle, label, low=low, high=high, colour=colour)


def lines(values: xr.DataArray, dim: str, label: str = "{}", *, colour: int = 0, role: Role = "measured") -> list[Line]:
    """A curve for every coordinate of ``dim``, along the other dimension; ``label`` names it: ``"n = {}"``.

    >>> import xarray as xr
    >>> rates = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("n", "step"), coords={"n": [5, 7], "step": [0, 1]})
    >>> [line.label for line in lines(rates, "n", "n = {}")]
    ['n = 5', 'n = 7']
    """
    along, rows = _other(values, dim), values.transpose(dim, ...).values
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
    low, middle, high = _quantiles(values, over, RANGE) if over else [values.values] * 3
    return Dots(_names(_other(values, over)), middle, label, low=low, high=high, colour=colour)


def _quantiles(values: xr.DataArray, over: str, quantiles: tuple[float, ...]) -> np.ndarray:
    runs = values.transpose(over, ...).values
    return quantiles_with_infinity(np.where(np.isnan(runs), np.inf, runs), quantiles)


def _other(values: xr.DataArray, over: str) -> np.ndarray:
    """The coordinates of the one dimension that is left."""
    dims = [dim for dim in values.dims if dim != over]
    if len(dims) != 1:
        raise GyrostatError(
            f"values must have one dimension besides {over!r}; got {', '.join(map(str, dims)) or 'none'}."
        )
    return values[dims[0]].values


def _names(coordinates: np.ndarray) -> list[str]:
    return [f"{x:g}" if isinstance(x, float) else str(x) for x in coordinates.tolist()]
