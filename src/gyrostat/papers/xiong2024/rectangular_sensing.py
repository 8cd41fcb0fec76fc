"""Rectangular sensing: the paper proves its theorems for n_1 = n_2 and says that they extend to n_1 x n_2 matrices."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import median, slope
from gyrostat.figures.declarations import Figure, Marker, Panel, band
from gyrostat.jax_tools.float64 import double
from gyrostat.papers.xiong2024.settings import LITERAL, designs_of, late_rates, losses
from gyrostat.theory import theorem42_rate, theorem43_rate

RANK, WIDTH, PER_ROW = 2, 4, 14
SMALL, MIDDLE, LARGE = 0.05, 0.2, 0.4
TIMES = {"exact": 100.0, "wide": 600.0, "stepped": 200.0}
"""eta x iterations: with k = r, with k = 4, and with k = 4 and the imbalance step half-way."""
SCALES = {"exact": (MIDDLE, SMALL), "wide": (LARGE, MIDDLE), "stepped": (LARGE, SMALL)}
RUNS = {"exact": "exact", "tall": "wide", "wide": "wide", "stepped": "stepped"}
"""The runs, and which of the times and scales they have."""
COMPARED = 30
"""The step at which transposed runs are compared: the error falls fastest there."""


def rectangular_data(
    *, seed: int, progress: Any = None, long: int, short: int, starts: int, designs: int
) -> xr.Dataset:
    """eta = .2, r = 2, m = 7 (n_1 + n_2): tall matrices (F has the more rows) and wide ones (G has), from several alpha."""
    parts = []
    for i, design in enumerate(designs_of(seed, designs)):
        parts.append(_one_design(np.random.default_rng(design), (long, short), starts, design))
        if progress is not None:
            progress(i + 1, designs)
    joined = xr.concat(parts, dim="seed")
    rates = {f"rate_{name}": _rate(joined[name], time) for name, time in RUNS.items()}
    waits = {f"wait_{name}": _wait(joined[name], long) for name in ("tall", "wide")}
    return joined.assign(rates | waits).assign_attrs(rows=long, columns=short)


def _rate(loss: xr.DataArray, time: str) -> xr.DataArray:
    """The late rate of every run; after the imbalance step, where there is one."""
    loss = loss.rename({f"step_{time}": "step"})
    after = loss.sel(step=loss.step > loss.step[-1] // 2 + 10) if time == "stepped" else loss
    return late_rates(after, after.step, 0.3)


def _wait(loss: xr.DataArray, longest: int) -> xr.DataArray:
    """eta T / log(sqrt(n)/alpha) of Lemma G.3, with the Frobenius norm, which is larger; infinite if it is not reached."""
    alpha = loss.scale_wide
    reached = np.sqrt(2 * loss) <= alpha**0.6
    first = loss.step_wide[reached.argmax("step_wide")].drop_vars("step_wide")
    return first.where(reached.any("step_wide"), np.inf) * LITERAL / np.log(math.sqrt(longest) / alpha)


def _one_design(rng: np.random.Generator, shape: tuple[int, int], starts: int, seed: int) -> xr.Dataset:
    """Runs on m Gaussian matrices, and, with wide targets, on their transposes."""
    A = rng.standard_normal((round(PER_ROW * sum(shape) / 2), *shape))
    tall, wide = _problem(A), _problem(A.swapaxes(1, 2))
    step = (gs.ImbalanceStep(at=round(TIMES["stepped"] / LITERAL) // 2, beta=1.0),)
    with double():
        drawn = [gs.ImbalancedGaussian(1.0)(gs.Asymmetric(WIDTH), shape, key) for key in _keys(seed, 2 * starts)]
    pairs = [tuple(map(np.asarray, pair)) for pair in drawn]
    swapped = [(G, F) for F, G in pairs[:starts]]
    own = [(3 * G, F / 3) for F, G in pairs[starts:]]  # alpha N(0, 1/n_1) and (alpha/3) N(0, 1/n_2) again
    first, other = _run(tall, pairs[:starts], "wide"), _run(wide, swapped + own, "wide")
    exact = [(F[:, :RANK], G[:, :RANK]) for F, G in pairs[:starts]]
    losses_of = {
        "tall": losses(first),
        "wide": losses(other).isel(seed=slice(starts, None)),
        "exact": losses(_run(tall, exact, "exact")),
        "stepped": losses(_run(tall, pairs[:starts], "stepped", step)),
    }
    gap = _product(first) - _product(other)[:, :starts].swapaxes(-1, -2)
    norm = lambda x: np.linalg.norm(x, axis=(-2, -1))  # noqa: E731
    transposed = xr.DataArray((norm(gap) / norm(_product(first))).max(0), dims="seed")
    return xr.Dataset({**{n: x.drop_vars("seed") for n, x in losses_of.items()}, "transposed": transposed})


def _problem(A: np.ndarray) -> gs.Problem:
    rows, columns = A.shape[1:]
    truth = gs.RectangularEnvironments(np.eye(rows, RANK), np.eye(columns, RANK), values=np.ones(RANK))
    responses = np.trace(A[:, :RANK, :RANK], axis1=1, axis2=2)
    return gs.Problem(truth, gs.DenseData(A, responses, np.zeros(len(A), dtype=int)))


def _keys(seed: int, count: int) -> list[Any]:
    return [jax.random.fold_in(jax.random.key(seed), i) for i in range(count)]


def _run(
    problem: gs.Problem, starts: list[tuple[Any, ...]], time: str, events: tuple[gs.Event, ...] = ()
) -> xr.Dataset:
    """Runs from alpha times every start; the starts are the dimension ``seed``."""
    steps = round(TIMES[time] / LITERAL)
    width = starts[0][0].shape[1]

    def build(scale: float, start: int) -> Any:
        given = gs.Given(*(scale * x for x in starts[start]))
        return gs.GradientDescent(LITERAL, width=width, start=given, events=events), problem

    grid = np.union1d(np.linspace(0, steps, 101).round().astype(int), np.arange(2 * COMPARED))
    ds = gs.run_grid(
        build,
        {"scale": list(SCALES[time]), "start": list(range(len(starts)))},
        num_steps=steps,
        record=("distance", "left_factor", "right_factor"),
        record_at=grid,
    )
    named = ds.isel(seed=0, drop=True).rename(start="seed", step=f"step_{time}", scale=f"scale_{time}")
    return named.assign_attrs(time=time)


def _product(ds: xr.Dataset) -> np.ndarray:
    """F G^T after 30 steps, by scale and start."""
    one = ds.sel({f"step_{ds.attrs['time']}": COMPARED})
    return one.left_factor.values @ one.right_factor.values.swapaxes(-1, -2)


def draw_rectangular(ds: xr.Dataset) -> Figure:
    n1, n2 = ds.attrs["rows"], ds.attrs["columns"]
    panels = [
        _panel(ds, {"exact": f"{n1} x {n2}"}, "exact", "k = r = 2"),
        _panel(ds, {"tall": f"{n1} x {n2}", "wide": f"{n2} x {n1}"}, "wide", "k = 4"),
        _panel(ds, {"stepped": f"{n1} x {n2}"}, "stepped", "k = 4 with the imbalance step"),
    ]
    return Figure(
        title="Rectangular sensing: linear, at a rate of order alpha^2 with k > r; slower when F is the short factor",
        panels=panels,
        note=f"Medians and quartiles over starts and designs; r = 2, m = {PER_ROW // 2} (n_1 + n_2), eta = 0.2.",
    )


def _panel(ds: xr.Dataset, names: dict[str, str], time: str, title: str) -> Panel:
    tau = LITERAL * ds[f"step_{time}"].values
    series: list[Any] = []
    for name, shape in names.items():
        for scale in ds[f"scale_{time}"].values:
            y = ds[name].sel({f"scale_{time}": scale})
            series.append(band(y, f"{shape}, alpha = {scale:g}", x=tau, colour=len(series)))
    if time == "stepped":
        series.append(Marker(TIMES[time] / 2, "the imbalance step", axis="x"))
    return Panel(title=title, xlabel="eta x iteration", ylabel="loss", series=series, yscale="log", ylim=(1e-26, 20))


def _rates(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The median late rate by alpha."""
    return median(ds[f"rate_{name}"].rename({f"scale_{RUNS[name]}": "scale"}))


def _exponent(ds: xr.Dataset, name: str) -> float:
    """The exponent of the median late rate in alpha."""
    rates = _rates(ds, name)
    return slope(rates.scale.values, rates.values)


def _free_of_scale(ds: xr.Dataset, name: str) -> Outcome:
    rate = _rates(ds, name).min()
    return together(within(-0.15, 0.15, exponent=_exponent(ds, name)), within(0, np.inf, least_rate=rate))


def _quadratic(ds: xr.Dataset) -> Outcome:
    return within(1.7, 2.3, **{name: _exponent(ds, name) for name in ("tall", "wide")})


def _promised(ds: xr.Dataset) -> Outcome:
    ratios = {"exact": float(_rates(ds, "exact").min()) / theorem43_rate(LITERAL, 1.0, 1.0)}
    for name in ("tall", "wide"):
        rates = _rates(ds, name)
        promised = [theorem42_rate(LITERAL, float(a)) for a in rates.scale.values]
        ratios[name] = float((rates.values / promised).min())
    return within(1, np.inf, **ratios)


def _initial_phase(ds: xr.Dataset) -> Outcome:
    """The share of runs, because the lemma is about most starts."""
    return within(0.9, 1, tall=(ds.wait_tall <= 5).mean(), wide=(ds.wait_wide <= 5).mean())


RECTANGULAR = Experiment(
    name="rectangular",
    title="Rectangular sensing",
    source="Xiong 2024, section 2 (n_1 and n_2), Theorems 4.2, 4.3 and 5.1, Lemma G.3",
    summary=(
        "The theorems are proved for n_1 = n_2 = n and are said to extend to n_1 x n_2. The start is alpha N(0, 1/n_1) for F "
        "and (alpha/3) N(0, 1/n_2) for G, so that the imbalance of the start does not depend on the shape."
    ),
    sizes={
        "smoke": {"long": 24, "short": 12, "starts": 10, "designs": 2},
        "standard": {"long": 30, "short": 15, "starts": 5, "designs": 3},
        "full": {"long": 60, "short": 20, "starts": 8, "designs": 6},
    },
    compute=rectangular_data,
    draw=draw_rectangular,
    claims=[
        Claim(
            slug="exact-width-rate",
            statement="Theorem 4.3 at n_1 = 2 n_2: with k = r the rate does not depend on alpha.",
            criterion="exponent of the median late rate in alpha (from .2 and .05) in [-0.15, 0.15]",
            measure=lambda ds: _free_of_scale(ds, "exact"),
            names={"exponent": "exponent of the rate in alpha", "least_rate": "smallest rate [per iteration]"},
        ),
        Claim(
            slug="wide-rate",
            statement="Theorem 4.2 at n_1 = 2 n_2 and n_2 = 2 n_1: with k > r the rate is linear and grows as alpha^2.",
            criterion="exponent of the late rate in alpha (from .4 and .2) in [1.7, 2.3] for both shapes",
            measure=_quadratic,
        ),
        Claim(
            slug="promised-rates",
            statement="The rates of Theorems 4.2 and 4.3 hold for rectangular matrices in a typical run.",
            criterion=(
                "median measured rate over the promised one at least 1 for every shape and alpha (a short F is outside the "
                "condition k < n/8 of Theorem 4.2: its start is less imbalanced, and single runs are slower)"
            ),
            measure=_promised,
        ),
        Claim(
            slug="step-frees-the-rate",
            statement="Theorem 5.1 at n_1 = 2 n_2: after the imbalance step the rate no longer depends on alpha.",
            criterion="exponent of the median late rate in alpha (from .4 and .05) in [-0.15, 0.15]",
            measure=lambda ds: _free_of_scale(ds, "stepped"),
            names={"exponent": "exponent of the rate in alpha", "least_rate": "smallest rate [per iteration]"},
        ),
        Claim(
            slug="initial-phase",
            statement="Lemma G.3 in rectangular sensing: the error gets to alpha^(3/5) in about log(sqrt(n)/alpha)/eta steps.",
            criterion="T eta / log(sqrt(n)/alpha) at most 5 in 90 % of the runs, both shapes, alpha = .4, .2 (Frobenius norm)",
            measure=_initial_phase,
        ),
        Claim(
            slug="transposed",
            ours=True,
            statement=(
                "(2.2) treats F and G alike: with A_i^T and the factors exchanged, the run is the transposed run (ours). It is "
                "not if one factor moves before the other."
            ),
            criterion="relative gap of the products after 30 steps at most 1e-9 in every run",
            measure=lambda ds: within(0, 1e-9, largest_gap=ds.transposed.max()),
        ),
    ],
    weight=6,
)
