"""The algorithms of the papers under their names, each a thin :class:`Algorithm`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from gyrostat.algorithms.rules_with_memory import AccumulatingRule, with_memory_of
from gyrostat.algorithms.schedules import Constant, Schedule, from_function
from gyrostat.algorithms.update_rules import GradientStep, Preconditioned, RidgeStep, UpdateRule
from gyrostat.errors import GyrostatError
from gyrostat.models import Asymmetric, DeepLinear, Model, Symmetric


def _schedule(step_size: Any) -> Schedule:
    """The schedule that a number, a :class:`Schedule` or a function of the step stands for."""
    step_size = from_function(step_size)
    return step_size if isinstance(step_size, Schedule) else Constant(step_size)


def _with_ridge(step_size: Any, ridge: float | None) -> Schedule:
    if ridge is None:
        return _schedule(step_size)
    return from_function(step_size, ridge) if callable(step_size) else Constant(step_size, ridge)


def _environment_parts(
    step_size: Any,
    init_scale: float,
    model: Model | None,
    batches: Batches,
    rule: UpdateRule | None,
    start: Start | None = None,
) -> dict[str, Any]:
    """Parts of the algorithms of Xu 2024, which differ in their batches."""
    return {
        "model": Symmetric() if model is None else model,
        "start": ScaledIdentity(init_scale) if start is None else start,
        "batches": batches,
        "schedule": _schedule(step_size),
        "rule": with_memory_of(GradientStep(), rule),
    }


def _full_batch_parts(
    step_size: Any,
    width: int | None,
    symmetric: bool,
    start: Any,
    model: Model | None,
    gradient_factor: float,
    rule: UpdateRule,
) -> dict[str, Any]:
    """Parts of full-batch descent. ``start`` is a :class:`Start`, or the scale alpha of the start of Xiong 2024."""
    if model is None:
        model = Symmetric(width, gradient_factor=gradient_factor) if symmetric else Asymmetric(width)
    elif width is not None or symmetric:
        raise GyrostatError("model already says its width and symmetry: leave width and symmetric out.")
    if not isinstance(start, Start):
        start = ImbalancedGaussian(start) if isinstance(model, Asymmetric) else SymmetricGaussian(start)
    return {"model": model, "start": start, "batches": Full(), "schedule": _schedule(step_size), "rule": rule}


class GradientDescent(Algorithm):
    """Gradient descent on all data (Xiong 2024, eq. 2.2 for F G^T, eq. 2.3 for ``symmetric=True``).

    ``width`` is the paper's k. ``start`` is the scale alpha of the start in the paper (:class:`ImbalancedGaussian`, or
    :class:`SymmetricGaussian` if ``symmetric``), or any :class:`Start`. ``events`` may hold an :class:`ImbalanceStep`.
    ``rule`` is any :class:`UpdateRule`, such as :class:`Momentum` or :class:`Adam`; the plain gradient step by default.

    Parameters
    ----------
    step_size
        A number, a :class:`Schedule`, or a function of the step number.
    width
        The number of columns k of the factors; by default the smaller side of the target.
    symmetric
        True for ``U U^T``, False for ``F G^T``.
    start
        The scale alpha of the start in the paper, or any :class:`Start`.
    model
        Any :class:`Model`, instead of the default one.
    events
        Events such as an :class:`ImbalanceStep`.
    rule
        How a gradient moves the parameters: the plain gradient step by default, or any :class:`UpdateRule`.

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
        rule: UpdateRule | None = None,
    ):
        rule = with_memory_of(GradientStep(), rule)
        super().__init__(**_full_batch_parts(step_size, width, symmetric, start, model, 2.0, rule), events=events)


class ScaledGD(Algorithm):
    """Descent preconditioned by the other factor's Gram matrix (Tong, Ma, Chi 2021); ``damping`` is added to it.

    All components converge at the same rate, so the condition number of the target does not matter. A ``rule`` with memory
    such as :class:`Momentum` accumulates the preconditioned gradients.

    Parameters
    ----------
    step_size
        A number, a :class:`Schedule`, or a function of the step number.
    width
        The number of columns k of the factors; by default the smaller side of the target.
    symmetric
        True for ``U U^T``, False for ``F G^T``.
    start
        The scale alpha of the start in Xiong 2024, or any :class:`Start`.
    damping
        What is added to the Gram matrix: a number, or ``"residual"``.
    model
        Any :class:`Model`, instead of the default one.
    rule
        How a gradient moves the parameters: the plain gradient step by default, or any :class:`UpdateRule`.
    """

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        damping: float | str = 0.0,
        model: Model | None = None,
        rule: UpdateRule | None = None,
    ):
        rule = with_memory_of(Preconditioned(damping), rule)
        super().__init__(**_full_batch_parts(step_size, width, symmetric, start, model, 1.0, rule))


class PrecGD(Algorithm):
    """:class:`ScaledGD` with the residual as damping (Zhang, Fattahi, Zhang 2021), for over-parameterised factors.

    A ``rule`` with memory such as :class:`Momentum` accumulates the preconditioned gradients.

    Parameters
    ----------
    step_size
        A number, a :class:`Schedule`, or a function of the step number.
    width
        The number of columns k of the factors; by default the smaller side of the target.
    symmetric
        True for ``U U^T``, False for ``F G^T``.
    start
        The scale alpha of the start in Xiong 2024, or any :class:`Start`.
    model
        Any :class:`Model`, instead of the default one.
    rule
        How a gradient moves the parameters: the plain gradient step by default, or any :class:`UpdateRule`.
    """

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        model: Model | None = None,
        rule: UpdateRule | None = None,
    ):
        rule = with_memory_of(Preconditioned("residual"), rule)
        super().__init__(**_full_batch_parts(step_size, width, symmetric, start, model, 1.0, rule))


class HeteroSGD(Algorithm):
    """SGD in which every batch comes from one environment (Xu 2024, Algorithm 3).

    Parameters
    ----------
    step_size
        A number, a :class:`Schedule`, or a function of the step number: ``lambda t: 0.05 / (1 + t / 100)``.
    init_scale
        The paper's alpha: the start is ``init_scale * I``.
    order
        The order of the environments: ``"iid"``, ``"cyclic"``, ``"shuffled"``, a list that is repeated such as
        ``[0, 0, 1, 1]``, or a function of the step number (:class:`OneEnvironment`).
    model
        ``U U^T`` by default; any :class:`Model`.
    amplify
        Ours: enlarges the differences between environments (:class:`OneEnvironment`).
    rule
        How a gradient moves the parameters: the plain gradient step by default, :class:`Momentum`, :class:`Nesterov`,
        :class:`Adam`, :class:`Optax`, or any :class:`UpdateRule`.
    start
        Any :class:`Start`, instead of ``init_scale``.

    >>> HeteroSGD(0.05).batches.order
    'iid'
    >>> import gyrostat as gs
    >>> gs.HeteroSGD(0.005, rule=gs.Momentum(0.9)).rule.beta.item()
    0.9
    """

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-3,
        order: str | Sequence[int] | Callable = "iid",
        model: Model | None = None,
        amplify: float | None = None,
        rule: UpdateRule | None = None,
        start: Start | None = None,
    ):
        batches = OneEnvironment(order, amplify)
        super().__init__(**_environment_parts(step_size, init_scale, model, batches, rule, start))


class PooledSGD(Algorithm):
    """SGD in which every sample draws its own environment (Xu 2024, eq. 4 and 116).

    The arguments are those of :class:`HeteroSGD`.

    Parameters
    ----------
    step_size
        A number, a :class:`Schedule`, or a function of the step number.
    init_scale
        The paper's alpha: the start is ``init_scale * I``.
    model
        Any :class:`Model`, instead of the default one.
    rule
        How a gradient moves the parameters: the plain gradient step by default, or any :class:`UpdateRule`.
    start
        Any :class:`Start`, instead of the default one.

    >>> PooledSGD(0.05).batches.mixes
    True
    """

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-3,
        model: Model | None = None,
        rule: UpdateRule | None = None,
        start: Start | None = None,
    ):
        super().__init__(**_environment_parts(step_size, init_scale, model, Pooled(), rule, start))


class PooledGD(Algorithm):
    """Gradient descent on the data of all environments (Xu 2024, Theorem 6).

    The arguments are those of :class:`HeteroSGD`.

    Parameters
    ----------
    step_size
        A number, a :class:`Schedule`, or a function of the step number.
    init_scale
        The paper's alpha: the start is ``init_scale * I``.
    model
        Any :class:`Model`, instead of the default one.
    rule
        How a gradient moves the parameters: the plain gradient step by default, or any :class:`UpdateRule`.
    start
        Any :class:`Start`, instead of the default one.

    >>> PooledGD(0.05).batches.mixes
    False
    """

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-3,
        model: Model | None = None,
        rule: UpdateRule | None = None,
        start: Start | None = None,
    ):
        super().__init__(**_environment_parts(step_size, init_scale, model, Full(), rule, start))


class QuadraticNetwork(Algorithm):
    """Algorithm 4 of Xu 2024: a two-layer network with quadratic activation, for :class:`RankOne` measurements.

    The truncation is an option of the measurements. ``pooled=True`` mixes environments within each batch. ``order`` and
    ``amplify`` are those of :class:`OneEnvironment`; ``rule`` is that of :class:`HeteroSGD`.

    Parameters
    ----------
    step_size
        A number, a :class:`Schedule`, or a function of the step number.
    init_scale
        The scale alpha of the start: ``U_0 U_0^T = alpha^2 I``.
    order
        The order of the environments, as in :class:`OneEnvironment`.
    pooled
        True to mix environments within each batch.
    amplify
        As in :class:`OneEnvironment`.
    rule
        How a gradient moves the parameters: the plain gradient step by default, or any :class:`UpdateRule`.
    """

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-2,
        order: str | Sequence[int] | Callable = "iid",
        pooled: bool = False,
        amplify: float | None = None,
        rule: UpdateRule | None = None,
    ):
        if pooled and amplify is not None:
            raise GyrostatError(
                "amplify enlarges differences between environments, which pooled=True mixes: leave one out."
            )
        batches = Pooled() if pooled else OneEnvironment(order, amplify)
        super().__init__(**_environment_parts(step_size, init_scale, None, batches, rule), events=(Shrinkage(),))


class RidgeDescent(Algorithm):
    """Descent on a loss with a ridge, for a deep linear network (Wang 2023, section 2.3).

    :class:`Entries` decides which entries a step sees: one at a time is the paper's SGD, all of them its control (GD). The
    default start is that of PyTorch, as in the paper's figures; :class:`Orthogonal` shows the same jumps and runs fastest.
    ``batches=OneEnvironment()`` takes the entries of each step from one environment. A ``rule`` with memory such as
    :class:`Momentum` accumulates the gradient and the ridge, weighted as ``convention`` says.

    Parameters
    ----------
    step_size
        A number, a :class:`Schedule`, or a function of the step number.
    ridge
        The strength lambda of the ridge.
    model
        A :class:`DeepLinear` model.
    start
        Any :class:`Start`; by default the one of PyTorch.
    convention
        One of those of :class:`RidgeStep`.
    batches
        Which environments a step sees; by default all of them.
    rule
        How a gradient moves the parameters: the plain gradient step by default, or any :class:`UpdateRule`.

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
        rule: UpdateRule | None = None,
    ):
        own = RidgeStep(convention)
        if not (rule is None or isinstance(rule, AccumulatingRule) or convention == "weight_decay"):
            raise GyrostatError("rule already says how gradient and ridge move the layers: leave convention out.")
        if isinstance(step_size, Schedule) and ridge is not None:
            raise GyrostatError("step_size is a Schedule, which already says the ridge: leave ridge out.")
        super().__init__(
            model=DeepLinear(3, 100) if model is None else model,
            start=FanInUniform() if start is None else start,
            batches=Full() if batches is None else batches,
            schedule=_with_ridge(step_size, ridge),
            rule=with_memory_of(own, rule),
        )
