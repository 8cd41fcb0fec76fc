"""What the theory of Xiong 2024 says of a setting."""

from __future__ import annotations

import numpy as np

from gyrostat import theory
from gyrostat.algorithms.events import stable_range
from gyrostat.lab.controls import Setting
from gyrostat.lab.lab import Line
from gyrostat.lab.laboratories.factors.settings import values_of
from gyrostat.theory import Condition


def conditions(s: Setting) -> list[Condition]:
    eta, alpha, n, k = s["step_size"], s["init_scale"], s["dimension"], s["width"]
    low, high = stable_range(eta, 1.0)
    values = np.array(values_of(s))
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
    least = min(values_of(s))
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


def final(values: dict[str, np.ndarray]) -> float:
    end = values["distance"][:, -1] ** 2 / 2
    return float(np.median(np.where(np.isfinite(end), end, np.inf)))


def boundary(s: Setting, across: np.ndarray, up: np.ndarray) -> tuple[str, list[float], list[float]] | None:
    """At balanced ends the steepest curvature is 2 σ₁, so that steps of 1/σ₁ and more cannot settle there."""
    return "stable below η = 1/σ₁", [float(across[0]), float(across[-1])], [1.0, 1.0]
