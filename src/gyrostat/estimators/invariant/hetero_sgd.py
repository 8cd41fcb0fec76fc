"""HeteroSGD with amplified heterogeneity: step size, number of steps, amplification, and the runs.

A step on environment e moves along ``g = G_e + kappa * (G_e - mean of G)``, where G_e is the gradient of that environment.

- Effects of features (``beta = u * u - v * v``, one kappa per feature): ``G_e = map_e beta - effects_e``. This is linear in
  maps and effects, so these are amplified once, before the descent (:meth:`Effects.amplified`).
- Effects of symmetric matrices (``A = U U^T - V V^T``, one kappa for all directions): G_e is computed from the rows of e.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators import numpy_descent
from gyrostat.estimators.invariant.effects import Effects
from gyrostat.estimators.invariant.environment_rows import EnvironmentRows, Gradient
from gyrostat.models.symmetric_coordinates import smat
from gyrostat.theory.ours.transition import LEARNT, critical_spread

RECORDED_POINTS = 100
"""The number of recorded points of a path."""
LARGEST_STEP = 0.1
MOST_STEPS, MOST_MATRIX_STEPS = 50_000, 20_000
WEAKEST_EFFECT = 0.05
"""The smallest effect (standard deviations of y per standard deviation of a feature) that can be learnt in "auto" steps."""
WEAKEST_EIGENVALUE = 0.2
"""The smallest eigenvalue of the mean effect, as a share of the largest, that can be learnt in "auto" steps."""


def environment_orders(environments: int, steps: int, count: int, random: np.random.RandomState) -> np.ndarray:
    """``count`` sequences of environments, in rounds in which each environment occurs once, in random order."""
    rounds = -(-steps // environments)
    return random.random_sample((count, rounds, environments)).argsort(axis=-1).reshape(count, -1)[:, :steps]


def _is_auto(name: str, value: Any) -> bool:
    """Whether a parameter is "auto"; other text is refused."""
    return isinstance(value, str) and bool(errors.choice(name, value, ("auto",)))


# --- effects of features --------------------------------------------------------------------------


def effect_step(step_size: float | str, measured: Effects) -> float:
    """A given step, or the largest up to 0.1 that is stable in every environment: ``2 eta sum |effects| <= 1``."""
    if not _is_auto("step_size", step_size):
        return float(errors.number("step_size", step_size, above=0))
    return min(LARGEST_STEP, 0.5 / max(np.abs(measured.effects).sum(axis=1).max(), 1e-12))


def effect_num_steps(num_steps: int | str, step_size: float, init_scale: float) -> int:
    """A given number of steps, or twice the number that the weakest effect worth learning needs."""
    if not _is_auto("num_steps", num_steps):
        return errors.integer("num_steps", num_steps, least=4)
    # An effect m grows as exp(eta m t) from alpha to sqrt(m). Averages need the same time again to settle.
    needed = 2 * np.log(max(np.sqrt(WEAKEST_EFFECT) / init_scale, 1.0)) / np.log1p(step_size * WEAKEST_EFFECT)
    if needed > MOST_STEPS:
        raise GyrostatError(
            f"num_steps='auto' would be {needed:.0f}, as effects of this size are stable only up to step_size={step_size:.2g}: "
            "leave out features that nearly repeat each other, use adjust=False, or set num_steps to accept fewer."
        )
    return max(int(np.ceil(needed)), 100)


def effect_amplification(
    measured: Effects, tolerance: float, *, step_size: float, init_scale: float, num_steps: int
) -> np.ndarray:
    """The kappa of each feature at which the Lyapunov rule switches at a spread of ``tolerance`` times the mean.

    A feature with mean effect m is forgotten when its amplified spread exceeds the M* of :func:`critical_spread`, so that
    ``1 + kappa = M* / (tolerance m)``. Features that vary more are forgotten with a smaller kappa. It is limited so that
    ``1 - eta |g|`` stays positive: beyond that, steps overshoot zero and grow.
    """
    eta, kappas = step_size, []
    for m, largest in zip(np.abs(measured.mean), np.abs(measured.effects - measured.mean).max(axis=0), strict=True):
        if m <= 0 or largest <= 1e-12 * m:
            kappas.append(0.0)
            continue
        star = critical_spread(eta, init_scale=init_scale, num_steps=num_steps, mean=m, threshold=LEARNT * m)
        most = (1 - eta * m) / (eta * largest)
        kappas.append(max(min(star / (tolerance * m), most) - 1, 0.0))
    return np.array(kappas)


def effect_descent(
    measured: Effects, orders: np.ndarray, *, step_size: float, init_scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One descent for each row of ``orders``, which lists the environments of its steps.

    Returns the recorded steps, the mean ``beta`` over the runs there, and the mean of each run over the second half of the
    steps.
    """
    runs, num_steps = orders.shape

    def gradient(t: int, beta: np.ndarray) -> np.ndarray:
        e = orders[:, t]
        if measured.maps_are_identity:
            return beta - measured.effects[e]
        # One product for each run: indexing the maps by run would copy them at every step.
        return np.stack([measured.maps[k] @ b for k, b in zip(e, beta, strict=True)]) - measured.effects[e]

    products = numpy_descent.vector_descent(
        gradient, (runs, len(measured.mean)), init_scale=init_scale, step_size=step_size, num_steps=num_steps
    )
    return numpy_descent.path_and_late_mean(products, num_steps, RECORDED_POINTS)


# --- effects of symmetric matrices ----------------------------------------------------------------


class ScaledEnvironments(NamedTuple):
    """The gradient functions and the effects of all environments, in common units.

    In these units ``<X, M>^2`` is ``|M|^2`` on average over directions M, and the mean effect has norm one. ``unit`` takes a
    matrix back to the units of the data.
    """

    gradient_functions: list[Gradient]
    effects: np.ndarray
    unit: float

    def gradients(self, A: np.ndarray) -> np.ndarray:
        """Coordinates (environments, runs, D) of all gradients at matrices (runs, d, d)."""
        return np.stack([gradient(A) for gradient in self.gradient_functions])

    def pooled(self) -> ScaledEnvironments:
        """The mean of all environments, as a single one."""
        return self._replace(
            gradient_functions=[lambda A: self.gradients(A).mean(axis=0)],
            effects=self.effects.mean(axis=0, keepdims=True),
        )


def scaled_environments(parts: Sequence[EnvironmentRows]) -> ScaledEnvironments:
    """Scale the rows and responses of all environments together."""
    size = np.sqrt(np.mean([part.variance for part in parts])) or 1.0
    effects = np.stack([part.effect for part in parts]) / size
    effect = float(np.linalg.norm(effects.mean(axis=0), 2)) or 1.0
    gradients = [part.gradient(float(size), effect) for part in parts]
    return ScaledEnvironments(gradients, effects / effect, float(effect / size))


def matrix_step(step_size: float | str, data: ScaledEnvironments) -> float:
    """A given step, or 0.1, or less if steps would be unstable: if a direction of X has far more variance than others."""
    if not _is_auto("step_size", step_size):
        return float(errors.number("step_size", step_size, above=0))
    A = np.ones_like(data.effects[:1])
    zero, largest = data.gradients(0 * A), 1.0
    for _ in range(20):  # power iteration; an accuracy of a tenth is enough
        A = smat((data.gradients(A / np.linalg.norm(A)) - zero).mean(axis=0))
        largest = float(np.linalg.norm(A))
    return min(LARGEST_STEP, 0.25 / largest) if largest > 0 else LARGEST_STEP


def matrix_num_steps(num_steps: int | str, step_size: float, init_scale: float) -> int:
    """A given number of steps, or twice the number that the weakest eigenvalue worth learning needs."""
    if not _is_auto("num_steps", num_steps):
        return errors.integer("num_steps", num_steps, least=4)
    needed = 2 * np.log(np.sqrt(WEAKEST_EIGENVALUE) / init_scale) / np.log1p(step_size * WEAKEST_EIGENVALUE)
    return int(np.clip(np.ceil(needed), 100, MOST_MATRIX_STEPS))


def matrix_amplification(
    data: ScaledEnvironments, tolerance: float, *, step_size: float, init_scale: float, num_steps: int
) -> float:
    """The kappa at which the Lyapunov rule switches at a spread of ``tolerance`` for an effect of norm one.

    It is limited so that ``1 - eta |G|`` stays positive in every environment.
    """
    effects, eta = data.effects, step_size
    largest = max(float(np.linalg.norm(B, 2)) for B in effects - effects.mean(axis=0))
    if len(effects) == 1 or largest == 0:
        return 0.0
    star = critical_spread(eta, init_scale=init_scale, num_steps=num_steps)
    return float(max(min(star / tolerance, (1 - eta) / (eta * largest)) - 1, 0.0))


def matrix_descent(
    data: ScaledEnvironments, orders: np.ndarray, kappa: float, *, step_size: float, init_scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``U U^T - V V^T`` once for each row of ``orders``, which lists the environments of its steps.

    Returns the recorded steps, the mean product over the runs there, and the mean over the second half of the steps.
    """
    (runs, num_steps), d = orders.shape, data.effects.shape[-1]

    def gradient(t: int, A: np.ndarray) -> np.ndarray:
        G = data.gradients(A)
        G_e = G[orders[:, t], np.arange(runs)]
        return smat(G_e + kappa * (G_e - G.mean(axis=0)))

    products = numpy_descent.matrix_descent(
        gradient, runs, d, init_scale=init_scale, step_size=step_size, num_steps=num_steps
    )
    steps, path, late = numpy_descent.path_and_late_mean(products, num_steps, RECORDED_POINTS)
    return steps, path, late.mean(axis=0)
