"""Theorem 3.1 with (3.2) and (3.3), Theorem 4.1, and the imbalance of (D.5) and (D.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.lab.experiment import Claim, Experiment, Outcome, within
from gyrostat.lab.figures import Bars, Figure, Line, Marker, Panel, Points, band
from gyrostat.papers.statistics import median
from gyrostat.papers.xiong2024.common import DIMENSION, LITERAL, designs_of, factorisation, sensing
from gyrostat.theory import (
    imbalance_increment,
    increment_bound,
    lower_bound,
    symmetric_tail,
    theorem31_conditions,
    theorem41_bounds,
    toy_sequences,
)

# ----------------------------------------------------------------------------------------- Theorem 3.1

ETA, CONSTANT = 0.01, 8.0
WIDTHS = (3, 5, 20)
WIDE = tuple(enumerate(WIDTHS))
SCALES = (0.5, 0.1, 0.02)


def theorem31_data(*, seed: int, progress: Any = None, seeds: int, horizon: int) -> xr.Dataset:
    """n = 50, r = 2, eta = .01: the rows outside the signal, x_i with i > r, for k = 3, 5, 20 and three scales."""

    def build(width: int, scale: float) -> Any:
        return gs.GradientDescent(ETA, width=width, symmetric=True, start=scale), factorisation()

    def waiting(scale: float) -> int:
        return round(3 * np.log(2 / scale) / ETA)

    steps = np.unique(np.concatenate([[waiting(a) for a in SCALES], np.linspace(0, horizon, 60).astype(int)]))
    # Two consecutive steps at every point, for the decrease of the potential.
    steps = np.unique(np.concatenate([steps, steps[:-1] + 1]))
    ds = gs.run_grid(
        build, {"width": list(WIDTHS), "scale": list(SCALES)}, num_steps=horizon, seeds=seeds, seed=seed,
        record=("distance", "potential", "row_norms"), record_at=steps, progress=progress,
    )  # fmt: skip
    least = ds.row_norms.isel(row=slice(2, None)).min("row") / ds.scale**2
    at = xr.concat([least.sel(scale=a, step=waiting(a)) for a in SCALES], "scale", coords="minimal", compat="override")
    conditions = [c for k in (3, 5) for c in theorem31_conditions(ETA, 0.5, np.ones(2), k, DIMENSION)]
    return xr.Dataset(
        {
            "conditions": ("condition", [float(c.holds) for c in conditions]),
            "error": ds.distance**2,
            "potential": ds.potential,
            "least_row": at.assign_coords(scale=list(SCALES)).drop_vars("step"),
        },
        attrs={"settings": ds.attrs["settings"]},
    )


def decreases(ds: xr.Dataset) -> xr.DataArray:
    """``(1 - A_{t+1}/A_t) / (eta A_t)`` at every recorded pair of consecutive steps."""
    steps = ds.step.values
    first = np.flatnonzero(np.diff(steps) == 1)
    a, b = ds.potential.isel(step=first), ds.potential.isel(step=first + 1)
    return (1 - b.values / a) / (ETA * a)


def draw_theorem31(ds: xr.Dataset) -> Figure:
    t = ds.step.values[1:]
    fall = decreases(ds)
    error = ds.error.sel(scale=0.1).isel(step=slice(1, None))
    panels = [
        Panel(
            "(3.2): squared error, alpha = .1", "iteration", "||E||_F^2",
            [
                *[band(error.sel(width=k), f"k = {k}", colour=i) for i, k in enumerate(WIDTHS)],
                *[Line(t, symmetric_tail(ETA, k, 2, t), f"(k - r)/(4 eta t)^2, k = {k}", "theory", i) for i, k in WIDE],
                Line(t, lower_bound(ETA, 0.1, DIMENSION, t, CONSTANT), "lower bound from (3.3), c = 8", "bound"),
            ],
            "log", "log", ylim=(1e-8, 1e3),
        ),
        Panel(
            "(3.3a): smallest row outside the signal", "alpha", "min ||x_i||^2 / alpha^2 at 3 log(2/alpha)/eta",
            [
                *[
                    Points(SCALES, median(ds.least_row.sel(width=k)), f"k = {k}", ds.least_row.sel(width=k).min("seed"),
                           ds.least_row.sel(width=k).max("seed"), i)
                    for i, k in enumerate(WIDTHS)
                ],
                Marker(1 / 8, "1/8 of (3.3a)", role="bound"),
            ],
            "log", "log",
        ),
        Panel(
            "(3.3b): decrease of the potential, alpha = .1", "iteration", "(1 - A'/A) / (eta A)",
            [
                *[band(fall.sel(width=k, scale=0.1), f"k = {k}", colour=i) for i, k in enumerate(WIDTHS)],
                *[Marker(4 / (k - 2), f"4/(k - r), k = {k}") for k in WIDTHS],
                Marker(CONSTANT, "8, enough for (3.3b)", role="bound"),
            ],
            yscale="log",
        ),
    ]  # fmt: skip
    return Figure(
        "The rows outside the signal cannot vanish faster than 1/t: the reason for the 1/T^2 law", panels,
        note="Medians and quartiles (ranges in the middle) over seeds; n = 50, r = 2, eta = .01.",
    )  # fmt: skip


def _rows_small(ds: xr.Dataset) -> Outcome:
    found = {f"k_{k}_alpha_{a:g}": float(ds.least_row.sel(width=k, scale=a).min()) for k in (3, 5) for a in SCALES}
    return within(1 / 8, np.inf, **found)


def _rows_wide(ds: xr.Dataset) -> Outcome:
    found = {f"alpha_{a:g}": float(ds.least_row.sel(width=20, scale=a).min()) for a in (0.1, 0.02)}
    return within(1 / 8, np.inf, **found)


def _decrease(ds: xr.Dataset) -> Outcome:
    # Beyond T0: the paper's waiting time with its constant at three.
    worst = {}
    for a in SCALES:
        late = decreases(ds).sel(scale=a)
        late = late.isel(step=late.step.values >= 3 * np.log(2 / a) / ETA)
        worst[f"alpha_{a:g}"] = float(late.max())
    return within(0, CONSTANT, **worst)


def _bound(ds: xr.Dataset) -> Outcome:
    found = {}
    for a in (0.1, 0.02):
        late = ds.error.sel(scale=a, width=20)
        late = late.isel(step=late.step.values >= 3 * np.log(2 / a) / ETA)
        bound = lower_bound(ETA, a, DIMENSION, late.step.values, CONSTANT)
        found[f"least_ratio_alpha_{a:g}"] = float((late / bound).min())
    return within(1, np.inf, **found)


def _covers(ds: xr.Dataset) -> Outcome:
    return within(1, 1, share_of_conditions_met=ds.conditions.mean())


THEOREM31 = Experiment(
    "thm3.1",
    "The lower bound for one factor",
    "Xiong 2024, Theorem 3.1, (3.2), (3.3a), (3.3b)",
    "The potential A_t (squares of the rows outside the signal) decreases slowly, so the error cannot be below A_t^2 / n.",
    {
        "smoke": {"seeds": 6, "horizon": 4000},
        "standard": {"seeds": 50, "horizon": 20_000},
        "full": {"seeds": 200, "horizon": 100_000},
    },
    theorem31_data,
    draw_theorem31,
    [
        Claim("rows-narrow", "(3.3a) for k = 3 and 5: after the waiting time ||x_i||^2 >= alpha^2 / 8 for all i > r.",
              "smallest ||x_i||^2 / alpha^2 over rows and seeds >= 1/8 at t = 3 log(2/alpha)/eta", _rows_small, "fails",
              "k = 3 and 5 are far outside the theorem's k; a row's start may be nearly orthogonal to the others' span."),
        Claim("rows-wide", "(3.3a) for a wide factor and a small start.",
              "the same for k = 20 and alpha <= .1", _rows_wide),
        Claim("potential", "(3.3b): A_{t+1} >= A_t (1 - O(eta A_t)) after the waiting time.",
              "(1 - A'/A) / (eta A) <= 8 at all recorded later steps, all k and alpha", _decrease),
        Claim("lower-bound", "(3.2): the squared error stays above its bound after the waiting time.",
              "error over bound (with the constant 8 of our (3.3b)) >= 1 at all later steps, k = 20, alpha <= .1", _bound),
        Claim("covers-figure", "The conditions (3.1), with constants of one, cover Figure 1.1.",
              "all of them hold at eta = .01, alpha = .5, k = 3 and 5", _covers, "fails",
              "(3.1) wants eta <= 1/n^2 = 4e-4, alpha <= .05 and k in the thousands; the law is seen far outside."),
    ],
    weight=3,
)  # fmt: skip

# ----------------------------------------------------------------------------------------- Theorem 4.1

TOY_RATES = (1 / 6, 0.1, 0.05, 0.01)
TOY_SCALES = (1.0, 0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02)
TOY_RANKS = (1, 2, 3)
TOY_DIMENSION = 10


def theorem41_data(*, seed: int, progress: Any = None, horizon: int) -> xr.Dataset:
    """The toy start of Theorem 4.1 for 3 ranks, 4 learning rates and 9 scales: the run, and the recursion (4.4)."""
    shape = (len(TOY_RANKS), len(TOY_RATES), len(TOY_SCALES))
    steps = np.unique(np.round(np.geomspace(1, horizon, 60)).astype(int) - 1)
    run, recursion = np.empty((*shape, steps.size)), np.empty((*shape, steps.size))
    for i, r in enumerate(TOY_RANKS):

        def build(step_size: float, scale: float, r: int = r) -> Any:
            F, G = np.zeros((2, TOY_DIMENSION, r + 1))
            F[range(r + 1), range(r + 1)] = scale
            G[range(r + 1), range(r + 1)] = [*[scale] * r, scale / 3]
            return gs.GradientDescent(step_size, width=r + 1, start=gs.Given(F, G)), factorisation(
                (1.0,) * r, TOY_DIMENSION
            )

        grid = {"step_size": list(TOY_RATES), "scale": list(TOY_SCALES)}
        ds = gs.run_grid(
            build, grid, num_steps=int(steps[-1]), seed=seed, record=("distance",), record_at=steps, progress=progress
        )
        run[i] = (ds.distance**2).isel(seed=0).values
        for j, eta in enumerate(TOY_RATES):
            for k, a in enumerate(TOY_SCALES):
                recursion[i, j, k] = toy_sequences(eta, a, r, int(steps[-1])).error[steps]
    dims = ("rank", "step_size", "scale", "step")
    coords = {"rank": list(TOY_RANKS), "step_size": list(TOY_RATES), "scale": list(TOY_SCALES), "step": steps}
    return xr.Dataset(
        {"error": (dims, run), "recursion": (dims, recursion)}, coords, {"settings": ds.attrs["settings"]}
    )


def _logs(ds: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithms of the error and of its two bounds; NaN where the error is at rounding (it stalls near 1e-28)."""
    error = ds.recursion.where(ds.recursion > 1e-26).values
    low, high = np.empty_like(error), np.empty_like(error)
    for j, eta in enumerate(TOY_RATES):
        for k, a in enumerate(TOY_SCALES):
            low[:, j, k], high[:, j, k] = theorem41_bounds(eta, a, TOY_DIMENSION, ds.step.values)
    return np.log(error), low, high


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
            series.append(Line(time[early], np.exp(low)[early], f"lower bound, alpha = {a:g}", "bound", i))
            if i == 0:
                series.append(Line(time[early], np.exp(high)[early], "upper bound with T1 = 0, any alpha", "bound"))
        title, label = f"eta = {eta:g}, r = 2", "eta alpha^2 x iteration"
        panels.append(Panel(title, label, "||E||_F^2", series, yscale="log", ylim=(1e-16, 1e3), xlim=(0, 14)))
    return Figure(
        "The toy example of Theorem 4.1 between its two bounds", panels,
        note="The error converges linearly at the rate -2 log(1 - 8 eta alpha^2 / 9): the imbalance of the start decides.",
    )  # fmt: skip


def _recursion(ds: xr.Dataset) -> Outcome:
    # An entry of size e is right to 1e-16, so a squared error s to 1e-16 / sqrt(s) of itself.
    big = ds.recursion.where(ds.recursion > 1e-14)
    return within(0, 1e-8, largest_relative_gap=float((abs(ds.error - big) / big).max()))


def _between(ds: xr.Dataset) -> Outcome:
    error, low, high = _logs(ds)
    below, above = int(np.nansum(error < low - 1e-9)), int(np.nansum(error > high + 1e-9))
    return within(0, 0, points_below=below, points_above=above)


THEOREM41 = Experiment(
    "thm4.1",
    "The toy example with two factors",
    "Xiong 2024, Theorem 4.1",
    "With a diagonal start the run comes down to three numbers; the theorem encloses the error from both sides.",
    {"smoke": {"horizon": 400}, "standard": {"horizon": 20_000}, "full": {"horizon": 60_000}},
    theorem41_data,
    draw_theorem41,
    [
        Claim("recursion", "The run is the recursion (4.4).",
              "relative gap of squared errors above 1e-14 (rounding) <= 1e-8 in all 108 settings", _recursion),
        Claim("two-sided", "The error lies between the two bounds; the upper one holds even with T1 = 0 (ours).",
              "no recorded point outside in 108 settings", _between),
    ],
    weight=3,
)  # fmt: skip

# ------------------------------------------------------------------------------------------- imbalance

CASES = {
    "F .003 .5": (0.003, 0.5, False),
    "F .2 .5": (0.2, 0.5, False),
    "S .2 .5": (LITERAL, 0.5, True),
    "S .2 .02": (LITERAL, 0.02, True),
    "S .003 .05": (0.003, 0.05, True),
}
"""Factorisation or sensing, eta, alpha."""


def imbalance_data(*, seed: int, progress: Any = None, seeds: int, dimension: int, tau: float) -> xr.Dataset:
    """F^T F - G^T G at every step, with the exact increment and the bound (D.5), k = 4, r = 2."""
    design = designs_of(seed, 1)[0]
    out: dict[str, list] = {name: [] for name in ("identity", "ratio", "least", "most")}
    for number, (eta, alpha, senses) in enumerate(CASES.values()):
        problem = sensing(14, design, dimension=dimension) if senses else factorisation(dimension=dimension)
        steps = min(round(tau / eta), 4000)
        ds = gs.run(
            gs.GradientDescent(eta, width=4, start=alpha), problem, num_steps=steps, seeds=seeds, seed=seed,
            record=("left_factor", "right_factor", "imbalance_matrix"), record_at=steps + 1, reduction="never",
        )  # fmt: skip
        matrices = _matrices(problem) if senses else None
        found = [_increments(ds.isel(seed=s), eta, alpha, problem, matrices) for s in range(seeds)]
        for name, values in zip(out, zip(*found, strict=True), strict=True):
            out[name].append(values)
        if progress is not None:
            progress(number + 1, len(CASES))
    data = {name: (("case", "seed"), np.array(values)) for name, values in out.items()}
    return xr.Dataset(data, coords={"case": list(CASES)}, attrs={"settings": ds.attrs["settings"]})


def _matrices(problem: gs.Problem) -> np.ndarray:
    space = gs.Asymmetric().space(problem.shape)
    return np.asarray(problem.measurements.rows(problem.environments, space).matrices[0], dtype=float)


def _increments(
    ds: xr.Dataset, eta: float, alpha: float, problem: gs.Problem, X: Any
) -> tuple[float, float, float, float]:
    """Worst gap of the identity, worst increment over the bound, extreme eigenvalues over alpha^2."""
    truth = np.asarray(problem.environments.invariant)
    F, G, D = (ds[name].values for name in ("left_factor", "right_factor", "imbalance_matrix"))
    identity = ratio = 0.0
    for t in range(0, len(F) - 1, max(1, len(F) // 200)):
        E = F[t] @ G[t].T - truth
        M = E if X is None else (X.T @ (X @ E.ravel()) / len(X)).reshape(E.shape)
        change = D[t + 1] - D[t]
        size = np.linalg.norm(change, 2)
        # D is a difference of matrices of size ||F||^2, each right to 1e-16 of that.
        if size > 1e-9 * np.linalg.norm(F[t], 2) ** 2:
            identity = max(identity, float(np.abs(change - imbalance_increment(F[t], G[t], M, eta)).max() / size))
            ratio = max(ratio, float(size / increment_bound(F[t], G[t], M, eta)))
    values = np.linalg.eigvalsh(D) / alpha**2
    return identity, ratio, float(values.min()), float(values.max())


def draw_imbalance(ds: xr.Dataset) -> Figure:
    names = [str(c) for c in ds.case.values]
    return Figure(
        "The imbalance hardly drifts when the step is small, and turns indefinite when it is not",
        [
            Panel("Extreme eigenvalues over the run", "case", "eigenvalue of F^T F - G^T G, over alpha^2",
                  [Bars(names, ds.least.min("seed"), "smallest"), Bars(names, ds.most.max("seed"), "largest"),
                   Marker(1 / 8, "1/8 of (D.6)", role="bound"), Marker(2.0, "2 of (D.6)", role="bound")]),
            Panel("Increment of one step over its bound", "case", "increment / (eta ||M|| max(||F||, ||G||))^2",
                  [Bars(names, ds.ratio.max("seed"), "measured"), Marker(1.0, "1, sharp"),
                   Marker(2.0, "2, printed in (D.5)", role="bound")]),
        ],
        note="Worst over steps and seeds; F: factorisation, S: sensing with m = 14 n, then eta and alpha; k = 4, r = 2. "
        "(D.6) asks for all eigenvalues between alpha^2/8 and 2 alpha^2.",
    )  # fmt: skip


def _identity(ds: xr.Dataset) -> Outcome:
    factorisations = [c for c in ds.case.values if c.startswith("F")]
    return within(0, 1e-5, largest_relative_gap=ds.identity.sel(case=factorisations).max())


def _sharp(ds: xr.Dataset) -> Outcome:
    return within(0, 1 + 1e-6, largest_ratio=ds.ratio.max())


def _keeps(ds: xr.Dataset, case: str) -> Outcome:
    one = ds.sel(case=case)
    share = float(((one.least >= 1 / 8) & (one.most <= 2)).mean())
    return Outcome({"share": share, "least": float(one.least.min()), "most": float(one.most.max())}, share >= 0.8)


IMBALANCE = Experiment(
    "imbalance",
    "The imbalance and its drift",
    "Xiong 2024, (D.5) and (D.6)",
    "F^T F - G^T G is what drives the linear rate; one step changes it by eta^2 (G^T M^T M G - F^T M M^T F).",
    {
        "smoke": {"seeds": 3, "dimension": 50, "tau": 40.0},
        "standard": {"seeds": 10, "dimension": 50, "tau": 80.0},
        "full": {"seeds": 50, "dimension": 50, "tau": 80.0},
    },
    imbalance_data,
    draw_imbalance,
    [
        Claim("increment", "The increment is exactly eta^2 (G^T M^T M G - F^T M M^T F) (ours).",
              "relative gap <= 1e-5 in factorisation, for increments above 1e-9 ||F||^2 (rounding: n 1e-16)", _identity),
        Claim("sharp", "(D.5) holds, with the constant 1 instead of 2.",
              "increment over eta^2 ||M||^2 max(||F||, ||G||)^2 at most 1 in all cases", _sharp),
        Claim("small-step", "(D.6) at a small step: alpha^2/8 <= F^T F - G^T G <= 2 alpha^2 throughout.",
              "extreme eigenvalues over alpha^2 in [1/8, 2] in 80 % of the runs, factorisation, eta = .003, alpha = .5",
              lambda ds: _keeps(ds, "F .003 .5")),
        Claim("printed-step", "(D.6) at the printed learning rate and a small start.",
              "the same for sensing, eta = .2, alpha = .02",
              lambda ds: _keeps(ds, "S .2 .02"), "fails",
              "The drift is of order eta^2, the imbalance of order alpha^2: at eta = .2 it turns indefinite."),
    ],
    weight=6,
)  # fmt: skip
