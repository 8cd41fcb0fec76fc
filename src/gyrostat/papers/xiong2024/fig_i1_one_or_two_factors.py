"""Figure I.1: one factor against two in sensing."""

import jax
import numpy as np

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, median
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Marker
from gyrostat.models.spaces import RectangularMatrices
from gyrostat.papers.xiong2024.settings import FIGURE_I1, LITERAL, bands, grid_over_designs, losses, size_text

SCALES, ITERATIONS = FIGURE_I1.scales, 30_000
"""The printed axis ends after so many iterations."""
AXES = {"figure": 0.003 * ITERATIONS, "literal": LITERAL * ITERATIONS}
"""eta x iteration there, with the learning rate that fits the curves and with the printed one."""


class SameMatrices(gs.Dense):
    """Gaussian matrices with independent entries, projected onto the space of the model: every model sees the same ones."""

    def _draw(self, key, count, space):
        full = super()._draw(key, count, RectangularMatrices(*space.shape))
        seen = jax.vmap(jax.vmap(lambda x: space.coordinates(space.project(x.reshape(space.shape)))))
        return full._replace(matrices=seen(full.matrices).astype(full.matrices.dtype))


class FigI1(Experiment):
    """One factor against two in sensing

    The same measurements, recovered with X X^T and with F G^T. Curves depend on eta x iteration only, so one run is read at
    the end of the printed axis for both learning rates: the printed 0.2, and the 0.003 that fits the printed curves.
    """

    name, source, weight, items = "figI1", "Xiong 2024, Figure I.1", 12, "Figure I.1"
    sizes = {
        "dimension": (14, 24, 50),
        "starts": (12, 8, 5),
        "designs": (2, 2, 4),
        "num_steps": (ITERATIONS, ITERATIONS, 2 * ITERATIONS),
    }

    def compute(self, run, dimension, starts, designs, num_steps):
        environments = gs.Environments.diagonal(dimension, (1.0, 1.0))

        def build(kind, scale, design):
            symmetric = kind == "symmetric"
            # The same size of start for both: alpha N(0, 1/n).
            start = gs.starts.ScaledGaussian(scale / dimension**0.5) if symmetric else scale
            descent = gs.GradientDescent(LITERAL, width=FIGURE_I1.width, symmetric=symmetric, start=start)
            measurements = SameMatrices(round(FIGURE_I1.per_row * dimension), design=design, precision="single")
            return descent, gs.Problem(environments, measurements)

        axes = {"kind": ["symmetric", "asymmetric"], "scale": list(SCALES)}
        ends = [round(tau / LITERAL) for tau in AXES.values()]
        records = np.union1d(np.geomspace(1, num_steps, 300).round().astype(int), ends)
        options = {"num_steps": num_steps, "seeds": starts, "record": ("distance",), "record_at": records}
        return grid_over_designs(run, build, axes, designs, **options)

    def share_faster(self, ds, axis):
        """The share of the runs in which two factors are ahead at the end of the printed axis."""
        loss = losses(ds).sel(step=round(AXES[axis] / LITERAL))
        return (loss.sel(kind="asymmetric") < loss.sel(kind="symmetric")).mean("seed")

    def draw(self, ds):
        loss, tau = losses(ds), LITERAL * ds.step.values
        literal, fitting = self.share_faster(ds, "literal"), self.share_faster(ds, "figure")
        panels = [
            panel(
                f"alpha = {a:g}",
                "eta x iteration",
                "loss",
                *bands(loss.sel(scale=a), "kind", "{}", x=tau),
                Marker(AXES["figure"], "end of the axis at eta = .003", axis="x", role="paper"),
                Marker(AXES["literal"], "end of the axis at eta = .2", axis="x", role="paper"),
                Marker(8 / a**2, "eta t alpha^2 = 8", axis="x"),
                xscale="log",
                yscale="log",
                xlim=(1, None),
                ylim=(1e-16, None),
            )
            for a in SCALES
        ]
        return figure(
            *panels,
            title="Two factors overtake one for good when eta t alpha^2 is about 8",
            printed={
                f"faster at the end of the paper's axis, alpha = {a:g}": (
                    "asymmetric",
                    f"{100 * float(fitting.sel(scale=a)):.0f} % of the runs at eta = .003 and "
                    f"{100 * float(literal.sel(scale=a)):.0f} % of the runs at eta = .2",
                )
                for a in SCALES
            },
            note="Medians and quartiles over starts and designs; both models see the same measurements. k = 4, r = 2, "
            f"{size_text(ds, FIGURE_I1.per_row)}, eta = 0.2. The printed axis ends at {ITERATIONS:,} iterations: before the "
            "crossing at small alpha if the learning rate is the 0.003 that fits the printed curves, after it if it is the "
            "printed 0.2.",
        )

    @claim(
        "median of eta t alpha^2 at the last overtaking in [3, 15] (designs scatter by a factor of 2)",
        ours=True,
        items="Figure I.1",
        alpha=(3, 15),
    )
    def overtakes(self, ds):
        """Asymmetric sensing overtakes symmetric sensing for good when eta t alpha^2 is about 8 (ours)."""
        loss = losses(ds)
        behind = loss.sel(kind="asymmetric") >= loss.sel(kind="symmetric")
        backwards = slice(None, None, -1)
        ahead_from_here = behind.isel(step=backwards).cumsum("step").isel(step=backwards) == 0
        return median((ds.step * LITERAL * ds.scale**2).where(ahead_from_here).min("step"))

    @claim(
        "after 30,000 iterations at eta = .2 the asymmetric loss is lower in half of the runs or more for every alpha",
        share_alpha=(0.5, 1),
    )
    def faster_at_printed_rate(self, ds):
        """In a typical run asymmetric sensing converges faster than symmetric under every initial scale, with the printed
        learning rate 0.2 and the printed 30,000 iterations."""
        return self.share_faster(ds, "literal")

    @claim(
        "at the end of the paper's axis (eta t = 90) the asymmetric loss is lower in 90 % of the runs for every alpha",
        share_alpha=(0.9, 1),
        fails="depends on the reading",
    )
    def faster_at_every_alpha(self, ds):
        """Asymmetric sensing converges faster than symmetric under every initial scale, with the learning rate 0.003 that fits
        the printed curves.

        Two readings were tried, on the same measurements for both models. With the printed 0.2 the statement holds
        (faster-at-printed-rate). With 0.003, which the printed curves fit, the axis ends at eta t = 90: past the crossing at
        eta t alpha^2 of about 8 for alpha = 0.5, before it for 0.2 and 0.05.
        """
        return self.share_faster(ds, "figure")
