"""Gyrostat: a laboratory and a toolkit for the implicit bias of gradient methods in matrix models.

Names are imported on first use, so ``import gyrostat`` is instant and changes nothing in JAX's configuration.
"""

from __future__ import annotations

import importlib
from typing import Any

from gyrostat.version import __version__

_HOMES = {
    "gyrostat.algorithms": (
        "Algorithm", "GradientDescent", "HeteroSGD", "PooledGD", "PooledSGD", "PrecGD", "QuadraticNetwork", "ScaledGD",
    ),
    "gyrostat.batches": ("Full", "OneEnvironment", "Pooled"),
    "gyrostat.diagnostics": ("DIAGNOSTICS", "Diagnostic", "diagnostic", "isometry_constant", "late_speed"),
    "gyrostat.environments": (
        "Absent", "Environments", "FeatureEnvironments", "Finite", "Gaussian", "Observed", "RandomEnvironments",
        "RandomRectangular", "RectangularEnvironments", "Sampler", "TwoPoint", "Uniform", "VectorEnvironments",
    ),
    "gyrostat.errors": ("GyrostatError",),
    "gyrostat.imbalance": ("ImbalanceStep",),
    "gyrostat.measurements": ("Dense", "DenseData", "FixedGaussian", "FreshGaussian", "Identity", "RankOne"),
    "gyrostat.models": ("Asymmetric", "Diagonal", "Symmetric", "SymmetricDifference"),
    "gyrostat.problem": ("Problem",),
    "gyrostat.results": ("run", "run_grid"),
    "gyrostat.schedules": ("Constant", "GradientStep", "Preconditioned", "Shrinkage"),
    "gyrostat.starts": (
        "Given", "ImbalancedGaussian", "OrthonormalZero", "ScaledGaussian", "ScaledIdentity", "Spectral", "SymmetricGaussian",
    ),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'gyrostat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
