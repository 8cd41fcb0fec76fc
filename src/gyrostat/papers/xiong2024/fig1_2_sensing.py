"""Figure 1.2: asymmetric sensing with the right width, with too many columns, and after the imbalance step."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.diagnostics import late_speed
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import last, median, slope
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Printed, band
from gyrostat.papers.xiong2024.settings import (
    DIMENSION,
    FIGURE,
    FIGURE12_AXIS,
    FIGURE12A,
    FIGURE12B,
    FIGURE12C,
    LITERAL,
    design_matrices,
    designs_of,
    late_rates,
    losses,
    over_designs,
    sensing,
    size_text,
    tail_of,
)

RANK, PER_ROW = FIGURE12A.rank, FIGURE12A.per_row
RATES = {"literal": LITERAL, "figure": FIGURE}
EXACT, WIDE, STEPPED = FIGURE12A.scales, FIGURE12B.scales, FIGURE12C.scales
HORIZONS = {"exact": FIGURE12A.time, "wide": FIGURE12B.time, "stepped": FIGURE12C.time}
"""eta x iterations of panels a, b and c at the printed learning rate."""


def figure12_data(
    *, seed: int, progress: Any = None, dimension: int, starts: int, designs: int, stretch: float, figure_starts: int
) -> xr.Dataset:
    """n = 50, r = 2, m = 700; panels a (k = 2), b (k = 4) and c (k = 3 and 4, the step half-way, beta = 1)."""
    numbers = designs_of(seed, designs)
    parts: dict[str, Any] = {}
    for name, eta in RATES.items():
        count = starts if name == "literal" else figure_starts
        horizons = {k: (v * stretch if name == "literal" else min(v, FIGURE12_AXIS)) for k, v in HORIZONS.items()}
        chosen = numbers if name == "literal" else numbers[:1]
        parts |= _panels(name, eta, horizons, chosen, count, dimension, seed, progress)
    settings = parts.pop("settings")
    return xr.Dataset(parts, attrs={"settings": settings})


def _panels(
    name: str,
    eta: float,
    horizons: dict[str, float],
    designs: list[int],
    starts: int,
    dimension: int,
    seed: int,
    progress: Any,
) -> dict[str, Any]:
    record = ("distance", "left_factor", "right_factor")
    steps = {panel: round(tau / eta) for panel, tau in horizons.items()}
    half = steps["stepped"] // 2
    after = half + 1  # the first step that is recorded after the imbalance step

    def plain(width: int) -> Any:
        return lambda scale, design: (
            gs.GradientDescent(eta, width=width, start=scale),
            sensing(PER_ROW, design, dimension=dimension),
        )

    def stepped(width: int) -> Any:
        events = (gs.ImbalanceStep(at=half, beta=1.0),)
        return lambda scale, design: (
            gs.GradientDescent(eta, width=width, start=scale, events=events),
            sensing(PER_ROW, design, dimension=dimension),
        )

    runs = {
        "exact": (plain(FIGURE12A.width), EXACT),
        "wide": (plain(FIGURE12B.width), WIDE),
        "gd3": (plain(3), STEPPED),
        "gd4": (plain(4), STEPPED),
        "step3": (stepped(3), STEPPED),
        "step4": (stepped(4), STEPPED),
    }
    out: dict[str, Any] = {}
    at_step: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for key, (build, scales) in runs.items():
        panel = key if key in steps else "stepped"
        grid = np.unique(np.linspace(0, steps[panel], 101).round().astype(int))
        grid = np.union1d(grid, [after]) if panel == "stepped" else grid
        options = {"num_steps": steps[panel], "seeds": starts, "seed": seed, "record": record, "record_at": grid}
        ds = over_designs(build, {"scale": list(scales)}, designs, progress, **options)
        if panel == "stepped":
            right_after = ds.sel(step=after, method="nearest")
            at_step[key] = right_after.left_factor.values, right_after.right_factor.values
        ds = ds.rename({"scale": f"scale_{panel}", "seed": f"seed_{name}", "step": f"step_{panel}_{name}"})
        out[f"{key}_{name}"] = losses(ds)
        out["settings"] = ds.attrs["settings"]
        if name == "literal" and not key.startswith("gd"):
            out[f"predicted_{key}"] = _predicted(ds, eta, designs, starts, dimension)
    for width in (3, 4):
        gaps = _step_gaps(at_step[f"gd{width}"], at_step[f"step{width}"])
        out[f"product_gap{width}_{name}"], out[f"factor_gap{width}_{name}"] = gaps
    return out


def _step_gaps(plain: tuple[np.ndarray, ...], stepped: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """How far the step moves F G^T at the most, and F at the least, relative to their size."""
    (F, G), (F2, G2) = plain, stepped
    product, moved = F @ G.swapaxes(-1, -2), F2 @ G2.swapaxes(-1, -2)
    norm = lambda x: np.linalg.norm(x, axis=(-2, -1))  # noqa: E731
    return float((norm(moved - product) / norm(product)).max()), float((norm(F2 - F) / norm(F)).min())


def _predicted(ds: xr.Dataset, eta: float, designs: list[int], starts: int, dimension: int) -> xr.DataArray:
    """The rate that the curvature at the end of each run predicts."""
    F, G = (ds[name].isel({ds[name].dims[-3]: -1}) for name in ("left_factor", "right_factor"))
    scale, seed = F.dims[:2]
    rates = np.full((F.sizes[scale], F.sizes[seed]), np.nan)
    for d, design in enumerate(designs):
        problem = sensing(PER_ROW, design, dimension=dimension)
        rows = design_matrices(problem)
        matrices = rows / np.sqrt(len(rows))
        for i in range(F.sizes[scale]):
            for s in range(d * starts, (d + 1) * starts):
                rates[i, s] = late_speed(F.values[i, s], G.values[i, s], eta, RANK, matrices).rate
    return xr.DataArray(rates, dims=(scale, seed), coords={scale: F[scale]})


def draw_figure12(ds: xr.Dataset) -> Figure:
    panels = []
    for name, eta in RATES.items():
        panels += [
            _curves(ds, name, eta, "exact", "(a) k = r = 2"),
            _curves(ds, name, eta, "wide", "(b) k = 4"),
            _accelerated(ds, name, eta),
        ]
    return Figure(
        title=(
            "With k = r the rate does not depend on alpha, with k > r it does, and one imbalance step removes the "
            "dependence"
        ),
        panels=panels,
        printed=_printed(ds),
        note=(
            f"Medians and quartiles over starts and designs; r = 2, {size_text(ds, PER_ROW)}. Above the printed learning rate "
            "0.2, below one that fits the printed axes (0.03, with ten times fewer iterations than 0.003). Dashed: the "
            "rate -2 log(1 - eta lambda_H) from the curvature at the end. "
            f"{ds.sizes['seed_literal']} seeds above, {ds.sizes['seed_figure']} seeds below."
        ),
    )


def _printed(ds: xr.Dataset) -> list[Printed]:
    """What the caption says of each panel, beside the late rates at the printed learning rate."""
    exact, gains = _free_of_scale(ds).measured, _speed_up(ds).measured
    ratios = ", ".join(f"{exact[f'ratio_{a:g}']:.2f}" for a in EXACT)
    return [
        Printed(
            quantity=f"late rates with k = r at alpha = {', '.join(f'{a:g}' for a in EXACT)}, over their mean",
            paper="the rate is independent of the initialisation scale",
            ours=ratios,
        ),
        Printed(
            quantity="power of alpha with which the late rate grows, k = 4",
            paper="larger alpha, faster convergence (alpha^2 in Theorem 4.2)",
            ours=_quadratic(ds).measured["exponent"],
        ),
        Printed(
            quantity="late rate after the imbalance step over that of GD, k = 4, alpha = .05",
            paper="the loss falls faster after the half-way mark",
            ours=gains["k_4_alpha_0.05"],
        ),
    ]


def _curves(ds: xr.Dataset, name: str, eta: float, panel: str, title: str) -> Panel:
    y, steps = ds[f"{panel}_{name}"], ds[f"step_{panel}_{name}"].values
    series: list[Any] = []
    for i, scale in enumerate(y[f"scale_{panel}"].values):
        one = y.sel({f"scale_{panel}": scale})
        series.append(band(one, f"alpha = {scale:g}", x=steps, over=f"seed_{name}", colour=i))
        if name == "literal":
            rate = float(ds[f"predicted_{panel}"].sel({f"scale_{panel}": scale}).median())
            line = tail_of(steps, one.median(f"seed_{name}").values, rate)
            series.append(Line(*line, "rate predicted by the curvature", role="theory"))
    return Panel(
        title=f"{title}, eta = {eta:g}",
        xlabel="iteration",
        ylabel="loss",
        series=series,
        yscale="log",
        ylim=(1e-26, 20),
    )


def _accelerated(ds: xr.Dataset, name: str, eta: float) -> Panel:
    steps = ds[f"step_stepped_{name}"].values
    series: list[Any] = []
    for i, scale in enumerate(STEPPED):
        for kind, label in (("gd4", "GD"), ("step4", "with the step")):
            y = ds[f"{kind}_{name}"].sel(scale_stepped=scale)
            series.append(
                band(y, f"{label}, alpha = {scale:g}", x=steps, over=f"seed_{name}", colour=2 * i + (kind != "gd4"))
            )
    series.append(Marker(float(steps[-1] // 2), "the imbalance step", axis="x"))
    return Panel(
        title=f"(c) k = 4, eta = {eta:g}",
        xlabel="iteration",
        ylabel="loss",
        series=series,
        yscale="log",
        ylim=(1e-26, 20),
    )


def _rates(ds: xr.Dataset, key: str, part: float = 0.3) -> xr.DataArray:
    panel = key if key in HORIZONS else "stepped"
    y = ds[f"{key}_literal"].rename({f"step_{panel}_literal": "step"})
    return median(late_rates(y, y.step, part), "seed_literal")


def _free_of_scale(ds: xr.Dataset) -> Outcome:
    rates = _rates(ds, "exact")
    return within(0.9, 1.1, **{f"ratio_{a:g}": float(rates.sel(scale_exact=a) / rates.mean()) for a in EXACT})


def _quadratic(ds: xr.Dataset) -> Outcome:
    rates = _rates(ds, "wide").sel(scale_wide=[0.5, 0.2, 0.1])
    measured = {f"rate_{a:g}": float(rates.sel(scale_wide=a)) for a in (0.5, 0.2, 0.1)}
    return Outcome({**measured, "exponent": (e := slope(np.array([0.5, 0.2, 0.1]), rates.values))}, 1.7 <= e <= 2.3)


def _curvature(ds: xr.Dataset) -> Outcome:
    measured: dict[str, float] = {}
    for panel, scales in (("exact", EXACT), ("wide", WIDE[:2])):
        ratio = _rates(ds, panel) / median(ds[f"predicted_{panel}"], "seed_literal")
        measured |= {f"{panel}_{a:g}": float(ratio.sel({f"scale_{panel}": a})) for a in scales}
    return within(0.9, 1.1, **measured)


def _step_rates(ds: xr.Dataset, width: int) -> xr.DataArray:
    y = ds[f"step{width}_literal"].rename(step_stepped_literal="step")
    after = y.isel(step=slice(y.sizes["step"] // 2 + 1, None))
    return median(late_rates(after, after.step, 0.4), "seed_literal")


def _after_the_step(ds: xr.Dataset) -> Outcome:
    measured = {}
    for width in (3, 4):
        rates = _step_rates(ds, width)
        measured[f"k_{width}_ratio"] = float(rates.sel(scale_stepped=0.5) / rates.sel(scale_stepped=0.05))
        measured[f"k_{width}_rate"] = float(rates.sel(scale_stepped=0.05))
    ratios = [v for name, v in measured.items() if name.endswith("ratio")]
    return Outcome(measured, all(0.9 <= v <= 1.1 for v in ratios))


def _speed_up(ds: xr.Dataset) -> Outcome:
    # The late rate of plain descent is taken from its second half: the rate at which it would go on.
    small, large = {}, {}
    for width in (3, 4):
        gain = _step_rates(ds, width) / _rates(ds, f"gd{width}")
        small[f"k_{width}_alpha_0.05"] = float(gain.sel(scale_stepped=0.05))
        large[f"k_{width}_alpha_0.5"] = float(gain.sel(scale_stepped=0.5))
    return together(within(8, np.inf, **small), within(1.5, np.inf, **large))


def _keeps_product(ds: xr.Dataset) -> Outcome:
    return together(
        within(0, 1e-9, **{f"product_k_{k}": float(ds[f"product_gap{k}_literal"]) for k in (3, 4)}),
        within(1e-3, np.inf, **{f"factor_k_{k}": float(ds[f"factor_gap{k}_literal"]) for k in (3, 4)}),
    )


def _ends(ds: xr.Dataset) -> Outcome:
    y = last(ds.exact_figure.rename(step_exact_figure="step"))
    return within(0, 1e-3, **{f"loss_{a:g}": median(y.sel(scale_exact=a), "seed_figure") for a in EXACT})


FIG12 = Experiment(
    name="fig1.2",
    title="Asymmetric sensing and the imbalance step",
    source="Xiong 2024, Figure 1.2",
    summary=(
        f"n = {DIMENSION}, r = 2, m = 700 Gaussian measurements, start alpha N(0, 1/n) and (alpha/3) N(0, 1/n). The printed "
        "learning rate 0.2 does not fit the printed axes; 0.003 does. Curves depend on eta x iteration only."
    ),
    sizes={
        "smoke": {"dimension": 20, "starts": 6, "designs": 3, "stretch": 1.0, "figure_starts": 2},
        "standard": {"dimension": 50, "starts": 4, "designs": 2, "stretch": 1.0, "figure_starts": 4},
        "full": {"dimension": 50, "starts": 8, "designs": 8, "stretch": 2.0, "figure_starts": 8},
    },
    compute=figure12_data,
    draw=draw_figure12,
    claims=[
        Claim(
            slug="exact-width-rate",
            statement="With k = r the linear rate does not depend on the initial scale.",
            criterion="median late rates at alpha = .5, .2, .05 within 10 % of their mean",
            measure=_free_of_scale,
            names={f"ratio_{a:g}": f"rate over the mean, alpha = {a:g}" for a in EXACT},
        ),
        Claim(
            slug="wide-rate",
            statement="With k > r the rate is linear and grows as alpha^2.",
            criterion="exponent of the late rate in alpha (from .5, .2, .1) in [1.7, 2.3]",
            measure=_quadratic,
            names={f"rate_{a:g}": f"late rate, alpha = {a:g} [per iteration]" for a in WIDE[:3]}
            | {"exponent": "exponent of the rate in alpha"},
        ),
        Claim(
            slug="curvature",
            ours=True,
            statement="The late rate is -2 log(1 - eta lambda_H), with lambda_H from the Gauss-Newton Hessian (ours).",
            criterion="measured over predicted within 10 %, k = r, and k = 4 with alpha >= .2 (late: eta t alpha^2 >> 1)",
            measure=_curvature,
        ),
        Claim(
            slug="step-frees-the-rate",
            statement="After the imbalance step the rate no longer depends on alpha.",
            criterion="rates at alpha = .5 and .05 within 10 % of each other, k = 3 and 4",
            measure=_after_the_step,
            names={f"k_{k}_ratio": f"rate at alpha = .5 over that at .05, k = {k}" for k in (3, 4)}
            | {f"k_{k}_rate": f"rate at alpha = .05, k = {k} [per iteration]" for k in (3, 4)},
        ),
        Claim(
            slug="step-speeds-up",
            statement="The step accelerates descent; the smaller alpha is, the more it does so.",
            criterion="late rate after the step over that of GD: >= 8 at alpha = .05, >= 1.5 at alpha = .5, k = 3 and 4",
            measure=_speed_up,
        ),
        Claim(
            slug="step-keeps-the-product",
            statement="The step changes the factors and keeps their product.",
            criterion="right after it F G^T is that of the run without it to 1e-9, and F is not to 1e-3, in every run",
            measure=_keeps_product,
        ),
        Claim(
            slug="figure-axis",
            statement="At a learning rate that fits the printed axes, panel a has converged within them.",
            criterion="median loss <= 1e-3 at eta x iteration = 90 for every alpha",
            measure=_ends,
            names={f"loss_{a:g}": f"loss, alpha = {a:g}" for a in EXACT},
        ),
    ],
    weight=34,
)
