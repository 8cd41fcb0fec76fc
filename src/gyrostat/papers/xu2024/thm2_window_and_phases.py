"""The literal step window of Theorem 2, and the two phases of its proof."""

import numpy as np

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, last, median
from gyrostat.figures.compose import figure, panel, spread
from gyrostat.figures.declarations import Line, Marker, band
from gyrostat.papers.xu2024.axis_aligned_runs import AxisSetting
from gyrostat.theory.ours import error_law
from gyrostat.theory.xu2024 import (
    calibration,
    calibration_line,
    envelope,
    phase_one_length,
    step_window,
    theorem2_bound,
)
from gyrostat.theory.xu2024 import constants as heterogeneity

WIDE = gs.TwoPoint(mean=1.0, spread=3200.0)
"""An enormous spread: the window is empty unless M2 > 1536 M1."""
LOW, HIGH = step_window(WIDE)
WIDE_ETA = (LOW * HIGH) ** 0.5
VAST = [1e36, 1e42]
"""Batches at which (9) says something: its power of M2 alone is above 1e10 inside the window."""


class Window(Experiment):
    """The literal step window of Theorem 2

    With the printed constants the theorem needs M2 > 1536 M1; such settings exist, and the method works there. The bound (9)
    says something there from m = 1e34 on, and holds until the start alone leaves a larger error. At such batches noise cannot
    be seen beside what the start leaves; (9) against noise is judged in xu2024/lemmas9-14/theorem-2-error.
    """

    source, weight = "Xu 2024, Theorem 2", 75
    sizes = {
        "seeds": (10, 16, 60),
        "dimension": (6, 8, 8),
        "batches": ((1e7,), (1e6, 1e8), (1e6, 1e7, 1e8)),
        "vast_runs": 2,  # more would be the same: runs differ by their noise, which is below 1e-14 there
    }

    def compute(self, run, dimension, batches, vast_runs):
        """A run inside the window: an enormous spread, a tiny step, a huge batch (which costs nothing)."""
        alpha = dimension**-2.1

        def build(num_samples):
            problem = gs.Problem(gs.RandomEnvironments(dimension, law=WIDE), gs.FreshGaussian(num_samples))
            return gs.HeteroSGD(WIDE_ETA, init_scale=alpha), problem

        def bound(num_samples):
            delta = AxisSetting(dimension, (1.0,), 1, 3200.0, WIDE_ETA, alpha, num_samples).delta
            return theorem2_bound(WIDE, dimension=dimension, rank=1, delta=delta)

        def runs(batches, seeds):
            # The window puts eta below 5e-6, so that the signal takes 1.6 million steps.
            steps, record = round((np.log(1 / alpha) + 4) / WIDE_ETA), ("distance", "signal")
            axes = {"num_samples": list(batches)}
            return run.grid(build, axes, num_steps=steps, seeds=seeds, record=record, record_at=101)

        ds, vast = (runs(*part) for part in run.over([(batches, run.seeds), (VAST, vast_runs)]))
        # Without the part between the signals: sampling it takes 10/eta steps, and at eta M^2 >> 1 it is small except for
        # rare excursions.
        law = [error_law(WIDE, dimension=dimension, rank=1, step_size=WIDE_ETA, num_samples=m, runs=0) for m in batches]
        paper = heterogeneity(gs.TwoPoint(mean=1.0, spread=6.0))
        return ds.assign(
            law=("num_samples", law),
            vast_error=last(vast.distance).drop_vars("step").rename(num_samples="vast", seed="seed_vast"),
            bound=("vast", [bound(m) for m in VAST]),
        ).assign_attrs(init_scale=alpha, paper_m1=paper.bound, paper_m2=paper.ratio)

    def draw(self, ds):
        alpha, m = ds.attrs["init_scale"], ds.num_samples.values
        time, path = WIDE_ETA * ds.step.values, ds.isel(num_samples=-1)
        batch = f"{m[-1]:.0e}"
        # R_t of (25) by its continuous limit, exact to O(eta); the recursion would take too many steps.
        grown = alpha**2 * np.exp(2 * time)
        growth = Line(time, grown / (1 - alpha**2 + grown), "R_t^2 of eq. (25)", role="theory")
        norm, within = "||UU^T - A_star||_F", (0.25, 0.75)
        return figure(
            panel(
                f"A path at m = {batch}",
                "eta x step",
                "share of the invariant signal learnt",
                band(path.signal, "measured", x=time, colour=0),
                growth,
                ylim=(-0.05, 1.2),
            ),
            panel(
                f"Its error at m = {batch}",
                "eta x step",
                norm,
                band(path.distance, "measured", x=time, colour=1),
                yscale="log",
            ),
            panel(
                "Error at the end",
                "batch size m",
                norm,
                spread(last(ds.distance), "measured (quartiles)", within=within, colour=0),
                spread(ds.vast_error, "measured, left by the start alone", over="seed_vast", within=within, colour=1),
                Line(m, ds.law.values, "error law (ours)", role="theory"),
                Line(ds.vast.values, ds.bound.values, "bound (9), constants 1", role="bound"),
                xscale="log",
                yscale="log",
            ),
            title=f"Inside the literal window of Theorem 2: M1 = {WIDE.bound:.0f}, eta = {WIDE_ETA:.2g}",
            note=f"Window (24/M2, 1/(64 M1)) = ({LOW:.2g}, {HIGH:.2g}). It is empty "
            "unless M2 > 1536 M1. The paper's own experiments have M1 = 7, M2 = 18, eta = 0.05.",
        )

    def over_bound(self, ds):
        """The largest error of any run at the end over the bound, at both vast batches."""
        return ds.vast_error.fillna(np.inf).max("seed_vast") / ds.bound

    @claim(
        "largest error at the end over runs, at the largest batch below 1e30, <= .1", error=(0, 0.1), items="Theorem 2"
    )
    def works(self, ds):
        """Inside the literal window HeteroSGD recovers A_star; the mean spurious part has norm 1."""
        return last(ds.distance).fillna(np.inf).max("seed")[-1]

    @claim(
        "m = 1e36: bound at most .1, and largest error of any run over it in [.01, 1]",
        bound=(0, 0.1),
        ratio=(0.01, 1),
        items="Theorem 2",
        names={"ratio": "largest error over the bound"},
    )
    def bound_holds(self, ds):
        """(9) holds where it says something: inside the window, with its constants taken as 1, at delta of about 1e-17."""
        return ds.bound[0], self.over_bound(ds)[0]

    @claim(
        "largest error of any run over the bound: at m = 1e42 at most 10 times that at m = 1e36",
        growth_of_constant=(0, 10),
        fails="false as printed",
        items="Theorem 2",
    )
    def bound_for_every_delta(self, ds):
        """(9) holds with one constant for every delta that Assumption 3 allows, however small.

        Outside both signals U_t stays near alpha I, so the error is at least about alpha^2 sqrt(d - r1 - r2) with
        alpha > 1/d^4, while (9) falls with delta. The proof takes delta from below as well: after (74) it uses that 1/d is far
        below delta^2 r^1.5, and in Theorem 5 that delta^2 M1^2 (r1 + r2) is far above alpha. Neither is among the assumptions.
        """
        first, second = self.over_bound(ds)
        return second / first

    @claim(
        "median over runs, batch sizes below 1e30 and the last six recorded steps of error over law in [.7, 1.3] (a run "
        "scatters by .3, with heavy tails)",
        ratio=(0.7, 1.3),
        ours=True,
        items="Theorem 2",
    )
    def error_law(self, ds):
        """Inside the window, too, the error follows our law: it falls as m^-1/2."""
        # Errors of neighbouring steps have a correlation of 0.7, of steps four apart 0.4.
        return (ds.distance.isel(step=slice(-6, None)) / ds.law).fillna(np.inf).median()

    @claim("M2/(1536 M1) > 1", ratio=(1, np.inf), fails="not covered", ours=True, items="Assumption 2; Theorem 2")
    def covers_the_experiments(self, ds):
        """The theorem's step window covers the paper's own experiments (M = 6: M1 = 7, M2 = 18).

        M2 = 18 where 10752 is needed: the constants of the proof are far from what the algorithm needs.
        """
        return ds.attrs["paper_m2"] / (1536 * ds.attrs["paper_m1"])


D, R1, R2, ETA, STEPS, BATCH = 30, 3, 2, 0.01, 1600, 1e8
ALPHA, DELTA = D**-2.0, (8 * D / BATCH) ** 0.5
LAW = gs.TwoPoint(mean=1.0, spread=50.0, rank=R2, independent=True)
T1 = phase_one_length(ETA, ALPHA)


class Phases(Experiment):
    """The two phases of the proof

    Phase 1: all singular values of R grow by a factor of 1 + eta/3 per step up to about 1/3. Phase 2: they approach 1.
    """

    source, weight = "Xu 2024, Theorems 4 and 5", 13
    sizes = {"seeds": (8, 100, 400)}

    def compute(self, run):
        """Every step of R, Q and E."""
        M1, M2 = heterogeneity(LAW)
        problem = gs.Problem(gs.RandomEnvironments(D, rank=R1, law=LAW), gs.FreshGaussian(BATCH))
        record = ("invariant_singular_values", "spurious_part", "error_operator", "error")
        algorithm = gs.HeteroSGD(ETA, init_scale=ALPHA)
        ds = run.single(algorithm, problem, num_steps=STEPS, record_at=STEPS + 1, record=record)
        line = calibration_line(ETA, ALPHA, STEPS, bound=M1, delta=DELTA, ranks=R1 + R2)
        return ds.assign(line=("step", line), delta_star=(M2 * np.log(D)) ** 1.5 * DELTA * R2**2 * (R1 + R2) ** 0.5)

    def draw(self, ds):
        steps, sigma = ds.step.values, ds.invariant_singular_values
        R, up, low = envelope(ETA, ALPHA)
        early, smallest = slice(0, T1 + 1), sigma.isel(invariant_direction=-1)
        limits = [Marker(x, "7/6 and 5/6 of Lemma 5", role="theory", colour=6) for x in (7 / 6, 5 / 6)]
        return figure(
            panel(
                "Phase 1: singular values of R, over R_t",
                "step",
                "singular value / R_t",
                band(sigma.isel(invariant_direction=0, step=early) / R, "largest", colour=0),
                band(smallest.isel(step=early) / R, "smallest", colour=1),
                Line(steps[early], up / R, "upper sequence (31)", role="bound"),
                Line(steps[early], low / R, "lower sequence (31)", role="bound"),
                *limits,
                ylim=(0.75, 1.25),
            ),
            panel(
                "Both phases",
                "step",
                "norm",
                band(smallest, "smallest singular value of R", colour=0),
                band(ds.spurious_part, "||Q||_F", colour=1),
                band(ds.error_operator, "||E||", colour=2),
                Line(steps, calibration(ETA, ALPHA, int(steps[-1])), "R_t of (25)", role="theory"),
                Line(steps, ds.line.values, "calibration line L_t (38)", role="bound"),
                Marker(T1, "T1", axis="x"),
                yscale="log",
            ),
            title="Phase 1 grows the invariant part, phase 2 brings it to 1; Q and E stay below",
            note="d = 30, ranks (3, 2), s = 1 - 50 or 1 + 50, eta = 0.01. Medians and quartiles over seeds; delta = sqrt(8 "
            "d/m).",
        )

    @claim("true of every step in at least 95 % of the runs", share_of_runs=(0.95, 1), items="Theorem 4; Lemma 14")
    def phase_1_growth(self, ds):
        """In phase 1 every singular value of R grows by a factor of more than 1 + eta/3 at every step."""
        sigma = ds.invariant_singular_values.isel(step=slice(0, T1 + 1))
        growth = sigma.isel(step=slice(1, None)).values / sigma.isel(step=slice(None, -1)).values - 1
        return (growth.min(axis=(1, 2)) > ETA / 3).mean()

    @claim("true of at least 95 % of the runs", share_of_runs=(0.95, 1), items="Theorem 4")
    def phase_1_end(self, ds):
        """Phase 1 ends with all singular values of R in (1/4, 7/18)."""
        sigma = ds.invariant_singular_values.isel(step=T1)
        return ((sigma > 1 / 4) & (sigma < 7 / 18)).all("invariant_direction").mean()

    @claim("median over runs of the largest |sigma - 1| at the end <= .05", gap=(0, 0.05), items="Theorem 5")
    def phase_2_limit(self, ds):
        """In phase 2 all singular values of R approach 1."""
        return median(abs(last(ds.invariant_singular_values) - 1).max("invariant_direction"))

    @claim(
        "each over its theory in [1 - 1e-9, 1 + 1e-9] in every run",
        R=(1 - 1e-9, 1 + 1e-9),
        Q_frobenius=(1 - 1e-9, 1 + 1e-9),
        E_operator=(1 - 1e-9, 1 + 1e-9),
        E_frobenius=(1 - 1e-9, 1 + 1e-9),
        ours=True,
        items="Theorem 4",
    )
    def parts_of_the_start(self, ds):
        """The parts (17) and (18) of U_0 = alpha I: R has singular values alpha, ||Q||_F = alpha sqrt(r2), ||E|| = alpha and
        ||E||_F = alpha sqrt(d - r1 - r2)."""
        start = ds.isel(step=0) / ALPHA
        parts = (
            start.invariant_singular_values,
            start.spurious_part / R2**0.5,
            start.error_operator,
            start.error / (D - R1 - R2) ** 0.5,
        )
        return tuple(x.values.ravel()[np.argmax(abs(x.values - 1))] for x in parts)  # the farthest from 1, over runs

    @claim(
        "delta_star < .01, its constant taken as 1",
        delta_star=(0, 0.01),
        barrier=None,
        largest_q=None,
        fails="not covered",
        items="(26); Theorem 4",
    )
    def barrier_below_one_percent(self, ds):
        """||Q_t||_F stays below p^-1.5 r2^2 L_t <= delta_star < 0.01 (Theorem 4, p = 0.01/T2).

        The isometry constant that this needs is out of reach: even at m = 1e8, delta_star is in the thousands; it would take m
        of about 1e20. Every run stays below the barrier, which is vacuous (above 1e6).
        """
        barrier = (0.01 / STEPS) ** -1.5 * R2**2 * ds.line.max()
        return ds.delta_star, barrier, ds.spurious_part.max()
