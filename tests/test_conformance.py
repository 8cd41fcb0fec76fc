"""Every algorithm, on every model and measurement that fits it: the promises of the one loop."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import gyrostat as gs
import reference
from conftest import Notes, Watch, given_places

D, STEPS, ETA, ALPHA, SAMPLES = 4, 12, 0.03, 0.3, 9
LAW = gs.Finite([-1.0, 3.0])
WEIGHTS = np.array([0.5, 0.5])


class Case(NamedTuple):
    algorithm: str
    options: dict
    model: str
    measurements: str

    def __str__(self) -> str:
        return "-".join([self.algorithm, *map(str, self.options.values()), self.model, self.measurements])

    def build(self, step_size: Any = ETA, init_scale: float = ALPHA) -> gs.Algorithm:
        model = {} if self.algorithm == "QuadraticNetwork" else {"model": getattr(gs, self.model)()}
        return getattr(gs, self.algorithm)(step_size, init_scale=init_scale, **self.options, **model)

    @property
    def problem(self) -> gs.Problem:
        return gs.Problem(places(self.model), MEASUREMENTS[self.measurements](self.model))

    @property
    def is_deterministic(self) -> bool:
        """Whether nothing in the run is random, so that all seeds agree."""
        fixed_order = self.options.get("order") == "cyclic" or self.algorithm == "PooledGD"
        averaged = self.measurements == "Identity" and self.algorithm == "PooledSGD"
        return (self.measurements in ("Identity", "DenseData") and fixed_order) or averaged


def places(model: str) -> gs.Environments:
    return gs.VectorEnvironments([1.0, -0.5, 0.0, 0.0], [2], LAW) if model == "Diagonal" else given_places(D, LAW)


def given_data(model: str) -> gs.DenseData:
    rng = np.random.default_rng(5)
    X = reference.gaussian(rng, (D,) if model == "Diagonal" else (D, D), 3 * SAMPLES)
    return gs.DenseData(X, rng.standard_normal(len(X)), environment=np.arange(len(X)) % 3 // 2)


MEASUREMENTS = {
    "Identity": lambda model: gs.Identity(),
    "FreshGaussian": lambda model: gs.FreshGaussian(SAMPLES, noise=0.1),
    "FixedGaussian": lambda model: gs.FixedGaussian(SAMPLES, noise=0.1),
    "Dense": lambda model: gs.Dense(SAMPLES, noise=0.1),
    "DenseRedrawn": lambda model: gs.Dense(SAMPLES, redraw=True, noise=0.1),
    "DenseData": given_data,
    "RankOne": lambda model: gs.RankOne(SAMPLES, truncation=1.5, noise=0.1),
}
MATRIX = ("Symmetric", "SymmetricDifference")


def fits(case: Case) -> bool:
    if case.algorithm == "QuadraticNetwork":
        return case.measurements == "RankOne" and case.model == "Symmetric"
    if case.measurements == "RankOne":
        return case.model in MATRIX
    return not (case.measurements == "FixedGaussian" and case.algorithm == "PooledSGD")


OPTIONS = {
    "HeteroSGD": [{"order": "iid"}, {"order": "cyclic"}, {"order": "shuffled"}],
    "PooledSGD": [{}],
    "PooledGD": [{}],
    "QuadraticNetwork": [{"order": "iid"}, {"pooled": True}],
}


def all_cases() -> list[Case]:
    """Every algorithm with every measurement and with every model; the models take turns.

    The whole product would compile a hundred programs of seconds each; an algorithm meets a model only
    through its pullback and a measurement only through its reading, so all pairs are enough.
    """
    found = []
    for algorithm, variants in OPTIONS.items():
        for options, (i, seen) in itertools.product(variants, enumerate(MEASUREMENTS)):
            turn = [(*MATRIX, "Diagonal")[(i + j) % 3] for j in range(3)]
            fitting = [c for model in turn if fits(c := Case(algorithm, options, model, seen))]
            reordered = options.get("order", "iid") != "iid" and seen not in ("Identity", "DenseData")
            if fitting and not reordered:
                found.append(fitting[0])
    return found


CASES = all_cases()


def test_every_algorithm_measurement_and_model_has_a_case():
    def public(kind, base):
        found = {n for n in gs.__all__ if isinstance(getattr(gs, n), type) and issubclass(getattr(gs, n), kind)}
        return found - {base}

    from gyrostat.measurements import Measurements
    from gyrostat.models import Model

    assert public(gs.Algorithm, "Algorithm") == {c.algorithm for c in CASES}
    for algorithm in ("HeteroSGD", "PooledSGD", "PooledGD"):
        assert public(Model, "Model") == {c.model for c in CASES if c.algorithm == algorithm}
    assert public(Measurements, "Measurements") == {c.measurements for c in CASES} - {"DenseRedrawn"}


def unpack(case: Case, flat: np.ndarray) -> tuple[np.ndarray, ...]:
    one = (D,) if case.model == "Diagonal" else (D, D)
    return tuple(x.reshape(one) for x in np.split(flat, 1 if case.model == "Symmetric" else 2))


def explicit(case: Case, note: dict) -> tuple[np.ndarray, np.ndarray]:
    """The measurement matrices and the responses of a batch, as arrays of the shape of the target."""
    X, y = note["rows"], note["responses"]
    if "weights" in note:
        X, y = X[note["weights"] > 0], y[note["weights"] > 0]
    return (X if case.model == "Diagonal" else np.stack([reference.smat(x) for x in X])), y


def twin_step(case: Case, params: tuple, asked: list[dict]) -> tuple:
    """The step that the equations ask for, given what was measured."""
    if case.algorithm == "QuadraticNetwork":
        (note,) = asked
        return (reference.algorithm4_step(params[0], note["rows"], note["responses"], ETA, 1.5),)
    if case.measurements == "RankOne":
        A = reference.product(case.model, params)
        G = np.mean([reference.rank_one_gradient(A, n["rows"], n["responses"], 1.5) for n in asked], axis=0)
        return reference.move(case.model, params, G, ETA)
    if "rows" in asked[0]:
        batches = [explicit(case, note) for note in asked]
        if case.algorithm == "PooledGD":
            return reference.full_step(case.model, params, batches, WEIGHTS, ETA)
        return reference.batch_step(case.model, params, *batches[0], ETA)
    if case.measurements == "Identity":
        G = reference.product(case.model, params) - np.mean([n["target"] for n in asked], axis=0)
    else:  # exact in law: there are no rows, the gradient is what was seen (test_measurements_exact.py)
        G = np.mean([n["gradient"] for n in asked], axis=0)
    return reference.move(case.model, params, G, ETA)


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
    assert found.params.dtype == np.float64 and (found.diverged == -1).all()

    # The plain-NumPy twin replays every run from what was measured. The tolerance is that of rounding: two
    # sums of nine terms in different orders, amplified by at most (1 + ETA * 30) per step.
    runs = notes.read()
    assert len(runs) == 3
    gaps = np.array([[_gap(case, found.params.values[s], asked) for asked in runs] for s in range(3)])
    assert gaps.min(axis=1).max() < 1e-11
    if case.is_deterministic:
        assert np.ptp(found.params.values, axis=0).max() == 0
    else:
        assert sorted(gaps.argmin(axis=1)) == [0, 1, 2]  # different seeds differ, and every run is its own

    # Other seeds and other numbers in the settings: the same program; the same seed: the same numbers.
    before = watch.traced
    again = gs.run(algorithm, spied, seeds=[2, 7, 8], **options)
    np.testing.assert_array_equal(again.params[0], found.params[2])
    changed = gs.run(case.build(ETA / 2, 2 * ALPHA), spied, seed=5, seeds=[0, 1, 2], **options)
    assert not np.array_equal(changed.params, found.params)
    assert watch.traced == before


PLAIN = [
    Case("HeteroSGD", {"order": "iid"}, "Symmetric", "FreshGaussian"),
    Case("HeteroSGD", {"order": "shuffled"}, "Diagonal", "Identity"),
    Case("PooledGD", {}, "Symmetric", "FixedGaussian"),
]


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_recording_and_company_have_no_influence(case: Case):
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
    params = reference.start(case.model, D, ALPHA)
    worst = 0.0
    for t in range(STEPS):
        params = twin_step(case, params, asked[t * per_step : (t + 1) * per_step])
        flat = np.concatenate([p.ravel() for p in params])
        worst = max(worst, np.abs(flat - path[t + 1]).max() / np.abs(flat).max())
    return worst
