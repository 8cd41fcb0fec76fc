"""Multi-environment sensing: one environment per batch beside mixed batches (Xu 2024)."""

from __future__ import annotations

import math

import numpy as np

from gyrostat import theory
from gyrostat.environments import Law
from gyrostat.live.controls import Setting, choice, number, whole
from gyrostat.live.expression import Call, call
from gyrostat.live.lab import Curve, Lab, Line, Plane, Preset, Side, View
from gyrostat.theory import Condition, bounds, transition

PLACES, RUN, SEEN, MORE = "Environments", "Descent", "Measurements", "Model and start"
LAWS = {"two-point": "TwoPoint", "uniform": "Uniform", "gaussian": "Gaussian"}
MODELS = {"U Uᵀ": "Symmetric", "U Uᵀ − V Vᵀ": "SymmetricDifference", "F Gᵀ": "Asymmetric"}

CONTROLS = (
    number(
        "spread",
        "heterogeneity",
        "M",
        6.0,
        0.0,
        20.0,
        0.1,
        group=PLACES,
        help="how much a spurious strength differs from place to place",
    ),
    number("mean", "mean strength", "E s", 1.0, -2.0, 4.0, 0.1, group=PLACES, help="of the spurious part"),
    number(
        "overlap",
        "overlap",
        "ε₁",
        0.0,
        0.0,
        0.9,
        0.01,
        group=PLACES,
        help="cosine between the invariant and the spurious subspace",
    ),
    choice("law", "law of the strengths", tuple(LAWS), group=PLACES, compiles=True),
    whole("dimension", "dimension", "d", 60, 4, 128, group=PLACES),
    whole("rank", "invariant rank", "r₁", 1, 1, 8, group=PLACES, compiles=True),
    whole("spurious_rank", "spurious rank", "r₂", 1, 1, 8, group=PLACES, compiles=True),
    number("step_size", "step size", "η", 0.05, 0.002, 0.5, group=RUN),
    whole("num_steps", "steps", "T", 200, 100, 1000, 10, group=RUN),
    choice(
        "schedule",
        "schedule",
        ("constant", "annealed"),
        group=RUN,
        compiles=True,
        help="annealed: a tenth of the step size from the middle on",
    ),
    choice("order", "order of environments", ("iid", "cyclic", "shuffled"), group=RUN, compiles=True),
    number(
        "amplify", "amplification", "κ", 0.0, 0.0, 12.0, 0.1, group=RUN, help="ours: steps with G + κ (G − mean of G)"
    ),
    choice("measurements", "measurements", ("fresh", "fixed", "population"), group=SEEN, compiles=True),
    whole(
        "num_samples",
        "measurements per batch",
        "m",
        8000,
        50,
        1_000_000,
        0,
        group=SEEN,
        needs=("measurements", "fresh", "fixed"),
    ),
    choice("model", "model", tuple(MODELS), group=MORE, compiles=True),
    number("init_scale", "start", "α", 1e-3, 1e-6, 0.3, group=MORE),
    whole("seeds", "seeds", "n", 16, 1, 64, group=MORE),
    choice("view", "view", ("signals", "errors", "singular values", "loss"), group="", compiles=True),
)


def _law(s: Setting) -> Call:
    return call(LAWS[s["law"]], mean=s["mean"], spread=s["spread"], rank=s["spurious_rank"])


def _schedule(s: Setting) -> object:
    eta = s["step_size"]
    if s["schedule"] == "constant":
        return eta
    return call("Annealing", call("Constant", eta), call("Constant", eta / 10), at=s["num_steps"] // 2)


def sides(s: Setting) -> list[Side]:
    """HeteroSGD and its pooled counterpart: PooledGD where data are fixed, because single rows cannot be mixed there."""
    places = call("RandomEnvironments", s["dimension"], rank=s["rank"], law=_law(s), overlap=s["overlap"])
    kinds = {
        "fresh": ("FreshGaussian", s["num_samples"]),
        "fixed": ("FixedGaussian", s["num_samples"]),
        "population": ("Identity",),
    }
    problem = call("Problem", places, call(*kinds[s["measurements"]]))
    options = {"init_scale": s["init_scale"]}
    if s["model"] != "U Uᵀ":
        options["model"] = call(MODELS[s["model"]])
    mine = options | ({"amplify": s["amplify"]} if s["amplify"] > 0 else {})
    pooled = "PooledGD" if s["measurements"] == "fixed" else "PooledSGD"
    return [
        Side(
            "hetero",
            "One environment per batch (HeteroSGD)",
            call("HeteroSGD", _schedule(s), order=s["order"], **mine),
            problem,
        ),
        Side("pooled", f"Environments mixed ({pooled})", call(pooled, _schedule(s), **options), problem),
    ]


def views(s: Setting) -> list[View]:
    shown = min(s["dimension"], s["rank"] + s["spurious_rank"] + 1)
    names = [f"σ{i + 1}" for i in range(shown)]
    return [
        View(
            "signals",
            "Signals",
            (Curve("signal", "invariant"), Curve("spurious", "spurious"), Curve("error", "error ‖E‖")),
            "share of the signal learnt",
        ),
        View(
            "errors",
            "Distances",
            (Curve("distance", "to A★"), Curve("distance_to_mean", "to A★ + mean spurious part")),
            "Frobenius distance",
        ),
        View(
            "singular values",
            "Singular values",
            tuple(Curve("singular_values", n, i) for i, n in enumerate(names)),
            "singular values of A",
        ),
        View("loss", "Loss", (Curve("loss", "pooled loss"),), "E ‖A − Aₑ‖² / 2", log=True),
    ]


def program(s: Setting) -> tuple:
    names = ["law", "spurious_rank", "schedule", "order", "measurements", "model"]
    if (
        s["model"] != "U Uᵀ" or s["measurements"] == "fixed"
    ):  # through the library's own loop: a program for every shape
        names += ["rank", "dimension", "num_steps", "view"]
    return (*(s[n] for n in names), s["amplify"] > 0)


def _shown_law(s: Setting) -> Law:
    """The law that the dynamics see: that of the places, or the amplified one."""
    law = _law(s).build()
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
    share = float((transition.surrogate(law, eta, **options, num_samples=m, runs=500) < transition.LEARNT).mean())
    said = [f"Hetero: the spurious part is {fate} in a typical run; {share:.0%} of runs end without it."]
    if s["law"] == "two-point":
        critical = transition.critical_spread(eta, **options, mean=s["mean"]) / (1 + s["amplify"])
        said.append(f"The transition is at M* = {critical:.2f}.")
    if fate == "eliminated" and math.isfinite(m) and eta < 1 and s["measurements"] == "fresh":
        kept = {"dimension": s["dimension"], "rank": s["rank"], "step_size": eta, "num_samples": m, "runs": 300}
        places = _law(s).build()
        error = (
            theory.amplified_error_law(places, s["amplify"], **kept) if s["amplify"] else theory.error_law(law, **kept)
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


def _eliminated(values: dict[str, np.ndarray]) -> float:
    end = values["spurious"][:, -1]
    return float(np.mean(np.where(np.isfinite(end), end, np.inf) < transition.LEARNT))


def _boundary(s: Setting, across: np.ndarray, up: np.ndarray) -> tuple[str, list[float], list[float]] | None:
    if s["law"] != "two-point":
        return None
    etas = np.geomspace(up[0], up[-1], 60)
    options = {"init_scale": s["init_scale"], "num_steps": s["num_steps"], "mean": s["mean"]}
    critical = [transition.critical_spread(eta, **options) / (1 + s["amplify"]) for eta in etas]
    return "predicted transition M*", critical, etas.tolist()


def _xu(name: str, title: str, **values: object) -> Preset:
    return Preset(f"xu2024/{name}", title, values)


ENVIRONMENTS = Lab(
    "environments",
    "Several environments",
    "A signal that holds everywhere and one that changes from place to place: which one does SGD keep?",
    CONTROLS,
    sides,
    views,
    program,
    conditions,
    sentences,
    lines,
    Plane(
        "spread",
        "step_size",
        "hetero",
        "Runs that end without the spurious signal (HeteroSGD)",
        "share of runs",
        False,
        _eliminated,
        ("spurious",),
        _boundary,
    ),
    (
        _xu(
            "fig1",
            "Mixed batches keep both signals",
            dimension=40,
            rank=3,
            spurious_rank=2,
            mean=0.5,
            spread=4.0,
            step_size=0.1,
            num_samples=2800,
            num_steps=100,
        ),
        _xu("fig2", "The oscillation that kills (M = 8)", spread=8.0, num_steps=100, measurements="population"),
        _xu("fig3", "M = 6 forgets the spurious signal", dimension=100, spread=6.0),
        _xu("fig3-m1", "M = 1 learns it", dimension=100, spread=1.0),
        _xu("fig4", "A larger step forgets sooner", dimension=100, spread=6.0, step_size=0.1, num_steps=200),
        _xu(
            "fig5",
            "Hetero against pooled",
            dimension=40,
            rank=3,
            spurious_rank=2,
            mean=0.5,
            spread=4.0,
            step_size=0.1,
            num_samples=2800,
            num_steps=150,
        ),
        _xu(
            "fig6",
            "A batch of 80 is too small",
            dimension=30,
            rank=5,
            spurious_rank=5,
            mean=0.5,
            spread=4.0,
            step_size=0.05,
            num_samples=80,
            num_steps=400,
            view="errors",
        ),
    ),
)
