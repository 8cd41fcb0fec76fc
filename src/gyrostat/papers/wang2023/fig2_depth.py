"""Figure 2: at epsilon = .1 a network of depth 4 jumps and one of depth 3 does not."""

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, Outcome, claim, wilson
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, Marker, Runs
from gyrostat.papers.wang2023.settings import (
    FIGURE2,
    FIGURE2_DEPTHS,
    FIGURE2_SWITCH,
    STARTS,
    annealed,
    completion,
    follow,
    network,
    quantile,
    sgd_and_descent,
    share_by,
)
from gyrostat.theory.wang2023 import fold

EPSILON, DEPTHS, SWITCH = FIGURE2.epsilon, FIGURE2_DEPTHS, FIGURE2_SWITCH
EFFECTIVE = FIGURE2.high[1] / 4
"""The ridge .1 of the weight-decay update in the main text's units, in which the fold is stated."""


class Fig2(Experiment):
    """Depth makes a jump likelier

    The paper has five runs of each depth. Here are shares of many runs, and gradient descent on the same schedule. Depth
    acts through the position of the fold.
    """

    source, weight, items = "Wang 2023, Figure 2", 12, "Figure 2"
    sizes = {"seeds": (160, 240, 1000), "num_steps": FIGURE2.num_steps}

    def compute(self, run, num_steps):
        schedule = annealed(FIGURE2.high, FIGURE2.low, SWITCH)
        data = {"fold": ("depth", [fold(EPSILON, depth).ridge for depth in DEPTHS])}
        for prefix, sampling, seeds, dim in sgd_and_descent(run):
            problem, options = completion(EPSILON, sampling), {"num_steps": num_steps, "seeds": seeds, "seed": run.seed}
            runs = [follow(network(schedule, depth), problem, **options) for depth in run.over(DEPTHS)]
            data[f"{prefix}jump"] = ("depth", dim), [paths.jumped for paths in runs]
            data[f"{prefix}ratio"] = ("depth", "start", "step"), [paths.ratio[:STARTS, ::5] for paths in runs]
        steps, settings = runs[-1].steps[::5], runs[-1].settings
        return xr.Dataset(data, {"depth": list(DEPTHS), "step": steps}, {"settings": settings})

    def by_switch(self, jump):
        """How many runs jump while there is much noise, and of how many."""
        return int((jump <= SWITCH).sum()), jump.size

    def draw(self, ds):
        steps, switch = ds.step.values, Marker(float(SWITCH), "noise and ridge fall", axis="x")
        of_depth = {depth: ds.sel(depth=depth) for depth in DEPTHS}
        return figure(
            *(
                panel(
                    f"L = {depth}, fold at {float(one.fold):.4f}, ridge {EFFECTIVE:g}",
                    "step",
                    "s2 / s1",
                    Runs(steps, np.maximum(one.ratio.values[:5], 1e-17), "SGD, five runs", colour=0),
                    Line(steps, one.gd_ratio.values[0], "gradient descent", colour=2),
                    switch,
                    yscale="log",
                    ylim=(1e-17, 3),
                )
                for depth, one in of_depth.items()
            ),
            panel(
                "When it happens",
                "step",
                "share of runs at rank 1",
                *(
                    share_by(one[name], steps, f"{label}, L = {depth}", colour=colour + i)
                    for i, (depth, one) in enumerate(of_depth.items())
                    for name, label, colour in (("jump", "SGD", 0), ("gd_jump", "gradient descent", 2))
                ),
                switch,
                ylim=(-0.03, 1.03),
            ),
            title="Depth 4 lies just below its fold and jumps by noise; depth 3 lies far below and does not",
            printed={
                f"networks of depth {depth} that jump by step {SWITCH}": (
                    printed,
                    "{} of {}".format(*self.by_switch(of_depth[depth].jump)),
                )
                for depth, printed in ((3, "none of five"), (4, "five of five"))
            },
            note="epsilon = 0.1, w = 100; eta = 0.03 to step 500, 0.25 to step 5000 (lambda = 0.1), then 0.05 with lambda = "
            "0.001. The fold is the ridge above which there is no rank-2 minimum, in main-text units.",
        )

    @claim(
        "share >= .8 for L = 4 and <= .05 for L = 3 (95 % intervals reach them; shares >= .7 and <= .1)",
        names={"share_3": "share that jumps, L = 3", "share_4": "share that jumps, L = 4", "runs": "of [runs]"},
        numbers={"shallow": 0.05, "deep": 0.8, "most": 0.1, "least": 0.7},
    )
    def depth(self, ds, shallow, deep, most, least):
        """At epsilon = 0.1 networks of depth 4 jump in the first 5000 steps and networks of depth 3 do not."""
        (three, n), (four, _) = (self.by_switch(ds.jump.sel(depth=depth)) for depth in DEPTHS)
        holds = (
            wilson(three, n)[0] <= shallow and three / n <= most and wilson(four, n)[1] >= deep and four / n >= least
        )
        return Outcome({"share_3": three / n, "share_4": four / n, "runs": n}, bool(holds))

    @claim(
        "probability of five of five at L = 4 and of none of five at L = 3, from the measured shares: each at least .4",
        ours=True,
        items="Figure 2",
        names={"all_at_4": "probability that five of five jump, L = 4", "none_at_3": "that none of five does, L = 3"},
        all_at_4=(0.4, 1),
        none_at_3=(0.4, 1),
    )
    def five_of_five_is_likely(self, ds):
        """What the figure shows, five of five networks of depth 4 that jump and none of five of depth 3, is a likely outcome
        (ours)."""
        share = (ds.jump <= SWITCH).mean("seed")
        return share.sel(depth=4) ** 5, (1 - share.sel(depth=3)) ** 5

    @claim(
        "90 % quantile of the jump times over the 10 % quantile >= 1.5",
        names={
            "quantile_10": "10 % have jumped by [steps]",
            "quantile_90": "90 % have jumped by [steps]",
            "quotient": "their quotient",
        },
        quantile_10=None,
        quantile_90=None,
        quotient=(1.5, np.inf),
    )
    def different_times(self, ds):
        """The networks of depth 4 jump at different times."""
        jumps = ds.jump.sel(depth=4).values
        jumps = jumps[np.isfinite(jumps)]
        if jumps.size < 5:
            return Outcome({"jumped": jumps.size}, None)
        low, high = quantile(jumps, 0.1), quantile(jumps, 0.9)
        return low, high, high / low

    @claim(
        "no start jumps by step 5000",
        ours=True,
        items="Figure 2",
        names={f"jumped_{depth}": f"share of the starts that jump, L = {depth}" for depth in DEPTHS},
        jumped=(0, 0),
    )
    def descent_stays(self, ds):
        """Noise causes the jumps: GD on the same schedule jumps at neither depth (control)."""
        return (ds.gd_jump <= SWITCH).sum("start")

    @claim(
        "ridge over fold in [.9, 1] for L = 4 and <= .7 for L = 3",
        ours=True,
        names={f"ridge_over_fold_{depth}": f"ridge over fold, L = {depth}" for depth in DEPTHS},
        ridge_over_fold_4=(0.9, 1),
        ridge_over_fold_3=(0, 0.7),
    )
    def near_the_fold(self, ds):
        """The ridge lies just below the fold of depth 4 and far below that of depth 3 (ours)."""
        share = EFFECTIVE / ds.fold
        return share.sel(depth=4), share.sel(depth=3)
