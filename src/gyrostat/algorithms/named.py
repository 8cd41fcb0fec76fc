"""The algorithms by their names: thin compositions of the nouns."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from gyrostat import errors
from gyrostat.algorithms.batches import Batches, Full, OneEnvironment, Pooled
from gyrostat.algorithms.initialisation import ImbalancedGaussian, ScaledIdentity, Start, SymmetricGaussian
from gyrostat.algorithms.layer_initialisation import FanInUniform
from gyrostat.algorithms.schedules import (
    Constant,
    Event,
    GradientStep,
    Preconditioned,
    RidgeStep,
    Rule,
    Schedule,
    Shrinkage,
)
from gyrostat.errors import GyrostatError
from gyrostat.models import Asymmetric, DeepLinear, Model, Symmetric


def _listed(events: Any) -> tuple[Event, ...]:
    if not isinstance(events, tuple | list) or not all(isinstance(event, Event) for event in events):
        raise GyrostatError(f"events must be a list of Event objects; got {errors.shown(events)}.")
    return tuple(events)


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
    events: tuple[Event, ...] = eqx.field(converter=_listed, default=())

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


def _descent(
    step_size: Any, width: int | None, symmetric: bool, start: Any, model: Model | None, gradient_factor: float
) -> dict[str, Any]:
    """Parts of full-batch descent: ``start`` is a scale alpha or a :class:`Start`, by default that of the paper."""
    if model is None:
        model = Symmetric(width, gradient_factor=gradient_factor) if symmetric else Asymmetric(width)
    elif width is not None or symmetric:
        raise GyrostatError("model already says its width and symmetry: leave width and symmetric out.")
    if not isinstance(start, Start):
        start = ImbalancedGaussian(start) if isinstance(model, Asymmetric) else SymmetricGaussian(start)
    schedule = step_size if isinstance(step_size, Schedule) else Constant(step_size)
    return {"model": model, "start": start, "batches": Full(), "schedule": schedule}


class GradientDescent(Algorithm):
    """Gradient descent on all data (Xiong 2024, eq. 2.2 for F G^T, eq. 2.3 for ``symmetric=True``).

    ``width`` is the paper's k. ``start`` is the scale alpha of the paper's own start (:class:`ImbalancedGaussian`, or
    :class:`SymmetricGaussian`), or any other start. ``events`` takes an :class:`ImbalanceStep`.

    >>> GradientDescent(0.2, width=4, start=0.05).model.width
    4
    """

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        model: Model | None = None,
        events: tuple[Event, ...] = (),
    ):
        super().__init__(**_descent(step_size, width, symmetric, start, model, 2.0), events=events)


class ScaledGD(Algorithm):
    """Descent preconditioned by the other factor's Gram matrix (Tong, Ma, Chi 2021); ``damping`` is added to it.

    Any number of components converge at the same rate, so the condition number of the target does not matter.
    """

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        damping: float = 0.0,
        model: Model | None = None,
    ):
        super().__init__(**_descent(step_size, width, symmetric, start, model, 1.0), rule=Preconditioned(damping))


class PrecGD(Algorithm):
    """:class:`ScaledGD` with the residual as damping (Zhang, Fattahi, Zhang 2021), made for too many components."""

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        model: Model | None = None,
    ):
        super().__init__(**_descent(step_size, width, symmetric, start, model, 1.0), rule=Preconditioned("residual"))


class HeteroSGD(Algorithm):
    """SGD whose every batch comes from one environment (Xu 2024, Algorithm 3).

    ``step_size`` is a number or a :class:`Schedule`; ``init_scale`` is the paper's alpha. ``amplify`` (ours) makes more of
    the differences between environments: see :class:`OneEnvironment`.

    >>> HeteroSGD(0.05).batches.order
    'iid'
    """

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-3,
        order: str = "iid",
        model: Model | None = None,
        amplify: float | None = None,
    ):
        super().__init__(**_parts(step_size, init_scale, model, OneEnvironment(order, amplify)))


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

    The truncation is an option of the measurements; ``pooled=True`` mixes environments within each batch; ``amplify`` is that
    of :class:`OneEnvironment`.
    """

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-2,
        order: str = "iid",
        pooled: bool = False,
        amplify: float | None = None,
    ):
        if pooled and amplify is not None:
            raise GyrostatError(
                "amplify makes more of differences between batches, which pooled=True mixes: leave one out."
            )
        batches = Pooled() if pooled else OneEnvironment(order, amplify)
        super().__init__(**_parts(step_size, init_scale, None, batches), events=(Shrinkage(),))


class RidgeDescent(Algorithm):
    """Descent on a loss with a ridge, for a deep linear network (Wang 2023, section 2.3).

    Which entries a step sees is said by :class:`Entries`: one at a time is the paper's SGD, all of them its control. The
    start is PyTorch's own, as in the paper's figures; :class:`Orthogonal` makes the same jumps and runs fastest.
    ``batches=OneEnvironment()`` takes the entries of each step from one environment.

    >>> RidgeDescent(0.2, 0.1, convention="main_text").rule.convention
    'main_text'
    """

    def __init__(
        self,
        step_size: Any,
        ridge: float | None = None,
        *,
        model: Model | None = None,
        start: Start | None = None,
        convention: str = "weight_decay",
        batches: Batches | None = None,
    ):
        if isinstance(step_size, Schedule) and ridge is not None:
            raise GyrostatError("step_size is a Schedule, which already says the ridge: leave ridge out.")
        super().__init__(
            model=DeepLinear(3, 100) if model is None else model,
            start=FanInUniform() if start is None else start,
            batches=Full() if batches is None else batches,
            schedule=step_size
            if isinstance(step_size, Schedule)
            else Constant(step_size, 0.0 if ridge is None else ridge),
            rule=RidgeStep(convention),
        )
