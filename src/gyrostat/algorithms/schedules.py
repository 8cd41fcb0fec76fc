"""Schedules: the step size and the ridge at every step of a run (Wang 2023, section 4).

:class:`Constant`, :class:`WarmUp`, :class:`Annealing`, :class:`Periodic`, and :class:`Piecewise`, which puts schedules in
sequence. A function of the step is a schedule, too. Derive one of your own from :class:`Schedule`.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.typing import Leaf

__all__ = ["Annealing", "Constant", "Periodic", "Piecewise", "Schedule", "WarmUp"]


def __dir__() -> list[str]:
    return __all__


StepSizeAndRidge: TypeAlias = tuple[Float[Array, ""], Float[Array, ""]]


class Schedule(ReadableModule):
    """The step size and the ridge as functions of the step number."""

    @abc.abstractmethod
    def __call__(self, step: Int[Array, ""]) -> StepSizeAndRidge:
        """``(step_size, ridge)`` of step number ``step``."""


class Constant(Schedule):
    """The same step size and ridge at every step.

    Parameters
    ----------
    step_size
        The step size.
    ridge
        The strength of the ridge.

    >>> [round(float(x), 6) for x in Constant(0.05)(0)]
    [0.05, 0.0]
    """

    step_size: Leaf = errors.positive()
    ridge: Leaf = errors.nonnegative(default=0.0)

    def __call__(self, step: Int[Array, ""]) -> StepSizeAndRidge:
        return jnp.asarray(self.step_size), jnp.asarray(self.ridge)


class FunctionOfStep(Schedule):
    """A schedule given as a function of the step number; every argument that takes a schedule takes such a function.

    Parameters
    ----------
    function
        Gives the step size, or the pair of step size and ridge, of a step. It is traced once with a JAX number, so write
        ``jnp.where(step < 100, a, b)`` where Python has ``if``.
    ridge
        The ridge at every step, if the function gives the step size alone.

    >>> schedule = FunctionOfStep(lambda t: 0.05 / (1 + t / 100))
    >>> [round(float(x), 6) for x in schedule(100)]
    [0.025, 0.0]
    """

    function: Callable[[Int[Array, ""]], Any] = eqx.field(static=True)
    ridge: Leaf = errors.nonnegative(default=0.0)

    def __check_init__(self) -> None:
        step = jax.ShapeDtypeStruct((), jnp.zeros((), dtype=int).dtype)
        try:
            jax.eval_shape(self, step)
            first = [float(x) for x in self(jnp.zeros((), dtype=int))]
        except GyrostatError:
            raise
        except Exception as error:
            raise GyrostatError(
                f"the schedule {_name(self.function)} cannot be traced ({type(error).__name__}): write it with jax.numpy, "
                "with jnp.where(step < 100, a, b) instead of if."
            ) from None
        if not (np.isfinite(first).all() and min(first) >= 0):
            raise GyrostatError(
                f"the schedule {_name(self.function)} must give finite numbers of at least 0; at step 0 it gives "
                f"{', '.join(f'{x:g}' for x in first)}."
            )

    def __call__(self, step: Int[Array, ""]) -> StepSizeAndRidge:
        value = self.function(jnp.asarray(step))
        pair = value if isinstance(value, tuple | list) else (value, self.ridge)
        numbers = [jnp.asarray(x, dtype=float) for x in pair]
        if len(numbers) != 2 or any(x.shape != () for x in numbers):
            raise GyrostatError(
                f"the schedule {_name(self.function)} must give a step size, or a pair of step size and ridge; "
                f"got {errors.shown(value)}."
            )
        return numbers[0], numbers[1]


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def as_schedule(name: str, value: Any, ridge: float = 0.0) -> Schedule:
    """The :class:`Schedule` that a number (the step size), a function of the step or a schedule stands for.

    >>> as_schedule("step_size", 0.05, ridge=0.1)
    Constant(0.05, ridge=0.1)
    """
    if isinstance(value, Schedule):
        return value
    if callable(value) and not isinstance(value, type):
        return FunctionOfStep(value, ridge)
    if isinstance(value, int | float | np.ndarray | np.generic | jax.Array) or name == "step_size":
        return Constant(value, ridge)
    return errors.instance(name, value, Schedule, "a step size, a Schedule such as Constant, or a function of the step")


def _step(name: str, value: Any) -> np.ndarray:
    """A number of steps, as an array: a grid over it compiles once."""
    return np.asarray(errors.integer(name, value))


def _pick(index: Int[Array, ""], options: Sequence[StepSizeAndRidge]) -> StepSizeAndRidge:
    """``options[index]`` for an index that is known only inside the compiled program."""
    eta, ridge = options[0]
    for k, (next_eta, next_ridge) in enumerate(options[1:], start=1):
        eta, ridge = jnp.where(index >= k, next_eta, eta), jnp.where(index >= k, next_ridge, ridge)
    return eta, ridge


class Piecewise(Schedule):
    """Pieces ``(start, stop, schedule)`` in sequence; the last one has no end (``stop`` None).

    A piece includes its start and excludes its stop. Every schedule is called with the step number of the run, not
    with the number of steps since its piece began.

    Parameters
    ----------
    pieces
        Triples of a first step, the step after the last (None for no end) and a schedule.

    >>> from gyrostat.algorithms import Constant
    >>> schedule = Piecewise([(0, 500, Constant(0.03, 0.1)), (500, None, Constant(0.25, 0.1))])
    >>> [round(float(schedule(t)[0]), 6) for t in (499, 500)]
    [0.03, 0.25]
    """

    starts: Leaf
    schedules: tuple[Schedule, ...]

    def __init__(self, pieces: Sequence[tuple[int, int | None, Schedule]]):
        if not isinstance(pieces, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 3 for p in pieces):
            raise GyrostatError(f"pieces must list (start, stop, schedule) triples; got {errors.shown(pieces)}.")
        starts = [errors.integer("start", p[0]) for p in pieces]
        stops = [errors.integer("stop", p[1]) if p[1] is not None else None for p in pieces]
        rises = all(a < b for a, b in itertools.pairwise(starts))
        if starts[:1] != [0] or stops != [*starts[1:], None] or not rises:
            raise GyrostatError(
                "pieces must begin at step 0, each where the one before stops, and the last with stop None; got "
                f"{errors.shown(list(zip(starts, stops, strict=True)))}."
            )
        self.starts = np.array(starts)
        self.schedules = tuple(as_schedule("schedule", p[2]) for p in pieces)

    def arguments(self) -> Mapping[str, Any]:
        starts = np.asarray(self.starts).tolist()
        return {"pieces": list(zip(starts, [*starts[1:], None], self.schedules, strict=True))}

    def __call__(self, step: Int[Array, ""]) -> StepSizeAndRidge:
        piece = jnp.sum(step >= jnp.asarray(self.starts)) - 1
        return _pick(piece, [schedule(step) for schedule in self.schedules])


class WarmUp(Schedule):
    """``then``, with a step size of at most ``step_size`` in the first ``num_steps`` steps.

    Large steps diverge from a random start but are stable later (Wang 2023, Figure 1).

    Parameters
    ----------
    num_steps
        The length of the warm-up.
    step_size
        The largest step size during it.
    then
        The schedule after the warm-up. During the warm-up it applies where its steps are smaller.

    >>> from gyrostat.algorithms import Constant
    >>> schedule = WarmUp(500, 0.03, then=Constant(0.2, 0.1))
    >>> [[round(float(x), 6) for x in schedule(t)] for t in (0, 500)]
    [[0.03, 0.1], [0.2, 0.1]]
    """

    num_steps: Leaf = errors.field(check=_step)
    step_size: Leaf = errors.positive()
    then: Schedule = errors.field(check=as_schedule)

    def __call__(self, step: Int[Array, ""]) -> StepSizeAndRidge:
        eta, ridge = self.then(step)
        return jnp.where(step < self.num_steps, jnp.minimum(self.step_size, eta), eta), ridge


class Annealing(Schedule):
    """``high`` before step ``at`` and ``low`` from then on: wait for a jump, then fit (Wang 2023, Figures 1 and 3).

    ``at`` is a traced number, so a grid over switching times compiles once.

    Parameters
    ----------
    high
        The schedule before step ``at``.
    low
        The schedule from step ``at`` on.
    at
        The step at which to change.

    >>> from gyrostat.algorithms import Constant
    >>> schedule = Annealing(Constant(0.2, 0.1), Constant(0.02, 0.001), at=2000)
    >>> [round(float(schedule(t)[1]), 6) for t in (1999, 2000)]
    [0.1, 0.001]
    """

    high: Schedule = errors.field(check=as_schedule)
    low: Schedule = errors.field(check=as_schedule)
    at: Leaf = errors.field(check=_step)

    def __call__(self, step: Int[Array, ""]) -> StepSizeAndRidge:
        return _pick((step >= self.at).astype(int), [self.high(step), self.low(step)])


class Periodic(Schedule):
    """Phases ``(length, schedule)`` repeated in a cycle that begins at step ``start`` (Wang 2023, Figure 4).

    Before ``start`` the first phase applies.

    Parameters
    ----------
    phases
        Pairs of a length and a schedule.
    start
        The step at which the first cycle begins.

    >>> from gyrostat.algorithms import Constant
    >>> schedule = Periodic([(1000, Constant(0.1, 0.001)), (1000, Constant(0.4, 0.1))])
    >>> [round(float(schedule(t)[0]), 6) for t in (0, 999, 1000, 2000)]
    [0.1, 0.1, 0.4, 0.1]
    """

    ends: Leaf
    start: Leaf
    schedules: tuple[Schedule, ...]

    def __init__(self, phases: Sequence[tuple[int, Schedule]], *, start: int = 0):
        are_pairs = isinstance(phases, list | tuple) and all(
            isinstance(p, list | tuple) and len(p) == 2 for p in phases
        )
        if not are_pairs or not phases:
            raise GyrostatError(f"phases must list (length, schedule) pairs, at least one; got {errors.shown(phases)}.")
        self.ends = np.cumsum([errors.integer("length", p[0], least=1) for p in phases])
        self.schedules = tuple(as_schedule("schedule", p[1]) for p in phases)
        self.start = _step("start", start)

    def arguments(self) -> Mapping[str, Any]:
        lengths = np.diff(np.asarray(self.ends), prepend=0).tolist()
        return {"phases": list(zip(lengths, self.schedules, strict=True)), "start": self.start}

    def phase(self, step: Int[Array, ""]) -> Int[Array, ""]:
        """The index of the phase at a step.

        >>> from gyrostat.algorithms import Constant
        >>> int(Periodic([(10, Constant(0.1)), (5, Constant(0.4))]).phase(12))
        1
        """
        ends = jnp.asarray(self.ends)
        within = jnp.maximum(jnp.asarray(step) - self.start, 0) % ends[-1]
        return jnp.sum(within >= ends)

    def __call__(self, step: Int[Array, ""]) -> StepSizeAndRidge:
        return _pick(self.phase(step), [schedule(step) for schedule in self.schedules])
