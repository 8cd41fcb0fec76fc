"""The imbalance step against ScaledGD, PrecGD and an orthonormal start: iterations to 1e-12, by condition number."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Dots
from gyrostat.papers.xiong2024.settings import designs_of, sensing

KAPPAS, RATES = (1.0, 3.0, 10.0), (0.2, 0.5)


def methods(step_size):
    """The methods with one learning rate; the step is made at one twentieth or one fiftieth of the first residual."""

    def descent(*events, start=0.05):
        return gs.GradientDescent(step_size, width=4, start=start, events=events)

    return {
        "GD": descent(),
        "imbalance step": descent(gs.events.ImbalanceStep(below=0.05)),
        "imbalance step, later": descent(gs.events.ImbalanceStep(below=0.02)),
        "F0 orthonormal, G0 = 0": descent(start=gs.starts.OrthonormalZero()),
        "ScaledGD": gs.ScaledGD(step_size, width=4, start=0.05),
        "PrecGD": gs.PrecGD(step_size, width=4, start=0.05),
    }


NAMES = tuple(methods(0.1))
STEPPED, PRECONDITIONED = ["imbalance step", "imbalance step, later"], ["ScaledGD", "PrecGD"]


class Peers(Experiment):
    """GD, the imbalance step, ScaledGD and PrecGD

    The same measurements and starts for all methods, which only see data (no method is told the truth or its rank).
    """

    source = "Xiong 2024, sections 1.3 and 5; Tong, Ma, Chi 2021; Zhang, Fattahi, Zhang 2021"
    weight, ours = 31, True
    sizes = {"dimension": (20, 30, 50), "starts": (3, 4, 8), "designs": (1, 2, 4), "limit": (3000, 6000, 10_000)}

    def compute(self, run, dimension, starts, designs, limit):
        def build(solver, kappa, step_size, design):
            return methods(step_size)[solver], sensing(14, design, (1.0, 1 / kappa), dimension)

        def steps(solver, kappa, step_size, design):
            return limit if kappa > 5 and solver not in PRECONDITIONED else limit // 2

        axes = {"solver": list(NAMES), "kappa": list(KAPPAS), "step_size": list(RATES)}
        options = {"seeds": starts, "record": ("distance",), "record_at": 101, "tolerance": 1e-12}
        ds = run.grid(build, axes | {"design": designs_of(run.seed, designs)}, num_steps=steps, **options)
        runs = ds[["reached", "diverged"]].stack(run=("design", "seed")).drop_vars(("run", "design", "seed"))
        runs = runs.rename(run="seed")
        # A run that did not converge counts as infinitely long; its limit is kept for the figure.
        reached, limits = runs.reached.where(runs.reached >= 0, np.inf), ds.step.isel(record=-1, design=0, drop=True)
        data = {"iterations": reached, "limit": limits.drop_vars("step"), "diverged": runs.diverged}
        return xr.Dataset(data, attrs={"settings": ds.attrs["settings"], "dimension": dimension})

    def typical(self, ds):
        """The median number of iterations (infinite when half of the runs did not converge)."""
        return ds.iterations.median("seed")

    def best_peer(self, ds):
        """The fewer iterations of ScaledGD and PrecGD."""
        return self.typical(ds).sel(solver=PRECONDITIONED).min("solver")

    def draw(self, ds):
        def dots(name, eta):
            typical, limit = (x.sel(solver=name, step_size=eta) for x in (self.typical(ds), ds.limit))
            late = ~np.isfinite(typical.values)
            shown = np.where(late, limit.values, typical.values)
            return Dots([f"kappa = {k:g}" for k in KAPPAS], shown, name, low=shown, high=shown, beyond=late)

        xlabel = "iterations to a loss of 1e-12"
        return figure(
            *(panel(f"eta = {eta:g}", xlabel, "", *(dots(name, eta) for name in NAMES), xscale="log") for eta in RATES),
            title="The imbalance step wins when the target is well conditioned, preconditioning when it is not",
            note=f"Medians over starts and designs; n = {ds.attrs['dimension']}, m = 14 n, r = 2, k = 4, alpha = 0.05. An open "
            f"arrow is at the limit (up to {int(ds.limit.max())} iterations) of a method that did not get there. Times per "
            "iteration are in the output of make bench SUITE=gd.",
        )

    @claim("no run of GD reaches 1e-12 within its limit at kappa = 1", share_of_runs_that_got_there=(0, 0))
    def gd_slow(self, ds):
        """Plain descent from a small start is slow when k > r."""
        return np.isfinite(ds.iterations.sel(solver="GD", kappa=1.0)).mean()

    @claim(
        "fewest of the two over the step's >= 1.2 at both learning rates (about 2 at n = 50)",
        eta=(1.2, np.inf),
    )
    def step_wins(self, ds):
        """At kappa = 1 the imbalance step needs fewer iterations than ScaledGD and PrecGD (ours)."""
        return (self.best_peer(ds) / self.typical(ds).sel(solver="imbalance step")).sel(kappa=1.0)

    @claim(
        "the step's iterations (better trigger, or the limit) over the fewest of the two >= 2, eta = .2",
        ratio=(2, np.inf),
    )
    def step_loses(self, ds):
        """At kappa = 10 the imbalance step needs more iterations than the better of ScaledGD and PrecGD (ours)."""
        # If the step's runs did not converge, its number is at least the limit.
        least = np.minimum(self.typical(ds), ds.limit).sel(solver=STEPPED).min("solver")
        return (least / self.best_peer(ds)).sel(kappa=10.0, step_size=0.2)

    @claim("its iterations over the step's in [.5, 2] at kappa = 1", eta=(0.5, 2))
    def no_step_needed(self, ds):
        """A start with an orthonormal F0 and G0 = 0 works about as well as the imbalance step (ours)."""
        y = self.typical(ds).sel(kappa=1.0)
        return y.sel(solver="F0 orthonormal, G0 = 0") / y.sel(solver="imbalance step")

    @claim("iterations at kappa = 10 over those at kappa = 1 <= 2 for ScaledGD and PrecGD", scaled=(0, 2), prec=(0, 2))
    def preconditioned(self, ds):
        """Preconditioning makes the condition number irrelevant."""
        y = self.typical(ds).sel(step_size=0.2)
        ratio = y.sel(kappa=10.0) / y.sel(kappa=1.0)
        return tuple(ratio.sel(solver=PRECONDITIONED))
