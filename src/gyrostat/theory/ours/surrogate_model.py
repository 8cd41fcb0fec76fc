"""The surrogate (ours): HeteroSGD for r1 = r2 = 1 as a model with three numbers, simulated many times."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from gyrostat import errors
from gyrostat.environments import Law
from gyrostat.jax_tools.compile_cache import use_compile_cache
from gyrostat.jax_tools.fast_random import few_normals, fold_in, split
from gyrostat.jax_tools.float64 import double


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
            s = law.environment(drawing).sigma[0, 0]
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
