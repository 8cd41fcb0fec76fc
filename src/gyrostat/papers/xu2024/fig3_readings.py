"""What Figure 3 leaves open: the order of the environments, and whether the measurements are symmetric."""

import numpy as np

from gyrostat.experiments import Experiment, claim, crossing, last, median
from gyrostat.figures.compose import figure, panel, spread
from gyrostat.figures.declarations import Marker, band
from gyrostat.papers.xu2024.axis_aligned_runs import AxisSetting, axis_runs
from gyrostat.papers.xu2024.fig3_fig4_transition import gone, halfway, success_points
from gyrostat.papers.xu2024.settings import ALPHA, FIGURE3, spread_cell
from gyrostat.theory.ours import critical_spread

ORDERS = ["iid", "cyclic", "shuffled"]
SPREADS = [1.0, 2.0, 3.0, 3.5, 4.0, 4.25, 4.5, 4.75, 5.0, 6.0, 7.0, 8.0]
MEASUREMENTS, LITERAL_SPREADS = {"symmetric": True, "independent entries": False}, [1.0, 6.0, 10.0]
ETA, STEPS = FIGURE3.step_size, FIGURE3.num_steps


def literal_end(M, dimension, symmetric, runs, rng):
    """The shares of both signals and the error at the end."""
    setting = AxisSetting(dimension, (1.0,), 1, M, ETA, ALPHA, 80.0 * dimension)
    *_, last_step = axis_runs(setting, STEPS, runs=runs, rng=rng, symmetric=symmetric)
    A = last_step.U @ last_step.U.swapaxes(1, 2)
    truth = np.diag([1.0] + [0.0] * (dimension - 1))
    return A[:, 0, 0], A[:, 1, 1], np.linalg.norm(A - truth, axis=(1, 2))


class Readings(Experiment):
    """Two readings of Figure 3: cyclic environments, and measurements that are not symmetric

    In its theory, the paper draws environments independently and measurements symmetric. Going through the environments in turn
    removes the luck of the draw; matrices with independent entries, as section 5 says, change the error alone.
    """

    name, source = "fig3-readings", "Xu 2024, section 5 (measurements) and Algorithm 3 (the order is left open)"
    weight, items = 25, "Figure 3"
    sizes = {"seeds": (128, 60, 400), "dimension": (8, 40, 100), "literal_runs": (96, 60, 100)}

    def compute(self, run, dimension, literal_runs):
        """The transition over M for three orders of environments, and both kinds of measurements at three M."""

        def build(order, spread):
            return spread_cell(spread, dimension=dimension, num_samples=80 * dimension, order=order)

        axes = {"order": ORDERS, "spread": SPREADS}
        ds = run.grid(build, axes, num_steps=STEPS, record=("signal", "spurious"), record_at=21)
        ends = [
            [literal_end(M, dimension, symmetric, literal_runs, run.rng) for M in LITERAL_SPREADS]
            for symmetric in MEASUREMENTS.values()
        ]
        coordinates = {"measurements": list(MEASUREMENTS), "M": LITERAL_SPREADS, "end": ["signal", "spurious", "error"]}
        return ds.assign(literal=((*coordinates, "seed_literal"), ends)).assign_coords(coordinates)

    def draw(self, ds):
        predicted = critical_spread(ETA, init_scale=ALPHA, num_steps=STEPS)
        shares = [success_points(ds.sel(order=order), "spread", order, colour=i) for i, order in enumerate(ORDERS)]
        ends = [band(last(ds.spurious.sel(order=order)), order, colour=i) for i, order in enumerate(ORDERS)]
        errors = [
            spread(ds.literal.sel(measurements=kind, end="error"), kind, over="seed_literal", colour=i)
            for i, kind in enumerate(MEASUREMENTS)
        ]
        return figure(
            panel(
                "Runs without spurious signal",
                "heterogeneity M",
                "share of runs",
                *shares,
                Marker(predicted, f"predicted M* = {predicted:.2f}", axis="x"),
                ylim=(-0.05, 1.05),
            ),
            panel("Spurious share at the end", "heterogeneity M", "share of the spurious signal", *ends, yscale="log"),
            panel(
                "Error with both kinds of measurements", "heterogeneity M", "||UU^T - A_star||_F", *errors, yscale="log"
            ),
            title="Going through the environments in turn makes the transition sharp",
            note="iid: an environment drawn at every step; cyclic: in turn; shuffled: in turn, in a new order for every pass.",
        )

    def halfway(self, ds, order):
        return halfway(ds.sel(order=order))

    def width(self, ds, order):
        """From where 10 % to where 90 % of the runs succeed."""
        share = gone(ds.sel(order=order)).values
        return crossing(ds.spread.values, share, 0.9) - crossing(ds.spread.values, share, 0.1)

    @claim("half-way point in [4, 5]", halfway=(4.0, 5.0), ours=True, items="Algorithm 3")
    def cyclic_transition(self, ds):
        """With cyclic environments the transition lies between M = 4 and M = 5."""
        return self.halfway(ds, "cyclic")

    @claim("width from 10 % to 90 % of the runs: cyclic / iid <= 1/3", ratio=(0, 1 / 3), ours=True, items="Algorithm 3")
    def cyclic_sharper(self, ds):
        """Cyclic environments make the transition at least three times as sharp as independent ones."""
        return self.width(ds, "cyclic") / self.width(ds, "iid")

    @claim("half-way points differ by at most .5", gap=(-0.5, 0.5), ours=True, items="Algorithm 3")
    def shuffled_like_cyclic(self, ds):
        """A new random order for every pass is as good as a fixed one."""
        return self.halfway(ds, "shuffled") - self.halfway(ds, "cyclic")

    @claim(
        "median shares at the end: invariant in [.9, 1.1] at M = 1 and 6, spurious >= .8 at M = 1, <= .05 at M = 6",
        invariant=(0.9, 1.1),
        spurious_1=(0.8, 1.2),
        spurious_6=(0, 0.05),
        names={
            "spurious_1": "share of the spurious signal, M = 1",
            "spurious_6": "share of the spurious signal, M = 6",
        },
    )
    def literal_measurements(self, ds):
        """Section 5 read literally, with X_i of independent N(0, 1) entries that are not symmetrised: M = 1 learns both
        signals, M = 6 only the invariant one."""
        share = median(ds.literal.sel(measurements="independent entries", M=[1.0, 6.0]), "seed_literal")
        return share.sel(end="signal"), *share.sel(end="spurious")

    @claim(
        "median error, independent entries over symmetric, at M = 6 and 10, in [1.15, 1.75]",
        least=(1.15, 1.75),
        most=(1.15, 1.75),
        ours=True,
        items="Figure 3",
    )
    def literal_error(self, ds):
        """Ours: read so, the error is about sqrt(2) times as large, because off-diagonal noise has twice the variance."""
        error = median(ds.literal.sel(end="error", M=[6.0, 10.0]), "seed_literal")
        ratio = error.sel(measurements="independent entries") / error.sel(measurements="symmetric")
        return ratio.min(), ratio.max()
