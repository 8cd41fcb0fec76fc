"""Figures 2 to 4 from PyTorch's own start: layers with uniform entries, at full width."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import wilson
from gyrostat.figures.declarations import Bars, Figure, Line, Panel
from gyrostat.jax_tools.float64 import double
from gyrostat.papers.wang2023.settings import (
    FIGURE2,
    FIGURE2_SWITCH,
    FIGURE4,
    WARM_SIZE,
    WARM_STEPS,
    WIDTH,
    Paths,
    annealed,
    completion,
    figure3,
    follow,
    network,
    ticker,
)

START = gs.FanInUniform()
SOLVED, EASY = 0.5, 0.15
"""Relative test loss below which a run of Figure 3 has solved its problem, and the epsilon at which it is tried."""
SWITCHES = (0, 1000)
PERIOD = 1000
ORDERS = ("quiet first", "loud first")
"""Figure 4 prints neither the length of a phase nor which comes first."""


def pytorch_start_data(*, seed: int, progress: Any = None, seeds: int, periodic_steps: int) -> xr.Dataset:
    """Figure 2 (L = 4), two settings of Figure 3 (L = 4) and Figure 4 (L = 3), with two orders of its phases."""
    tick = ticker(progress, 1 + len(SWITCHES) + len(ORDERS))
    jumps = follow(
        network(annealed(FIGURE2.high, FIGURE2.low, FIGURE2_SWITCH), 4, start=START),
        completion(FIGURE2.epsilon),
        num_steps=FIGURE2_SWITCH,
        seeds=seeds,
        seed=seed,
    )
    tick()
    losses = []
    for at in SWITCHES:
        setting = figure3(EASY, at)
        algorithm = network(annealed(setting.high, setting.low, at), 4, start=START)
        runs = follow(algorithm, completion(EASY), num_steps=setting.num_steps, seeds=seeds, seed=seed)
        losses.append(np.nan_to_num(runs.loss(EASY)[:, -1], nan=np.inf))
        tick()
    fourth = []
    for order in ORDERS:
        fourth.append(_figure4_runs(order, periodic_steps, seeds, seed))
        tick()
    return xr.Dataset(
        {
            "jump": ("seed", jumps.jumped),
            "loss": (("switch", "seed"), np.array(losses)),
            "periodic_jump": (("order", "seed"), np.array([runs.jumped for runs in fourth])),
            "periodic_rank": (("order", "seed"), np.array([runs.ranks[:, -1] for runs in fourth], dtype=float)),
            "uniform_size": ("layer", _layer_sizes(START, seed)),
            "orthogonal_size": ("layer", _layer_sizes(gs.Orthogonal(), seed)),
        },
        {"switch": list(SWITCHES), "order": list(ORDERS)},
        {"settings": jumps.settings},
    )


def _figure4_runs(order: str, num_steps: int, seeds: int, seed: int) -> Paths:
    phases = [gs.Constant(*FIGURE4.low), gs.Constant(*FIGURE4.high)][:: 1 if order == "quiet first" else -1]
    schedule = gs.WarmUp(WARM_STEPS, WARM_SIZE, then=gs.Periodic([(PERIOD, phase) for phase in phases]))
    ds = gs.run(
        network(schedule, FIGURE4.depth, start=START),
        completion(FIGURE4.epsilon),
        num_steps=num_steps,
        seeds=seeds,
        seed=seed,
        record=("product",),
        record_at=num_steps // 10 + 1,
        reduction="never",  # one program for both orders: runs that diverge have no exact reduction
    )
    return Paths(ds.step.values, ds["product"].values, ds.diverged.values, ds.attrs["settings"])


def _layer_sizes(start: gs.Start, seed: int, draws: int = 16) -> np.ndarray:
    """The mean square of the entries of each layer of width 100 at the start, times the number of columns."""
    model = gs.DeepLinear(4, WIDTH)
    with double():
        layers = jax.vmap(lambda key: start(model, (2, 2), key))(jax.random.split(jax.random.key(seed), draws))
    return np.array([float(np.mean(np.asarray(W) ** 2) * W.shape[2]) for W in layers])


def draw_pytorch_start(ds: xr.Dataset) -> Figure:
    t = np.linspace(0, FIGURE2_SWITCH, 400)
    times = [Line(t, (ds.jump.values[:, None] <= t).mean(axis=0), "SGD", colour=0)]
    n = ds.sizes["seed"]
    hits = (ds.loss < SOLVED).sum("seed").values
    low, high = wilson(hits, n)
    solved = [Bars([f"t₀ = {at}" for at in SWITCHES], hits / n, "SGD", low=low, high=high, colour=0)]
    fates = ("rank 2", "rank 1", "rank 0", "diverged")
    ends = [
        Bars(fates, [(ds.periodic_rank.sel(order=order) == k).mean() for k in (2, 1, 0, -1)], order, colour=1 + i)
        for i, order in enumerate(ORDERS)
    ]
    return Figure(
        title="From PyTorch's start Figures 2 and 3 look the same; Figure 4 diverges if its quiet phase comes first",
        panels=[
            Panel(
                title=f"Figure 2, L = 4, ε = {FIGURE2.epsilon:g}",
                xlabel="step",
                ylabel="share of runs at rank 1",
                series=times,
                ylim=(-0.03, 1.03),
            ),
            Panel(
                title=f"Figure 3, L = 4, ε = {EASY:g}",
                xlabel="",
                ylabel="share of runs that solve it",
                series=solved,
                ylim=(0, 1.05),
            ),
            Panel(
                title=f"Figure 4, L = 3, ε = {FIGURE4.epsilon:g}",
                xlabel="",
                ylabel="share of runs",
                series=ends,
                ylim=(0, 1.05),
            ),
        ],
        note=f"w = 100, {n} runs each. Uniform entries in ±1/√(fan-in), as torch.nn.Linear has them. Whiskers: 95 %.",
    )


def _figure2(ds: xr.Dataset) -> Outcome:
    hits, n = int((ds.jump.values <= FIGURE2_SWITCH).sum()), ds.sizes["seed"]
    return together(within(0.5, 1, share=hits / n), within(0.8, 1, upper_end_of_interval=wilson(np.array(hits), n)[1]))


def _figure3(ds: xr.Dataset) -> Outcome:
    share = (ds.loss < SOLVED).mean("seed")
    return together(within(0.5, 1, after_1000=share.sel(switch=1000)), within(0, 0.1, without=share.sel(switch=0)))


def _figure4_quiet_first(ds: xr.Dataset) -> Outcome:
    return within(0, 0.3, diverged=(ds.periodic_rank.sel(order="quiet first") < 0).mean())


def _figure4_loud_first(ds: xr.Dataset) -> Outcome:
    t, rank = (ds[name].sel(order="loud first").values for name in ("periodic_jump", "periodic_rank"))
    jumps = t[np.isfinite(t)]
    # A jump is recorded up to ten steps late; phases are counted from step 0, and the first one is loud.
    in_loud = (jumps - 10) % (2 * PERIOD) < PERIOD
    return together(
        within(0.9, 1, share_in_loud=in_loud.mean() if jumps.size else float("nan")),
        within(0.4, 1, share_below_rank_2=((rank >= 0) & (rank < 2)).mean()),
        within(0, 0.3, diverged=(rank < 0).mean()),
    )


def _start_scale(ds: xr.Dataset) -> Outcome:
    # Orthonormal columns (first layer: 2 of 100) have a mean square of 1 / rows, orthonormal rows of 1 / columns.
    orthogonal = ds.orthogonal_size.values / np.array([2 / WIDTH, 1.0, 1.0, 1.0])
    return together(
        within(0.93, 1.07, **{f"uniform_{k + 1}": 3 * x for k, x in enumerate(ds.uniform_size.values)}),
        within(1 - 1e-9, 1 + 1e-9, orthogonal_least=orthogonal.min(), orthogonal_largest=orthogonal.max()),
    )


PYTORCH_START = Experiment(
    name="pytorch-start",
    title="Figures 2 to 4 from PyTorch's start",
    source="Wang 2023, Figures 2 to 4",
    summary=(
        "The other experiments start from orthogonal layers, which run exactly in a small width. Here the same statements are "
        "checked from the start that torch.nn.Linear has, at width 100."
    ),
    sizes={
        "smoke": {"seeds": 24, "periodic_steps": 3500},
        "standard": {"seeds": 32, "periodic_steps": 6000},
        "full": {"seeds": 400, "periodic_steps": 12_000},
    },
    compute=pytorch_start_data,
    draw=draw_pytorch_start,
    claims=[
        Claim(
            slug="fig2",
            statement="From PyTorch's start networks of depth 4 jump in the first 5000 steps (Figure 2).",
            criterion="share at rank 1 by step 5000 at least .5, with a 95 % interval that reaches .8",
            measure=_figure2,
            names={
                "share": "share at rank 1 by step 5000",
                "upper_end_of_interval": "upper end of its 95 % interval [%]",
            },
        ),
        Claim(
            slug="fig3",
            statement=(
                "From PyTorch's start (L = 4, epsilon = 0.15), a run with 1000 noisy steps solves the problem, "
                "and a run without noisy steps does not (Figure 3)."
            ),
            criterion="share of runs with a relative test loss below .5 at least .5 for t0 = 1000 and at most .1 for t0 = 0",
            measure=_figure3,
            names={"after_1000": "share that solves it, t0 = 1000", "without": "share that solves it, t0 = 0"},
        ),
        Claim(
            slug="fig4-quiet-first",
            statement=(
                "From PyTorch's start, runs with the periodic schedule of Figure 4 do not diverge if the quiet "
                "phase comes first."
            ),
            criterion="at most .3 of the runs diverge",
            measure=_figure4_quiet_first,
            names={"diverged": "share that diverges"},
            expected="fails",
            kind="depends on the reading",
            reason=(
                "The order of the phases is not printed. The small ridge of a quiet phase does not shrink the random part of "
                "wide layers, and nine runs in ten diverge when the first loud phase begins; with the loud phase first none do."
            ),
        ),
        Claim(
            slug="fig4-loud-first",
            statement=(
                "From PyTorch's start, with the loud phase first, runs jump, and do so in loud phases (Figure 4)."
            ),
            criterion=(
                "at least .9 of the lasting jumps in loud phases; at least .4 of all runs end below rank 2; at most .3 diverge"
            ),
            measure=_figure4_loud_first,
            names={
                "share_in_loud": "share of lasting jumps in loud phases",
                "share_below_rank_2": "share that ends below rank 2",
                "diverged": "share that diverges",
            },
        ),
        Claim(
            slug="start-scale",
            ours=True,
            statement=(
                "PyTorch's start has entries of variance 1 / (3 fan-in); orthogonal layers have orthonormal rows "
                "or columns."
            ),
            criterion="mean squares times 3 fan-in in [.93, 1.07] in every layer; those of orthogonal layers exact to 1e-9",
            measure=_start_scale,
        ),
    ],
    weight=10,
)
