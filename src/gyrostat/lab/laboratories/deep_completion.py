"""Deep completion: SGD, which jumps to a lower rank, against gradient descent, which stays (Wang 2023)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from gyrostat.diagnostics import ranks
from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import ObjectTable, object_table
from gyrostat.figures.declarations import Line
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.declarations import Curve, Lab, Plane, PlotView, Side, singular_values_view
from gyrostat.theory import Condition, wang2023

SMALL, RANDOM = "2 × 2", "random"
SCHEDULES = ("constant", "annealed", "periodic")
WARM_UP_STEP = 0.03
MOST_WORK = 6_000_000
"""Steps of all runs together. Beyond them a window would wait for more than a few seconds."""
IF_RANDOM, IF_PERIODIC = ("target", RANDOM), ("schedule", "periodic")


class DeepCompletion(Lab):
    """SGD beside gradient descent on a deep linear network with a ridge."""

    name = "completion"
    title = "Deep completion"
    lead = "A deep linear network with a ridge fills in a matrix: noise makes it jump to a lower rank, and never back."
    groups: ClassVar = {
        "Target": [
            choice("target", "matrix", "", (SMALL, RANDOM), help="2 × 2: [[1, *], [ε, 1]] with * hidden"),
            number("epsilon", "lower left entry", "ε", 0.25, 0.05, 1.0, step=0.01, needs=("target", SMALL)),
            choice("size", "rows and columns", "n", (4, 6, 8, 10), 6, needs=IF_RANDOM),
            whole("rank", "rank", "r", 1, 1, 4, compiles=True, needs=IF_RANDOM),
            number("observed", "share of entries seen", "p", 0.7, 0.3, 1.0, step=0.05, compiles=True, needs=IF_RANDOM),
        ],
        "Network": [
            choice("depth", "layers", "L", (2, 3, 4, 5), 3),
            whole("width", "hidden width", "w", 100, 4, 100, compiles=True),
        ],
        "Descent": [
            number("step_size", "step size", "η", 0.2, 0.01, 0.6),
            number("ridge", "ridge", "λ", 0.1, 0.0005, 0.3),
            whole("num_steps", "steps", "T", 10_000, 1000, 30_000, step=1000),
            whole(
                "warm_up", "small steps at first", "t₀", 500, 0, 2000, step=100, help="large ones diverge at the start"
            ),
            choice("schedule", "schedule", "", SCHEDULES, help="periodic: quiet phases, then loud ones"),
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
                needs=IF_PERIODIC,
            ),
            whole("seeds", "seeds", "n", 16, 1, 64),
        ],
        "": [choice("view", "view", "", ("rank", "singular values", "loss"))],
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
        if s["target"] == RANDOM and s["rank"] > s["size"]:
            raise GyrostatError(f"rank must be at most size={s['size']}; got {s['rank']}.")
        if s["num_steps"] * s["seeds"] * (1 if s["target"] == SMALL else s["size"]) > MOST_WORK:
            raise GyrostatError(
                f"num_steps={s['num_steps']} with seeds={s['seeds']} takes too long for a live slider: lower one of them."
            )

    def sides(self, s: Setting) -> list[Side]:
        if s["target"] == SMALL:
            matrix = [[1.0, 1 / s["epsilon"]], [s["epsilon"], 1.0]]
            environments, pairs = object_table("RectangularEnvironments.of", matrix=matrix), [[0, 0], [1, 0], [1, 1]]
        else:
            n, values = s["size"], [float(s["size"])] * s["rank"]
            environments = object_table("RandomRectangular", rows=n, columns=n, rank=s["rank"], values=values)
            # A larger share adds entries and keeps the others.
            seen = np.random.default_rng(0).permutation(n * n)[: max(round(s["observed"] * n * n), 1)]
            pairs = [[int(i) // n, int(i) % n] for i in sorted(seen)]
        model = object_table("DeepLinear", depth=s["depth"], width=s["width"])
        descent = object_table("RidgeDescent", step_size=_schedule(s), model=model, start=object_table("Orthogonal"))

        def problem(batch_size: int | None) -> ObjectTable:
            entries = object_table("Entries", pairs=pairs, batch_size=batch_size)
            return object_table("Problem", environments=environments, measurements=entries)

        return [
            Side("sgd", "One entry per step (SGD)", descent, problem(1)),
            Side("gd", "All entries at every step (GD)", descent, problem(None)),
        ]

    def is_slow(self, s: Setting) -> bool:
        return s["target"] == RANDOM

    def views(self, s: Setting) -> list[PlotView]:
        ratio, loss = Curve("singular_ratio", "σ₂ / σ₁"), Curve("distance", "loss", half_square=True)
        return [
            PlotView("rank", "Second over first singular value", "σ₂ / σ₁", [ratio], log=True),
            singular_values_view(2 if s["target"] == SMALL else min(s["size"], 4)),
            PlotView("loss", "Distance to the whole matrix", "‖A − A*‖² / 2", [loss], log=True),
        ]

    def conditions(self, s: Setting) -> list[Condition]:
        stable = Condition("steps stable against the ridge", "ours", s["step_size"] * s["ridge"], "<", 2.0, "η λ < 2")
        if (fold := _fold(s)) is None:
            return [stable]
        source = "Wang 2023, section 3.1"
        return [Condition("a rank-2 minimum exists", source, s["ridge"], "<", fold, "λ below the fold"), stable]

    def headline(self, s: Setting) -> str:
        """Where the fold is, and what that means for the ridge."""
        if (fold := _fold(s)) is None:
            return "No prediction: the fold is known for the 2 × 2 matrix with three layers or more."
        jumps = "sooner or later" if _is_near(s, fold) else "rarely"
        fate = "rank 2 cannot last" if s["ridge"] >= fold else f"SGD jumps to rank 1 {jumps}, GD does not"
        return f"Prediction: {fate}; the fold is at λ = {fold:.3g}. No theorem says when a jump comes."

    def sentences(self, s: Setting) -> list[str]:
        if (fold := _fold(s)) is None:
            return ["The fold of the rank-2 minimum is known for the 2 × 2 matrix with three layers or more."]
        if s["ridge"] >= fold:
            return [f"The ridge is above the fold, λ = {fold:.3g}: rank 2 cannot last, with noise or without."]
        near = "near it, where noise makes SGD jump to rank 1 sooner or later"
        where = near if _is_near(s, fold) else "far below it: jumps are rare"
        return [
            f"The fold is at λ = {fold:.3g}; the ridge is {s['ridge'] / fold:.0%} of it, {where}.",
            "GD stays at rank 2: it does not cross the barrier that noise crosses.",
            "A jump is one-way: after it σ₂ dies out, at the rate of the ridge and a little more.",
        ]

    def outcome(self, values: Mapping[str, np.ndarray]) -> float:
        """The share of runs that end at rank 1."""
        return float((ranks(values["singular_values"][:, -1]) == 1).mean())  # no rank is 1 where a run diverged

    def boundary(self, s: Setting, across: np.ndarray, up: np.ndarray) -> Line | None:
        if (fold := _fold(s)) is None:
            return None
        return Line([fold, fold], up[[0, -1]].tolist(), "fold of the rank-2 minimum", role="theory")


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


_computed_fold = functools.lru_cache(maxsize=256)(wang2023.fold)


def _fold(s: Setting) -> float | None:
    """The ridge from which on there is no rank-2 minimum; None where it is not known.

    In weight-decay units, which are four times those of the main text.
    """
    is_known = s["target"] == SMALL and s["depth"] >= 3
    return 4 * _computed_fold(s["epsilon"], s["depth"]).ridge if is_known else None


def _is_near(s: Setting, fold: float) -> bool:
    """Whether the ridge is so near the fold that noise carries SGD over the barrier."""
    return s["ridge"] > 0.5 * fold
