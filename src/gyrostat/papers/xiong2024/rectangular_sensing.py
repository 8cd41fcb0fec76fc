"""Rectangular sensing: the paper proves its theorems for n_1 = n_2 and says that they extend to n_1 x n_2 matrices."""

import math

import jax
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, median
from gyrostat.jax_tools.float64 import double
from gyrostat.papers.xiong2024.settings import LITERAL, designs_of, grid_over_designs, late_rates, losses
from gyrostat.theory.xiong2024 import theorem42_rate, theorem43_rate

RANK, WIDTH, PER_ROW = 2, 4, 7
CASES = ["exact", "tall", "wide", "stepped"]
"""k = r; k = 4 where F has the more rows; k = 4 where G has; k = 4 with the imbalance step half-way."""
SCALES = xr.DataArray(
    [[0.2, 0.05], [0.4, 0.2], [0.4, 0.2], [0.4, 0.05]], dims=("case", "end"), coords={"case": CASES, "end": [0, 1]}
)
TIMES = dict(zip(CASES, (100.0, 600.0, 600.0, 200.0)))
"""eta x iterations."""
COMPARED = 30
"""The step at which transposed runs are compared: the error falls fastest there."""


def target(shape):
    """The first two entries of the diagonal are 1, all others 0."""
    return gs.RectangularEnvironments(np.eye(shape[0], RANK), np.eye(shape[1], RANK), values=np.ones(RANK))


def wait(ds, n):
    """eta T / log(sqrt(n)/alpha) of Lemma G.3, with the Frobenius norm, which is larger; infinite if it is not reached."""
    reached = ds.distance <= ds.scale**0.6
    first = ds.step[reached.argmax("step")].drop_vars("step")
    return first.where(reached.any("step"), np.inf) * LITERAL / np.log(math.sqrt(n) / ds.scale)


def transposed_gap(shape, seed):
    """How far F G^T of a run is from that of the run on the A_i^T from exchanged factors, relative to its norm."""
    A = np.random.default_rng(seed).standard_normal((PER_ROW * sum(shape), *shape))
    with double():
        start = gs.starts.ImbalancedGaussian(0.2)(gs.Asymmetric(WIDTH), shape, jax.random.key(seed))

    def product(A, *factors):
        responses = np.trace(A[:, :RANK, :RANK], axis1=1, axis2=2)
        problem = gs.Problem(target(A.shape[1:]), gs.DenseData(A, responses, np.zeros(len(A), dtype=int)))
        descent = gs.GradientDescent(LITERAL, width=WIDTH, start=gs.starts.Given(*factors))
        record = {"record": ("left_factor", "right_factor"), "record_at": [COMPARED]}
        ds = gs.run(descent, problem, num_steps=COMPARED, **record).isel(step=0, seed=0)
        return ds.left_factor.values @ ds.right_factor.values.T

    F, G = map(np.asarray, start)
    P = product(A, F, G)
    return np.linalg.norm(P - product(A.swapaxes(1, 2), G, F).T) / np.linalg.norm(P)


class Rectangular(Experiment):
    """Rectangular sensing

    The theorems are proved for n_1 = n_2 = n and are said to extend to n_1 x n_2. The start is alpha N(0, 1/n_1) for F and
    (alpha/3) N(0, 1/n_2) for G, so that the imbalance of the start does not depend on the shape.
    """

    source = "Xiong 2024, section 2 (n_1 and n_2), Theorems 4.2, 4.3 and 5.1, Lemma G.3"
    weight = 6
    sizes = {"long": (24, 30, 60), "short": (12, 15, 20), "seeds": (10, 5, 8), "designs": (2, 3, 6)}

    def compute(self, run, long, short, designs):
        """eta = .2, r = 2, m = 7 (n_1 + n_2): late rates from two alpha, and the times of Lemma G.3."""

        def runs(case, steps):
            shape, width = (short, long) if case == "wide" else (long, short), RANK if case == "exact" else WIDTH
            events = (gs.events.ImbalanceStep(at=steps // 2, beta=1.0),) if case == "stepped" else ()

            def build(scale, design):
                measurements = gs.Dense(PER_ROW * sum(shape), design=design, precision="single")
                descent = gs.GradientDescent(LITERAL, width=width, start=scale, events=events)
                return descent, gs.Problem(target(shape), measurements)

            records = np.union1d(np.linspace(0, steps, 101).round().astype(int), np.arange(2 * COMPARED))
            options = {"num_steps": steps, "record": ("distance",), "record_at": records}
            return grid_over_designs(run, build, {"scale": SCALES.sel(case=case).values.tolist()}, designs, **options)

        rates, waits = [], {}
        for case in run.over(CASES):
            steps = round(TIMES[case] / LITERAL)
            ds = runs(case, steps)
            after = losses(ds).sel(step=ds.step > steps // 2 + 10) if case == "stepped" else losses(ds)
            rates.append(late_rates(after, 0.3).rename(scale="end").assign_coords(end=[0, 1]))
            waits[f"wait_{case}"] = wait(ds, long)
        gaps = [transposed_gap((long, short), design) for design in designs_of(run.seed, designs)]
        values = {"rate": xr.concat(rates, "case").assign_coords(case=CASES), "transposed": ("design", gaps)}
        return xr.Dataset(values | {name: waits[name] for name in ("wait_tall", "wait_wide")})

    def exponents(self, ds):
        """The exponent of the median late rate in alpha, by case."""
        logs = np.log(median(ds.rate))
        return (logs.diff("end") / np.log(SCALES).diff("end")).isel(end=0)

    def free_of_scale(self, ds, case):
        return self.exponents(ds).sel(case=case), median(ds.rate).sel(case=case).min()

    @claim(
        "exponent of the median late rate in alpha (from .2 and .05) in [-0.15, 0.15]",
        items="n_1 and n_2 (section 2)",
        names={"exponent": "exponent of the rate in alpha", "least_rate": "smallest rate [per iteration]"},
        exponent=(-0.15, 0.15),
        least_rate=None,
    )
    def exact_width_rate(self, ds):
        """Theorem 4.3 at n_1 = 2 n_2: with k = r the rate does not depend on alpha."""
        return self.free_of_scale(ds, "exact")

    @claim(
        "exponent of the late rate in alpha (from .4 and .2) in [1.7, 2.3] for both shapes",
        items="n_1 and n_2 (section 2)",
        shapes=(1.7, 2.3),
    )
    def wide_rate(self, ds):
        """Theorem 4.2 at n_1 = 2 n_2 and n_2 = 2 n_1: with k > r the rate is linear and grows as alpha^2."""
        return {case: self.exponents(ds).sel(case=case) for case in ("tall", "wide")}

    @claim(
        "median measured rate over the promised one at least 1 for every shape and alpha (a short F is outside the "
        "condition k < n/8 of Theorem 4.2: its start is less imbalanced, and single runs are slower)",
        items="n_1 and n_2 (section 2); Theorem 4.2; Theorem 4.3",
        shapes=(1, np.inf),
    )
    def promised_rates(self, ds):
        """The rates of Theorems 4.2 and 4.3 hold for rectangular matrices in a typical run."""
        rates = median(ds.rate)
        wide = (rates / np.vectorize(theorem42_rate)(LITERAL, SCALES)).min("end")
        exact = rates.sel(case="exact").min() / (2 * theorem43_rate(LITERAL, 1.0, 1.0))  # (4.10) has the exponent t
        return {"exact": exact, **{case: wide.sel(case=case) for case in ("tall", "wide")}}

    @claim(
        "exponent of the median late rate in alpha (from .4 and .05) in [-0.15, 0.15]",
        items="n_1 and n_2 (section 2); Theorem 5.1",
        names={"exponent": "exponent of the rate in alpha", "least_rate": "smallest rate [per iteration]"},
        exponent=(-0.15, 0.15),
        least_rate=None,
    )
    def step_frees_the_rate(self, ds):
        """Theorem 5.1 at n_1 = 2 n_2: after the imbalance step the rate no longer depends on alpha."""
        return self.free_of_scale(ds, "stepped")

    @claim(
        "T eta / log(sqrt(n)/alpha) at most 5 in 90 % of the runs, both shapes, alpha = .4, .2 (Frobenius norm)",
        items="n_1 and n_2 (section 2); Lemma G.3",
        tall=(0.9, 1),
        wide=(0.9, 1),
    )
    def initial_phase(self, ds):
        """Lemma G.3 in rectangular sensing: the error gets to alpha^(3/5) in about log(sqrt(n)/alpha)/eta steps."""
        # The share of runs, because the lemma is about most starts.
        return (ds.wait_tall <= 5).mean(), (ds.wait_wide <= 5).mean()

    @claim(
        "relative gap of the products after 30 steps at most 1e-9 in every run",
        items="(2.2)",
        ours=True,
        largest_gap=(0, 1e-9),
    )
    def transposed(self, ds):
        """(2.2) treats F and G alike: with A_i^T and the factors exchanged, the run is the transposed run (ours). It is not
        if one factor moves before the other."""
        return ds.transposed.max()
