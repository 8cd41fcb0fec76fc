"""`Setting`: a run of HeteroSGD as the theory sees it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from gyrostat import errors
from gyrostat.algorithms import Algorithm, GradientStep
from gyrostat.environments import Law
from gyrostat.errors import GyrostatError
from gyrostat.measurements import Problem
from gyrostat.theory.covered_runs import invariant_values, momentum, obstacle, overlap
from gyrostat.theory.ours.amplified_heterogeneity import amplified
from gyrostat.theory.ours.transition import LEARNT, effective_step


@dataclasses.dataclass(frozen=True)
class Setting:
    """A run of HeteroSGD as the theory sees it.

    Parameters
    ----------
    law
        The law of the spurious part over environments, as the steps see it: amplification is part of it.
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    overlap
        The largest principal cosine between the two subspaces.
    step_size
        The step size eta; with momentum, the effective one.
    init_scale
        The scale alpha of the start.
    num_steps
        The number of steps T.
    num_samples
        The number m of measurements in a batch; infinity for the residual itself.
    threshold
        The share of the spurious signal below which it counts as eliminated.
    independent
        Whether steps are plain and draw their environments independently, as the surrogate assumes.

    >>> from gyrostat import Finite
    >>> Setting(law=Finite([-5.0, 7.0])).dimension
    100
    """

    law: Law
    dimension: int = 100
    rank: int = 1
    overlap: float = 0.0
    step_size: float = 0.05
    init_scale: float = 1e-3
    num_steps: int = 200
    num_samples: float = 8000
    threshold: float = LEARNT
    independent: bool = True

    def __post_init__(self) -> None:
        errors.check_parameters(self)
        errors.integer("dimension", self.dimension, least=2)
        errors.integer("rank", self.rank, least=1, most=self.dimension, most_because=", the dimension")
        errors.number("overlap", self.overlap, least=0, most=1)
        errors.number("step_size", self.step_size, above=0)
        errors.number("init_scale", self.init_scale, above=0)
        errors.integer("num_steps", self.num_steps, least=1)
        if self.num_samples != math.inf:
            errors.integer("num_samples", self.num_samples, least=1)
        errors.number("threshold", self.threshold, above=0)

    @staticmethod
    def of(algorithm: Algorithm, problem: Problem, num_steps: int) -> Setting:
        """The setting of a run; refused for a run that does not meet an assumption of the theory.

        >>> import gyrostat as gs
        >>> problem = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(720))
        >>> round(Setting.of(gs.HeteroSGD(0.0005, rule=gs.rules.Momentum(0.9)), problem, 2000).step_size, 9)
        0.005
        """
        num_steps = errors.integer("num_steps", num_steps, least=1)
        unmet = obstacle(algorithm, problem, to="elimination")
        if unmet is not None:
            raise GyrostatError(f"no predictor covers this run: the theory needs {unmet}.")
        # The guard has made sure of the types of the parts.
        batches: Any = algorithm.batches
        schedule: Any = algorithm.schedule
        start: Any = algorithm.start
        law, kappa = problem.environments.law, batches.amplify
        batches.check(law)
        return Setting(
            law=law if kappa is None else amplified(law, float(kappa)),
            dimension=problem.shape[0],
            rank=invariant_values(problem.environments).size,
            overlap=overlap(problem.environments),
            step_size=effective_step(float(schedule.step_size), momentum(algorithm.rule) or 0.0),
            init_scale=float(start.scale),
            num_steps=num_steps,
            num_samples=float(getattr(problem.measurements, "num_samples", math.inf)),
            independent=type(algorithm.rule) is GradientStep and kappa is None and batches.order == "iid",
        )
