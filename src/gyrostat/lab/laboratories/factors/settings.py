"""What can be set of factorisation and sensing, and what is then run."""

from __future__ import annotations

import numpy as np

from gyrostat.errors import GyrostatError
from gyrostat.experiments.object_tables import object_table
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.lab import Curve, Side, View

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
    number("beta", "its size", "β", 1.0, 0.1, 3.0, 0.05, group=RUN),
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


def values_of(s: Setting) -> list[float]:
    return np.linspace(1.0, 1 / s["condition"], s["rank"]).tolist()


def sides(s: Setting) -> list[Side]:
    seen = object_table("Identity")
    if s["measurements"] == "sensing":
        seen = object_table("Dense", num_samples=round(s["per_row"] * s["dimension"]), design=0, precision="single")
    target = object_table("Environments.diagonal", dimension=s["dimension"], values=values_of(s))
    problem = object_table("Problem", environments=target, measurements=seen)
    options = {"step_size": s["step_size"], "width": s["width"], "start": s["init_scale"]}
    event = object_table("ImbalanceStep", at=round(s["step_at"] * s["num_steps"]), beta=s["beta"])
    return [
        Side("symmetric", "One factor, X Xᵀ", object_table("GradientDescent", symmetric=True, **options), problem),
        Side("asymmetric", "Two factors, F Gᵀ", object_table("GradientDescent", **options), problem),
        Side(
            "stepped",
            "F Gᵀ with an imbalance step",
            object_table("GradientDescent", **options, events=[event]),
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
