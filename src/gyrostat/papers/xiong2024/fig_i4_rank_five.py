"""Figure I.4: a larger rank."""

from dataclasses import replace

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, last, median, slope
from gyrostat.figures.compose import figure, panel
from gyrostat.papers.xiong2024.fig1_2_sensing import beside_the_step
from gyrostat.papers.xiong2024.settings import FIGURE_I4, bands, descend, losses, size_text


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
            data[key] = losses(ds).rename(self.dims(key))
        return xr.Dataset(data, attrs={"settings": ds.attrs["settings"]})

    def dims(self, key):
        """The names of dimensions in the data, where panels have scales and steps of their own."""
        part = "c" if key in ("gd", "step") else key
        return {"scale": f"scale_{part}", "step": f"step_{part}"}

    def loss(self, ds, key):
        return ds[key].rename({dim: name for name, dim in self.dims(key).items()})

    def draw(self, ds):
        symmetric, asymmetric, plain, stepped = (
            self.loss(ds, key) for key in ("symmetric", "asymmetric", "gd", "step")
        )
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
        plain, stepped = (median(last(self.loss(ds, key))) for key in ("gd", "step"))
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
            return median(
                xr.DataArray(
                    [slope(late.step.values, run.values) for run in late.transpose("seed", "step")], dims="seed"
                )
            )

        return late_power(self.loss(ds, "symmetric")), late_power(self.loss(ds, "asymmetric"))
