"""Figure 4: a periodic schedule. Jumps happen in the noisy periods only; some runs diverge, some collapse."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, Outcome, claim
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, Runs
from gyrostat.papers.wang2023.settings import (
    FIGURE4,
    FIGURE4_PERIODS,
    STARTS,
    WARM_SIZE,
    WARM_STEPS,
    completion,
    follow,
    network,
    shares_of_ranks,
)

EPSILON, PERIODS = FIGURE4.epsilon, FIGURE4_PERIODS
QUIET, LOUD = FIGURE4.low, FIGURE4.high


def periodic(length, *phases):
    """Phases of one length in turn."""
    turns = gs.schedules.Periodic([(length, gs.schedules.Constant(*phase)) for phase in phases])
    return gs.schedules.WarmUp(WARM_STEPS, WARM_SIZE, then=turns)


def settled(paths, length):
    """The relative test loss at the end of the first quiet phase after the jump, NaN if there is none."""
    ends = np.arange(length, paths.steps[-1] + 1, 2 * length)
    first = np.searchsorted(ends, paths.jumped + length)  # len(ends) for none
    at = np.searchsorted(paths.steps, np.append(ends, 0))[first]
    loss = np.take_along_axis(paths.loss(EPSILON), at[:, None], axis=1)[:, 0]
    return np.where(first < len(ends), loss, np.nan)


def loud(steps, length):
    """Whether a step belongs to a loud phase. A jump is recorded up to ten steps late."""
    return (steps - 10) % (2 * length) >= length


class Fig4(Experiment):
    """A periodic schedule

    Quiet phases fit, loud phases jump. The length of a phase is not printed; 1000 and 2000 are shown, with gradient descent
    on the same schedule.
    """

    source, weight, items = "Wang 2023, Figure 4", 5, "Figure 4"
    sizes = {"seeds": (192, 240, 1000), "num_steps": (10_000, FIGURE4.num_steps, 20_000)}

    def compute(self, run, num_steps):
        cells = []
        for length in run.over(PERIODS):
            algorithm = network(periodic(length, QUIET, LOUD), FIGURE4.depth)
            options = {"num_steps": num_steps, "seed": run.seed, "records": num_steps // 10 + 1}
            sgd = follow(algorithm, completion(EPSILON, "one"), seeds=run.seeds, **options)
            descent = follow(algorithm, completion(EPSILON, "all"), seeds=STARTS, **options)
            cells.append(
                xr.Dataset(
                    {
                        "jump": ("seed", sgd.jumped),
                        "fate": ("seed", 2.0 - sgd.ranks[:, -1]),
                        "gd_fate": ("start", 2.0 - descent.ranks[:, -1]),
                        "settled": ("seed", settled(sgd, length)),
                        "loss": (("shown", "step"), sgd.loss(EPSILON)[:5, ::5]),
                        "ratio": (("shown", "step"), sgd.ratio[:5, ::5]),
                        "gd_ratio": ("step", descent.ratio[0, ::5]),
                    },
                    {"step": sgd.steps[::5]},
                    {"settings": sgd.settings},
                )
            )
        return xr.concat(cells, "period").assign_coords(period=list(PERIODS)).assign_attrs(cells[-1].attrs)

    def draw(self, ds):
        length = PERIODS[1]
        one, x = ds.sel(period=length), ds.step.values

        def runs(values, height):
            phases = Line(x, np.where(loud(x + 10, length), height, np.nan), "loud phases", role="bound")
            return phases, Runs(x, values, f"SGD, {len(values)} runs", colour=0)

        descent = Line(x, one.gd_ratio.values, "gradient descent", colour=2)
        ratios = *runs(np.maximum(one.ratio.values, 1e-17), 30.0), descent
        title, good = f"Phases of {length} steps", 100 * (ds.fate == 1).mean("seed")
        return figure(
            panel(title, "step", "s2 / s1", *ratios, yscale="log", ylim=(1e-17, 100)),
            panel(title, "step", "relative test loss", *runs(one.loss.values, 1.5), ylim=(-0.05, 1.6)),
            panel(
                "How runs end",
                "",
                "share of runs",
                *(shares_of_ranks(2 - ds.fate.sel(period=p), f"SGD, phases of {p}", i) for i, p in enumerate(PERIODS)),
                shares_of_ranks(2 - ds.gd_fate, "gradient descent", 2),
                ylim=(0, 1.05),
            ),
            title="With a periodic schedule every jump falls into a loud phase; a few runs diverge or lose all rank",
            printed={
                f"runs that end at rank 1, phases of {p} steps": (
                    "all five shown",
                    f"{float(good.sel(period=p)):.0f} %",
                )
                for p in PERIODS
            },
            note="L = 3, w = 100, epsilon = 0.2; quiet: eta = 0.1, lambda = 0.001; loud: eta = 0.4, lambda = 0.1; quiet first, "
            "eta = 0.03 in the first 500 steps. The printed figure shows none of the runs that diverge.",
        )

    @claim(
        "no lasting jump in a quiet phase",
        names={"jumps": "jumps [runs]", "share_in_loud": "share of them in loud phases"},
        jumps=None,
        share_in_loud=(1, 1),
    )
    def loud_only(self, ds):
        """All jumps happen in the periods of large eta and lambda."""
        jumped = np.isfinite(ds.jump)
        return jumped.sum(), loud(ds.jump, ds.period).where(jumped).mean()

    @claim(
        "share at rank 1 or 0 at the end >= .9 of those",
        names={f"share_{p}": f"share that jumps, phases of {p} steps" for p in PERIODS},
        share=(0.9, 1),
    )
    def jumps(self, ds):
        """Runs that do not diverge jump."""
        return (ds.fate >= 1).where(ds.fate < 3).mean("seed")

    @claim(
        "relative test loss < .2 at the end of the first quiet phase after the jump in >= .9 of the rank-1 runs",
        names={"runs": "runs that jump [runs]", "share": "share of them that settle"},
        runs=None,
        share=(0.9, 1),
    )
    def settles(self, ds):
        """After the jump SGD settles at a low test error in the quiet periods."""
        losses = ds.settled.where(ds.fate == 1)
        known = losses.notnull()
        if known.sum() < 5:
            return Outcome({"runs": int(known.sum())}, None)
        return known.sum(), (losses < 0.2).where(known).mean()

    @claim(
        "probability that five of five end at rank 1, from the measured share, at least .5; at most one run in ten diverges "
        "and one in ten collapses to rank 0",
        ours=True,
        items="Figure 4",
        names={
            f"{fate}_{p}": f"{word}, phases of {p} steps"
            for fate, word in (
                ("five", "probability that five of five end at rank 1"),
                ("diverged", "share that diverges"),
                ("collapsed", "share that ends at rank 0"),
            )
            for p in PERIODS
        },
        five=(0.5, 1),
        diverged=(0, 0.1),
        collapsed=(0, 0.1),
    )
    def five_good_runs_are_likely(self, ds):
        """Five runs that all jump and settle, as shown, are the likely outcome, though a few in a hundred diverge at eta = 0.4
        or lose all rank (ours)."""
        good, diverged, collapsed = ((ds.fate == fate).mean("seed") for fate in (1, 3, 2))
        return good**5, diverged, collapsed

    @claim(
        "every start ends at rank 2",
        ours=True,
        items="Figure 4",
        names={f"rank_2_{p}": f"share that ends at rank 2, phases of {p} steps" for p in PERIODS},
        rank_2=(1, 1),
    )
    def descent_stays(self, ds):
        """Noise causes the jumps: GD on the same schedule stays at rank 2 (control)."""
        return (ds.gd_fate == 0).mean("start")
