"""Figures I.1-I.5: more sensing experiments of the appendix."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.lab.experiment import Claim, Experiment, Outcome, within
from gyrostat.lab.figures import Figure, Marker, Panel, Points, band
from gyrostat.papers.statistics import last, median
from gyrostat.papers.xiong2024.common import FIGURE, LITERAL, designs_of, losses, over_designs, sensing

# ------------------------------------------------------------------------------------------ Figure I.1

SCALES = (0.5, 0.2, 0.05)
MODELS = {"symmetric": True, "asymmetric": False}


def figure_i1_data(
    *, seed: int, progress: Any = None, dimension: int, starts: int, designs: int, until: float
) -> xr.Dataset:
    """k = 4, r = 2, m = 1200, eta = .2: X X^T against F G^T, until eta t alpha^2 = ``until``."""

    def build(kind: str, scale: float, design: int) -> Any:
        # The same size of start for both: alpha N(0, 1/n).
        start = gs.ScaledGaussian(scale / dimension**0.5) if MODELS[kind] else scale
        descent = gs.GradientDescent(LITERAL, width=4, symmetric=MODELS[kind], start=start)
        return descent, sensing(24, design, dimension=dimension)

    def steps(kind: str, scale: float) -> int:
        return max(600, round(until / (LITERAL * scale**2)))

    return over_designs(
        build, {"kind": list(MODELS), "scale": list(SCALES)}, designs_of(seed, designs), progress, num_steps=steps,
        seeds=starts, seed=seed, record=("distance",), record_at=301,
    )  # fmt: skip


def draw_figure_i1(ds: xr.Dataset) -> Figure:
    loss = losses(ds)
    panels = []
    for scale in SCALES:
        series: list[Any] = [
            band(
                loss.sel(kind=kind, scale=scale),
                f"{kind}",
                x=LITERAL * ds.step.sel(kind=kind, scale=scale).values,
                colour=i,
            )
            for i, kind in enumerate(MODELS)
        ]
        series.append(Marker(90.0, "end of the paper's axis (30,000 x .003)", axis="x", role="paper"))
        series.append(Marker(8 / scale**2, "eta t alpha^2 = 8", axis="x"))
        panels.append(Panel(f"alpha = {scale:g}", "eta x iteration", "loss", series, "log", "log", xlim=(1, None)))  # type: ignore[arg-type]
    return Figure(
        "Two factors overtake one for good, but only at eta t alpha^2 of about 8", panels,
        note="Medians and quartiles over starts and designs; n = 50, k = 4, r = 2, m = 1200, eta = .2.",
    )  # fmt: skip


def overtaking(ds: xr.Dataset) -> xr.DataArray:
    """eta t alpha^2 at which the asymmetric run gets below the symmetric one for good (NaN: not before the end)."""
    loss = losses(ds)
    behind = (loss.sel(kind="asymmetric") >= loss.sel(kind="symmetric")).transpose(..., "record")
    records = behind.sizes["record"]
    final = records - behind.isel(record=slice(None, None, -1)).argmax("record")
    final = xr.where(behind.any("record"), final, 0)
    time = LITERAL * ds.step.sel(kind="symmetric") * ds.scale**2
    found = time.broadcast_like(loss.sel(kind="symmetric")).isel(record=np.minimum(final, records - 1))
    return found.where(final < records)


def _overtakes(ds: xr.Dataset) -> Outcome:
    found = median(overtaking(ds))
    return within(3, 15, **{f"alpha_{a:g}": found.sel(scale=a) for a in SCALES})


def _at_every_scale(ds: xr.Dataset) -> Outcome:
    loss, wins = losses(ds), {}
    for scale in SCALES:
        tau = LITERAL * ds.step.sel(kind="symmetric", scale=scale).values
        at = int(np.argmin(abs(tau - 90)))
        pair = loss.sel(scale=scale).isel(record=at)
        wins[f"share_alpha_{scale:g}"] = float((pair.sel(kind="asymmetric") < pair.sel(kind="symmetric")).mean())
    return within(0.9, 1, **wins)


FIG_I1 = Experiment(
    "figI1",
    "One factor against two in sensing",
    "Xiong 2024, Figure I.1",
    "The same measurements, recovered with X X^T and with F G^T. Large eta x iteration shows what the printed axis cuts off.",
    {
        "smoke": {"dimension": 20, "starts": 2, "designs": 6, "until": 14.0},
        "standard": {"dimension": 50, "starts": 3, "designs": 2, "until": 14.0},
        "full": {"dimension": 50, "starts": 5, "designs": 4, "until": 30.0},
    },
    figure_i1_data,
    draw_figure_i1,
    [
        Claim("overtakes", "Asymmetric sensing overtakes symmetric sensing for good when eta t alpha^2 is about 8 (ours).",
              "median of eta t alpha^2 at the last overtaking in [3, 15] (designs scatter by a factor of 2)", _overtakes),
        Claim("faster-at-every-alpha", "Asymmetric sensing converges faster than symmetric under every initial scale.",
              "at the end of the paper's axis (eta t = 90) the asymmetric loss is lower in 90 % of the runs for every alpha",
              _at_every_scale, "fails",
              "It overtakes only at eta t alpha^2 of about 8, which the axis reaches for alpha = .5 but not for .2 and .05."),
    ],
    weight=25,
)  # fmt: skip

# ------------------------------------------------------------------------------------------ Figure I.2

KAPPAS = (1.25, 1.5, 3.0, 10.0)


def figure_i2_data(
    *, seed: int, progress: Any = None, dimension: int, starts: int, designs: int, tau: float
) -> xr.Dataset:
    """k = 4, r = 2, m = 700, alpha = .05, eta = .2: sigma = (1, 1/kappa)."""

    def build(kappa: float, design: int) -> Any:
        return gs.GradientDescent(LITERAL, width=4, start=0.05), sensing(14, design, (1.0, 1 / kappa), dimension)

    ds = over_designs(
        build, {"kappa": list(KAPPAS)}, designs_of(seed, designs), progress, num_steps=round(tau / LITERAL), seeds=starts,
        seed=seed, record=("distance", "singular_values"), record_at=401,
    )  # fmt: skip
    return ds.isel(singular_value=slice(0, 3))


def draw_figure_i2(ds: xr.Dataset) -> Figure:
    loss, tau = losses(ds), LITERAL * ds.step.values
    flat = plateau(ds)
    return Figure(
        "The worse the condition, the longer the loss stays flat before the second component is learnt",
        [
            Panel(
                "Loss", "eta x iteration", "loss",
                [band(loss.sel(kappa=k), f"kappa = {k:g}", x=tau, colour=i) for i, k in enumerate(KAPPAS)],
                yscale="log", ylim=(1e-7, 2),
            ),
            Panel(
                "Length of the plateau", "condition number", "eta x iterations",
                [Points(KAPPAS, median(flat), "from sigma_1 to sigma_2 learnt", flat.min("seed"), flat.max("seed"))],
                "log", "log",
            ),
        ],
        note="Medians, quartiles (left) and ranges (right); n = 50, k = 4, r = 2, m = 700, alpha = .05, eta = .2. "
        "The text says kappa = 1.5, the legend 1.25: both are shown.",
    )  # fmt: skip


def plateau(ds: xr.Dataset) -> xr.DataArray:
    """eta x iterations between the first and the second singular value reaching nine tenths of theirs."""
    s = ds.singular_values
    targets = xr.DataArray(np.stack([np.ones(len(KAPPAS)), 1 / np.array(KAPPAS)], 1), dims=("kappa", "singular_value"))
    there = s.isel(singular_value=slice(0, 2)) >= 0.9 * targets
    at = ds.step.isel(step=there.argmax("step")).where(there.any("step"))
    return LITERAL * (at.isel(singular_value=1) - at.isel(singular_value=0))


def _longer(ds: xr.Dataset) -> Outcome:
    flat = median(plateau(ds)).values
    found = {f"plateau_{k:g}": v for k, v in zip(KAPPAS, flat, strict=True)}
    return Outcome({k: float(v) for k, v in found.items()}, bool((np.diff(flat) > 0).all()))


FIG_I2 = Experiment(
    "figI2",
    "Condition number and the plateau",
    "Xiong 2024, Figure I.2",
    "Gradient descent learns singular values one after the other; the smaller the second, the longer the wait.",
    {
        "smoke": {"dimension": 20, "starts": 3, "designs": 1, "tau": 150.0},
        "standard": {"dimension": 50, "starts": 4, "designs": 2, "tau": 150.0},
        "full": {"dimension": 50, "starts": 5, "designs": 8, "tau": 300.0},
    },
    figure_i2_data,
    draw_figure_i2,
    [
        Claim("plateau", "The curve remains flat for a longer time when the target is ill-conditioned.",
              "median plateau increases over kappa = 1.25, 1.5, 3, 10", _longer),
    ],
    weight=6,
)  # fmt: skip

# ------------------------------------------------------------------------------------------ Figure I.3

LARGE = (0.5, 1.0, 3.0, 5.0)


def figure_i3_data(
    *, seed: int, progress: Any = None, dimension: int, starts: int, designs: int, eta: float
) -> xr.Dataset:
    """k = 4, r = 2, m = 700, eta t = 60: large initial scales, at a small learning rate and at the printed .2."""
    numbers = designs_of(seed, designs)

    def build(step_size: float) -> Any:
        return lambda scale, design: (
            gs.GradientDescent(step_size, width=4, start=scale),
            sensing(14, design, dimension=dimension),
        )

    options = {"seeds": starts, "seed": seed, "record": ("distance", "factor_values"), "record_at": 101}
    small = over_designs(build(eta), {"scale": list(LARGE)}, numbers, progress, num_steps=round(60 / eta), **options)
    literal = over_designs(build(LITERAL), {"scale": list(LARGE)}, numbers, progress, num_steps=300, **options)
    return xr.Dataset(
        {"loss": losses(small), "factor": small.factor_values, "literal": losses(literal).rename(step="step_literal"),
         "diverged": literal.diverged},
        attrs={"settings": small.attrs["settings"], "eta": eta},
    )  # fmt: skip


def draw_figure_i3(ds: xr.Dataset) -> Figure:
    eta = ds.attrs["eta"]
    return Figure(
        "A large start is slow because its factor turns slowly, and at the printed rate the largest one diverges",
        [
            Panel(
                f"eta = {eta:g}", "eta x iteration", "loss",
                [band(ds.loss.sel(scale=a), f"alpha = {a:g}", x=eta * ds.step.values, colour=i) for i, a in enumerate(LARGE)],
                yscale="log",
            ),
            Panel(
                "The printed eta = .2", "eta x iteration", "loss",
                [
                    band(ds.literal.sel(scale=a), f"alpha = {a:g}", x=LITERAL * ds.step_literal.values, colour=i)
                    for i, a in enumerate(LARGE)
                    if bool((ds.diverged.sel(scale=a) < 0).any())
                ],
                yscale="log",
            ),
        ],
        note="Medians and quartiles over starts and designs; n = 50, k = 4, r = 2, m = 700. Runs that diverged are left out.",
    )  # fmt: skip


def _order(ds: xr.Dataset) -> Outcome:
    end = median(last(ds.loss))
    found = {f"loss_{a:g}": float(end.sel(scale=a)) for a in LARGE}
    one, half, three, five = (found[f"loss_{a:g}"] for a in (1.0, 0.5, 3.0, 5.0))
    return Outcome(found, one < half < three < five)


def _literal_diverges(ds: xr.Dataset) -> Outcome:
    share = (ds.diverged >= 0).mean("seed")
    found = {f"diverged_{a:g}": float(share.sel(scale=a)) for a in LARGE}
    return Outcome(found, found["diverged_5"] == 0)


FIG_I3 = Experiment(
    "figI3",
    "Large initial scales",
    "Xiong 2024, Figure I.3",
    "Starts of size .5 to 5. The printed axis (20,000 iterations) and the losses on it fit eta t = 60, not eta = .2.",
    {
        "smoke": {"dimension": 20, "starts": 3, "designs": 1, "eta": 0.03},
        "standard": {"dimension": 50, "starts": 4, "designs": 1, "eta": 0.015},
        "full": {"dimension": 50, "starts": 5, "designs": 4, "eta": 0.003},
    },
    figure_i3_data,
    draw_figure_i3,
    [
        Claim("order", "If alpha is overly large the algorithm converges slower.",
              "median losses at eta t = 60 in the order alpha = 1 < .5 < 3 < 5", _order),
        Claim("printed-rate", "The figure was made with the printed learning rate .2.",
              "no run with alpha = 5 diverges at eta = .2", _literal_diverges, "fails",
              "At eta = .2 every run from alpha = 5 leaves the finite range, while the printed curve is finite; "
              "eta = .003 fits all the printed axes."),
    ],
    weight=12,
)  # fmt: skip

# ------------------------------------------------------------------------------------------ Figure I.4


def figure_i4_data(*, seed: int, progress: Any = None, dimension: int, starts: int, designs: int) -> xr.Dataset:
    """k = 10, r = 5, m = 2000, eta = .03: symmetric, asymmetric, and the imbalance step half-way."""
    numbers, values = designs_of(seed, designs), (1.0,) * 5
    half = 800

    def build(symmetric: bool = False, events: tuple = ()) -> Any:
        return lambda scale, design: (
            gs.GradientDescent(FIGURE, width=10, symmetric=symmetric, start=scale, events=events),
            sensing(40, design, values, dimension),
        )

    options = {"seeds": starts, "seed": seed, "record": ("distance",), "record_at": 101}
    step = build(events=(gs.ImbalanceStep(at=half, beta=1.0),))
    runs = {
        "symmetric": (build(symmetric=True), SCALES, 2000),
        "asymmetric": (build(), SCALES, 3000),
        "gd": (build(), (0.5, 0.05), 2 * half),
        "step": (step, (0.5, 0.05), 2 * half),
    }
    out: dict[str, Any] = {}
    for name, (make, scales, steps) in runs.items():
        ds = over_designs(make, {"scale": list(scales)}, numbers, progress, num_steps=steps, **options)
        panel = "c" if name in ("gd", "step") else name
        out[name] = losses(ds).rename(scale=f"scale_{panel}", step=f"step_{panel}")
    return xr.Dataset(out, attrs={"settings": ds.attrs["settings"]})


def draw_figure_i4(ds: xr.Dataset) -> Figure:
    def panel(name: str, title: str) -> Panel:
        y = ds[name]
        series = [
            band(y.sel({f"scale_{name}": a}), f"alpha = {a:g}", x=ds[f"step_{name}"].values, colour=i)
            for i, a in enumerate(SCALES)
        ]
        return Panel(title, "iteration", "loss", series, yscale="log")

    series: list[Any] = []
    for i, a in enumerate((0.5, 0.05)):
        series.append(band(ds.gd.sel(scale_c=a), f"GD, alpha = {a:g}", colour=2 * i))
        series.append(band(ds.step.sel(scale_c=a), f"with the step, alpha = {a:g}", colour=2 * i + 1))
    series.append(Marker(float(ds.step_c[-1]) / 2, "the imbalance step", axis="x"))
    return Figure(
        "The same with rank 5 and ten columns",
        [
            panel("symmetric", "(a) X X^T"),
            panel("asymmetric", "(b) F G^T"),
            Panel("(c) The imbalance step", "iteration", "loss", series, yscale="log"),
        ],
        note="Medians and quartiles over starts and designs; n = 50, m = 2000, eta = .03 (a tenth of the printed iterations).",
    )


def _below(ds: xr.Dataset) -> Outcome:
    gain = median(last(ds.gd.rename(step_c="step"))) / median(last(ds.step.rename(step_c="step")))
    found = {f"gain_alpha_{a:g}": float(gain.sel(scale_c=a)) for a in (0.5, 0.05)}
    return Outcome(found, found["gain_alpha_0.5"] >= 30 and found["gain_alpha_0.05"] >= 100)


def _similar(ds: xr.Dataset) -> Outcome:
    one = last(ds.symmetric.rename(step_symmetric="step")).sel(scale_symmetric=0.5)
    two = last(ds.asymmetric.rename(step_asymmetric="step")).sel(scale_asymmetric=0.5)
    return within(5, np.inf, symmetric_over_asymmetric=float(median(one)) / float(median(two)))


FIG_I4 = Experiment(
    "figI4",
    "A larger rank",
    "Xiong 2024, Figure I.4",
    "r = 5, k = 10, m = 2000: the phenomena of Figures 1.1 and 1.2 again.",
    {
        "smoke": {"dimension": 20, "starts": 3, "designs": 1},
        "standard": {"dimension": 50, "starts": 3, "designs": 1},
        "full": {"dimension": 50, "starts": 5, "designs": 4},
    },
    figure_i4_data,
    draw_figure_i4,
    [
        Claim("step-below-gd", "The new method also performs well in this setting.",
              "loss of GD over loss with the step at the end: >= 30 at alpha = .5, >= 100 at alpha = .05", _below),
        Claim("same-phenomena", "Symmetric slow, asymmetric fast, as with the smaller rank.",
              "at the ends of their axes, the symmetric loss is at least five times the asymmetric one (alpha = .5)", _similar),
    ],
    weight=15,
)  # fmt: skip

# ------------------------------------------------------------------------------------------ Figure I.5


def figure_i5_data(*, seed: int, progress: Any = None, dimension: int, starts: int, designs: int) -> xr.Dataset:
    """The first iterations of Figure 1.2 b (k = 4, m = 700) at eta = .003 and at the printed .2."""
    numbers = designs_of(seed, designs)
    out: dict[str, Any] = {}
    for name, eta, steps in (("figure", 0.003, 1600), ("literal", LITERAL, 30)):

        def build(scale: float, design: int, eta: float = eta) -> Any:
            return gs.GradientDescent(eta, width=4, start=scale), sensing(14, design, dimension=dimension)

        ds = over_designs(
            build, {"scale": list(SCALES)}, numbers, progress, num_steps=steps, seeds=starts, seed=seed,
            record=("distance",), record_at=321,
        )  # fmt: skip
        out[name] = losses(ds).rename(step=f"step_{name}")
    return xr.Dataset(out, attrs={"settings": ds.attrs["settings"]})


def flat_until(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The first recorded iteration at which the loss is below nine tenths of its first value."""
    y, step = ds[name], f"step_{name}"
    there = y < 0.9 * y.isel({step: 0})
    return ds[step].isel({step: there.argmax(step)}).where(there.any(step))


def draw_figure_i5(ds: xr.Dataset) -> Figure:
    def panel(name: str, title: str) -> Panel:
        series: list[Any] = []
        for i, a in enumerate(SCALES):
            series.append(band(ds[name].sel(scale=a), f"alpha = {a:g}", x=ds[f"step_{name}"].values, colour=i))
            at = float(median(flat_until(ds, name).sel(scale=a)))
            series.append(Marker(at, "loss below .9 of its start", axis="x"))
        return Panel(title, "iteration", "loss", series, yscale="log")

    return Figure(
        "A smaller start waits longer before the loss falls",
        [panel("figure", "eta = .003, which fits the printed axis"), panel("literal", "the printed eta = .2")],
        note="Medians and quartiles over starts and designs; n = 50, k = 4, r = 2, m = 700. The paper's axis has 5000 "
        "iterations, on which the phase is visible at .003 and would last 10 to 20 iterations at .2.",
    )


def _waits(ds: xr.Dataset) -> Outcome:
    found: dict[str, float] = {}
    good = True
    for name in ("figure", "literal"):
        wait = median(flat_until(ds, name))
        found |= {f"{name}_{a:g}": float(wait.sel(scale=a)) for a in SCALES}
        good &= bool((np.diff(wait.sel(scale=list(SCALES)).values) > 0).all())
    return Outcome(found, good)


FIG_I5 = Experiment(
    "figI5",
    "The initial phase",
    "Xiong 2024, Figure I.5",
    "The first iterations of Figure 1.2 b.",
    {
        "smoke": {"dimension": 20, "starts": 3, "designs": 1},
        "standard": {"dimension": 50, "starts": 5, "designs": 2},
        "full": {"dimension": 50, "starts": 10, "designs": 10},
    },
    figure_i5_data,
    draw_figure_i5,
    [
        Claim("waits", "The initialisation phase is longer when alpha is smaller.",
              "median first iteration with loss < .9 of its start increases over alpha = .5, .2, .05, at both rates", _waits),
    ],
    weight=8,
)  # fmt: skip
