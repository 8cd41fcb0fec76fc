"""Theorem 2: how the error of HeteroSGD scales, what it is to a few per cent, and how the start delays the signal."""

import math

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, Outcome, claim, median, slope
from gyrostat.experiments.statistics import quartiles
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, Marker, Points, band
from gyrostat.papers.xu2024.settings import ALPHA
from gyrostat.theory.ours import error_law
from gyrostat.theory.xu2024 import calibration, theorem2_bound

CENTRE = {"num_samples": 20_000.0, "rank": 1, "spurious_rank": 1, "spread": 10.0, "step_size": 0.05}
AXES = {
    "num_samples": [2e3, 8e3, 32e3, 128e3, 512e3],
    "dimension": [15, 30, 60, 120],
    "rank": [1, 2, 4],
    "spurious_rank": [1, 2, 4],
    "spread": [8.0, 10.0, 14.0, 18.0],
    "step_size": [0.04, 0.05, 0.07, 0.1],
}
SYMBOLS = {
    "num_samples": ("m", "batch size m"),
    "dimension": ("d", "dimension d"),
    "rank": ("r1", "invariant rank r1"),
    "spurious_rank": ("r2", "spurious rank r2"),
    "spread": ("M", "heterogeneity M"),
    "step_size": ("eta", "step size eta"),
}
LATE = {"dimension": 24, "spread": 16.0, "num_samples": 20_000.0}
"""Where the law is tested within 5 %: eta = .05 and ranks (1, 1) as at the centre, for three starts."""
ETA, STARTS, STEPS = 0.05, [1e-2, 1e-3, 1e-4], 640
LATE_STEPS = slice(320, None, 20)
"""Steps at which the error is read: the signal is learnt, and errors 1/eta steps apart are nearly independent."""


def cell(dimension, spread, num_samples, rank=1, spurious_rank=1, step_size=ETA, init_scale=ALPHA):
    """A setting as algorithm and problem, and our law of its error."""
    law = gs.TwoPoint(mean=1.0, spread=spread, rank=spurious_rank, independent=True)
    environments = gs.RandomEnvironments(dimension, rank=rank, law=law)
    expected = error_law(law, dimension=dimension, rank=rank, step_size=step_size, num_samples=num_samples)
    return (
        gs.HeteroSGD(step_size, init_scale=init_scale),
        gs.Problem(environments, gs.FreshGaussian(num_samples)),
    ), expected


class Thm2(Experiment):
    """How the error of HeteroSGD scales

    The error against batch size, dimension, ranks, heterogeneity and step size, compared with our error law, which one more
    setting meets within 5 %; and the growth of the signal from U_0 = alpha I.
    """

    source, weight = "Xu 2024, Theorem 2, eq. (10), Algorithm 3 and (25)", 46
    sizes = {
        "seeds": (192, 50, 200),
        "dimension": (10, 60, 60),
        "axes": ({"num_samples": [2e3, 32e3, 512e3], "dimension": [10, 40]}, AXES, AXES),
        "late_runs": (48, 160, 2000),
    }

    def compute(self, run, dimension, axes, late_runs):
        """The error at T = 15/eta along one axis at a time; at one more setting the late errors, and the signal."""
        parts = {}
        for i, (axis, values) in enumerate(axes.items()):
            settings = [{**CENTRE, "dimension": dimension, axis: value} for value in values]
            cells = {value: cell(**setting) for value, setting in zip(values, settings)}
            runs = run.grid(
                lambda value, cells=cells: cells[value][0],
                {"value": values},
                num_steps=lambda value, axis=axis: round(15 / (value if axis == "step_size" else ETA)),
                seed=run.seed + i,
                record=("distance", "spurious"),
                record_at=1,
            )
            time = "step" if "step" in runs.dims else "record"
            end = runs.distance.isel({time: -1}, drop=True).rename(value=axis)
            parts[f"{axis}_error"] = end.drop_vars("step", errors="ignore")
            parts[f"{axis}_law"] = axis, [law for _, law in cells.values()]
        centre = gs.TwoPoint(spread=CENTRE["spread"])
        bound = theorem2_bound(
            centre, dimension=dimension, rank=1, delta=(8 * dimension / CENTRE["num_samples"]) ** 0.5
        )

        late = run.grid(
            lambda init_scale: cell(**LATE, init_scale=init_scale)[0],
            {"init_scale": STARTS},
            num_steps=STEPS,
            seeds=late_runs,
            seed=run.seed + len(axes),
            record=("signal", "distance"),
            record_at=STEPS + 1,
        ).rename(seed="seed_late")
        half_times = [float((calibration(ETA, alpha, STEPS) ** 2 > 0.5).argmax()) for alpha in STARTS]
        return xr.Dataset(
            {
                **parts,
                "late_error": late.distance.isel(step=LATE_STEPS).rename(step="late_step"),
                "late_law": ((), cell(**LATE)[1]),
                "half_time": (late.signal > 0.5).argmax("step"),
                "theory_half_time": ("init_scale", half_times),
                "first": late.signal.isel(step=0, drop=True),
                "signal": late.signal.isel(step=slice(0, LATE_STEPS.start)),
            },
            attrs={"axes": ",".join(axes), "bound": bound, "dimension": dimension},
        )

    def fitted(self, ds, axis):
        return slope(ds[axis].values, median(ds[f"{axis}_error"]).values)

    def draw(self, ds):
        panels, norm = [], "||UU^T - A_star||_F"
        for axis in ds.attrs["axes"].split(","):
            low, middle, high = quartiles(ds[f"{axis}_error"])
            x, (symbol, label) = ds[axis].values.astype(float), SYMBOLS[axis]
            measured = Points(x, middle, "measured (quartiles)", low=low, high=high)
            law = Line(x, ds[f"{axis}_law"].values, "error law (ours)", role="theory")
            title = f"Fitted slope in {symbol}: {self.fitted(ds, axis):.2f}"
            panels.append(panel(title, label, norm, measured, law, xscale="log", yscale="log"))
        late = (ds.late_error / ds.late_law).stack(run=("seed_late", "init_scale")).transpose("run", "late_step")
        limits = [Marker(x, "± 5 %", role="bound", colour=6) for x in (1.05, 0.95)]
        ratios = band(late, "measured", over="run"), Marker(1.0, "our law"), *limits
        steps, alphas = ds.step.values, ds.init_scale.values
        paths = [
            band(ds.signal.sel(init_scale=x), f"α = {x:g}", over="seed_late", colour=i) for i, x in enumerate(alphas)
        ]
        theory = [
            Line(steps, calibration(ETA, x, int(steps[-1])) ** 2, f"Rₜ² of (25), α = {x:g}", role="theory")
            for x in alphas
        ]
        return figure(
            *panels,
            panel("Error over our law", "step", "ratio", *ratios),
            panel("Invariant signal", "step", "share of the signal", *paths, *theory),
            title="The error of HeteroSGD falls as m^-1/2 and grows as d^1/2",
            printed={
                "slope of the error in m, log-log": ("-1/2", self.fitted(ds, "num_samples")),
                "slope of the error in d, log-log": ("1/2", self.fitted(ds, "dimension")),
            },
            note=f"One setting varied at a time around d = {ds.attrs['dimension']}, m = 20000, r1 = r2 = 1, M = 10, "
            "eta = 0.05, T = 15/eta. "
            "The bound (9) of the theorem, with its constants taken as 1, is "
            f"{ds.attrs['bound']:.3g} at the centre. The last two panels: d = 24, M = 16, "
            f"{ds.sizes['seed_late']} runs for each α.",
        )

    @claim("fitted slope in [-.56, -.44]", slope=(-0.56, -0.44), items="Theorem 1; Theorem 2")
    def slope_in_m(self, ds):
        """The error falls as m^-1/2 (eq. 10)."""
        return self.fitted(ds, "num_samples")

    @claim("fitted slope in [.42, .6]", slope=(0.42, 0.6), items="Theorem 2")
    def slope_in_d(self, ds):
        """The error grows as d^1/2 (eq. 10)."""
        return self.fitted(ds, "dimension")

    @claim(
        "median error over law in [.85, 1.2] in every cell",
        least_ratio=(0.85, 1.2),
        largest_ratio=(0.85, 1.2),
        ours=True,
        items="Theorem 2",
    )
    def error_law(self, ds):
        """Ours: the error is the accumulated isometry noise of all steps (gyrostat.theory.error_law)."""
        axes = ds.attrs["axes"].split(",")
        ratios = np.concatenate([median(ds[f"{axis}_error"]).values / ds[f"{axis}_law"].values for axis in axes])
        return ratios.min(), ratios.max()

    @claim(
        "largest error of any run at the centre <= bound <= 1 (the norm of A_star)",
        fails="not covered",
        ours=True,
        items="Theorem 2",
        numbers={"most": 1.0},
    )
    def bound_says_something(self, ds, most):
        """The bound (9), with its constants taken as 1, says something about this setting.

        The bound is above 1e6 where the errors are below 1, so it holds but is vacuous: its constants and powers of log d
        are meant for far larger m.
        """
        error = float(ds.dimension_error.sel(dimension=ds.attrs["dimension"]).fillna(np.inf).max())
        bound = float(ds.attrs["bound"])
        return Outcome({"error": error, "bound": bound, "ratio": error / bound}, error <= bound <= most)

    @claim(
        "median over runs, starts and late steps of error over law in [0.95, 1.05]",
        ratio=(0.95, 1.05),
        ours=True,
        items="Theorem 2",
    )
    def within_five_percent(self, ds):
        """Ours: the median error at the end is that of gyrostat.theory.error_law within 5 %."""
        return (ds.late_error / ds.late_law).fillna(np.inf).median()

    @claim(
        "signal at step 0 over alpha^2 equal to 1 (1e-9); half-time and delay over theory in [0.97, 1.03]",
        first_over_square=(1 - 1e-9, 1 + 1e-9),
        half_time_over_theory=(0.97, 1.03),
        delay_over_theory=(0.97, 1.03),
        ours=True,
        items="Algorithm 3; (25)",
    )
    def start(self, ds):
        """Algorithm 3 starts from U_0 = alpha I, and the signal grows as R_t^2 of (25): a start ten times smaller costs
        log(10)/log(1 + eta) steps."""
        half = median(ds.half_time.astype(float), "seed_late")
        delay = math.log(STARTS[0] / STARTS[-1]) / math.log1p(ETA)
        first = (ds.first / ds.init_scale**2).mean()
        measured = half.isel(init_scale=-1) - half.isel(init_scale=0)
        return first, (half / ds.theory_half_time).mean(), measured / delay
