"""Deep completion: SGD, which jumps to a lower rank, against gradient descent, which stays (Wang 2023)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat import theory
from gyrostat.diagnostics import ranks
from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import ObjectTable, object_table
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.declarations import Curve, Lab, Plane, PlotView, PredictedCurve, Preset, Side, sigma
from gyrostat.lab.runs import FEW_SEEDS
from gyrostat.theory import Condition

if TYPE_CHECKING:
    from gyrostat.papers.wang2023.settings import CompletionSetting

TARGET, NETWORK, DESCENT = "Target", "Network", "Descent"
WARM_UP_STEP = 0.03
MOST_WORK = 6_000_000
"""Steps of all runs together. Beyond them a window would wait for more than a few seconds."""

CONTROLS = (
    choice(
        "target",
        label="matrix",
        options=("2 × 2", "random"),
        group=TARGET,
        help="2 × 2: [[1, *], [ε, 1]] with * hidden",
    ),
    number(
        "epsilon",
        label="lower left entry",
        symbol="ε",
        default=0.25,
        low=0.05,
        high=1.0,
        step=0.01,
        group=TARGET,
        needs=("target", "2 × 2"),
    ),
    whole(
        "size",
        label="rows and columns",
        symbol="n",
        default=6,
        low=3,
        high=10,
        group=TARGET,
        needs=("target", "random"),
    ),
    whole("rank", label="rank", symbol="r", default=1, low=1, high=4, group=TARGET, needs=("target", "random")),
    number(
        "observed",
        label="share of entries seen",
        symbol="p",
        default=0.7,
        low=0.3,
        high=1.0,
        step=0.05,
        group=TARGET,
        needs=("target", "random"),
    ),
    whole("depth", label="layers", symbol="L", default=3, low=2, high=5, group=NETWORK),
    whole("width", label="hidden width", symbol="w", default=100, low=4, high=100, group=NETWORK),
    number("step_size", label="step size", symbol="η", default=0.2, low=0.01, high=0.6, group=DESCENT),
    number("ridge", label="ridge", symbol="λ", default=0.1, low=0.0005, high=0.3, group=DESCENT),
    whole("num_steps", label="steps", symbol="T", default=10_000, low=1000, high=30_000, step=1000, group=DESCENT),
    whole(
        "warm_up",
        label="small steps at first",
        symbol="t₀",
        default=500,
        low=0,
        high=2000,
        step=100,
        group=DESCENT,
        help="at most 0.03, because large ones diverge from a random start",
    ),
    choice(
        "schedule",
        label="schedule",
        options=("constant", "annealed", "periodic"),
        group=DESCENT,
        help="periodic: quiet phases, then loud ones with η and λ",
    ),
    whole(
        "anneal_at",
        label="switch to η/10, λ/100 at",
        symbol="t₁",
        default=5000,
        low=0,
        high=30_000,
        step=500,
        group=DESCENT,
        needs=("schedule", "annealed"),
    ),
    whole(
        "period",
        label="length of a phase",
        symbol="P",
        default=1000,
        low=100,
        high=5000,
        step=100,
        group=DESCENT,
        help="quiet: a quarter of η, a hundredth of λ",
        needs=("schedule", "periodic"),
    ),
    whole("seeds", label="seeds", symbol="n", default=16, low=1, high=64, group=DESCENT),
    choice("view", label="view", options=("rank", "singular values", "loss")),
)

# --------------------------------------------------------------------------------------- what is run and drawn


def check(s: Setting) -> None:
    """Refuse a rank that the matrix cannot have, and runs that take too long for sliders."""
    if s["target"] == "random" and s["rank"] > s["size"]:
        raise GyrostatError(f"rank must be at most size={s['size']}; got {s['rank']}.")
    work = s["num_steps"] * s["seeds"] * (1 if s["target"] == "2 × 2" else s["size"])
    if work > MOST_WORK:
        raise GyrostatError(
            f"num_steps={s['num_steps']} with seeds={s['seeds']} takes too long for a live slider: lower one of them."
        )


def _observed_pairs(s: Setting) -> list[list[int]]:
    """The entries that are seen. A larger share adds entries and keeps the others."""
    if s["target"] == "2 × 2":
        return [[0, 0], [1, 0], [1, 1]]
    n = s["size"]
    order = np.random.default_rng(0).permutation(n * n)[: max(round(s["observed"] * n * n), 1)]
    return [[int(i) // n, int(i) % n] for i in sorted(order)]


def _environments(s: Setting) -> ObjectTable:
    if s["target"] == "2 × 2":
        eps = s["epsilon"]
        return object_table("RectangularEnvironments.of", matrix=[[1.0, 1 / eps], [eps, 1.0]])
    return object_table(
        "RandomRectangular", rows=s["size"], columns=s["size"], rank=s["rank"], values=[float(s["size"])] * s["rank"]
    )


def _schedule(s: Setting) -> ObjectTable:
    """The schedules of the paper: constant in Figure 1, annealed in Figures 2 and 3, periodic in Figure 4."""
    eta, ridge = s["step_size"], s["ridge"]
    main = object_table("Constant", step_size=eta, ridge=ridge)
    if s["schedule"] == "periodic":
        quiet = object_table("Constant", step_size=eta / 4, ridge=ridge / 100)
        main = object_table("Periodic", phases=[[s["period"], quiet], [s["period"], main]])
    warm = object_table("WarmUp", num_steps=s["warm_up"], step_size=WARM_UP_STEP, then=main)
    if s["schedule"] != "annealed":
        return warm
    low = object_table("Constant", step_size=eta / 10, ridge=ridge / 100)
    return object_table("Annealing", high=warm, low=low, at=s["anneal_at"])


def sides(s: Setting) -> list[Side]:
    model = object_table("DeepLinear", depth=s["depth"], width=s["width"])
    descent = object_table("RidgeDescent", step_size=_schedule(s), model=model, start=object_table("Orthogonal"))

    def problem(batch_size: int | None) -> ObjectTable:
        entries = object_table("Entries", pairs=_observed_pairs(s), batch_size=batch_size)
        return object_table("Problem", environments=_environments(s), measurements=entries)

    return [
        Side(name="sgd", title="One entry per step (SGD)", algorithm=descent, problem=problem(1)),
        Side(name="gd", title="All entries at every step (GD)", algorithm=descent, problem=problem(None)),
    ]


def views(s: Setting) -> list[PlotView]:
    components = range(2 if s["target"] == "2 × 2" else min(s["size"], 4))
    return [
        PlotView(
            name="rank",
            title="Second over first singular value",
            curves=(Curve("singular_ratio", "σ₂ / σ₁"),),
            label="σ₂ / σ₁",
            log=True,
        ),
        PlotView(
            name="singular values",
            title="Singular values",
            curves=tuple(Curve("singular_values", sigma(i), component=i) for i in components),
            label="singular values of A",
            log=True,
        ),
        PlotView(
            name="loss",
            title="Distance to the whole matrix",
            curves=(Curve("distance", "loss", half_square=True),),
            label="‖A − A*‖² / 2",
            log=True,
        ),
    ]


def program(s: Setting) -> tuple:
    names = ("target", "size", "rank", "observed") if s["target"] == "random" else ("target",)
    return (*(s[name] for name in (*names, "depth", "width", "schedule", "view")), s["seeds"] <= FEW_SEEDS)


# ----------------------------------------------------------------------------------------- what the theory says


@functools.lru_cache(maxsize=256)
def _fold(epsilon: float, depth: int) -> float:
    """In weight-decay units, which are four times those of the main text."""
    return 4 * theory.fold(epsilon, depth).ridge


def _has_fold(s: Setting) -> bool:
    return s["target"] == "2 × 2" and s["depth"] >= 3


def conditions(s: Setting) -> list[Condition]:
    stable = Condition("steps stable against the ridge", "ours", s["step_size"] * s["ridge"], "<", 2.0, "η λ < 2")
    if not _has_fold(s):
        return [stable]
    fold = _fold(s["epsilon"], s["depth"])
    source = "Wang 2023, section 3.1"
    return [Condition("a rank-2 minimum exists", source, s["ridge"], "<", fold, "λ below the fold"), stable]


def headline(s: Setting) -> str:
    """Where the fold is, and what that means for the ridge."""
    if not _has_fold(s):
        return "No prediction: the fold is known for the 2 × 2 matrix with three layers or more."
    fold = _fold(s["epsilon"], s["depth"])
    if s["ridge"] >= fold:
        fate = "rank 2 cannot last"
    else:
        fate = f"SGD jumps to rank 1 {'sooner or later' if _near(s) else 'rarely'}, GD does not"
    return f"Prediction: {fate}; the fold is at λ = {fold:.3g}. No theorem says when a jump comes."


def _near(s: Setting) -> bool:
    """Whether the ridge is so near the fold that noise carries SGD over the barrier."""
    return s["ridge"] > 0.5 * _fold(s["epsilon"], s["depth"])


def sentences(s: Setting) -> list[str]:
    if not _has_fold(s):
        return ["The fold of the rank-2 minimum is known for the 2 × 2 matrix with three layers or more."]
    fold = _fold(s["epsilon"], s["depth"])
    if s["ridge"] >= fold:
        return [f"The ridge is above the fold, λ = {fold:.3g}: rank 2 cannot last, with noise or without."]
    share = s["ridge"] / fold
    near = "near it, where noise makes SGD jump to rank 1 sooner or later"
    return [
        f"The fold is at λ = {fold:.3g}; the ridge is {share:.0%} of it, "
        f"{near if _near(s) else 'far below it: jumps are rare'}.",
        "GD stays at rank 2: it does not cross the barrier that noise crosses.",
        "A jump is one-way: after it σ₂ dies out, at the rate of the ridge and a little more.",
    ]


def predicted(s: Setting, view: str, steps: np.ndarray) -> list[PredictedCurve]:
    """None: the theory says where rank 2 ends, not along which curve."""
    return []


OUTCOMES = ("rank 1", "rank 2 or more", "rank 0, or diverged")


def final_rank(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Which of ``OUTCOMES`` a run has."""
    end = values["singular_values"][:, -1]
    rank = np.where(np.isfinite(end).all(axis=-1), ranks(end), 0)
    return np.where(rank == 0, 2, np.where(rank == 1, 0, 1))


def boundary(s: Setting, across: np.ndarray, up: np.ndarray) -> tuple[str, list[float], list[float]] | None:
    if not _has_fold(s):
        return None
    fold = _fold(s["epsilon"], s["depth"])
    return "fold of the rank-2 minimum", [fold, fold], [float(up[0]), float(up[-1])]


# ------------------------------------------------------------------------------------------ the paper's figures


def _figure(setting: CompletionSetting, **more: Any) -> dict[str, Any]:
    step_size, ridge = setting.high
    values = {"epsilon": setting.epsilon, "depth": setting.depth, "step_size": step_size, "ridge": ridge}
    return {**values, "num_steps": setting.num_steps, **more}


def presets() -> list[Preset]:
    from gyrostat.papers.wang2023 import settings as wang

    switch, (three, four) = {"schedule": "annealed", "anneal_at": wang.FIGURE2_SWITCH}, wang.FIGURE2_DEPTHS
    low = f"After the switch the figure has η = {wang.FIGURE2.low[0]:g}; here it is a tenth of the step size before."
    length = wang.FIGURE3_SWITCHES[4]
    return [
        Preset(
            name="wang2023/fig1",
            title="A jump from rank 2 to rank 1",
            values=_figure(wang.FIGURE1),
            note="The figure also branches off runs with little noise, and runs SGD without replacement.",
        ),
        Preset(
            name="wang2023/fig2-L3",
            title="Depth 3 does not jump at ε = 0.1",
            values=_figure(replace(wang.FIGURE2, depth=three), **switch),
            note=low,
        ),
        Preset(
            name="wang2023/fig2-L4",
            title="Depth 4 jumps at ε = 0.1",
            values=_figure(replace(wang.FIGURE2, depth=four), **switch),
            note=low,
        ),
        Preset(
            name="wang2023/fig3",
            title="An easier matrix, annealed",
            values=_figure(wang.figure3(wang.FIGURE3_EPSILONS[5], length), schedule="annealed", anneal_at=length),
            note="The figure compares seven ε and six lengths of the noisy phase.",
        ),
        Preset(
            name="wang2023/fig4",
            title="Quiet and loud phases alternate",
            values=_figure(wang.FIGURE4, schedule="periodic", period=wang.FIGURE4_PERIODS[0]),
            note="The paper does not print the length of a phase.",
        ),
    ]


COMPLETION = Lab(
    name="completion",
    title="Deep completion",
    lead="A deep linear network with a ridge fills in a matrix: noise makes it jump to a lower rank, and never back.",
    controls=CONTROLS,
    check=check,
    sides=sides,
    views=views,
    program=program,
    conditions=conditions,
    headline=headline,
    sentences=sentences,
    predicted=predicted,
    plane=Plane(
        across="ridge",
        up="step_size",
        side="sgd",
        title="How most runs end (SGD)",
        label="runs",
        outcomes=OUTCOMES,
        record=("singular_values",),
        outcome=final_rank,
        boundary=boundary,
    ),
    presets=presets,
)
