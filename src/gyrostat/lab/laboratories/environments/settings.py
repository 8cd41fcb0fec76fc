"""What can be set of multi-environment sensing, and what is then run."""

from __future__ import annotations

from gyrostat.experiments.object_tables import LAWS, ObjectTable, object_table
from gyrostat.lab.controls import Setting, choice, number, whole
from gyrostat.lab.lab import Curve, Side, View

PLACES, RUN, SEEN, MORE = "Environments", "Descent", "Measurements", "Model and start"
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


def law_of(s: Setting) -> ObjectTable:
    return object_table(LAWS[s["law"]], mean=s["mean"], spread=s["spread"], rank=s["spurious_rank"])


def _schedule(s: Setting) -> object:
    eta = s["step_size"]
    if s["schedule"] == "constant":
        return eta
    high, low = (object_table("Constant", step_size=x) for x in (eta, eta / 10))
    return object_table("Annealing", high=high, low=low, at=s["num_steps"] // 2)


def sides(s: Setting) -> list[Side]:
    """HeteroSGD and its pooled counterpart: PooledGD where data are fixed, because single rows cannot be mixed there."""
    environments = object_table(
        "RandomEnvironments", dimension=s["dimension"], rank=s["rank"], law=law_of(s), overlap=s["overlap"]
    )
    measurements = {
        "fresh": object_table("FreshGaussian", num_samples=s["num_samples"]),
        "fixed": object_table("FixedGaussian", num_samples=s["num_samples"]),
        "population": object_table("Identity"),
    }[s["measurements"]]
    problem = object_table("Problem", environments=environments, measurements=measurements)
    options = {"step_size": _schedule(s), "init_scale": s["init_scale"]}
    if s["model"] != "U Uᵀ":
        options["model"] = object_table(MODELS[s["model"]])
    mine = options | ({"amplify": s["amplify"]} if s["amplify"] > 0 else {})
    pooled = "PooledGD" if s["measurements"] == "fixed" else "PooledSGD"
    return [
        Side(
            "hetero",
            "One environment per batch (HeteroSGD)",
            object_table("HeteroSGD", order=s["order"], **mine),
            problem,
        ),
        Side("pooled", f"Environments mixed ({pooled})", object_table(pooled, **options), problem),
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
