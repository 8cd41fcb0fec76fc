"""`Algorithm`: the composition of a model, a start, batches, a schedule, an update rule and events."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from typing import Any

import equinox as eqx

from gyrostat import errors
from gyrostat.algorithms.batches import Batches
from gyrostat.algorithms.events import Event
from gyrostat.algorithms.initialisation import Start
from gyrostat.algorithms.schedules import Constant, Schedule, from_function
from gyrostat.algorithms.update_rules import GradientStep, UpdateRule
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.models import Model, Symmetric


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
            errors.instance(name, getattr(self, name), kind)

    def arguments(self) -> Mapping[str, Any] | None:
        """The arguments of a named algorithm, read off its parts: its step size, the scale of its start, ..."""
        if type(self) is Algorithm:
            return super().arguments()
        flat = isinstance(self.schedule, Constant)
        known: dict[str, list[Any]] = {  # what each argument may have been; the first that fits is taken
            "step_size": [*([self.schedule.step_size] if flat else []), self.schedule],  # type: ignore[attr-defined]
            "ridge": [self.schedule.ridge if flat else None, None],  # type: ignore[attr-defined]
            "init_scale": [getattr(self.start, "scale", None)],
            "order": [getattr(self.batches, "order", None)],
            "amplify": [getattr(self.batches, "amplify", None)],
            "pooled": [self.batches.mixes],
            "width": [getattr(self.model, "width", None), None],
            "symmetric": [isinstance(self.model, Symmetric), False],
            "damping": ["residual" if getattr(self.rule, "adapts", False) else getattr(self.rule, "damping", None)],
            "convention": [getattr(self.rule, "convention", None)],
            "model": [None, self.model],
            "start": [None, getattr(self.start, "scale", None), self.start],
            "batches": [self.batches],
            "rule": [None, *([_without_of(self.rule)] if getattr(self.rule, "of", None) else []), self.rule],
            "events": [self.events],
        }
        names = [name for name in inspect.signature(type(self).__init__).parameters if name != "self"]
        if any(name not in known for name in names):
            return super().arguments()
        for values in itertools.product(*(known[name] for name in names)):
            given = dict(zip(names, values, strict=True))
            try:
                if bool(type(self)(**given) == self):
                    return given
            except Exception:  # arguments that exclude each other, such as a model and its width
                continue
        return None


def _without_of(rule: Any) -> UpdateRule:
    """A rule with memory before an algorithm gave it its own directions."""
    return eqx.tree_at(lambda r: r.of, rule, None)
