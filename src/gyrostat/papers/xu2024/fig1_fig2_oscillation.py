"""Figures 1 and 2: why a signal that changes sign from batch to batch is not learnt."""

import numpy as np

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, last, median
from gyrostat.figures.compose import figure, lines, panel
from gyrostat.figures.declarations import Line, Runs, band
from gyrostat.papers.xu2024.fig5_fig6_thm3_thm6_pooled import Fig5
from gyrostat.papers.xu2024.settings import FIGURE2, FIGURE2_SPREADS, on_grid
from gyrostat.theory.xu2024 import exact_moments, moment_growth


class Fig1(Fig5):
    """Pooled training learns both signals; one environment at a time learns only the invariant one

    The paper's drawing, made from real runs in the setting of Figure 5.
    """

    source, weight, items = "Xu 2024, Figure 1", 6, "Figure 1"
    sizes = {"seeds": (12, 50, 200)}
    names = {
        f"{name}_{part}": f"share of the {part} signal, {label}"
        for name, label in (("hetero", "HeteroSGD"), ("pooled", "PooledSGD"))
        for part in ("invariant", "spurious")
    }
    hetero_invariant_only = pooled_no_distinction = None  # the claims of Figure 5

    def draw(self, ds):
        panels = []
        for title, algorithm in (
            ("Batches mix environments (PooledSGD)", "pooled"),
            ("Every batch from one environment (HeteroSGD)", "hetero"),
        ):
            one = ds.sel(algorithm=algorithm)
            some = one.spurious.isel(seed=slice(0, 5)).transpose("seed", "step").values
            learnt = band(one.signal, "invariant (median, quartiles)", colour=0)
            runs = Runs(ds.step.values, some, f"spurious, {len(some)} single runs", colour=1)
            panels.append(panel(title, "step", "share of the signal learnt", learnt, runs, ylim=(-0.05, 1.6)))
        return figure(
            *panels,
            title="Data from one environment at a time oscillate, and the oscillation keeps the spurious signal away",
            note="Left: the spurious signal looks stable on average and is learnt like the invariant one. Right: it "
            "changes from batch to batch, is multiplied up and down, and shrinks on balance.",
        )

    @claim(
        "medians at the end: invariant in [.9, 1.1] for both; spurious <= .1 (hetero), >= .8 (pooled)",
        hetero_invariant=(0.9, 1.1),
        pooled_invariant=(0.9, 1.1),
        hetero_spurious=(0, 0.1),
        pooled_spurious=(0.8, 1.2),
    )
    def core_only(self, ds):
        """Training on one environment at a time keeps the invariant signal only; pooled training keeps both."""
        ends = median(last(ds[["signal", "spurious"]].sel(algorithm=["hetero", "pooled"])))
        return *ends.signal, *ends.spurious


class Fig2(Experiment):
    """The mean of the spurious factor grows, its 0.1-moment falls

    q_t is the product of the factors 1 + eta xi. The paper does not print its M; five values are shown.
    """

    source, items = "Xu 2024, Figure 2", "Figure 2"
    sizes = {"num_steps": (60, FIGURE2.num_steps, 200)}

    def compute(self, run, num_steps):
        eta, steps = FIGURE2.step_size, np.arange(num_steps + 1)

        def paths(M):
            mean, tenth = (exact_moments(gs.TwoPoint(spread=M), eta, power, num_steps) for power in (1.0, 0.1))
            # Half of the factors are of each kind in the median: |q_t| at even t, that of t - 1 at odd t.
            return mean, tenth, abs((1 + eta * (1 - M)) * (1 + eta * (1 + M))) ** (steps // 2)

        ds = on_grid(paths, {"spread": list(FIGURE2_SPREADS)}, ("mean", "tenth", "median"), over=("step",))
        fine = np.arange(1.0, 15.0, 0.01)
        growth = [moment_growth(gs.TwoPoint(spread=M), eta, 0.1) for M in fine]
        ds = ds.assign(tenth_growth=("fine_spread", growth)).assign_coords(step=steps, fine_spread=fine)
        return ds.assign_attrs(step_size=eta)

    def draw(self, ds):
        steps = ds.step.values
        stable = (1 + FIGURE2.step_size) ** steps
        never = "a signal that never changes"
        mean, tenth = (lines(x, "spread", "M = {:g}") for x in (ds["mean"], ds.tenth))
        theory = Line(steps, stable, "(1 + eta)^t", role="theory")
        return figure(
            panel("Mean", "step t", "E |q_t|", *mean, theory, yscale="log"),
            panel("0.1-moment", "step t", "E |q_t|^0.1", *tenth, Line(steps, stable**0.1, never, role="theory")),
            title="The mean of the oscillating signal grows, its 0.1-moment falls once M is large enough",
            note="Exact binomial sums at eta = 0.05. All means equal (1 + eta)^t: they come from runs too rare to be seen.",
        )

    def at_the_end(self, values):
        return values.sel(spread=FIGURE2.spread).isel(step=-1)

    @claim("final mean >= 1.5 and final median <= .5, M = 8", mean=(1.5, np.inf), median=(0, 0.5))
    def mean_grows(self, ds):
        """E |q_t| grows, although most runs fall: the mean comes from runs too rare to be seen (M = 8)."""
        return self.at_the_end(ds["mean"]), self.at_the_end(ds["median"])

    @claim("every step down, M = 8", largest_increase=(-np.inf, 0.0), final=(0, 0.99))
    def tenth_moment_falls(self, ds):
        """E |q_t|^0.1 falls (shown for M = 8)."""
        return ds.tenth.sel(spread=FIGURE2.spread).diff("step").max(), self.at_the_end(ds.tenth)

    @claim(
        "least spread with E |1 + eta xi|^0.1 < 1 in [6, 7]",
        least_spread=(6.0, 7.0),
        ours=True,
        items="Figure 2",
        names={"least_spread": "smallest M at which the moment falls"},
    )
    def needs_m_above_six(self, ds):
        """At eta = 0.05 the 0.1-moment falls only for spreads above a threshold between 6 and 7."""
        return ds.fine_spread.where(ds.tenth_growth < 1).min()
