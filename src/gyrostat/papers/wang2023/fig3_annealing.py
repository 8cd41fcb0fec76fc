"""Figure 3: how long a noisy phase must last for each epsilon, and whether noise or ridge is the reason."""

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, Outcome, claim, last, share_below, wilson
from gyrostat.figures.compose import figure, lines, panel
from gyrostat.figures.declarations import Line, Marker
from gyrostat.papers.wang2023.settings import (
    FIGURE3_EPSILONS,
    FIGURE3_SWITCHES,
    FIGURE3_TAIL,
    HIGH,
    annealed,
    completion,
    figure3,
    follow,
    network,
    sgd_and_descent,
)
from gyrostat.theory.wang2023 import fold

DEPTH, SOLVED = figure3(1.0, 0).depth, 0.5
EFFECTIVE = HIGH[1] / 4
"""The ridge of the noisy phase in main-text units."""


def solved(loss):
    """The share of the runs that find the missing entry."""
    return share_below(loss, SOLVED, loss.dims[-1])


def threshold():
    """The epsilon whose fold is at the ridge of the noisy phase: above it there is no rank-2 minimum to be stuck in."""
    near = np.array([0.095, 0.105, 0.115])
    ridges = np.array([fold(e, DEPTH).ridge for e in near])
    return np.interp(EFFECTIVE, ridges[::-1], near[::-1])


class Fig3(Experiment):
    """Annealing across epsilon: noise or ridge?

    The paper reads the figure as an effect of noise. A control shows otherwise: gradient descent on the same schedule solves
    every epsilon above the fold, and the noise matters only in a narrow range below it.
    """

    source, weight, items = "Wang 2023, Figure 3", 14, "Figure 3"
    sizes = {
        "seeds": (64, 120, 400),
        "epsilons": (
            (0.1, 0.15, 1.0),
            FIGURE3_EPSILONS,
            (0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.11, 0.12, 0.15, 0.2, 0.3, 0.5, 1.0),
        ),
        "switches": ((0, 1000, 8000), FIGURE3_SWITCHES, (0, 500, 1000, 2000, 4000, 8000, 16_000)),
        "long": (16_000, 24_000, 40_000),
    }

    def compute(self, run, epsilons, switches, long):
        def runs(epsilon, at, sampling="one", seeds=run.seeds, num_steps=None):
            setting = figure3(epsilon, at)
            algorithm, steps = (
                network(annealed(setting.high, setting.low, at), setting.depth),
                num_steps or setting.num_steps,
            )
            return follow(algorithm, completion(epsilon, sampling), num_steps=steps, seeds=seeds, seed=run.seed)

        patient = runs(1.0, 0, num_steps=long)
        data = {"patient": (("seed", "step"), patient.loss(1.0)[:, ::10]), "threshold": threshold()}
        for prefix, sampling, seeds, dim in sgd_and_descent(run):
            loss = [
                [(paths := runs(epsilon, at, sampling, seeds)).loss(epsilon)[:, -1] for at in run.over(switches)]
                for epsilon in run.over(epsilons)
            ]
            data[f"{prefix}loss"] = ("epsilon", "switch", dim), np.nan_to_num(loss, nan=np.inf)
        axes = {"epsilon": list(epsilons), "switch": list(switches), "step": patient.steps[::10]}
        return xr.Dataset(data, axes, {"settings": paths.settings})

    def draw(self, ds):
        axes, fold_at = ("epsilon", "share of runs that solve it"), Marker(float(ds.threshold), "fold", axis="x")
        options = {"xscale": "log", "ylim": (-0.03, 1.03)}
        return figure(
            *(
                panel(title, *axes, *lines(solved(loss), "switch", "t0 = {}"), fold_at, **options)
                for title, loss in (("SGD", ds.loss), ("Gradient descent, same schedule", ds.gd_loss))
            ),
            panel(
                "No noisy phase, epsilon = 1",
                "step / 1000",
                "relative test loss",
                Line(ds.step.values / 1000, ds.patient.median("seed").values, "SGD, median", colour=0),
                Marker(FIGURE3_TAIL / 1000, "where Figure 3 stops", axis="x", role="paper"),
                ylim=(-0.05, 1.05),
            ),
            title="Most of Figure 3 is the ridge: descent solves what lies above the fold, and noise helps only just below it",
            note="L = 4, w = 100; t0 steps with eta = 0.2, lambda = 0.1 (warm-up 500), then 4000 with eta = 0.02, lambda = "
            "0.001. Solved: relative test loss below 0.5. Fold: the epsilon above which the noisy phase's ridge leaves no "
            "rank-2 minimum.",
        )

    @claim(
        "shares fall by at most three standard errors anywhere along t0, and along epsilon for t0 >= 1000; and rise by >= .5 "
        "along t0 for some epsilon",
        numbers={"errors": 3, "rise": 0.5},
    )
    def longer_is_better(self, ds, errors, rise):
        """A larger t0 recovers smaller epsilon, and a larger epsilon is easier."""
        share = solved(ds.loss)
        falls = {
            "largest_fall_in_t0": float(-share.diff("switch").min()),
            "largest_fall_in_epsilon": float(-share.sel(switch=share.switch >= 1000).diff("epsilon").min()),
        }
        gain = float((share.isel(switch=-1) - share.isel(switch=0)).max())
        slack = errors * (0.5 / ds.sizes["seed"]) ** 0.5
        return Outcome({**falls, "gain": gain}, max(falls.values()) <= slack and gain >= rise)

    @claim("share solved at t0 = 0 <= .05 for every epsilon below 1", share=(0, 0.05))
    def no_noisy_phase(self, ds):
        """Without a noisy phase the network fails (epsilon < 1)."""
        return solved(ds.loss).sel(switch=0, epsilon=ds.epsilon < 1)

    @claim(
        "at most half of the runs solve it when the low phase goes on",
        fails="depends on the reading",
        share_at_4000=None,
        share_at_the_end=(0, 0.5),
        median_at_the_end=None,
    )
    def fails_at_one(self, ds):
        """Without a noisy phase the network fails even for epsilon = 1.

        After 4000 steps of the second phase the network is not yet trained; the same run solves epsilon = 1 if it continues.
        """
        end = last(ds.patient)
        return solved(ds.loss).sel(switch=0, epsilon=1.0), solved(end), end.median()

    @claim("shares of both >= .9 at the longest t0 for every epsilon >= .15", ours=True, gd=(0.9, 1), sgd=(0.9, 1))
    def above_the_fold(self, ds):
        """Above the fold the ridge is the cause: GD solves epsilon >= 0.15 as SGD does (ours)."""
        above = ds.isel(switch=-1).sel(epsilon=slice(0.15, None))
        return solved(above.gd_loss), solved(above.loss)

    @claim(
        "GD 0 at every epsilon <= .1; SGD at .1 >= .3, with a 95 % interval that reaches .4",
        gd_below=(0, 0),
        sgd_at_01_low=(0.4, 1),
        sgd_at_01=(0.3, 1),
    )
    def below_the_fold(self, ds):
        """Just below the fold the noise is the cause: SGD solves epsilon = 0.1, and GD does not."""
        below, n = ds.isel(switch=-1).sel(epsilon=slice(0.1)), ds.sizes["seed"]
        share = float(solved(below.loss).sel(epsilon=0.1))
        return solved(below.gd_loss).max(), wilson(round(share * n), n)[1], share

    @claim(
        "the epsilon at which the fold equals lambda / 4 lies between the last stuck and the first solved one",
        ours=True,
    )
    def fold(self, ds):
        """GD begins to solve the problem at the epsilon that the fold predicts (ours)."""
        solves, star = solved(ds.gd_loss.isel(switch=-1)) >= 0.5, float(ds.threshold)
        if solves.all() or not solves.any():
            return Outcome({"threshold": star}, False)
        stuck, first = float(ds.epsilon[~solves].max()), float(ds.epsilon[solves].min())
        return Outcome({"stuck": stuck, "solved": first, "threshold": star}, stuck <= star <= first)
