"""Schedules: the step size and the ridge over time; events: what else happens to the parameters after a step."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.measurements import Measurements, Reading
from gyrostat.models import Model, Params
from gyrostat.spaces import Leaf


class Schedule(eqx.Module):
    """Step size and ridge at each step."""

    @abc.abstractmethod
    def __call__(self, step: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """``(step_size, ridge)`` of step number ``step``."""


class Constant(Schedule):
    """The same step size and ridge at every step.

    >>> [round(float(x), 6) for x in Constant(0.05)(0)]
    [0.05, 0.0]
    """

    step_size: Leaf = eqx.field(converter=lambda x: errors.number("step_size", x, above=0))
    ridge: Leaf = eqx.field(converter=lambda x: errors.number("ridge", x, least=0), default=0.0)

    def __call__(self, step: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return jnp.asarray(self.step_size), jnp.asarray(self.ridge)


class Rule(eqx.Module):
    """How a gradient moves the parameters."""

    @abc.abstractmethod
    def __call__(
        self, model: Model, params: Params, gradient: Array, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        """The parameters after the step."""


class GradientStep(Rule):
    """``theta <- (1 - decay * step_size * ridge) theta - step_size * pullback(theta, G)``, with decay 2 by default."""

    decay: Leaf = eqx.field(converter=lambda x: errors.number("decay", x, least=0), default=2.0)

    def __call__(
        self, model: Model, params: Params, gradient: Array, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        keep = 1 - self.decay * step_size * ridge
        directions = model.pullback(params, gradient)
        return tuple(keep * p - step_size * g for p, g in zip(params, directions, strict=True))


class Moment(NamedTuple):
    """What an event may look at: the step's number, key and size, the parameters before and after, the reading."""

    step: Int[Array, ""]
    key: PRNGKeyArray
    step_size: Float[Array, ""]
    before: Params
    after: Params
    reading: Reading


class Event(eqx.Module):
    """Something that happens to the parameters after the gradient step, with a state of its own if it needs one."""

    def init(self, model: Model, params: Params) -> Any:
        """The event's state before the first step."""
        return ()

    def check(self, measurements: Measurements) -> None:
        """Refuse, before compilation, measurements that do not give what the event needs."""

    @abc.abstractmethod
    def __call__(self, state: Any, model: Model, moment: Moment) -> tuple[Params, Any]:
        """The parameters after the event, and its state."""


class Shrinkage(Event):
    """``U <- U / (1 - step_size (||U_t||_F^2 - tau_t))`` with tau_t = mean(y): Algorithm 4 of Xu 2024.

    It takes the trace that rank-one measurements add out of the gradient. tau_t is the signed trace of the total
    signal (the paper prints a norm: with the nuclear or the operator norm the algorithm fails), estimated by the mean
    response as Remark 1 suggests.
    """

    def check(self, measurements: Measurements) -> None:
        if not measurements.gives_response_mean:
            raise GyrostatError(
                f"Shrinkage needs the mean response, which {type(measurements).__name__} does not give: use RankOne."
            )

    def __call__(self, state: Any, model: Model, moment: Moment) -> tuple[Params, Any]:
        eta, tau = moment.step_size, moment.reading.response_mean
        size = sum(jnp.sum(p * p) for p in moment.before)
        scale = 1 / (1 - eta * (size - tau))
        return tuple(scale * p for p in moment.after), state
