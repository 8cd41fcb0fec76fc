"""Deep completion: SGD, which jumps to a lower rank, against gradient descent, which stays (Wang 2023)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gyrostat.diagnostics import ranks
from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import ObjectTable, object_table
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.declarations import Boundary, Curve, Lab, Plane, PlotView, Preset, Side, sigma
from gyrostat.theory import Condition, wang2023

if TYPE_CHECKING:
    from gyrostat.papers.wang2023.settings import CompletionSetting

WARM_UP_STEP = 0.03
MOST_WORK = 6_000_000
"""Steps of all runs together. Beyond them a window would wait for more than a few seconds."""


# --------------------------------------------------------------------------------------- what is run and drawn


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


# ----------------------------------------------------------------------------------------- what the theory says


@functools.lru_cache(maxsize=256)
def _fold(epsilon: float, depth: int) -> float:
    """In weight-decay units, which are four times those of the main text."""
    return 4 * wang2023.fold(epsilon, depth).ridge


def _has_fold(s: Setting) -> bool:
    return s["target"] == "2 × 2" and s["depth"] >= 3


def _near(s: Setting) -> bool:
    """Whether the ridge is so near the fold that noise carries SGD over the barrier."""
    return s["ridge"] > 0.5 * _fold(s["epsilon"], s["depth"])


def _figure(setting: CompletionSetting, **more: Any) -> dict[str, Any]:
    step_size, ridge = setting.high
    values = {"epsilon": setting.epsilon, "depth": setting.depth, "step_size": step_size, "ridge": ridge}
    return {**values, "num_steps": setting.num_steps, **more}


class DeepCompletion(Lab):
    """SGD beside gradient descent on a deep linear network with a ridge."""

    name = "completion"
    title = "Deep completion"
    lead = "A deep linear network with a ridge fills in a matrix: noise makes it jump to a lower rank, and never back."
    groups: ClassVar = {
        "Target": [
            choice("target", "matrix", ("2 × 2", "random"), help="2 × 2: [[1, *], [ε, 1]] with * hidden"),
            number("epsilon", "lower left entry", "ε", 0.25, 0.05, 1.0, step=0.01, needs=("target", "2 × 2")),
            choice("size", "rows and columns", (4, 6, 8, 10), symbol="n", default=6, needs=("target", "random")),
            whole("rank", "rank", "r", 1, 1, 4, compiles=True, needs=("target", "random")),
            number(
                "observed",
                "share of entries seen",
                "p",
                0.7,
                0.3,
                1.0,
                step=0.05,
                compiles=True,
                needs=("target", "random"),
            ),
        ],
        "Network": [
            choice("depth", "layers", (2, 3, 4, 5), symbol="L", default=3),
            whole("width", "hidden width", "w", 100, 4, 100, compiles=True),
        ],
        "Descent": [
            number("step_size", "step size", "η", 0.2, 0.01, 0.6),
            number("ridge", "ridge", "λ", 0.1, 0.0005, 0.3),
            whole("num_steps", "steps", "T", 10_000, 1000, 30_000, step=1000),
            whole(
                "warm_up", "small steps at first", "t₀", 500, 0, 2000, step=100, help="large ones diverge at the start"
            ),
            choice(
                "schedule",
                "schedule",
                ("constant", "annealed", "periodic"),
                help="periodic: quiet phases, then loud ones",
            ),
            whole("anneal_at", "η/10, λ/100 from", "t₁", 5000, 0, 30_000, step=500, needs=("schedule", "annealed")),
            whole(
                "period",
                "length of a phase",
                "P",
                1000,
                100,
                5000,
                step=100,
                help="quiet: η/4, λ/100",
                needs=("schedule", "periodic"),
            ),
            whole("seeds", "seeds", "n", 16, 1, 64),
        ],
        "": [
            choice("view", "view", ("rank", "singular values", "loss")),
        ],
    }
    plane = Plane(
        across="ridge",
        up="step_size",
        side="sgd",
        title="SGD ends at rank 1",
        label="share of runs",
        low=0.0,
        high=1.0,
        record=("singular_values",),
    )

    def check(self, s: Setting) -> None:
        """Refuse a rank that the matrix cannot have, and runs that take too long for sliders."""
        if s["target"] == "random" and s["rank"] > s["size"]:
            raise GyrostatError(f"rank must be at most size={s['size']}; got {s['rank']}.")
        work = s["num_steps"] * s["seeds"] * (1 if s["target"] == "2 × 2" else s["size"])
        if work > MOST_WORK:
            raise GyrostatError(
                f"num_steps={s['num_steps']} with seeds={s['seeds']} takes too long for a live slider: lower one of them."
            )

    def sides(self, s: Setting) -> list[Side]:
        model = object_table("DeepLinear", depth=s["depth"], width=s["width"])
        descent = object_table("RidgeDescent", step_size=_schedule(s), model=model, start=object_table("Orthogonal"))

        def problem(batch_size: int | None) -> ObjectTable:
            entries = object_table("Entries", pairs=_observed_pairs(s), batch_size=batch_size)
            return object_table("Problem", environments=_environments(s), measurements=entries)

        return [
            Side(name="sgd", title="One entry per step (SGD)", algorithm=descent, problem=problem(1)),
            Side(name="gd", title="All entries at every step (GD)", algorithm=descent, problem=problem(None)),
        ]

    def is_slow(self, s: Setting) -> bool:
        return s["target"] == "random"

    def views(self, s: Setting) -> list[PlotView]:
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

    def conditions(self, s: Setting) -> list[Condition]:
        stable = Condition("steps stable against the ridge", "ours", s["step_size"] * s["ridge"], "<", 2.0, "η λ < 2")
        if not _has_fold(s):
            return [stable]
        fold = _fold(s["epsilon"], s["depth"])
        source = "Wang 2023, section 3.1"
        return [Condition("a rank-2 minimum exists", source, s["ridge"], "<", fold, "λ below the fold"), stable]

    def headline(self, s: Setting) -> str:
        """Where the fold is, and what that means for the ridge."""
        if not _has_fold(s):
            return "No prediction: the fold is known for the 2 × 2 matrix with three layers or more."
        fold = _fold(s["epsilon"], s["depth"])
        if s["ridge"] >= fold:
            fate = "rank 2 cannot last"
        else:
            fate = f"SGD jumps to rank 1 {'sooner or later' if _near(s) else 'rarely'}, GD does not"
        return f"Prediction: {fate}; the fold is at λ = {fold:.3g}. No theorem says when a jump comes."

    def sentences(self, s: Setting) -> list[str]:
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

    def outcome(self, values: Mapping[str, np.ndarray]) -> float:
        """The share of runs that end at rank 1."""
        end = values["singular_values"][:, -1]
        return float(((ranks(end) == 1) & np.isfinite(end).all(axis=-1)).mean())

    def boundary(self, s: Setting, across: np.ndarray, up: np.ndarray) -> Boundary | None:
        if not _has_fold(s):
            return None
        fold = _fold(s["epsilon"], s["depth"])
        return "fold of the rank-2 minimum", [fold, fold], [float(up[0]), float(up[-1])]

    def presets(self) -> list[Preset]:
        from gyrostat.papers.wang2023 import settings as wang

        switch, (three, four) = {"schedule": "annealed", "anneal_at": wang.FIGURE2_SWITCH}, wang.FIGURE2_DEPTHS
        low = (
            f"After the switch the figure has η = {wang.FIGURE2.low[0]:g}; here it is a tenth of the step size before."
        )
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
