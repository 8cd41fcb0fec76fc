"""Figures 5 and 6, Theorems 3 and 6: what pooled training learns."""

import numpy as np

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, last, median
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, Marker, band
from gyrostat.papers.xu2024.settings import (
    ALPHA,
    FIGURE5,
    FIGURE5_POOLED_SAMPLES,
    FIGURE6_STEP_SIZES,
    FIGURE6_TIME,
    figure6,
)
from gyrostat.theory.xu2024 import calibration, pooled_gap


class Fig5(Experiment):
    """HeteroSGD against PooledSGD

    The same environments, one per batch or mixed in every batch. The paper does not print eta and M: 0.1 and 4 fit its axes.
    """

    source, weight, items = "Xu 2024, Figure 5", 7, "Figure 5"
    sizes = {"seeds": (12, 100, 400)}
    names = {
        "invariant": "share of the invariant signal",
        "spurious": "share of the spurious signal",
        "spurious_5th_percentile": "5 % quantile of the share of the spurious signal",
    }

    def compute(self, run):
        environments, eta, steps = FIGURE5.environments, FIGURE5.step_size, FIGURE5.num_steps
        one, mixed = gs.FreshGaussian(FIGURE5.num_samples), gs.FreshGaussian(FIGURE5_POOLED_SAMPLES)
        cells = {
            "hetero": (gs.HeteroSGD(eta, init_scale=ALPHA), gs.Problem(environments, one)),
            "pooled": (gs.PooledSGD(eta, init_scale=ALPHA), gs.Problem(environments, mixed)),
        }
        axes = {"algorithm": list(cells)}
        return run.grid(lambda algorithm: cells[algorithm], axes, num_steps=steps, record_at=steps + 1)

    def draw(self, ds):
        steps, share = ds.step.values, "share of the signal"
        truth = calibration(FIGURE5.step_size, ALPHA, int(steps[-1]))[steps] ** 2
        theory = Line(steps, truth, "R_t^2 of eq. (25)", role="theory")
        panels, errors = [], []
        for name, label, m, colour in (("hetero", "HeteroSGD", 2800, 2), ("pooled", "PooledSGD", 5600, 3)):
            one = ds.sel(algorithm=name)
            paths = band(one.signal, "invariant", colour=0), band(one.spurious, "spurious", colour=1)
            panels.append(panel(f"{label}, m = {m}", "step", share, *paths, theory, ylim=(-0.05, 1.3)))
            errors.append(band(one.error, label, colour=colour))
        ends = {name: float(median(last(ds.spurious.sel(algorithm=name)))) for name in ("hetero", "pooled")}
        return figure(
            *panels,
            panel("Error", "step", "||E||", *errors, ylim=(0, None)),
            title="HeteroSGD drops the spurious signal, PooledSGD learns both",
            printed={
                "share of the spurious signal at the end, HeteroSGD (median)": ("eliminated", ends["hetero"]),
                "share of the spurious signal at the end, PooledSGD (median)": ("learnt", ends["pooled"]),
            },
            note="Medians and quartiles over seeds; d = 40, ranks (3, 2), s = 0.5 - 4 or 0.5 + 4, eta = 0.1.",
        )

    @claim(
        "medians at the end: invariant in [.95, 1.05], spurious <= .05",
        invariant=(0.95, 1.05),
        spurious=(0, 0.05),
        items="Algorithm 2; Theorem 1; (11); Figure 5",
    )
    def hetero_invariant_only(self, ds):
        """HeteroSGD recovers the invariant signal and eliminates the spurious one."""
        end = last(ds.sel(algorithm="hetero"))
        return median(end.signal), median(end.spurious)

    @claim(
        "median invariant in [.95, 1.05]; 5 % quantile of the spurious share in [.85, 1.15]",
        invariant=(0.95, 1.05),
        spurious_5th_percentile=(0.85, 1.15),
        items="Algorithm 1; Figure 5",
    )
    def pooled_no_distinction(self, ds):
        """PooledSGD fits both signals without distinction, in practically every run."""
        end = last(ds.sel(algorithm="pooled"))
        return median(end.signal), end.spurious.quantile(0.05)


class Fig6(Experiment):
    """PooledSGD with a small batch

    m = 80 against 465 degrees of freedom: the isometry fails and the noise of single batches takes over.
    """

    source, weight, items = "Xu 2024, Figure 6 (section B.2)", 10, "Figure 6"
    sizes = {"seeds": (6, 60, 200), "horizon": (15, FIGURE6_TIME, 60)}
    names = {
        "growth_01_to_05": "growth of the distance, eta = .01 to .05",
        "growth_05_to_1": "growth of the distance, eta = .05 to .1",
    }

    def compute(self, run, horizon):
        def build(step_size):
            setting = figure6(step_size, horizon)
            problem = gs.Problem(setting.environments, gs.FreshGaussian(setting.num_samples))
            return gs.PooledSGD(step_size, init_scale=ALPHA), problem

        return run.grid(
            build,
            {"step_size": list(FIGURE6_STEP_SIZES)},
            num_steps=lambda step_size: figure6(step_size, horizon).num_steps,
            record=("distance", "distance_to_mean"),
            record_at=201,
        )

    def late(self, distance):
        """The median late distance at each step size."""
        return median(distance.isel(record=slice(-50, None)).mean("record"))

    def draw(self, ds):
        etas, panels, printed = ", ".join(f"{eta:g}" for eta in FIGURE6_STEP_SIZES), [], {}
        for name, what in (("distance", "A_star"), ("distance_to_mean", "A_star + mean spurious part")):
            paths = [
                band(ds[name].sel(step_size=eta), f"eta = {eta:g}", x=eta * ds.step.sel(step_size=eta).values, colour=i)
                for i, eta in enumerate(FIGURE6_STEP_SIZES)
            ]
            panels.append(panel(f"Distance to {what}", "eta x step", "Frobenius distance", *paths, ylim=(0, None)))
            ends = ", ".join(f"{x:.2f}" for x in self.late(ds[name]).values)
            printed[f"distance to {what} at the end, eta = {etas} (median)"] = (
                "the trajectory stays away from it",
                ends,
            )
        return figure(
            *panels,
            title="With a batch of 80 PooledSGD reaches neither the invariant nor the pooled solution",
            printed=printed,
            note="Medians and quartiles over seeds; d = 30, ranks (5, 5).",
        )

    @claim(
        "median over seeds of the late distance >= .8 for both limits and all three step sizes",
        distance_eta=(0.8, 1e3),
        distance_to_mean_eta=(0.8, 1e3),
    )
    def neither_limit(self, ds):
        """The trajectory stays far from A_star and from A_star plus the mean spurious part."""
        return self.late(ds.distance), self.late(ds.distance_to_mean)

    @claim("late distances increase with eta", growth_01_to_05=(0, np.inf), growth_05_to_1=(0, np.inf))
    def noise_grows(self, ds):
        """The larger the step, the farther from A_star the trajectory stays."""
        return (*np.diff(self.late(ds.distance)),)


class PooledPath(Experiment):
    """What Theorems 3 and 6 share: ranks (2, 3), E Sigma = I. Each names its ``algorithm`` and its data."""

    def compute(self, run, num_samples):
        environments = gs.RandomEnvironments(40, rank=2, law=gs.TwoPoint(mean=1.0, spread=6.0, rank=3))
        algorithm = getattr(gs, self.algorithm)(0.05, init_scale=ALPHA)
        record = ("distance", "distance_to_mean")
        problem = gs.Problem(environments, self.measurements(num_samples))
        ds = run.single(algorithm, problem, num_steps=300, record_at=301, record=record)
        return ds.assign_attrs(gap=pooled_gap(2, 3), mean_norm=5**0.5)

    def draw(self, ds):
        steps, constant = ds.step.values, "sqrt(r1 r2/(r1 + r2)), our sharp constant"
        x = calibration(0.05, ALPHA, int(steps[-1]))[steps] ** 2
        ideal = np.sqrt(2 * (1 - x) ** 2 + 3 * x**2)
        return figure(
            panel(
                "Distances along the path",
                "step",
                "Frobenius distance",
                band(ds.distance, "to A_star", colour=0),
                band(ds.distance_to_mean, "to A_star + mean spurious part", colour=1),
                Line(steps, ideal, "without noise: both signals grow as R_t^2", role="theory"),
                Marker(ds.attrs["gap"], constant, role="bound"),
                ylim=(0, 2.4),
            ),
            title=f"{self.algorithm} approaches the pooled solution and never comes near the invariant one",
            note="Medians and quartiles over seeds; d = 40, ranks (2, 3), s = 1 - 6 or 1 + 6, eta = 0.05.",
        )

    @claim("relative distance at the end <= .15 in every run", relative_distance=(0, 0.15))
    def reaches_the_mean(self, ds):
        """{algorithm} ends near A_star plus the mean spurious part."""
        return last(ds.distance_to_mean).max() / ds.attrs["mean_norm"]

    @claim(
        "least distance over the path within 10 % of the sharp constant (worst run and median)",
        nearest_over_gap_min=(0.9, 1.1),
        nearest_over_gap_median=(0.9, 1.1),
    )
    def keeps_away(self, ds):
        """At all times the distance to A_star is at least of order sqrt(min(r1, r2)); sharply, sqrt(r1 r2/(r1 + r2))."""
        nearest = ds.distance.min("step") / ds.attrs["gap"]
        return nearest.min(), median(nearest)


class Thm3(PooledPath):
    """PooledSGD learns the spurious signal too

    U* and V* orthogonal, E Sigma = I: the limit is A_star + V V^T, and the path keeps away from A_star.
    """

    source, weight, items = "Xu 2024, Theorem 3", 4, "Theorem 1; Theorem 3"
    sizes = {"seeds": (6, 50, 200), "num_samples": 100_000}
    algorithm, measurements = "PooledSGD", gs.FreshGaussian


class Thm6(PooledPath):
    """PooledGD learns the spurious signal too

    U* and V* orthogonal, E Sigma = I: the limit is A_star + V V^T, and the path keeps away from A_star.
    """

    source, weight, items = "Xu 2024, Theorem 6", 3, "Theorem 6"
    sizes = {"seeds": (2, 16, 50), "num_samples": 4_000_000}
    algorithm, measurements = "PooledGD", gs.FixedGaussian
