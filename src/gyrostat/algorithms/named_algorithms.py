"""The algorithms of the papers under their names, each a thin :class:`Algorithm`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.algorithms.batches import Batches, Full, OneEnvironment, Pooled
from gyrostat.algorithms.events import Event, Shrinkage
from gyrostat.algorithms.schedules import Constant, Schedule, as_schedule
from gyrostat.algorithms.starts import FanInGaussian, FanInUniform, ImbalancedGaussian, ScaledIdentity, Start
from gyrostat.algorithms.update_rules import (
    AccumulatingRule,
    GradientStep,
    Preconditioned,
    RidgeStep,
    UpdateRule,
    with_memory_of,
)
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.readable_modules import is_equal, parameters_of
from gyrostat.models import Asymmetric, DeepLinear, Model, Symmetric


class NamedAlgorithm(Algorithm):
    """An algorithm of a paper, whose arguments say how its parts differ from the standard ones."""

    standard: ClassVar[Mapping[str, Any]]
    """The parts of the algorithm if nothing but the step size is said."""

    def __init__(self, step_size: Any, *, rule: Any, base_rule: UpdateRule | None = None, **parts: Any):
        """The standard part stands in for each one that is None; ``base_rule`` is the rule that memory is added to."""
        said = {name: part for name, part in parts.items() if part is not None}
        rule = with_memory_of(self.standard["rule"] if base_rule is None else base_rule, rule)
        super().__init__(**{**self.standard, **said, "rule": rule, "schedule": as_schedule("step_size", step_size)})

    def arguments(self) -> Mapping[str, Any] | None:
        """The arguments that make the parts which are not the standard ones; None if no argument makes one of them."""
        parameters = {p.name: p for p in parameters_of(type(self))}
        schedule, arguments = self.schedule, {"step_size": self.schedule}
        if isinstance(schedule, Constant) and is_equal(schedule.ridge, 0.0):
            arguments = {"step_size": schedule.step_size}
        elif isinstance(schedule, Constant) and "ridge" in parameters:
            arguments = {"step_size": schedule.step_size, "ridge": schedule.ridge}
        for name, usual in self.standard.items():
            part = getattr(self, name)
            if is_equal(part, usual):
                continue
            short = _arguments_of(part)
            if short and short.keys() <= parameters.keys():
                arguments |= short
            elif name in parameters:
                arguments[name] = part
            else:
                return None
        required = {name for name, p in parameters.items() if p.default is p.empty}
        return arguments if required <= arguments.keys() <= parameters.keys() else None


def _arguments_of(part: Any) -> dict[str, Any]:
    """The arguments of named algorithms that stand for a part; empty if it is handed over itself."""
    match part:
        case ScaledIdentity():
            return {"init_scale": part.scale}
        case OneEnvironment():
            return {"order": part.order, "amplify": part.amplify}
        case Pooled():
            return {"pooled": True}
        case Preconditioned():
            return dict(part.arguments())
        case RidgeStep():
            return {"convention": part.convention}
    return {}


FACTORS = {"model": Asymmetric(), "start": ImbalancedGaussian(0.1), "batches": Full(), "events": ()}
"""Standard parts of the descents of Xiong 2024 and its peers."""


class FullBatchDescent(NamedAlgorithm):
    """Descent on all data for two factors, or for one."""

    gradient_factor: ClassVar[float] = 1.0
    """That of the symmetric model."""

    def __init__(
        self, step_size: Any, width: int | None, symmetric: bool, start: Any, model: Model | None, **parts: Any
    ):
        """``start`` is a :class:`Start`, or the scale alpha of the start of Xiong 2024."""
        if model is not None and (width is not None or symmetric):
            raise GyrostatError("model already says its width and symmetry: leave width and symmetric out.")
        if model is None:
            model = Symmetric(width, gradient_factor=self.gradient_factor) if symmetric else Asymmetric(width)
        if not isinstance(start, Start):
            start = ImbalancedGaussian(start) if isinstance(model, Asymmetric) else FanInGaussian(start)
        super().__init__(step_size, model=model, start=start, **parts)


class GradientDescent(FullBatchDescent):
    """Gradient descent on all data (Xiong 2024, eq. 2.2 for F G^T, eq. 2.3 for ``symmetric=True``).

    ``width`` is the paper's k. ``start`` is the scale alpha of the start in the paper (:class:`ImbalancedGaussian`, or
    :class:`FanInGaussian` if ``symmetric``), or any :class:`Start`. ``events`` may hold an :class:`ImbalanceStep`.

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
        How a gradient moves the parameters: an :class:`UpdateRule` or a transformation of optax; by default the plain
        gradient step.

    >>> GradientDescent(0.2, width=4, start=0.05).model.width
    4
    """

    standard = FACTORS | {"rule": GradientStep()}
    gradient_factor = 2.0  # that of Xiong 2024, eq. 2.3

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        model: Model | None = None,
        events: tuple[Event, ...] = (),
        rule: Any = None,
    ):
        super().__init__(step_size, width, symmetric, start, model, rule=rule, events=events)


class ScaledGD(FullBatchDescent):
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
        How a gradient moves the parameters: an :class:`UpdateRule` or a transformation of optax; by default the plain
        gradient step.
    """

    standard = FACTORS | {"rule": Preconditioned()}

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        damping: float | str = 0.0,
        model: Model | None = None,
        rule: Any = None,
    ):
        super().__init__(step_size, width, symmetric, start, model, rule=rule, base_rule=Preconditioned(damping))


class PrecGD(FullBatchDescent):
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
        How a gradient moves the parameters: an :class:`UpdateRule` or a transformation of optax; by default the plain
        gradient step.
    """

    standard = FACTORS | {"rule": Preconditioned("residual")}

    def __init__(
        self,
        step_size: Any,
        *,
        width: int | None = None,
        symmetric: bool = False,
        start: Any = 0.1,
        model: Model | None = None,
        rule: Any = None,
    ):
        super().__init__(step_size, width, symmetric, start, model, rule=rule)


XU = {"model": Symmetric(), "start": ScaledIdentity(1e-3), "rule": GradientStep(), "events": ()}
"""Standard parts of the algorithms of Xu 2024, which differ in their batches."""


class HeteroSGD(NamedAlgorithm):
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
        How a gradient moves the parameters: :class:`Momentum`, :class:`Nesterov`, :class:`Adam`, any :class:`UpdateRule` or a
        transformation of optax; by default the plain gradient step.
    start
        Any :class:`Start`, instead of ``init_scale``.

    >>> HeteroSGD(0.05).batches.order
    'iid'
    >>> import gyrostat as gs
    >>> gs.HeteroSGD(0.005, rule=gs.rules.Momentum(0.9)).rule.beta.item()
    0.9
    """

    standard = XU | {"batches": OneEnvironment()}

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-3,
        order: str | Sequence[int] | Callable = "iid",
        model: Model | None = None,
        amplify: float | None = None,
        rule: Any = None,
        start: Start | None = None,
    ):
        start = ScaledIdentity(init_scale) if start is None else start
        super().__init__(step_size, model=model, start=start, batches=OneEnvironment(order, amplify), rule=rule)


class PoolingAlgorithm(NamedAlgorithm):
    """An algorithm of Xu 2024 without an order of environments."""

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-3,
        model: Model | None = None,
        rule: Any = None,
        start: Start | None = None,
    ):
        start = ScaledIdentity(init_scale) if start is None else start
        super().__init__(step_size, model=model, start=start, rule=rule)


class PooledSGD(PoolingAlgorithm):
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
        How a gradient moves the parameters: an :class:`UpdateRule` or a transformation of optax; by default the plain
        gradient step.
    start
        Any :class:`Start`, instead of the default one.

    >>> PooledSGD(0.05).batches.mixes
    True
    """

    standard = XU | {"batches": Pooled()}


class PooledGD(PoolingAlgorithm):
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
        How a gradient moves the parameters: an :class:`UpdateRule` or a transformation of optax; by default the plain
        gradient step.
    start
        Any :class:`Start`, instead of the default one.

    >>> PooledGD(0.05).batches.mixes
    False
    """

    standard = XU | {"batches": Full()}


class QuadraticNetworkSGD(NamedAlgorithm):
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
        How a gradient moves the parameters: an :class:`UpdateRule` or a transformation of optax; by default the plain
        gradient step.
    """

    standard = XU | {"start": ScaledIdentity(1e-2), "batches": OneEnvironment(), "events": (Shrinkage(),)}

    def __init__(
        self,
        step_size: Any,
        *,
        init_scale: float = 1e-2,
        order: str | Sequence[int] | Callable = "iid",
        pooled: bool = False,
        amplify: float | None = None,
        rule: Any = None,
    ):
        if pooled and amplify is not None:
            raise GyrostatError(
                "amplify enlarges differences between environments, which pooled=True mixes: leave one out."
            )
        batches = Pooled() if pooled else OneEnvironment(order, amplify)
        super().__init__(step_size, start=ScaledIdentity(init_scale), batches=batches, rule=rule)


QuadraticNetwork = QuadraticNetworkSGD
"""The old name of :class:`QuadraticNetworkSGD`, which is that of a model."""


class RidgeDescent(NamedAlgorithm):
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
        How a gradient moves the parameters: an :class:`UpdateRule` or a transformation of optax; by default the plain
        gradient step.

    >>> RidgeDescent(0.2, 0.1, convention="main_text").rule.convention
    'main_text'
    """

    standard: ClassVar = {
        "model": DeepLinear(3, 100),
        "start": FanInUniform(),
        "batches": Full(),
        "rule": RidgeStep(),
        "events": (),
    }

    def __init__(
        self,
        step_size: Any,
        ridge: float | None = None,
        *,
        model: Model | None = None,
        start: Start | None = None,
        convention: str = "weight_decay",
        batches: Batches | None = None,
        rule: Any = None,
    ):
        if not (rule is None or isinstance(rule, AccumulatingRule) or convention == "weight_decay"):
            raise GyrostatError("rule already says how gradient and ridge move the layers: leave convention out.")
        if isinstance(step_size, Schedule) and ridge is not None:
            raise GyrostatError("step_size is a Schedule, which already says the ridge: leave ridge out.")
        schedule = as_schedule("step_size", step_size, 0.0 if ridge is None else ridge)
        super().__init__(
            schedule, model=model, start=start, batches=batches, rule=rule, base_rule=RidgeStep(convention)
        )
