"""Theorem 4.1 with (4.4) and (4.5): the toy example with two factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.figures.declarations import Figure, Line, Panel
from gyrostat.papers.xiong2024.settings import factorisation
from gyrostat.theory import (
    theorem41_bounds,
    toy_sequences,
)

TOY_RATES = (1 / 6, 0.1, 0.05, 0.01)
TOY_SCALES = (1.0, 0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
TOY_RANKS = (1, 2, 3)
TOY_DIMENSION = 10
WAITING = 2.0
"""c_1 of T_1 = c_1 log(1/alpha) / eta. While alpha_t <= 1/2 it grows by 1 + 3 eta/4 per step or more, so 2 is enough (ours)."""


def theorem41_data(*, seed: int, progress: Any = None, horizon: int) -> xr.Dataset:
    """The toy start of Theorem 4.1 for 3 ranks, 4 learning rates and 9 scales: the run, and the recursion (4.4)."""
    shape = (len(TOY_RANKS), len(TOY_RATES), len(TOY_SCALES))
    steps = np.unique(np.round(np.geomspace(1, horizon, 60)).astype(int) - 1)
    run, recursion, a, b, u = np.empty((5, *shape, steps.size))
    for i, r in enumerate(TOY_RANKS):

        def build(step_size: float, scale: float, r: int = r) -> Any:
            F, G = np.zeros((2, TOY_DIMENSION, r + 1))
            F[range(r + 1), range(r + 1)] = scale
            G[range(r + 1), range(r + 1)] = [*[scale] * r, scale / 3]
            return gs.GradientDescent(step_size, width=r + 1, start=gs.Given(F, G)), factorisation(
                (1.0,) * r, TOY_DIMENSION
            )

        grid = {"step_size": list(TOY_RATES), "scale": list(TOY_SCALES)}
        record = ("distance", "left_factor", "right_factor")
        ds = gs.run_grid(
            build, grid, num_steps=int(steps[-1]), seed=seed, record=record, record_at=steps, progress=progress
        ).isel(seed=0)
        run[i] = (ds.distance**2).values
        F, G = ds.left_factor.values, ds.right_factor.values
        a[i], b[i], u[i] = F[..., r, r], G[..., r, r], F[..., 0, 0]
        for j, eta in enumerate(TOY_RATES):
            for k, alpha in enumerate(TOY_SCALES):
                recursion[i, j, k] = toy_sequences(eta, alpha, r, int(steps[-1])).error[steps]
    dims = ("rank", "step_size", "scale", "step")
    coords = {"rank": list(TOY_RANKS), "step_size": list(TOY_RATES), "scale": list(TOY_SCALES), "step": steps}
    values = {"error": run, "recursion": recursion, "a": a, "b": b, "u": u}
    return xr.Dataset({k: (dims, v) for k, v in values.items()}, coords, {"settings": ds.attrs["settings"]})


def _logs(ds: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithms of the error and of its two bounds; NaN where the error is at rounding (it stalls near 1e-28)."""
    error = ds.recursion.where(ds.recursion > 1e-26).values
    low, high = np.empty_like(error), np.empty_like(error)
    for j, eta in enumerate(TOY_RATES):
        for k, a in enumerate(TOY_SCALES):
            low[:, j, k], high[:, j, k] = theorem41_bounds(eta, a, TOY_DIMENSION, ds.step.values)
    return np.log(error), low, high


def _sequence_bounds(eta: float, alpha: float, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(4.5): b_t from below and above, and |alpha_t - 1| from above, as logarithms."""
    low = math.log(alpha / 3) + steps * math.log1p(-4 * eta * alpha**2)
    high = math.log(alpha / 3) + steps * math.log1p(-eta * alpha**2 / 4)
    return low, high, (steps - WAITING * math.log(1 / alpha) / eta) * math.log1p(-eta / 2)


def _outside(ds: xr.Dataset) -> tuple[int, int, int]:
    """How many recorded b_t are below and above their bounds, and |alpha_t - 1| above its bound.

    Near 5e-324, the smallest number there is, b_t stalls: it is judged above 1e-300.
    """
    below = above = far = 0
    for eta in TOY_RATES:
        for alpha in TOY_SCALES:
            one = ds.sel(step_size=eta, scale=alpha)
            low, high, signal = _sequence_bounds(eta, alpha, ds.step.values)
            with np.errstate(divide="ignore", invalid="ignore"):
                b = np.log(one.b.values)
            judged = abs(one.b.values) > 1e-300
            below += int(((b < low - 1e-9) & judged).sum())
            above += int((~(b <= high + 1e-9) & judged).sum())
            # |alpha_t - 1| is right to 1e-16 and stalls there.
            far += int((abs(one.u.values - 1) > np.maximum(np.exp(signal), 1e-13)).sum())
    return below, above, far


def _draw_sequences(ds: xr.Dataset, eta: float, alpha: float) -> Panel:
    one, t = ds.sel(rank=2, step_size=eta, scale=alpha), ds.step.values
    low, high, signal = _sequence_bounds(eta, alpha, t)
    time = eta * alpha**2 * t
    series = [
        Line(time, one.a.values, "a_t", colour=0),
        Line(time, one.b.values, "b_t", colour=1),
        Line(time, np.maximum(abs(one.u.values - 1), 1e-16), "|alpha_t - 1|", colour=2),
        Line(time, np.full(t.size, alpha / 2), "a_t at least", role="bound", colour=0),
        Line(time, np.exp(low), "b_t at least", role="bound", colour=1),
        Line(time, np.exp(high), "b_t at most", role="bound", colour=1),
        Line(time, np.exp(np.minimum(signal, 3)), "|alpha_t - 1| at most", role="bound", colour=2),
    ]
    return Panel(
        title=f"(4.5): eta = {eta:g}, alpha = {alpha:g}",
        xlabel="eta alpha^2 x iteration",
        ylabel="a_t, b_t and |alpha_t - 1|",
        series=series,
        yscale="log",
        xlim=(0, 4),
        ylim=(1e-8, 10),
    )


def draw_theorem41(ds: xr.Dataset) -> Figure:
    panels = []
    for eta in (0.1, 0.01):
        series: list[Any] = []
        for i, a in enumerate((1.0, 0.5, 0.1)):
            y = ds.recursion.sel(rank=2, step_size=eta, scale=a)
            time = eta * a**2 * ds.step.values
            low, high = theorem41_bounds(eta, a, TOY_DIMENSION, ds.step.values)
            early = time <= 14
            series.append(Line(time[early], np.maximum(y.values, 1e-25)[early], f"alpha = {a:g}", colour=i))
            series.append(Line(time[early], np.exp(low)[early], f"lower bound, alpha = {a:g}", role="bound", colour=i))
            if i == 0:
                series.append(
                    Line(time[early], np.exp(high)[early], "upper bound with T1 = 0, any alpha", role="bound")
                )
        title, label = f"eta = {eta:g}, r = 2", "eta alpha^2 x iteration"
        panels.append(
            Panel(
                title=title,
                xlabel=label,
                ylabel="||E||_F^2",
                series=series,
                yscale="log",
                ylim=(1e-16, 1e3),
                xlim=(0, 14),
            )
        )
    return Figure(
        title="The toy example of Theorem 4.1 between its two bounds",
        panels=[*panels, _draw_sequences(ds, 0.1, 0.3)],
        note=(
            "The error converges linearly at the rate -2 log(1 - 8 eta alpha^2 / 9): the imbalance of the start "
            "decides."
        ),
    )


def _recursion(ds: xr.Dataset) -> Outcome:
    # An entry of size e is right to 1e-16, so a squared error s to 1e-16 / sqrt(s) of itself.
    big = ds.recursion.where(ds.recursion > 1e-14)
    return within(0, 1e-8, largest_relative_gap=float((abs(ds.error - big) / big).max()))


def _between(ds: xr.Dataset) -> Outcome:
    error, low, high = _logs(ds)
    below, above = int(np.nansum(error < low - 1e-9)), int(np.nansum(error > high + 1e-9))
    return within(0, 0, points_below=below, points_above=above)


def _sequence_a(ds: xr.Dataset) -> Outcome:
    share = ds.a / ds.scale
    return within(0.5, 1 + 1e-12, least=share.min(), most=share.max())


def _sequence_b(ds: xr.Dataset) -> Outcome:
    below, above, _ = _outside(ds)
    return within(0, 0, points_below=below, points_above=above)


THEOREM41 = Experiment(
    name="thm4.1",
    title="The toy example with two factors",
    source="Xiong 2024, Theorem 4.1 with (4.4) and (4.5)",
    summary="With a diagonal start the run reduces to three numbers; the theorem bounds the error from both sides.",
    sizes={"smoke": {"horizon": 400}, "standard": {"horizon": 20_000}, "full": {"horizon": 60_000}},
    compute=theorem41_data,
    draw=draw_theorem41,
    claims=[
        Claim(
            slug="recursion",
            statement="The run follows the recursion (4.4).",
            criterion="relative gap of squared errors above 1e-14 (rounding) <= 1e-8 in all 108 settings",
            measure=_recursion,
        ),
        Claim(
            slug="two-sided",
            statement="The error lies between the two bounds; the upper one holds even with T1 = 0 (ours).",
            criterion="no recorded point outside in 108 settings",
            measure=_between,
        ),
        Claim(
            slug="4.5-a",
            statement="(4.5), first: a_t, the column of F that must not vanish, stays between alpha/2 and alpha.",
            criterion="a_t / alpha in [1/2, 1] at every recorded step of the runs in 108 settings",
            measure=_sequence_a,
        ),
        Claim(
            slug="4.5-b",
            statement=(
                "(4.5), second: b_t, the column of G that must vanish, lies between (alpha/3) (1 - 4 eta alpha^2)^t and "
                "(alpha/3) (1 - eta alpha^2/4)^t."
            ),
            criterion="no recorded point of the runs above 1e-300 (underflow) is outside in 108 settings",
            measure=_sequence_b,
        ),
        Claim(
            slug="4.5-signal",
            statement="(4.5), third: |alpha_t - 1| <= (1 - eta/2)^(t - T_1), with T_1 = 2 log(1/alpha) / eta (the 2 is ours).",
            criterion="no recorded point of the runs above the bound (and above 1e-13, rounding) in 108 settings",
            measure=lambda ds: within(0, 0, points_above=_outside(ds)[2]),
        ),
    ],
    weight=4,
)
