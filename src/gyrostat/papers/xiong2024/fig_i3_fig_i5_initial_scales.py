"""Figures I.3 and I.5: large initial scales, and the initial phase."""

from dataclasses import replace

import numpy as np
import xarray as xr

from gyrostat.engine.summary import has_diverged
from gyrostat.experiments import Experiment, claim, last, median
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Marker
from gyrostat.papers.xiong2024.settings import FIGURE_I3, FIGURE_I5, LITERAL, bands, descend, losses, size_text

SCALES = FIGURE_I5.scales


class FigI3(Experiment):
    """Large initial scales

    Starts of size 0.5 to 5. The printed axis (20,000 iterations) and the losses on it fit eta t = 60, not eta = 0.2.
    """

    name, source, weight, items = "figI3", "Xiong 2024, Figure I.3", 7, "Figure I.3"
    sizes = {"dimension": (20, 50, 50), "starts": (12, 8, 5), "designs": (1, 1, 4), "eta": (0.03, 0.015, 0.003)}

    def compute(self, run, dimension, starts, designs, eta):
        small, literal = (
            descend(run, replace(FIGURE_I3, step_size=step_size), designs, dimension, seeds=starts, record_at=101)
            for step_size in run.over((eta, LITERAL))
        )
        data = {"loss": losses(small), "literal": losses(literal).rename(step="step_literal")}
        data["diverged"] = literal.diverged
        return xr.Dataset(data, attrs={"settings": small.attrs["settings"], "eta": eta})

    def draw(self, ds):
        eta = ds.attrs["eta"]
        literal = ds.literal.rename(step_literal="step")

        def curves(loss, eta):
            return "eta x iteration", "loss", *bands(loss, "scale", "alpha = {:g}", x=eta * loss.step.values)

        return figure(
            panel(f"eta = {eta:g}", *curves(ds.loss, eta), yscale="log"),
            panel("eta = 0.2, printed for other figures", *curves(literal, LITERAL), yscale="log", ylim=(None, 1e3)),
            title="A large start is slow, and at eta = 0.2 the largest one diverges",
            printed={
                "runs from alpha = 5 that diverge at eta = .2 (printed for Figures 1.2 and I.1, not here)": (
                    "a finite curve",
                    f"{100 * float(last(literal).sel(scale=5.0).isnull().mean()):.0f} %",
                )
            },
            note=f"Medians and quartiles over starts and designs; {size_text(ds, FIGURE_I3.per_row)}, k = 4, r = 2. Runs that "
            "diverged count as infinite: a curve ends, with a cross at the top, where half of them have.",
        )

    @claim(
        "median losses at eta t = 60 in the order alpha = 1 < .5 < 3 < 5, each 1 % or more above the one before",
        names={"smallest_growth": "smallest factor from one loss to the next in this order"},
        loss=None,
        smallest_growth=(1.01, np.inf),
    )
    def order(self, ds):
        """If alpha is too large, the algorithm converges more slowly."""
        end = median(last(ds.loss))
        ordered = end.sel(scale=[1.0, 0.5, 3.0, 5.0]).values
        return end, (ordered[1:] / ordered[:-1]).min()

    @claim(
        "no run with alpha = 5 diverges at eta = .2", fails="depends on the reading", diverged=None, diverged_5=(0, 0)
    )
    def printed_rate(self, ds):
        """Figure I.3 was made with the learning rate 0.2, which is printed for other figures.

        Section I.3 prints no learning rate; 0.2 is printed for Figures 1.2 and I.1. With 0.2 every run from alpha = 5
        diverges, which agrees with the text ("even fails to converge") but not with the printed curve, which is finite. With
        0.003, at which the printed 20,000 iterations are eta t = 60, all runs are finite and the losses have the printed order
        (xiong2024/figI3/order).
        """
        share = has_diverged(ds.diverged).mean("seed")
        return share.sel(scale=[0.5, 1.0, 3.0]), share.sel(scale=5.0)


class FigI5(Experiment):
    """The initial phase

    The first iterations of Figure 1.2 b.
    """

    name, source, weight, items = "figI5", "Xiong 2024, Figure I.5", 6, "Figure I.5"
    sizes = {"dimension": (20, 50, 50), "starts": (3, 5, 10), "designs": (1, 2, 10)}
    names = {
        f"{rate}_{a:g}": f"wait at eta = {eta}, alpha = {a:g} [iterations]"
        for rate, eta in (("figure", ".003"), ("literal", ".2"))
        for a in SCALES
    } | {"smallest_growth": "smallest factor from one scale to the next"}

    def compute(self, run, dimension, starts, designs):
        data = {}
        literal = replace(FIGURE_I5, step_size=LITERAL, time=30 * LITERAL)
        for rate, setting in run.over({"figure": FIGURE_I5, "literal": literal}.items()):
            ds = descend(run, setting, designs, dimension, seeds=starts, record_at=321)
            data[rate] = losses(ds).rename(step=f"step_{rate}")
        return xr.Dataset(data, attrs={"settings": ds.attrs["settings"]})

    def loss(self, ds, rate):
        return ds[rate].rename({f"step_{rate}": "step"})

    def wait(self, ds, rate):
        """The first recorded iteration at which the loss is below nine tenths of its first value, in the median run."""
        y = self.loss(ds, rate)
        return median(y.step.where(y < 0.9 * y.isel(step=0)).min("step"))

    def draw(self, ds):
        def shown(rate, title):
            waits = [
                Marker(float(t), "loss below .9 of its start, in the colour of its curve", axis="x", colour=i)
                for i, t in enumerate(self.wait(ds, rate))
            ]
            curves = zip(bands(self.loss(ds, rate), "scale", "alpha = {:g}"), waits)
            return panel(title, "iteration", "loss", *(series for both in curves for series in both), yscale="log")

        def waits(rate):
            return ", ".join(f"{t:.0f}" for t in self.wait(ds, rate).values)

        return figure(
            shown("figure", "eta = 0.003, which fits the printed axis"),
            shown("literal", "The printed eta = 0.2"),
            title="A smaller start waits longer before the loss falls",
            printed={
                f"iterations until the loss is below .9 of its start, alpha = {', '.join(f'{a:g}' for a in SCALES)}": (
                    "longer when alpha is smaller; visible on an axis of 5000",
                    f"{waits('figure')} at eta = .003 and {waits('literal')} at eta = .2",
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
        waits = [self.wait(ds, rate).sel(scale=list(SCALES)) for rate in ("figure", "literal")]
        return *waits, min((wait.values[1:] / wait.values[:-1]).min() for wait in waits)
