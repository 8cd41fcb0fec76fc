"""Figure 1: SGD waits in the rank-2 minimum and falls to rank 1 for good; gradient descent and shuffled passes do not."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, Outcome, claim, wilson
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, Marker, Points, Runs
from gyrostat.papers.wang2023.settings import (
    FIGURE1,
    GONE,
    HIGH,
    LOW,
    OBSERVED,
    RATIO,
    RIDGE_RATE,
    STARTS,
    annealed,
    completion,
    decay_rate,
    follow,
    median_interval,
    network,
    noisy,
    quantile,
    share_by,
)
from gyrostat.theory.wang2023 import turning_rate

EPSILON = FIGURE1.epsilon
SHOWN = 6
TAIL, LEFT_OUT = 4000, 500
"""Steps of an offshoot, and of the warm-up."""
RATIOS = {"yscale": "log", "ylim": (1e-17, 3)}
LOSSES = {"ylim": (-0.05, 1.3)}
SHARES = {"ylim": (-0.03, 1.03)}


def turning(matrices):
    """The rate that noise adds to the decay of s2, averaged over the records at rank 1; NaN without any."""
    truth = [[1.0, np.nan], [EPSILON, 1.0]]
    return turning_rate(matrices, truth, OBSERVED, step_size=HIGH[0], depth=3).mean() if len(matrices) else np.nan


class Fig1(Experiment):
    """A jump from rank 2 to rank 1, and offshoots before and after it

    The paper shows one run. Here are the distribution of the jump time, and two controls on the same schedule: gradient
    descent, and SGD that sees every entry once per pass. Only sampling with replacement jumps.
    """

    source, weight, items = "Wang 2023, Figure 1", 9, "Figure 1"
    sizes = {
        "seeds": (64, 240, 1000),
        "shuffled": (16, 120, 400),
        "num_steps": (20_000, FIGURE1.num_steps, 40_000),
        "branches": (4, 8, 16),
    }

    def compute(self, run, shuffled, num_steps, branches):
        def runs(sampling, seeds):
            problem = completion(EPSILON, sampling)
            return follow(network(annealed()), problem, num_steps=num_steps, seeds=seeds, seed=run.seed)

        sgd, descent, passes = runs("one", run.seeds), runs("all", STARTS), runs("shuffled", shuffled)
        at = [1000 * (k + 1) for k in range(branches)]
        offshoots = gs.engine.offshoots(
            network(noisy()),
            completion(EPSILON),
            at=at,
            schedule=gs.schedules.Constant(*LOW),
            num_steps=TAIL,
            seeds=run.seeds,
            seed=run.seed,
            record=("product",),
            record_at=51,
            progress=run.progress,
        )
        loss = (1 - EPSILON * offshoots["product"].values[..., 0, 1]) ** 2
        ratio, jumps = sgd.ratio, sgd.jumped
        rate = np.array([decay_rate(sgd.steps, s[:, 1], r) for s, r in zip(sgd.values, ratio)])
        # The path shown is the first that jumps well inside the times of the offshoots.
        shown = np.argmax((jumps > at[0]) & (jumps < at[-1]))
        was_gone = np.maximum.accumulate(ratio < GONE, axis=1)
        return xr.Dataset(
            {
                "jump": ("seed", jumps),
                "in_window": ("seed", ((jumps >= 1000) & (jumps <= 3000)).astype(float)),
                "shuffled_jump": ("pass", passes.jumped),
                "gd_jump": ("start", descent.jumped),
                "returned": ("seed", (was_gone & (ratio >= RATIO)).any(axis=1).astype(float)),
                "after": ("seed", [max(r[sgd.steps >= t + 500], default=np.nan) for r, t in zip(ratio, jumps)]),
                "rate": ("seed", rate),
                "over_ridge": ("seed", rate / RIDGE_RATE),
                "expected_rate": ("seed", [RIDGE_RATE + turning(A[r < 1e-6]) for A, r in zip(sgd.matrices, ratio)]),
                "ratio": (("shown", "step"), ratio[:SHOWN]),
                "shuffled_ratio": (("shown", "step"), passes.ratio[:SHOWN]),
                "gd_ratio": (("start", "step"), descent.ratio),
                "trunk_loss": ("step", sgd.loss(EPSILON)[shown]),
                "trunk_ratio": ("step", ratio[shown]),
                "offshoot": (("branch", "seed"), loss[..., -1]),
                "offshoot_path": (("branch", "record"), loss[:, shown]),
                "offshoot_step": (("branch", "record"), offshoots.step.values),
            },
            {"step": sgd.steps, "branch": at, "seed": np.arange(run.seeds)},
            {"settings": sgd.settings},
        )

    def hazard(self, ds):
        """Jumps per step at risk, after the warm-up."""
        end = float(ds.step[-1])
        return float((ds.jump <= end).sum() / np.maximum(np.minimum(ds.jump, end) - LEFT_OUT, 1).sum())

    def falls(self, ds):
        """The runs shown, from their own jumps on, and the rates from a ratio of 1e-6 on, where nothing else acts."""
        falls, begins = [], []
        for jump, ratio in zip(ds.jump.values, ds.ratio.values):
            lag = ds.step.values - jump
            near = (lag >= -400) & (lag <= 800)
            if near.any():
                falls.append((lag[near], np.maximum(ratio[near], 1e-17)))
                begins += list(lag[near & (lag >= 0) & (ratio < 1e-6)][:1])
        x, y = zip(*falls) if falls else ((), ())
        t = np.array([0.0, 380.0])
        rates = (
            ("the ridge alone", "paper", RIDGE_RATE),
            ("ridge and turning by noise", "theory", ds.expected_rate.median()),
        )
        return [
            Runs(x, y, f"SGD, {len(falls)} runs", colour=0),
            *(
                Line(np.median(begins) + t, 1e-6 * np.exp(-float(rate) * t), label, role=role)
                for label, role, rate in rates
                if begins
            ),
        ]

    def draw(self, ds):
        steps, thousands, at = ds.step.values, ds.step.values / 1000, ds.branch.values / 1000
        early = thousands <= at[-1] + TAIL / 1000
        at_rank_2 = np.flatnonzero(ds.trunk_ratio.values >= RATIO)
        lag, ends = ((x.transpose("branch", "seed").values.ravel()) for x in (ds.branch - ds.jump, ds.offshoot))
        jumped, hazard = np.isfinite(lag), self.hazard(ds)
        others = (("without replacement", "shuffled", 1), ("gradient descent", "gd", 2))
        return figure(
            panel(
                "Ratio of singular values",
                "step / 1000",
                "s2 / s1",
                Runs(thousands, np.maximum(ds.ratio.values, 1e-17), f"SGD, {ds.sizes['shown']} runs", colour=0),
                *(Line(thousands, ds[f"{name}_ratio"].values[0], label, colour=c) for label, name, c in others),
                **RATIOS,
            ),
            panel("The same around the jump", "steps after the jump", "s2 / s1", *self.falls(ds), **RATIOS),
            panel(
                "When it happens",
                "step / 1000",
                "share of runs at rank 1",
                share_by(ds.jump, steps, "SGD", unit=1000, colour=0),
                *(share_by(ds[f"{name}_jump"], steps, label, unit=1000, colour=c) for label, name, c in others),
                Line(
                    thousands,
                    1 - np.exp(-hazard * np.maximum(steps - LEFT_OUT, 0)),
                    f"constant hazard {hazard:.1e} per step",
                    role="theory",
                ),
                Marker(2.0, "the jump of the printed figure", axis="x", role="paper"),
                **SHARES,
            ),
            panel(
                "One run and its offshoots",
                "step / 1000",
                "relative test loss",
                Line(thousands[early], ds.trunk_loss.values[early], "high noise", colour=0),
                Runs(ds.offshoot_step.values / 1000, ds.offshoot_path.values, "offshoots, low noise", colour=3),
                Marker(thousands[at_rank_2[-1]] if at_rank_2.size else 0.0, "the jump", axis="x"),
                **LOSSES,
            ),
            panel(
                "All offshoots",
                "steps from the jump to the branching / 1000",
                "relative test loss, end",
                Points(lag[jumped] / 1000, ends[jumped], "an offshoot each", colour=3),
                Marker(0.0, "the jump", axis="x"),
                Marker(0.2, "threshold of the claim", role="bound"),
                **LOSSES,
            ),
            panel(
                "Offshoots by their time",
                "branching step / 1000",
                "share",
                share_by(ds.jump, ds.branch.values, "runs at rank 1 when they branch", unit=1000, colour=0),
                Points(at, (ds.offshoot < 0.2).mean("seed").values, "offshoots that fit the missing entry", colour=3),
                **SHARES,
            ),
            title="With replacement SGD falls to rank 1 after a random time and never comes back; descent and shuffled passes "
            "stay at rank 2",
            printed={
                "step of the jump": ("around 2000 (one run)", f"{quantile(ds.jump.values, 0.5):.0f} (median)"),
                "runs that jump between steps 1000 and 3000": (
                    "the run shown",
                    f"{100 * float(ds.in_window.mean()):.0f} %",
                ),
                "runs that come back to rank 2": ("none", int(ds.returned.sum())),
            },
            note="L = 3, w = 100, epsilon = 0.25; eta = 0.2, lambda = 0.1 (eta = 0.03 in the first 500 steps); offshoots eta = "
            "0.02, lambda = 0.001 for 4000 steps. The relative test loss is (1 - epsilon A_12)^2; rank 1 is s2 / s1 < 0.01.",
        )

    @claim(
        "share of runs at rank 1 by step 20,000: 95 % interval reaches .9",
        names={"share": "share of the runs that jump", "jumped": "that is [runs]", "runs": "of [runs]"},
        numbers={"reached": 0.9},
    )
    def jumps(self, ds, reached):
        """SGD reaches rank 1."""
        n, hits = ds.sizes["seed"], int((ds.jump <= 20_000).sum())
        return Outcome({"share": hits / n, "jumped": hits, "runs": n}, bool(wilson(hits, n)[1] >= reached))

    @claim(
        "99.9 % interval of the median jump time meets [4000, 6500]",
        ours=True,
        names={f"quantile_{q}": f"{q} % of the runs have jumped by step" for q in (5, 25, 50, 75)}
        | {"low": "median, lower end of the interval [steps]", "high": "median, upper end of the interval [steps]"},
        quantile=None,
        low=(-np.inf, 6500),
        high=(4000, np.inf),
    )
    def when(self, ds):
        """Half of the runs have jumped by step 5000 (ours)."""
        jump, shares = ds.jump.values, [5, 25, 50, 75]
        return xr.DataArray([quantile(jump, q / 100) for q in shares], {"share": shares}), *median_interval(jump)

    @claim(
        "half of the runs jump in [1000, 3000]",
        fails="not typical",
        names={"share": "share of the runs that jump in this window"},
        share=(0.5, 1),
    )
    def about_2000(self, ds):
        """The jump happens around step 2000.

        The printed run was an early one: about a quarter of all runs jump in that window.
        """
        return ds.in_window.mean()

    @claim(
        "no run below a ratio of 1e-4 comes back to .01; 500 steps after its jump none is above 1e-7",
        names={
            "returned": "runs that come back to rank 2 [runs]",
            "largest_ratio_500_later": "largest s2 / s1 after 500 more steps",
            "jumped": "of [runs]",
        },
        returned=(0, 0),
        largest_ratio_500_later=(0, 1e-7),
        jumped=(5, np.inf),
    )
    def one_way(self, ds):
        """The probability of jumping back is zero."""
        return ds.returned.sum(), ds.after.max(), np.isfinite(ds.jump).sum()

    @claim(
        "rate of s2 between ratios of 1e-6 and 1e-13 over -L log(1 - eta lambda) + turning_rate: median over the runs within "
        "3 % of 1",
        ours=True,
        names={"quotient": "rate over theory", "runs": "measured in [runs]"},
        quotient=(0.97, 1.03),
        runs=(5, np.inf),
    )
    def decay(self, ds):
        """After the jump, s2 decays at the rate of the ridge plus the rate at which noise turns the first singular pair
        (ours)."""
        quotient = ds.rate / ds.expected_rate
        return quotient.median(), quotient.notnull().sum()

    @claim(
        "median rate of s2 between ratios of 1e-6 and 1e-13 over -L log(1 - eta lambda) above 1.03",
        ours=True,
        names={"quotient": "rate over that of the ridge alone"},
        quotient=(1.03, np.inf),
    )
    def faster_than_ridge(self, ds):
        """After the jump s2 decays faster than the ridge alone explains (ours): noise turns the first singular pair in every
        step, and the part orthogonal to it shrinks by the cosine."""
        return ds.over_ridge.median()

    @claim(
        "no start jumps, and s2 / s1 stays in [.1, .4] after step 1000",
        ours=True,
        items="Figure 1",
        names={"least": "smallest s2 / s1", "most": "largest s2 / s1", "jumped": "starts that jump [starts]"},
        least=(0.1, 0.4),
        most=(0.1, 0.4),
        jumped=(0, 0),
    )
    def descent_stays(self, ds):
        """GD is stuck at the rank-2 minimum (control on the same schedule)."""
        late = ds.gd_ratio.where(ds.step > 1000, drop=True)
        return late.min(), late.max(), np.isfinite(ds.gd_jump).sum()

    @claim(
        "at most 2 % of the shuffled runs jump",
        names={"share": "share of the shuffled runs that jump"},
        share=(0, 0.02),
    )
    def shuffled_stays(self, ds):
        """Without replacement jumps may not be possible (section 3.2)."""
        return np.isfinite(ds.shuffled_jump).mean()

    @claim(
        "relative test loss < .2 agrees with leaving after the jump in >= 97 % of the offshoots; 10-90 % leave after",
        names={"agree": "share of the offshoots that agree", "share_after": "share that leave after the jump"},
        agree=(0.97, 1),
        share_after=(0.1, 0.9),
    )
    def offshoots(self, ds):
        """Offshoots fit the missing entry exactly when they leave after the jump."""
        after = ds.branch >= ds.jump
        return (after == (ds.offshoot < 0.2)).mean(), after.mean()
