"""Figure I.2: the condition number and the plateau."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, median
from gyrostat.figures.compose import figure, panel, spread
from gyrostat.papers.xiong2024.settings import (
    FIGURE_I2,
    FIGURE_I2_CONDITIONS,
    LITERAL,
    bands,
    grid_over_designs,
    losses,
    sensing,
    size_text,
)

KAPPAS = FIGURE_I2_CONDITIONS
SIGMA = xr.DataArray([[1.0, 1 / kappa] for kappa in KAPPAS], {"kappa": list(KAPPAS)}, ("kappa", "singular_value"))


class FigI2(Experiment):
    """Condition number and the plateau

    Gradient descent learns singular values one after the other; the smaller the second, the longer the wait.
    """

    name, source, weight, items = "figI2", "Xiong 2024, Figure I.2", 4, "Figure I.2"
    sizes = {
        "dimension": (20, 50, 50),
        "starts": (3, 4, 5),
        "designs": (1, 2, 8),
        "tau": (150.0, FIGURE_I2.time, 300.0),
    }

    def compute(self, run, dimension, starts, designs, tau):
        (scale,) = FIGURE_I2.scales

        def build(kappa, design):
            problem = sensing(FIGURE_I2.per_row, design, (1.0, 1 / kappa), dimension)
            return gs.GradientDescent(LITERAL, width=FIGURE_I2.width, start=scale), problem

        options = {"num_steps": round(tau / LITERAL), "seeds": starts, "record": ("distance", "singular_values")}
        ds = grid_over_designs(run, build, {"kappa": list(KAPPAS)}, designs, record_at=401, **options)
        return ds.isel(singular_value=slice(0, 3))

    def plateau(self, ds):
        """eta x iterations between the first and the second singular value reaching nine tenths of theirs."""
        there = ds.singular_values.isel(singular_value=slice(0, 2)) >= 0.9 * SIGMA
        return LITERAL * ds.step.where(there).min("step").diff("singular_value").squeeze()

    def local_convergence(self, ds):
        """The loss of the runs at kappa = 3 and 10 while only their first singular value is half learnt, and where it is
        flattest. (At 1.25 and 1.5 both are learnt together in some runs.)"""
        first, second = (ds.singular_values.isel(singular_value=slice(0, 2)) / SIGMA).transpose("singular_value", ...)
        phase = losses(ds).where((first >= 0.5) & (second < 0.5)).sel(kappa=[3.0, 10.0])
        fall = -np.log(losses(ds)).differentiate("step").where(phase.notnull())
        return phase, phase.where(fall == fall.min("step")).min("step")

    def draw(self, ds):
        flat, loss = self.plateau(ds), losses(ds)
        kappas = ", ".join(f"{kappa:g}" for kappa in KAPPAS)
        return figure(
            panel(
                "Loss",
                "eta x iteration",
                "loss",
                *bands(loss, "kappa", "kappa = {:g}", x=LITERAL * ds.step.values),
                yscale="log",
                ylim=(1e-7, 2),
            ),
            panel(
                "Length of the plateau",
                "condition number kappa",
                "eta x iterations",
                spread(flat, "from sigma_1 to sigma_2 learnt"),
                xscale="log",
                yscale="log",
            ),
            title="The worse the condition, the longer the loss stays flat before the second component is learnt",
            printed={
                f"length of the flat part at kappa = {kappas}, in eta x iterations": (
                    "longer when kappa is larger",
                    ", ".join(f"{length:.3g}" for length in median(flat).values),
                ),
                "smallest condition number": ("1.5 in the text, 1.25 in the legend", "both are run"),
            },
            note=f"Medians, quartiles (left) and ranges (right); {size_text(ds, FIGURE_I2.per_row)}, k = 4, r = 2, alpha = "
            "0.05, eta = 0.2. The text says kappa = 1.5, the legend 1.25: both are shown.",
        )

    @claim(
        "median plateau increases over kappa = 1.25, 1.5, 3, 10, each time by 1 % or more",
        names={f"plateau_{kappa:g}": f"flat for eta x iterations, kappa = {kappa:g}" for kappa in KAPPAS}
        | {"smallest_growth": "smallest factor from one condition number to the next"},
        slug="plateau",
        plateau=None,
        smallest_growth=(1.01, np.inf),
    )
    def plateau_grows(self, ds):
        """The loss stays flat for longer when the target is ill-conditioned."""
        flat = median(self.plateau(ds))
        return flat, (flat.values[1:] / flat.values[:-1]).min()

    @claim(
        "median loss where it is flattest between the two singular values being half learnt: >= 4 times smaller at kappa = 10 "
        "than at 3 (sigma_r^2 is 11 times smaller)",
        names={f"loss_{kappa}": f"flattest loss, kappa = {kappa}" for kappa in (3, 10)}
        | {"fall": "flattest loss at kappa = 3 over that at 10"},
        loss=None,
        fall=(4, np.inf),
    )
    def smaller_error(self, ds):
        """When the minimum eigenvalue is smaller, gradient descent first converges to a smaller error."""
        level = median(self.local_convergence(ds)[1])
        return level, level.sel(kappa=3.0) / level.sel(kappa=10.0)

    @claim(
        "R^2 of a line through log(loss - flattest loss), from the first singular value half learnt to a tenth of the flattest "
        "loss, >= .9 in the median run, kappa = 3 and 10 (t^-1 over two decades has .73, t^-2 .91)",
        names={f"straightness_{kappa}": f"R^2 of the line, kappa = {kappa}" for kappa in (3, 10)},
        straightness=(0.9, 1),
    )
    def local_rate(self, ds):
        """It converges to this error, in the phase of local convergence, at a linear rate."""
        loss, level = self.local_convergence(ds)
        above = np.log((loss - level).where(loss > 1.1 * level))
        # A run without such a phase has no line.
        return (xr.corr(above, ds.step.astype(float), dim="step") ** 2).fillna(0).median("seed")
