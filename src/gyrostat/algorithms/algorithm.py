"""`Algorithm`: the composition of a model, a start, batches, a schedule, an update rule and events."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from gyrostat import errors
from gyrostat.algorithms.batches import Batches
from gyrostat.algorithms.events import Event
from gyrostat.algorithms.schedules import Schedule, as_schedule
from gyrostat.algorithms.starts import Start
from gyrostat.algorithms.update_rules import GradientStep, UpdateRule, as_rule
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.models import Model


def _event_tuple(events: Any) -> tuple[Event, ...]:
    if not isinstance(events, tuple | list):
        raise GyrostatError(f"events must be a list of Event objects; got {errors.shown(events)}.")
    return tuple(errors.instance("events", event, Event, "a list of Event objects") for event in events)


class Algorithm(ReadableModule):
    """A model, its start, the batches of a step, the schedule, the update rule and the events after a step.

    Parameters
    ----------
    model
        How parameters make a product.
    start
        The parameters before the first step.
    batches
        Which environments a step sees.
    schedule
        The step size and the ridge of every step: a number (the step size), a :class:`Schedule`, or a function of the step
        number.
    rule
        How a gradient moves the parameters: :class:`GradientStep` by default; :class:`Momentum`, :class:`Adam`, a
        transformation of optax, ...
    events
        Changes of the parameters after the step of the rule.

    >>> import gyrostat as gs
    >>> Algorithm(gs.Symmetric(), gs.starts.ScaledIdentity(1e-3), gs.batches.Pooled(), 0.05).batches.mixes
    True
    """

    model: Model
    start: Start
    batches: Batches
    schedule: Schedule = errors.field(check=as_schedule)
    rule: UpdateRule = eqx.field(converter=as_rule, default=GradientStep())
    events: tuple[Event, ...] = eqx.field(converter=_event_tuple, default=())

    def __check_init__(self) -> None:
        for name, kind in {"model": Model, "start": Start, "batches": Batches}.items():
            errors.instance(name, getattr(self, name), kind)
