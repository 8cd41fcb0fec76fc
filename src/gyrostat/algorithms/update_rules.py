"""Update rules: how a gradient moves the parameters of a model. Rules with memory are in ``rules_with_memory``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.measurements import Reading
from gyrostat.models import Model
from gyrostat.models.base import Outer
from gyrostat.typing import Leaf, Params

CONVENTIONS = {"weight_decay": (2.0, 1.0), "main_text": (1.0, 2.0), "appendix": (1.0, 1.0)}
"""Interpretations of the update of Wang 2023: multipliers of the gradient and of the ridge."""


class UpdateRule(ReadableModule):
    """How a gradient moves the parameters.

    A rule without memory defines :meth:`__call__`. A rule that remembers something from step to step (:class:`Momentum`,
    :class:`Adam`) defines :meth:`init` and :meth:`update` instead; the engine calls these two for every rule.

    >>> class SignStep(UpdateRule):
    ...     def __call__(self, model, params, reading, step_size, ridge):
    ...         directions = model.pullback(params, reading.gradient)
    ...         return tuple(p - step_size * jnp.sign(g) for p, g in zip(params, directions))
    >>> SignStep().init(None, ())
    ()
    """

    @property
    def rotates(self) -> bool:
        """Whether the rule commutes with rotations of the coordinates (of the product, of a hidden layer)."""
        return False

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        """Refuse, before compilation, a model that this rule cannot move."""

    def init(self, model: Model, params: Params) -> Any:
        """The memory before the first step, a tree of arrays: none by default."""
        return ()

    def update(
        self,
        memory: Any,
        model: Model,
        params: Params,
        reading: Reading,
        step_size: Float[Array, ""],
        ridge: Float[Array, ""],
    ) -> tuple[Params, Any]:
        """The parameters after the step, and the new memory: by default those of :meth:`__call__`, and the old memory.

        ``reading`` holds the gradient with respect to the product; ``model.pullback(params, reading.gradient)`` is the one
        with respect to the parameters. ``step_size`` and ``ridge`` are those of the schedule at this step.
        """
        return self(model, params, reading, step_size, ridge), memory

    def __call__(
        self, model: Model, params: Params, reading: Reading, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        """The parameters after the step, for a rule without memory."""
        name = type(self).__name__
        raise GyrostatError(f"{name} defines neither __call__ nor update: write one of them (see UpdateRule).")

    def direction(self, model: Model, params: Params, reading: Reading, ridge: Float[Array, ""]) -> Params:
        """The step of a rule without memory, divided by minus the step size: what a rule with memory accumulates."""
        raise GyrostatError(
            f"{type(self).__name__} does not say its direction, so no memory can be kept of it: define direction."
        )

    def squared_norm(
        self,
        before: Float[Array, ""],
        model: Model,
        params: Params,
        reading: Reading,
        step_size: Float[Array, ""],
        ridge: Float[Array, ""],
    ) -> Float[Array, ""] | None:
        """The sum of the squares of all parameters after the step, given that ``before`` the step.

        None when it cannot be computed without going through all parameters.
        """
        return None


class GradientStep(UpdateRule):
    """``theta <- (1 - decay * step_size * ridge) theta - step_size * pullback(theta, G)``, with decay 2 by default.

    Parameters
    ----------
    decay
        The factor of the ridge in the update.

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
        directions = _gradients(model, params, reading)
        return tuple(keep * p - step_size * g for p, g in zip(params, directions, strict=True))

    def direction(self, model: Model, params: Params, reading: Reading, ridge: Float[Array, ""]) -> Params:
        gradients = _gradients(model, params, reading)
        return tuple(g + self.decay * ridge * p for p, g in zip(params, gradients, strict=True))

    def squared_norm(
        self,
        before: Float[Array, ""],
        model: Model,
        params: Params,
        reading: Reading,
        step_size: Float[Array, ""],
        ridge: Float[Array, ""],
    ) -> Float[Array, ""] | None:
        pairs, entry = _outer_products(model, params, reading), reading.entry
        if pairs is None or entry is None:
            return None
        keep = 1 - self.decay * step_size * ridge
        # ||keep p - eta g||^2 term by term; the model is linear in each p, so <p, g> = <A, G> for all of them.
        inner = len(pairs) * entry.slope * entry.value
        return keep**2 * before - 2 * keep * step_size * inner + step_size**2 * sum(pair.square for pair in pairs)


def _outer_products(model: Model, params: Params, reading: Reading) -> tuple[Outer, ...] | None:
    """The directions as outer products, if the reading is of a single entry and the model supports that."""
    entry = reading.entry
    return None if entry is None else model.entry_pullback(params, entry.row, entry.column, entry.slope)


def _gradients(model: Model, params: Params, reading: Reading) -> Params:
    """The gradient with respect to every parameter."""
    pairs = _outer_products(model, params, reading)
    return model.pullback(params, reading.gradient) if pairs is None else tuple(pair.matrix for pair in pairs)


class RidgeStep(UpdateRule):
    """The three interpretations of the update of Wang 2023, for G the mean of ``(A_ij - y_ij) E_ij``.

    ``"weight_decay"``: ``(1 - eta lambda) theta - 2 eta pullback(G)``, which is SGD with weight decay on the mean of
    ``(A_ij - y_ij)^2``; only this one reproduces the paper's figures. ``"main_text"``: ``(1 - 2 eta lambda) theta - eta
    pullback(G)`` (section 2.3). ``"appendix"``: ``(1 - eta lambda) theta - eta pullback(G)`` (section E). All layers move
    at once, from their old values.

    Parameters
    ----------
    convention
        ``"weight_decay"``, ``"main_text"`` or ``"appendix"``.

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
        """The multipliers of ``step_size * pullback(G)`` and of ``step_size * ridge``."""
        return CONVENTIONS[self.convention]

    def __call__(
        self, model: Model, params: Params, reading: Reading, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        gain, decay = self.multipliers
        return GradientStep(decay / gain)(model, params, reading, gain * step_size, ridge)

    def direction(self, model: Model, params: Params, reading: Reading, ridge: Float[Array, ""]) -> Params:
        gain, decay = self.multipliers
        return tuple(gain * g for g in GradientStep(decay / gain).direction(model, params, reading, ridge))

    def squared_norm(
        self,
        before: Float[Array, ""],
        model: Model,
        params: Params,
        reading: Reading,
        step_size: Float[Array, ""],
        ridge: Float[Array, ""],
    ) -> Float[Array, ""] | None:
        gain, decay = self.multipliers
        return GradientStep(decay / gain).squared_norm(before, model, params, reading, gain * step_size, ridge)


class Preconditioned(UpdateRule):
    """``F <- F - step_size * (M G) (G^T G + damping I)^-1`` and likewise for G: ScaledGD (Tong, Ma, Chi 2021).

    ``damping="residual"`` takes the root mean square residual ``||A(E)||``, which shrinks as the run converges: PrecGD
    (Zhang, Fattahi, Zhang 2021). Without damping an over-parameterised run divides by nearly zero.

    Parameters
    ----------
    damping
        What is added to the Gram matrix: a number, or ``"residual"``.

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

    def arguments(self) -> Mapping[str, Any]:
        return {"damping": "residual" if self.adapts else self.damping}

    @property
    def rotates(self) -> bool:
        return True

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        model.partners(tuple(np.zeros(s) for s in model.shapes(shape)))

    def __call__(
        self, model: Model, params: Params, reading: Reading, step_size: Float[Array, ""], ridge: Float[Array, ""]
    ) -> Params:
        keep = 1 - 2 * step_size * ridge
        directions = self._preconditioned(model, params, reading)
        return tuple(keep * p - step_size * g for p, g in zip(params, directions, strict=True))

    def direction(self, model: Model, params: Params, reading: Reading, ridge: Float[Array, ""]) -> Params:
        directions = self._preconditioned(model, params, reading)
        return tuple(g + 2 * ridge * p for p, g in zip(params, directions, strict=True))

    def _preconditioned(self, model: Model, params: Params, reading: Reading) -> Params:
        damping = self.damping * jnp.sqrt(reading.residual_square) if self.adapts else self.damping

        def solved(gradient: Array, partner: Array) -> Array:
            gram = partner.T @ partner
            # At rounding level the Gram matrix of superfluous columns is singular, and the step would be noise.
            floor = jnp.finfo(gram.dtype).eps * jnp.trace(gram)
            gram = gram + (damping + floor) * jnp.eye(len(gram))
            return jnp.linalg.solve(gram, gradient.T).T

        return tuple(map(solved, model.pullback(params, reading.gradient), model.partners(params)))
