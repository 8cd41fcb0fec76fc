"""`plot`: what a person wants to see of a result first, as bands over seeds with the theory where it applies."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat import errors
from gyrostat.engine.reduction.choose import rank_of
from gyrostat.engine.results import described
from gyrostat.engine.summary import QUARTILES, quantiles_with_infinity
from gyrostat.errors import GyrostatError
from gyrostat.figures.declarations import Band, Figure, Line, Marker, Panel, Scale, Series, band
from gyrostat.measurements import FreshGaussian

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as MatplotlibFigure

SHARES = {"signal": "invariant signal", "spurious": "spurious signal"}
SIZES = {"error": "error ||E||_F", "distance": "||A - A_star||_F"}
MOST_SETTINGS = 6
"""Settings of a grid that are drawn, at most; the first, the last and some evenly between them."""

SUFFIXES = (".png", ".svg", ".pdf")


@errors.explains_keywords
def plot(result: xr.Dataset, *, path: str | Path | None = None, theory: bool = True) -> MatplotlibFigure:
    """Draw a result: signal and spurious signal, error and distance, with quartile bands over seeds.

    A diverged run counts as infinite, and the legend says how many there are. Other recorded numbers get a panel each. A
    grid has a panel for each variable and a band for each setting.

    Parameters
    ----------
    result:
        What :func:`gyrostat.run`, :func:`gyrostat.run_grid` or :func:`gyrostat.offshoots` returned.
    path:
        A file to write as well: ``.png``, ``.svg`` or ``.pdf``.
    theory:
        Whether to draw what the theory of Xu 2024 says, where it applies to a single setting: the growth R_t^2 of the
        invariant signal (eq. 25), the verdict of the Lyapunov rule on the spurious one, and the error that is left.

    Returns
    -------
    A matplotlib Figure. A notebook shows it, and its ``savefig`` writes files in other formats.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(8, law=gs.TwoPoint(spread=6.0)), gs.Identity())
    >>> result = gs.run(gs.HeteroSGD(0.05), problem, num_steps=200, seeds=8)
    >>> [axes.get_title() for axes in gs.plot(result).axes if axes.get_title()]
    ['Shares of the signals', 'Errors']
    """
    import matplotlib as mpl

    from gyrostat.figures.matplotlib_renderer import STYLE, draw

    where = _file(path)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        drawn = draw(result_figure(result, theory=theory))
        if where is not None:
            where.parent.mkdir(parents=True, exist_ok=True)
            drawn.savefig(where, dpi=150)
    return drawn


def _file(path: str | Path | None) -> Path | None:
    where = None if path is None else Path(path)
    if where is not None and where.suffix not in SUFFIXES:
        raise GyrostatError(f"path must end in {', '.join(SUFFIXES)}; got {str(path)!r}.")
    return where


def result_figure(result: xr.Dataset, *, theory: bool = True) -> Figure:
    """The figure of :func:`plot`, as a declaration that both renderers can draw."""
    import xarray as xr

    if not isinstance(result, xr.Dataset) or "diverged" not in result or "seed" not in result.dims:
        what = (
            "a Dataset without runs" if isinstance(result, xr.Dataset) else f"an object of type {type(result).__name__}"
        )
        raise GyrostatError(f"result must be what gs.run, gs.run_grid or gs.offshoots returned; got {what}.")
    if "done" in result:
        raise GyrostatError("result is a sweep, which has a picture of its own: use gyrostat plot DIR with its folder.")
    along = "step" if "step" in result.dims else "record"
    if along not in result.dims:
        raise GyrostatError("result holds one step only: pass the whole result, not result.isel(step=...).")
    axes = [str(dim) for dim in result["diverged"].dims if dim != "seed"]
    names = [str(n) for n, x in result.data_vars.items() if set(x.dims) == {*axes, "seed", along}]
    if not names:
        raise GyrostatError("result holds no numbers along its steps: record at least one, such as record=['signal'].")
    known = [name for name in names if not bool(np.isnan(result[name].isel({along: 0})).all())]
    if not known:
        raise GyrostatError(
            f"result holds nothing to draw: {', '.join(names)} are NaN, because the truth is unknown or all runs had diverged "
            "before the first recorded step; record a function of a snapshot that gives a number, or earlier steps."
        )
    said = _sentences(result, [name for name in names if name not in known])
    if axes:
        panels = [_grid_panel(result, name, axes, along) for name in known]
        said += _left_out(result, axes)
    else:
        promised = _theory(result) if theory else {}
        panels = _run_panels(result, known, promised)
        said += promised.get("said", [])
    return Figure(title=_title(result), panels=panels, note=" ".join(said), columns=2 if len(panels) < 5 else 3)


def _title(result: xr.Dataset) -> str:
    settings = json.loads(result.attrs.get("settings", "{}"))
    kinds = [settings.get(part, {}).get("kind", "") for part in ("algorithm",)]
    measured = settings.get("problem", {}).get("measurements", {}).get("kind", "")
    return " on ".join(part for part in (*kinds, measured) if part) or "Result"


def _sentences(result: xr.Dataset, unknown: list[str]) -> list[str]:
    said = [f"Medians and quartiles over {result.sizes['seed']} seeds."] if result.sizes["seed"] > 1 else []
    if "diverged" in result.attrs:
        said.append(result.attrs["diverged"].partition(":")[0] + "; they count as infinite.")
    if unknown:
        said.append(f"Not drawn, because the truth is unknown: {', '.join(unknown)}.")
    return said


# ---------------------------------------------------------------------------------------------------- one setting


def _run_panels(result: xr.Dataset, names: list[str], promised: Mapping[str, Any]) -> list[Panel]:
    panels = []
    for title, words, ylabel in (
        ("Shares of the signals", SHARES, "share that is learnt"),
        ("Errors", SIZES, "Frobenius norm"),
    ):
        chosen = [name for name in words if name in names]
        series: list[Series] = [
            band(
                result[name], label, colour=list(words).index(name) if words is SHARES else 2 + list(words).index(name)
            )
            for name, label in words.items()
            if name in chosen
        ]
        if chosen:
            series += [extra for name in chosen for extra in promised.get(name, [])]
            limits = _share_limits(result, chosen) if words is SHARES else _size_limits(series)
            scale = "linear" if words is SHARES else "log"
            panels.append(
                Panel(title=title, xlabel="step", ylabel=ylabel, series=series, yscale=scale, ylim=limits)  # type: ignore[arg-type]
            )
    for i, name in enumerate(n for n in names if n not in SHARES and n not in SIZES):
        about = result[name].attrs.get("long_name", name)
        panels.append(_panel(name, about, result[name], [band(result[name], name, colour=i)]))
    return panels


def _share_limits(result: xr.Dataset, names: list[str]) -> tuple[float, float]:
    """From a little below zero to a little above the bands; what explodes is cut off."""
    along = "step" if "step" in result.dims else "record"
    values = np.concatenate(
        [result[n].transpose("seed", ..., along).values.reshape(result.sizes["seed"], -1) for n in names], axis=1
    )
    high = quantiles_with_infinity(np.where(np.isnan(values), np.inf, values), QUARTILES)[-1]
    return -0.05, float(np.clip(1.1 * high[np.isfinite(high)].max(initial=1.0), 1.15, 3.0))


def _size_limits(series: list[Series]) -> tuple[None, float] | None:
    """Cut off bands that explode, at ten times the largest median."""
    bands = [one for one in series if isinstance(one, Band)]
    middle, high = (np.concatenate([getattr(one, name) for one in bands]) for name in ("middle", "high"))
    top = 10 * middle[np.isfinite(middle)].max(initial=0.0)
    return (None, float(top)) if top > 0 and high.max() > top else None


def _panel(name: str, about: str, values: xr.DataArray, series: list[Series]) -> Panel:
    finite = values.values[np.isfinite(values.values)]
    positive = finite[finite > 0]
    wide = finite.size > 0 and positive.size == finite.size and finite.max() > 50 * finite.min()
    scale: Scale = "log" if wide else "linear"
    return Panel(title=about, xlabel="step", ylabel=name, series=series, yscale=scale, ylim=_size_limits(series))


# --------------------------------------------------------------------------------------------------------- a grid


def _grid_panel(result: xr.Dataset, name: str, axes: list[str], along: str) -> Panel:
    series: list[Series] = []
    for i, point in enumerate(_shown_points(result, axes)):
        one = result[name].isel(point)
        label = ", ".join(f"{axis} = {_value(result[axis].values[k])}" for axis, k in point.items())
        series.append(band(one, label, x=result["step"].isel(point).values if along == "record" else None, colour=i))
    about = {**SHARES, **SIZES}.get(name, result[name].attrs.get("long_name", name))
    found = _panel(name, about, result[name], series)
    if name not in SHARES:
        return found
    return Panel(title=about, xlabel="step", ylabel=name, series=series, ylim=_share_limits(result, [name]))


def _value(x: Any) -> str:
    return f"{x:g}" if isinstance(x, int | float | np.number) else str(x)


def _points(result: xr.Dataset, axes: list[str]) -> list[dict[str, int]]:
    indices = itertools.product(*(range(result.sizes[axis]) for axis in axes))
    return [dict(zip(axes, index, strict=True)) for index in indices]


def _shown_points(result: xr.Dataset, axes: list[str]) -> Iterator[dict[str, int]]:
    points = _points(result, axes)
    count = min(len(points), MOST_SETTINGS)
    for k in np.unique(np.round(np.linspace(0, len(points) - 1, count)).astype(int)):
        yield points[k]


def _left_out(result: xr.Dataset, axes: list[str]) -> list[str]:
    total = len(_points(result, axes))
    return [f"{MOST_SETTINGS} of {total} settings are shown."] if total > MOST_SETTINGS else []


# ----------------------------------------------------------------------------------------------------- the theory


def _theory(result: xr.Dataset) -> dict[str, Any]:
    """Series by the variable they belong to, and sentences (``said``), of what Xu 2024 says of a run it covers."""
    settings = json.loads(result.attrs.get("settings", "{}"))
    algorithm, problem = (described(settings.get(part)) for part in ("algorithm", "problem"))
    if algorithm is None or problem is None or "step" not in result.dims:
        return {}
    from gyrostat import theory
    from gyrostat.theory.predictors import obstacle

    if obstacle(algorithm, problem, to="growth") is not None:
        return {}
    steps = result["step"].values
    eta, scale, last = float(algorithm.schedule.step_size), float(algorithm.start.scale), int(steps[-1])
    grown = theory.calibration(eta, scale, last)[steps] ** 2
    drawn: dict[str, Any] = {"signal": [Line(steps, grown, "R_t^2 of eq. (25)", role="theory")], "said": []}
    if obstacle(algorithm, problem, to="elimination") is not None:
        return drawn
    law, kappa = problem.environments.law, algorithm.batches.amplify
    seen = law if kappa is None else theory.amplified(law, kappa)
    gone = theory.eliminated_by_lyapunov(seen, eta, init_scale=scale, num_steps=last).holds
    fate = "eliminated" if gone else "learnt"
    drawn["said"] = [f"The Lyapunov rule predicts that a typical run ends with the spurious part {fate}."]
    measurements = problem.measurements
    if gone and eta < 1 and kappa is None and isinstance(measurements, FreshGaussian):
        sizes = {"dimension": problem.shape[0], "rank": rank_of(problem.environments)}
        left = theory.error_law(law, **sizes, step_size=eta, num_samples=float(measurements.num_samples), runs=300)
        drawn["distance"] = [Marker(left, "predicted ||A - A_star||_F at the end")]
    return drawn
