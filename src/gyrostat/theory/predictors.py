"""Predictors of the transition for any run of HeteroSGD, as numbers whose sign is the prediction; and the surrogate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.batches import ORDERS, OneEnvironment
from gyrostat.algorithms.initialisation import ScaledIdentity
from gyrostat.algorithms.rules_with_memory import Momentum, Nesterov
from gyrostat.algorithms.schedules import Constant
from gyrostat.algorithms.update_rules import GradientStep, UpdateRule
from gyrostat.environments import Law
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.compile_cache import use_compile_cache
from gyrostat.jax_tools.fast_random import few_normals, fold_in, split
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import Dense, FixedGaussian, FreshGaussian, Identity
from gyrostat.measurements.problem import Problem
from gyrostat.models import Symmetric
from gyrostat.theory.amplified_heterogeneity import amplified
from gyrostat.theory.transition import LEARNT, effective_step, informal_window, lyapunov_exponent


@errors.explains_formula
def surrogate(
    law: Law,
    step_size: float,
    *,
    init_scale: float,
    num_steps: int,
    num_samples: float = math.inf,
    runs: int = 2000,
    seed: int = 0,
) -> np.ndarray:
    """Final spurious signals of ``runs`` samples of a model of HeteroSGD with three numbers, for r1 = r2 = 1.

    r is the invariant direction; q_v and q_r are the parts of the spurious one across r and along r in the column space of U:

        r   <- (1 + eta (1 - r^2 - q_r^2)) r
        q_v <- (1 + eta (s - q^2)) q_v
        q_r <- (1 + eta (s - q^2 - r^2)) q_r + eta |residual| / sqrt(2 m) * r * N(0, 1)

    Its cost does not depend on the dimension, and it covers long horizons, where intermittency (rare long runs of the growing
    environment) moves the transition.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    num_steps
        The number of steps T.
    num_samples
        The number m of measurements in a batch.
    runs
        The number of simulated runs.
    seed
        The seed of the random numbers.

    >>> from gyrostat import TwoPoint
    >>> final = surrogate(TwoPoint(spread=8.0), 0.05, init_scale=1e-3, num_steps=200, num_samples=8000)
    >>> bool((final < 0.1).mean() > 0.9)
    True
    """
    use_compile_cache()
    seed = errors.integer("seed", seed, most=errors.LARGEST_SEED)
    with double():
        keys = jax.random.split(jax.random.key(seed), errors.integer("runs", runs, least=1))
        arguments = (float(step_size), float(init_scale), 1 / math.sqrt(2 * num_samples), int(num_steps))
        return np.asarray(_surrogate_runs(law, *(jnp.asarray(x) for x in arguments), keys))


@jax.jit
def _surrogate_runs(
    law: Law, eta: jax.Array, alpha: jax.Array, noise: jax.Array, T: jax.Array, keys: jax.Array
) -> jax.Array:
    def one(key: jax.Array) -> jax.Array:
        def step(t: jax.Array, state: tuple) -> tuple:
            r, v, w = state
            drawing, kicking = split(fold_in(key, t))
            s = law.draw(drawing).sigma[0, 0]
            q2 = v * v + w * w
            residual = jnp.hypot(1 - r * r, s - q2)
            kick = eta * noise * residual * r * few_normals(kicking, 1)[0]
            return (
                (1 + eta * (1 - r * r - w * w)) * r,
                (1 + eta * (s - q2)) * v,
                (1 + eta * (s - q2 - r * r)) * w + kick,
            )

        _, v, w = jax.lax.fori_loop(0, T, step, (alpha, alpha, jnp.zeros_like(alpha)))
        final = v * v + w * w
        return jnp.where(jnp.isfinite(final), final, jnp.inf)

    return jax.vmap(one)(keys)


# --- predictors of any run ---------------------------------------------------------------------------------------------------

SURROGATE = "surrogate (ours)"


class Question(NamedTuple):
    """What the predictors need to know about a run."""

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
"""Name of a predictor -> a number that is positive where it predicts that the spurious part is eliminated.

Lyapunov rule: ``lambda T < log(sqrt(threshold)/alpha)``. Informal window: its lower end, ``4 E xi / ((1 - gamma) Var xi) <
eta``. Surrogate: the spurious part is eliminated in more than half of its runs. A rule of your own, put in under a name, is
drawn on every phase diagram beside ours."""


LARGEST_OVERLAP = 0.3
"""The largest cosine between the two subspaces for which the two signals still grow as if they were orthogonal: the rate of
the one is wrong by a tenth where the other has strength 1. Independent random subspaces (Proposition 1) are nearer to
orthogonal as the dimension grows."""


def obstacle(algorithm: Algorithm, problem: Problem, *, to: Literal["growth", "elimination"]) -> str | None:
    """What the theory of Xu 2024 assumes and a run does not meet, in words; None for a run that it covers.

    ``to="growth"`` asks for R_t^2 of eq. (25), the invariant signal alone; ``to="elimination"`` for the predictors of the
    spurious one. These allow momentum, and need batches of one environment and a law whose moments are known.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(720))
    >>> obstacle(gs.HeteroSGD(0.05, model=gs.Symmetric(3)), problem, to="growth")
    'the model Symmetric with as many columns as rows and gradient_factor 1'
    """
    environments, measurements, model = problem.environments, problem.measurements, algorithm.model
    batches, rule, schedule = algorithm.batches, algorithm.rule, algorithm.schedule
    values = getattr(environments, "values", getattr(environments, "invariant_values", None))
    met = {
        "the model Symmetric with as many columns as rows and gradient_factor 1": type(model) is Symmetric
        and model.width in (None, problem.shape[0])
        and model.gradient_factor == 1,
        "the start alpha I": isinstance(algorithm.start, ScaledIdentity),
        "a constant step size without a ridge": isinstance(schedule, Constant) and schedule.ridge == 0,
        "no events": not algorithm.events,
        "an invariant part whose eigenvalues are all 1": values is not None and bool(np.all(np.asarray(values) == 1)),
        f"subspaces whose overlap is at most {LARGEST_OVERLAP}": getattr(environments, "overlap", 1) <= LARGEST_OVERLAP,
        "at least d (r1 + r2) measurements in a batch": values is None
        or getattr(measurements, "num_samples", math.inf)
        >= problem.shape[0] * (np.size(values) + environments.law.rank),
        "measurements without noise that keep all norms in the mean (Identity, FreshGaussian, FixedGaussian or Dense)": (
            isinstance(measurements, Identity | FreshGaussian | FixedGaussian | Dense)
            and getattr(measurements, "noise", 0) == 0
        ),
    }
    if to == "growth":
        met["plain gradient steps"] = type(rule) is GradientStep
    else:
        met |= {
            "plain gradient steps, or momentum on them": _slowness(rule) is not None,
            "batches of one environment (HeteroSGD)": isinstance(batches, OneEnvironment),
            "an order that is given by name": getattr(batches, "order", None) in ORDERS,
            "a spurious part": environments.law.rank > 0,
            "a law of the environments whose second moment is known": environments.law.has_second_moment,
        }
    return next((assumption for assumption, is_met in met.items() if not is_met), None)


def question(algorithm: Algorithm, problem: Problem, num_steps: int, threshold: float = LEARNT) -> Question | None:
    """What the predictors need, or None for a run that they do not cover (:func:`obstacle`).

    Amplification changes the law. :class:`Momentum` and :class:`Nesterov` change the step size to the effective one.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(720))
    >>> asked = question(gs.HeteroSGD(0.05), problem, 200)
    >>> PREDICTORS["lambda = 0"](asked) < 0 < _lyapunov_rule(asked)
    True
    """
    if obstacle(algorithm, problem, to="elimination") is not None:
        return None
    batches, schedule, start, slowness = (
        algorithm.batches,
        algorithm.schedule,
        algorithm.start,
        _slowness(algorithm.rule),
    )
    assert isinstance(batches, OneEnvironment) and slowness is not None
    assert isinstance(schedule, Constant) and isinstance(start, ScaledIdentity)
    law, kappa = problem.environments.law, batches.amplify
    return Question(
        law if kappa is None else amplified(law, float(kappa)),
        effective_step(float(schedule.step_size), slowness),
        float(start.scale),
        num_steps,
        float(getattr(problem.measurements, "num_samples", math.inf)),
        threshold,
    )


def _slowness(rule: UpdateRule) -> float | None:
    """The beta of momentum on plain gradients, 0 for plain gradient steps, None for other rules."""
    if isinstance(rule, Momentum | Nesterov):
        return float(rule.beta) if isinstance(rule.accumulated, GradientStep) else None
    return 0.0 if isinstance(rule, GradientStep) else None


def predictors(algorithm: Algorithm, problem: Problem) -> tuple[str, ...]:
    """The names of the predictors that cover a run.

    The surrogate covers only one direction and independent environments, and neither the noise that amplification adds nor
    momentum.
    """
    if question(algorithm, problem, 1) is None:
        return ()
    simple = problem.environments.law.rank == 1 and getattr(problem.environments, "rank", None) == 1
    batches: Any = algorithm.batches
    independent = batches.order == "iid" and batches.amplify is None
    independent = independent and isinstance(algorithm.rule, GradientStep)
    return tuple(name for name in PREDICTORS if name != SURROGATE or (simple and independent))


def predict(algorithm: Algorithm, problem: Problem, *, num_steps: int) -> dict[str, bool]:
    """Whether a typical run ends without the spurious signal, according to every predictor that covers the run.

    Parameters
    ----------
    algorithm, problem
        What :func:`gyrostat.run` takes.
    num_steps
        The number of steps of the run.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(720))
    >>> predict(gs.HeteroSGD(0.05), problem, num_steps=200)["Lyapunov rule (ours)"]
    True
    """
    steps = errors.integer("num_steps", num_steps, least=1)
    unmet = obstacle(algorithm, problem, to="elimination")
    if unmet is not None:
        raise GyrostatError(f"no predictor covers this run: the theory needs {unmet}.")
    asked = question(algorithm, problem, steps)
    assert asked is not None
    return {name: PREDICTORS[name](asked) > 0 for name in predictors(algorithm, problem)}
