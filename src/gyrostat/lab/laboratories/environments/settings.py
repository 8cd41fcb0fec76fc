"""What can be set of multi-environment sensing, and what is then run."""

from __future__ import annotations

from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.expression import Call, call
from gyrostat.lab.lab import Curve, Side, View

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
    choice("order", "order", ("iid", "cyclic", "shuffled"), group=RUN, compiles=True),
    number(
        "amplify", "amplification", "κ", 0.0, 0.0, 12.0, 0.1, group=RUN, help="ours: steps with G + κ (G − mean of G)"
    ),
    choice("measurements", "measurements", ("fresh", "fixed", "population"), group=SEEN, compiles=True),
    whole(
        "num_samples",
        "batch size",
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


def law_of(s: Setting) -> Call:
    return call(LAWS[s["law"]], mean=s["mean"], spread=s["spread"], rank=s["spurious_rank"])


def _schedule(s: Setting) -> object:
    eta = s["step_size"]
    if s["schedule"] == "constant":
        return eta
    return call("Annealing", call("Constant", eta), call("Constant", eta / 10), at=s["num_steps"] // 2)


def sides(s: Setting) -> list[Side]:
    """HeteroSGD and its pooled counterpart: PooledGD where data are fixed, because single rows cannot be mixed there."""
    places = call("RandomEnvironments", s["dimension"], rank=s["rank"], law=law_of(s), overlap=s["overlap"])
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
