"""Figure 1.2: asymmetric sensing with the right width, with too many columns, and after the imbalance step."""

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
    F, G = last(ds.left_factor).values, last(ds.right_factor).values
    designs = [design_matrices(sensing(setting.per_row, number, dimension=dimension)) for number in numbers]
    rates = np.empty(F.shape[:2])
    for at in np.ndindex(rates.shape):
        design = designs[at[1] * len(numbers) // F.shape[1]]
        X = design / np.sqrt(len(design))
        rates[at] = late_speed(F[at], G[at], setting.step_size, setting.rank, X).rate
    return rates


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
                dims = self.dims(key, rate)
                data[f"{key}_{rate}"] = losses(ds).rename(dims)
                if key in STEPPED:
                    after = ds.sel(step=half + 1, method="nearest")
                    F[key], G[key] = after.left_factor.values, after.right_factor.values
                elif literal:
                    rates = predicted_rates(ds, setting, numbers, dimension)
                    data[f"predicted_{key}"] = (dims["scale"], dims["seed"]), rates
            for k in (3, 4):
                plain, moved = (F[key] @ G[key].swapaxes(-1, -2) for key in (f"gd{k}", f"step{k}"))
                data[f"product_gap{k}_{rate}"] = gap(moved, plain).max()
                data[f"factor_gap{k}_{rate}"] = gap(F[f"step{k}"], F[f"gd{k}"]).min()
        return xr.Dataset(data, attrs={"settings": ds.attrs["settings"]})

    def dims(self, key, rate):
        """The names of dimensions in the data, where panels have scales, seeds and steps of their own."""
        part = "stepped" if key in STEPPED else key
        return {"scale": f"scale_{part}", "seed": f"seed_{rate}", "step": f"step_{part}_{rate}"}

    def loss(self, ds, key, rate="literal"):
        """The losses of a panel's runs, with the usual names of dimensions."""
        return ds[f"{key}_{rate}"].rename({dim: name for name, dim in self.dims(key, rate).items()})

    def rates(self, ds, key):
        y = self.loss(ds, key)
        return median(late_rates(y, y.step, 0.3))

    def rates_after(self, ds, k):
        """The late rates after the step."""
        y = self.loss(ds, f"step{k}")
        after = y.isel(step=slice(y.sizes["step"] // 2 + 1, None))
        return median(late_rates(after, after.step, 0.4))

    def predicted(self, ds, key):
        return median(ds[f"predicted_{key}"].rename({f"scale_{key}": "scale"}), "seed_literal")

    def curves(self, ds, key, rate):
        y = self.loss(ds, key, rate)
        shown = bands(y, "scale", "alpha = {:g}")
        if rate == "figure":
            return shown
        late = [
            tail_of(y.step.values, y.sel(scale=a).median("seed").values, float(self.predicted(ds, key).sel(scale=a)))
            for a in y.scale
        ]
        tails = [Line(*line, label="rate predicted by the curvature", role="theory") for line in late]
        return [series for both in zip(shown, tails) for series in both]

    def draw(self, ds):
        def panels(rate):
            for title, series in (
                ("(a) k = r = 2", self.curves(ds, "exact", rate)),
                ("(b) k = 4", self.curves(ds, "wide", rate)),
                ("(c) k = 4", beside_the_step(self.loss(ds, "gd4", rate), self.loss(ds, "step4", rate))),
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
        return median(last(self.loss(ds, "exact", "figure")))
