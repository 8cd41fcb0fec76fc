"""The algorithms of the papers under their names, each a thin :class:`Algorithm`."""

from __future__ import annotations

from typing import Any

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.batches import Batches, Full, OneEnvironment, Pooled
from gyrostat.algorithms.events import Event, Shrinkage
from gyrostat.algorithms.initialisation import (
    FanInUniform,
    ImbalancedGaussian,
    ScaledIdentity,
    Start,
    SymmetricGaussian,
)
from gyrostat.algorithms.schedules import Constant, Schedule
from gyrostat.algorithms.update_rules import Preconditioned, RidgeStep
from gyrostat.errors import GyrostatError
from gyrostat.models import Asymmetric, DeepLinear, Model, Symmetric


def _schedule(step_size: Any) -> Schedule:
    return step_size if isinstance(step_size, Schedule) else Constant(step_size)


def _environment_parts(step_size: Any, init_scale: float, model: Model | None, batches: Batches) -> dict[str, Any]:
    """Parts of the algorithms of Xu 2024, which differ in their batches."""
    return {
        "model": Symmetric() if model is None else model,
        "start": ScaledIdentity(init_scale),
        "batches": batches,
        "schedule": _schedule(step_size),
    }


def _full_batch_parts(
    step_size: Any, width: int | None, symmetric: bool, start: Any, model: Model | None, gradient_factor: float
) -> dict[str, Any]:
    """Parts of full-batch descent. ``start`` is a :class:`Start`, or the scale alpha of the start of Xiong 2024."""
    if model is None:
        model = Symmetric(width, gradient_factor=gradient_factor) if symmetric else Asymmetric(width)
    elif width is not None or symmetric:
        raise GyrostatError("model already says its width and symmetry: leave width and symmetric out.")
    if not isinstance(start, Start):
        start = ImbalancedGaussian(start) if isinstance(model, Asymmetric) else SymmetricGaussian(start)
    return {"model": model, "start": start, "batches": Full(), "schedule": _schedule(step_size)}


class GradientDescent(Algorithm):
    """Gradient descent on all data (Xiong 2024, eq. 2.2 for F G^T, eq. 2.3 for ``symmetric=True``).

    ``width`` is the paper's k. ``start`` is the scale alpha of the start in the paper (:class:`ImbalancedGaussian`, or
    :class:`SymmetricGaussian` if ``symmetric``), or any :class:`Start`. ``events`` may hold an :class:`ImbalanceStep`.

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
        super().__init__(**_full_batch_parts(step_size, width, symmetric, start, model, 2.0), events=events)


class ScaledGD(Algorithm):
    """Descent preconditioned by the other factor's Gram matrix (Tong, Ma, Chi 2021); ``damping`` is added to it.

    All components converge at the same rate, so the condition number of the target does not matter.
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
        super().__init__(
            **_full_batch_parts(step_size, width, symmetric, start, model, 1.0), rule=Preconditioned(damping)
        )


class PrecGD(Algorithm):
    """:class:`ScaledGD` with the residual as damping (Zhang, Fattahi, Zhang 2021), for over-parameterised factors."""

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        model: Model | None = None,
    ):
        super().__init__(
            **_full_batch_parts(step_size, width, symmetric, start, model, 1.0), rule=Preconditioned("residual")
        )


class HeteroSGD(Algorithm):
    """SGD in which every batch comes from one environment (Xu 2024, Algorithm 3).

    ``step_size`` is a number or a :class:`Schedule`; ``init_scale`` is the paper's alpha. ``amplify`` (ours) enlarges the
    differences between environments: see :class:`OneEnvironment`.

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
        super().__init__(**_environment_parts(step_size, init_scale, model, OneEnvironment(order, amplify)))


class PooledSGD(Algorithm):
    """SGD in which every sample draws its own environment (Xu 2024, eq. 4 and 116)."""

    def __init__(self, step_size: Any, *, init_scale: float = 1e-3, model: Model | None = None):
        super().__init__(**_environment_parts(step_size, init_scale, model, Pooled()))


class PooledGD(Algorithm):
    """Gradient descent on the data of all environments (Xu 2024, Theorem 6)."""

    def __init__(self, step_size: Any, *, init_scale: float = 1e-3, model: Model | None = None):
        super().__init__(**_environment_parts(step_size, init_scale, model, Full()))


class QuadraticNetwork(Algorithm):
    """Algorithm 4 of Xu 2024: a two-layer network with quadratic activation, for :class:`RankOne` measurements.

    The truncation is an option of the measurements. ``pooled=True`` mixes environments within each batch. ``order`` and
    ``amplify`` are those of :class:`OneEnvironment`.
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
        super().__init__(**_environment_parts(step_size, init_scale, None, batches), events=(Shrinkage(),))


class RidgeDescent(Algorithm):
    """Descent on a loss with a ridge, for a deep linear network (Wang 2023, section 2.3).

    :class:`Entries` decides which entries a step sees: one at a time is the paper's SGD, all of them its control (GD). The
    default start is that of PyTorch, as in the paper's figures; :class:`Orthogonal` shows the same jumps and runs fastest.
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
            schedule=_schedule(step_size) if ridge is None else Constant(step_size, ridge),
            rule=RidgeStep(convention),
        )
