"""Amplified heterogeneity as an optax transformation, for training loops in JAX."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Int

from gyrostat import errors
from gyrostat.errors import GyrostatError


class AmplifiedState(NamedTuple):
    """The state of :func:`amplified_heterogeneity`; ``averaged`` are the parameters to deploy."""

    inner: Any
    last: Any
    seen: Bool[Array, " environments"]
    averaged: Any
    steps: Int[Array, ""]
    skipped: Int[Array, ""]


def amplified_heterogeneity(
    inner: optax.GradientTransformation,
    num_environments: int,
    *,
    amplify: float = 10.0,
    average: float = 0.98,
) -> optax.GradientTransformationExtraArgs:
    """An optax optimiser whose gradients are ``g + amplify (g - mean over environments of each one's last gradient)``.

    This is :class:`gyrostat.torch.AmplifiedHeterogeneity` for JAX. Each step takes the gradient g of a batch of one
    environment; nothing is amplified until every environment has been seen. The state holds ``averaged``, the running
    average of the parameters, which is what to deploy. A gradient that is not finite is neither used nor remembered: the
    update is zero, and ``skipped`` counts it. Under ``jit``, a step whose environment is out of range is skipped in the same
    way.

    Parameters
    ----------
    inner
        The optimiser that makes the steps, preferably ``optax.sgd`` without momentum: momentum and Adam average gradients
        over environments, which undoes part of the amplification.
    num_environments
        The number of environments. ``update`` takes ``environment=``, a number from 0 to ``num_environments - 1``.
    amplify
        The factor kappa. 0 changes nothing; 10 is a good first choice.
    average
        The share of the running average of the parameters that a step keeps, in [0, 1). The first ``1 / (1 - average)``
        steps count equally.

    >>> import gyrostat as gs
    >>> optimizer = gs.rules.amplified_heterogeneity(optax.sgd(0.1), 2, amplify=10.0)
    >>> params = jnp.zeros(2)
    >>> state = optimizer.init(params)
    >>> for environment, slope in ((0, -1.0), (1, 1.0)):
    ...     gradient = jnp.array([-1.0, slope])
    ...     updates, state = optimizer.update(gradient, state, params, environment=environment)
    ...     params = optax.apply_updates(params, updates)
    >>> [round(float(x), 6) for x in params]  # the second entry: a plain step of 0.1, then one of 0.1 + 10 * 0.1 back
    [0.2, -1.0]
    """
    if not (hasattr(inner, "init") and hasattr(inner, "update")):
        raise GyrostatError(f"inner must be an optax optimiser such as optax.sgd(0.1); got {errors.shown(inner)}.")
    count = errors.integer("num_environments", num_environments, least=2)
    kappa = float(errors.number("amplify", amplify, least=0))
    kept = float(errors.number("average", average, least=0))
    if kept >= 1:
        raise GyrostatError(f"average must be below 1, or the start is never forgotten; got {average!r}.")
    wrapped = optax.with_extra_args_support(inner)

    def init(params: Any) -> AmplifiedState:
        last = jax.tree.map(lambda p: jnp.zeros((count, *jnp.shape(p)), jnp.asarray(p).dtype), params)
        zero, seen = jnp.zeros((), jnp.int32), jnp.zeros(count, bool)
        return AmplifiedState(wrapped.init(params), last, seen, jax.tree.map(jnp.asarray, params), zero, zero)

    def update(
        updates: Any, state: AmplifiedState, params: Any = None, *, environment: Any = None, **extra: Any
    ) -> tuple[Any, AmplifiedState]:
        if params is None:
            raise GyrostatError(
                "update needs params, of which it keeps the average: optimizer.update(g, state, params)."
            )
        if environment is None:
            raise GyrostatError(
                "update needs the environment of the batch: optimizer.update(g, state, params, environment=e)."
            )
        e = environment
        if not isinstance(e, jax.core.Tracer):  # a traced one cannot be checked
            e = e.item() if getattr(e, "ndim", None) == 0 else e
            e = errors.integer("environment", e, most=count - 1, most_because=", num_environments - 1")
        last = jax.tree.map(lambda gradients, g: gradients.at[e].set(g), state.last, updates)
        seen = state.seen.at[e].set(True)
        strength = jnp.where(seen.all(), kappa, 0.0)
        amplified = jax.tree.map(
            lambda g, of_all: g + strength.astype(g.dtype) * (g - of_all.mean(axis=0)), updates, last
        )
        moves, inner_state = wrapped.update(amplified, state.inner, params, **extra)
        steps = state.steps + 1
        share = jnp.maximum(1 - kept, 1 / steps)
        averaged = jax.tree.map(lambda a, p, u: a + share.astype(a.dtype) * (p + u - a), state.averaged, params, moves)
        after = AmplifiedState(inner_state, last, seen, averaged, steps, state.skipped)

        finite = jnp.stack([jnp.isfinite(g).all() for g in jax.tree.leaves(updates)]).all()
        good = finite & (e >= 0) & (e < count)
        skipped = state._replace(skipped=state.skipped + 1)
        moves = jax.tree.map(lambda u: jnp.where(good, u, jnp.zeros_like(u)), moves)
        return moves, jax.tree.map(lambda new, old: jnp.where(good, new, old), after, skipped)

    return optax.GradientTransformationExtraArgs(init, update)
