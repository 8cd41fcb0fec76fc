"""`Algorithm`: the composition of a model, a start, batches, a schedule, an update rule and events."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from gyrostat import errors
from gyrostat.algorithms.batches import Batches
from gyrostat.algorithms.events import Event
from gyrostat.algorithms.initialisation import Start
from gyrostat.algorithms.schedules import Schedule, from_function
from gyrostat.algorithms.update_rules import GradientStep, UpdateRule
from gyrostat.errors import GyrostatError
from gyrostat.models import Model


def _event_tuple(events: Any) -> tuple[Event, ...]:
    if not isinstance(events, tuple | list) or not all(isinstance(event, Event) for event in events):
        raise GyrostatError(f"events must be a list of Event objects; got {errors.shown(events)}.")
    return tuple(events)


class Algorithm(eqx.Module):
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
        The step size and the ridge of every step: a :class:`Schedule`, or a function of the step number.
    rule
        How a gradient moves the parameters: :class:`GradientStep` by default; :class:`Momentum`, :class:`Adam`,
        :class:`Optax`, ...
    events
        Changes of the parameters after the step of the rule.

    >>> import gyrostat as gs
    >>> Algorithm(gs.Symmetric(), gs.ScaledIdentity(1e-3), gs.Pooled(), gs.Constant(0.05)).batches.mixes
    True
    """

    model: Model
    start: Start
    batches: Batches
    schedule: Schedule = eqx.field(converter=from_function)
    rule: UpdateRule = eqx.field(default_factory=GradientStep)
    events: tuple[Event, ...] = eqx.field(converter=_event_tuple, default=())

    def __check_init__(self) -> None:
        kinds = {"model": Model, "start": Start, "batches": Batches, "schedule": Schedule, "rule": UpdateRule}
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise GyrostatError(f"{name} must be a {kind.__name__}; got {errors.shown(getattr(self, name))}.")
