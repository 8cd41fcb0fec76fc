"""One factor or two: descent on X Xᵀ, on F Gᵀ, and on F Gᵀ with an imbalance step (Xiong 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat import theory
from gyrostat.algorithms.events import stable_range
from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import object_table
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.declarations import Curve, Lab, Plane, PlotView, PredictedCurve, Preset, Side, sigma
from gyrostat.lab.runs import FEW_SEEDS
from gyrostat.theory import Condition

if TYPE_CHECKING:
    from gyrostat.papers.xiong2024.settings import FactorSetting

TARGET, DESCENT, MEASUREMENTS = "Target", "Descent", "Measurements"
MOST_STEPS = 5000
MOST_WORK = 4e10
"""Multiplications of one side of a sensing run. Beyond them a window would wait for more than a few seconds."""

CONTROLS = (
    whole("dimension", label="dimension", symbol="n", default=50, low=8, high=200, group=TARGET),
    whole("rank", label="rank", symbol="r", default=2, low=1, high=5, group=TARGET),
    number(
        "condition",
        label="condition number",
        symbol="κ",
        default=1.0,
        low=1.0,
        high=10.0,
        step=0.1,
        group=TARGET,
        help="σ₁ / σᵣ; σ₁ is 1",
    ),
    whole(
        "width", label="columns", symbol="k", default=4, low=1, high=10, group=DESCENT, help="k > r: more than needed"
    ),
    number("step_size", label="step size", symbol="η", default=0.1, low=0.002, high=0.9, group=DESCENT),
    number("init_scale", label="start", symbol="α", default=0.2, low=0.01, high=1.0, group=DESCENT),
    whole("num_steps", label="steps", symbol="T", default=1000, low=100, high=MOST_STEPS, step=100, group=DESCENT),
    number(
        "step_at", label="imbalance step at", symbol="t/T", default=0.3, low=0.0, high=0.9, step=0.05, group=DESCENT
    ),
    number("beta", label="its size", symbol="β", default=1.0, low=0.1, high=3.0, step=0.05, group=DESCENT),
    choice("measurements", label="measurements", options=("factorisation", "sensing"), group=MEASUREMENTS),
    number(
        "per_row",
        label="measurements per dimension",
        symbol="m/n",
        default=14.0,
        low=4.0,
        high=40.0,
        step=1.0,
        group=MEASUREMENTS,
        needs=("measurements", "sensing"),
    ),
    whole("seeds", label="seeds", default=16, low=1, high=64, group=MEASUREMENTS),
    choice("view", label="view", options=("loss", "loss, log time", "singular values", "imbalance")),
)

# --------------------------------------------------------------------------------------- what is run and drawn


def check(s: Setting) -> None:
    """Refuse a sensing run that takes too long for sliders."""
    work = s["per_row"] * s["dimension"] ** 3 * s["num_steps"] * s["seeds"]
    if s["measurements"] == "sensing" and work > MOST_WORK:
        most = max(int(s["seeds"] * MOST_WORK / work), 1)
        raise GyrostatError(
            f"sensing with dimension={s['dimension']}, num_steps={s['num_steps']} and seeds={s['seeds']} takes too long "
            f"for live sliders: lower one of them (seeds to {most}, say), or use gyrostat.run."
        )


def _singular_values(s: Setting) -> list[float]:
    return np.linspace(1.0, 1 / s["condition"], s["rank"]).tolist()


def sides(s: Setting) -> list[Side]:
    measurements = object_table("Identity")
    if s["measurements"] == "sensing":
        count = round(s["per_row"] * s["dimension"])
        measurements = object_table("Dense", num_samples=count, design=0, precision="single")
    target = object_table("Environments.diagonal", dimension=s["dimension"], values=_singular_values(s))
    problem = object_table("Problem", environments=target, measurements=measurements)
    shared = {"step_size": s["step_size"], "width": s["width"], "start": s["init_scale"]}
    event = object_table("ImbalanceStep", at=round(s["step_at"] * s["num_steps"]), beta=s["beta"])
    return [
        Side(
            name="symmetric",
            title="One factor, X Xᵀ",
            algorithm=object_table("GradientDescent", symmetric=True, **shared),
            problem=problem,
        ),
        Side(
            name="asymmetric",
            title="Two factors, F Gᵀ",
            algorithm=object_table("GradientDescent", **shared),
            problem=problem,
        ),
        Side(
            name="stepped",
            title="F Gᵀ with an imbalance step",
            algorithm=object_table("GradientDescent", **shared, events=[event]),
            problem=problem,
        ),
    ]


def views(s: Setting) -> list[PlotView]:
    loss: dict[str, Any] = {
        "title": "Loss",
        "curves": (Curve("distance", "loss", half_square=True),),
        "label": "‖A − A*‖² / 2",
        "log": True,
        "together": True,
    }
    components = range(min(s["width"], s["dimension"]))
    return [
        PlotView(name="loss", **loss),
        PlotView(name="loss, log time", **loss, log_time=True),
        PlotView(
            name="singular values",
            title="Singular values",
            curves=tuple(Curve("singular_values", sigma(i), component=i) for i in components),
            label="singular values of A",
            log=True,
        ),
        PlotView(
            name="imbalance",
            title="Imbalance",
            curves=(Curve("imbalance", "‖FᵀF − GᵀG‖"),),
            label="‖FᵀF − GᵀG‖",
            together=True,
        ),
    ]


def program(s: Setting) -> tuple:
    names = ("rank", "width", "measurements", "view", "dimension", "per_row")
    return (*(s[name] for name in names), s["seeds"] <= FEW_SEEDS)


# ----------------------------------------------------------------------------------------- what the theory says


def conditions(s: Setting) -> list[Condition]:
    eta, k = s["step_size"], s["width"]
    return [
        Condition("columns enough", "ours", float(k), ">=", float(s["rank"]), "k ≥ r, or A* cannot be reached"),
        Condition(
            "β keeps descent stable",
            "Xiong 2024, section 5",
            s["beta"],
            "in",
            stable_range(eta, 1.0),
            "η (β² + (σ₁/β)²) < 2",
        ),
        *_theorem_conditions(s),
    ]


def _theorem_conditions(s: Setting) -> list[Condition]:
    """The conditions of Theorems 3.1 and 4.2, without the isometry condition of the second."""
    eta, alpha, n, k = s["step_size"], s["init_scale"], s["dimension"], s["width"]
    values = np.array(_singular_values(s))
    one = theory.theorem31_conditions(eta, alpha, values, k, n)
    two = theory.theorem42_conditions(eta, alpha, values, k, n, 0.0)
    return [*(_renamed(c, "X Xᵀ") for c in one), *(_renamed(c, "F Gᵀ") for c in two if c.name != "isometry")]


def _renamed(c: Condition, model: str) -> Condition:
    return Condition(f"{model}: {c.name}", c.source, c.value, c.relation, c.bound, c.note)


def headline(s: Setting) -> str:
    """Which side slows down, and which theorems cover the setting."""
    if s["width"] < s["rank"]:
        return "Prediction: no side reaches A*, because there are fewer columns than the rank."
    slow = "X Xᵀ slows down to 1/t², F Gᵀ does not" if s["width"] > s["rank"] else "every side converges linearly"
    found = _theorem_conditions(s)
    covered = sum(all(c.holds for c in found if c.name.startswith(model)) for model in ("X Xᵀ", "F Gᵀ"))
    word = ("the theorems themselves do not cover", "one of the two theorems covers", "both theorems cover")[covered]
    return f"Prediction: {slow}; {word} this setting."


def sentences(s: Setting) -> list[str]:
    eta, k, r = s["step_size"], s["width"], s["rank"]
    if k < r:
        return [f"k = {k} columns cannot make a matrix of rank {r}: no side reaches A*."]
    after = (
        f"After the imbalance step: at least exp(−{theory.theorem51_rate(eta, s['beta']):.3g}) per step, for every α."
    )
    if k > r:
        (tail,) = _tail_loss(s, np.array([s["num_steps"]]))
        return [
            f"X Xᵀ: k > r, so the loss falls as 1/t² only, towards (k − r)/(32 η² t²) = {tail:.2g} at the end.",
            "F Gᵀ: linear, at a rate that grows as α².",
            after,
        ]
    rate = theory.exact_width_rate(eta, min(_singular_values(s)))
    return [
        f"X Xᵀ: k = r, so the loss falls by the factor exp(−{rate:.3g}) per step.",
        "F Gᵀ: linear, at a rate that does not depend on α.",
        after,
    ]


def _tail_loss(s: Setting, steps: np.ndarray) -> np.ndarray:
    return theory.symmetric_tail(s["step_size"], s["width"], s["rank"], steps) / 2


def predicted(s: Setting, view: str, steps: np.ndarray) -> list[PredictedCurve]:
    """The 1/t² law of the symmetric model, from the step on at which it applies."""
    if not view.startswith("loss") or s["width"] <= s["rank"]:
        return []
    late = steps[steps >= max(10, 2 / s["step_size"])]
    y = _tail_loss(s, late).tolist()
    return [PredictedCurve(key="distance_loss", side="symmetric", label="1/t² law", x=late.tolist(), y=y)]


def final_loss(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The loss of every run at its end; that of a diverged run is infinite."""
    end = values["distance"][:, -1] ** 2 / 2
    return np.where(np.isfinite(end), end, np.inf)


def boundary(s: Setting, across: np.ndarray, up: np.ndarray) -> tuple[str, list[float], list[float]] | None:
    """At balanced ends the steepest curvature is 2 σ₁, so steps of 1/σ₁ and more cannot settle there."""
    return "stable below η = 1/σ₁", [float(across[0]), float(across[-1])], [1.0, 1.0]


# ------------------------------------------------------------------------------------------ the paper's figures


def _figure(setting: FactorSetting, scale: float, **more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "rank": setting.rank,
        "width": setting.width,
        "init_scale": scale,
        "step_size": setting.step_size,
        "num_steps": min(setting.num_steps, MOST_STEPS),
    }
    if math.isfinite(setting.per_row):
        # Sensing keeps its data in memory; sixteen seeds would take too long for sliders.
        values |= {"measurements": "sensing", "per_row": setting.per_row, "seeds": 4}
    return values | more


def presets() -> list[Preset]:
    from gyrostat.papers.xiong2024 import settings as xiong

    figure_12b = replace(xiong.FIGURE12B, step_size=xiong.FIGURE, time=xiong.FIGURE12_AXIS)
    return [
        Preset(
            name="xiong2024/fig1.1",
            title="One factor slows down, two do not",
            values=_figure(xiong.FIGURE11, xiong.FIGURE11.scales[0], view="loss, log time"),
            note=f"The figure goes on to step {xiong.FIGURE11.num_steps:,}, and has k = 3 and k = 2 and smaller α too. "
            "It has no imbalance step.",
        ),
        Preset(
            name="xiong2024/fig1.2a",
            title="k = r: the rate does not depend on α",
            values=_figure(xiong.FIGURE12A, 0.2),
            note="The figure compares α = 0.5, 0.2 and 0.05 on F Gᵀ.",
        ),
        Preset(
            name="xiong2024/fig1.2b",
            title="k > r: the rate depends on α",
            values=_figure(figure_12b, 0.2),
            note="The figure compares four α on F Gᵀ. This is its panel with η = 0.03, which fits the printed axis; the "
            "panel with the printed η = 0.2 takes 10,000 steps.",
        ),
        Preset(
            name="xiong2024/fig1.2c",
            title="One imbalance step: no dependence on α",
            values=_figure(xiong.FIGURE12C, 0.05, step_at=0.5, beta=1.0),
            note="The figure has k = 3 and α = 0.5 too. It has no X Xᵀ.",
        ),
        Preset(
            name="xiong2024/figI1",
            title="One factor against two in sensing",
            values=_figure(xiong.FIGURE_I1, 0.5, num_steps=xiong.figure_i1_steps(0.5)),
            note="In the figure X Xᵀ starts from α N(0, 1/n), which is the size of F; here from α N(0, 1/k). The figure "
            "has smaller α too, more steps, the same measurements for both models, and no imbalance step.",
        ),
        Preset(
            name="xiong2024/figI2",
            title="Ill-conditioned targets",
            values=_figure(xiong.FIGURE_I2, xiong.FIGURE_I2.scales[0], condition=xiong.FIGURE_I2_CONDITIONS[2]),
            note="The figure compares four condition numbers on F Gᵀ.",
        ),
        Preset(
            name="xiong2024/figI3",
            title="A large start",
            values=_figure(xiong.FIGURE_I3, 1.0),
            note="The figure compares α = 0.5, 1, 3 and 5 on F Gᵀ, at the printed η = 0.2 and at a smaller one.",
        ),
        Preset(
            name="xiong2024/figI4",
            title="Rank five",
            values=_figure(xiong.FIGURE_I4, 0.5, step_at=0.5, beta=1.0),
            note="In the figure X Xᵀ goes on to step 2000, and α = 0.2 and 0.05 are shown too.",
        ),
        Preset(
            name="xiong2024/figI5",
            title="The first steps",
            values=_figure(xiong.FIGURE_I5, 0.2),
            note="The figure compares α = 0.5, 0.2 and 0.05 on F Gᵀ.",
        ),
    ]


FACTORS = Lab(
    name="factors",
    title="One factor or two",
    lead="Gradient descent on X Xᵀ and on F Gᵀ with more columns than the rank: "
    "which one slows down, and what one step changes.",
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
        across="init_scale",
        up="step_size",
        side="asymmetric",
        title="Loss of F Gᵀ at the end",
        label="loss",
        record=("distance",),
        outcome=final_loss,
        boundary=boundary,
    ),
    presets=presets,
)
