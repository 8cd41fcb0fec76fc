"""Several environments: batches of one environment each against mixed batches (Xu 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gyrostat.environments import Law
from gyrostat.experiments.objects_from_dicts import LAWS, ObjectTable, build, object_table
from gyrostat.figures.declarations import Line
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.declarations import Curve, Lab, Plane, PlotView, Side, singular_values_view
from gyrostat.theory import Condition, ours, xu2024
from gyrostat.theory.ours.transition import LEARNT

MOMENTUM = ("momentum", "Nesterov")
OPTAX_RULES = {"RMSProp": "rmsprop", "AdaGrad": "adagrad", "Lion": "lion"}
"""Update rules that optax makes: the word of the control and the name in optax."""
ENTRYWISE = ("Adam", *OPTAX_RULES)
RULES = ("plain", *MOMENTUM, *ENTRYWISE)
MODELS = {"U Uᵀ": "Symmetric", "U Uᵀ − V Vᵀ": "SymmetricDifference", "F Gᵀ": "Asymmetric"}


class SeveralEnvironments(Lab):
    """HeteroSGD beside SGD on mixed batches, in random environments."""

    name = "environments"
    title = "Several environments"
    lead = "A signal that is the same in every environment and one that differs between them: which one does SGD keep?"
    groups: ClassVar = {
        "Environments": [
            number("spread", "heterogeneity", "M", 6.0, 0.0, 20.0, step=0.1, help="of the spurious strengths"),
            number("mean", "mean strength", "E s", 1.0, -2.0, 4.0, step=0.1, help="of the spurious part"),
            number("overlap", "overlap", "ε₁", 0.0, 0.0, 0.9, step=0.01, help="cosine of the two subspaces"),
            choice("law", "law of the strengths", "", tuple(LAWS)),
            choice("dimension", "dimension", "d", (30, 40, 60, 100)),
            whole("rank", "invariant rank", "r₁", 1, 1, 8, compiles=True),
            whole("spurious_rank", "spurious rank", "r₂", 1, 1, 8, compiles=True),
        ],
        "Descent": [
            number("step_size", "step size", "η", 0.05, 0.002, 0.5),
            whole("num_steps", "steps", "T", 200, 100, 1000, step=10),
            choice("schedule", "schedule", "", ("constant", "annealed"), help="annealed: η/10 in the second half"),
            choice("order", "order", "", ("iid", "cyclic", "shuffled")),
            choice("rule", "update rule", "", RULES, help="with momentum the effective step is η / (1 − β)"),
            number("beta", "momentum", "β", 0.9, 0.0, 0.98, step=0.01, needs=("rule", *MOMENTUM)),
            number("amplify", "amplification", "κ", 0.0, 0.0, 12.0, step=0.1, help="ours: G + κ (G − mean of G)"),
        ],
        "Measurements": [
            choice("measurements", "measurements", "", ("fresh", "fixed", "population")),
            whole(
                "num_samples", "batch size", "m", 2400, 50, 1_000_000, step=0, needs=("measurements", "fresh", "fixed")
            ),
        ],
        "Model and start": [
            choice("model", "model", "", tuple(MODELS)),
            number("init_scale", "start", "α", 1e-3, 1e-6, 0.3),
            whole("seeds", "seeds", "n", 16, 1, 64),
        ],
        "": [choice("view", "view", "", ("signals", "errors", "singular values", "loss"))],
    }
    plane = Plane(
        across="spread",
        up="step_size",
        side="hetero",
        title="Success of HeteroSGD: invariant signal learnt, spurious one gone",
        label="share of runs",
        low=0.0,
        high=1.0,
        record=("signal", "spurious"),
        note="Very small steps learn neither signal in T steps. The predicted transition is about the spurious signal alone.",
    )

    def sides(self, s: Setting) -> list[Side]:
        """HeteroSGD and its pooled counterpart. With fixed data that is PooledGD: their single rows cannot be mixed."""
        environments = object_table(
            "RandomEnvironments", dimension=s["dimension"], rank=s["rank"], law=_law(s), overlap=s["overlap"]
        )
        measurements = {
            "fresh": object_table("FreshGaussian", num_samples=s["num_samples"]),
            "fixed": object_table("FixedGaussian", num_samples=s["num_samples"]),
            "population": object_table("Identity"),
        }[s["measurements"]]
        problem = object_table("Problem", environments=environments, measurements=measurements)
        step_size: Any = s["step_size"]
        if s["schedule"] == "annealed":
            high, low = (object_table("Constant", step_size=eta) for eta in (step_size, step_size / 10))
            step_size = object_table("Annealing", high=high, low=low, at=s["num_steps"] // 2)
        shared = {"step_size": step_size, "init_scale": s["init_scale"]}
        if s["rule"] in OPTAX_RULES:
            # The schedule is the learning rate, so that the slider of the step size does not compile anew.
            made = OPTAX_RULES[s["rule"]]
            shared["rule"] = object_table("Optax", transformation=made, arguments={"learning_rate": 1.0})
        elif s["rule"] != "plain":
            beta = {"beta": s["beta"]} if s["rule"] in MOMENTUM else {}
            shared["rule"] = object_table(s["rule"].capitalize(), **beta)
        if s["model"] != "U Uᵀ":
            shared["model"] = object_table(MODELS[s["model"]])
        amplified = {"amplify": s["amplify"]} if s["amplify"] else {}
        hetero = object_table("HeteroSGD", order=s["order"], **shared, **amplified)
        pooled = "PooledGD" if s["measurements"] == "fixed" else "PooledSGD"
        return [
            Side("hetero", "One environment per batch (HeteroSGD)", hetero, problem),
            Side("pooled", f"Environments mixed ({pooled})", object_table(pooled, **shared), problem),
        ]

    def is_slow(self, s: Setting) -> bool:
        return s["dimension"] > 40 and s["measurements"] != "population"

    def views(self, s: Setting) -> list[PlotView]:
        signals = [Curve("signal", "invariant"), Curve("spurious", "spurious"), Curve("error", "error ‖E‖")]
        distances = [Curve("distance", "to A*"), Curve("distance_to_mean", "to A* + mean spurious part")]
        return [
            PlotView("signals", "Signals", "size in A (the invariant signal is 1)", signals),
            PlotView("errors", "Distances", "Frobenius distance", distances),
            singular_values_view(min(s["dimension"], s["rank"] + s["spurious_rank"] + 1), log=False),
            PlotView("loss", "Loss", "E ‖A − Aₑ‖² / 2", [Curve("full_loss", "pooled loss")], log=True),
        ]

    def conditions(self, s: Setting) -> list[Condition]:
        """All conditions that are checked at once. The isometry constant takes seconds and is left to ``gyrostat check``.

        They are about gradient steps, so there are none for Adam and its kin.
        """
        if s["rule"] in ENTRYWISE:
            return []
        law, eta = _effective(s)
        window = xu2024.informal_window(law)
        informal = Condition("step size in the informal window", "section 4", eta, "in", window, "γ = 0.1")
        return [_elimination(s), informal, *_theorem_conditions(s)]

    def headline(self, s: Setting) -> str:
        """Whether the spurious part is eliminated, where the transition is, and whether the theorem covers the setting."""
        if s["rule"] in ENTRYWISE:
            return f"No prediction covers {s['rule']}."
        said = f"Prediction: spurious signal {_fate(s)}"
        if s["law"] == "two-point":
            said += f", transition at M* = {_critical_spread(s):.1f}"
        if all(c.holds for c in _theorem_conditions(s)):
            return f"{said}; the theorem covers this setting, if its isometry condition holds too."
        return f"{said}; the theorem itself does not cover this setting."

    def sentences(self, s: Setting) -> list[str]:
        """The predicted outcome."""
        if s["rule"] in ENTRYWISE:
            return [f"No prediction covers {s['rule']}, whose steps do not grow with the gradient."]
        law, eta = _effective(s)
        batch = math.inf if s["measurements"] == "population" else s["num_samples"]
        said = [f"Hetero: the spurious part is {_fate(s)} in a typical run"]
        if s["rule"] == "plain":
            final = ours.surrogate(law, eta, **_horizon(s), num_samples=batch, runs=500)
            said[0] += f"; {float((final < LEARNT).mean()):.0%} of runs end without it."
        else:
            said[0] += f", by the effective step η / (1 − β) = {eta:.3g}."
        if s["law"] == "two-point":
            said.append(f"The transition is at M* = {_critical_spread(s):.2f}.")
        if _fate(s) == "eliminated" and s["measurements"] == "fresh" and eta < 1 and s["rule"] == "plain":
            sizes = {
                "dimension": s["dimension"],
                "rank": s["rank"],
                "step_size": eta,
                "num_samples": batch,
                "runs": 300,
            }
            if s["amplify"]:
                error = ours.amplified_error_law(build(_law(s), "law"), s["amplify"], **sizes)
            else:
                error = ours.error_law(law, **sizes)
            said.append(f"The error that is left: ‖UUᵀ − A*‖ ≈ {error:.2g}.")
        if s["mean"] == 1.0:
            said.append(f"Pooled: never closer to A* than {xu2024.pooled_gap(s['rank'], s['spurious_rank']):.2f}.")
        return said

    def predicted(self, s: Setting, steps: np.ndarray) -> dict[str, Line]:
        """The growth of the invariant signal without noise, R_t² of eq. (25)."""
        if s["view"] != "signals" or s["schedule"] != "constant" or s["model"] != "U Uᵀ" or s["rule"] != "plain":
            return {}
        y = xu2024.calibration(s["step_size"], s["init_scale"], s["num_steps"])[steps] ** 2
        return dict.fromkeys(("hetero", "pooled"), Line(steps, y, "R² of eq. (25)", role="theory"))

    def outcome(self, values: Mapping[str, np.ndarray]) -> float:
        """The share of runs that learn most of the invariant signal and less than ``LEARNT`` of the spurious one."""
        signal, spurious = values["signal"][:, -1], values["spurious"][:, -1]  # NaN where a run diverged: no success
        return float(((signal > 0.5) & (spurious < LEARNT)).mean())

    def boundary(self, s: Setting, across: np.ndarray, up: np.ndarray) -> Line | None:
        if s["law"] != "two-point" or s["rule"] in ENTRYWISE:
            return None
        step_sizes = np.geomspace(up[0], up[-1], 60)
        spreads = [_critical_spread(s | {"step_size": eta}) for eta in step_sizes]
        return Line(spreads, step_sizes.tolist(), "predicted transition M*", role="theory")


# ----------------------------------------------------------------------------------------- what the theory says


def _law(s: Setting) -> ObjectTable:
    return object_table(LAWS[s["law"]], mean=s["mean"], spread=s["spread"], rank=s["spurious_rank"])


def _effective(s: Setting) -> tuple[Law, float]:
    """The law and the step that drive the dynamics: the law amplified, and with momentum the step eta / (1 - beta).

    No step stands for those of Adam and its kin.
    """
    law = build(_law(s), "law")
    if s["amplify"]:
        law = ours.amplified(law, s["amplify"])
    return law, ours.effective_step(s["step_size"], s["beta"] if s["rule"] in MOMENTUM else 0.0)


def _horizon(s: Setting) -> dict[str, Any]:
    return {"init_scale": s["init_scale"], "num_steps": s["num_steps"]}


def _elimination(s: Setting) -> Condition:
    return ours.eliminated_by_lyapunov(*_effective(s), **_horizon(s))


def _fate(s: Setting) -> str:
    return "eliminated" if _elimination(s).holds else "learnt"


def _theorem_conditions(s: Setting) -> list[Condition]:
    """The conditions of the paper's theorem, without those that need the isometry constant."""
    law, eta = _effective(s)
    sizes = {"dimension": s["dimension"], "rank": s["rank"], "overlap": s["overlap"], "init_scale": s["init_scale"]}
    return [*xu2024.step_conditions(law, eta), *xu2024.assumptions(law, delta=None, **sizes)]


def _critical_spread(s: Setting) -> float:
    return ours.critical_spread(_effective(s)[1], **_horizon(s), mean=s["mean"]) / (1 + s["amplify"])
