"""What can be set of deep linear completion, and what is then run."""

from __future__ import annotations

import numpy as np

from gyrostat.errors import GyrostatError
from gyrostat.experiments.object_tables import ObjectTable, object_table
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.lab import Curve, Side, View

TARGET, NET, RUN = "Target", "Network", "Descent"
MOST = 6_000_000
"""Steps of all runs together beyond which a window would wait for more than some seconds."""

CONTROLS = (
    choice(
        "target",
        "matrix",
        ("2 × 2", "random"),
        group=TARGET,
        compiles=True,
        help="2 × 2: [[1, *], [ε, 1]] with * hidden",
    ),
    number("epsilon", "lower left entry", "ε", 0.25, 0.05, 1.0, 0.01, group=TARGET, needs=("target", "2 × 2")),
    whole("size", "rows and columns", "n", 6, 3, 10, group=TARGET, compiles=True, needs=("target", "random")),
    whole("rank", "rank", "r", 1, 1, 4, group=TARGET, compiles=True, needs=("target", "random")),
    number(
        "observed",
        "share of entries seen",
        "p",
        0.7,
        0.3,
        1.0,
        0.05,
        group=TARGET,
        compiles=True,
        needs=("target", "random"),
    ),
    whole("depth", "layers", "L", 3, 2, 5, group=NET, compiles=True),
    whole("width", "hidden width", "w", 100, 4, 100, 1, group=NET, compiles=True),
    number("step_size", "step size", "η", 0.2, 0.01, 0.6, group=RUN),
    number("ridge", "ridge", "λ", 0.1, 0.0005, 0.3, group=RUN),
    whole("num_steps", "steps", "T", 10_000, 1000, 30_000, 1000, group=RUN),
    whole(
        "warm_up",
        "small steps at first",
        "t₀",
        500,
        0,
        2000,
        100,
        group=RUN,
        help="at most 0.03, because large ones diverge from a random start",
    ),
    choice(
        "schedule",
        "schedule",
        ("constant", "annealed", "periodic"),
        group=RUN,
        compiles=True,
        help="periodic: quiet phases, then loud ones with η and λ",
    ),
    whole(
        "anneal_at", "switch to η/10, λ/100 at", "t₁", 5000, 0, 30_000, 500, group=RUN, needs=("schedule", "annealed")
    ),
    whole(
        "period",
        "length of a phase",
        "P",
        1000,
        100,
        5000,
        100,
        group=RUN,
        help="quiet: a quarter of η, a hundredth of λ",
        needs=("schedule", "periodic"),
    ),
    whole("seeds", "seeds", "n", 16, 1, 64, group=RUN),
    choice("view", "view", ("rank", "singular values", "loss"), compiles=True),
)


def _pairs(s: Setting) -> list[list[int]]:
    """The entries that are seen: with more of them, the same and some more."""
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
    """The three of the paper: Figure 1, Figures 2 and 3, Figure 4, whose length of a phase is not printed."""
    eta, ridge = s["step_size"], s["ridge"]
    loud = object_table("Constant", step_size=eta, ridge=ridge)
    if s["schedule"] == "periodic":
        quiet = object_table("Constant", step_size=eta / 4, ridge=ridge / 100)
        loud = object_table("Periodic", phases=[[s["period"], quiet], [s["period"], loud]])
    warm = object_table("WarmUp", num_steps=s["warm_up"], step_size=0.03, then=loud)
    if s["schedule"] != "annealed":
        return warm
    low = object_table("Constant", step_size=eta / 10, ridge=ridge / 100)
    return object_table("Annealing", high=warm, low=low, at=s["anneal_at"])


def sides(s: Setting) -> list[Side]:
    model = object_table("DeepLinear", depth=s["depth"], width=s["width"])
    descent = object_table("RidgeDescent", step_size=_schedule(s), model=model, start=object_table("Orthogonal"))
    one, all_of = (
        object_table(
            "Problem",
            environments=_environments(s),
            measurements=object_table("Entries", pairs=_pairs(s), batch_size=b),
        )
        for b in (1, None)
    )
    return [
        Side("sgd", "One entry per step (SGD)", descent, one),
        Side("gd", "All entries at every step (GD)", descent, all_of),
    ]


def check(s: Setting) -> None:
    if s["target"] == "random" and s["rank"] > s["size"]:
        raise GyrostatError(f"rank must be at most size={s['size']}; got {s['rank']}.")
    work = s["num_steps"] * s["seeds"] * (1 if s["target"] == "2 × 2" else s["size"])
    if work > MOST:
        raise GyrostatError(
            f"num_steps={s['num_steps']} with seeds={s['seeds']} takes too long to move sliders with: lower one of them."
        )


def views(s: Setting) -> list[View]:
    count = 2 if s["target"] == "2 × 2" else min(s["size"], 4)
    values = tuple(Curve("singular_values", f"σ{i + 1}", i) for i in range(count))
    return [
        View("rank", "Second over first singular value", (Curve("singular_ratio", "σ₂ / σ₁"),), "σ₂ / σ₁", log=True),
        View("singular values", "Singular values", values, "singular values of A", log=True),
        View(
            "loss",
            "Distance to the whole matrix",
            (Curve("distance", "loss", half_square=True),),
            "‖A − A★‖² / 2",
            log=True,
        ),
    ]


def program(s: Setting) -> tuple:
    names = ("target", "size", "rank", "observed") if s["target"] == "random" else ("target",)
    return tuple(s[n] for n in (*names, "depth", "width", "schedule", "view"))
