"""Update rules: how a gradient moves the parameters of a model, without memory and with it.

A rule without memory is two multipliers and a gradient (:class:`DescentRule`). A rule with memory turns the directions of such
a rule into steps, as a transformation of optax does (:class:`AccumulatingRule`).
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax
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

Number: TypeAlias = Float[Array, ""]


class UpdateRule(ReadableModule):
    """How a gradient moves the parameters.

    A rule without memory defines :meth:`__call__`. A rule that remembers something from step to step (:class:`Momentum`,
    :class:`Adam`) defines :meth:`init` and :meth:`update` instead; the engine calls these two for every rule.

    ``reading`` holds the gradient with respect to the product; ``model.pullback(params, reading.gradient)`` is the one with
    respect to the parameters. ``reading.at(other_params)`` is the reading of the same batch at other parameters. ``step_size``
    and ``ridge`` are those of the schedule at this step.

    >>> class SignStep(UpdateRule):
    ...     def __call__(self, model, params, reading, step_size, ridge):
    ...         gradients = model.pullback(params, reading.gradient)
    ...         return tuple(p - step_size * jnp.sign(g) for p, g in zip(params, gradients))
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
        self, memory: Any, model: Model, params: Params, reading: Reading, step_size: Number, ridge: Number
    ) -> tuple[Params, Any]:
        """The parameters after the step, and the new memory: by default those of :meth:`__call__`, and the old memory."""
        return self(model, params, reading, step_size, ridge), memory

    def __call__(self, model: Model, params: Params, reading: Reading, step_size: Number, ridge: Number) -> Params:
        """The parameters after the step, for a rule without memory."""
        name = type(self).__name__
        raise GyrostatError(f"{name} defines neither __call__ nor update: write one of them (see UpdateRule).")

    def squared_norm(
        self, before: Number, model: Model, params: Params, reading: Reading, step_size: Number, ridge: Number
    ) -> Number | None:
        """The sum of the squares of all parameters after the step, given that ``before`` the step.

        None when it cannot be computed without going through all parameters.
        """
        return None


# --- without memory ---------------------------------------------------------------------------------------------------------


class DescentRule(UpdateRule):
    """``theta <- (1 - decay * step_size * ridge) theta - gain * step_size * g``, with g the gradient.

    A subclass says the two :attr:`multipliers`, and its own :meth:`gradients` if g is not the gradient itself. Rules with
    memory accumulate its directions ``gain * g + decay * ridge * theta``.

    >>> class SignDescent(DescentRule):
    ...     multipliers = (1.0, 2.0)
    ...     def gradients(self, model, params, reading):
    ...         return tuple(map(jnp.sign, super().gradients(model, params, reading)))
    >>> import gyrostat as gs
    >>> type(gs.HeteroSGD(0.05, rule=gs.rules.Momentum(0.9, of=SignDescent())).rule.of).__name__
    'SignDescent'
    """

    @property
    @abc.abstractmethod
    def multipliers(self) -> tuple[Any, Any]:
        """The gain and the decay: the multipliers of ``step_size * g`` and of ``step_size * ridge``."""

    def gradients(self, model: Model, params: Params, reading: Reading) -> Params:
        """g for every parameter."""
        pairs = _outer_products(model, params, reading)
        return model.pullback(params, reading.gradient) if pairs is None else tuple(pair.matrix for pair in pairs)

    @property
    def _is_plain(self) -> bool:
        return type(self).gradients is DescentRule.gradients

    @property
    def rotates(self) -> bool:
        return self._is_plain

    def __call__(self, model: Model, params: Params, reading: Reading, step_size: Number, ridge: Number) -> Params:
        gain, decay = self.multipliers
        keep, eta = 1 - decay * step_size * ridge, gain * step_size
        return tuple(keep * p - eta * g for p, g in zip(params, self.gradients(model, params, reading), strict=True))

    def direction(self, model: Model, params: Params, reading: Reading, ridge: Number) -> Params:
        """The step divided by minus the step size: what a rule with memory accumulates."""
        gain, decay = self.multipliers
        gradients = self.gradients(model, params, reading)
        return tuple(gain * g + decay * ridge * p for p, g in zip(params, gradients, strict=True))

    def squared_norm(
        self, before: Number, model: Model, params: Params, reading: Reading, step_size: Number, ridge: Number
    ) -> Number | None:
        pairs, entry = _outer_products(model, params, reading), reading.entry
        if pairs is None or entry is None or not self._is_plain:
            return None
        gain, decay = self.multipliers
        keep, eta = 1 - decay * step_size * ridge, gain * step_size
        # ||keep p - eta g||^2 term by term; the model is linear in each p, so <p, g> = <A, G> for all of them.
        inner = len(pairs) * entry.slope * entry.value
        return keep**2 * before - 2 * keep * eta * inner + eta**2 * sum(pair.square for pair in pairs)


def _outer_products(model: Model, params: Params, reading: Reading) -> tuple[Outer, ...] | None:
    """The gradients as outer products, if the reading is of a single entry and the model supports that."""
    entry = reading.entry
    return None if entry is None else model.entry_pullback(params, entry.row, entry.column, entry.slope)


class GradientStep(DescentRule):
    """``theta <- (1 - decay * step_size * ridge) theta - step_size * pullback(theta, G)``, with decay 2 by default.

    Parameters
    ----------
    decay
        The factor of the ridge in the update.

    >>> float(GradientStep().decay)
    2.0
    """

    decay: Leaf = errors.nonnegative(default=2.0)

    @property
    def multipliers(self) -> tuple[Any, Any]:
        return 1.0, self.decay


CONVENTIONS = {"weight_decay": (2.0, 1.0), "main_text": (1.0, 2.0), "appendix": (1.0, 1.0)}
"""Interpretations of the update of Wang 2023: multipliers of the gradient and of the ridge."""


class RidgeStep(DescentRule):
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

    convention: str = errors.field(check=errors.choice, options=CONVENTIONS, static=True, default="weight_decay")

    @property
    def multipliers(self) -> tuple[Any, Any]:
        return CONVENTIONS[self.convention]


class Preconditioned(DescentRule):
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
    multipliers: ClassVar = (1.0, 2.0)

    def __init__(self, damping: float | str = 0.0):
        self.adapts = isinstance(damping, str) and bool(errors.choice("damping", damping, ("residual",)))
        self.damping = errors.number("damping", 1.0 if self.adapts else damping, least=0)

    def arguments(self) -> Mapping[str, Any]:
        return {"damping": "residual" if self.adapts else self.damping}

    @property
    def rotates(self) -> bool:
        return True

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        model.partners(tuple(np.zeros(s) for s in model.shapes(shape)))

    def gradients(self, model: Model, params: Params, reading: Reading) -> Params:
        damping = self.damping * jnp.sqrt(reading.residual_square) if self.adapts else self.damping

        def solved(gradient: Array, partner: Array) -> Array:
            gram = partner.T @ partner
            # At rounding level the Gram matrix of superfluous columns is singular, and the step would be noise.
            floor = jnp.finfo(gram.dtype).eps * jnp.trace(gram)
            gram = gram + (damping + floor) * jnp.eye(len(gram))
            return jnp.linalg.solve(gram, gradient.T).T

        return tuple(map(solved, model.pullback(params, reading.gradient), model.partners(params)))


# --- with memory ------------------------------------------------------------------------------------------------------------


def _memoryless(name: str, value: Any) -> UpdateRule | None:
    if value is None or (isinstance(value, UpdateRule) and hasattr(value, "direction")):
        return value
    raise GyrostatError(
        f"{name} must be a rule without memory that says its direction (GradientStep, RidgeStep, Preconditioned, or your own "
        f"DescentRule); got {errors.shown(value)}."
    )


class AccumulatingRule(UpdateRule):
    """``theta <- theta + step_size * u_t``, where the updates u_t are made of the directions of all steps so far.

    A subclass defines :meth:`init` and :meth:`transform`, which is ``update`` of a transformation of optax.
    """

    of: UpdateRule | None = eqx.field(kw_only=True, default=None, converter=lambda x: _memoryless("of", x))

    @property
    def accumulated(self) -> Any:
        """The rule whose directions are accumulated."""
        return GradientStep() if self.of is None else self.of

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        self.accumulated.check(model, shape)

    @abc.abstractmethod
    def transform(self, directions: Params, memory: Any, params: Params) -> tuple[Params, Any]:
        """The update of each parameter, which is added after multiplication by the step size; and the new memory."""

    def update(
        self, memory: Any, model: Model, params: Params, reading: Reading, step_size: Number, ridge: Number
    ) -> tuple[Params, Any]:
        directions = self.accumulated.direction(model, params, reading, ridge)
        updates, memory = self.transform(directions, memory, params)
        return tuple(p + step_size * u for p, u in zip(params, updates, strict=True)), memory


def _share(name: str, value: Any) -> Any:
    """A number in [0, 1)."""
    x = errors.number(name, value, least=0)
    if not x < 1:
        raise GyrostatError(f"{name} must be below 1, or nothing is ever forgotten; got {value!r}.")
    return x


class Momentum(AccumulatingRule):
    """Heavy ball: ``m <- beta m + g`` and ``theta <- theta - step_size m``, from m = 0 (Polyak 1964).

    This is ``torch.optim.SGD(momentum=beta)`` and ``optax.sgd(momentum=beta)``. A constant gradient is followed with the
    effective step ``step_size / (1 - beta)``.

    Parameters
    ----------
    beta
        The share of the memory that a step keeps, in [0, 1).
    of
        The rule without memory whose directions are accumulated; by default the rule of the algorithm (the gradient for
        HeteroSGD, the preconditioned gradient for ScaledGD).

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(10, law=gs.TwoPoint(spread=8.0)), gs.Identity())
    >>> result = gs.run(gs.HeteroSGD(0.01, rule=gs.rules.Momentum(0.8)), problem, num_steps=200, seeds=8)
    >>> bool(result.spurious.isel(step=-1).median() < 0.1 < 0.9 < result.signal.isel(step=-1).median())
    True
    """

    beta: Leaf = errors.field(check=_share, default=0.9)
    looks_ahead: ClassVar[bool] = False

    @property
    def rotates(self) -> bool:
        return self.accumulated.rotates

    def init(self, model: Model, params: Params) -> Params:
        return tuple(jnp.zeros_like(p) for p in params)

    def transform(self, directions: Params, memory: Params, params: Params) -> tuple[Params, Params]:
        memory = tuple(self.beta * m + g for m, g in zip(memory, directions, strict=True))
        if self.looks_ahead:
            return tuple(-(g + self.beta * m) for m, g in zip(memory, directions, strict=True)), memory
        return tuple(-m for m in memory), memory


class Nesterov(Momentum):
    """Momentum that looks ahead: ``m <- beta m + g`` and ``theta <- theta - step_size (g + beta m)``, from m = 0.

    This is ``torch.optim.SGD(momentum=beta, nesterov=True)`` and ``optax.sgd(momentum=beta, nesterov=True)``.

    Parameters
    ----------
    beta
        The share of the memory that a step keeps, in [0, 1).
    of
        The rule without memory whose directions are accumulated; by default the rule of the algorithm.

    >>> Nesterov(0.95).beta.item()
    0.95
    """

    looks_ahead: ClassVar[bool] = True


class AdamMemory(NamedTuple):
    """The number of steps, and the running means of the directions and of their squares."""

    steps: Number
    first: Params
    second: Params


class Adam(AccumulatingRule):
    """``theta <- theta - step_size * mean / (sqrt(square) + epsilon)``, entry by entry (Kingma and Ba 2015).

    ``mean`` and ``square`` are running means of the directions and of their squares, divided by ``1 - beta1^t`` and
    ``1 - beta2^t`` because they begin at zero. The defaults are those of ``torch.optim.Adam`` and ``optax.adam``. The step
    of an entry is about ``step_size``, however small its gradient is.

    Parameters
    ----------
    beta1, beta2
        The shares of the two running means that a step keeps, in [0, 1).
    epsilon
        Added to the root, so that entries without a gradient stay where they are.
    of
        The rule without memory whose directions are accumulated; by default the rule of the algorithm.

    >>> Adam(beta2=0.99).beta2.item()
    0.99
    """

    beta1: Leaf = errors.field(check=_share, default=0.9)
    beta2: Leaf = errors.field(check=_share, default=0.999)
    epsilon: Leaf = errors.nonnegative(default=1e-8)

    def init(self, model: Model, params: Params) -> AdamMemory:
        zeros = tuple(jnp.zeros_like(p) for p in params)
        return AdamMemory(jnp.zeros((), dtype=float), zeros, zeros)

    def transform(self, directions: Params, memory: AdamMemory, params: Params) -> tuple[Params, AdamMemory]:
        b1, b2, t = self.beta1, self.beta2, memory.steps + 1
        first = tuple(b1 * m + (1 - b1) * g for m, g in zip(memory.first, directions, strict=True))
        second = tuple(b2 * v + (1 - b2) * g * g for v, g in zip(memory.second, directions, strict=True))
        mean_scale, square_scale = 1 / (1 - b1**t), 1 / (1 - b2**t)
        # optax rounds these products in another order, which over-parameterised factors multiply tenfold in six steps.
        updates = tuple(
            -mean_scale * m / (jnp.sqrt(square_scale * v) + self.epsilon) for m, v in zip(first, second, strict=True)
        )
        return updates, AdamMemory(t, first, second)


TRIAL_STEPS = 12
"""An optax transformation is tried for this many steps, which cover a period of those that look ahead and come back."""


class Optax(AccumulatingRule):
    """Any gradient transformation of optax: ``theta <- theta + step_size * update``.

    ``rule=transformation`` means ``rule=Optax(transformation)``. The update that the transformation makes is multiplied by the
    step size of the algorithm and added. So use a step size of 1 with a transformation that has a learning rate:
    ``gs.HeteroSGD(1.0, rule=optax.adam(1e-3))``. ``gs.HeteroSGD(1e-3, rule=optax.adam(1.0))`` makes the same steps, and a grid
    over its step size compiles once if all settings share one transformation. For a grid over other parameters of the
    transformation, give it by name; the grid then compiles once:
    ``gs.rules.Optax("adam", {"learning_rate": 1.0, "b1": beta})``.

    Parameters
    ----------
    transformation
        A ``GradientTransformation``; or a function that makes one (or its name in optax), called with ``arguments``.
    arguments
        The arguments of that function by name. Numbers may differ between the settings of a grid without compiling again.
    rotates
        Whether the transformation commutes with rotations of the parameters (sums and multiples of gradients do, entrywise
        roots do not). If it does, a run without measurement noise can be reduced to a small subspace.
    of
        The rule without memory whose directions the transformation receives as gradients; by default the rule of the algorithm.

    >>> import optax
    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(10, law=gs.TwoPoint(spread=8.0)), gs.Identity())
    >>> chain = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.05))
    >>> gs.run(gs.HeteroSGD(1.0, rule=chain), problem, num_steps=20).sizes["step"]
    21
    """

    transformation: Any = eqx.field(static=True)
    numbers: dict[str, Leaf]
    options: tuple[tuple[str, Any], ...] = eqx.field(static=True)
    is_rotating: bool = eqx.field(static=True)

    def __init__(
        self,
        transformation: Any,
        arguments: Mapping[str, Any] | None = None,
        *,
        rotates: bool = False,
        of: UpdateRule | None = None,
    ):
        if isinstance(transformation, str):
            import optax

            known = [name for name in dir(optax) if callable(getattr(optax, name)) and name[0].islower()]
            transformation = getattr(optax, errors.choice("transformation", transformation, known))
        is_finished = _is_transformation(transformation)
        if not (is_finished or callable(transformation)):
            raise GyrostatError(
                "transformation must be an optax transformation such as optax.adam(1e-3); got "
                f"{errors.shown(transformation)}."
            )
        if is_finished and arguments is not None:
            raise GyrostatError(
                "arguments are for a function that makes a transformation; got a finished one: leave arguments out, or "
                "write the function or its name, as in Optax('adam', {'learning_rate': 1.0})."
            )
        if not (arguments is None or isinstance(arguments, Mapping)):
            raise GyrostatError(f"arguments must be a dictionary of arguments by name; got {errors.shown(arguments)}.")
        arguments = dict(arguments or {})
        numeric = {k for k, x in arguments.items() if isinstance(x, int | float) and not isinstance(x, bool)}
        self.transformation = transformation
        self.numbers = {k: errors.number(k, arguments[k]) for k in sorted(numeric)}
        self.options = tuple((k, x) for k, x in arguments.items() if k not in numeric)
        self.is_rotating = rotates
        self.of = _memoryless("of", of)
        self._try()

    @property
    def rotates(self) -> bool:
        return self.is_rotating and self.accumulated.rotates

    def arguments(self) -> Mapping[str, Any]:
        import optax

        arguments = {**{name: x.item() for name, x in self.numbers.items()}, **dict(self.options)}
        name = getattr(self.transformation, "__name__", "")
        return {
            "transformation": name if getattr(optax, name, None) is self.transformation else self.transformation,
            "arguments": arguments or None,
            "rotates": self.is_rotating,
            "of": self.of,
        }

    @property
    def made(self) -> Any:
        """The transformation, made of its arguments if it was given as a function."""
        if not callable(self.transformation):
            return self.transformation
        return self.transformation(**self.numbers, **dict(self.options))

    def init(self, model: Model, params: Params) -> Any:
        # As arrays, because a loop needs a memory of fixed types.
        return jax.tree.map(jnp.asarray, self.made.init(params))

    def transform(self, directions: Params, memory: Any, params: Params) -> tuple[Params, Any]:
        updates, after = self.made.update(directions, memory, params)
        return updates, jax.tree.map(lambda new, old: jnp.asarray(new, dtype=old.dtype), after, memory)

    def _try(self) -> None:
        """Refuse a transformation that fails, or that moves up the gradient, on two parameters of one number each."""
        params = (jnp.ones((1, 1)), jnp.ones((1, 1)))
        gradients = tuple(1e6 * p for p in params)  # so large that noise which a transformation adds decides nothing
        ups = []
        try:
            memory = self.init(None, params)  # type: ignore[arg-type]
            for _ in range(TRIAL_STEPS):
                updates, memory = self.transform(gradients, memory, params)
                ups.append(sum(float(jnp.sum(u)) for u in updates) > 0)
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            raise GyrostatError(
                "transformation must make updates from gradients and parameters alone; on a trial it raised "
                f"{type(error).__name__} ({reason}): check its arguments, and leave out line searches, which need the loss."
            ) from None
        if any(ups) and not all(ups):
            raise GyrostatError(
                "transformation moves up a constant gradient in some steps and down in others, so it needs gradients at other "
                "points too, as sharpness-aware minimisation (SAM) does: write a rule that asks for them, reading.at(params)."
            )
        if all(ups):
            raise GyrostatError(
                "transformation moves up the gradient, not down: its updates are added to the parameters, so end it with "
                "optax.scale(-1.0), as optax.adam does with its learning rate."
            )


def _is_transformation(value: Any) -> bool:
    return hasattr(value, "init") and hasattr(value, "update") and not isinstance(value, UpdateRule | type)


def as_rule(value: Any) -> UpdateRule:
    """An update rule as it is; a transformation of optax as :class:`Optax`."""
    if _is_transformation(value):
        return Optax(value)
    wanted = "an UpdateRule such as Momentum(0.9) or Adam(), or a transformation such as optax.adam(1e-3)"
    return errors.instance("rule", value, UpdateRule, wanted)


def with_memory_of(base: UpdateRule, rule: Any) -> UpdateRule:
    """The rule of a named algorithm: ``base``; or ``rule``, which accumulates the directions of ``base`` unless it says others.

    >>> with_memory_of(GradientStep(1.0), Momentum(0.9)).of.decay.item()
    1.0
    """
    if rule is None:
        return base
    rule = as_rule(rule)
    if isinstance(rule, AccumulatingRule) and rule.of is None and base != GradientStep():
        return eqx.tree_at(lambda r: r.of, rule, base, is_leaf=lambda x: x is None)
    return rule
