"""Lemma 15 of Xu 2024: small disturbances keep the invariant part."""

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, claim
from gyrostat.papers.xu2024.axis_aligned_runs import AxisSetting, axis_runs, factor_norms, operator_norm
from gyrostat.theory.xu2024 import envelope

STABLE = AxisSetting(
    dimension=16, values=(1.0, 1.0), spurious_rank=2, spread=10.0, step_size=0.05, init_scale=1e-4, num_samples=1e10
)
BATCHES = [1e10, 1e12]


def small(ds):
    """The runs that meet the condition of the lemma."""
    return ds.where(ds.g < 0.01)


class Lemma15(Experiment):
    """Stability of the invariant part

    If Q, E and the isometry error stay below g, the singular values of R stay between 1 - 5g and 1 + g.
    """

    source, weight, items = "Xu 2024, Lemma 15", 2, "Lemma 15"
    sizes = {"runs": (4, 40, 200)}

    def compute(self, run, runs):
        """g of (88), the extreme (sigma - 1)/g from 8 log(1/g)/eta steps after T1 on, and the time to 1 - 5g in units of
        log(1/g)/eta."""
        eta = STABLE.step_size
        T1 = len(envelope(eta, STABLE.init_scale).middle) - 1

        def cell(batch, rng):
            setting, sigma, size = STABLE._replace(num_samples=batch), [], []
            for t, U, _, _, noise in axis_runs(setting, T1 + round(80 / eta), runs=runs, rng=rng):
                if t > T1:
                    now = factor_norms(setting, U)
                    sigma.append(now["sigma"])
                    # The norm of Q is at most its Frobenius norm.
                    error = operator_norm(U.swapaxes(1, 2) @ noise)
                    size.append(np.sum(now["q"] ** 2, axis=1) + now["e"] ** 2 + 4 * error)
            sigma, g = np.array(sigma), np.max(size, axis=0)
            unit = np.log(1 / np.minimum(g, 0.5))
            late = np.arange(len(sigma))[:, None] >= 8 / eta * unit
            return {
                "g": g,
                "low": np.where(late, sigma.min(2) - 1, np.inf).min(0) / g,
                "high": np.where(late, sigma.max(2) - 1, -np.inf).max(0) / g,
                "time": eta * (sigma.min(2) >= 1 - 5 * g).argmax(0) / unit,
            }

        cells = [cell(batch, np.random.default_rng([run.seed, i])) for i, batch in enumerate(BATCHES)]
        columns = {name: (("num_samples", "seed"), np.array([x[name] for x in cells])) for name in cells[0]}
        return xr.Dataset(columns, {"num_samples": BATCHES})

    @claim(
        "(sigma - 1)/g in [-5, 1] in every run with g < 0.01, which at least half of the runs have",
        share_of_runs_with_small_g=(0.5, 1),
        least=(-5, 1),
        largest=(-5, 1),
    )
    def lemma_15(self, ds):
        """Lemma 15: 1 - 5g <= sigma <= 1 + g for all singular values of R, from 8 log(1/g)/eta steps after T1 on."""
        return (ds.g < 0.01).mean(), small(ds).low.min(), small(ds).high.max()

    @claim("steps over log(1/g)/eta in every run with g < 0.01 in (0, 8]", largest=(1e-3, 8))
    def time(self, ds):
        """Lemma 15, its proof: it takes at most 8 log(1/g)/eta steps to reach 1 - 5g."""
        return small(ds).time.max()
