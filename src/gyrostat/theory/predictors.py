"""The predictors of the transition for any run of HeteroSGD, as numbers whose sign says what will happen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.batches import OneEnvironment
from gyrostat.algorithms.initialisation import ScaledIdentity
from gyrostat.algorithms.schedules import Constant
from gyrostat.environments import Law
from gyrostat.measurements.problem import Problem
from gyrostat.theory.amplification import amplified
from gyrostat.theory.transition import LEARNT, informal_window, lyapunov_exponent, surrogate

SURROGATE = "surrogate (ours)"


class Question(NamedTuple):
    """What the predictors need to know of a run."""

    law: Law
    step_size: float
    init_scale: float
    num_steps: int
    num_samples: float
    threshold: float


def _lyapunov_rule(q: Question) -> float:
    room = 0.5 * math.log(q.threshold) - math.log(q.init_scale)
    return room - lyapunov_exponent(q.law, q.step_size) * q.num_steps


def _exponent(q: Question) -> float:
    return -lyapunov_exponent(q.law, q.step_size)


def _window(q: Question) -> float:
    return q.step_size - informal_window(q.law)[0]


def _surrogate(q: Question, runs: int = 500) -> float:
    final = surrogate(
        q.law, q.step_size, init_scale=q.init_scale, num_steps=q.num_steps, num_samples=q.num_samples, runs=runs
    )
    return float((final < q.threshold).mean()) - 0.5


PREDICTORS: dict[str, Callable[[Question], float]] = {
    "Lyapunov rule (ours)": _lyapunov_rule,
    "lambda = 0": _exponent,
    "informal window (section 4)": _window,
    SURROGATE: _surrogate,
}
"""Name of a predictor -> a number that is positive where it says that the spurious part is eliminated.

The rule: ``lambda T < log(sqrt(threshold)/alpha)``. The window: its lower end, ``4 E xi / ((1 - gamma) Var xi) < eta``. The
surrogate: in half of its runs."""


def question(algorithm: Algorithm, problem: Problem, num_steps: int, threshold: float = LEARNT) -> Question | None:
    """What the predictors need, or None for a run that they do not speak of; amplification changes the law.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(720))
    >>> asked = question(gs.HeteroSGD(0.05), problem, 200)
    >>> PREDICTORS["lambda = 0"](asked) < 0 < _lyapunov_rule(asked)
    True
    """
    law: Any = problem.environments.law
    known = (
        isinstance(algorithm.batches, OneEnvironment)
        and isinstance(algorithm.schedule, Constant)
        and isinstance(algorithm.start, ScaledIdentity)
        and law.rank > 0
    )
    if not known:
        return None
    samples = getattr(problem.measurements, "num_samples", float("inf"))
    batches, schedule, start = algorithm.batches, algorithm.schedule, algorithm.start
    assert isinstance(batches, OneEnvironment) and isinstance(schedule, Constant) and isinstance(start, ScaledIdentity)
    kappa = batches.amplify
    law = law if kappa is None else amplified(law, float(kappa))
    return Question(
        law,
        float(schedule.step_size),
        float(start.scale),
        num_steps,
        float(samples),
        threshold,
    )


def predictors(algorithm: Algorithm, problem: Problem) -> tuple[str, ...]:
    """The names of the predictors that speak of a run.

    The surrogate speaks of one direction and independent environments only, and not of the noise that amplification adds.
    """
    if question(algorithm, problem, 1) is None:
        return ()
    simple = problem.environments.law.rank == 1 and getattr(problem.environments, "rank", None) == 1
    batches: Any = algorithm.batches
    independent = batches.order == "iid" and batches.amplify is None
    return tuple(name for name in PREDICTORS if name != SURROGATE or (simple and independent))
