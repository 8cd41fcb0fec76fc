"""Momentum and Adam (ours): does HeteroSGD still forget, and at which step size?"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import crossing, last, median, share_below, wilson
from gyrostat.figures.declarations import Band, Figure, Line, Marker, Panel, Points
from gyrostat.papers.xu2024.settings import ALPHA
from gyrostat.theory import critical_spread, effective_step

EFFECTIVE, T = 0.05, 300
"""The effective step eta / (1 - beta) that all runs of the first comparison share, and their number of steps."""
SPREADS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0]
BETAS = [0.0, 0.5, 0.8, 0.9]
KINDS = ["Momentum", "Nesterov"]

ETA, TIME = 0.005, 10.0
"""The step size of the second comparison, in which only beta changes; T = TIME / effective step."""
RATIOS = [0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0]
"""M over the predicted M* of a beta."""

ADAM_ETAS = [0.002, 0.005, 0.01, 0.02]
ADAM_TIME = 4.0
"""eta T: an entry moves by about eta in a step of Adam, and the signal has size one."""
M6 = 6.0
RESAMPLES = 200


def momentum_data(*, seed: int, progress: Any = None, seeds: int, dimension: int) -> xr.Dataset:
    """Ends of runs: at one effective step, at one step size, and with Adam."""
    options: dict[str, Any] = {
        "seeds": seeds,
        "seed": seed,
        "progress": progress,
        "record": ("signal", "spurious"),
        "record_at": 2,
    }
    same_step = gs.run_grid(
        lambda kind, beta, spread: _cell(spread, EFFECTIVE * (1 - beta), getattr(gs, kind)(beta), dimension),
        {"kind": KINDS, "beta": BETAS, "spread": SPREADS},
        num_steps=T,
        **options,
    )
    same_eta = gs.run_grid(
        lambda beta, ratio: _cell(ratio * predicted(beta), ETA, gs.Momentum(beta), dimension),
        {"beta": BETAS, "ratio": RATIOS},
        num_steps=lambda beta, ratio: _steps(beta),
        **options,
    )
    adam = gs.run_grid(
        lambda adam_eta, spread: _cell(spread, adam_eta, gs.Adam(), dimension),
        {"adam_eta": ADAM_ETAS, "spread": SPREADS},
        num_steps=lambda adam_eta, spread: round(ADAM_TIME / adam_eta),
        **options,
    )
    parts = {"effective": same_step, "fixed": same_eta, "adam": adam}
    ends = [
        last(part[["signal", "spurious"]])
        .rename(signal=f"{name}_signal", spurious=f"{name}_spurious")
        .drop_vars("step")
        for name, part in parts.items()
    ]
    return xr.merge(ends, combine_attrs="drop_conflicts").assign(prediction=("beta", [predicted(b) for b in BETAS]))


def _cell(spread: float, eta: float, rule: gs.UpdateRule, dimension: int) -> Any:
    environments = gs.RandomEnvironments(dimension, law=gs.TwoPoint(mean=1.0, spread=spread))
    measurements = gs.FreshGaussian(400 * dimension)
    return gs.HeteroSGD(eta, init_scale=ALPHA, rule=rule), gs.Problem(environments, measurements)


def _steps(beta: float) -> int:
    return round(TIME / effective_step(ETA, beta))


def predicted(beta: float) -> float:
    """M* at the effective step of beta, for the second comparison.

    >>> [round(predicted(beta), 1) for beta in (0.0, 0.9)]
    [13.0, 4.2]
    """
    return critical_spread(effective_step(ETA, beta), init_scale=ALPHA, num_steps=_steps(beta))


def _halfway(spurious: xr.DataArray, along: str) -> float:
    """Where half of the runs end without the spurious signal, along M or along M over M*."""
    return crossing(spurious[along].values, share_below(spurious, 0.1).values, 0.5)


def _halfway_by_beta(ds: xr.Dataset) -> np.ndarray:
    """M at which half of the runs succeed at the fixed step size, for every beta."""
    found = [_halfway(ds.fixed_spurious.sel(beta=beta), "ratio") for beta in BETAS]
    return np.array(found) * ds.prediction.values


def _interval_by_beta(ds: xr.Dataset) -> np.ndarray:
    """The 95 % interval of :func:`_halfway_by_beta`: its ends over resampled runs (one draw of resamples for all)."""
    rng, runs = np.random.default_rng(0), ds.sizes["seed"]
    halves = [_halfway_by_beta(ds.isel(seed=rng.integers(runs, size=runs))) for _ in range(RESAMPLES)]
    return np.nanquantile(halves, [0.025, 0.975], axis=0)


def _share_band(spurious: xr.DataArray, label: str, colour: int) -> Band:
    """The share of runs that forget, with its Wilson interval."""
    runs, share = spurious.sizes["seed"], share_below(spurious, 0.1).values
    low, high = wilson(share * runs, runs)
    return Band(SPREADS, low, share, high, label, colour=colour)


def draw_momentum(ds: xr.Dataset) -> Figure:
    heavy = ds.effective_spurious.sel(kind="Momentum")
    left, adam = median(heavy), median(ds.adam_spurious)
    low, high = _interval_by_beta(ds)
    betas = np.linspace(0, 0.92, 60)
    kept = ", ".join(f"{x:.2f}" for x in adam.sel(spread=M6).values)
    return Figure(
        title="Momentum forgets as the effective step predicts, though in fewer runs; Adam keeps much",
        panels=[
            Panel(
                title=f"The same effective step, {EFFECTIVE:g}",
                xlabel="heterogeneity M",
                ylabel="share of runs without spurious signal",
                series=[
                    *(_share_band(heavy.sel(beta=beta), f"beta = {beta:g}", k) for k, beta in enumerate(BETAS)),
                    Marker(_same_step_prediction(), "predicted M*", axis="x"),
                ],
                ylim=(0, 1),
            ),
            Panel(
                title=f"The same step size, {ETA:g}",
                xlabel="momentum beta",
                ylabel="M at which half of the runs forget",
                series=[
                    Points(BETAS, _halfway_by_beta(ds), "measured", low=low, high=high),
                    Line(betas, [predicted(b) for b in betas], "M* at eta / (1 - beta)", role="theory"),
                ],
                ylim=(0, None),
            ),
            Panel(
                title="What is left",
                xlabel="heterogeneity M",
                ylabel="median share of the spurious signal",
                series=[
                    Line(SPREADS, left.sel(beta=0.0).values, "plain, eta = 0.05", colour=0),
                    Line(SPREADS, left.sel(beta=0.9).values, "momentum 0.9, eta = 0.005", colour=3),
                    *(
                        Line(SPREADS, adam.sel(adam_eta=eta).values, f"Adam, eta = {eta:g}", colour=colour)
                        for eta, colour in zip(ADAM_ETAS, (1, 2, 4, 5), strict=True)
                    ),
                ],
                yscale="log",
            ),
        ],
        note=(
            f"Start {ALPHA:g}, s = 1 - M or 1 + M, {ds.sizes['seed']} runs. Left: T = {T}. Middle: T = {TIME:g} (1 - beta) / "
            "eta. Bands and whiskers are 95 % intervals. Right: plain and momentum as on the left, Adam for "
            f"T = {ADAM_TIME:g} / eta; at M = {M6:g} Adam leaves {kept} of the spurious signal, from its smallest to its "
            "largest step. Diverged runs count as failures."
        ),
    )


def _same_step_prediction() -> float:
    return critical_spread(EFFECTIVE, init_scale=ALPHA, num_steps=T)


def _transition(ds: xr.Dataset) -> Outcome:
    """M at which half of the runs succeed over M*, for both kinds of momentum and every beta."""
    found = [
        _halfway(ds.effective_spurious.sel(kind=kind, beta=beta), "spread") / _same_step_prediction()
        for kind in KINDS
        for beta in BETAS
    ]
    return within(0.7, 1.2, least=min(found), most=max(found))


def _learnt(ds: xr.Dataset) -> Outcome:
    signal = median(ds.effective_signal)
    return within(0.9, 1.1, least=signal.min(), most=signal.max())


def _momentum_forgets(ds: xr.Dataset) -> Outcome:
    ends = median(ds.effective_spurious.sel(spread=8.0, beta=0.9))
    return within(0, 0.05, momentum=ends.sel(kind="Momentum"), nesterov=ends.sel(kind="Nesterov"))


def _less_reliable(ds: xr.Dataset) -> Outcome:
    """The share of runs that forget at M from 7 to 10, without momentum minus that with momentum .9."""
    share = share_below(ds.effective_spurious.sel(kind="Momentum", spread=slice(7.0, None)), 0.1).mean("spread")
    return within(0.05, 0.5, lost=share.sel(beta=0.0) - share.sel(beta=0.9))


def _fixed_step(ds: xr.Dataset) -> Outcome:
    ratios = _halfway_by_beta(ds) / ds.prediction.values
    return within(0.7, 1.2, least=ratios.min(), most=ratios.max())


def _momentum_helps(ds: xr.Dataset) -> Outcome:
    """How far momentum .9 moves the transition at the same step size."""
    halves = _halfway_by_beta(ds)
    return within(0.2, 0.45, moved=halves[-1] / halves[0])


def _adam_keeps(ds: xr.Dataset) -> Outcome:
    ends = ds.sel(spread=M6)
    adam = median(ends.adam_spurious)
    return together(
        within(0.15, 1.1, adam_least=adam.min()),
        within(0, 0.05, plain=median(ends.effective_spurious.sel(kind="Momentum", beta=0.0))),
        within(0.9, 1.1, adam_signal=median(ends.adam_signal).min()),
    )


def _small_steps_keep(ds: xr.Dataset) -> Outcome:
    """What the two smallest steps leave, over what the largest one leaves."""
    adam = median(ds.adam_spurious.sel(spread=M6))
    return within(1, 20, ratio=adam.sel(adam_eta=ADAM_ETAS[:2]).min() / adam.sel(adam_eta=ADAM_ETAS[-1]))


MOMENTUM = Experiment(
    name="momentum",
    title="Momentum and Adam",
    source="ours; Algorithm 3 of Xu 2024 with other update rules, in the setting of section 5",
    summary=(
        "With momentum the transition is where plain SGD has it at the step eta / (1 - beta), though fewer runs forget beyond "
        "it; Adam, whose steps do not grow with the gradient, keeps a part of the spurious signal."
    ),
    sizes={
        "smoke": {"seeds": 48, "dimension": 8},
        "standard": {"seeds": 64, "dimension": 16},
        "full": {"seeds": 200, "dimension": 40},
    },
    compute=momentum_data,
    draw=draw_momentum,
    claims=[
        Claim(
            slug="signal-learnt",
            ours=True,
            statement="At the same effective step, the invariant signal is learnt whatever the momentum.",
            criterion="median invariant share at the end in [.9, 1.1] for every beta and M, both kinds of momentum",
            measure=_learnt,
        ),
        Claim(
            slug="momentum-forgets",
            ours=True,
            statement="HeteroSGD with momentum 0.9 forgets the spurious signal.",
            criterion="median spurious share at M = 8 at most .05, heavy ball and Nesterov",
            measure=_momentum_forgets,
            names={
                "momentum": "share of the spurious signal, heavy ball",
                "nesterov": "share of the spurious signal, Nesterov",
            },
        ),
        Claim(
            slug="effective-step",
            ours=True,
            statement="At the same effective step eta / (1 - beta), the transition is where plain SGD has it.",
            criterion="half of the runs forget at an M within [.7, 1.2] of M*, for beta up to .9, both kinds of momentum",
            measure=_transition,
        ),
        Claim(
            slug="less-reliable",
            ours=True,
            statement="Beyond the transition, momentum 0.9 forgets in fewer runs than plain SGD at the same effective step.",
            criterion="share of runs without spurious signal, mean over M from 7 to 10: plain minus momentum .9 in [.05, .5]",
            measure=_less_reliable,
            names={"lost": "share of the runs that momentum loses"},
        ),
        Claim(
            slug="fixed-step",
            ours=True,
            statement="At the same step size, the transition follows M* at the effective step.",
            criterion="half of the runs forget at an M within [.7, 1.2] of the prediction for every beta",
            measure=_fixed_step,
        ),
        Claim(
            slug="momentum-helps",
            ours=True,
            statement="At the same step size, momentum 0.9 forgets with a third of the heterogeneity.",
            criterion="the M at which half of the runs forget, over that without momentum, in [.2, .45]",
            measure=_momentum_helps,
        ),
        Claim(
            slug="adam-keeps",
            ours=True,
            statement="Adam keeps a part of the spurious signal where plain SGD forgets it.",
            criterion="M = 6, median spurious share: Adam >= .15 at every step size, plain <= .05; Adam's signal in [.9, 1.1]",
            measure=_adam_keeps,
            names={
                "adam_least": "smallest share of the spurious signal, Adam",
                "plain": "share of the spurious signal, plain",
                "adam_signal": "share of the invariant signal, Adam",
            },
        ),
        Claim(
            slug="adam-small-steps",
            ours=True,
            statement="Adam keeps more with small steps (0.002, 0.005) than with large ones (0.02).",
            criterion="median spurious share at M = 6: the lesser of the two small steps over the large one in [1, 20]",
            measure=_small_steps_keep,
        ),
    ],
    weight=30,
)
