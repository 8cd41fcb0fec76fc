"""Several environments: batches of one environment each against mixed batches (Xu 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar

import numpy as np

from gyrostat.environments import Law
from gyrostat.experiments.objects_from_dicts import LAWS, ObjectTable, build, object_table
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.declarations import Boundary, Curve, Lab, Plane, PlotView, PredictedCurve, Preset, Side, sigma
from gyrostat.theory import Condition, ours, xu2024
from gyrostat.theory.ours.transition import LEARNT

OPTAX_RULES = {"RMSProp": "rmsprop", "AdaGrad": "adagrad", "Lion": "lion"}
"""Update rules that optax makes: the word of the control and the name in optax."""
ENTRYWISE = ("Adam", *OPTAX_RULES)
RULES = ("plain", "momentum", "Nesterov", *ENTRYWISE)
MODELS = {"U Uᵀ": "Symmetric", "U Uᵀ − V Vᵀ": "SymmetricDifference", "F Gᵀ": "Asymmetric"}


# --------------------------------------------------------------------------------------- what is run and drawn


def _law(s: Setting) -> ObjectTable:
    return object_table(LAWS[s["law"]], mean=s["mean"], spread=s["spread"], rank=s["spurious_rank"])


def _schedule(s: Setting) -> Any:
    eta = s["step_size"]
    if s["schedule"] == "constant":
        return eta
    high, low = (object_table("Constant", step_size=x) for x in (eta, eta / 10))
    return object_table("Annealing", high=high, low=low, at=s["num_steps"] // 2)


# ----------------------------------------------------------------------------------------- what the theory says


def _effective_law(s: Setting) -> Law:
    """The law that drives the dynamics: that of the environments, amplified if amplification is on."""
    law = build(_law(s), "law")
    return ours.amplified(law, s["amplify"]) if s["amplify"] > 0 else law


def _effective_step(s: Setting) -> float:
    """The step that drives the dynamics: with momentum eta / (1 - beta). No step stands for those of Adam and its kin."""
    return ours.effective_step(s["step_size"], s["beta"] if s["rule"] in ("momentum", "Nesterov") else 0.0)


def _lyapunov_rule(s: Setting) -> Condition:
    law, eta = _effective_law(s), _effective_step(s)
    return ours.eliminated_by_lyapunov(law, eta, init_scale=s["init_scale"], num_steps=s["num_steps"])


def _theorem_conditions(s: Setting) -> list[Condition]:
    """The conditions of the paper's theorem, without those that need the isometry constant."""
    law = _effective_law(s)
    assumptions = xu2024.assumptions(
        law, dimension=s["dimension"], rank=s["rank"], overlap=s["overlap"], delta=math.nan, init_scale=s["init_scale"]
    )
    immediate = [c for c in assumptions if c.source not in ("Assumption 1(d)", "Assumption 3")]
    return [*xu2024.step_conditions(law, _effective_step(s)), *immediate]


def _coverage(found: list[Condition]) -> str:
    if all(c.holds for c in found):
        return "the theorem covers this setting, if its isometry condition holds too"
    return "the theorem itself does not cover this setting"


def _critical_spread(s: Setting, eta: float) -> float:
    horizon = {"init_scale": s["init_scale"], "num_steps": s["num_steps"]}
    return ours.critical_spread(eta, **horizon, mean=s["mean"]) / (1 + s["amplify"])


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
            choice("law", "law of the strengths", tuple(LAWS)),
            choice("dimension", "dimension", (30, 40, 60, 100), symbol="d"),
            whole("rank", "invariant rank", "r₁", 1, 1, 8, compiles=True),
            whole("spurious_rank", "spurious rank", "r₂", 1, 1, 8, compiles=True),
        ],
        "Descent": [
            number("step_size", "step size", "η", 0.05, 0.002, 0.5),
            whole("num_steps", "steps", "T", 200, 100, 1000, step=10),
            choice("schedule", "schedule", ("constant", "annealed"), help="annealed: η/10 in the second half"),
            choice("order", "order", ("iid", "cyclic", "shuffled")),
            choice("rule", "update rule", RULES, help="with momentum the effective step is η / (1 − β)"),
            number("beta", "momentum", "β", 0.9, 0.0, 0.98, step=0.01, needs=("rule", "momentum", "Nesterov")),
            number("amplify", "amplification", "κ", 0.0, 0.0, 12.0, step=0.1, help="ours: G + κ (G − mean of G)"),
        ],
        "Measurements": [
            choice("measurements", "measurements", ("fresh", "fixed", "population")),
            whole(
                "num_samples", "batch size", "m", 2400, 50, 1_000_000, step=0, needs=("measurements", "fresh", "fixed")
            ),
        ],
        "Model and start": [
            choice("model", "model", tuple(MODELS)),
            number("init_scale", "start", "α", 1e-3, 1e-6, 0.3),
            whole("seeds", "seeds", "n", 16, 1, 64),
        ],
        "": [
            choice("view", "view", ("signals", "errors", "singular values", "loss")),
        ],
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
        shared = {"step_size": _schedule(s), "init_scale": s["init_scale"]}
        if s["rule"] == "Adam":
            shared["rule"] = object_table("Adam")
        elif s["rule"] in OPTAX_RULES:
            # The schedule is the learning rate, so that the slider of the step size does not compile anew.
            made = OPTAX_RULES[s["rule"]]
            shared["rule"] = object_table("Optax", transformation=made, arguments={"learning_rate": 1.0})
        elif s["rule"] != "plain":
            shared["rule"] = object_table(s["rule"].capitalize(), beta=s["beta"])
        if s["model"] != "U Uᵀ":
            shared["model"] = object_table(MODELS[s["model"]])
        amplified = {"amplify": s["amplify"]} if s["amplify"] > 0 else {}
        pooled = "PooledGD" if s["measurements"] == "fixed" else "PooledSGD"
        return [
            Side(
                name="hetero",
                title="One environment per batch (HeteroSGD)",
                algorithm=object_table("HeteroSGD", order=s["order"], **shared, **amplified),
                problem=problem,
            ),
            Side(
                name="pooled",
                title=f"Environments mixed ({pooled})",
                algorithm=object_table(pooled, **shared),
                problem=problem,
            ),
        ]

    def is_slow(self, s: Setting) -> bool:
        return s["dimension"] > 40 and s["measurements"] != "population"

    def views(self, s: Setting) -> list[PlotView]:
        components = range(min(s["dimension"], s["rank"] + s["spurious_rank"] + 1))
        return [
            PlotView(
                name="signals",
                title="Signals",
                curves=(Curve("signal", "invariant"), Curve("spurious", "spurious"), Curve("error", "error ‖E‖")),
                label="size in A (the invariant signal is 1)",
            ),
            PlotView(
                name="errors",
                title="Distances",
                curves=(Curve("distance", "to A*"), Curve("distance_to_mean", "to A* + mean spurious part")),
                label="Frobenius distance",
            ),
            PlotView(
                name="singular values",
                title="Singular values",
                curves=tuple(Curve("singular_values", sigma(i), component=i) for i in components),
                label="singular values of A",
            ),
            PlotView(
                name="loss",
                title="Loss",
                curves=(Curve("full_loss", "pooled loss"),),
                label="E ‖A − Aₑ‖² / 2",
                log=True,
            ),
        ]

    def conditions(self, s: Setting) -> list[Condition]:
        """All conditions that are checked at once. The isometry constant takes seconds and is left to ``gyrostat check``.

        They are about gradient steps, so there are none for Adam and its kin.
        """
        if s["rule"] in ENTRYWISE:
            return []
        law, eta = _effective_law(s), _effective_step(s)
        window = Condition(
            "step size in the informal window", "section 4", eta, "in", xu2024.informal_window(law), "γ = 0.1"
        )
        return [_lyapunov_rule(s), window, *_theorem_conditions(s)]

    def headline(self, s: Setting) -> str:
        """Whether the spurious part is eliminated, where the transition is, and whether the theorem covers the setting."""
        if s["rule"] in ENTRYWISE:
            return f"No prediction covers {s['rule']}."
        said = f"Prediction: spurious signal {'eliminated' if _lyapunov_rule(s).holds else 'learnt'}"
        if s["law"] == "two-point":
            said += f", transition at M* = {_critical_spread(s, _effective_step(s)):.1f}"
        return f"{said}; {_coverage(_theorem_conditions(s))}."

    def sentences(self, s: Setting) -> list[str]:
        """The predicted outcome."""
        if s["rule"] in ENTRYWISE:
            return [f"No prediction covers {s['rule']}, whose steps do not grow with the gradient."]
        law, eta = _effective_law(s), _effective_step(s)
        horizon = {"init_scale": s["init_scale"], "num_steps": s["num_steps"]}
        fate = "eliminated" if _lyapunov_rule(s).holds else "learnt"
        batch = math.inf if s["measurements"] == "population" else s["num_samples"]
        said = [f"Hetero: the spurious part is {fate} in a typical run"]
        if s["rule"] == "plain":
            final = ours.surrogate(law, eta, **horizon, num_samples=batch, runs=500)
            said[0] += f"; {float((final < LEARNT).mean()):.0%} of runs end without it."
        else:
            said[0] += f", by the effective step η / (1 − β) = {eta:.3g}."
        if s["law"] == "two-point":
            said.append(f"The transition is at M* = {_critical_spread(s, eta):.2f}.")
        if fate == "eliminated" and s["measurements"] == "fresh" and eta < 1 and s["rule"] == "plain":
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

    def predicted(self, s: Setting, steps: np.ndarray) -> list[PredictedCurve]:
        """The growth of the invariant signal without noise, R_t² of eq. (25)."""
        if s["view"] != "signals" or s["schedule"] != "constant" or s["model"] != "U Uᵀ" or s["rule"] != "plain":
            return []
        y = xu2024.calibration(s["step_size"], s["init_scale"], s["num_steps"])[steps] ** 2
        return [PredictedCurve(side, "R² of eq. (25)", steps, y) for side in ("hetero", "pooled")]

    def outcome(self, values: Mapping[str, np.ndarray]) -> float:
        """The share of runs that learn most of the invariant signal and less than ``LEARNT`` of the spurious one."""
        signal, spurious = values["signal"][:, -1], values["spurious"][:, -1]  # NaN where a run diverged: no success
        return float(((signal > 0.5) & (spurious < LEARNT)).mean())

    def boundary(self, s: Setting, across: np.ndarray, up: np.ndarray) -> Boundary | None:
        if s["law"] != "two-point" or s["rule"] in ENTRYWISE:
            return None
        etas = np.geomspace(up[0], up[-1], 60)
        found = [_critical_spread(s, _effective_step(s | {"step_size": eta})) for eta in etas]
        return "predicted transition M*", found, etas.tolist()

    def presets(self) -> list[Preset]:
        from gyrostat.papers.xu2024 import settings as xu

        same_batch = (
            f"In the figure a mixed batch has {xu.FIGURE5_POOLED_SAMPLES} measurements, twice those of one environment; "
            "here both sides have the same batch size."
        )
        hetero_only = "The paper's figure has no mixed batches."
        small, large = xu.figure4(xu.FIGURE4_SMALL), xu.figure4(xu.FIGURE4_LARGE)
        time = f"The figure has step sizes from 0.01 to 0.09, each for T = 10/η steps. {hetero_only}"
        return [
            Preset(
                name="xu2024/fig1",
                title="Mixed batches keep both signals",
                values=asdict(xu.FIGURE5),
                note=same_batch,
            ),
            Preset(
                name="xu2024/fig2",
                title="M = 8: oscillation shrinks the spurious signal",
                values=asdict(xu.FIGURE2) | {"measurements": "population"},
                note="The figure shows exact moments of the spurious factor for several M; here are runs without "
                "measurement noise.",
            ),
            Preset(
                name="xu2024/fig3",
                title="M = 6 forgets the spurious signal",
                values=asdict(xu.FIGURE3),
                note=hetero_only,
            ),
            Preset(
                name="xu2024/fig3-m1",
                title="M = 1 learns the spurious signal",
                values=asdict(replace(xu.FIGURE3, spread=xu.FIGURE3_SPREADS[0])),
                note=hetero_only,
            ),
            Preset(
                name="xu2024/fig4", title="A large step forgets the spurious signal", values=asdict(large), note=time
            ),
            Preset(
                name="xu2024/fig4-small",
                title="A small step learns the spurious signal",
                values=asdict(small),
                note=time,
            ),
            Preset(
                name="xu2024/fig5",
                title="Hetero against pooled",
                values=asdict(xu.FIGURE5),
                note=same_batch,
            ),
            Preset(
                name="xu2024/fig6",
                title="A batch of 80 is too small",
                values=asdict(xu.figure6(xu.FIGURE6_STEP_SIZES[1])) | {"view": "errors"},
                note="The figure shows mixed batches only, with three step sizes.",
            ),
        ]
