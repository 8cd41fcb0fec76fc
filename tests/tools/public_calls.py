"""Every public class and function with good arguments, to be spoilt one at a time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import optax

import gyrostat as gs
from gyrostat import estimators, experiments, theory
from gyrostat.figures import declarations as figures

EYE = np.eye(4)
LAW = gs.TwoPoint(spread=6.0)
FLAT = gs.Constant(0.1, 0.1)
ROWS = np.stack([np.eye(3)] * 4)
PAIRS = [(0, 0), (1, 0), (1, 1)]
PROBLEM = gs.Problem(gs.Environments.diagonal(3), gs.Identity())
ALGORITHM = gs.GradientDescent(0.1)
RNG = np.random.default_rng(0)
X, Y, LABELS = RNG.normal(size=(40, 3)), RNG.normal(size=40), np.repeat([0, 1], 20)
XS = np.linspace(0, 1, 4)
PANEL = {"title": "t", "xlabel": "x", "ylabel": "y", "series": []}

GOOD: dict[str, dict[str, Any]] = {  # what a call needs; names with a dot belong to that module
    "Algorithm": {"model": gs.Symmetric(), "start": gs.ScaledIdentity(0.1), "batches": gs.Full(), "schedule": FLAT},
    "Annealing": {"high": FLAT, "low": FLAT, "at": 5},
    "ArrayEnvironments": {"invariant": EYE},
    "Constant": {"step_size": 0.1},
    "Dense": {"num_samples": 5},
    "DenseData": {"matrices": ROWS, "responses": np.ones(4), "environment": [0, 0, 1, 1]},
    "Diagnostic": {"name": "mine", "function": lambda snapshot: 0.0},
    "Entries": {"pairs": PAIRS},
    "Environments": {"invariant_basis": EYE[:, :1]},
    "FeatureEnvironments": {"dimension": 4, "rank": 1, "law": LAW},
    "Finite": {"values": [-1.0, 3.0]},
    "FixedGaussian": {"num_samples": 10},
    "FreshGaussian": {"num_samples": 10},
    "GradientDescent": {"step_size": 0.1},
    "HeteroSGD": {"step_size": 0.1},
    "ImbalanceStep": {"at": 3},
    "ImbalancedGaussian": {"scale": 0.1},
    "Observed": {"shape": (3, 3), "count": 2},
    "Periodic": {"phases": [(5, FLAT)]},
    "Piecewise": {"pieces": [(0, None, FLAT)]},
    "PooledGD": {"step_size": 0.1},
    "PooledSGD": {"step_size": 0.1},
    "PrecGD": {"step_size": 0.1},
    "amplified_heterogeneity": {"inner": optax.sgd(0.1), "num_environments": 2},
    "Problem": {"environments": gs.Environments.diagonal(3), "measurements": gs.Identity()},
    "QuadraticNetwork": {"step_size": 0.1},
    "RandomEnvironments": {"dimension": 4, "law": LAW},
    "RandomRectangular": {"rows": 4, "columns": 3},
    "RankOne": {"num_samples": 10},
    "RectangularEnvironments": {"left": EYE[:, :1], "right": np.eye(3)[:, :1]},
    "Region": {"rank": 1, "alpha": 0.1, "balance": 0.1, "excess": 0.1, "bound": 3.0},
    "RidgeDescent": {"step_size": 0.1},
    "ScaledGD": {"step_size": 0.1},
    "ScaledGaussian": {"scale": 0.1},
    "ScaledIdentity": {"scale": 0.1},
    "SymmetricGaussian": {"scale": 0.1},
    "VectorEnvironments": {"coefficients": [1.0, 0.0]},
    "WarmUp": {"num_steps": 5, "step_size": 0.1, "then": FLAT},
    "absorbing": {"ridge": 0.1, "depth": 3, "size": 2},
    "approximate_rank": {"alpha": 0.1},
    "compare_methods": {"X": X[:, :1], "y": Y, "environments": np.arange(40) % 3, "resamples": 2},
    "heterogeneity": {"X": X, "y": Y, "environments": LABELS},
    "isometry_constant": {"dimension": 3, "num_samples": 10, "rank": 1, "draws": 2, "steps": 1},
    "jump_times": {"values": [[1.0], [0.1]], "steps": [0, 1]},
    "jumps": {"values": [[1.0], [0.1]], "steps": [0, 1]},
    "late_speed": {"factor": EYE, "cofactor": EYE, "step_size": 0.1, "rank": 2},
    "membership": {"region": gs.Region(1, 0.1, 0.1, 0.1, 3.0)},
    "representation_cost": {"matrix": EYE, "depth": 3},
    "run": {"algorithm": ALGORITHM, "problem": PROBLEM, "num_steps": 2},
    "run_grid": {"build": lambda a: (ALGORITHM, PROBLEM), "settings": {"a": [1]}, "num_steps": 2},
    "offshoots": {"algorithm": ALGORITHM, "problem": PROBLEM, "at": [1], "schedule": FLAT, "num_steps": 2},
    "theory.Setting": {"law": LAW},
    "theory.amplification_limit": {"law": LAW, "step_size": 0.05},
    "theory.amplified": {"law": LAW, "amplify": 1.5},
    "theory.amplified_error_law": {
        "law": LAW,
        "amplify": 1.5,
        "dimension": 5,
        "rank": 1,
        "step_size": 0.05,
        "num_samples": 100.0,
        "runs": 10,
    },
    "theory.assess": {"setting": theory.Setting(LAW), "isometry_draws": 0, "runs": 10},
    "theory.assumptions": {
        "law": LAW,
        "dimension": 5,
        "rank": 1,
        "overlap": 0.0,
        "delta": 0.1,
        "init_scale": 0.01,
    },
    "theory.calibration": {"step_size": 0.05, "init_scale": 0.01, "num_steps": 10},
    "theory.calibration_line": {
        "step_size": 0.05,
        "init_scale": 0.01,
        "num_steps": 10,
        "bound": 7.0,
        "delta": 0.01,
        "ranks": 2,
    },
    "theory.controller": {"law": LAW, "step_size": 0.05, "line": np.full(5, 0.01), "violation": 0.1, "runs": 10},
    "theory.critical_amplification": {"law": LAW, "step_size": 0.05, "init_scale": 0.01, "num_steps": 10},
    "theory.critical_points": {"target": np.eye(2), "pairs": PAIRS, "depth": 3, "ridge": 0.1, "tries": 1},
    "theory.critical_spread": {"step_size": 0.05, "init_scale": 0.01, "num_steps": 20},
    "theory.edge_overlap": {"dimension": 5, "rank": 1, "spurious_rank": 1},
    "theory.effective_step": {"step_size": 0.05, "beta": 0.5},
    "theory.eliminated_by_lyapunov": {"law": LAW, "step_size": 0.05, "init_scale": 0.01, "num_steps": 10},
    "theory.envelope": {"step_size": 0.05, "init_scale": 0.01},
    "theory.error_law": {
        "law": LAW,
        "dimension": 5,
        "rank": 1,
        "step_size": 0.05,
        "num_samples": 100.0,
        "runs": 10,
    },
    "theory.exact_moments": {"law": LAW, "step_size": 0.05, "power": 0.5, "num_steps": 5},
    "theory.exact_width_rate": {"step_size": 0.05, "smallest": 1.0},
    "theory.fold": {"epsilon": 0.1, "depth": 3},
    "theory.heterogeneity": {"law": LAW},
    "theory.imbalance_increment": {"factor": EYE, "cofactor": EYE, "gradient": EYE, "step_size": 0.1},
    "theory.imbalanced_rate": {"step_size": 0.05, "smallest": 1.0},
    "theory.increment_bound": {"factor": EYE, "cofactor": EYE, "gradient": EYE, "step_size": 0.1},
    "theory.informal_window": {"law": LAW},
    "theory.isometry_bound": {"law": LAW, "dimension": 5, "rank": 1},
    "theory.leading_error": {"law": LAW, "dimension": 5, "rank": 1, "step_size": 0.05, "num_samples": 100.0},
    "theory.lower_bound": {"step_size": 0.05, "init_scale": 0.01, "dimension": 5, "steps": np.arange(5)},
    "theory.lyapunov_exponent": {"law": LAW, "step_size": 0.05},
    "theory.moment_growth": {"law": LAW, "step_size": 0.05, "power": 0.5},
    "theory.overlap_constant": {"overlaps": np.array([0.1]), "dimension": 5, "rank": 1, "spurious_rank": 1},
    "theory.phase_one_length": {"step_size": 0.05, "init_scale": 0.01},
    "theory.pooled_gap": {"rank": 1, "spurious_rank": 1},
    "theory.step_conditions": {"law": LAW, "step_size": 0.05},
    "theory.step_window": {"law": LAW},
    "theory.surrogate": {"law": LAW, "step_size": 0.05, "init_scale": 0.01, "num_steps": 5, "runs": 10},
    "theory.symmetric_tail": {"step_size": 0.05, "width": 3, "rank": 1, "steps": np.arange(5)},
    "theory.theorem2_bound": {"law": LAW, "dimension": 5, "rank": 1, "delta": 0.1},
    "theory.theorem31_conditions": {
        "step_size": 0.05,
        "init_scale": 0.01,
        "values": np.array([1.0]),
        "width": 3,
        "dimension": 5,
    },
    "theory.theorem41_bounds": {"step_size": 0.05, "init_scale": 0.01, "dimension": 5, "steps": np.arange(5)},
    "theory.theorem42_conditions": {
        "step_size": 0.05,
        "init_scale": 0.01,
        "values": np.array([1.0]),
        "width": 3,
        "dimension": 5,
        "isometry": 0.1,
    },
    "theory.theorem42_rate": {"step_size": 0.05, "init_scale": 0.01},
    "theory.theorem43_rate": {"step_size": 0.05, "largest": 2.0, "smallest": 1.0},
    "theory.theorem51_rate": {"step_size": 0.05, "beta": 0.5},
    "theory.toy_sequences": {"step_size": 0.05, "init_scale": 0.01, "rank": 2, "num_steps": 5},
    "theory.turning_rate": {
        "matrix": np.eye(2),
        "truth": np.eye(2),
        "observed": PAIRS,
        "step_size": 0.1,
        "depth": 3,
    },
    "experiments.Claim": {
        "slug": "s",
        "statement": "s",
        "criterion": "c",
        "measure": lambda ds: experiments.Outcome({}, True),
    },
    "experiments.Experiment": {
        "name": "fig1",
        "title": "t",
        "source": "s",
        "summary": "s",
        "sizes": {size: {} for size in ("smoke", "standard", "full")},
        "compute": lambda seed: None,
        "draw": lambda ds: None,
        "claims": [],
    },
    "experiments.LabPreset": {"lab": "factors", "name": "fig1", "title": "t", "values": {}},
    "experiments.Outcome": {"measured": {"x": 1.0}, "holds": True},
    "experiments.Paper": {"name": "mine2026", "title": "t", "experiments": []},
    "experiments.crossing": {"x": XS, "y": XS - 0.5, "level": 0.0},
    "experiments.slope": {"x": XS + 1, "y": XS + 1},
    "experiments.wilson": {"successes": np.array([3]), "count": 10},
    "figures.Band": {"x": XS, "low": XS, "middle": XS, "high": XS, "label": "l"},
    "figures.Bars": {"categories": ["a", "b"], "values": [1.0, 2.0], "label": "l"},
    "figures.Contour": {"x": XS, "y": XS, "z": np.eye(4), "label": "l"},
    "figures.Dots": {"categories": ["a"], "values": [1.0], "label": "l", "low": [0.5], "high": [1.5]},
    "figures.Figure": {"title": "t", "panels": [figures.Panel(**PANEL)]},
    "figures.Heat": {"x": XS, "y": XS, "z": np.eye(4), "label": "l"},
    "figures.Line": {"x": XS, "y": XS, "label": "l"},
    "figures.Marker": {"at": 0.5, "label": "l"},
    "figures.Panel": PANEL,
    "figures.Points": {"x": XS, "y": XS, "label": "l"},
}

ABSTRACT = ("Batches", "Event", "Law", "Measurements", "Model", "Schedule", "Start", "UpdateRule")
ELSEWHERE = ("sweep", "load_results", "plot", "summary", "diagnostic", "Optax", "Sampler", "Given")
"""Public names that are not called here: folders, figures and functions as arguments have fuzz tests of their own."""


class PublicCall(NamedTuple):
    """A public class or function, and arguments with which the call is good."""

    name: str
    function: Callable[..., Any]
    good: dict[str, Any]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters by name."""
        return dict(inspect.signature(self.function).parameters)


def public_calls() -> Iterator[PublicCall]:
    """Every public call that can be made with plain arguments; a new public name without good arguments is an error."""
    for name in gs.__all__:
        found = getattr(gs, name)
        if callable(found) and name not in (*ABSTRACT, *ELSEWHERE) and not _is_exception(found):
            yield PublicCall(name, found, GOOD.get(name, {}))
    rooms = {"theory": theory, "experiments": experiments, "figures": figures, "estimators": estimators}
    for full, good in GOOD.items():
        room, dot, name = full.partition(".")
        if dot:
            yield PublicCall(full, getattr(rooms[room], name), good)


def _is_exception(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseException)
