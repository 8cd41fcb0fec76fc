"""The settings of the paper's figures, and what its experiments share: problems, late rates, runs over several designs.

The laboratory's presets are made from the same settings.
"""

import json
import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import LabPreset
from gyrostat.figures.declarations import band

DIMENSION = 50
LITERAL, FIGURE = 0.2, 0.03
"""The printed learning rate, and one that fits the axes of the printed figures (ten times theirs in a tenth of the steps)."""


@dataclass(frozen=True, kw_only=True)
class FactorSetting:
    """The setting of a figure or a panel, in dimension n = 50: descent with ``width`` columns from every one of ``scales``.

    ``per_row`` is m / n, the measurements per dimension (the paper's m = 700 is 14); infinite: the matrix itself is seen.
    ``time`` is eta x iterations.
    """

    rank: int = 2
    width: int = 4
    scales: tuple[float, ...] = (0.5, 0.2, 0.05)
    per_row: float = 14
    step_size: float = LITERAL
    time: float

    @property
    def num_steps(self) -> int:
        """The iterations."""
        return round(self.time / self.step_size)


FIGURE11 = FactorSetting(width=5, scales=(0.5, 0.2), per_row=math.inf, step_size=0.01, time=1000)
"""Two factors. One factor has all of the widths, from alpha = .5 and .1."""
FIGURE11_WIDTHS = (5, 3, 2)

FIGURE12A = FactorSetting(width=2, time=100)
FIGURE12B = FactorSetting(scales=(0.5, 0.2, 0.1, 0.05), time=2000)
FIGURE12C = FactorSetting(scales=(0.5, 0.05), time=200)
"""k = 3 too; the imbalance step comes half-way, with beta = 1."""
FIGURE12_AXIS = 90.0
"""The end of the printed axis, 30,000 iterations at .003: enough at the figure's learning rate."""

FIGURE_I1 = FactorSetting(per_row=24, time=14)
"""``time`` is eta x iterations x alpha^2: a smaller start takes longer."""


def figure_i1_steps(scale, until=FIGURE_I1.time):
    """The iterations of Figure I.1 from a start of this scale."""
    return max(600, round(until / (FIGURE_I1.step_size * scale**2)))


FIGURE_I2 = FactorSetting(scales=(0.05,), time=150)
FIGURE_I2_CONDITIONS = (1.25, 1.5, 3.0, 10.0)
"""sigma_1 / sigma_2."""

FIGURE_I3 = FactorSetting(scales=(0.5, 1.0, 3.0, 5.0), time=60)
FIGURE_I4 = FactorSetting(rank=5, width=10, per_row=40, step_size=FIGURE, time=48)
"""The imbalance step comes half-way. One factor and plain descent on two are drawn for longer."""
FIGURE_I5 = FactorSetting(step_size=0.003, time=4.8)

FLOOR = 1e-24
"""Losses below this are near rounding (1e-30) and not used in fits."""


def factorisation(values=(1.0, 1.0), dimension=DIMENSION):
    """Recover diag(values, 0, ...) from the residual itself."""
    return gs.Problem(gs.Environments.diagonal(dimension, values), gs.Identity())


def sensing(per_row, design, values=(1.0, 1.0), dimension=DIMENSION):
    """Recover diag(values, 0, ...) from ``per_row * dimension`` Gaussian measurements, shared by all runs of a ``design``.

    The rows are kept in single precision: the reading is off by 1e-6 of itself, and losses still go down to rounding.
    """
    measurements = gs.Dense(round(per_row * dimension), design=design, precision="single")
    return gs.Problem(gs.Environments.diagonal(dimension, values), measurements)


def size_text(ds, per_row):
    """The size of the problem of :func:`sensing` that data are from: ``n = 20, m = 280`` at the smoke size."""
    m = json.loads(ds.attrs["settings"])["problem"]["measurements"]["num_samples"]
    return f"n = {round(m / per_row)}, m = {m}"


def design_matrices(problem):
    """The measurement matrices of a problem of :func:`sensing`, a row of n^2 numbers each."""
    rows = problem.measurements.rows(problem.environments, gs.Asymmetric().space(problem.shape))
    return np.asarray(rows.matrices[0], dtype=np.float64)


def designs_of(seed, count):
    """Numbers of designs that belong to this seed alone."""
    return [1000 * (seed % 10**6) + i for i in range(count)]


def grid_over_designs(run, build, axes, designs, **options):
    """``run.grid`` of ``build(design=..., **point)`` for each of several designs, whose runs share the dimension ``seed``."""
    numbers = designs_of(run.seed, designs)
    parts = [run.grid(partial(build, design=number), axes, **options) for number in run.over(numbers)]
    joined = xr.concat(parts, dim="seed", data_vars="minimal", coords="minimal", compat="override", join="override")
    return joined.assign_coords(seed=np.arange(joined.sizes["seed"]))


def descend(run, setting, designs, dimension, *, symmetric=False, events=(), **options):
    """Sensing in a :class:`FactorSetting`: descent from each of its scales, for each of several designs."""

    def build(scale, design):
        problem = sensing(setting.per_row, design, (1.0,) * setting.rank, dimension)
        shared = {"width": setting.width, "start": scale, "events": events}
        return gs.GradientDescent(setting.step_size, symmetric=symmetric, **shared), problem

    options = {"num_steps": setting.num_steps, "record": ("distance",), **options}
    return grid_over_designs(run, build, {"scale": list(setting.scales)}, designs, **options)


def table(rows, dims, coordinates):
    """Numbers by name in rows of rows, as labelled arrays."""
    numbers = {name: (dims, [[one[name] for one in row] for row in rows]) for name in rows[0][0]}
    return xr.Dataset(numbers, {dims[0]: coordinates})


def met(conditions):
    """Whether each condition of a theorem is met, by name."""
    return xr.DataArray([float(c.holds) for c in conditions], {"condition": [c.name for c in conditions]}, "condition")


def losses(ds):
    """``||A - A_star||_F^2 / 2``, the paper's measure."""
    return ds.distance**2 / 2


def unpacked(ds, name):
    """An array with the usual names of dimensions, where sets of runs have their own: ``step_literal``, ``step_figure``."""
    return ds[name].rename({dim: dim.split("_")[0] for dim in ds[name].dims})


def late(steps, loss, part=0.5):
    """The last ``part`` of the steps of a run at which its loss is above the floor of rounding, and the losses there."""
    good = np.isfinite(loss) & (loss > FLOOR)
    use = good & (steps >= (1 - part) * steps[good].max(initial=0.0))
    return steps[use], loss[use]


def late_rate(steps, loss, part=0.5):
    """The rate of ``loss ~ exp(-rate * step)``, fitted to the late part of a run.

    >>> t = np.arange(100.0)
    >>> round(late_rate(t, np.exp(-0.1 * t)), 6)
    0.1
    """
    t, y = late(steps, loss, part)
    return float(-np.polyfit(t, np.log(y), 1)[0]) if t.size >= 4 else float("nan")


def late_rates(loss, part=0.5):
    """:func:`late_rate` of every run, along the dimension ``step``."""
    along = [["step"], ["step"]]
    return xr.apply_ufunc(late_rate, loss.step, loss, input_core_dims=along, kwargs={"part": part}, vectorize=True)


def tail_of(steps, loss, rate):
    """A line of slope ``-rate`` (in log loss) through the middle of the late part of a curve, to draw over it."""
    t, y = late(steps, loss)
    middle = t.size // 2
    return (t, y[middle] * np.exp(-rate * (t - t[middle]))) if t.size >= 2 else (np.zeros(0), np.zeros(0))


def bands(values, dim, label, **options):
    """A band for each coordinate of ``dim``, in a colour of its own; ``label`` names it: ``"alpha = {:g}"``."""
    coordinates = enumerate(values[dim].values)
    return [band(values.sel({dim: at}), label.format(at), colour=i, **options) for i, at in coordinates]


def preset(figure, title, setting, scale, note, **more):
    """A setting in the laboratory, whose runs have 5000 steps at the most."""
    values = {
        "rank": setting.rank,
        "width": setting.width,
        "init_scale": scale,
        "step_size": setting.step_size,
        "num_steps": min(setting.num_steps, 5000),
    }
    if math.isfinite(setting.per_row):
        # Sensing keeps its data in memory; sixteen seeds would take too long for sliders.
        values |= {"measurements": "sensing", "per_row": setting.per_row, "seeds": 4}
    return LabPreset(lab="factors", name=figure, title=title, values=values | more, note=note)


PRESETS = (
    preset(
        "fig1.1",
        "One factor slows down, two do not",
        FIGURE11,
        0.5,
        f"The figure goes on to step {FIGURE11.num_steps:,}, and has k = 3 and k = 2 and smaller α too. It has no imbalance "
        "step.",
        view="loss, log time",
    ),
    preset(
        "fig1.2a",
        "k = r: the rate does not depend on α",
        FIGURE12A,
        0.2,
        "The figure compares α = 0.5, 0.2 and 0.05 on F Gᵀ.",
    ),
    preset(
        "fig1.2b",
        "k > r: the rate depends on α",
        replace(FIGURE12B, step_size=FIGURE, time=FIGURE12_AXIS),
        0.2,
        "The figure compares four α on F Gᵀ. This is its panel with η = 0.03, which fits the printed axis; the panel with the "
        "printed η = 0.2 takes 10,000 steps.",
    ),
    preset(
        "fig1.2c",
        "One imbalance step: no dependence on α",
        FIGURE12C,
        0.05,
        "The figure has k = 3 and α = 0.5 too. It has no X Xᵀ.",
        step_at=0.5,
        beta=1.0,
    ),
    preset(
        "figI1",
        "One factor against two in sensing",
        FIGURE_I1,
        0.5,
        "In the figure X Xᵀ starts from α N(0, 1/n), which is the size of F; here from α N(0, 1/k). The figure has smaller α "
        "too, more steps, the same measurements for both models, and no imbalance step.",
        # Well past the crossing, which is at eta t alpha^2 of about 8.
        num_steps=600,
    ),
    preset(
        "figI2",
        "Ill-conditioned targets",
        FIGURE_I2,
        FIGURE_I2.scales[0],
        "The figure compares four condition numbers on F Gᵀ.",
        condition=FIGURE_I2_CONDITIONS[2],
    ),
    preset(
        "figI3",
        "A large start",
        FIGURE_I3,
        1.0,
        "The figure compares α = 0.5, 1, 3 and 5 on F Gᵀ, at the printed η = 0.2 and at a smaller one.",
    ),
    preset(
        "figI4",
        "Rank five",
        FIGURE_I4,
        0.5,
        "In the figure X Xᵀ goes on to step 2000, and α = 0.2 and 0.05 are shown too.",
        step_at=0.5,
        beta=1.0,
    ),
    preset("figI5", "The first steps", FIGURE_I5, 0.2, "The figure compares α = 0.5, 0.2 and 0.05 on F Gᵀ."),
)
"""What the live laboratory offers of the paper."""
