"""Deep linear completion with a ridge: SGD, which jumps to a lower rank, beside descent, which stays (Wang 2023)."""

from __future__ import annotations

import functools

import numpy as np

from gyrostat import theory
from gyrostat.diagnostics import ranks
from gyrostat.errors import GyrostatError
from gyrostat.live.controls import Setting, choice, number, whole
from gyrostat.live.expression import Call, call
from gyrostat.live.lab import Curve, Lab, Line, Plane, Preset, Side, View
from gyrostat.theory import Condition

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
    whole("anneal_at", "switch to η/10, λ/100 at", "t₁", 30_000, 0, 30_000, 500, group=RUN),
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


def _places(s: Setting) -> Call:
    if s["target"] == "2 × 2":
        eps = s["epsilon"]
        return call("RectangularEnvironments.of", [[1.0, 1 / eps], [eps, 1.0]])
    return call("RandomRectangular", s["size"], s["size"], rank=s["rank"], values=[float(s["size"])] * s["rank"])


def sides(s: Setting) -> list[Side]:
    eta, ridge = s["step_size"], s["ridge"]
    high = call("WarmUp", s["warm_up"], 0.03, then=call("Constant", eta, ridge))
    schedule = call("Annealing", high, call("Constant", eta / 10, ridge / 100), at=s["anneal_at"])
    descent = call("RidgeDescent", schedule, model=call("DeepLinear", s["depth"], s["width"]), start=call("Orthogonal"))
    one, all_of = (call("Problem", _places(s), call("Entries", _pairs(s), batch_size=b)) for b in (1, None))
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
    return tuple(s[n] for n in (*names, "depth", "width", "view"))


@functools.lru_cache(maxsize=256)
def _fold(epsilon: float, depth: int) -> float:
    """In weight-decay units, which are four times those of the main text."""
    return 4 * theory.fold(epsilon, depth).ridge


def _has_fold(s: Setting) -> bool:
    return s["target"] == "2 × 2" and s["depth"] >= 3


def conditions(s: Setting) -> list[Condition]:
    known = [Condition("steps stable against the ridge", "ours", s["step_size"] * s["ridge"], "<", 2.0, "η λ < 2")]
    if _has_fold(s):
        fold = _fold(s["epsilon"], s["depth"])
        known.insert(
            0, Condition("a rank-2 minimum exists", "Wang 2023, section 3.1", s["ridge"], "<", fold, "λ below the fold")
        )
    return known


def sentences(s: Setting) -> list[str]:
    if not _has_fold(s):
        return ["The fold of the rank-2 minimum is known for the 2 × 2 matrix with three layers or more."]
    fold = _fold(s["epsilon"], s["depth"])
    if s["ridge"] >= fold:
        return [f"The ridge is above the fold, λ = {fold:.3g}: rank 2 cannot last, with noise or without."]
    share = s["ridge"] / fold
    hope = (
        "near it, where noise makes SGD jump to rank 1 sooner or later"
        if share > 0.5
        else "far below it: jumps are rare"
    )
    return [
        f"The fold is at λ = {fold:.3g}; the ridge is {share:.0%} of it, {hope}.",
        "GD stays at rank 2: it does not cross the barrier that noise crosses.",
        "A jump is one-way: after it σ₂ dies out, at the rate of the ridge and a little more.",
    ]


def lines(s: Setting, view: str, steps: np.ndarray) -> list[Line]:
    """No curve is predicted, only where rank 2 ends."""
    return []


def _jumped(values: dict[str, np.ndarray]) -> float:
    return float(np.mean(ranks(values["singular_values"][:, -1]) == 1))


def _boundary(s: Setting, across: np.ndarray, up: np.ndarray) -> tuple[str, list[float], list[float]] | None:
    if not _has_fold(s):
        return None
    fold = _fold(s["epsilon"], s["depth"])
    return "fold of the rank-2 minimum", [fold, fold], [float(up[0]), float(up[-1])]


COMPLETION = Lab(
    "completion",
    "Deep completion",
    "A deep linear network with a ridge fills in a matrix: noise makes it jump to a lower rank, and never back.",
    CONTROLS,
    sides,
    views,
    program,
    conditions,
    sentences,
    lines,
    Plane(
        "ridge",
        "step_size",
        "sgd",
        "Runs that end at rank 1 (SGD)",
        "share of runs",
        False,
        _jumped,
        ("singular_values",),
        _boundary,
    ),
    (
        Preset("wang2023/fig1", "A jump from rank 2 to rank 1", {}),
        Preset(
            "wang2023/fig2-L3",
            "Depth 3 does not jump at ε = 0.1",
            {"epsilon": 0.1, "depth": 3, "step_size": 0.25, "anneal_at": 5000},
        ),
        Preset("wang2023/fig2-L4", "Depth 4 does", {"epsilon": 0.1, "depth": 4, "step_size": 0.25, "anneal_at": 5000}),
        Preset("wang2023/fig3", "An easier matrix, annealed", {"epsilon": 0.3, "anneal_at": 4000}),
        Preset("wang2023/fig4", "Large steps at ε = 0.2", {"epsilon": 0.2, "step_size": 0.4, "num_steps": 10_000}),
    ),
    check,
)
