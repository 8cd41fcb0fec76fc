"""Gyrostat: a laboratory and a toolkit for the implicit bias of gradient methods in matrix models.

Names are imported on first use, so ``import gyrostat`` is instant and changes nothing in JAX's configuration.
"""

from __future__ import annotations

import importlib
from typing import Any

from gyrostat.version import __version__

_HOMES = {
    "gyrostat.algorithms.algorithm": ("Algorithm",),
    "gyrostat.algorithms.named_algorithms": (
        "GradientDescent",
        "HeteroSGD",
        "PooledGD",
        "PooledSGD",
        "PrecGD",
        "QuadraticNetwork",
        "RidgeDescent",
        "ScaledGD",
    ),
    "gyrostat.algorithms.batches": ("Full", "OneEnvironment", "Pooled"),
    "gyrostat.diagnostics": (
        "DIAGNOSTICS",
        "Diagnostic",
        "Region",
        "absorbing",
        "approximate_rank",
        "diagnostic",
        "isometry_constant",
        "jump_times",
        "jumps",
        "late_speed",
        "membership",
        "representation_cost",
    ),
    "gyrostat.environments": (
        "Absent",
        "Environments",
        "FeatureEnvironments",
        "Finite",
        "Gaussian",
        "Observed",
        "RandomEnvironments",
        "RandomRectangular",
        "RectangularEnvironments",
        "Sampler",
        "TwoPoint",
        "Uniform",
        "VectorEnvironments",
    ),
    "gyrostat.errors": ("GyrostatError",),
    "gyrostat.estimators.invariant.diagnosis": ("heterogeneity",),
    "gyrostat.algorithms.events": ("ImbalanceStep", "Shrinkage"),
    "gyrostat.sweeps": ("sweep",),
    "gyrostat.measurements": ("Dense", "DenseData", "Entries", "FixedGaussian", "FreshGaussian", "Identity", "RankOne"),
    "gyrostat.models": ("Asymmetric", "DeepLinear", "Diagonal", "Symmetric", "SymmetricDifference"),
    "gyrostat.algorithms.schedules": ("Annealing", "Constant", "Geometric", "Periodic", "Piecewise", "WarmUp"),
    "gyrostat.measurements.problem": ("Problem",),
    "gyrostat.engine.run": ("offshoots", "run", "run_grid"),
    "gyrostat.algorithms.update_rules": ("GradientStep", "Preconditioned", "RidgeStep"),
    "gyrostat.algorithms.initialisation": (
        "FanInGaussian",
        "FanInUniform",
        "Orthogonal",
        "Given",
        "ImbalancedGaussian",
        "OrthonormalZero",
        "ScaledGaussian",
        "ScaledIdentity",
        "Spectral",
        "SymmetricGaussian",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'gyrostat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
