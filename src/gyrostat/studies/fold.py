"""The fold: the largest ridge with a rank-2 minimum, by depth and epsilon."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.diagnostics import ranks
from gyrostat.experiments import Experiment, claim, last
from gyrostat.figures.compose import figure, lines, panel
from gyrostat.figures.declarations import Bars, Marker, Points
from gyrostat.theory.wang2023 import fold

FIGURES = {"Figure 1": (0.25, 3), "Figure 2, L = 3": (0.1, 3), "Figure 2, L = 4": (0.1, 4), "Figure 4": (0.2, 3)}
"""epsilon and the depth of each figure of Wang 2023."""
RIDGE = 0.025
"""lambda = .1 of the weight-decay update, in main-text units."""
AROUND = (0.93, 1.07)


class Fold(Experiment):
    """The fold of the rank-2 minimum

    Above lambda_c(epsilon, L) the rank-overestimating minimum does not exist, and descent of any kind falls to rank 1. The
    settings of the figures lie below it, those that jump close to it.
    """

    source, weight, ours = "ours, for Wang 2023, section 4", 10, True
    sizes = {
        "seeds": 8,
        "epsilons": (
            (0.1, 0.2, 0.25),
            (0.05, 0.07, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3),
            (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3),
        ),
        "depths": ((3, 4), (3, 4, 5), (3, 4, 5)),
        "probes": (
            ((0.25, 3),),
            ((0.25, 3), (0.1, 3), (0.1, 4)),
            ((0.25, 3), (0.1, 3), (0.2, 3), (0.1, 4), (0.15, 4)),
        ),
        "num_steps": (8000, 12_000, 24_000),
    }

    def compute(self, run, epsilons, depths, probes, num_steps):
        """lambda_c(epsilon, L); and, as an independent check, GD at 7 % less and 7 % more."""
        ends = [self.ranks_around(run, *where, num_steps) for where in run.over(probes)]
        return xr.Dataset(
            {
                "fold": (("depth", "epsilon"), [[fold(e, depth).ridge for e in epsilons] for depth in depths]),
                "rank": (("probe", "factor", "seed"), ends),
                "at_figure": ("figure", [fold(*where).ridge for where in FIGURES.values()]),
            },
            {
                "depth": list(depths),
                "epsilon": list(epsilons),
                "factor": list(AROUND),
                "figure": list(FIGURES),
                "probe": [f"epsilon {e:g}, L = {d}" for e, d in probes],
            },
        )

    def ranks_around(self, run, epsilon, depth, num_steps):
        """At which rank descent ends at each of ``AROUND`` times the fold."""
        target = gs.RectangularEnvironments.of([[1.0, 1 / epsilon], [epsilon, 1.0]])
        problem = gs.Problem(target, gs.Entries([(0, 0), (1, 0), (1, 1)], batch_size=None))
        at_fold = 4 * fold(epsilon, depth).ridge

        def build(factor):
            schedule = gs.schedules.WarmUp(500, 0.03, then=gs.schedules.Constant(0.2, factor * at_fold))
            return gs.RidgeDescent(schedule, model=gs.DeepLinear(depth, 100), start=gs.starts.Orthogonal()), problem

        ds = run.grid(build, {"factor": list(AROUND)}, num_steps=num_steps, record=("singular_values",))
        return ranks(last(ds.singular_values).transpose("factor", "seed", ...).values).astype(float)

    def draw(self, ds):
        of_figures = ((0.25, "Figure 1 (L = 3)"), (0.1, "Figure 2 (L = 3 and 4)"), (0.2, "Figure 4 (L = 3)"))
        stay = (ds["rank"] == 2).mean("seed")
        return figure(
            panel(
                "Largest ridge with a rank-2 minimum",
                "epsilon",
                "lambda_c (main-text units)",
                *lines(ds.fold, "depth", "fold, L = {}", role="theory"),
                Marker(RIDGE, "lambda = .1 of weight decay", role="paper"),
                *(Points([epsilon], [RIDGE], name, colour=3 + i) for i, (epsilon, name) in enumerate(of_figures)),
                xscale="log",
            ),
            panel(
                "Gradient descent as a check",
                "",
                "share of starts that stay at rank 2",
                *(
                    Bars(
                        ds.probe.values,
                        stay.sel(factor=factor).values,
                        f"GD at {factor:g} times the fold",
                        colour=6 - i,
                    )
                    for i, factor in enumerate(AROUND)
                ),
                ylim=(-0.05, 1.05),
            ),
            title="Every figure lies below the fold, so there is a rank-2 minimum; those that jump lie close to it",
            note="lambda_c by continuation of the minimum of C(A) + lambda L Σ s^(2/L) on [[1, *], [epsilon, 1]]. Right: "
            f"{ds.sizes['seed']} runs each from random starts; no bar means that every run has left rank 2.",
        )

    @claim(
        "all starts at rank 2 at .93 lambda_c and none at 1.07 lambda_c",
        stay_below=(1, 1),
        stay_above=(0, 0),
    )
    def descent_agrees(self, ds):
        """GD stays at rank 2 just below the fold and leaves just above it."""
        stays = (ds["rank"] == 2).mean("seed")
        return stays.sel(factor=AROUND[0]).min(), stays.sel(factor=AROUND[1]).max()

    @claim("lambda over lambda_c in [.5, 1] for Figures 1, 2 (both depths) and 4", share=(0.5, 1))
    def figures_below(self, ds):
        """Every figure of the paper is set below the fold: there is a rank-2 minimum to jump from."""
        return dict(zip(FIGURES, RIDGE / ds.at_figure))

    @claim("lambda_c falls with L at every epsilon", largest_step=(-np.inf, -1e-6))
    def depth(self, ds):
        """Depth lowers the fold."""
        return ds.fold.diff("depth").max()

    @claim("lambda_c falls with epsilon at every L", largest_step=(-np.inf, -1e-6))
    def epsilon(self, ds):
        """A smaller missing entry lowers the fold."""
        return ds.fold.diff("epsilon").max()
