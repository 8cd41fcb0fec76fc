"""The algorithms by their names: thin compositions of the nouns."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from gyrostat import errors
from gyrostat.batches import Batches, Full, OneEnvironment, Pooled
from gyrostat.errors import GyrostatError
from gyrostat.models import Model, Symmetric
from gyrostat.schedules import Constant, Event, GradientStep, Rule, Schedule, Shrinkage
from gyrostat.starts import ScaledIdentity, Start


class Algorithm(eqx.Module):
    """A model, where it starts, which batches it sees, how a gradient moves it, on which schedule, with which events.

    >>> Algorithm(Symmetric(), ScaledIdentity(1e-3), Pooled(), Constant(0.05)).batches.mixes
    True
    """

    model: Model
    start: Start
    batches: Batches
    schedule: Schedule
    rule: Rule = eqx.field(default_factory=GradientStep)
    events: tuple[Event, ...] = ()

    def __check_init__(self) -> None:
        kinds = (("model", Model), ("start", Start), ("batches", Batches), ("schedule", Schedule), ("rule", Rule))
        for name, kind in kinds:
            if not isinstance(getattr(self, name), kind):
                raise GyrostatError(f"{name} must be a {kind.__name__}; got {errors.shown(getattr(self, name))}.")


def _parts(step_size: Any, init_scale: float, model: Model | None, batches: Batches) -> dict[str, Any]:
    schedule = step_size if isinstance(step_size, Schedule) else Constant(step_size)
    return {
        "model": Symmetric() if model is None else model,
        "start": ScaledIdentity(init_scale),
        "batches": batches,
        "schedule": schedule,
    }


class HeteroSGD(Algorithm):
    """SGD whose every batch comes from one environment (Xu 2024, Algorithm 3).

    ``step_size`` is a number or a :class:`Schedule`; ``init_scale`` is the paper's alpha.

    >>> HeteroSGD(0.05).batches.order
    'iid'
    """

    def __init__(self, step_size: Any, *, init_scale: float = 1e-3, order: str = "iid", model: Model | None = None):
        super().__init__(**_parts(step_size, init_scale, model, OneEnvironment(order)))


class PooledSGD(Algorithm):
    """SGD whose every sample draws an environment of its own (Xu 2024, eq. 4 and 116)."""

    def __init__(self, step_size: Any, *, init_scale: float = 1e-3, model: Model | None = None):
        super().__init__(**_parts(step_size, init_scale, model, Pooled()))


class PooledGD(Algorithm):
    """Gradient descent on the data of all environments (Xu 2024, Theorem 6)."""

    def __init__(self, step_size: Any, *, init_scale: float = 1e-3, model: Model | None = None):
        super().__init__(**_parts(step_size, init_scale, model, Full()))


class QuadraticNetwork(Algorithm):
    """Algorithm 4 of Xu 2024: a two-layer network with quadratic activation, for :class:`RankOne` measurements.

    The truncation is an option of the measurements; ``pooled=True`` mixes environments within each batch.
    """

    def __init__(self, step_size: Any, *, init_scale: float = 1e-2, order: str = "iid", pooled: bool = False):
        batches = Pooled() if pooled else OneEnvironment(order)
        super().__init__(**_parts(step_size, init_scale, None, batches), events=(Shrinkage(),))
