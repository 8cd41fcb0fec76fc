"""One factor or two: descent on X Xᵀ, on F Gᵀ, and on F Gᵀ with an imbalance step (Xiong 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gyrostat.algorithms.events import stable_range
from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import object_table
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.declarations import Curve, Lab, Plane, PlotView, PredictedCurve, Preset, Side, sigma
from gyrostat.theory import Condition, xiong2024

if TYPE_CHECKING:
    from gyrostat.papers.xiong2024.settings import FactorSetting

MOST_STEPS = 5000
LEAST_LOSS = 1e-35
"""Smaller losses are rounding errors."""
MOST_WORK = 4e10
"""Multiplications of one side of a sensing run. Beyond them a window would wait for more than a few seconds."""


# --------------------------------------------------------------------------------------- what is run and drawn


def _singular_values(s: Setting) -> list[float]:
    return np.linspace(1.0, 1 / s["condition"], s["rank"]).tolist()


# ----------------------------------------------------------------------------------------- what the theory says


def _theorem_conditions(s: Setting) -> list[Condition]:
    """The conditions of Theorems 3.1 and 4.2, without the isometry condition of the second."""
    eta, alpha, n, k = s["step_size"], s["init_scale"], s["dimension"], s["width"]
    values = np.array(_singular_values(s))
    one = xiong2024.theorem31_conditions(eta, alpha, values, k, n)
    two = xiong2024.theorem42_conditions(eta, alpha, values, k, n, 0.0)
    return [*(_renamed(c, "X Xᵀ") for c in one), *(_renamed(c, "F Gᵀ") for c in two if c.name != "isometry")]


def _renamed(c: Condition, model: str) -> Condition:
    return Condition(f"{model}: {c.name}", c.source, c.value, c.relation, c.bound, c.note)


def _tail_loss(s: Setting, steps: np.ndarray) -> np.ndarray:
    return xiong2024.symmetric_tail(s["step_size"], s["width"], s["rank"], steps) / 2


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


class OneOrTwoFactors(Lab):
    """Descent on one factor, on two, and on two with an imbalance step, for a known or a sensed target."""

    name = "factors"
    title = "One factor or two"
    lead = (
        "Gradient descent on X Xᵀ and on F Gᵀ with more columns than the rank: "
        "which one slows down, and what one step changes."
    )
    groups: ClassVar = {
        "Target": [
            choice("dimension", "dimension", (20, 50, 100, 200), symbol="n", default=50),
            whole("rank", "rank", "r", 2, 1, 5, compiles=True),
            number("condition", "condition number", "κ", 1.0, 1.0, 10.0, step=0.1, help="σ₁ / σᵣ; σ₁ is 1"),
        ],
        "Descent": [
            whole("width", "columns", "k", 4, 1, 10, help="k > r: more than needed", compiles=True),
            number("step_size", "step size", "η", 0.1, 0.002, 0.9),
            number("init_scale", "start", "α", 0.2, 0.01, 1.0),
            whole("num_steps", "steps", "T", 1000, 100, MOST_STEPS, step=100),
            number("step_at", "imbalance step at", "t/T", 0.3, 0.0, 0.9, step=0.05),
            number("beta", "its size", "β", 1.0, 0.1, 3.0, step=0.05),
        ],
        "Measurements": [
            choice("measurements", "measurements", ("factorisation", "sensing")),
            number(
                "per_row",
                "measurements / n",
                "m/n",
                14.0,
                4.0,
                40.0,
                step=1.0,
                needs=("measurements", "sensing"),
                compiles=True,
            ),
            whole("seeds", "seeds", "", 16, 1, 64),
        ],
        "": [
            choice("view", "view", ("loss", "loss, log time", "singular values", "imbalance")),
        ],
    }
    plane = Plane(
        across="init_scale",
        up="step_size",
        side="asymmetric",
        title="Loss of F Gᵀ at the end",
        label="log₁₀ of the median loss",
        record=("distance",),
        note="At balanced ends the steepest curvature is 2 σ₁, so steps of 1/σ₁ = 1 and more cannot settle there.",
    )

    def check(self, s: Setting) -> None:
        """Refuse a sensing run that takes too long for sliders."""
        work = s["per_row"] * s["dimension"] ** 3 * s["num_steps"] * s["seeds"]
        if s["measurements"] == "sensing" and work > MOST_WORK:
            most = max(int(s["seeds"] * MOST_WORK / work), 1)
            raise GyrostatError(
                f"sensing with dimension={s['dimension']}, num_steps={s['num_steps']} and seeds={s['seeds']} takes too long "
                f"for live sliders: lower one of them (seeds to {most}, say), or use gyrostat.run."
            )

    def sides(self, s: Setting) -> list[Side]:
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

    def is_slow(self, s: Setting) -> bool:
        return s["measurements"] == "sensing"

    def views(self, s: Setting) -> list[PlotView]:
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

    def conditions(self, s: Setting) -> list[Condition]:
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

    def headline(self, s: Setting) -> str:
        """Which side slows down, and which theorems cover the setting."""
        if s["width"] < s["rank"]:
            return "Prediction: no side reaches A*, because there are fewer columns than the rank."
        slow = "X Xᵀ slows down to 1/t², F Gᵀ does not" if s["width"] > s["rank"] else "every side converges linearly"
        found = _theorem_conditions(s)
        covered = sum(all(c.holds for c in found if c.name.startswith(model)) for model in ("X Xᵀ", "F Gᵀ"))
        word = ("the theorems themselves do not cover", "one of the two theorems covers", "both theorems cover")[
            covered
        ]
        return f"Prediction: {slow}; {word} this setting."

    def sentences(self, s: Setting) -> list[str]:
        eta, k, r = s["step_size"], s["width"], s["rank"]
        if k < r:
            return [f"k = {k} columns cannot make a matrix of rank {r}: no side reaches A*."]
        rate = xiong2024.theorem51_rate(eta, s["beta"])
        after = f"After the imbalance step: at least exp(−{rate:.3g}) per step, for every α."
        if k > r:
            (tail,) = _tail_loss(s, np.array([s["num_steps"]]))
            return [
                f"X Xᵀ: k > r, so the loss falls as 1/t² only, towards (k − r)/(32 η² t²) = {tail:.2g} at the end.",
                "F Gᵀ: linear, at a rate that grows as α².",
                after,
            ]
        rate = xiong2024.exact_width_rate(eta, min(_singular_values(s)))
        return [
            f"X Xᵀ: k = r, so the loss falls by the factor exp(−{rate:.3g}) per step.",
            "F Gᵀ: linear, at a rate that does not depend on α.",
            after,
        ]

    def predicted(self, s: Setting, steps: np.ndarray) -> list[PredictedCurve]:
        """The 1/t² law of the symmetric model, from the step on at which it applies."""
        if not s["view"].startswith("loss") or s["width"] <= s["rank"]:
            return []
        late = steps[steps >= max(10, 2 / s["step_size"])]
        return [PredictedCurve("symmetric", "1/t² law", late, _tail_loss(s, late))]

    def outcome(self, values: Mapping[str, np.ndarray]) -> float:
        """The logarithm of the median loss at the end; NaN, a gap, if half of the runs diverged."""
        end = values["distance"][:, -1] ** 2 / 2
        median = np.median(np.where(np.isfinite(end), end, np.inf))
        return float(np.log10(max(median, LEAST_LOSS))) if np.isfinite(median) else math.nan

    def presets(self) -> list[Preset]:
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
