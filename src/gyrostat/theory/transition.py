"""When does the oscillation of the spurious part beat its growth? Predictors of the transition.

While it is small, a spurious direction is multiplied by ``1 + eta xi`` at every step, xi being the diagonal entry of the
environment's Sigma. Whether it survives T steps from the start scale alpha is a question about that product.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from gyrostat import errors
from gyrostat.environments import Law, TwoPoint
from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.random_streams import few_normals, fold_in, split
from gyrostat.theory.conditions import Condition

LEARNT = 0.1
"""A spurious part below this share of the signal counts as eliminated."""


def lyapunov_exponent(law: Law, step_size: float) -> float:
    """``max_i E log |1 + eta Sigma_ii|``: the typical growth rate of a spurious direction per step.

    >>> from gyrostat import TwoPoint
    >>> lyapunov_exponent(TwoPoint(mean=1.0, spread=6.0), 0.05) > 0 > lyapunov_exponent(TwoPoint(mean=1.0, spread=7.0), 0.05)
    True
    """
    eta = float(errors.number("step_size", step_size, above=0))
    tiny = np.finfo(float).tiny  # a factor of exactly zero kills the direction: log 0 would be -inf, which is right
    return float(law.expectation(lambda xi: np.log(np.maximum(np.abs(1 + eta * xi), tiny))).max())


def moment_growth(law: Law, step_size: float, power: float, *, shift: float = 0.0) -> float:
    """``max_i E |1 + eta (Sigma_ii + shift)|^power``: the factor by which that moment of a direction grows per step."""
    eta = float(errors.number("step_size", step_size, above=0))
    return float(law.expectation(lambda xi: np.abs(1 + eta * (xi + shift)) ** power).max())


def eliminated_by_lyapunov(
    law: Law, step_size: float, *, init_scale: float, num_steps: int, threshold: float = LEARNT
) -> Condition:
    """Our rule: a typical direction, ``alpha exp(lambda T)``, is still below the threshold after T steps.

    >>> from gyrostat import TwoPoint
    >>> eliminated_by_lyapunov(TwoPoint(spread=6.0), 0.05, init_scale=1e-3, num_steps=200).holds
    True
    """
    growth = lyapunov_exponent(law, step_size) * num_steps
    room = 0.5 * math.log(threshold) - math.log(init_scale)
    return Condition(
        "spurious part eliminated (Lyapunov rule)",
        "ours",
        growth,
        "<",
        room,
        "lambda T against log(sqrt(threshold)/alpha)",
    )


def critical_spread(
    step_size: float, *, init_scale: float, num_steps: int, mean: float = 1.0, threshold: float = LEARNT
) -> float:
    """The spread M* of a two-point law at which the Lyapunov rule changes its mind, in closed form.

    ``M* = sqrt((1 + eta mean)^2 - exp(2 log(sqrt(threshold)/alpha) / T)) / eta``; zero if every spread is eliminated.

    >>> round(critical_spread(0.05, init_scale=1e-3, num_steps=200), 2)
    4.16
    """
    eta = float(errors.number("step_size", step_size, above=0))
    room = 0.5 * math.log(threshold) - math.log(init_scale)
    gap = (1 + eta * mean) ** 2 - math.exp(2 * room / num_steps)
    return math.sqrt(max(gap, 0.0)) / eta


def informal_window(law: Law, *, power: float = 0.1) -> tuple[float, float]:
    """The paper's informal window for the step size (section 4): ``4 E xi / ((1 - gamma) Var xi) < eta < 1/(16 M)``."""
    mean, variance = law.expectation(lambda xi: xi), law.variance
    lows = [4 * m / ((1 - power) * v) if v > 0 else math.inf for m, v in zip(mean, variance, strict=True)]
    return max(lows), 1 / (16 * law.bound) if law.bound > 0 else math.inf


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
    """Final spurious signals of ``runs`` samples of a three-number caricature of HeteroSGD with r1 = r2 = 1.

    r is the invariant direction, (q_v, q_r) the spurious one, across and along r in the column space of U:

        r   <- (1 + eta (1 - r^2 - q_r^2)) r
        q_v <- (1 + eta (s - q^2)) q_v
        q_r <- (1 + eta (s - q^2 - r^2)) q_r + eta |residual| / sqrt(2 m) * r * N(0, 1)

    It costs nothing in the dimension and covers long horizons, where intermittency (rare long runs of the growing
    environment) moves the transition.

    >>> from gyrostat import TwoPoint
    >>> final = surrogate(TwoPoint(spread=8.0), 0.05, init_scale=1e-3, num_steps=200, num_samples=8000)
    >>> bool((final < 0.1).mean() > 0.9)
    True
    """
    with double():
        keys = jax.random.split(jax.random.key(seed), errors.integer("runs", runs, least=1))
        arguments = (float(step_size), float(init_scale), 1 / math.sqrt(2 * num_samples), int(num_steps))
        return np.asarray(_surrogate(law, *(jnp.asarray(x) for x in arguments), keys))


@jax.jit
def _surrogate(
    law: Law, eta: jax.Array, alpha: jax.Array, noise: jax.Array, T: jax.Array, keys: jax.Array
) -> jax.Array:
    def one(key: jax.Array) -> jax.Array:
        def step(t: jax.Array, state: tuple) -> tuple:
            r, v, w = state
            place, kicking = split(fold_in(key, t))
            s = law.draw(place).sigma[0, 0]
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


def exact_moments(law: TwoPoint, step_size: float, power: float, num_steps: int) -> np.ndarray:
    """``E |q_t|^power`` for t = 0 ... T of the product of factors ``1 + eta xi``, q_0 = 1, by the exact binomial sum.

    Monte Carlo with 10^5 samples is 30 % off for the mean: almost all of it sits in very rare runs.

    >>> from gyrostat import TwoPoint
    >>> round(float(exact_moments(TwoPoint(spread=6.0), 0.05, 1.0, 100)[-1] / 1.05**100), 9)
    1.0
    """
    from scipy.stats import binom

    (low, high), eta = law.values[:, 0, 0], float(step_size)
    a, b = np.log(np.abs(1 + eta * low)), np.log(np.abs(1 + eta * high))

    def moment(t: int) -> float:
        k = np.arange(t + 1)
        return float(np.sum(binom.pmf(k, t, 0.5) * np.exp(power * (k * a + (t - k) * b))))

    return np.array([moment(t) for t in range(num_steps + 1)])
