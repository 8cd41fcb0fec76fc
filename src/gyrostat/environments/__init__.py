"""Environments: what is true everywhere, and what changes from place to place."""

from gyrostat.environments.environments import (
    Environments,
    FeatureEnvironments,
    Observed,
    RandomEnvironments,
    VectorEnvironments,
)
from gyrostat.environments.laws import Absent, Congruent, Environment, Finite, Gaussian, Law, Sampler, TwoPoint, Uniform

__all__ = [
    "Absent",
    "Congruent",
    "Environment",
    "Environments",
    "FeatureEnvironments",
    "Finite",
    "Gaussian",
    "Law",
    "Observed",
    "RandomEnvironments",
    "Sampler",
    "TwoPoint",
    "Uniform",
    "VectorEnvironments",
]
