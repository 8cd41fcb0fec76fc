"""Lemmas 5, 6, 7 and Proposition 1 of Xu 2024."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import wilson
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Points, Series
from gyrostat.theory import (
    calibration_line,
    controller,
    edge_overlap,
    envelope,
    lyapunov_exponent,
    moment_growth,
    overlap_constant,
    step_window,
)

# ---------------------------------------------------------------------------------------------- Lemma 5

ETAS5 = [1e-3, 5e-3, 1 / 64, 0.03, 0.05, 0.1, 0.2]
ALPHAS5 = [1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-12]


def lemma5_data(*, seed: int, progress: Any = None, etas: list[float]) -> xr.Dataset:
    """Largest and smallest ratios of the sequences (31) to (25), and the length of phase 1."""
    rows = np.array([[_ratios5(eta, alpha) for alpha in ALPHAS5] for eta in etas])
    names = ("upper", "lower", "length")
    return xr.Dataset(
        {name: (("step_size", "init_scale"), rows[..., i]) for i, name in enumerate(names)},
        coords={"step_size": etas, "init_scale": ALPHAS5},
    )


def _ratios5(eta: float, alpha: float) -> tuple[float, float, float]:
    middle, up, low = envelope(eta, alpha)
    return (up / middle).max(), (low / middle).min(), (len(middle) - 1) * eta / math.log(1 / alpha)


def draw_lemma5(ds: xr.Dataset) -> Figure:
    middle, up, low = envelope(0.05, 1e-3)
    steps = np.arange(len(middle))
    grid = [
        *(
            Line(ds.init_scale.values, ds.upper.isel(step_size=i).values, f"eta = {float(eta):.3g}", colour=i)
            for i, eta in enumerate(ds.step_size)
        ),
        *(
            Line(ds.init_scale.values, ds.lower.isel(step_size=i).values, "", colour=i)
            for i in range(ds.sizes["step_size"])
        ),
        Marker(7 / 6, "1 + 1/6", role="bound"),
        Marker(5 / 6, "1 - 1/6", role="bound"),
    ]
    return Figure(
        title="Accumulated errors move the growth of R_t by at most 3 %",
        panels=[
            Panel(
                title="eta = 0.05, alpha = 1e-3",
                xlabel="step",
                ylabel="ratio to R_t",
                series=[
                    Line(steps, up / middle, "upper sequence"),
                    Line(steps, low / middle, "lower sequence"),
                    Marker(7 / 6, "1 + 1/6", role="bound"),
                    Marker(5 / 6, "1 - 1/6", role="bound"),
                ],
            ),
            Panel(
                title="Largest and smallest ratio in phase 1",
                xlabel="start alpha",
                ylabel="ratio to R_t",
                series=grid,
                xscale="log",
            ),
        ],
        note="The lemma allows 1/6; on the grid the sequences differ by a few percent at most.",
    )


LEMMA5 = Experiment(
    name="lemma5",
    title="The calibrated growth of R_t",
    source="Xu 2024, Definition 2 and Lemma 5",
    summary="Upper and lower sequences that carry the accumulated errors stay within 1/6 of R_t during phase 1.",
    sizes={"smoke": {"etas": ETAS5[2:]}, "standard": {"etas": ETAS5}, "full": {"etas": [1e-4, *ETAS5]}},
    compute=lemma5_data,
    draw=draw_lemma5,
    claims=[
        Claim(
            slug="bounded-deviation",
            statement="Until R_t reaches 1/3, the upper sequence is at most 7/6 R_t and the lower at least 5/6 R_t.",
            criterion="on every cell of the grid",
            measure=lambda ds: together(
                within(1, 7 / 6, largest=ds.upper.max()), within(5 / 6, 1, smallest=ds.lower.min())
            ),
        ),
        Claim(
            slug="phase-length",
            statement="Phase 1 takes at most 4 log(1/alpha)/eta steps.",
            criterion="T1 eta / log(1/alpha) <= 4 on every cell",
            measure=lambda ds: within(0, 4, largest=ds.length.max()),
        ),
    ],
)

# ---------------------------------------------------------------------------------------------- Lemma 6

SPREADS6 = [6.0, 8.0, 12.0, 16.0, 18.5, 20.0, 22.0]


def lemma6_data(*, seed: int, progress: Any = None, runs: int) -> xr.Dataset:
    """How often the controller reaches its barrier, for r2 = 1 and 5, against the bound T2 p = .01."""
    eta, alpha, ranks = 0.05, 1e-4, (1, 5)
    T = round(2 * math.log(1 / alpha) / eta)
    hits, high, barriers = (np.zeros((len(ranks), len(SPREADS6))) for _ in range(3))
    for i, r2 in enumerate(ranks):
        for j, M in enumerate(SPREADS6):
            law = gs.TwoPoint(mean=1.0, spread=M, rank=r2, independent=True)
            line = calibration_line(eta, alpha, T, bound=law.bound, delta=1e-6, ranks=2 * r2)
            simulated = controller(law, eta, line=line, violation=0.01 / T, runs=runs, seed=seed + 10 * i + j)
            hits[i, j], high[i, j] = (simulated.peak >= simulated.barrier).mean(), np.quantile(simulated.peak, 0.99)
            barriers[i, j] = simulated.barrier
    growth = [moment_growth(gs.TwoPoint(spread=M), eta, 2 / 3, shift=2.0) for M in SPREADS6]
    dims = ("spurious_rank", "spread")
    return xr.Dataset(
        {"hits": (dims, hits), "peak": (dims, high), "barrier": (dims, barriers), "growth": ("spread", growth)},
        coords={"spurious_rank": list(ranks), "spread": SPREADS6},
        attrs={"runs": runs, "num_steps": T},
    )


def draw_lemma6(ds: xr.Dataset) -> Figure:
    n = ds.attrs["runs"]
    shares: list[Series] = []
    peaks: list[Series] = []
    for i, r2 in enumerate(ds.spurious_rank.values):
        hit = ds.hits.sel(spurious_rank=r2).values
        low, high = wilson(hit * n, n)
        shares.append(Points(SPREADS6, hit, f"r2 = {r2} (95 % interval)", low=low, high=high, colour=i))
        peaks.append(
            Points(SPREADS6, ds.peak.sel(spurious_rank=r2).values, f"r2 = {r2}: 99 % quantile of max q/L", colour=i)
        )
        peaks.append(
            Line(SPREADS6, ds.barrier.sel(spurious_rank=r2).values, f"r2 = {r2}: barrier", role="bound", colour=i)
        )
    return Figure(
        title="The controller stays below its barrier where its 2/3-moment does not grow",
        panels=[
            Panel(
                title="Runs that reach the barrier",
                xlabel="heterogeneity M",
                ylabel="share of runs",
                series=[
                    *shares,
                    Marker(0.01, "bound T2 p = .01", role="bound"),
                    Marker(18.4, "supermartingale from M = 18.4 on", axis="x"),
                ],
            ),
            Panel(
                title="How high the controller climbs",
                xlabel="heterogeneity M",
                ylabel="largest q/L along the path",
                series=peaks,
                yscale="log",
            ),
        ],
        note=f"eta = 0.05, alpha = 1e-4, T2 = {ds.attrs['num_steps']} steps.",
    )


def _covered(ds: xr.Dataset) -> Outcome:
    inside = ds.hits.where(ds.growth <= 1, drop=True)
    return within(0, 0.01, largest_share=inside.max() if inside.size else np.nan)


LEMMA6 = Experiment(
    name="lemma6",
    title="The controller sequence",
    source="Xu 2024, Definition 4 and Lemma 6",
    summary=(
        "The external process that dominates the spurious part: reflected at L_t, absorbed at p^-1.5 r2^1.5 L_t. The "
        "paper prints the event of (49) with its inequality reversed; it is read as 'reaches the barrier'."
    ),
    sizes={"smoke": {"runs": 1000}, "standard": {"runs": 6000}, "full": {"runs": 40000}},
    compute=lemma6_data,
    draw=draw_lemma6,
    claims=[
        Claim(
            slug="barrier-kept",
            statement=(
                "Where the supermartingale condition holds, the barrier is reached with probability at most T2 p."
            ),
            criterion="share of runs that reach it <= .01 for every such M and r2",
            measure=_covered,
        ),
        Claim(
            slug="paper-setting",
            ours=True,
            statement="The same bound keeps the controller low in the paper's own setting (M = 6).",
            criterion="share of runs that reach the barrier at M = 6 <= .01 for r2 = 1 and 5",
            measure=lambda ds: within(0, 0.01, largest_share=ds.hits.sel(spread=6.0).max()),
            expected="fails",
            kind="not covered",
            reason=(
                "At M = 6 the factor 1 + eta xi + 2 eta has a growing 2/3-moment: the controller runs away from L_t."
            ),
        ),
    ],
    weight=3,
)

# ---------------------------------------------------------------------------------------------- Lemma 7


def lemma7_data(*, seed: int, progress: Any = None, points: int) -> xr.Dataset:
    """The 2/3-moment factor and the Lyapunov exponent over M at eta = .05, and inside literal windows."""
    spreads = np.linspace(0.5, 23.0, points)
    laws = [gs.TwoPoint(spread=M) for M in spreads]
    wide = np.geomspace(3100, 1e5, 40)
    inside = []
    for M in wide:
        law = gs.TwoPoint(spread=M)
        low, high = step_window(law)
        inside.append(
            max(moment_growth(law, eta, 2 / 3, shift=2.0) - 1 for eta in np.geomspace(low * 1.0001, high * 0.9999, 25))
        )
    return xr.Dataset(
        {
            "growth": ("spread", [moment_growth(law, 0.05, 2 / 3, shift=2.0) for law in laws]),
            "exponent": ("spread", [lyapunov_exponent(law, 0.05) for law in laws]),
            "window_excess": ("wide_spread", inside),
        },
        coords={"spread": spreads, "wide_spread": wide},
    )


def draw_lemma7(ds: xr.Dataset) -> Figure:
    M = ds.spread.values
    return Figure(
        title="The proof's condition asks for three times the heterogeneity that suffices",
        panels=[
            Panel(
                title="eta = 0.05",
                xlabel="heterogeneity M",
                ylabel="growth factor per step",
                series=[
                    Line(M, ds.growth.values, "E (1 + eta xi + 2 eta)^(2/3)"),
                    Line(M, np.exp(ds.exponent.values), "exp(Lyapunov exponent) of 1 + eta xi"),
                    Marker(1.0, "1: no growth", role="bound"),
                    Marker(6.0, "the paper's M = 6", axis="x", role="paper"),
                ],
            ),
            Panel(
                title="Inside the literal window (24/M2, 1/(64 M1))",
                xlabel="heterogeneity M",
                ylabel="1 - largest 2/3-moment factor",
                series=[Line(ds.wide_spread.values, -ds.window_excess.values, "margin of the condition")],
                xscale="log",
                yscale="log",
            ),
        ],
        note=(
            "Left: the 2/3-moment stops growing only from M = 18.4 on, the typical size already from M = 6.4. Right: "
            "the window does imply the condition."
        ),
    )


def _least(ds: xr.Dataset) -> float:
    good = ds.spread.values[ds.growth.values <= 1]
    return float(good.min()) if good.size else math.nan


LEMMA7 = Experiment(
    name="lemma7",
    title="The supermartingale condition",
    source="Xu 2024, Lemma 7",
    summary="The proof needs a step size with E (1 + eta xi + 2 eta)^(2/3) <= 1.",
    sizes={"smoke": {"points": 451}, "standard": {"points": 2251}, "full": {"points": 22501}},
    compute=lemma7_data,
    draw=draw_lemma7,
    claims=[
        Claim(
            slug="window-implies",
            statement="A step size in (24/M2, 1/(64 M1)) makes the 2/3-power of the controller a supermartingale.",
            criterion="largest 2/3-moment factor minus 1 over 40 x 25 cells inside the window <= 0",
            measure=lambda ds: within(-np.inf, 0, largest=ds.window_excess.max()),
        ),
        Claim(
            slug="threshold",
            ours=True,
            statement="At eta = 0.05 the condition holds from M = 18.4 on.",
            criterion="least M on the grid in [18.2, 18.6]",
            measure=lambda ds: within(18.2, 18.6, least_spread=_least(ds)),
        ),
        Claim(
            slug="covers-the-experiments",
            ours=True,
            statement="The condition covers the paper's own experiments at eta = 0.05, M = 6.",
            criterion="E (1 + eta xi + 2 eta)^(2/3) <= 1 at M = 6",
            measure=lambda ds: within(0, 1, factor=ds.growth.interp(spread=6.0)),
            expected="fails",
            kind="not covered",
            reason="Theorem 2 does not cover Figure 3: its condition asks for M >= 18.4 at that step size.",
        ),
    ],
)

# ------------------------------------------------------------------------------------------ Proposition 1


def proposition1_data(*, seed: int, progress: Any = None, cases: tuple[tuple[int, int, int], ...]) -> xr.Dataset:
    """Overlaps of independent random subspaces of dimension r1 = r2 = r in R^d, and the constant each case needs."""
    rng = np.random.default_rng(seed)
    constants, edges, medians, nineties = [], [], [], []
    for i, (d, r, count) in enumerate(cases):
        overlaps = np.array([_overlap(rng, d, r) for _ in range(count)])
        constants.append(overlap_constant(overlaps, dimension=d, rank=r, spurious_rank=r))
        scale = math.sqrt(2 * r / d)
        edges.append(edge_overlap(d, r, r) / scale)
        medians.append(np.median(overlaps) / scale)
        nineties.append(np.quantile(overlaps, 0.9) / scale)
        if progress is not None:
            progress(i + 1, len(cases))
    ranks = np.array([r for _, r, _ in cases])
    columns = {"constant": constants, "edge": edges, "median": medians, "upper": nineties}
    return xr.Dataset(
        {**{name: ("case", np.array(values)) for name, values in columns.items()}, "rank": ("case", ranks)},
        coords={"case": [f"d={d}, r={r}" for d, r, _ in cases]},
    )


def _overlap(rng: np.random.Generator, d: int, r: int) -> float:
    one, two = (np.linalg.qr(rng.standard_normal((d, r)))[0] for _ in range(2))
    return float(np.linalg.norm(one.T @ two, 2))


def draw_proposition1(ds: xr.Dataset) -> Figure:
    r = ds["rank"].values
    return Figure(
        title="Random subspaces overlap as sqrt((r1 + r2)/d), but no universal constant makes the tail bound true",
        panels=[
            Panel(
                title="Overlap in units of sqrt((r1 + r2)/d)",
                xlabel="rank r1 = r2",
                ylabel="||U1^T U2|| / sqrt((r1 + r2)/d)",
                series=[
                    Points(
                        r, ds["median"].values, "median (whisker: 90 %)", low=ds["median"].values, high=ds.upper.values
                    ),
                    Line(r, ds.edge.values, "edge of the Jacobi ensemble", role="theory"),
                ],
                xscale="log",
                ylim=(0, 1.8),
            ),
            Panel(
                title="Smallest constant C1 that works",
                xlabel="rank r1 = r2",
                ylabel="C1",
                series=[
                    Points(r, ds.constant.values, "measured"),
                    Line(r, ds.constant.values[0] * r / r[0], "proportional to the rank", role="theory"),
                ],
                xscale="log",
                yscale="log",
            ),
        ],
        note=(
            "Prop. 1 claims a C1 that does not depend on r1, r2, d. The proof's own (105) keeps a 9^(r1 + r2) that "
            "the statement drops."
        ),
    )


PROPOSITION1 = Experiment(
    name="prop1",
    title="The overlap of random subspaces",
    source="Xu 2024, Proposition 1",
    summary=(
        "Independent uniform subspaces have an overlap of order sqrt((r1 + r2)/d); the printed tail bound does "
        "not hold with a universal constant."
    ),
    sizes={
        "smoke": {"cases": ((100, 1, 2000), (200, 5, 500), (400, 20, 100))},
        "standard": {"cases": ((100, 1, 10000), (100, 3, 5000), (400, 5, 2000), (400, 20, 600), (1000, 50, 120))},
        "full": {"cases": ((100, 1, 20000), (100, 3, 10000), (400, 5, 4000), (400, 20, 1500), (1000, 50, 250))},
    },
    compute=proposition1_data,
    draw=draw_proposition1,
    claims=[
        Claim(
            slug="order-of-overlap",
            statement="The overlap of two random subspaces is of order sqrt((r1 + r2)/d).",
            criterion="median overlap over sqrt((r1 + r2)/d) in [.3, 1.6] in every case",
            measure=lambda ds: within(0.3, 1.6, least=ds["median"].min(), most=ds["median"].max()),
        ),
        Claim(
            slug="jacobi-edge",
            ours=True,
            statement="Ours: for larger ranks it is the edge of the Jacobi ensemble.",
            criterion="median over edge in [.9, 1.05] where the rank is at least 20",
            measure=lambda ds: within(
                0.9,
                1.05,
                least=(ds["median"] / ds.edge).where(ds["rank"] >= 20).min(),
                most=(ds["median"] / ds.edge).where(ds["rank"] >= 20).max(),
            ),
        ),
        Claim(
            slug="universal-constant",
            statement="One constant C1 is enough for all ranks and dimensions.",
            criterion="largest C1 needed over smallest <= 3",
            measure=lambda ds: within(1, 3, ratio=ds.constant.max() / ds.constant.min()),
            expected="fails",
            kind="false as printed",
            reason=(
                "The smallest constant grows with the rank: at t near the typical overlap the probability is about 1 "
                "while the bound is 2 exp(-(r1 + r2) t^2/C1). The statement needs t above a constant, or (1 + t) in "
                "place of t."
            ),
        ),
    ],
)
