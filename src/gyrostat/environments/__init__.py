"""Environments: what is true everywhere, and what changes from place to place."""

from gyrostat.environments.laws import Absent, Congruent, Environment, Finite, Gaussian, Law, Sampler, TwoPoint, Uniform
from gyrostat.environments.random_environments import FeatureEnvironments, RandomEnvironments
from gyrostat.environments.rectangular import RandomRectangular, RectangularEnvironments
from gyrostat.environments.targets import Environments, Observed, VectorEnvironments

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
    "RandomRectangular",
    "RectangularEnvironments",
    "Sampler",
    "TwoPoint",
    "Uniform",
    "VectorEnvironments",
]
