"""(10) of Xu 2024: how often the error of HeteroSGD exceeds a multiple of sqrt(d/m), and how that depends on the batch."""

import math

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, median, slope, wilson
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, Points
from gyrostat.papers.xu2024.axis_aligned_runs import AxisSetting, axis_runs

DIMENSION, SPREAD, ETA = 8, 10.0, 0.05
LATE = [300, 340, 380, 420]
"""Steps at which the error is read: the signal is learnt, and excursions last about 1/eta = 20 steps."""
ALPHA = DIMENSION**-4.0
"""The least alpha of Theorem 2. (10) itself takes alpha of order 1/d."""
CONSTANTS = [2.0, 4.0, 8.0]
"""Values of C1."""


def unit(num_samples):
    return math.log(DIMENSION) * np.sqrt(DIMENSION / num_samples)


def errors_from_one_over_d(num_samples, rng):
    """The error at T = 15/eta from alpha = 1/d, in 40 runs."""
    setting = AxisSetting(DIMENSION, (1.0,), 1, SPREAD, ETA, 1 / DIMENSION, num_samples)
    *_, last_step = axis_runs(setting, round(15 / ETA), runs=40, rng=rng)
    error = last_step.U @ last_step.U.swapaxes(1, 2)
    error[:, 0, 0] -= 1
    return np.linalg.norm(error, axis=(1, 2))


class Failure(Experiment):
    """The failure probability of (10)

    (10) promises an error of C1 log(d) sqrt(d/m) with probability 1 - C1 (d log(d)/m)^(2/5). The error does scale like this.
    But the share of runs that miss it does not depend on m: noise adds a part between the two signals, and random factors
    multiply this part.
    """

    name, source, weight, items = "eq10", "Xu 2024, eq. (10)", 4, "(10)"
    sizes = {
        "seeds": (512, 1024, 16_384),
        "batches": ([1e4, 3e5, 1e7], [1e4, 1e5, 1e6, 1e7], [1e4, 1e5, 1e6, 1e7, 1e8]),
    }

    def compute(self, run, batches):
        """The error at four late steps in units of log(d) sqrt(d/m), for batches over three decades."""

        def build(num_samples):
            environments = gs.RandomEnvironments(DIMENSION, law=gs.TwoPoint(spread=SPREAD))
            return gs.HeteroSGD(ETA, init_scale=ALPHA), gs.Problem(environments, gs.FreshGaussian(num_samples))

        axes = {"num_samples": batches}
        runs = run.grid(build, axes, num_steps=LATE[-1], record=("distance",), record_at=LATE)
        error = runs.distance.sel(step=LATE).fillna(np.inf) / unit(runs.num_samples)
        starts = [errors_from_one_over_d(m, np.random.default_rng([run.seed, i])) for i, m in enumerate(batches)]
        large_start = xr.DataArray(starts, dims=("num_samples", "run")) / unit(runs.num_samples)
        share = (error > xr.DataArray(CONSTANTS, {"constant": CONSTANTS})).mean(("seed", "step"))
        return xr.Dataset({"error": error, "large_start": large_start, "share": share})

    def draw(self, ds):
        m, n, log = ds.num_samples.values, ds.sizes["seed"], {"xscale": "log", "yscale": "log"}
        shares = []
        for i, share in enumerate(ds.share.transpose("constant", ...)):
            low, high = wilson(share.values * n, n)
            label = f"error above {float(share.constant):g} log d √(d/m)"
            shares.append(Points(m, share.values, label, low=low, high=high, colour=i))
        falling = float(ds.share[0, 0]) * (m / m[0]) ** -0.4
        # Outside both signals x <- (1 - eta x)^2 x from x = alpha^2, so x = alpha^2 / (1 + 2 eta T alpha^2) in the end.
        floor = math.sqrt(DIMENSION - 2) / (DIMENSION**2 + 30) / unit(m)
        return figure(
            panel(
                "Runs with a large error",
                "batch size m",
                "share of runs",
                *shares,
                Line(m, falling, "falling as (d log d / m)^(2/5)", role="paper"),
                **log,
            ),
            panel(
                "Median error",
                "batch size m",
                "‖UUᵀ − A*‖ / (log d √(d/m))",
                Points(m, self.typical(ds).values, "α = d⁻⁴", colour=0),
                Points(m, median(ds.large_start, "run").values, "α = 1/d", colour=1),
                Line(m, floor, "without noise, α = 1/d", role="theory"),
                **log,
            ),
            title="The share of bad runs does not fall with the batch",
            note=f"d = {DIMENSION}, ranks (1, 1), s = 1 − 10 or 1 + 10, η = 0.05, α = d⁻⁴, T = 15/η to 21/η; "
            f"{n} runs for each m.",
        )

    def typical(self, ds):
        """The median over runs and late steps."""
        return ds.error.median(("seed", "step"))

    def slope_in_batch(self, ds):
        return slope(ds.num_samples.values, ds.share.isel(constant=0).values)

    @claim("median error over log(d) sqrt(d/m) at every m in (0, 2]", least=(0.1, 2), largest=(0.1, 2))
    def error(self, ds):
        """(10): the error is at most C1 log(d) sqrt(d/m) in a typical run, with C1 = 2."""
        return self.typical(ds).min(), self.typical(ds).max()

    @claim(
        "slope of log share (C1 = 2) in log m over three decades at most -0.3",
        slope=(-math.inf, -0.3),
        fails="not covered",
    )
    def probability_falls(self, ds):
        """(10): the share of runs that miss this error falls as (d log(d)/m)^(2/5).

        The part between the signals obeys k <- (1 + eta (xi - 1)) k + noise. For E xi = 1 the mean of the factor is 1 for
        every eta and M. In units of sqrt(d/m), the distribution of this part therefore has a tail of 1/x and does not depend
        on m. (10) is stated for sufficiently large ranks and M1, which this setting does not have.
        """
        return self.slope_in_batch(ds)

    @claim(
        "median error over log(d) sqrt(d/m): at the largest m at most 3 times that at the smallest",
        growth_of_constant=(0, 3),
        fails="false as printed",
    )
    def start_of_order_one_over_d(self, ds):
        """(10) holds with alpha = 1/d, as printed there, for every m far above d log^2(d).

        Outside both signals U_t stays near alpha I: without any noise the error is alpha^2 sqrt(d - 2)/(1 + 2 eta T alpha^2),
        while the bound falls as m^-1/2. So m must stay below about d^4, or alpha must be smaller; Theorem 2 itself asks for
        alpha < d^-2.
        """
        error = median(ds.large_start, "run")
        return error[-1] / error[0]

    @claim(
        "slope of log share (C1 = 2) in log m over three decades in [-0.12, 0.12]",
        slope=(-0.12, 0.12),
        ours=True,
        items="(10)",
    )
    def probability_flat(self, ds):
        """Ours: the share of runs above a multiple of sqrt(d/m) is the same at every m."""
        return self.slope_in_batch(ds)

    @claim(
        "slope of log share in log C1 from 2 to 8, over all batches, in [-2, -0.5]",
        index=(-2, -0.5),
        ours=True,
        items="(10)",
    )
    def tail(self, ds):
        """Ours: the share of runs above C1 log(d) sqrt(d/m) falls as about 1/C1, the tail of a product of factors of mean
        1."""
        return slope(ds.constant.values, ds.share.mean("num_samples").values)
