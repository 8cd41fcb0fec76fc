"""Update rules with memory: momentum, Nesterov's momentum, Adam, and any transformation of optax.

They accumulate the directions of a rule without memory: the gradient (:class:`GradientStep`), unless ``of`` names another.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gyrostat import errors
from gyrostat.algorithms.update_rules import GradientStep, UpdateRule
from gyrostat.errors import GyrostatError
from gyrostat.measurements import Reading
from gyrostat.models import Model
from gyrostat.typing import Leaf, Params


def _share(name: str) -> Any:
    """A converter for a number in [0, 1)."""

    def convert(value: Any) -> Any:
        x = errors.number(name, value, least=0)
        if not x < 1:
            raise GyrostatError(f"{name} must be below 1, or nothing is ever forgotten; got {value!r}.")
        return x

    return convert


def _memoryless(value: Any) -> UpdateRule | None:
    if value is None:
        return None
    if not isinstance(value, UpdateRule) or type(value).direction is UpdateRule.direction:
        raise GyrostatError(
            "of must be a rule without memory that says its direction (GradientStep, RidgeStep, Preconditioned, or your "
            f"own with a method direction); got {errors.shown(value)}."
        )
    return value


class AccumulatingRule(UpdateRule):
    """``theta <- theta - step_size * s_t``, where s_t is made of the directions of all steps so far.

    A subclass defines :meth:`init` and :meth:`accumulate`.
    """

    of: UpdateRule | None = eqx.field(kw_only=True, default=None, converter=_memoryless)

    @property
    def accumulated(self) -> UpdateRule:
        """The rule whose directions are accumulated."""
        return GradientStep() if self.of is None else self.of

    def check(self, model: Model, shape: tuple[int, ...]) -> None:
        self.accumulated.check(model, shape)

    @abc.abstractmethod
    def accumulate(self, memory: Any, directions: Params, params: Params) -> tuple[Params, Any]:
        """The step of each parameter, up to the factor ``-step_size``, and the new memory."""

    def update(
        self,
        memory: Any,
        model: Model,
        params: Params,
        reading: Reading,
        step_size: Float[Array, ""],
        ridge: Float[Array, ""],
    ) -> tuple[Params, Any]:
        directions = self.accumulated.direction(model, params, reading, ridge)
        steps, memory = self.accumulate(memory, directions, params)
        return tuple(p - step_size * s for p, s in zip(params, steps, strict=True)), memory


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
    >>> found = gs.run(gs.HeteroSGD(0.01, rule=gs.Momentum(0.8)), problem, num_steps=200, seeds=8)
    >>> bool(found.spurious.isel(step=-1).median() < 0.1 < 0.9 < found.signal.isel(step=-1).median())
    True
    """

    beta: Leaf = eqx.field(converter=_share("beta"), default=0.9)

    @property
    def rotates(self) -> bool:
        return self.accumulated.rotates

    def init(self, model: Model, params: Params) -> Params:
        return tuple(jnp.zeros_like(p) for p in params)

    def accumulate(self, memory: Params, directions: Params, params: Params) -> tuple[Params, Params]:
        memory = tuple(self.beta * m + g for m, g in zip(memory, directions, strict=True))
        return memory, memory


class Nesterov(AccumulatingRule):
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

    beta: Leaf = eqx.field(converter=_share("beta"), default=0.9)

    @property
    def rotates(self) -> bool:
        return self.accumulated.rotates

    def init(self, model: Model, params: Params) -> Params:
        return tuple(jnp.zeros_like(p) for p in params)

    def accumulate(self, memory: Params, directions: Params, params: Params) -> tuple[Params, Params]:
        memory = tuple(self.beta * m + g for m, g in zip(memory, directions, strict=True))
        return tuple(g + self.beta * m for m, g in zip(memory, directions, strict=True)), memory


class AdamMemory(NamedTuple):
    """The number of steps, and the running means of the directions and of their squares."""

    steps: Float[Array, ""]
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

    beta1: Leaf = eqx.field(converter=_share("beta1"), default=0.9)
    beta2: Leaf = eqx.field(converter=_share("beta2"), default=0.999)
    epsilon: Leaf = eqx.field(converter=lambda x: errors.number("epsilon", x, least=0), default=1e-8)

    def init(self, model: Model, params: Params) -> AdamMemory:
        zeros = tuple(jnp.zeros_like(p) for p in params)
        return AdamMemory(jnp.zeros((), dtype=float), zeros, zeros)

    def accumulate(self, memory: AdamMemory, directions: Params, params: Params) -> tuple[Params, AdamMemory]:
        b1, b2, t = self.beta1, self.beta2, memory.steps + 1
        first = tuple(b1 * m + (1 - b1) * g for m, g in zip(memory.first, directions, strict=True))
        second = tuple(b2 * v + (1 - b2) * g * g for v, g in zip(memory.second, directions, strict=True))
        mean_scale, square_scale = 1 / (1 - b1**t), 1 / (1 - b2**t)
        steps = tuple(
            mean_scale * m / (jnp.sqrt(square_scale * v) + self.epsilon) for m, v in zip(first, second, strict=True)
        )
        return steps, AdamMemory(t, first, second)


TRIAL_STEPS = 12
"""An optax transformation is tried for this many steps, which cover a period of those that look ahead and come back."""


class Optax(AccumulatingRule):
    """Any gradient transformation of optax: ``theta <- theta + step_size * update``.

    The result of the transformation is multiplied by the step size of the algorithm. So use a step size of 1 with a
    transformation that has a learning rate: ``gs.HeteroSGD(1.0, rule=gs.Optax(optax.adam(1e-3)))``. ``gs.HeteroSGD(1e-3,
    rule=gs.Optax(optax.adam(1.0)))`` makes the same steps, and a grid over its step size compiles once if all settings share
    one rule. For a grid over other parameters of the transformation, give it by name; the grid then compiles once:
    ``gs.Optax("adam", {"learning_rate": 1.0, "b1": beta})``.

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
    >>> gs.run(gs.HeteroSGD(1.0, rule=gs.Optax(chain)), problem, num_steps=20).sizes["step"]
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
        self.transformation, is_made = _transformation(transformation)
        if is_made and arguments is not None:
            raise GyrostatError(
                "arguments are for a function that makes a transformation; got a finished one: leave arguments out, or "
                "write the function or its name, as in Optax('adam', {'learning_rate': 1.0})."
            )
        if not (arguments is None or isinstance(arguments, Mapping)):
            raise GyrostatError(f"arguments must be a dictionary of arguments by name; got {errors.shown(arguments)}.")
        given = {} if arguments is None else dict(arguments)
        numeric = {k for k, x in given.items() if isinstance(x, int | float) and not isinstance(x, bool)}
        self.numbers = {k: errors.number(k, given[k]) for k in sorted(numeric)}
        self.options = tuple((k, x) for k, x in given.items() if k not in numeric)
        self.is_rotating = rotates
        self.of = _memoryless(of)
        self._try()

    @property
    def rotates(self) -> bool:
        return self.is_rotating and self.accumulated.rotates

    def arguments(self) -> Mapping[str, Any]:
        import optax

        given = {**{name: x.item() for name, x in self.numbers.items()}, **dict(self.options)}
        name = getattr(self.transformation, "__name__", "")
        return {
            "transformation": name if getattr(optax, name, None) is self.transformation else self.transformation,
            "arguments": given or None,
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

    def accumulate(self, memory: Any, directions: Params, params: Params) -> tuple[Params, Any]:
        updates, after = self.made.update(directions, memory, params)
        after = jax.tree.map(lambda new, old: jnp.asarray(new, dtype=old.dtype), after, memory)
        return tuple(-u for u in updates), after

    def _try(self) -> None:
        """Refuse a transformation that fails, or that moves up the gradient, on two parameters of one number each."""
        params = (jnp.ones((1, 1)), jnp.ones((1, 1)))
        gradients = tuple(1e6 * p for p in params)  # so large that noise which a transformation adds decides nothing
        ups = []
        try:
            memory = self.init(None, params)  # type: ignore[arg-type]
            for _ in range(TRIAL_STEPS):
                steps, memory = self.accumulate(memory, gradients, params)
                ups.append(sum(float(jnp.sum(s)) for s in steps) < 0)
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            raise GyrostatError(
                f"transformation must make updates from gradients and parameters alone; on a trial it raised "
                f"{type(error).__name__} ({reason}): check its arguments, and leave out line searches, which need the loss."
            ) from None
        if any(ups) and not all(ups):
            raise GyrostatError(
                "transformation moves up a constant gradient in some steps and down in others, so it needs gradients at other "
                "points too, as sharpness-aware minimisation (SAM) does: a rule gets those at its parameters only."
            )
        if all(ups):
            raise GyrostatError(
                "transformation moves up the gradient, not down: its updates are added to the parameters, so end it with "
                "optax.scale(-1.0), as optax.adam does with its learning rate."
            )


def _transformation(given: Any) -> tuple[Any, bool]:
    """A transformation, or the function that makes one; and whether it is the former."""
    if isinstance(given, str):
        import optax

        known = [name for name in dir(optax) if callable(getattr(optax, name)) and name[0].islower()]
        return getattr(optax, errors.choice("transformation", given, known)), False
    if hasattr(given, "init") and hasattr(given, "update"):
        return given, True
    if callable(given):
        return given, False
    raise GyrostatError(
        f"transformation must be an optax transformation such as optax.adam(1e-3); got {errors.shown(given)}."
    )


def with_memory_of(own: UpdateRule, rule: UpdateRule | None) -> UpdateRule:
    """The rule of a named algorithm: its own; or ``rule``, which accumulates the algorithm's own directions by default.

    >>> with_memory_of(GradientStep(1.0), Momentum(0.9)).of.decay.item()
    1.0
    """
    if rule is None:
        return own
    if not isinstance(rule, UpdateRule | type) and hasattr(rule, "init") and hasattr(rule, "update"):
        raise GyrostatError(
            "rule must be an UpdateRule; got an optax transformation: write rule=gs.Optax(...) around it."
        )
    errors.instance("rule", rule, UpdateRule, "an UpdateRule such as Momentum(0.9) or Adam()")
    if isinstance(rule, AccumulatingRule) and rule.of is None:
        return eqx.tree_at(lambda r: r.of, rule, own, is_leaf=lambda x: x is None)
    return rule
