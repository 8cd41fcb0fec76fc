"""Section 2.2: gradient descent from Gaussian layers can end at any local minimum."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Bars
from gyrostat.papers.wang2023.settings import FIGURE1, HIGH, OBSERVED, completion
from gyrostat.theory.wang2023 import critical_points

EPSILON, DEPTH, RIDGE = FIGURE1.epsilon, FIGURE1.depth, HIGH[1]
WIDTH, SCALE = 2, 0.3
"""Narrow layers of small entries, from which no minimum is rare. From width 100 and scale 1, 319 of 400 runs ended at the
minimum of rank 2, 81 diverged, and none ended at another."""


class DescentMinima(Experiment):
    """Gradient descent ends at every local minimum

    Which of the four local minima of the 2 x 2 problem gradient descent finds depends on its Gaussian start: each attracts a
    share of them, the origin and the wrong sign too.
    """

    name, source, weight, items = "gd-minima", "Wang 2023, section 2.2", 5, "Section 2.2, gradient descent"
    sizes = {"seeds": (1000, 4000, 20_000), "num_steps": 12_000}

    def compute(self, run, num_steps):
        # lambda = .1 of weight decay is .025 in the main text's units.
        points = critical_points([[1.0, 1 / EPSILON], [EPSILON, 1.0]], OBSERVED, DEPTH, RIDGE / 4, tries=40)
        minima = [point for point in points if point.kind == "minimum"]
        descent = gs.RidgeDescent(0.05, RIDGE, model=gs.DeepLinear(DEPTH, WIDTH), start=gs.starts.FanInGaussian(SCALE))
        options = {"num_steps": num_steps, "record": ("product",), "record_at": 2}
        ends = run.single(descent, completion(EPSILON, "all"), **options)["product"].isel(step=-1).values
        distance = [np.linalg.norm(ends - point.matrix, axis=(1, 2)) for point in minima]
        names = [f"rank {point.rank}" + (", wrong sign" if point.matrix[0, 1] < 0 else "") for point in minima]
        return xr.Dataset({"distance": (("minimum", "seed"), distance)}, {"minimum": names})

    def reached(self, ds):
        """The share of the runs that end at each minimum."""
        return (ds.distance < 1e-3).mean("seed")

    def draw(self, ds):
        bars = Bars(list(ds.minimum.values), self.reached(ds).values, "gradient descent", colour=0)
        return figure(
            panel("Where runs end", "local minimum", "share of runs", bars, ylim=(0, 1.05)),
            note=f"L = {DEPTH}, ε = {EPSILON:g}, η = 0.05, λ = {RIDGE:g}; hidden layers of width {WIDTH}, entries of standard "
            f"deviation {SCALE:g}/√(fan-in) at the start. The minima are those that theory.critical_points finds.",
        )

    @claim(
        "2 x 2 problem, L = 3, width 2: each of the 4 local minima is within 1e-3 of the end of at least .5 % of the runs, and "
        "at least 95 % of the runs end at one of them",
        names={
            "minima": "local minima [minima]",
            "least": "share of the runs at the rarest of them",
            "all": "share of the runs at any of them",
        },
        minima=(4, 4),
        least=(0.005, 1),
        all=(0.95, 1),
    )
    def every_minimum(self, ds):
        """For GD with a Gaussian initialization, there is a non-zero probability to converge to any local minimum."""
        share = self.reached(ds)
        return share.size, share.min(), share.sum()
