"""One factor or two: descent on X Xᵀ, on F Gᵀ, and on F Gᵀ with an imbalance step (Xiong 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from gyrostat.algorithms.events import stable_range
from gyrostat.errors import GyrostatError
from gyrostat.experiments.objects_from_dicts import object_table
from gyrostat.figures.declarations import Line
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.declarations import Curve, Lab, Plane, PlotView, Side, singular_values_view
from gyrostat.theory import Condition, xiong2024

LEAST_LOSS = 1e-35
"""Smaller losses are rounding errors."""
MOST_WORK = 4e10
"""Multiplications of one side of a sensing run. Beyond them a window would wait for more than a few seconds."""
IF_SENSING = ("measurements", "sensing")


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
            choice("dimension", "dimension", "n", (20, 50, 100, 200), 50),
            whole("rank", "rank", "r", 2, 1, 5, compiles=True),
            number("condition", "condition number", "κ", 1.0, 1.0, 10.0, step=0.1, help="σ₁ / σᵣ; σ₁ is 1"),
        ],
        "Descent": [
            whole("width", "columns", "k", 4, 1, 10, help="k > r: more than needed", compiles=True),
            number("step_size", "step size", "η", 0.1, 0.002, 0.9),
            number("init_scale", "start", "α", 0.2, 0.01, 1.0),
            whole("num_steps", "steps", "T", 1000, 100, 5000, step=100),
            number("step_at", "imbalance step at", "t/T", 0.3, 0.0, 0.9, step=0.05),
            number("beta", "its size", "β", 1.0, 0.1, 3.0, step=0.05),
        ],
        "Measurements": [
            choice("measurements", "measurements", "", ("factorisation", "sensing")),
            number("per_row", "measurements / n", "m/n", 14.0, 4.0, 40.0, step=1.0, needs=IF_SENSING, compiles=True),
            whole("seeds", "seeds", "", 16, 1, 64),
        ],
        "": [choice("view", "view", "", ("loss", "loss, log time", "singular values", "imbalance"))],
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
        target = object_table("Environments.diagonal", dimension=s["dimension"], values=_singular_values(s).tolist())
        problem = object_table("Problem", environments=target, measurements=measurements)
        shared = {"step_size": s["step_size"], "width": s["width"], "start": s["init_scale"]}
        event = object_table("ImbalanceStep", at=round(s["step_at"] * s["num_steps"]), beta=s["beta"])
        symmetric = object_table("GradientDescent", symmetric=True, **shared)
        stepped = object_table("GradientDescent", **shared, events=[event])
        return [
            Side("symmetric", "One factor, X Xᵀ", symmetric, problem),
            Side("asymmetric", "Two factors, F Gᵀ", object_table("GradientDescent", **shared), problem),
            Side("stepped", "F Gᵀ with an imbalance step", stepped, problem),
        ]

    def is_slow(self, s: Setting) -> bool:
        return s["measurements"] == "sensing"

    def views(self, s: Setting) -> list[PlotView]:
        curves = [Curve("distance", "loss", half_square=True)]
        loss = PlotView("loss", "Loss", "‖A − A*‖² / 2", curves, log=True, together=True)
        label = "‖FᵀF − GᵀG‖"
        return [
            loss,
            replace(loss, name="loss, log time", log_time=True),
            singular_values_view(min(s["width"], s["dimension"])),
            PlotView("imbalance", "Imbalance", label, [Curve("imbalance", label)], together=True),
        ]

    def conditions(self, s: Setting) -> list[Condition]:
        width, stable = float(s["width"]), stable_range(s["step_size"], 1.0)
        symmetric, asymmetric = _theorem_conditions(s)
        return [
            Condition("columns enough", "ours", width, ">=", float(s["rank"]), "k ≥ r, or A* cannot be reached"),
            Condition(
                "β keeps descent stable", "Xiong 2024, section 5", s["beta"], "in", stable, "η (β² + (σ₁/β)²) < 2"
            ),
            *(replace(c, name=f"X Xᵀ: {c.name}") for c in symmetric),
            *(replace(c, name=f"F Gᵀ: {c.name}") for c in asymmetric),
        ]

    def headline(self, s: Setting) -> str:
        """Which side slows down, and which theorems cover the setting."""
        if s["width"] < s["rank"]:
            return "Prediction: no side reaches A*, because there are fewer columns than the rank."
        slow = "X Xᵀ slows down to 1/t², F Gᵀ does not" if s["width"] > s["rank"] else "every side converges linearly"
        covered = sum(all(c.holds for c in theorem) for theorem in _theorem_conditions(s))
        words = "the theorems themselves do not cover", "one of the two theorems covers", "both theorems cover"
        return f"Prediction: {slow}; {words[covered]} this setting."

    def sentences(self, s: Setting) -> list[str]:
        eta, k, r = s["step_size"], s["width"], s["rank"]
        if k < r:
            return [f"k = {k} columns cannot make a matrix of rank {r}: no side reaches A*."]
        if k > r:
            (tail,) = _tail_loss(s, np.array([s["num_steps"]]))
            one = f"k > r, so the loss falls as 1/t² only, towards (k − r)/(32 η² t²) = {tail:.2g} at the end."
            two = "linear, at a rate that grows as α²."
        else:
            rate = xiong2024.exact_width_rate(eta, min(_singular_values(s)))
            one = f"k = r, so the loss falls by the factor exp(−{rate:.3g}) per step."
            two = "linear, at a rate that does not depend on α."
        rate = xiong2024.theorem51_rate(eta, s["beta"])
        after = f"After the imbalance step: at least exp(−{rate:.3g}) per step, for every α."
        return [f"X Xᵀ: {one}", f"F Gᵀ: {two}", after]

    def predicted(self, s: Setting, steps: np.ndarray) -> dict[str, Line]:
        """The 1/t² law of the symmetric model, from the step on at which it applies."""
        if not s["view"].startswith("loss") or s["width"] <= s["rank"]:
            return {}
        late = steps[steps >= max(10, 2 / s["step_size"])]
        return {"symmetric": Line(late, _tail_loss(s, late), "1/t² law", role="theory")}

    def outcome(self, values: Mapping[str, np.ndarray]) -> float:
        """The logarithm of the median loss at the end; NaN, a gap, if half of the runs diverged."""
        end = values["distance"][:, -1] ** 2 / 2
        median = np.median(np.where(np.isfinite(end), end, np.inf))
        return float(np.log10(max(median, LEAST_LOSS))) if np.isfinite(median) else math.nan


def _singular_values(s: Setting) -> np.ndarray:
    return np.linspace(1.0, 1 / s["condition"], s["rank"])


def _theorem_conditions(s: Setting) -> list[list[Condition]]:
    """The conditions of Theorem 3.1, and those of Theorem 4.2 without its isometry condition."""
    setting = s["step_size"], s["init_scale"], _singular_values(s), s["width"], s["dimension"]
    two = xiong2024.theorem42_conditions(*setting, 0.0)
    return [xiong2024.theorem31_conditions(*setting), [c for c in two if c.name != "isometry"]]


def _tail_loss(s: Setting, steps: np.ndarray) -> np.ndarray:
    return xiong2024.symmetric_tail(s["step_size"], s["width"], s["rank"], steps) / 2
