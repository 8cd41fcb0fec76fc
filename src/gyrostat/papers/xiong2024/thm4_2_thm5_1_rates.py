"""Theorems 4.2, 4.3 and 5.1: the promised rates against the measured ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import median
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Points
from gyrostat.papers.xiong2024.settings import (
    LITERAL,
    designs_of,
    factorisation,
    late_rate,
    late_rates,
    losses,
    over_designs,
    sensing,
)
from gyrostat.theory import imbalanced_rate, theorem42_conditions, theorem42_rate, theorem43_rate, theorem51_rate

SCALES = (0.6, 0.4, 0.3, 0.2)
ETA, RANK = 0.1, 2


def theorem42_data(*, seed: int, progress: Any = None, starts: int, designs: int, dimension: int) -> xr.Dataset:
    """Sensing with 20 n measurements, r = 2, eta = .1: late rates with k = 4 and with k = r = 2, against alpha."""
    numbers = designs_of(seed, designs)
    out = {}
    for width, tau in ((4, 600.0), (2, 60.0)):

        def build(scale: float, design: int, width: int = width) -> Any:
            return gs.GradientDescent(ETA, width=width, start=scale), sensing(20, design, dimension=dimension)

        ds = over_designs(
            build,
            {"scale": list(SCALES)},
            numbers,
            progress,
            num_steps=round(tau / ETA),
            seeds=starts,
            seed=seed,
            record=("distance",),
            record_at=121,
        )
        out[f"rate_{width}"] = late_rates(losses(ds), ds.step, 0.3)
    near = gs.isometry_constant(dimension, 20 * dimension, rank=9, symmetric=False, seed=seed).value
    asked = theorem42_conditions(LITERAL, 0.05, np.ones(2), 4, 50, near)
    conditions = xr.DataArray(
        [float(c.holds) for c in asked], dims="condition", coords={"condition": [c.name for c in asked]}
    )
    return xr.Dataset(
        {**out, "conditions": conditions},
        attrs={"settings": ds.attrs["settings"], "isometry": near, "dimension": dimension},
    )


def draw_theorem42(ds: xr.Dataset) -> Figure:
    a = np.array(SCALES)

    def points(name: str, label: str, colour: int) -> Points:
        y = ds[name]
        return Points(a, median(y), label, low=y.min("seed"), high=y.max("seed"), colour=colour)

    return Figure(
        title="The theorems' rates hold with a wide margin; the powers of alpha are right",
        panels=[
            Panel(
                title="Late rate of the loss per iteration",
                xlabel="alpha",
                ylabel="rate",
                series=[
                    points("rate_4", "k = 4", 0),
                    points("rate_2", "k = r = 2", 1),
                    Line(
                        a, [theorem42_rate(ETA, x) for x in a], "promised by Theorem 4.2, k > r", role="bound", colour=0
                    ),
                    Line(
                        a,
                        [theorem43_rate(ETA, 1.0, 1.0)] * len(a),
                        "promised by Theorem 4.3, k = r",
                        role="bound",
                        colour=1,
                    ),
                ],
                xscale="log",
                yscale="log",
            ),
        ],
        note=f"Medians and ranges over starts and designs; n = {ds.attrs['dimension']}, m = 20 n, r = 2, eta = 0.1.",
    )


def _promise42(ds: xr.Dataset) -> Outcome:
    ratio = ds.rate_4 / xr.DataArray([theorem42_rate(ETA, a) for a in SCALES], dims="scale")
    kept = (ratio >= 1).mean("seed")
    slowest = {f"slowest_alpha_{a:g}": float(ratio.sel(scale=a).min("seed")) for a in SCALES}
    return together(
        within(0.9, 1, **{f"share_alpha_{a:g}": kept.sel(scale=a) for a in SCALES}), Outcome(slowest, holds=True)
    )


def _promise43(ds: xr.Dataset) -> Outcome:
    ratio = ds.rate_2.min("seed") / theorem43_rate(ETA, 1.0, 1.0)
    return within(1, np.inf, **{f"alpha_{a:g}": ratio.sel(scale=a) for a in SCALES})


def _conditions42(ds: xr.Dataset) -> Outcome:
    names = ds.condition.values
    return within(1, 1, **{str(name): ds.conditions.sel(condition=name) for name in names})


THEOREM42 = Experiment(
    name="thm4.2",
    title="Promised and measured rates of two factors",
    source="Xiong 2024, Theorems 4.2 and 4.3",
    summary="Linear convergence at a rate of order eta alpha^2 with k > r, and free of alpha with k = r.",
    sizes={
        "smoke": {"starts": 16, "designs": 1, "dimension": 16},
        "standard": {"starts": 16, "designs": 2, "dimension": 20},
        "full": {"starts": 10, "designs": 10, "dimension": 50},
    },
    compute=theorem42_data,
    draw=draw_theorem42,
    claims=[
        Claim(
            slug="wide",
            statement="Theorem 4.2: with k > r the error falls at least as (1 - eta alpha^2/8)^(t/4).",
            criterion="measured rate over the promised one >= 1 in 90 % of the runs, for every alpha",
            measure=_promise42,
            names={
                f"share_alpha_{a:g}": f"share of the runs that are as fast as promised, alpha = {a:g}" for a in SCALES
            }
            | {f"slowest_alpha_{a:g}": f"slowest measured rate over the promised one, alpha = {a:g}" for a in SCALES},
        ),
        Claim(
            slug="exact",
            statement=(
                "Theorem 4.3 (its proof, E.10): with k = r the error falls at least as (1 - eta sigma_r^2/(64 "
                "sigma_1))^(t/2)."
            ),
            criterion="slowest measured rate over the promised one >= 1 for every alpha",
            measure=_promise43,
        ),
        Claim(
            slug="covers-figure",
            ours=True,
            statement="The conditions (4.7) and (4.8), with constants of one, cover Figure 1.2.",
            criterion="all of them hold at eta = .2, alpha = .05, k = 4 with the measured isometry constant",
            measure=_conditions42,
            expected="fails",
            kind="not covered",
            reason=(
                "(4.7) needs eta <= alpha^4 = 6e-6 and (4.8) an isometry constant below 0.003; the rates are "
                "observed far outside these conditions."
            ),
        ),
    ],
    weight=7,
)

# ----------------------------------------------------------------------------------------- Theorem 5.1

BETAS = (0.5, 0.7, 1.0, 1.4)
SMALL = (0.5, 0.7, 1.0)
"""Up to sqrt(sigma_r) = 1, as the theorem asks; beyond it another block of the error is the slowest."""
PER_NK = (3.0, 6.0, 10.0, 20.0, 40.0)
WIDTH = 3


def theorem51_data(
    *, seed: int, progress: Any = None, starts: int, dimension: int, per_nk: tuple[float, ...]
) -> xr.Dataset:
    """The imbalance step after 150 steps, eta = .1, k = 3, r = 2: rates by beta in factorisation, by m/(nk) in sensing."""
    step = 150

    def exact(beta: float) -> Any:
        events = (gs.ImbalanceStep(at=step, beta=beta),)
        return gs.GradientDescent(ETA, width=WIDTH, start=0.2, events=events), factorisation(dimension=dimension)

    def sensed(samples: float, design: int) -> Any:
        events = (gs.ImbalanceStep(at=step, beta=1.0),)
        return gs.GradientDescent(ETA, width=WIDTH, start=0.2, events=events), sensing(
            samples * WIDTH, design, dimension=dimension
        )

    options: dict[str, Any] = {
        "num_steps": 2 * step,
        "seeds": starts,
        "seed": seed,
        "record": ("distance",),
        "record_at": 2 * step + 1,
    }
    one = gs.run_grid(exact, {"beta": list(BETAS)}, progress=progress, **options)
    before = gs.run(
        gs.GradientDescent(ETA, width=WIDTH, start=0.2),
        factorisation(dimension=dimension),
        num_steps=step,
        seeds=starts,
        seed=seed,
        record=("left_factor", "right_factor"),
        record_at=[step],
    ).isel(step=0)
    literal, gap = _literal_readings(before.left_factor.values, before.right_factor.values)
    two = over_designs(sensed, {"samples": list(per_nk)}, designs_of(seed, 2), progress, **options)
    after = slice(step + 10, None)
    return xr.Dataset(
        {
            "rate": late_rates(losses(one).isel(step=after), one.step.isel(step=after), 0.6),
            "sensed": late_rates(losses(two).isel(step=after), two.step.isel(step=after), 0.6).rename(seed="run"),
            "literal": ("reading", literal),
            "literal_gap": ("reading", gap),
        },
        attrs={"settings": one.attrs["settings"]},
    )


def _literal_readings(F: np.ndarray, G: np.ndarray) -> tuple[list[float], list[float]]:
    """Late rates after F <- F B / S, G <- G B S with F = A S B and B not transposed, and how far the product moves.

    The signs of the rows of B are free in F = A S B; all of them are tried. A run that diverges has the rate 0.
    """
    rates, gaps = [], []
    for f, g in zip(F, G, strict=True):
        _, s, B = np.linalg.svd(f, full_matrices=False)
        for signs in itertools.product((1, -1), repeat=WIDTH):
            turned = np.array(signs)[:, None] * B
            new = f @ turned / s, g @ turned * s
            gaps.append(float(np.linalg.norm(new[0] @ new[1].T - f @ g.T)))
            rates.append(_late_rate_of_descent(*new))
    return rates, gaps


def _late_rate_of_descent(F: np.ndarray, G: np.ndarray, num_steps: int = 300) -> float:
    target = np.diag([1.0] * RANK + [0.0] * (len(F) - RANK))
    loss = np.empty(num_steps)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(num_steps):
            E = F @ G.T - target
            loss[t] = (E**2).sum() / 2
            F, G = F - ETA * E @ G, G - ETA * E.T @ F
    # A loss that rises at the end has no rate of convergence, like one that diverges.
    return float(np.maximum(late_rate(np.arange(num_steps), loss, 0.6), 0)) if loss[-1] < loss[0] else 0.0


def draw_theorem51(ds: xr.Dataset) -> Figure:
    b = np.array(BETAS)
    limit = imbalanced_rate(ETA, 1.0)
    share = ds.sensed / limit
    literal = np.sort(ds.literal.values) / limit
    return Figure(
        title=(
            "After the imbalance step factorisation converges at exactly 2 |log(1 - eta beta^2)|; sensing needs data "
            "for it"
        ),
        panels=[
            Panel(
                title="Factorisation",
                xlabel="beta",
                ylabel="late rate",
                series=[
                    Points(b, median(ds.rate), "measured", low=ds.rate.min("seed"), high=ds.rate.max("seed")),
                    Line(b, [imbalanced_rate(ETA, x**2) for x in b], "2 |log(1 - eta beta^2)|", role="theory"),
                    Line(b, [theorem51_rate(ETA, x) for x in b], "promised by Theorem 5.1", role="bound"),
                ],
                xscale="log",
                yscale="log",
            ),
            Panel(
                title="Sensing, beta = 1",
                xlabel="measurements m / (n k)",
                ylabel="late rate / its limit",
                series=[
                    Points(
                        ds.samples.values, median(share, "run"), "measured", low=share.min("run"), high=share.max("run")
                    ),
                    Marker(1.0, "m to infinity"),
                    Marker(theorem51_rate(ETA, 1.0) / limit, "promised by Theorem 5.1", role="bound"),
                ],
                xscale="log",
                ylim=(0, 1.2),
            ),
            Panel(
                title="B for its transpose, beta = 1",
                xlabel="start and signs, in order of the rate",
                ylabel="late rate / that of our step",
                series=[
                    Points(np.arange(1, literal.size + 1), literal, "B not transposed", colour=1),
                    Marker(1.0, "our step"),
                ],
                ylim=(0, 1.2),
            ),
        ],
        note=(
            "Medians and ranges over starts and designs; k = 3, r = 2, eta = 0.1. Right: B where the SVD needs its "
            "transpose; F G^T is kept, F^T F is not beta^2 I, and most runs are slow or diverge (rate 0)."
        ),
    )


def _exact51(ds: xr.Dataset) -> Outcome:
    ratio = median(ds.rate) / xr.DataArray([imbalanced_rate(ETA, b**2) for b in BETAS], dims="beta")
    return within(0.99, 1.01, **{f"beta_{b:g}": ratio.sel(beta=b) for b in SMALL})


def _sensed51(ds: xr.Dataset) -> Outcome:
    ratio = ds.sensed.min("run") / theorem51_rate(ETA, 1.0)
    low = {f"m_over_nk_{s:g}": float(ratio.sel(samples=s)) for s in ds.samples.values}
    return within(1, np.inf, m_over_nk_40=low["m_over_nk_40"])


def _sensed_few(ds: xr.Dataset) -> Outcome:
    ratio = median(ds.sensed, "run") / theorem51_rate(ETA, 1.0)
    return together(within(1, np.inf, m_over_nk_3=ratio.sel(samples=3.0)))


def _literal(ds: xr.Dataset) -> Outcome:
    share = ds.literal / imbalanced_rate(ETA, 1.0)
    shown = {"least": share.min(), "largest": share.max(), "share_diverged": (share == 0).mean()}
    return together(
        within(0, 1e-9, product_gap=ds.literal_gap.max()),
        within(0, 0.5, median_share=share.median()),
        within(0, np.inf, **shown),
    )


THEOREM51 = Experiment(
    name="thm5.1",
    title="The rate after the imbalance step",
    source="Xiong 2024, Theorem 5.1",
    summary=(
        "After the step F^T F = beta^2 I, and K, the part of G that must vanish, shrinks by a factor of 1 - eta "
        "beta^2 per step."
    ),
    sizes={
        "smoke": {"starts": 12, "dimension": 16, "per_nk": (PER_NK[0], PER_NK[-1])},
        "standard": {"starts": 8, "dimension": 20, "per_nk": PER_NK},
        "full": {"starts": 32, "dimension": 30, "per_nk": PER_NK},
    },
    compute=theorem51_data,
    draw=draw_theorem51,
    claims=[
        Claim(
            slug="factorisation",
            ours=True,
            statement="In factorisation the rate after the step is exactly 2 |log(1 - eta beta^2)| (ours).",
            criterion="median rate within 1 % for beta = .5, .7, 1 (at most sqrt(sigma_r), as the theorem asks)",
            measure=_exact51,
        ),
        Claim(
            slug="sensing",
            statement="Theorem 5.1 holds in sensing: the error falls at least as (1 - eta beta^2/2)^(2t).",
            criterion="slowest rate over the promised one >= 1 at m = 40 n k",
            measure=_sensed51,
        ),
        Claim(
            slug="few-measurements",
            ours=True,
            statement="Theorem 5.1 holds with few measurements, as in the paper's figure (m = 3 to 5 n k).",
            criterion="median rate over the promised one >= 1 at m = 3 n k",
            measure=_sensed_few,
            expected="fails",
            kind="not covered",
            reason=(
                "The theorem asks for an isometry constant that so few measurements do not have; the rate is linear "
                "but lower."
            ),
        ),
        Claim(
            slug="transpose-of-b",
            ours=True,
            statement=(
                "The step needs the transpose of B: with F = A S B and B itself in (5.1) the product is kept too, but the rate "
                "is a fraction of 2 |log(1 - eta beta^2)| (ours; (5.1) is damaged in the text that we work from)."
            ),
            criterion=(
                "||F G^T|| moves by 1e-9 at most; median over starts and signs of the late rate over ours at most 1/2 "
                "(diverged: 0)"
            ),
            measure=_literal,
        ),
    ],
    weight=12,
)
