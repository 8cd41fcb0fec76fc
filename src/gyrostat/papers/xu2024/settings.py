"""The settings of the paper's figures, and what its experiments share.

The presets of the lab are made of the same settings.
"""

import itertools
from dataclasses import asdict, dataclass, replace

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import LabPreset

ALPHA = 1e-3
"""The scale of the start, U0 = 1e-3 I, in every figure."""


@dataclass(frozen=True, kw_only=True)
class SensingSetting:
    """One setting of a figure: s = E s - M or E s + M. The defaults are those of section 5."""

    dimension: int = 100
    rank: int = 1
    spurious_rank: int = 1
    mean: float = 1.0
    spread: float
    step_size: float = 0.05
    num_samples: int = 8000
    num_steps: int = 200

    @property
    def environments(self) -> gs.RandomEnvironments:
        """The environments, drawn anew in every run."""
        law = gs.TwoPoint(mean=self.mean, spread=self.spread, rank=self.spurious_rank)
        return gs.RandomEnvironments(self.dimension, rank=self.rank, law=law)


FIGURE2 = SensingSetting(spread=8.0, num_steps=100)
FIGURE2_SPREADS = (5.0, 6.0, 7.0, 8.0, 10.0)
"""The paper does not print its M."""

FIGURE3 = SensingSetting(spread=6.0)
FIGURE3_SPREADS = [float(M) for M in range(1, 11)]

FIGURE5 = SensingSetting(
    dimension=40, rank=3, spurious_rank=2, mean=0.5, spread=4.0, step_size=0.1, num_samples=2800, num_steps=180
)
"""Figure 1 too. The paper does not print eta and M: .1 and 4 fit its axes."""
FIGURE5_POOLED_SAMPLES = 5600
"""The batch of PooledSGD, which sees both environments in it."""


def figure4(step_size: float) -> SensingSetting:
    """Figure 4 at one of its step sizes: T = 10/eta."""
    return SensingSetting(spread=5.0, step_size=step_size, num_steps=round(10 / step_size))


FIGURE4_STEP_SIZES = [round(0.01 * k, 2) for k in range(1, 10)]
FIGURE4_SMALL, FIGURE4_LARGE = 0.01, 0.07
"""The two whose paths are drawn."""

FIGURE6_TIME = 20
"""eta T."""


def figure6(step_size: float, time: float = FIGURE6_TIME) -> SensingSetting:
    """Figure 6 at one of its step sizes: T = time/eta."""
    return SensingSetting(
        dimension=30,
        rank=5,
        spurious_rank=5,
        mean=0.5,
        spread=4.0,
        step_size=step_size,
        num_samples=80,
        num_steps=round(time / step_size),
    )


FIGURE6_STEP_SIZES = (0.01, 0.05, 0.1)


def spread_cell(
    spread,
    *,
    dimension=FIGURE3.dimension,
    num_samples=FIGURE3.num_samples,
    step_size=FIGURE3.step_size,
    order="iid",
):
    """HeteroSGD in the setting of section 5: r1 = r2 = 1, s = 1 - M or 1 + M, U0 = 1e-3 I."""
    environments = SensingSetting(dimension=dimension, spread=spread).environments
    algorithm = gs.HeteroSGD(step_size, init_scale=ALPHA, order=order)
    return algorithm, gs.Problem(environments, gs.FreshGaussian(num_samples))


def on_grid(function, axes, names, over=()):
    """What ``function`` returns at every point of a grid: a labelled array for each of ``names``, with the further dimensions
    ``over``."""
    cells = np.array([function(*point) for point in itertools.product(*axes.values())], dtype=float)
    shape = [len(values) for values in axes.values()]
    columns = np.moveaxis(cells.reshape(*shape, *cells.shape[1:]), len(shape), 0)
    return xr.Dataset({name: ((*axes, *over), column) for name, column in zip(names, columns)}, axes)


def preset(name, title, setting, note, **values):
    """A figure as the lab's controls have it."""
    return LabPreset(lab="environments", name=name, title=title, values=asdict(setting) | values, note=note)


_SAME_BATCH = (
    f"In the figure a mixed batch has {FIGURE5_POOLED_SAMPLES} measurements, twice those of one environment; here both sides "
    "have the same batch size."
)
_HETERO_ONLY = "The paper's figure has no mixed batches."
_TIME = f"The figure has step sizes from 0.01 to 0.09, each for T = 10/η steps. {_HETERO_ONLY}"

PRESETS = (
    preset("fig1", "Mixed batches keep both signals", FIGURE5, _SAME_BATCH),
    preset(
        "fig2",
        "M = 8: oscillation shrinks the spurious signal",
        FIGURE2,
        "The figure shows exact moments of the spurious factor for several M; here are runs without measurement noise.",
        measurements="population",
    ),
    preset("fig3", "M = 6 forgets the spurious signal", FIGURE3, _HETERO_ONLY),
    preset("fig3-m1", "M = 1 learns the spurious signal", replace(FIGURE3, spread=FIGURE3_SPREADS[0]), _HETERO_ONLY),
    preset("fig4", "A large step forgets the spurious signal", figure4(FIGURE4_LARGE), _TIME),
    preset("fig4-small", "A small step learns the spurious signal", figure4(FIGURE4_SMALL), _TIME),
    preset("fig5", "Hetero against pooled", FIGURE5, _SAME_BATCH),
    preset(
        "fig6",
        "A batch of 80 is too small",
        figure6(FIGURE6_STEP_SIZES[1]),
        "The figure shows mixed batches only, with three step sizes.",
        view="errors",
    ),
)
