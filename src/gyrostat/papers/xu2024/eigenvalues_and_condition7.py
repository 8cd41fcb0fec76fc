"""Beyond equal eigenvalues: unequal and indefinite targets, and the need for condition (7)."""

import numpy as np

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, last, median, share_below
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Line, band
from gyrostat.papers.xu2024.settings import ALPHA


class Spectrum(Experiment):
    """Targets with several eigenvalues, M = 8, T = 10/(eta sigma_min)."""

    sizes = {"seeds": (12, 50, 200), "dimension": (12, 60, 100)}

    def compute(self, run, dimension):
        law = gs.TwoPoint(mean=1.0, spread=8.0)
        environments = gs.RandomEnvironments(dimension, rank=len(self.values), law=law, values=self.values)
        problem = gs.Problem(environments, gs.FreshGaussian(333 * dimension))
        algorithms = {"hetero": gs.HeteroSGD, "pooled": gs.PooledSGD}
        ds = run.grid(
            lambda algorithm: (algorithms[algorithm](0.05, init_scale=ALPHA, model=self.model), problem),
            {"algorithm": list(algorithms)},
            num_steps=round(10 / (0.05 * min(map(abs, self.values)))),
            record=("signal_values", "spurious_values", "spurious", "distance"),
            record_at=101,
        )
        return ds.assign(true_values=("invariant_direction", self.values))

    def draw(self, ds):
        def shares(name, title):
            one, series = ds.sel(algorithm=name), []
            for i, value in enumerate(self.values):
                path, label = one.signal_values.isel(invariant_direction=i), f"direction with eigenvalue {value:g}"
                truth = Line(ds.step.values, np.full(ds.sizes["step"], value), f"truth {value:g}", role="theory")
                series += [band(path, label, colour=i), truth]
            series.append(band(one.spurious_values.isel(spurious_direction=0), "spurious direction", colour=3))
            lowest = -1.4 if min(self.values) < 0 else -0.1
            return panel(title, "step", "u^T A u", *series, ylim=(lowest, 1.6))

        values = ", ".join(f"{value:g}" for value in self.values)
        return figure(
            *(shares("hetero", "HeteroSGD"), shares("pooled", "PooledSGD")),
            title=f"Eigenvalues {values}: HeteroSGD recovers them and drops the spurious one",
            note="Medians and quartiles over seeds; m = 333 d, M = 8, eta = 0.05.",
        )

    @claim(
        "medians at the end: every eigenvalue within .05, spurious share <= .1",
        largest_gap=(0, 0.05),
        spurious=(0, 0.1),
    )
    def recovered(self, ds):
        """HeteroSGD recovers {words} and eliminates the spurious signal."""
        end = last(ds.sel(algorithm="hetero"))
        return abs(median(end.signal_values) - ds.true_values).max(), median(end.spurious)

    @claim("median spurious share >= .8", ours=True, spurious=(0.8, 1.2))
    def pooled_spurious(self, ds):
        """PooledSGD learns the spurious signal there too."""
        return median(last(ds.spurious.sel(algorithm="pooled")))


class Indefinite(Spectrum):
    """Indefinite targets

    A_star with eigenvalues 1 and -1, parameterised as U U^T - V V^T.
    """

    source, weight = "Xu 2024, end of section 3.1", 7
    values, model, words = [1.0, -1.0], gs.models.SymmetricDifference(), "a positive and a negative eigenvalue"


class Condition7(Experiment):
    """Diagonal dominance is needed

    Off-diagonal entries that do not oscillate feed one spurious direction from the other.
    """

    source, weight, items = "Xu 2024, Assumption 2, condition (7)", 6, "(7)"
    sizes = {"seeds": (60, 60, 300), "dimension": (12, 60, 60)}

    def compute(self, run, dimension):
        """r2 = 2, diagonal entries 1 +- 6 with independent signs, and a constant off-diagonal entry."""

        def build(off_diagonal):
            signs = [(a, b) for a in (-1, 1) for b in (-1, 1)]
            sigmas = [[[1 + 6 * a, off_diagonal], [off_diagonal, 1 + 6 * b]] for a, b in signs]
            environments = gs.RandomEnvironments(dimension, law=gs.Finite(sigmas))
            return gs.HeteroSGD(0.05, init_scale=ALPHA), gs.Problem(environments, gs.FreshGaussian(333 * dimension))

        axes, record = {"off_diagonal": [0.0, 0.1, 0.25, 0.5, 1.0, 2.0]}, ("signal", "spurious_values")
        return run.grid(build, axes, num_steps=200, record=record, record_at=41)

    def free(self, ds, off_diagonal):
        """The share of runs without spurious signal."""
        values = last(ds.spurious_values.sel(off_diagonal=off_diagonal))
        return share_below(abs(values).max("spurious_direction"), 0.1)

    @claim("share of runs >= .5", share=(0.5, 1))
    def diagonal_works(self, ds):
        """Without off-diagonal entries most runs eliminate both spurious directions."""
        return self.free(ds, 0.0)

    @claim("share of runs without spurious signal <= .3 at 1 and at 2", at_one=(0, 0.3), at_two=(0, 0.3))
    def off_diagonal_breaks(self, ds):
        """Off-diagonal entries of the order of the mean bring the spurious signal back."""
        return self.free(ds, 1.0), self.free(ds, 2.0)
