"""Theorem 4.1 with (4.4) and (4.5): the toy example with two factors."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim
from gyrostat.papers.xiong2024.settings import factorisation
from gyrostat.theory.xiong2024 import theorem41_bounds, toy_sequences

RATES = [1 / 6, 0.1, 0.05, 0.01]
SCALES = [1.0, 0.9, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02]
RANKS = [1, 2, 3]
DIMENSION = 10
WAITING = 2.0
"""c_1 of T_1 = c_1 log(1/alpha) / eta. While alpha_t <= 1/2 it grows by 1 + 3 eta/4 per step or more, so 2 is enough (ours)."""


class Theorem41(Experiment):
    """The toy example with two factors

    With a diagonal start the run reduces to three numbers; the theorem bounds the error from both sides.
    """

    name, source, weight, items = "thm4.1", "Xiong 2024, Theorem 4.1 with (4.4) and (4.5)", 4, "(4.5)"
    sizes = {"horizon": (400, 20_000, 60_000)}

    def compute(self, run, horizon):
        """The toy start of Theorem 4.1 for 3 ranks, 4 learning rates and 9 scales: the run, and the recursion (4.4)."""
        steps = np.unique(np.round(np.geomspace(1, horizon, 60)).astype(int) - 1)
        last = int(steps[-1])

        def one_rank(r):
            def build(step_size, scale):
                F, G = np.zeros((2, DIMENSION, r + 1))
                F[range(r + 1), range(r + 1)] = scale
                G[range(r + 1), range(r + 1)] = [*[scale] * r, scale / 3]
                descent = gs.GradientDescent(step_size, width=r + 1, start=gs.starts.Given(F, G))
                return descent, factorisation((1.0,) * r, DIMENSION)

            axes, record = {"step_size": RATES, "scale": SCALES}, ("distance", "left_factor", "right_factor")
            ds = run.grid(build, axes, num_steps=last, record=record, record_at=steps).isel(seed=0, drop=True)
            F, G = ds.left_factor, ds.right_factor
            recursion = [[toy_sequences(eta, alpha, r, last)[3][steps] for alpha in SCALES] for eta in RATES]
            a, b, u = F.isel(row=r, component=r), G.isel(column=r, component=r), F.isel(row=0, component=0)
            values = {"error": ds.distance**2, "recursion": ((*axes, "step"), recursion), "a": a, "b": b, "u": u}
            return xr.Dataset(values, attrs={"settings": ds.attrs["settings"]}).drop_vars(
                ("row", "column"), errors="ignore"
            )

        ranks = [one_rank(r) for r in run.over(RANKS)]
        return xr.concat(ranks, "rank").assign_coords(rank=RANKS).assign_attrs(ranks[-1].attrs)

    def bounds(self, ds):
        """Logarithms: of the error from below and above; of b_t from below and above, and |alpha_t - 1| from above (4.5)."""
        t, eta, alpha = ds.step, ds.step_size, ds.scale
        pairs = [[theorem41_bounds(e, a, DIMENSION, t.values) for a in SCALES] for e in RATES]
        low, high = xr.DataArray(pairs, dims=("step_size", "scale", "end", "step")).transpose("end", ...)
        b_low = np.log(alpha / 3) + t * np.log1p(-4 * eta * alpha**2)
        b_high = np.log(alpha / 3) + t * np.log1p(-eta * alpha**2 / 4)
        return low, high, b_low, b_high, (t + WAITING * np.log(alpha) / eta) * np.log1p(-eta / 2)

    @claim(
        "relative gap of squared errors above 1e-14 (rounding) <= 1e-8 in all 108 settings",
        items="(4.4)",
        largest_relative_gap=(0, 1e-8),
    )
    def recursion(self, ds):
        """The run follows the recursion (4.4)."""
        # An entry of size e is right to 1e-16, so a squared error s to 1e-16 / sqrt(s) of itself.
        big = ds.recursion.where(ds.recursion > 1e-14)
        return (abs(ds.error - big) / big).max()

    @claim("no recorded point outside in 108 settings", items="Theorem 4.1", points_below=(0, 0), points_above=(0, 0))
    def two_sided(self, ds):
        """The error lies between the two bounds; the upper one holds even with T1 = 0 (ours)."""
        low, high, *_ = self.bounds(ds)
        error = np.log(ds.recursion.where(ds.recursion > 1e-26))  # it stalls at rounding, near 1e-28
        return (error < low - 1e-9).sum(), (error > high + 1e-9).sum()

    @claim(
        "a_t / alpha in [1/2, 1] at every recorded step of the runs in 108 settings",
        slug="4.5-a",
        items="(4.5); (C.11)",
        least=(0.5, 1 + 1e-12),
        most=(0.5, 1 + 1e-12),
    )
    def column_of_F(self, ds):
        """(4.5), first: a_t, the column of F that must not vanish, stays between alpha/2 and alpha."""
        share = ds.a / ds.scale
        return share.min(), share.max()

    @claim(
        "no recorded point of the runs above 1e-300 (underflow) is outside in 108 settings",
        slug="4.5-b",
        items="(4.5); (C.11)",
        points_below=(0, 0),
        points_above=(0, 0),
    )
    def column_of_G(self, ds):
        """(4.5), second: b_t, the column of G that must vanish, lies between (alpha/3) (1 - 4 eta alpha^2)^t and
        (alpha/3) (1 - eta alpha^2/4)^t."""
        low, high = self.bounds(ds)[2:4]
        b = np.log(ds.b.where(ds.b > 0))
        judged = abs(ds.b) > 1e-300  # near 5e-324, the smallest number there is, b_t stalls
        return ((b < low - 1e-9) & judged).sum(), (~(b <= high + 1e-9) & judged).sum()

    @claim(
        "no recorded point of the runs above the bound (and above 1e-13, rounding) in 108 settings",
        slug="4.5-signal",
        points_above=(0, 0),
    )
    def signal(self, ds):
        """(4.5), third: |alpha_t - 1| <= (1 - eta/2)^(t - T_1), with T_1 = 2 log(1/alpha) / eta (the 2 is ours)."""
        return (abs(ds.u - 1) > np.maximum(np.exp(self.bounds(ds)[4]), 1e-13)).sum()
