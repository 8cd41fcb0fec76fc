"""Which runs the theory of Xu 2024 covers: a list of all that it assumes, and the first assumption that a run does not meet.

The list says what a part may be, so a class that nobody thought of here is refused: a rule that asks for gradients
elsewhere, a law whose parameters change from seed to seed, a subclass that overrides a method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from gyrostat.algorithms import (
    Algorithm,
    Constant,
    Full,
    GradientStep,
    Momentum,
    Nesterov,
    OneEnvironment,
    Pooled,
    ScaledIdentity,
)
from gyrostat.environments import (
    Absent,
    Environments,
    Finite,
    Gaussian,
    RandomEnvironments,
    Sampler,
    TwoPoint,
    Uniform,
)
from gyrostat.measurements import Dense, FreshGaussian, Identity, Problem
from gyrostat.models import Symmetric
from gyrostat.theory.ours.amplified_heterogeneity import amplified
from gyrostat.theory.ours.final_error import weighted_sizes
from gyrostat.theory.ours.transition import LEARNT, effective_step
from gyrostat.theory.xu2024.bounds import edge_overlap

Assumptions = dict[str, Callable[[Any, Any], bool]]
"""What is assumed, in words -> whether an algorithm and a problem meet it. Later checks rely on the types of earlier ones."""

LARGEST_OVERLAP = 0.3
"""The largest cosine between the two subspaces for which the two signals still grow as if they were orthogonal: the rate of
the one is wrong by a tenth where the other has strength 1."""


ENOUGH = 8
"""The least m, in units of eta d (r1 + E ||Sigma||_F^2), for which the noise of the batches leaves R_t^2 right.

With x = eta d (r1 + E ||Sigma||_F^2) / m, the median signal of 24 to 48 runs ended below R_t^2 by at most .07 at x = 1/8, .13
at 1/4 and .26 at 1/2, by .2 to .4 at 1 and .5 to .7 at 2; half of it was reached within 2 % of the promised step at 1/8,
and up to a fifth later, or never, from x = 1 on. So x at most 1/8 keeps the tenth within which R_t^2 is meant. Settings: d 6 to
60, r1 1 to 3, r2 0 to 3, eta .005 to .2, spreads 2 to 18, alpha 1e-6 to 1e-2; pooled, full and amplified batches; laws
off the diagonal, continuous or absent; runs three times as long. Neither m / d nor m / (d (r1 + r2)) orders them: at d = 15
and eta = .005, four measurements are enough."""


def invariant_values(environments: Any) -> np.ndarray:
    """The eigenvalues of the invariant part of Environments or RandomEnvironments."""
    is_recipe = isinstance(environments, RandomEnvironments)
    return np.asarray(environments.values if is_recipe else environments.invariant_values)


def overlap(environments: Any) -> float:
    """The largest principal cosine between the two subspaces; for independent random ones, about the largest likely one."""
    if isinstance(environments, RandomEnvironments) and environments.placement == "random":
        return edge_overlap(environments.dimension, environments.rank, environments.law.rank)
    return float(environments.overlap)


def momentum(rule: Any) -> float | None:
    """The beta of momentum on plain gradients, 0 for plain gradient steps, None for other rules."""
    if type(rule) in (Momentum, Nesterov):
        return float(rule.beta) if type(rule.accumulated) is GradientStep else None
    return 0.0 if type(rule) is GradientStep else None


def noise_of_one_measurement(algorithm: Any, problem: Any) -> float:
    """``eta d (r1 + E ||Sigma||_F^2)``: how much the noise of a batch of one shrinks the invariant signal, up to a factor."""
    eta = effective_step(float(algorithm.schedule.step_size), momentum(algorithm.rule) or 0.0)
    law, kappa = problem.environments.law, getattr(algorithm.batches, "amplify", None)
    invariant, spurious = 1.0, law.second_moment
    if kappa is not None and law.is_finite:
        invariant, spurious = weighted_sizes(law, float(kappa))
    return eta * problem.shape[0] * (invariant * invariant_values(problem.environments).size + spurious)


OF_ALL: Assumptions = {
    "a Problem of Environments or RandomEnvironments": lambda a, p: (
        type(p) is Problem and type(p.environments) in (Environments, RandomEnvironments)
    ),
    "the model Symmetric with as many columns as rows and gradient_factor 1": lambda a, p: (
        type(a.model) is Symmetric and a.model.width in (None, p.shape[0]) and a.model.gradient_factor == 1
    ),
    "the start alpha I": lambda a, p: type(a.start) is ScaledIdentity,
    "a constant step size without a ridge": lambda a, p: type(a.schedule) is Constant and a.schedule.ridge == 0,
    "no events": lambda a, p: not a.events,
    "an invariant part whose eigenvalues are all 1": lambda a, p: bool(np.all(invariant_values(p.environments) == 1)),
    "a law of the library (Finite, TwoPoint, Uniform or Gaussian; Sampler takes a function of your own)": lambda a, p: (
        type(p.environments.law) in (Finite, TwoPoint, Uniform, Gaussian, Sampler, Absent)
    ),
    "a law of the environments whose second moment is known": lambda a, p: p.environments.law.has_second_moment,
    f"subspaces whose overlap is at most {LARGEST_OVERLAP}": lambda a, p: overlap(p.environments) <= LARGEST_OVERLAP,
    # Where the data stay the same, the errors of the steps add up: from 80 d of them, R_t^2 is too small by half.
    "fresh measurements, without noise, that keep all norms in the mean (Identity, FreshGaussian or Dense with redraw)": (
        lambda a, p: (
            (
                type(p.measurements) in (Identity, FreshGaussian)
                or (type(p.measurements) is Dense and p.measurements.redraw)
            )
            and getattr(p.measurements, "noise", 0) == 0
        )
    ),
    # In one that stays in an environment, even the invariant signal ended at .23 where R_t^2 says .99.
    "an order that is given by name": lambda a, p: isinstance(getattr(a.batches, "order", "iid"), str),
    f"at least {ENOUGH} eta d (r1 + E ||Sigma||_F^2) measurements in a batch": lambda a, p: (
        getattr(p.measurements, "num_samples", math.inf) >= ENOUGH * noise_of_one_measurement(a, p)
    ),
}


def is_slow(algorithm: Any, problem: Any) -> bool:
    """Whether a direction changes so little while momentum lasts that its exponent is that of plain steps.

    The exponent of ``q <- q + beta (q - q') + (1 - beta) eta xi q`` was measured on products of 2 x 2 matrices, for beta
    from .1 to .99. With ``z^2 = beta eta^2 E xi^2 / (1 - beta)``, it differs by at most a twentieth at z = .1, a seventh at .2,
    a third at .3, and by three quarters at .9: momentum averages out a part of the oscillation that shrinks the direction.
    """
    beta, law, kappa = momentum(algorithm.rule), problem.environments.law, algorithm.batches.amplify
    if not beta:
        return True
    law = amplified(law, float(kappa)) if kappa is not None and law.is_finite else law
    eta = effective_step(float(algorithm.schedule.step_size), beta)
    return bool(25 * beta * eta**2 * law.expectation(np.square).max(initial=0.0) <= 1 - beta)


OF_GROWTH: Assumptions = {
    "plain gradient steps": lambda a, p: momentum(a.rule) == 0,
    "batches of one environment, Pooled or Full": lambda a, p: type(a.batches) in (OneEnvironment, Pooled, Full),
}

OF_ELIMINATION: Assumptions = {
    "plain gradient steps, or momentum on them": lambda a, p: momentum(a.rule) is not None,
    "batches of one environment (HeteroSGD)": lambda a, p: type(a.batches) is OneEnvironment,
    "with momentum beta, an effective step of at most sqrt((1 - beta) / (25 beta E Sigma_ii^2))": is_slow,
    "a spurious part": lambda a, p: p.environments.law.rank > 0,
    "a law whose matrices Sigma_e are all diagonal": lambda a, p: p.environments.law.off_diagonal == 0,
    f"a start alpha I with alpha^2 below {LEARNT}, so that the spurious signal is small at first": lambda a, p: (
        float(a.start.scale) ** 2 < LEARNT
    ),
}


def obstacle(algorithm: Algorithm, problem: Problem, *, to: Literal["growth", "elimination"]) -> str | None:
    """The first assumption of the theory of Xu 2024 that a run does not meet, in words; None for a run that it covers.

    ``to="growth"`` asks for R_t^2 of eq. (25), the invariant signal alone; ``to="elimination"`` for the rules about the
    spurious one, which allow momentum, and need batches of one environment.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(720))
    >>> obstacle(gs.HeteroSGD(0.05, model=gs.Symmetric(3)), problem, to="growth")
    'the model Symmetric with as many columns as rows and gradient_factor 1'
    """
    assumptions = OF_ALL | (OF_GROWTH if to == "growth" else OF_ELIMINATION)
    return next((words for words, is_met in assumptions.items() if not is_met(algorithm, problem)), None)
