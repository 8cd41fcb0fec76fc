"""Figures I.1, I.2 and I.3: one factor against two, the condition number, and large initial scales."""

from dataclasses import replace

import jax
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.engine.summary import has_diverged
from gyrostat.experiments import Experiment, claim, last, median
from gyrostat.figures.compose import figure, panel, spread
from gyrostat.figures.declarations import Marker
from gyrostat.models.spaces import RectangularMatrices
from gyrostat.papers.xiong2024.settings import (
    FIGURE_I1,
    FIGURE_I2,
    FIGURE_I2_CONDITIONS,
    FIGURE_I3,
    LITERAL,
    bands,
    descend,
    grid_over_designs,
    losses,
    sensing,
    size_text,
    unpacked,
)

ITERATIONS = 30_000
"""The printed axis of Figure I.1 ends after so many iterations."""
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

        axes = {"kind": ["symmetric", "asymmetric"], "scale": list(FIGURE_I1.scales)}
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
            for a in FIGURE_I1.scales
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
                for a in FIGURE_I1.scales
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


KAPPAS = FIGURE_I2_CONDITIONS
SIGMA = xr.DataArray([[1.0, 1 / kappa] for kappa in KAPPAS], {"kappa": list(KAPPAS)}, ("kappa", "singular_value"))


class FigI2(Experiment):
    """Condition number and the plateau

    Gradient descent learns singular values one after the other; the smaller the second, the longer the wait.
    """

    name, source, weight, items = "figI2", "Xiong 2024, Figure I.2", 4, "Figure I.2"
    sizes = {
        "dimension": (20, 50, 50),
        "starts": (4, 4, 5),
        "designs": (3, 2, 8),
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
        "median plateau increases over kappa = 1.25, 1.5, 3, 10, each time by eta x 1 iteration or more",
        names={f"plateau_{kappa:g}": f"flat for eta x iterations, kappa = {kappa:g}" for kappa in KAPPAS}
        | {"smallest_growth": "smallest growth from one condition number to the next [eta x iterations]"},
        slug="plateau",
        plateau=None,
        smallest_growth=(LITERAL, np.inf),
    )
    def plateau_grows(self, ds):
        """The loss stays flat for longer when the target is ill-conditioned."""
        # A difference: at kappa = 1.25 the second value may be learnt first, so that the plateau has a negative length.
        flat = median(self.plateau(ds))
        return flat, flat.diff("kappa").min()

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
        "loss, >= .95 in the median run, kappa = 3 and 10 (t^-1 over two decades has .73, t^-2 .91)",
        names={f"straightness_{kappa}": f"R^2 of the line, kappa = {kappa}" for kappa in (3, 10)},
        straightness=(0.95, 1),
    )
    def local_rate(self, ds):
        """It converges to this error, in the phase of local convergence, at a linear rate."""
        loss, level = self.local_convergence(ds)
        above = np.log((loss - level).where(loss > 1.1 * level))
        # A run without such a phase has no line.
        return (xr.corr(above, ds.step.astype(float), dim="step") ** 2).fillna(0).median("seed")


class FigI3(Experiment):
    """Large initial scales

    Starts of size 0.5 to 5. The printed axis (20,000 iterations) and the losses on it fit eta t = 60, not eta = 0.2.
    """

    name, source, weight, items = "figI3", "Xiong 2024, Figure I.3", 7, "Figure I.3"
    sizes = {"dimension": (20, 50, 50), "starts": (12, 8, 5), "designs": (1, 1, 4), "eta": (0.03, 0.015, 0.003)}

    def compute(self, run, dimension, starts, designs, eta):
        small, literal = (
            descend(run, replace(FIGURE_I3, step_size=step_size), designs, dimension, seeds=starts, record_at=101)
            for step_size in run.over((eta, LITERAL))
        )
        data = {"loss": losses(small), "literal": losses(literal).rename(step="step_literal")}
        data["diverged"] = literal.diverged
        return xr.Dataset(data, attrs={"settings": small.attrs["settings"], "eta": eta})

    def draw(self, ds):
        eta, literal = ds.attrs["eta"], unpacked(ds, "literal")

        def curves(loss, eta):
            return "eta x iteration", "loss", *bands(loss, "scale", "alpha = {:g}", x=eta * loss.step.values)

        return figure(
            panel(f"eta = {eta:g}", *curves(ds.loss, eta), yscale="log"),
            panel("eta = 0.2, printed for other figures", *curves(literal, LITERAL), yscale="log", ylim=(None, 1e3)),
            title="A large start is slow, and at eta = 0.2 the largest one diverges",
            printed={
                "runs from alpha = 5 that diverge at eta = .2 (printed for Figures 1.2 and I.1, not here)": (
                    "a finite curve",
                    f"{100 * float(last(literal).sel(scale=5.0).isnull().mean()):.0f} %",
                )
            },
            note=f"Medians and quartiles over starts and designs; {size_text(ds, FIGURE_I3.per_row)}, k = 4, r = 2. Runs that "
            "diverged count as infinite: a curve ends, with a cross at the top, where half of them have.",
        )

    @claim(
        "median losses at eta t = 60 in the order alpha = 1 < .5 < 3 < 5, each 1 % or more above the one before",
        names={"smallest_growth": "smallest factor from one loss to the next in this order"},
        loss=None,
        smallest_growth=(1.01, np.inf),
    )
    def order(self, ds):
        """If alpha is too large, the algorithm converges more slowly."""
        end = median(last(ds.loss))
        ordered = end.sel(scale=[1.0, 0.5, 3.0, 5.0]).values
        return end, (ordered[1:] / ordered[:-1]).min()

    @claim(
        "no run with alpha = 5 diverges at eta = .2", fails="depends on the reading", diverged=None, diverged_5=(0, 0)
    )
    def printed_rate(self, ds):
        """Figure I.3 was made with the learning rate 0.2, which is printed for other figures.

        Section I.3 prints no learning rate; 0.2 is printed for Figures 1.2 and I.1. With 0.2 every run from alpha = 5
        diverges, which agrees with the text ("even fails to converge") but not with the printed curve, which is finite. With
        0.003, at which the printed 20,000 iterations are eta t = 60, all runs are finite and the losses have the printed order
        (xiong2024/figI3/order).
        """
        share = has_diverged(ds.diverged).mean("seed")
        return share.sel(scale=[0.5, 1.0, 3.0]), share.sel(scale=5.0)
