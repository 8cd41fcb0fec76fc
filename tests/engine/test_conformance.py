"""The promises of the engine for every algorithm, on every model and measurement that fits it."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import gyrostat as gs
import reference
from conftest import Notes, Watch, given_environments, rectangular_environments

D, COLUMNS, STEPS, ETA, ALPHA, SAMPLES = 4, 3, 12, 0.03, 0.3, 9
LAW = gs.Finite([-1.0, 3.0])
DESCENTS = ("GradientDescent", "RidgeDescent", "ScaledGD", "PrecGD")
"""Full-batch descent of Xiong 2024 and its peers, and that of Wang 2023: they start at random."""
RIDGE = 0.3
BETA, AT, BELOW, DAMPING = 0.8, 4, 0.9999, 0.05
RULES = {
    "Momentum": (gs.rules.Momentum, {"beta": 0.7}),
    "Nesterov": (gs.rules.Nesterov, {"beta": 0.6}),
    "Adam": (gs.rules.Adam, {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3}),
    "Optax": (
        lambda **given: gs.rules.Optax("adam", {"learning_rate": 1.0, **given}),
        {"b1": 0.8, "b2": 0.9, "eps": 1e-3},
    ),
}
"""Rules with memory and their numbers; the last is Adam again, through optax."""

EVENTS = {"at": gs.events.ImbalanceStep(at=AT, beta=BETA), "below": gs.events.ImbalanceStep(below=BELOW)}


class Case(NamedTuple):
    algorithm: str
    options: dict
    model: str
    measurements: str

    def __str__(self) -> str:
        return "-".join([self.algorithm, *map(str, self.options.values()), self.model, self.measurements])

    @property
    def rule(self) -> str | None:
        """The name of its rule with memory."""
        return self.options.get("rule")

    def build(self, step_size: Any = ETA, init_scale: float = ALPHA, forget: float = 1.0) -> gs.Algorithm:
        """The algorithm; the numbers of a rule with memory are multiplied by ``forget``."""
        options = dict(self.options)
        if self.rule is not None:
            make, numbers = RULES[self.rule]
            options["rule"] = make(**{name: forget * x for name, x in numbers.items()})
        if self.algorithm == "RidgeDescent":
            start = gs.starts.FanInGaussian(init_scale)
            return gs.RidgeDescent(step_size, RIDGE, model=gs.DeepLinear(3, 2), start=start, **options)
        if self.algorithm in DESCENTS:
            if "event" in options:
                options["events"] = [EVENTS[options.pop("event")]]
            # Two columns, so that the Gram matrices that ScaledGD divides by are well-conditioned.
            if self.model == "SymmetricDifference":
                options["model"] = gs.models.SymmetricDifference(width=2)
            else:
                options |= {"width": 2, "symmetric": self.model == "Symmetric"}
            return gs.public(self.algorithm)(step_size, start=init_scale, **options)
        model = {} if self.algorithm == "QuadraticNetworkSGD" else {"model": gs.public(self.model)()}
        return gs.public(self.algorithm)(step_size, init_scale=init_scale, **options, **model)

    @property
    def problem(self) -> gs.Problem:
        return gs.Problem(environments(self.model), MEASUREMENTS[self.measurements](self.model))

    @property
    def is_deterministic(self) -> bool:
        """Whether no measurement is random, so that all seeds agree if they start alike."""
        fixed_order = self.options.get("order", "iid") in ("cyclic", (0, 0, 1)) or self.algorithm in (
            "PooledGD",
            *DESCENTS,
        )
        averaged = self.measurements == "Identity" and self.algorithm == "PooledSGD"
        sampled = self.measurements not in ("Identity", "DenseData")
        return (not sampled and fixed_order) or averaged


def environments(model: str) -> gs.Environments:
    if model in RECTANGULAR:
        return rectangular_environments(D, COLUMNS, LAW)
    return gs.VectorEnvironments([1.0, -0.5, 0.0, 0.0], [2], LAW) if model == "Diagonal" else given_environments(D, LAW)


def given_data(model: str) -> gs.DenseData:
    rng = np.random.default_rng(5)
    X = reference.gaussian(rng, environments(model).shape, 3 * SAMPLES)
    return gs.DenseData(X, rng.standard_normal(len(X)), environment=np.arange(len(X)) % 3 // 2)


MEASUREMENTS = {
    "Identity": lambda model: gs.Identity(),
    "FreshGaussian": lambda model: gs.FreshGaussian(SAMPLES, noise=0.1),
    "FixedGaussian": lambda model: gs.FixedGaussian(SAMPLES, noise=0.1),
    "Dense": lambda model: gs.Dense(SAMPLES, noise=0.1, operator="rows"),
    "DenseRedrawn": lambda model: gs.Dense(SAMPLES, redraw=True, noise=0.1),
    "DenseData": given_data,
    "RankOne": lambda model: gs.RankOne(SAMPLES, truncation=1.5, noise=0.1),
    "Entries": lambda model: gs.Entries(PAIRS, noise=0.1),
    "EntriesDrawn": lambda model: gs.Entries(PAIRS, batch_size=2, noise=0.1),
    "EntriesShuffled": lambda model: gs.Entries(PAIRS, batch_size=2, order="shuffled"),
}
PAIRS = [(0, 0), (1, 2), (3, 1), (2, 2), (3, 0), (1, 1)]
MATRIX = ("Symmetric", "SymmetricDifference")
RECTANGULAR = ("Asymmetric", "DeepLinear")
MODELS = ("Diagonal", *RECTANGULAR, *MATRIX)


def fits(case: Case) -> bool:
    if case.algorithm == "QuadraticNetworkSGD":
        return case.measurements == "RankOne" and case.model == "Symmetric"
    if case.measurements == "RankOne":
        return case.model in MATRIX
    if case.measurements.startswith("Entries"):
        pooled = case.algorithm == "PooledSGD"
        return case.model in RECTANGULAR and not (pooled and case.measurements == "EntriesShuffled")
    return not (case.measurements == "FixedGaussian" and case.algorithm == "PooledSGD")


OPTIONS = {
    "HeteroSGD": [{"order": "iid"}, {"order": "cyclic"}, {"order": "shuffled"}],
    "PooledSGD": [{}],
    "PooledGD": [{}],
    "QuadraticNetworkSGD": [{"order": "iid"}, {"pooled": True}],
}


IN_FULL = ("FreshGaussian", "Dense", "DenseData", "Entries", "EntriesDrawn")
"""Measurements with which the full-batch descents are tested; PooledGD tests the others, with all models."""


def all_cases() -> list[Case]:
    """Every kind of batches with every measurement, and every algorithm with every model; the models alternate.

    The whole product would compile a hundred programs of seconds each; an algorithm meets a model only
    through its pullback and a measurement only through its reading, so all pairs are enough.
    """
    found = []
    for algorithm, variants in OPTIONS.items():
        for options, (i, seen) in itertools.product(variants, enumerate(MEASUREMENTS)):
            turn = [MODELS[(i + j) % len(MODELS)] for j in range(len(MODELS))]
            fitting = [c for model in turn if fits(c := Case(algorithm, options, model, seen))]
            reordered = options.get("order", "iid") != "iid" and seen not in ("Identity", "DenseData")
            if fitting and not reordered and not (algorithm == "PooledGD" and seen in IN_FULL):
                found.append(fitting[0])
    return found


# The descents see batches as PooledGD does; each has a case with rows, whose residual the twin computes itself.
DESCENT_CASES = [
    Case("GradientDescent", {}, "Symmetric", "FreshGaussian"),
    Case("GradientDescent", {}, "Asymmetric", "Dense"),
    Case("GradientDescent", {"event": "at"}, "Asymmetric", "FixedGaussian"),
    Case("GradientDescent", {"event": "below"}, "Asymmetric", "DenseData"),
    Case("ScaledGD", {}, "Asymmetric", "Dense"),
    Case("ScaledGD", {"damping": DAMPING}, "Symmetric", "Identity"),
    Case("PrecGD", {}, "Asymmetric", "FixedGaussian"),
    Case("PrecGD", {}, "SymmetricDifference", "DenseRedrawn"),
    Case("RidgeDescent", {}, "DeepLinear", "EntriesDrawn"),
    Case("RidgeDescent", {"convention": "main_text"}, "DeepLinear", "Entries"),
    Case("RidgeDescent", {"convention": "appendix"}, "DeepLinear", "Identity"),
]
# Every rule with memory on every kind of batches; the models and the measurements alternate.
MEMORY_CASES = [
    Case("HeteroSGD", {"order": "iid", "rule": "Momentum"}, "Symmetric", "FreshGaussian"),
    Case("HeteroSGD", {"order": (0, 0, 1), "rule": "Momentum"}, "Asymmetric", "Identity"),
    Case("HeteroSGD", {"order": "iid", "rule": "Momentum"}, "DeepLinear", "EntriesDrawn"),
    Case("PooledSGD", {"rule": "Nesterov"}, "Diagonal", "Dense"),
    Case("PooledGD", {"rule": "Nesterov"}, "SymmetricDifference", "FixedGaussian"),
    Case("HeteroSGD", {"order": "iid", "rule": "Adam"}, "DeepLinear", "DenseRedrawn"),
    Case("PooledGD", {"rule": "Adam"}, "Asymmetric", "Entries"),
    Case("PooledSGD", {"rule": "Adam"}, "Symmetric", "DenseData"),
    Case("HeteroSGD", {"order": "cyclic", "rule": "Optax"}, "Asymmetric", "DenseData"),
    Case("GradientDescent", {"event": "at", "rule": "Momentum"}, "Asymmetric", "Dense"),
    Case("ScaledGD", {"damping": DAMPING, "rule": "Momentum"}, "Asymmetric", "Identity"),
    Case("RidgeDescent", {"convention": "main_text", "rule": "Nesterov"}, "DeepLinear", "EntriesDrawn"),
]
AMPLIFIED = {"order": "cyclic", "amplify": 1.5}
AMPLIFIED_CASES = [
    Case("HeteroSGD", AMPLIFIED, "Diagonal", "DenseData"),
    Case("HeteroSGD", AMPLIFIED, "Symmetric", "Dense"),
    Case("HeteroSGD", AMPLIFIED, "Asymmetric", "FreshGaussian"),
    Case("QuadraticNetworkSGD", AMPLIFIED, "Symmetric", "RankOne"),
]
CASES = all_cases() + DESCENT_CASES + MEMORY_CASES + AMPLIFIED_CASES


def test_every_algorithm_measurement_and_model_has_a_case():
    def public(kind, base):
        found = {n for n in gs.places() if isinstance(gs.public(n), type) and issubclass(gs.public(n), kind)}
        return found - {base}

    from gyrostat.measurements import Measurements
    from gyrostat.models import Model

    assert public(gs.Algorithm, "Algorithm") == {c.algorithm for c in CASES}
    for algorithm in ("HeteroSGD", "PooledSGD", "PooledGD"):
        assert public(Model, "Model") == {c.model for c in CASES if c.algorithm == algorithm}
    assert public(gs.rules.UpdateRule, "UpdateRule") == {type(c.build().rule).__name__ for c in CASES}
    assert set(IN_FULL) <= {c.measurements for c in DESCENT_CASES}
    assert {type(c.build().batches) for c in DESCENT_CASES} == {type(gs.PooledGD(ETA).batches)}
    assert public(Measurements, "Measurements") == {c.measurements for c in CASES} - {
        "DenseRedrawn",
        "EntriesDrawn",
        "EntriesShuffled",
    }


def unpack(case: Case, flat: np.ndarray) -> tuple[np.ndarray, ...]:
    """The parameters of a descent from their entries in a row."""
    shapes = [(D, 2), (COLUMNS, 2)] if case.model == "Asymmetric" else [(D, 2)] * (1 + (case.model != "Symmetric"))
    if case.model == "DeepLinear":
        shapes = [(2, COLUMNS), (2, 2), (D, 2)]
    cuts = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
    return tuple(x.reshape(shape) for x, shape in zip(np.split(flat, cuts), shapes, strict=True))


def explicit(case: Case, note: dict) -> tuple[np.ndarray, np.ndarray]:
    """The measurement matrices and the responses of a batch, as arrays of the shape of the target."""
    X, y = note["rows"], note["responses"]
    if "weights" in note:
        X, y = X[note["weights"] > 0], y[note["weights"] > 0]
    if case.model in MATRIX:
        return np.stack([reference.smat(x) for x in X]), y
    return X.reshape(-1, *environments(case.model).shape), y


def amplified_step(case: Case, params: tuple, asked: list[dict], e: int) -> tuple:
    """A step with G_e + kappa (G_e - mean of G); Algorithm 4 amplifies the mean response as the gradient that it corrects."""
    kappa = case.options["amplify"]
    factors = (1 + kappa) * np.eye(len(asked))[e] - kappa / len(asked)  # environments have equal weights
    if case.algorithm == "HeteroSGD":
        G = np.tensordot(factors, [seen(case, params, [note])[0] for note in asked], axes=1)
        return reference.move(case.model, params, G, ETA)
    (U,), batches = params, [(note["rows"], note["responses"]) for note in asked]
    G = np.tensordot(factors, [reference.rank_one_gradient(U @ U.T, x, y, 1.5) for x, y in batches], axes=1)
    tau = factors @ [y.mean() for _, y in batches]
    return ((U - ETA * G @ U) / (1 - ETA * (np.sum(U**2) - tau)),)


def seen(case: Case, params: tuple, asked: list[dict]) -> tuple[np.ndarray, float]:
    """The gradient and the root mean square residual of what a step asked, from the rows if there are any."""
    A = reference.product(case.model, params)
    if case.measurements == "RankOne":  # no algorithm asks for its residual
        G, squares = [reference.rank_one_gradient(A, note["rows"], note["responses"], 1.5) for note in asked], [np.nan]
    elif "rows" in asked[0]:
        batches = [explicit(case, note) for note in asked]
        G = [reference.gradient(A, X, y) for X, y in batches]
        squares = [np.mean((np.tensordot(X, A, axes=A.ndim) - y) ** 2) for X, y in batches]
    elif case.measurements == "Identity":
        G = [A - note["target"] for note in asked]
        squares = [np.sum(g**2) for g in G]
    else:  # exact in law: there are no rows, the gradient is what was seen (test_exact_laws.py)
        G, squares = [note["gradient"] for note in asked], [float(note["square"]) for note in asked]
    return np.mean(G, axis=0), np.sqrt(np.mean(squares))  # environments have equal weights


def directions(case: Case, params: tuple, G: np.ndarray, residual: float) -> tuple:
    """What a rule without memory multiplies by the step size."""
    if case.algorithm == "RidgeDescent":
        a, b = reference.CONVENTIONS[case.options.get("convention", "weight_decay")]
        moved = reference.pullback("DeepLinear", params, 2 * G)
        return tuple(a * g + b * RIDGE * W for W, g in zip(params, moved, strict=True))
    if case.algorithm in ("ScaledGD", "PrecGD"):
        damping = residual if case.algorithm == "PrecGD" else case.options.get("damping", 0.0)
        still = reference.preconditioned_step(case.model, params, G, 1.0, damping)
        return tuple(p - q for p, q in zip(params, still, strict=True))
    # Eq. (2.3) of Xiong 2024
    factor = 2.0 if case.algorithm == "GradientDescent" and case.model == "Symmetric" else 1.0
    return reference.pullback(case.model, params, factor * G)


def twin(case: Case, path: np.ndarray, asked: list[list[dict]]) -> list[tuple]:
    """The parameters after each step by the equations, given the measurements, and the start where it is random."""
    random_start = case.algorithm in DESCENTS
    params = unpack(case, path[0]) if random_start else reference.start(case.model, D, ALPHA, COLUMNS)
    kind, numbers = case.rule, RULES[case.rule][1] if case.rule else {}
    if kind == "Optax":
        kind, numbers = "Adam", dict(zip(("beta1", "beta2", "epsilon"), numbers.values(), strict=True))
    event, fired, remembered_from, memory, first_residual, after = case.options.get("event"), False, 0, None, None, []
    for t, notes in enumerate(asked):
        if "amplify" in case.options or case.algorithm == "QuadraticNetworkSGD":
            if "amplify" in case.options:
                params = amplified_step(case, params, notes, t % 2)
            else:
                params = (reference.algorithm4_step(params[0], notes[0]["rows"], notes[0]["responses"], ETA, 1.5),)
            after.append(params)
            continue
        G, residual = seen(case, params, notes)
        first_residual = residual if first_residual is None else first_residual
        steps = directions(case, params, G, residual)
        if kind is not None:
            steps, memory = reference.remember(kind, memory, t + 1 - remembered_from, steps, numbers)
        params = tuple(p - ETA * s for p, s in zip(params, steps, strict=True))
        if (event == "at" and t == AT) or (event == "below" and not fired and residual <= BELOW * first_residual):
            s = np.linalg.svd(params[0] @ params[1].T, compute_uv=False)
            beta = BETA if event == "at" else np.sqrt(min(s[s > residual], default=s[0]))
            F, G = reference.imbalance_step(*params, beta)
            signs = np.sign(np.sum(F * unpack(case, path[t + 1])[0], axis=0))  # those of an SVD are free
            params, fired = (F * signs, G * signs), True
            memory, remembered_from = None, t + 1  # other columns of the factors: what was remembered is forgotten
        after.append(params)
    assert fired == (event is not None)
    return after


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conforms(case: Case, notes: Notes):
    algorithm, problem = case.build(), case.problem
    watch = Watch()
    spied = gs.Problem(problem.environments, notes.spy(problem.measurements))
    options = {"num_steps": STEPS, "record": [watch.diagnostic], "record_at": STEPS + 1}
    found = gs.run(algorithm, spied, seeds=[0, 1, 2], **options)

    # Shapes and dtypes: those of the model, in double precision, and nothing else was ever traced.
    shapes = algorithm.model.shapes(problem.shape)
    assert watch.seen == {tuple((s, "float64") for s in shapes)}
    assert found.params.dtype == np.float64 and np.isinf(found.diverged).all()

    # The plain-NumPy twin replays every run from what was measured. The tolerance is that of rounding: two
    # sums of nine terms in different orders, amplified by at most (1 + ETA * 30) per step.
    runs = notes.read()
    assert len(runs) == 3
    gaps = np.array([[_gap(case, found.params.values[s], asked) for asked in runs] for s in range(3)])
    assert gaps.min(axis=1).max() < 1e-11
    if not case.is_deterministic:
        assert sorted(gaps.argmin(axis=1)) == [0, 1, 2]  # different seeds differ, and every run is its own
    elif case.algorithm in DESCENTS:
        assert len(np.unique(found.params.values[:, 0, 0])) == 3  # the start is random
    else:
        assert np.ptp(found.params.values, axis=0).max() == 0

    # Other seeds and other numbers in the settings: the same program; the same seed: the same numbers.
    before = watch.traced
    again = gs.run(algorithm, spied, seeds=[2, 7, 8], **options)
    np.testing.assert_array_equal(again.params[0], found.params[2])
    changed = gs.run(case.build(ETA / 2, 2 * ALPHA, forget=0.9), spied, seed=5, seeds=[0, 1, 2], **options)
    assert not np.array_equal(changed.params, found.params)
    assert watch.traced == before


def test_the_text_of_an_algorithm_makes_an_equal_one():
    names = {name: gs.public(name) for name in gs.places()}
    for case in CASES:
        algorithm = case.build()
        assert bool(eval(repr(algorithm), names) == algorithm), repr(algorithm)


PLAIN = [
    Case("HeteroSGD", {"order": "iid"}, "Symmetric", "FreshGaussian"),
    Case("HeteroSGD", {"order": "shuffled"}, "Diagonal", "Identity"),
    Case("PooledGD", {}, "Symmetric", "FixedGaussian"),
]


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_recording_and_other_runs_have_no_influence(case: Case):
    watch = Watch()
    algorithm, problem = case.build(), case.problem
    options = {"num_steps": 60, "record": [watch.diagnostic]}
    grids = (2, 50, [0, 7, 59]) if case.measurements == "Identity" else (2, [0, 7, 59])
    found = [gs.run(algorithm, problem, seeds=4, record_at=at, **options) for at in grids]
    for other in found[1:]:  # the same floating-point operations in the same order: bitwise equal
        np.testing.assert_array_equal(other.params.sel(step=60), found[0].params.sel(step=60))
    # A run alone is another program (another vector width), so sums of four terms may round differently:
    # 1e-16 per step, and 60 steps.
    alone = gs.run(algorithm, problem, seeds=[2], record_at=2, **options)
    np.testing.assert_allclose(alone.params[0, -1], found[0].params[2, -1], rtol=1e-12, atol=1e-13)


def _gap(case: Case, path: np.ndarray, asked: list[dict]) -> float:
    """How far the recorded path is from the twin's, relative to its size."""
    per_step = len(asked) // STEPS
    steps = [asked[t * per_step : (t + 1) * per_step] for t in range(STEPS)]
    worst = 0.0
    for params, recorded in zip(twin(case, path, steps), path[1:], strict=True):
        flat = np.concatenate([p.ravel() for p in params])
        worst = max(worst, np.abs(flat - recorded).max() / np.abs(flat).max())
    return worst
