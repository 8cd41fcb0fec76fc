"""Momentum and Adam: does HeteroSGD still forget, and at which step size?"""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, crossing, last, median, share_below, wilson
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Band, Line, Marker, Points
from gyrostat.theory.ours import critical_spread, effective_step

ALPHA = 1e-3
EFFECTIVE, T = 0.05, 300
"""The effective step eta / (1 - beta) that all runs of the first comparison share, and their number of steps."""
SPREADS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0]
BETAS = [0.0, 0.5, 0.8, 0.9]

ETA, TIME = 0.005, 10.0
"""The step size of the second comparison, in which only beta changes; T = TIME / effective step."""
RATIOS = [0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0]
"""M over the predicted M* of a beta."""

ADAM_ETAS = [0.002, 0.005, 0.01, 0.02]
ADAM_TIME = 4.0
"""eta T: an entry moves by about eta in a step of Adam, and the signal has size one."""
RESAMPLES = 200


def steps(beta):
    """The number of steps of a beta in the second comparison."""
    return round(TIME / effective_step(ETA, beta))


def predicted(beta):
    """M* at the effective step of beta, for the second comparison.

    >>> [round(predicted(beta), 1) for beta in (0.0, 0.9)]
    [13.0, 4.2]
    """
    return critical_spread(effective_step(ETA, beta), init_scale=ALPHA, num_steps=steps(beta))


def halfway(spurious, along):
    """Where half of the runs end without the spurious signal, along M or along M over M*."""
    return crossing(spurious[along].values, share_below(spurious, 0.1).values, 0.5)


def halfway_at_fixed_step(ds):
    """The same at the fixed step size, for every beta."""
    ratios = [halfway(spurious, "ratio") for spurious in ds.fixed_spurious.transpose("beta", ...)]
    return ratios * ds.prediction


class Momentum(Experiment):
    """Momentum and Adam

    With momentum the transition is where plain SGD has it at the step eta / (1 - beta), though fewer runs forget beyond it;
    Adam, whose steps do not grow with the gradient, keeps a part of the spurious signal.
    """

    source = "ours; Algorithm 3 of Xu 2024 with other update rules, in the setting of section 5"
    weight, ours = 50, True
    sizes = {"seeds": (128, 128, 200), "dimension": (8, 16, 40)}
    names = {
        "momentum": "share of the spurious signal, heavy ball",
        "nesterov": "share of the spurious signal, Nesterov",
        "lost": "share of the runs that momentum loses",
        "adam_least": "smallest share of the spurious signal, Adam",
        "plain": "share of the spurious signal, plain",
        "adam_signal": "share of the invariant signal, Adam",
    }

    def compute(self, run, dimension):
        def cell(spread, eta, rule):
            environments = gs.RandomEnvironments(dimension, law=gs.TwoPoint(mean=1.0, spread=spread))
            problem = gs.Problem(environments, gs.FreshGaussian(400 * dimension))
            return gs.HeteroSGD(eta, init_scale=ALPHA, rule=rule), problem

        def same_effective_step(kind, beta, spread):
            return cell(spread, EFFECTIVE * (1 - beta), getattr(gs.rules, kind)(beta))

        def same_step(beta, ratio):
            return cell(ratio * predicted(beta), ETA, gs.rules.Momentum(beta))

        def adam(adam_eta, spread):
            return cell(spread, adam_eta, gs.rules.Adam())

        def ends(name, build, axes, num_steps):
            ds = run.grid(build, axes, num_steps=num_steps, record=("signal", "spurious"), record_at=2)
            ds = last(ds[["signal", "spurious"]]).drop_vars("step")
            return ds.rename(signal=f"{name}_signal", spurious=f"{name}_spurious")

        kinds, spreads = {"kind": ["Momentum", "Nesterov"], "beta": BETAS}, {"spread": SPREADS}
        comparisons = [
            ends("effective", same_effective_step, kinds | spreads, T),
            ends("fixed", same_step, {"beta": BETAS, "ratio": RATIOS}, lambda beta, ratio: steps(beta)),
            ends("adam", adam, {"adam_eta": ADAM_ETAS} | spreads, lambda adam_eta, spread: round(ADAM_TIME / adam_eta)),
        ]
        ds = xr.merge(comparisons, combine_attrs="drop_conflicts")
        return ds.assign(prediction=("beta", [predicted(beta) for beta in BETAS]))

    def draw(self, ds):
        heavy, runs = ds.effective_spurious.sel(kind="Momentum"), ds.sizes["seed"]
        left, adam = median(heavy), median(ds.adam_spurious)
        rng = np.random.default_rng(0)  # one draw of resamples for all betas
        resampled = [halfway_at_fixed_step(ds.isel(seed=rng.integers(runs, size=runs))) for _ in range(RESAMPLES)]
        low, high = np.nanquantile(resampled, [0.025, 0.975], axis=0)
        shares = []
        for colour, beta in enumerate(BETAS):
            share = share_below(heavy.sel(beta=beta), 0.1).values
            least, most = wilson(share * runs, runs)
            shares.append(Band(SPREADS, least, share, most, f"beta = {beta:g}", colour=colour))
        of_adam = [
            Line(SPREADS, adam.sel(adam_eta=eta).values, f"Adam, eta = {eta:g}", colour=colour)
            for eta, colour in zip(ADAM_ETAS, (1, 2, 4, 5))
        ]
        betas = np.linspace(0, 0.92, 60)
        kept = ", ".join(f"{x:.2f}" for x in adam.sel(spread=6.0).values)
        return figure(
            panel(
                f"The same effective step, {EFFECTIVE:g}",
                "heterogeneity M",
                "share of runs without spurious signal",
                *shares,
                Marker(self.critical(), "predicted M*", axis="x"),
                ylim=(0, 1),
            ),
            panel(
                f"The same step size, {ETA:g}",
                "momentum beta",
                "M at which half of the runs forget",
                Points(BETAS, halfway_at_fixed_step(ds), "measured", low=low, high=high),
                Line(betas, [predicted(b) for b in betas], "M* at eta / (1 - beta)", role="theory"),
                ylim=(0, None),
            ),
            panel(
                "What is left",
                "heterogeneity M",
                "median share of the spurious signal",
                Line(SPREADS, left.sel(beta=0.0).values, "plain, eta = 0.05", colour=0),
                Line(SPREADS, left.sel(beta=0.9).values, "momentum 0.9, eta = 0.005", colour=3),
                *of_adam,
                yscale="log",
            ),
            title="Momentum forgets as the effective step predicts, though in fewer runs; Adam keeps much",
            note=f"Start {ALPHA:g}, s = 1 - M or 1 + M, {runs} runs. Left: T = {T}. Middle: T = {TIME:g} (1 - beta) / eta. "
            "Bands and whiskers are 95 % intervals. Right: plain and momentum as on the left, Adam for "
            f"T = {ADAM_TIME:g} / eta; at M = 6 Adam leaves {kept} of the spurious signal, from its smallest to its "
            "largest step. Diverged runs count as failures.",
        )

    def critical(self):
        """M* at the effective step that the runs of the first comparison share."""
        return critical_spread(EFFECTIVE, init_scale=ALPHA, num_steps=T)

    @claim(
        "median invariant share at the end in [.9, 1.1] for every beta and M, both kinds of momentum",
        least=(0.9, 1.1),
        most=(0.9, 1.1),
    )
    def signal_learnt(self, ds):
        """At the same effective step, the invariant signal is learnt whatever the momentum."""
        signal = median(ds.effective_signal)
        return signal.min(), signal.max()

    @claim(
        "median spurious share at M = 8 at most .05, heavy ball and Nesterov", momentum=(0, 0.05), nesterov=(0, 0.05)
    )
    def momentum_forgets(self, ds):
        """HeteroSGD with momentum 0.9 forgets the spurious signal."""
        ends = median(ds.effective_spurious.sel(spread=8.0, beta=0.9))
        return ends.sel(kind="Momentum"), ends.sel(kind="Nesterov")

    @claim(
        "half of the runs forget at an M within [.7, 1.2] of M*, for beta up to .9, both kinds of momentum",
        least=(0.7, 1.2),
        most=(0.7, 1.2),
    )
    def effective_step(self, ds):
        """At the same effective step eta / (1 - beta), the transition is where plain SGD has it."""
        cells = ds.effective_spurious.stack(cell=("kind", "beta")).transpose("cell", ...)
        ratios = [halfway(cell, "spread") / self.critical() for cell in cells]
        return min(ratios), max(ratios)

    @claim(
        "share of runs without spurious signal, mean over M from 7 to 10: plain minus momentum .9 in [.05, .5]",
        lost=(0.05, 0.5),
    )
    def less_reliable(self, ds):
        """Beyond the transition, momentum 0.9 forgets in fewer runs than plain SGD at the same effective step."""
        beyond = ds.effective_spurious.sel(kind="Momentum", spread=slice(7.0, None))
        share = share_below(beyond, 0.1).mean("spread")
        return share.sel(beta=0.0) - share.sel(beta=0.9)

    @claim(
        "half of the runs forget at an M within [.7, 1.2] of the prediction for every beta",
        least=(0.7, 1.2),
        most=(0.7, 1.2),
    )
    def fixed_step(self, ds):
        """At the same step size, the transition follows M* at the effective step."""
        ratios = halfway_at_fixed_step(ds) / ds.prediction
        return ratios.min(), ratios.max()

    @claim("the M at which half of the runs forget, over that without momentum, in [.2, .45]", moved=(0.2, 0.45))
    def momentum_helps(self, ds):
        """At the same step size, momentum 0.9 forgets with a third of the heterogeneity."""
        halves = halfway_at_fixed_step(ds)
        return halves[-1] / halves[0]

    @claim(
        "M = 6, median spurious share: Adam >= .15 at every step size, plain <= .05; Adam's signal in [.9, 1.1]",
        adam_least=(0.15, 1.1),
        plain=(0, 0.05),
        adam_signal=(0.9, 1.1),
    )
    def adam_keeps(self, ds):
        """Adam keeps a part of the spurious signal where plain SGD forgets it."""
        ends = median(ds.sel(spread=6.0))
        plain = ends.effective_spurious.sel(kind="Momentum", beta=0.0)
        return ends.adam_spurious.min(), plain, ends.adam_signal.min()

    @claim(
        "median spurious share at M = 6: the lesser of the two small steps over the large one in [1, 20]", ratio=(1, 20)
    )
    def adam_small_steps(self, ds):
        """Adam keeps more with small steps (0.002, 0.005) than with large ones (0.02)."""
        adam = median(ds.adam_spurious.sel(spread=6.0))
        return adam.sel(adam_eta=ADAM_ETAS[:2]).min() / adam.sel(adam_eta=ADAM_ETAS[-1])
