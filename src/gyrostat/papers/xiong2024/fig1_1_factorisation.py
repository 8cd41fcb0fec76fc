"""Figure 1.1: one factor converges as 1/T^2 when it is too wide, two factors converge linearly."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, last, median, slope
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, band
from gyrostat.papers.xiong2024.settings import (
    FIGURE11,
    FIGURE11_WIDTHS,
    bands,
    factorisation,
    late_rates,
    losses,
    tail_of,
)
from gyrostat.theory.xiong2024 import exact_width_rate, imbalanced_rate, symmetric_tail

ETA, RANK, SCALES = FIGURE11.step_size, FIGURE11.rank, FIGURE11.scales
WIDE = FIGURE11_WIDTHS[:2]
"""The widths k > r."""


class Fig11(Experiment):
    """Symmetric factorisation slows down, asymmetric does not

    Gradient descent on ||X X^T - Sigma||^2 with k >= r columns, and on ||F G^T - Sigma||^2 from an imbalanced start.
    """

    name, source, weight, items = "fig1.1", "Xiong 2024, Figure 1.1", 7, "Figure 1.1"
    sizes = {"seeds": (4, 64, 256), "horizon": (60_000, FIGURE11.num_steps, 1_000_000)}

    def compute(self, run, horizon):
        def one(width, scale):
            return gs.GradientDescent(ETA, width=width, symmetric=True, start=scale), factorisation()

        def two(start):
            return gs.GradientDescent(ETA, width=FIGURE11.width, start=start), factorisation()

        steps = np.union1d(np.geomspace(1, horizon, 120).round(), np.arange(0, 1001, 20)).astype(int)
        options = {"num_steps": horizon, "record_at": steps}
        symmetric = run.grid(one, {"width": FIGURE11_WIDTHS, "scale": (0.5, 0.1)}, record=("distance",), **options)
        asymmetric = run.grid(two, {"start": SCALES}, record=("distance", "factor_values"), **options)
        smallest = last(asymmetric.factor_values).isel(component=-1) ** 2
        data = {"symmetric": losses(symmetric), "asymmetric": losses(asymmetric), "smallest": smallest}
        return xr.Dataset(data, attrs={"settings": symmetric.attrs["settings"]})

    def tail(self, k, steps):
        """The loss of one factor with k > r columns, late: (k - r)/(4 eta t)^2 / 2."""
        return symmetric_tail(ETA, k, RANK, steps) / 2

    def draw(self, ds):
        one = ds.symmetric.sel(scale=0.5)
        early, late = one.sel(step=slice(0, 1200)), ds.step.values[ds.step.values >= ds.step.values[-1] / 100]
        tails = [Line(late, self.tail(k, late), "(k - r)/(4 eta t)^2 / 2", role="theory") for k in WIDE]
        exact = tail_of(early.step.values, early.sel(width=2).median("seed").values, exact_width_rate(ETA, 1.0))

        def two(scale, colour):
            y, smallest = ds.asymmetric.sel(start=scale), float(ds.smallest.sel(start=scale).median())
            line = tail_of(ds.step.values, y.median("seed").values, imbalanced_rate(ETA, smallest))
            yield band(y, f"F G^T, alpha = {scale:g}", colour=colour)
            yield Line(*line, label="rate -2 log(1 - eta lambda_min(F^T F))", role="theory")

        return figure(
            panel(
                "(a) X X^T, r = 2: log-log",
                "iteration",
                "loss",
                *bands(one, "width", "k = {}"),
                *tails,
                xscale="log",
                yscale="log",
                ylim=(1e-12, 1e3),
            ),
            panel(
                "(b) The same: log-linear, the first iterations",
                "iteration",
                "loss",
                *bands(early, "width", "k = {}"),
                Line(*exact, label="rate -2 log(1 - 2 eta), k = 2", role="theory"),
                yscale="log",
                ylim=(1e-22, 1e3),
            ),
            panel(
                "(c) One factor against two, k = 5",
                "iteration",
                "loss",
                band(one.sel(width=5), "X X^T, alpha = .5", colour=0),
                *two(SCALES[0], 1),
                *two(SCALES[1], 2),
                yscale="log",
                ylim=(1e-25, 1e3),
                xlim=(0, 3e4),
            ),
            title="A factor that is too wide slows gradient descent to 1/T^2; two factors make it linear again",
            printed={
                f"slope of the loss in T, log-log, k = {k}": ("-2", self.inverse_square(ds)[f"slope_k_{k}"])
                for k in (3, 5)
            },
            note="Medians and quartiles over seeds; n = 50, eta = 0.01. The slope of the tail does not depend on alpha.",
        )

    @claim(
        "slope of log ||E||^2 against log t over the last decade in [-2.03, -1.97] for k = 3 and 5",
        slug="slope",
        items="Figure 1.1; Theorem 1.1",
        slope=(-2.03, -1.97),
    )
    def inverse_square(self, ds):
        """Over-parameterised symmetric factorisation converges as 1/T^2."""
        late = median(ds.symmetric.sel(scale=0.5, step=slice(ds.step.values[-1] / 10, None)))
        return {f"slope_k_{k}": slope(late.step.values, late.sel(width=k).values) for k in WIDE}

    @claim("within 2 % at the last step for k = 3, 5 and alpha = .5, .1", ours=True, constant=(0.98, 1.02))
    def sharp_constant(self, ds):
        """The sharp constant (ours): t^2 ||E||^2 16 eta^2 / (k - r) tends to 1 for every alpha."""
        end = median(last(ds.symmetric))
        ratio = {k: end.sel(width=k) / self.tail(k, ds.step.values[-1]) for k in WIDE}
        return {f"constant_k_{k}_alpha_{a:g}": ratio[k].sel(scale=a) for k in WIDE for a in (0.5, 0.1)}

    @claim(
        "median fitted rate within .5 %",
        names={
            "ratio_alpha_05": "fitted rate over theory, alpha = 0.5",
            "ratio_alpha_01": "fitted rate over theory, alpha = 0.1",
        },
        ratio_alpha_05=(0.995, 1.005),
        ratio_alpha_01=(0.995, 1.005),
    )
    def exact_width(self, ds):
        """With k = r the convergence is linear, at the rate -2 log(1 - 2 eta sigma_r)."""
        ratio = median(late_rates(ds.symmetric.sel(width=2), 0.6) / exact_width_rate(ETA, 1.0))
        return ratio.sel(scale=0.5), ratio.sel(scale=0.1)

    @claim("median fitted rate within 1 % for alpha = .5 and .2", ratio_alpha=(0.99, 1.01))
    def asymmetric_rate(self, ds):
        """Two factors converge linearly, at the rate -2 log(1 - eta lambda_min(F^T F))."""
        return median(late_rates(ds.asymmetric) / (-2 * np.log(1 - ETA * ds.smallest)))

    @claim(
        "ten orders of magnitude at the step where F G^T (k = 5, alpha = .5) passes 1e-20",
        names={"log10_gap": "gap of the losses [powers of ten]"},
        log10_gap=(10, np.inf),
    )
    def exponentially_faster(self, ds):
        """Asymmetric parameterisation is exponentially faster than symmetric."""
        two, one = median(ds.asymmetric.sel(start=0.5)), median(ds.symmetric.sel(width=5, scale=0.5))
        there = (two < 1e-20).argmax("step")
        return np.log10(one[there]) - np.log10(two.where(two < 1e-20)[there])
