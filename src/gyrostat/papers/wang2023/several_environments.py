"""Beyond the paper: completion with several environments. Does a batch from one environment make jumps likelier?"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import wilson
from gyrostat.figures.declarations import Bars, Figure, Line, Panel, Points
from gyrostat.papers.wang2023.settings import OBSERVED, STARTS, annealed, completion, follow, network, ticker

EPSILON, BATCH, SPREAD = 0.25, 3, 0.3
DIRECTIONS = {
    "together": ((1, 1), (1, 1)),
    "rows": ((1, -1), (1, 1)),
    "columns": ((1, 1), (1, -1)),
    "crosswise": ((1, -1), (1, -1)),
}
"""Signs of the spurious part's rows and columns: every entry moves by the same amount, with its own sign."""


def environments(direction: str, spread: float, batch: int | None) -> gs.Problem:
    """A_e = [[1, 1/epsilon], [epsilon, 1]] -+ spread a b^T, the same entries observed everywhere."""
    U, s, Vt = np.linalg.svd([[1.0, 1 / EPSILON], [EPSILON, 1.0]])
    a, b = (np.array(x, dtype=float)[:, None] / 2**0.5 for x in DIRECTIONS[direction])
    environments = gs.RectangularEnvironments(
        U[:, :1], Vt[:1].T, a, b, gs.TwoPoint(mean=0.0, spread=spread), values=s[:1]
    )
    return gs.Problem(environments, gs.Entries(OBSERVED, batch_size=batch))


def hetero_data(
    *, seed: int, progress: Any = None, seeds: int, num_steps: int, spreads: tuple[float, ...]
) -> xr.Dataset:
    """L = 3, schedule of Figure 1, three entries per step: shares that jump, by direction, spread and sampling."""
    tick = ticker(progress, len(DIRECTIONS) * len(spreads) * 2 + 2)
    share = np.full((len(DIRECTIONS), len(spreads), 2), np.nan)
    base, gd = {}, []
    for i, direction in enumerate(DIRECTIONS):
        for j, spread in enumerate(spreads):
            for k, batches in enumerate((gs.OneEnvironment(), gs.Pooled())):
                share[i, j, k] = _jumps(environments(direction, spread, BATCH), batches, num_steps, seeds, seed)
                tick()
    for name, batches in (("one", gs.OneEnvironment()), ("pooled", gs.Pooled())):
        base[name] = _jumps(environments("together", 0.0, BATCH), batches, num_steps, seeds, seed)
    tick()
    for direction in ("together", "crosswise"):
        gd.append(_jumps(environments(direction, max(spreads), None), gs.Full(), num_steps, STARTS, seed))
    rest = follow(network(annealed()), completion(EPSILON, "all"), num_steps=6000, seeds=STARTS, seed=seed)
    tick()
    U, _, Vt = np.linalg.svd(rest.matrices[0, -1])
    overlap = [abs(U[:, 1] @ a) * abs(Vt[1] @ b) / 2 for a, b in (map(np.array, d) for d in DIRECTIONS.values())]
    return xr.Dataset(
        {
            "share": (("direction", "spread", "sampling"), share),
            "none": ("sampling", [base["one"], base["pooled"]]),
            "gd": ("control", gd),
            "overlap": ("direction", overlap),
        },
        {"direction": list(DIRECTIONS), "spread": list(spreads), "sampling": ["one environment", "pooled"]},
        {"settings": rest.settings, "runs": seeds, "num_steps": num_steps},
    )


def _jumps(problem: gs.Problem, batches: Any, num_steps: int, seeds: int, seed: int) -> float:
    algorithm = gs.RidgeDescent(annealed(), model=gs.DeepLinear(3, 100), start=gs.Orthogonal(), batches=batches)
    return float(np.isfinite(follow(algorithm, problem, num_steps=num_steps, seeds=seeds, seed=seed).jumped).mean())


def draw_hetero(ds: xr.Dataset) -> Figure:
    n = ds.attrs["runs"]
    at = ds.share.sel(spread=SPREAD)
    bars = []
    for k, name in enumerate(ds.sampling.values):
        y = at.sel(sampling=name).values
        low, high = wilson(np.round(y * n), n)
        bars.append(Bars(list(DIRECTIONS), y, str(name), low=low, high=high, colour=k))
    overlap = [
        Points(ds.overlap.values, at.sel(sampling=name).values, str(name), names=list(DIRECTIONS), colour=k)
        for k, name in enumerate(ds.sampling.values)
    ]
    lines: list[Any] = []
    for k, name in enumerate(ds.sampling.values):
        for i, direction in enumerate(("together", "crosswise")):
            y = np.concatenate(
                [[float(ds.none.sel(sampling=name))], ds.share.sel(direction=direction, sampling=name).values]
            )
            lines.append(Line([0.0, *ds.spread.values], y, f"{name}, {direction}", colour=2 * i + k))
    return Figure(
        title="One environment per batch makes jumps likelier or rarer: it depends on where the environments differ",
        panels=[
            Panel(
                title=f"Spread {SPREAD:g}",
                xlabel="direction of the spurious part",
                ylabel="share of runs that jump",
                series=bars,
                ylim=(0, 1.05),
            ),
            Panel(
                title="By alignment",
                xlabel="overlap with u2 v2^T at rest",
                ylabel="share of runs that jump",
                series=overlap,
                ylim=(-0.03, 1.03),
            ),
            Panel(
                title="By spread",
                xlabel="spread of the environments",
                ylabel="share of runs that jump",
                series=lines,
                ylim=(-0.03, 1.03),
            ),
        ],
        note=(
            f"L = 3, epsilon = 0.25, schedule of Figure 1, three entries per step, {ds.attrs['num_steps']} steps. The "
            "entries drawn and the noise in each are the same for both; only pooled entries come from environments of their "
            "own. Whiskers: 95 %."
        ),
    )


def _gain(ds: xr.Dataset) -> xr.DataArray:
    at = ds.share.sel(spread=SPREAD)
    return at.sel(sampling="one environment") - at.sel(sampling="pooled")


def _not_always_likelier(ds: xr.Dataset) -> Outcome:
    gain = {d: float(_gain(ds).sel(direction=d)) for d in DIRECTIONS}
    return Outcome(gain, min(gain.values()) < 0)


def _direction(ds: xr.Dataset) -> Outcome:
    gain = _gain(ds)
    return together(
        within(0.2, 1, crosswise=gain.sel(direction="crosswise")),
        within(-1, -0.2, together=gain.sel(direction="together")),
    )


def _aligned(ds: xr.Dataset) -> Outcome:
    from scipy.stats import spearmanr

    y = ds.share.sel(spread=SPREAD, sampling="one environment")
    order = float(spearmanr(ds.overlap, y).statistic) if float(y.std()) > 0 else 0.0
    return Outcome(
        {"rank_correlation": order, **{d: float(ds.overlap.sel(direction=d)) for d in DIRECTIONS}}, order >= 0.7
    )


def _noise_needed(ds: xr.Dataset) -> Outcome:
    return within(0, 0.05, no_spread=ds.none.max(), gd=ds.gd.max())


HETERO = Experiment(
    name="hetero",
    title="Completion with several environments",
    source="Beyond Wang 2023 and Xu 2024 (ours)",
    summary=(
        "Environments share the rank-1 truth and differ by a spurious part of mean zero. A batch of three entries "
        "comes from one environment, or each entry comes from an environment of its own. The entries and the "
        "noise in each are the same; only the correlation of the noise differs."
    ),
    sizes={
        "smoke": {"seeds": 64, "num_steps": 8000, "spreads": (0.3,)},
        "standard": {"seeds": 64, "num_steps": 8000, "spreads": (0.15, 0.3, 0.6)},
        "full": {"seeds": 400, "num_steps": 20_000, "spreads": (0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.6, 1.0)},
    },
    compute=hetero_data,
    draw=draw_hetero,
    claims=[
        Claim(
            slug="not-always-likelier",
            ours=True,
            statement=(
                "Batches from one environment do not always make jumps likelier: when environments move all entries together, "
                "the noise goes into s1 and spares s2 (ours)."
            ),
            criterion="share of runs that jump: one environment minus pooled below 0 in one of the four directions",
            measure=_not_always_likelier,
        ),
        Claim(
            slug="direction-decides",
            ours=True,
            statement=(
                "Batches from one environment make jumps likelier when environments differ along the second "
                "singular pair, not along the first."
            ),
            criterion="gain in share >= .2 crosswise and <= -.2 together, at spread .3",
            measure=_direction,
        ),
        Claim(
            slug="aligned",
            ours=True,
            statement="The share that jumps grows with the overlap of the spurious part with u2 v2^T.",
            criterion="rank correlation over the four directions >= .7",
            measure=_aligned,
        ),
        Claim(
            slug="noise-needed",
            ours=True,
            statement="Without spread, and with all environments in every step, nothing jumps (controls).",
            criterion="shares <= .05 with spread 0 and for gradient descent",
            measure=_noise_needed,
        ),
    ],
    weight=10,
)
