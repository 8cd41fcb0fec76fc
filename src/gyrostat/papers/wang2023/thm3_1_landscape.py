"""Theorem 3.1 and Propositions 3.1-3.3: critical points of the 2 x 2 problem, and minima as the ridge goes to zero."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from gyrostat.diagnostics.layers import smooth_count
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import slope
from gyrostat.figures.declarations import Bars, Figure, Line, Panel, Points, Printed
from gyrostat.papers.wang2023.settings import OBSERVED, STARTS, annealed, completion, follow, network, ticker
from gyrostat.theory import critical_points

EPSILON, DEPTH, RIDGE = 0.25, 3, 0.005
KINDS = ("minimum", "strict saddle", "degenerate")
SMALL = tuple(10.0**k for k in (-3.0, -3.5, -4.0, -4.5, -5.0, -5.5, -6.0))
WEIGHTS = (0.001, 0.01, 0.1, 1.0)
ALPHA = 0.1
HALF = np.array([[1.0, 1 / EPSILON], [EPSILON, 1.0]])


def landscape_data(*, seed: int, progress: Any = None, tries: int, num_steps: int) -> xr.Dataset:
    """L = 3, epsilon = .25: critical points at lambda = .005; rank-1 minima as lambda falls; ranks that GD ends at."""
    tick = ticker(progress, 2 + len(WEIGHTS))
    points = critical_points(HALF, OBSERVED, DEPTH, RIDGE, tries=tries, seed=seed)
    tick()
    losses = [rank_one_loss(EPSILON, DEPTH, lam) for lam in SMALL]
    tick()
    ends = []
    for ridge in WEIGHTS:
        runs = follow(
            network(annealed((0.1, ridge)), DEPTH),
            completion(EPSILON, "all"),
            num_steps=num_steps,
            seeds=STARTS,
            seed=seed,
        )
        ends.append(runs.ranks[:, -1])
        tick()
    return xr.Dataset(
        {
            "rank": ("point", [float(p.rank) for p in points]),
            "kind": ("point", [float(KINDS.index(p.kind)) for p in points]),
            "negative": ("point", [float(p.signature[0]) for p in points]),
            "loss": ("point", [p.loss for p in points]),
            "imbalance": ("point", [p.imbalance for p in points]),
            "gap": ("point", [p.gap for p in points]),
            "missing": ("point", [float(p.matrix[0, 1]) for p in points]),
            "minima": ("order", [float(sum(p.kind == "minimum" and p.rank == r for p in points)) for r in (0, 1, 2)]),
            "values": (("point", "value"), np.linalg.svd(np.array([p.matrix for p in points]), compute_uv=False)),
            "fit": ("ridge", losses),
            "gd_rank": (("weight", "start"), np.array(ends, dtype=float)),
        },
        {"ridge": list(SMALL), "weight": list(WEIGHTS)},
        {"settings": runs.settings},
    )


def rank_one_loss(epsilon: float, depth: int, ridge: float) -> float:
    """C(A) at the rank-1 minimum of ``C(A) + lambda L s^(2/L)``, by descent over u v^T from the exact completion.

    >>> 0 < rank_one_loss(0.25, 3, 1e-4) < 1e-5
    True
    """
    from scipy.optimize import minimize

    def parts(x: np.ndarray) -> tuple[np.ndarray, float]:
        A = np.outer(x[:2], x[2:])
        return np.array([A[0, 0] - 1, A[1, 0] - epsilon, A[1, 1] - 1]), float(
            np.linalg.norm(x[:2]) * np.linalg.norm(x[2:])
        )

    def cost(x: np.ndarray) -> float:
        errors, s = parts(x)
        return float(errors @ errors / 6 + ridge * depth * s ** (2 / depth))

    U, s, Vt = np.linalg.svd(np.array([[1.0, 1 / epsilon], [epsilon, 1.0]]))
    start = np.concatenate([U[:, 0], Vt[0]]) * s[0] ** 0.5
    minimum = minimize(cost, start, method="BFGS", options={"gtol": 1e-11, "maxiter": 4000})
    minimum = minimize(cost, minimum.x, method="Nelder-Mead", options={"xatol": 1e-12, "fatol": 1e-18, "maxiter": 4000})
    errors = parts(minimum.x)[0]
    return float(errors @ errors / 6)


def draw_landscape(ds: xr.Dataset) -> Figure:
    shown: list[Any] = []
    order = np.argsort(np.argsort(ds.loss.values)) + 1
    for k, kind in enumerate(KINDS[:2]):
        for rank in (0, 1, 2):
            at = (ds.kind.values == k) & (ds["rank"].values == rank)
            if at.any():
                shown.append(
                    Points(order[at], ds.loss.values[at], f"{kind}, rank {rank} ({int(at.sum())})", colour=3 * k + rank)
                )
    path = [
        Points(ds.ridge.values, ds.fit.values, "rank-1 minimum", colour=0),
        Line(
            ds.ridge.values, ds.fit.values[-1] * (ds.ridge.values / ds.ridge.values[-1]) ** 2, "slope 2", role="theory"
        ),
    ]
    names = [f"{w:g}" for w in ds.weight.values]
    ends = [Bars(names, (ds.gd_rank == r).mean("start").values, f"rank {r}", colour=i) for i, r in enumerate((2, 1, 0))]
    return Figure(
        title="Thirteen critical points: four minima, not three, and nine strict saddles",
        panels=[
            Panel(title="Critical points", xlabel="number, by loss", ylabel="loss", series=shown),
            Panel(
                title="Proposition 3.1",
                xlabel="ridge lambda",
                ylabel="C(A) at the minimum",
                series=path,
                xscale="log",
                yscale="log",
            ),
            Panel(
                title="Proposition 3.2: where descent ends",
                xlabel="ridge (weight decay)",
                ylabel="share of starts",
                series=ends,
                ylim=(0, 1.05),
            ),
        ],
        printed=[
            Printed(
                quantity="local minima at a small ridge", paper="3 (of rank 0, 1 and 2)", ours=int((ds.kind == 0).sum())
            ),
        ],
        note=(
            "L = 3, epsilon = 0.25. Left: lambda = 0.005 in main-text units; the fourth minimum has rank 1 and a "
            "missing entry of the wrong sign. Middle: the rank-1 minimum fits better and better as the ridge falls. "
            f"Right: {ds.sizes['start']} starts."
        ),
    )


def _saddles(ds: xr.Dataset) -> Outcome:
    others = ds.where(ds.kind > 0, drop=True)
    return together(
        within(1, negative_at_others=others.negative.min() if others.sizes["point"] else float("nan")),
        within(0, 0, degenerate=(ds.kind == 2).sum()),
        within(0, 0, negative_at_minima=ds.where(ds.kind == 0, drop=True).negative.max()),
    )


def _count(ds: xr.Dataset) -> Outcome:
    minima, saddles = int((ds.kind == 0).sum()), int((ds.kind == 1).sum())
    return Outcome({"minima": minima, "saddles": saddles}, (minima, saddles) == (4, 9))


def _three(ds: xr.Dataset) -> Outcome:
    return within(1, 1, **{f"of_rank_{r}": ds.minima.isel(order=r) for r in (0, 1, 2)})


def _balanced(ds: xr.Dataset) -> Outcome:
    return within(0, 1e-9, imbalance=ds.imbalance.max(), gap=abs(ds.gap).max())


def _small_loss(ds: xr.Dataset) -> Outcome:
    p = slope(ds.ridge.values[2:], ds.fit.values[2:])
    return Outcome({"exponent": p, "smallest": float(ds.fit.min())}, 1.9 <= p <= 2.1 and float(ds.fit.min()) < 1e-8)


def _keeps_rank(ds: xr.Dataset) -> Outcome:
    low = ds.gd_rank.sel(weight=[w for w in WEIGHTS if w <= 0.1])
    return together(
        within(1, 2, least_rank=low.min()), within(0, 0, rank_at_large_ridge=ds.gd_rank.sel(weight=1.0).max())
    )


def _rank_of_product(ds: xr.Dataset) -> Outcome:
    # The layers of a balanced point have s_i(W^T W) = s_i(A)^(2/L), so the approximate ranks agree with the rank.
    minima = ds.where(ds.kind == 0, drop=True)
    approximate_ranks = np.asarray(smooth_count(jnp.asarray(minima["values"].values ** (2 / DEPTH)), ALPHA)).sum(axis=1)
    excess = approximate_ranks - minima["rank"].values
    return within(-1e-6, 0.4, largest_excess=excess.max(), least_excess=excess.min())


LANDSCAPE = Experiment(
    name="thm3.1",
    title="The landscape of the 2 x 2 problem",
    source="Wang 2023, Theorem 3.1, Propositions 3.1-3.3, section 4",
    summary=(
        "Every critical point found from many starts, with the signs of its Hessian; the rank-1 minimum as the ridge "
        "goes to zero; where descent ends for small and large ridges."
    ),
    sizes={
        "smoke": {"tries": 1600, "num_steps": 4000},
        "standard": {"tries": 2400, "num_steps": 20_000},
        "full": {"tries": 6000, "num_steps": 40_000},
    },
    compute=landscape_data,
    draw=draw_landscape,
    claims=[
        Claim(
            slug="strict-saddles",
            statement="For a small ridge all critical points but the local minima are strict saddles (Thm 3.1).",
            criterion="a negative eigenvalue at every other point found, none at a minimum",
            measure=_saddles,
        ),
        Claim(
            slug="count",
            ours=True,
            statement="There are thirteen critical points: four minima and nine strict saddles (ours).",
            criterion="exactly 4 and 9 found",
            measure=_count,
            names={"minima": "minima found", "saddles": "strict saddles found"},
        ),
        Claim(
            slug="three-minima",
            statement="There are three local minima: of rank 0, 1 and 2 (section 4).",
            criterion="exactly one minimum of each rank found",
            measure=_three,
            expected="fails",
            kind="false as printed",
            reason="There are two minima of rank 1: the second has a negative missing entry.",
        ),
        Claim(
            slug="balanced",
            statement="Critical points are balanced, and their loss is C_lambda(A) (Prop. A.1, section 2.2).",
            criterion="imbalance and gap <= 1e-9 at all of them",
            measure=_balanced,
        ),
        Claim(
            slug="prop3.1",
            statement="Along a path of rank-1 minima C goes to 0 with the ridge, as lambda^2 (the exponent is ours).",
            criterion="exponent in [1.9, 2.1] over lambda from 1e-4 to 1e-6, C < 1e-8 at the end",
            measure=_small_loss,
        ),
        Claim(
            slug="prop3.2",
            statement="For a small ridge descent ends at a minimum of at least the smallest fitting rank.",
            criterion="rank >= 1 from all starts for ridges up to .1 (weight decay), and rank 0 at 1",
            measure=_keeps_rank,
        ),
        Claim(
            slug="prop3.3",
            statement="A minimum in B_r has a product of approximate rank at most r + epsilon_2.",
            criterion="excess of the approximate rank (alpha = .1) of A^(2/L) over the rank in [0, .4] at every minimum",
            measure=_rank_of_product,
        ),
    ],
    weight=7,
)
