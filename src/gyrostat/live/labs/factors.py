"""Factorisation and sensing: one factor, two factors, and two with an imbalance step (Xiong 2024)."""

from __future__ import annotations

import numpy as np

from gyrostat import theory
from gyrostat.errors import GyrostatError
from gyrostat.imbalance import stable_range
from gyrostat.live.controls import Setting, choice, number, whole
from gyrostat.live.expression import call
from gyrostat.live.lab import Curve, Lab, Line, Plane, Preset, Side, View
from gyrostat.theory import Condition

TARGET, RUN, SEEN = "Target", "Descent", "Measurements"
MOST = 4e10
"""Multiplications of one side of a sensing run beyond which a window would wait for more than some seconds."""

CONTROLS = (
    whole("dimension", "dimension", "n", 50, 8, 200, group=TARGET),
    whole("rank", "rank", "r", 2, 1, 5, group=TARGET, compiles=True),
    number("condition", "condition number", "κ", 1.0, 1.0, 10.0, 0.1, group=TARGET, help="σ₁ / σᵣ; σ₁ is 1"),
    whole("width", "columns", "k", 4, 1, 10, group=RUN, compiles=True, help="k > r: more than needed"),
    number("step_size", "step size", "η", 0.1, 0.002, 0.9, group=RUN),
    number("init_scale", "start", "α", 0.2, 0.01, 1.0, group=RUN),
    whole("num_steps", "steps", "T", 1000, 100, 5000, 100, group=RUN),
    number("step_at", "imbalance step at", "t/T", 0.3, 0.0, 0.9, 0.05, group=RUN),
    number("beta", "size of the imbalance step", "β", 1.0, 0.1, 3.0, 0.05, group=RUN),
    choice("measurements", "measurements", ("factorisation", "sensing"), group=SEEN, compiles=True),
    number(
        "per_row",
        "measurements per dimension",
        "m/n",
        14.0,
        4.0,
        30.0,
        1.0,
        group=SEEN,
        compiles=True,
        needs=("measurements", "sensing"),
    ),
    whole("seeds", "seeds", "", 16, 1, 64, group=SEEN),
    choice("view", "view", ("loss", "loss, log time", "singular values", "imbalance"), compiles=True),
)


def _values(s: Setting) -> list[float]:
    return np.linspace(1.0, 1 / s["condition"], s["rank"]).tolist()


def sides(s: Setting) -> list[Side]:
    seen = call("Identity")
    if s["measurements"] == "sensing":
        seen = call("Dense", round(s["per_row"] * s["dimension"]), design=0, precision="single")
    problem = call("Problem", call("Environments.diagonal", s["dimension"], _values(s)), seen)
    options = {"width": s["width"], "start": s["init_scale"]}
    event = call("ImbalanceStep", at=round(s["step_at"] * s["num_steps"]), beta=s["beta"])
    return [
        Side(
            "symmetric", "One factor, X Xᵀ", call("GradientDescent", s["step_size"], symmetric=True, **options), problem
        ),
        Side("asymmetric", "Two factors, F Gᵀ", call("GradientDescent", s["step_size"], **options), problem),
        Side(
            "stepped",
            "F Gᵀ with an imbalance step",
            call("GradientDescent", s["step_size"], **options, events=[event]),
            problem,
        ),
    ]


def check(s: Setting) -> None:
    """Refuse a sensing run that takes too long to move sliders with, and an imbalance step that makes descent unstable."""
    work = s["per_row"] * s["dimension"] ** 3 * s["num_steps"] * s["seeds"]
    if s["measurements"] == "sensing" and work > MOST:
        most = max(int(s["seeds"] * MOST / work), 1)
        raise GyrostatError(
            f"sensing with dimension={s['dimension']}, num_steps={s['num_steps']} and seeds={s['seeds']} takes too long "
            f"to move sliders with: lower one of them (seeds to {most}, say), or use gyrostat.run."
        )


def views(s: Setting) -> list[View]:
    loss = (Curve("distance", "loss", half_square=True),)
    values = tuple(Curve("singular_values", f"σ{i + 1}", i) for i in range(min(s["width"], s["dimension"])))
    return [
        View("loss", "Loss", loss, "‖A − A★‖² / 2", log=True, together=True),
        View("loss, log time", "Loss", loss, "‖A − A★‖² / 2", log=True, log_time=True, together=True),
        View("singular values", "Singular values", values, "singular values of A", log=True),
        View("imbalance", "Imbalance", (Curve("imbalance", "‖FᵀF − GᵀG‖"),), "‖FᵀF − GᵀG‖", together=True),
    ]


def program(s: Setting) -> tuple:
    names = ("rank", "width", "measurements", "view", "dimension", "per_row")
    return tuple(s[n] for n in names)


def conditions(s: Setting) -> list[Condition]:
    eta, alpha, n, k = s["step_size"], s["init_scale"], s["dimension"], s["width"]
    low, high = stable_range(eta, 1.0)
    values = np.array(_values(s))
    one = theory.theorem31_conditions(eta, alpha, values, k, n)
    two = theory.theorem42_conditions(eta, alpha, values, k, n, 0.0)
    kept = [c for c in two if c.name != "isometry"]
    return [
        Condition("columns enough", "ours", float(k), ">=", float(s["rank"]), "k ≥ r, or A★ cannot be reached"),
        Condition(
            "β keeps descent stable", "Xiong 2024, section 5", s["beta"], "in", (low, high), "η (β² + (σ₁/β)²) < 2"
        ),
        *(_renamed(c, "X Xᵀ") for c in one),
        *(_renamed(c, "F Gᵀ") for c in kept),
    ]


def _renamed(c: Condition, model: str) -> Condition:
    return Condition(f"{model}: {c.name}", c.source, c.value, c.relation, c.bound, c.note)


def sentences(s: Setting) -> list[str]:
    eta, k, r = s["step_size"], s["width"], s["rank"]
    least = min(_values(s))
    if k < r:
        return [f"k = {k} columns cannot make a matrix of rank {r}: no side reaches A★."]
    slow = (
        f"X Xᵀ: k > r, so the loss falls as 1/t² only, towards (k − r)/(32 η² t²) = {_tail(s, s['num_steps']):.2g} at the end."
        if k > r
        else f"X Xᵀ: k = r, so the loss falls by the factor exp(−{theory.exact_width_rate(eta, least):.3g}) per step."
    )
    after = (
        f"After the imbalance step: at least exp(−{theory.theorem51_rate(eta, s['beta']):.3g}) per step, whatever α."
    )
    two = "F Gᵀ: linear, at a rate that grows as α²." if k > r else "F Gᵀ: linear, at a rate that does not depend on α."
    return [slow, two, after]


def _tail(s: Setting, t: float) -> float:
    return float(theory.symmetric_tail(s["step_size"], s["width"], s["rank"], np.array([t]))[0]) / 2


def lines(s: Setting, view: str, steps: np.ndarray) -> list[Line]:
    """The 1/t² law of the symmetric model, where it has begun."""
    if not view.startswith("loss") or s["width"] <= s["rank"]:
        return []
    late = steps[steps >= max(10, 2 / s["step_size"])]
    y = theory.symmetric_tail(s["step_size"], s["width"], s["rank"], late) / 2
    return [Line("distance_loss", "symmetric", "1/t² law", late.tolist(), y.tolist())]


def _final(values: dict[str, np.ndarray]) -> float:
    end = values["distance"][:, -1] ** 2 / 2
    return float(np.median(np.where(np.isfinite(end), end, np.inf)))


def _boundary(s: Setting, across: np.ndarray, up: np.ndarray) -> tuple[str, list[float], list[float]] | None:
    """At balanced ends the steepest curvature is 2 σ₁, so that steps of 1/σ₁ and more cannot settle there."""
    return "stable below η = 1/σ₁", [float(across[0]), float(across[-1])], [1.0, 1.0]


FACTORS = Lab(
    "factors",
    "One factor or two",
    "Gradient descent on X Xᵀ and on F Gᵀ with more columns than the rank: which one slows down, and what one step changes.",
    CONTROLS,
    sides,
    views,
    program,
    conditions,
    sentences,
    lines,
    Plane(
        "init_scale",
        "step_size",
        "asymmetric",
        "Loss of F Gᵀ at the end",
        "loss",
        True,
        _final,
        ("distance",),
        _boundary,
    ),
    (
        Preset(
            "xiong2024/fig1.1",
            "One factor slows down, two do not",
            {"width": 3, "init_scale": 0.5, "step_size": 0.01, "num_steps": 5000, "view": "loss, log time"},
        ),
        Preset(
            "xiong2024/fig1.2a",
            "k = r: the rate is free of α",
            {"width": 2, "init_scale": 0.2, "step_size": 0.2, "num_steps": 300, "measurements": "sensing", "seeds": 4},
        ),
        Preset(
            "xiong2024/fig1.2b",
            "k > r: it is not",
            {"width": 4, "init_scale": 0.2, "step_size": 0.2, "num_steps": 600, "measurements": "sensing", "seeds": 4},
        ),
        Preset(
            "xiong2024/fig1.2c",
            "One imbalance step sets it free",
            {
                "width": 4,
                "init_scale": 0.05,
                "step_size": 0.2,
                "num_steps": 600,
                "measurements": "sensing",
                "seeds": 4,
                "step_at": 0.5,
            },
        ),
        Preset(
            "xiong2024/figI1",
            "One factor against two in sensing",
            {
                "width": 4,
                "init_scale": 0.5,
                "step_size": 0.2,
                "num_steps": 400,
                "measurements": "sensing",
                "per_row": 24.0,
                "seeds": 4,
            },
        ),
        Preset(
            "xiong2024/figI2",
            "Ill-conditioned targets",
            {"width": 4, "condition": 5.0, "init_scale": 0.2, "step_size": 0.2, "num_steps": 2000},
        ),
        Preset(
            "xiong2024/figI3", "A small start", {"width": 4, "init_scale": 0.05, "step_size": 0.2, "num_steps": 3000}
        ),
        Preset(
            "xiong2024/figI4",
            "Rank five",
            {"rank": 5, "width": 8, "init_scale": 0.2, "step_size": 0.2, "num_steps": 2000},
        ),
        Preset(
            "xiong2024/figI5",
            "Starts of every scale: a large one",
            {"width": 4, "init_scale": 1.0, "step_size": 0.2, "num_steps": 1000},
        ),
    ),
    check,
)
