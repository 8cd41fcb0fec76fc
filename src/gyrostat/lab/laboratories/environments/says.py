"""What the theory of Xu 2024 says of a setting."""

from __future__ import annotations

import math

import numpy as np

from gyrostat import theory
from gyrostat.environments import Law
from gyrostat.experiments.object_tables import build
from gyrostat.lab.controls import Setting
from gyrostat.lab.lab import Line
from gyrostat.lab.laboratories.environments.settings import law_of
from gyrostat.theory import Condition, bounds, transition


def _shown_law(s: Setting) -> Law:
    """The law that the dynamics see: that of the places, or the amplified one."""
    law = build(law_of(s), "law")
    return theory.amplified(law, s["amplify"]) if s["amplify"] > 0 else law


def conditions(s: Setting) -> list[Condition]:
    """All that costs nothing to check; the isometry constant takes seconds and is left to ``gyrostat check``."""
    law, eta = _shown_law(s), s["step_size"]
    known = bounds.assumptions(
        law, dimension=s["dimension"], rank=s["rank"], overlap=s["overlap"], delta=math.nan, init_scale=s["init_scale"]
    )
    rule = transition.eliminated_by_lyapunov(law, eta, init_scale=s["init_scale"], num_steps=s["num_steps"])
    window = Condition(
        "step size in the informal window", "section 4", eta, "in", transition.informal_window(law), "γ = 0.1"
    )
    kept = [c for c in known if c.source not in ("Assumption 1(d)", "Assumption 3")]
    return [rule, window, *bounds.step_conditions(law, eta), *kept]


def sentences(s: Setting) -> list[str]:
    """The predicted outcome."""
    law, eta = _shown_law(s), s["step_size"]
    options = {"init_scale": s["init_scale"], "num_steps": s["num_steps"]}
    fate = "eliminated" if transition.eliminated_by_lyapunov(law, eta, **options).holds else "learnt"
    m = math.inf if s["measurements"] == "population" else s["num_samples"]
    share = float((theory.surrogate(law, eta, **options, num_samples=m, runs=500) < transition.LEARNT).mean())
    said = [f"Hetero: the spurious part is {fate} in a typical run; {share:.0%} of runs end without it."]
    if s["law"] == "two-point":
        critical = transition.critical_spread(eta, **options, mean=s["mean"]) / (1 + s["amplify"])
        said.append(f"The transition is at M* = {critical:.2f}.")
    if fate == "eliminated" and math.isfinite(m) and eta < 1 and s["measurements"] == "fresh":
        kept = {"dimension": s["dimension"], "rank": s["rank"], "step_size": eta, "num_samples": m, "runs": 300}
        environments = build(law_of(s), "law")
        error = (
            theory.amplified_error_law(environments, s["amplify"], **kept)
            if s["amplify"]
            else theory.error_law(law, **kept)
        )
        said.append(f"The error that is left: ‖UUᵀ − A★‖ ≈ {error:.2g}.")
    if s["mean"] == 1.0:
        said.append(f"Pooled: never closer to A★ than {bounds.pooled_gap(s['rank'], s['spurious_rank']):.2f}.")
    return said


def lines(s: Setting, view: str, steps: np.ndarray) -> list[Line]:
    """The growth of the invariant signal without noise, R_t² of eq. (25)."""
    if view != "signals" or s["schedule"] != "constant" or s["model"] != "U Uᵀ":
        return []
    y = theory.calibration(s["step_size"], s["init_scale"], s["num_steps"])[steps] ** 2
    return [Line("signal", side, "R² of eq. (25)", steps.tolist(), y.tolist()) for side in ("hetero", "pooled")]


def eliminated(values: dict[str, np.ndarray]) -> float:
    end = values["spurious"][:, -1]
    return float(np.mean(np.where(np.isfinite(end), end, np.inf) < transition.LEARNT))


def boundary(s: Setting, across: np.ndarray, up: np.ndarray) -> tuple[str, list[float], list[float]] | None:
    if s["law"] != "two-point":
        return None
    etas = np.geomspace(up[0], up[-1], 60)
    options = {"init_scale": s["init_scale"], "num_steps": s["num_steps"], "mean": s["mean"]}
    critical = [transition.critical_spread(eta, **options) / (1 + s["amplify"]) for eta in etas]
    return "predicted transition M*", critical, etas.tolist()
