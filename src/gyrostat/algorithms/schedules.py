"""Schedules: the step size and the ridge over time; events: what else happens to the parameters after a step."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.measurements import Reading
from gyrostat.models import Model, Params
from gyrostat.models.base import Outer
from gyrostat.models.spaces import Leaf

CONVENTIONS = {"weight_decay": (2.0, 1.0), "main_text": (1.0, 2.0), "appendix": (1.0, 1.0)}
"""Readings of the update of Wang 2023: multipliers of the gradient and of the ridge."""


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

    @property
    def rotates(self) -> bool:
        """Whether rotating coordinates (of the product, of a hidden layer) before the step or after it is the same."""
        return False

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        """Refuse, before compilation, a model that this rule cannot move."""

    @abc.abstractmethod
    def __call__(
        self, model: Model, params: Params, reading: Reading, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        """The parameters after the step."""

    def square(
        self,
        square: Float[Array, ""],
        model: Model,
        params: Params,
        reading: Reading,
        step_size: Float[Array, ""],
        ridge: Float[Array, ""],
    ) -> Float[Array, ""] | None:
        """The sum of their squares after the step, given that before, where it can be had without looking at all of them."""
        return None


class GradientStep(Rule):
    """``theta <- (1 - decay * step_size * ridge) theta - step_size * pullback(theta, G)``, with decay 2 by default.

    >>> float(GradientStep().decay)
    2.0
    """

    decay: Leaf = eqx.field(converter=lambda x: errors.number("decay", x, least=0), default=2.0)

    @property
    def rotates(self) -> bool:
        return True

    def __call__(
        self, model: Model, params: Params, reading: Reading, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        keep = 1 - self.decay * step_size * ridge
        pairs = _pairs(model, params, reading)
        directions = model.pullback(params, reading.gradient) if pairs is None else [pair.matrix for pair in pairs]
        return tuple(keep * p - step_size * g for p, g in zip(params, directions, strict=True))

    def square(
        self,
        square: Float[Array, ""],
        model: Model,
        params: Params,
        reading: Reading,
        step_size: Float[Array, ""],
        ridge: Float[Array, ""],
    ) -> Float[Array, ""] | None:
        pairs, seen = _pairs(model, params, reading), reading.entry
        if pairs is None or seen is None:
            return None
        keep = 1 - self.decay * step_size * ridge
        # ||keep p - eta g||^2 term by term; the model is linear in each p, so <p, g> = <A, G> for all of them.
        inner = len(pairs) * seen.slope * seen.value
        return keep**2 * square - 2 * keep * step_size * inner + step_size**2 * sum(pair.square for pair in pairs)


def _pairs(model: Model, params: Params, reading: Reading) -> tuple[Outer, ...] | None:
    """The directions as pairs of vectors, where a single entry was seen and the model can do that."""
    seen = reading.entry
    return None if seen is None else model.entry_pullback(params, seen.row, seen.column, seen.slope)


class RidgeStep(Rule):
    """The three conventions in which Wang 2023's update can be read, for G the mean of ``(A_ij - y_ij) E_ij``.

    ``"weight_decay"``: ``(1 - eta lambda) theta - 2 eta pullback(G)``, what SGD with weight decay does to the mean of
    ``(A_ij - y_ij)^2``; it alone reproduces the paper's figures. ``"main_text"``: ``(1 - 2 eta lambda) theta - eta
    pullback(G)`` (section 2.3). ``"appendix"``: ``(1 - eta lambda) theta - eta pullback(G)`` (section E). All layers move
    at once, from the old ones.

    >>> RidgeStep("main_text").multipliers
    (1.0, 2.0)
    """

    convention: str = eqx.field(
        static=True, default="weight_decay", converter=lambda x: errors.choice("convention", x, CONVENTIONS)
    )

    @property
    def rotates(self) -> bool:
        return True

    @property
    def multipliers(self) -> tuple[float, float]:
        """What multiplies ``step_size * pullback(G)`` and ``step_size * ridge``."""
        return CONVENTIONS[self.convention]

    def __call__(
        self, model: Model, params: Params, reading: Reading, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        gain, decay = self.multipliers
        return GradientStep(decay / gain)(model, params, reading, gain * step_size, ridge)

    def square(
        self,
        square: Float[Array, ""],
        model: Model,
        params: Params,
        reading: Reading,
        step_size: Float[Array, ""],
        ridge: Float[Array, ""],
    ) -> Float[Array, ""] | None:
        gain, decay = self.multipliers
        return GradientStep(decay / gain).square(square, model, params, reading, gain * step_size, ridge)


class Preconditioned(Rule):
    """``F <- F - step_size * (M G) (G^T G + damping I)^-1`` and likewise for G: ScaledGD (Tong, Ma, Chi 2021).

    ``damping="residual"`` takes the root mean square residual ``||A(E)||``, which shrinks as the run converges: PrecGD
    (Zhang, Fattahi, Zhang 2021). Without any damping an over-parameterised run divides by nearly zero.

    >>> Preconditioned(damping=0.01).damping.item()
    0.01
    """

    damping: Leaf
    adapts: bool = eqx.field(static=True)

    def __init__(self, damping: float | str = 0.0):
        if isinstance(damping, str):
            errors.choice("damping", damping, ("residual",))
        self.adapts = isinstance(damping, str)
        self.damping = errors.number("damping", 1.0 if self.adapts else damping, least=0)

    @property
    def rotates(self) -> bool:
        return True

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        model.partners(tuple(np.zeros(s) for s in model.shapes(shape)))

    def __call__(
        self, model: Model, params: Params, reading: Reading, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        damping = self.damping * jnp.sqrt(reading.residual_square) if self.adapts else self.damping
        keep = 1 - 2 * step_size * ridge

        def moved(p: Array, direction: Array, partner: Array) -> Array:
            gram = partner.T @ partner
            # At the floor of rounding a Gram matrix of superfluous columns is singular, and the step would be noise.
            floor = jnp.finfo(gram.dtype).eps * jnp.trace(gram)
            gram = gram + (damping + floor) * jnp.eye(len(gram))
            return keep * p - step_size * jnp.linalg.solve(gram, direction.T).T

        directions = model.pullback(params, reading.gradient)
        return tuple(map(moved, params, directions, model.partners(params)))


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

    def check(self, algorithm: Any, problem: Any) -> None:
        """Refuse, before compilation, an algorithm or a problem that does not give what the event needs."""

    @property
    def rotates(self) -> bool:
        """Whether rotating coordinates (of the product, of a hidden layer) before the event or after it is the same."""
        return False

    def summary(self, state: Any) -> dict[str, Array]:
        """Numbers to report at the end of a run, by name."""
        return {}

    def notes(self, found: Mapping[str, np.ndarray]) -> list[str]:
        """Sentences about :meth:`summary` over all runs that a reader of the result should not miss."""
        return []

    @abc.abstractmethod
    def __call__(self, state: Any, model: Model, moment: Moment) -> tuple[Params, Any]:
        """The parameters after the event, and its state."""


class Shrinkage(Event):
    """``U <- U / (1 - step_size (||U_t||_F^2 - tau_t))`` with tau_t = mean(y): Algorithm 4 of Xu 2024.

    It takes the trace that rank-one measurements add out of the gradient. tau_t is the signed trace of the total
    signal (the paper prints a norm: with the nuclear or the operator norm the algorithm fails), estimated by the mean
    response as Remark 1 suggests.
    """

    @property
    def rotates(self) -> bool:
        return True

    def check(self, algorithm: Any, problem: Any) -> None:
        if not problem.measurements.gives_response_mean:
            raise GyrostatError(
                f"Shrinkage needs the mean response, which {type(problem.measurements).__name__} does not give: use RankOne."
            )

    def __call__(self, state: Any, model: Model, moment: Moment) -> tuple[Params, Any]:
        eta, tau = moment.step_size, moment.reading.response_mean
        size = sum(jnp.sum(p * p) for p in moment.before)
        scale = 1 / (1 - eta * (size - tau))
        return tuple(scale * p for p in moment.after), state
