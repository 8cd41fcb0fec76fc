"""Figures 1.2, I.4 and I.5: two factors in sensing; the same at rank five, and in its first iterations."""

from dataclasses import replace

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.diagnostics import late_speed
from gyrostat.experiments import Experiment, claim, last, median, slope
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, Marker, band
from gyrostat.papers.xiong2024.settings import (
    FIGURE,
    FIGURE12_AXIS,
    FIGURE12A,
    FIGURE12B,
    FIGURE12C,
    FIGURE_I4,
    FIGURE_I5,
    LITERAL,
    bands,
    descend,
    design_matrices,
    designs_of,
    late_rates,
    losses,
    sensing,
    size_text,
    tail_of,
    unpacked,
)

RATES = {"literal": LITERAL, "figure": FIGURE}
STEPPED = {f"{kind}{k}": replace(FIGURE12C, width=k) for kind in ("gd", "step") for k in (3, 4)}
"""Panel c: plain descent, and descent with the step half-way."""
CURVES = {"exact": FIGURE12A, "wide": FIGURE12B} | STEPPED


def gap(matrices, others):
    """How far matrices are from others, relative to the size of these."""
    return np.linalg.norm(matrices - others, axis=(-2, -1)) / np.linalg.norm(others, axis=(-2, -1))


def predicted_rates(ds, setting, numbers, dimension):
    """The rate that the curvature at the end of each run predicts."""
    designs = [design_matrices(sensing(setting.per_row, number, dimension=dimension)) for number in numbers]
    of_runs = [X / np.sqrt(len(X)) for X in designs for _ in range(ds.sizes["seed"] // len(numbers))]
    pairs = zip(last(ds.left_factor).values, last(ds.right_factor).values)  # for each scale, those of all runs
    return [
        [late_speed(*run, setting.step_size, setting.rank, X).rate for *run, X in zip(F, G, of_runs)] for F, G in pairs
    ]


def beside_the_step(plain, stepped):
    """Bands of descent without and with the imbalance step, which comes half-way."""
    shown = [
        band(y.sel(scale=scale), f"{label}, alpha = {scale:g}", colour=2 * i + j)
        for i, scale in enumerate(plain.scale.values)
        for j, (y, label) in enumerate(((plain, "GD"), (stepped, "with the step")))
    ]
    return [*shown, Marker(float(plain.step[-1] // 2), "the imbalance step", axis="x")]


class Fig12(Experiment):
    """Asymmetric sensing and the imbalance step

    n = 50, r = 2, m = 700 Gaussian measurements, start alpha N(0, 1/n) and (alpha/3) N(0, 1/n). The printed learning rate 0.2
    does not fit the printed axes; 0.003 does. Curves depend on eta x iteration only.
    """

    name, source, weight, items = "fig1.2", "Xiong 2024, Figure 1.2", 34, "Figure 1.2"
    sizes = {
        "dimension": (20, 50, 50),
        "starts": (6, 4, 8),
        "designs": (3, 2, 8),
        "stretch": (1.0, 1.0, 2.0),
        "figure_starts": (2, 4, 8),
    }

    def compute(self, run, dimension, starts, designs, stretch, figure_starts):
        data, F, G = {}, {}, {}
        for rate, eta in run.over(RATES.items()):
            literal = rate == "literal"
            numbers = designs_of(run.seed, designs if literal else 1)
            for key, curve in run.over(CURVES.items()):
                time = curve.time * stretch if literal else min(curve.time, FIGURE12_AXIS)
                setting = replace(curve, step_size=eta, time=time)
                half, records = setting.num_steps // 2, np.linspace(0, setting.num_steps, 101).round()
                ds = descend(
                    run,
                    setting,
                    len(numbers),
                    dimension,
                    events=(gs.events.ImbalanceStep(at=half, beta=1.0),) if key.startswith("step") else (),
                    seeds=starts if literal else figure_starts,
                    record=("distance", "left_factor", "right_factor"),
                    record_at=(np.union1d(records, [half + 1]) if key in STEPPED else records).astype(int),
                )
                part = "stepped" if key in STEPPED else key
                dims = {"scale": f"scale_{part}", "seed": f"seed_{rate}", "step": f"step_{part}_{rate}"}
                data[f"{key}_{rate}"] = losses(ds).rename(dims)
                if key in STEPPED:
                    after = ds.sel(step=half + 1, method="nearest")
                    F[key], G[key] = after.left_factor.values, after.right_factor.values
                elif literal:
                    predicted = predicted_rates(ds, setting, numbers, dimension)
                    data[f"predicted_{key}"] = (dims["scale"], dims["seed"]), predicted
            for k in (3, 4):
                plain, moved = (F[key] @ G[key].swapaxes(-1, -2) for key in (f"gd{k}", f"step{k}"))
                data[f"product_gap{k}_{rate}"] = gap(moved, plain).max()
                data[f"factor_gap{k}_{rate}"] = gap(F[f"step{k}"], F[f"gd{k}"]).min()
        return xr.Dataset(data, attrs={"settings": ds.attrs["settings"]})

    def rates(self, ds, key):
        return median(late_rates(unpacked(ds, f"{key}_literal"), 0.3))

    def rates_after(self, ds, k):
        """The late rates after the step."""
        y = unpacked(ds, f"step{k}_literal")
        return median(late_rates(y.isel(step=slice(y.sizes["step"] // 2 + 1, None)), 0.4))

    def predicted(self, ds, key):
        return median(unpacked(ds, f"predicted_{key}"))

    def curves(self, ds, key, rate):
        y = unpacked(ds, f"{key}_{rate}")
        for shown, scale in zip(bands(y, "scale", "alpha = {:g}"), y.scale):
            yield shown
            if rate == "literal":
                typical, predicted = y.sel(scale=scale).median("seed"), self.predicted(ds, key).sel(scale=scale)
                tail = tail_of(y.step.values, typical.values, float(predicted))
                yield Line(*tail, label="rate predicted by the curvature", role="theory")

    def draw(self, ds):
        def panels(rate):
            for title, series in (
                ("(a) k = r = 2", self.curves(ds, "exact", rate)),
                ("(b) k = 4", self.curves(ds, "wide", rate)),
                ("(c) k = 4", beside_the_step(*(unpacked(ds, f"{kind}4_{rate}") for kind in ("gd", "step")))),
            ):
                title = f"{title}, eta = {RATES[rate]:g}"
                yield panel(title, "iteration", "loss", *series, yscale="log", ylim=(1e-26, 20))

        scales = ", ".join(f"{a:g}" for a in FIGURE12A.scales)
        return figure(
            *(shown for rate in RATES for shown in panels(rate)),
            title="With k = r the rate does not depend on alpha, with k > r it does, and one imbalance step removes the "
            "dependence",
            printed={
                f"late rates with k = r at alpha = {scales}, over their mean": (
                    "the rate is independent of the initialisation scale",
                    ", ".join(f"{ratio:.2f}" for ratio in self.exact_width_rate(ds).values),
                ),
                "power of alpha with which the late rate grows, k = 4": (
                    "larger alpha, faster convergence (alpha^2 in Theorem 4.2)",
                    self.wide_rate(ds)[1],
                ),
                "late rate after the imbalance step over that of GD, k = 4, alpha = .05": (
                    "the loss falls faster after the half-way mark",
                    self.step_speeds_up(ds)[0]["k_4_alpha_0.05"],
                ),
            },
            note=f"Medians and quartiles over starts and designs; r = 2, {size_text(ds, FIGURE12A.per_row)}. Above the printed "
            "learning rate 0.2, below one that fits the printed axes (0.03, with ten times fewer iterations than 0.003). "
            "Dashed: the rate -2 log(1 - eta lambda_H) from the curvature at the end. "
            f"{ds.sizes['seed_literal']} seeds above, {ds.sizes['seed_figure']} seeds below.",
        )

    @claim(
        "median late rates at alpha = .5, .2, .05 within 10 % of their mean",
        items="Figure 1.2; Theorem 1.2",
        names={f"ratio_{a:g}": f"rate over the mean, alpha = {a:g}" for a in FIGURE12A.scales},
        ratio=(0.9, 1.1),
    )
    def exact_width_rate(self, ds):
        """With k = r the linear rate does not depend on the initial scale."""
        rates = self.rates(ds, "exact")
        return rates / rates.mean()

    @claim(
        "exponent of the late rate in alpha (from .5, .2, .1) in [1.7, 2.3]",
        items="Figure 1.2; Theorem 1.3",
        names={f"rate_{a:g}": f"late rate, alpha = {a:g} [per iteration]" for a in FIGURE12B.scales[:3]}
        | {"exponent": "exponent of the rate in alpha"},
        rate=None,
        exponent=(1.7, 2.3),
    )
    def wide_rate(self, ds):
        """With k > r the rate is linear and grows as alpha^2."""
        rates = self.rates(ds, "wide").sel(scale=[0.5, 0.2, 0.1])
        return rates, slope(rates.scale.values, rates.values)

    @claim(
        "measured over predicted within 10 %, k = r, and k = 4 with alpha >= .2 (late: eta t alpha^2 >> 1)",
        ours=True,
        exact=(0.9, 1.1),
        wide=(0.9, 1.1),
    )
    def curvature(self, ds):
        """The late rate is -2 log(1 - eta lambda_H), with lambda_H from the Gauss-Newton Hessian (ours)."""
        exact, wide = (self.rates(ds, key) / self.predicted(ds, key) for key in ("exact", "wide"))
        return exact, wide.sel(scale=[0.5, 0.2])

    @claim(
        "rates at alpha = .5 and .05 within 10 % of each other, k = 3 and 4",
        items="Figure 1.2; Theorem 1.4",
        names={f"k_{k}_ratio": f"rate at alpha = .5 over that at .05, k = {k}" for k in (3, 4)}
        | {f"k_{k}_rate": f"rate at alpha = .05, k = {k} [per iteration]" for k in (3, 4)},
        ratio=(0.9, 1.1),
        rate=None,
    )
    def step_frees_the_rate(self, ds):
        """After the imbalance step the rate no longer depends on alpha."""
        rates = {k: self.rates_after(ds, k) for k in (3, 4)}
        ratio = {f"k_{k}_ratio": rates[k].sel(scale=0.5) / rates[k].sel(scale=0.05) for k in rates}
        return ratio, {f"k_{k}_rate": rates[k].sel(scale=0.05) for k in rates}

    @claim(
        "late rate after the step over that of GD: >= 8 at alpha = .05, >= 1.5 at alpha = .5, k = 3 and 4",
        small_start=(8, np.inf),
        large_start=(1.5, np.inf),
    )
    def step_speeds_up(self, ds):
        """The step accelerates descent; the smaller alpha is, the more it does so."""
        # The late rate of plain descent is the one at the end of its runs: the rate at which it would go on.
        gain = {k: self.rates_after(ds, k) / self.rates(ds, f"gd{k}") for k in (3, 4)}
        return tuple({f"k_{k}_alpha_{a:g}": gain[k].sel(scale=a) for k in gain} for a in (0.05, 0.5))

    @claim(
        "right after it F G^T is that of the run without it to 1e-9, and F is not to 1e-3, in every run",
        items="(5.1)",
        product=(0, 1e-9),
        factor=(1e-3, np.inf),
    )
    def step_keeps_the_product(self, ds):
        """The step changes the factors and keeps their product."""
        return tuple({f"{what}_k_{k}": ds[f"{what}_gap{k}_literal"] for k in (3, 4)} for what in ("product", "factor"))

    @claim(
        "median loss <= 1e-3 at eta x iteration = 90 for every alpha",
        names={f"loss_{a:g}": f"loss, alpha = {a:g}" for a in FIGURE12A.scales},
        loss=(0, 1e-3),
    )
    def figure_axis(self, ds):
        """At a learning rate that fits the printed axes, panel a has converged within them."""
        return median(last(unpacked(ds, "exact_figure")))


class FigI4(Experiment):
    """A larger rank

    r = 5, k = 10, m = 2000: the phenomena of Figures 1.1 and 1.2 again.
    """

    name, source, weight, items = "figI4", "Xiong 2024, Figure I.4", 31, "Figure I.4"
    sizes = {"dimension": (20, 50, 50), "starts": (24, 12, 5), "designs": (1, 1, 4)}

    def compute(self, run, dimension, starts, designs):
        half, stepped = FIGURE_I4.num_steps // 2, replace(FIGURE_I4, scales=(0.5, 0.05))
        runs = {
            "symmetric": (FIGURE_I4, {"symmetric": True, "num_steps": 2000}),
            "asymmetric": (FIGURE_I4, {"num_steps": 3000}),
            "gd": (stepped, {"num_steps": 2 * half}),
            "step": (stepped, {"num_steps": 2 * half, "events": (gs.events.ImbalanceStep(at=half, beta=1.0),)}),
        }
        data = {}
        for key, (setting, options) in run.over(runs.items()):
            ds = descend(run, setting, designs, dimension, seeds=starts, record_at=101, **options)
            part = "c" if key in ("gd", "step") else key
            data[key] = losses(ds).rename(scale=f"scale_{part}", step=f"step_{part}")
        return xr.Dataset(data, attrs={"settings": ds.attrs["settings"]})

    def draw(self, ds):
        symmetric, asymmetric, plain, stepped = (unpacked(ds, key) for key in ds.data_vars)
        large, small = self.step_below_gd(ds)
        return figure(
            panel("(a) X X^T", "iteration", "loss", *bands(symmetric, "scale", "alpha = {:g}"), yscale="log"),
            panel("(b) F G^T", "iteration", "loss", *bands(asymmetric, "scale", "alpha = {:g}"), yscale="log"),
            panel("(c) The imbalance step", "iteration", "loss", *beside_the_step(plain, stepped), yscale="log"),
            title="With rank 5 and ten columns, too, the imbalance step ends the slow tail of descent",
            printed={
                "loss of GD over loss with the imbalance step at the end, alpha = .5 and .05": (
                    "the new method also performs well",
                    " and ".join(f"{float(gain):.2g}" for gain in (*large.values(), *small.values())),
                )
            },
            note=f"Medians and quartiles over starts and designs; r = 5, k = 10, {size_text(ds, FIGURE_I4.per_row)}, eta = "
            "0.03 (a tenth of the printed iterations).",
        )

    @claim(
        "loss of GD over loss with the step at the end: >= 30 at alpha = .5, >= 100 at alpha = .05",
        large_start=(30, np.inf),
        small_start=(100, np.inf),
    )
    def step_below_gd(self, ds):
        """The new method also performs well in this setting."""
        plain, stepped = (median(last(unpacked(ds, key))) for key in ("gd", "step"))
        return tuple({f"gain_alpha_{a:g}": (plain / stepped).sel(scale=a)} for a in (0.5, 0.05))

    @claim(
        "over the second half of its axis (alpha = .5) the symmetric loss of a median run falls as a power of the iteration in "
        "[-2.2, -1.5], as t^-2 of Theorem 3.1 does, and the asymmetric one at least as the power -2.5",
        names={
            "symmetric_power": "late power of the iteration, symmetric",
            "asymmetric_power": "late power of the iteration, asymmetric",
        },
        symmetric_power=(-2.2, -1.5),
        asymmetric_power=(-np.inf, -2.5),
    )
    def same_phenomena(self, ds):
        """Symmetric descent is slow and asymmetric descent is fast, as with the smaller rank."""

        def late_power(y):
            late = y.sel(scale=0.5).isel(step=slice(y.sizes["step"] // 2, None))
            along = [["step"], ["step"]]
            return median(xr.apply_ufunc(slope, late.step, late, input_core_dims=along, vectorize=True))

        return late_power(unpacked(ds, "symmetric")), late_power(unpacked(ds, "asymmetric"))


class FigI5(Experiment):
    """The initial phase

    The first iterations of Figure 1.2 b.
    """

    name, source, weight, items = "figI5", "Xiong 2024, Figure I.5", 6, "Figure I.5"
    sizes = {"dimension": (20, 50, 50), "starts": (3, 5, 10), "designs": (1, 2, 10)}
    names = {
        f"{rate}_{a:g}": f"wait at eta = {eta}, alpha = {a:g} [iterations]"
        for rate, eta in (("figure", ".003"), ("literal", ".2"))
        for a in FIGURE_I5.scales
    } | {"smallest_growth": "smallest factor from one scale to the next"}

    def compute(self, run, dimension, starts, designs):
        data = {}
        literal = replace(FIGURE_I5, step_size=LITERAL, time=30 * LITERAL)
        for rate, setting in run.over({"figure": FIGURE_I5, "literal": literal}.items()):
            ds = descend(run, setting, designs, dimension, seeds=starts, record_at=321)
            data[rate] = losses(ds).rename(step=f"step_{rate}")
        return xr.Dataset(data, attrs={"settings": ds.attrs["settings"]})

    def wait(self, ds, rate):
        """The first recorded iteration at which the loss is below nine tenths of its first value, in the median run."""
        y = unpacked(ds, rate)
        return median(y.step.where(y < 0.9 * y.isel(step=0)).min("step"))

    def draw(self, ds):
        waits = {rate: self.wait(ds, rate).values for rate in ("figure", "literal")}
        scales = ", ".join(f"{a:g}" for a in FIGURE_I5.scales)
        texts = {rate: ", ".join(f"{t:.0f}" for t in waits[rate]) for rate in waits}

        def curves(rate):
            for i, (curve, wait) in enumerate(zip(bands(unpacked(ds, rate), "scale", "alpha = {:g}"), waits[rate])):
                yield curve
                yield Marker(float(wait), "loss below .9 of its start, in the colour of its curve", axis="x", colour=i)

        axes = "iteration", "loss"
        return figure(
            panel("eta = 0.003, which fits the printed axis", *axes, curves("figure"), yscale="log"),
            panel("The printed eta = 0.2", *axes, curves("literal"), yscale="log"),
            title="A smaller start waits longer before the loss falls",
            printed={
                f"iterations until the loss is below .9 of its start, alpha = {scales}": (
                    "longer when alpha is smaller; visible on an axis of 5000",
                    f"{texts['figure']} at eta = .003 and {texts['literal']} at eta = .2",
                )
            },
            note=f"Medians and quartiles over starts and designs; {size_text(ds, FIGURE_I5.per_row)}, k = 4, r = 2. The "
            "paper's axis has 5000 iterations, on which the phase is visible at 0.003 and would last 10 to 20 iterations at "
            "0.2.",
        )

    @claim(
        "median first iteration with loss < .9 of its start increases over alpha = .5, .2, .05, at both rates, each time by "
        "1 % or more",
        figure=None,
        literal=None,
        smallest_growth=(1.01, np.inf),
    )
    def waits(self, ds):
        """The initialisation phase is longer when alpha is smaller."""
        waits = [self.wait(ds, rate) for rate in ("figure", "literal")]
        return *waits, min((wait.values[1:] / wait.values[:-1]).min() for wait in waits)
