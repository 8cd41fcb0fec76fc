"""Every public class and function with good arguments, to be spoilt one at a time."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import optax

import gyrostat as gs
from gyrostat import estimators, experiments, theory
from gyrostat.figures import declarations as figures

EYE = np.eye(4)
LAW = gs.TwoPoint(spread=6.0)
FLAT = gs.schedules.Constant(0.1, 0.1)
ROWS = np.stack([np.eye(3)] * 4)
PAIRS = [(0, 0), (1, 0), (1, 1)]
PROBLEM = gs.Problem(gs.Environments.diagonal(3), gs.Identity())
ALGORITHM = gs.GradientDescent(0.1)
RNG = np.random.default_rng(0)
X, Y, LABELS = RNG.normal(size=(40, 3)), RNG.normal(size=40), np.repeat([0, 1], 20)
XS = np.linspace(0, 1, 4)
PANEL = {"title": "t", "xlabel": "x", "ylabel": "y", "series": []}

GOOD: dict[str, dict[str, Any]] = {  # what a call needs; names with a dot belong to that module
    "Algorithm": {
        "model": gs.Symmetric(),
        "start": gs.starts.ScaledIdentity(0.1),
        "batches": gs.batches.Full(),
        "schedule": FLAT,
    },
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
    "QuadraticNetworkSGD": {"step_size": 0.1},
    "RandomEnvironments": {"dimension": 4, "law": LAW},
    "RandomRectangular": {"rows": 4, "columns": 3},
    "RankOne": {"num_samples": 10},
    "RectangularEnvironments": {"left": EYE[:, :1], "right": np.eye(3)[:, :1]},
    "theory.wang2023.Region": {"rank": 1, "alpha": 0.1, "balance": 0.1, "excess": 0.1, "bound": 3.0},
    "RidgeDescent": {"step_size": 0.1},
    "ScaledGD": {"step_size": 0.1},
    "ScaledGaussian": {"scale": 0.1},
    "ScaledIdentity": {"scale": 0.1},
    "SymmetricGaussian": {"scale": 0.1},
    "VectorEnvironments": {"coefficients": [1.0, 0.0]},
    "WarmUp": {"num_steps": 5, "step_size": 0.1, "then": FLAT},
    "theory.wang2023.absorbing": {"ridge": 0.1, "depth": 3, "size": 2},
    "approximate_rank": {"alpha": 0.1},
    "compare_methods": {"X": X[:, :1], "y": Y, "environments": np.arange(40) % 3, "resamples": 2},
    "heterogeneity": {"X": X, "y": Y, "environments": LABELS},
    "isometry_constant": {"dimension": 3, "num_samples": 10, "rank": 1, "draws": 2, "steps": 1},
    "jump_times": {"values": [[1.0], [0.1]], "steps": [0, 1]},
    "jumps": {"values": [[1.0], [0.1]], "steps": [0, 1]},
    "late_speed": {"factor": EYE, "cofactor": EYE, "step_size": 0.1, "rank": 2},
    "theory.wang2023.membership": {"region": gs.theory.wang2023.Region(1, 0.1, 0.1, 0.1, 3.0)},
    "representation_cost": {"matrix": EYE, "depth": 3},
    "run": {"algorithm": ALGORITHM, "problem": PROBLEM, "num_steps": 2},
    "run_grid": {"build": lambda a: (ALGORITHM, PROBLEM), "settings": {"a": [1]}, "num_steps": 2},
    "offshoots": {"algorithm": ALGORITHM, "problem": PROBLEM, "at": [1], "schedule": FLAT, "num_steps": 2},
    "theory.Setting": {"law": LAW},
    "theory.ours.amplification_limit": {"law": LAW, "step_size": 0.05},
    "theory.ours.amplified": {"law": LAW, "amplify": 1.5},
    "theory.ours.amplified_error_law": {
        "law": LAW,
        "amplify": 1.5,
        "dimension": 5,
        "rank": 1,
        "step_size": 0.05,
        "num_samples": 100.0,
        "runs": 10,
    },
    "theory.assess": {"setting": theory.Setting(LAW), "isometry_draws": 0, "runs": 10},
    "theory.xu2024.assumptions": {
        "law": LAW,
        "dimension": 5,
        "rank": 1,
        "overlap": 0.0,
        "delta": 0.1,
        "init_scale": 0.01,
    },
    "theory.xu2024.calibration": {"step_size": 0.05, "init_scale": 0.01, "num_steps": 10},
    "theory.xu2024.calibration_line": {
        "step_size": 0.05,
        "init_scale": 0.01,
        "num_steps": 10,
        "bound": 7.0,
        "delta": 0.01,
        "ranks": 2,
    },
    "theory.xu2024.controller": {"law": LAW, "step_size": 0.05, "line": np.full(5, 0.01), "violation": 0.1, "runs": 10},
    "theory.ours.critical_amplification": {"law": LAW, "step_size": 0.05, "init_scale": 0.01, "num_steps": 10},
    "theory.wang2023.critical_points": {"target": np.eye(2), "pairs": PAIRS, "depth": 3, "ridge": 0.1, "tries": 1},
    "theory.ours.critical_spread": {"step_size": 0.05, "init_scale": 0.01, "num_steps": 20},
    "theory.xu2024.edge_overlap": {"dimension": 5, "rank": 1, "spurious_rank": 1},
    "theory.ours.effective_step": {"step_size": 0.05, "beta": 0.5},
    "theory.ours.eliminated_by_lyapunov": {"law": LAW, "step_size": 0.05, "init_scale": 0.01, "num_steps": 10},
    "theory.xu2024.envelope": {"step_size": 0.05, "init_scale": 0.01},
    "theory.ours.error_law": {
        "law": LAW,
        "dimension": 5,
        "rank": 1,
        "step_size": 0.05,
        "num_samples": 100.0,
        "runs": 10,
    },
    "theory.xu2024.exact_moments": {"law": LAW, "step_size": 0.05, "power": 0.5, "num_steps": 5},
    "theory.xiong2024.exact_width_rate": {"step_size": 0.05, "smallest": 1.0},
    "theory.wang2023.fold": {"epsilon": 0.1, "depth": 3},
    "theory.xu2024.constants": {"law": LAW},
    "theory.xiong2024.imbalance_increment": {"factor": EYE, "cofactor": EYE, "gradient": EYE, "step_size": 0.1},
    "theory.xiong2024.imbalanced_rate": {"step_size": 0.05, "smallest": 1.0},
    "theory.xiong2024.increment_bound": {"factor": EYE, "cofactor": EYE, "gradient": EYE, "step_size": 0.1},
    "theory.xu2024.informal_window": {"law": LAW},
    "theory.xu2024.isometry_bound": {"law": LAW, "dimension": 5, "rank": 1},
    "theory.xiong2024.lower_bound": {"step_size": 0.05, "init_scale": 0.01, "dimension": 5, "steps": np.arange(5)},
    "theory.ours.lyapunov_exponent": {"law": LAW, "step_size": 0.05},
    "theory.xu2024.moment_growth": {"law": LAW, "step_size": 0.05, "power": 0.5},
    "theory.xu2024.overlap_constant": {"overlaps": np.array([0.1]), "dimension": 5, "rank": 1, "spurious_rank": 1},
    "theory.xu2024.phase_one_length": {"step_size": 0.05, "init_scale": 0.01},
    "theory.xu2024.pooled_gap": {"rank": 1, "spurious_rank": 1},
    "theory.xu2024.step_conditions": {"law": LAW, "step_size": 0.05},
    "theory.xu2024.step_window": {"law": LAW},
    "theory.ours.surrogate": {"law": LAW, "step_size": 0.05, "init_scale": 0.01, "num_steps": 5, "runs": 10},
    "theory.xiong2024.symmetric_tail": {"step_size": 0.05, "width": 3, "rank": 1, "steps": np.arange(5)},
    "theory.xu2024.theorem2_bound": {"law": LAW, "dimension": 5, "rank": 1, "delta": 0.1},
    "theory.xiong2024.theorem31_conditions": {
        "step_size": 0.05,
        "init_scale": 0.01,
        "values": np.array([1.0]),
        "width": 3,
        "dimension": 5,
    },
    "theory.xiong2024.theorem41_bounds": {"step_size": 0.05, "init_scale": 0.01, "dimension": 5, "steps": np.arange(5)},
    "theory.xiong2024.theorem42_conditions": {
        "step_size": 0.05,
        "init_scale": 0.01,
        "values": np.array([1.0]),
        "width": 3,
        "dimension": 5,
        "isometry": 0.1,
    },
    "theory.xiong2024.theorem42_rate": {"step_size": 0.05, "init_scale": 0.01},
    "theory.xiong2024.theorem43_rate": {"step_size": 0.05, "largest": 2.0, "smallest": 1.0},
    "theory.xiong2024.theorem51_rate": {"step_size": 0.05, "beta": 0.5},
    "theory.xiong2024.toy_sequences": {"step_size": 0.05, "init_scale": 0.01, "rank": 2, "num_steps": 5},
    "theory.wang2023.turning_rate": {
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
    "figures.Span": {"low": 0.25, "high": 0.75, "label": "l"},
    "figures.Points": {"x": XS, "y": XS, "label": "l"},
}

ABSTRACT = ("Batches", "Event", "Law", "Measurements", "Model", "RandomLaw", "Schedule", "Start", "UpdateRule")
ELSEWHERE = ("sweep", "load_results", "plot", "summary", "diagnostic", "Optax", "Sampler", "Given", "list")
"""Public names that are not called here: folders, figures and functions as arguments have fuzz tests of their own."""
DOTTED = ("theory", "errors", "estimators", "experiments", "sources")
"""Rooms whose calls are listed above with their room, or that are called elsewhere."""


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
    for name, place in gs.places().items():
        found = gs.public(name) if place.partition(".")[0] not in DOTTED else None
        if callable(found) and name not in (*ABSTRACT, *ELSEWHERE) and not _is_exception(found):
            yield PublicCall(name, found, GOOD.get(name, {}))
    rooms = {"theory": theory, "experiments": experiments, "figures": figures, "estimators": estimators}
    for full, good in GOOD.items():
        room, dot, name = full.partition(".")
        if dot:
            yield PublicCall(full, operator.attrgetter(name)(rooms[room]), good)


def _is_exception(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseException)
