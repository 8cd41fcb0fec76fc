"""Events: changes of the parameters after a gradient step, other than the gradient step itself.

:class:`Shrinkage` is a part of Algorithm 4 of Xu 2024. :class:`ImbalanceStep` is the single change of the factors in
Xiong 2024, after which convergence no longer depends on the start. Derive one of your own from :class:`Event`.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.algorithms.schedules import Constant
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.lazy_condition import change_if_needed
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.measurements import Reading
from gyrostat.models import Asymmetric, Model
from gyrostat.typing import Leaf, Params

__all__ = ["Event", "ImbalanceStep", "Shrinkage"]


def __dir__() -> list[str]:
    return __all__


class Moment(NamedTuple):
    """What an event is told: the number, key and size of the step, the parameters before and after it, and its reading."""

    step: Int[Array, ""]
    key: PRNGKeyArray
    step_size: Float[Array, ""]
    before: Params
    after: Params
    reading: Reading


class Event(ReadableModule):
    """A change of the parameters after the gradient step, with a state of its own if it needs one."""

    def init(self, model: Model, params: Params) -> Any:
        """The event's state before the first step."""
        return ()

    def check(self, algorithm: Any, problem: Any) -> None:
        """Refuse, before compilation, an algorithm or a problem that lacks what the event needs."""

    @property
    def rotates(self) -> bool:
        """Whether the event commutes with rotations of the coordinates (of the product, of a hidden layer)."""
        return False

    def restarts_memory(self, before: Any, after: Any) -> Bool[Array, ""] | bool:
        """Whether the update rule forgets what it remembers, given the event's state before and after the event.

        True when the event has put other parameters in the place of the old ones, so that old directions mean nothing.
        """
        return False

    def summary(self, state: Any) -> dict[str, Array]:
        """Numbers to report at the end of a run, by name."""
        return {}

    def notes(self, summaries: Mapping[str, np.ndarray]) -> list[str]:
        """Sentences for readers of the result, given :meth:`summary` of all runs as arrays."""
        return []

    @abc.abstractmethod
    def __call__(self, state: Any, model: Model, moment: Moment) -> tuple[Params, Any]:
        """The parameters after the event, and the new state of the event."""


class Shrinkage(Event):
    """``U <- U / (1 - step_size (||U_t||_F^2 - tau_t))`` with tau_t = mean(y): Algorithm 4 of Xu 2024.

    It removes from the gradient the trace term that rank-one measurements add. tau_t is the signed trace of the total
    signal, estimated by the mean response as Remark 1 suggests. (The paper prints a norm; with the nuclear or the operator
    norm the algorithm fails.)
    """

    @property
    def rotates(self) -> bool:
        return True

    def check(self, algorithm: Any, problem: Any) -> None:
        if not problem.measurements.gives_response_mean:
            raise GyrostatError(
                f"Shrinkage needs the mean response, which {type(problem.measurements).__name__} does not give: use RankOne."
            )

    def __call__(self, state: Any, model: Model, moment: Moment) -> tuple[Params, Any]:
        eta, tau = moment.step_size, moment.reading.response_mean
        size = sum(jnp.sum(p * p) for p in moment.before)
        scale = 1 / (1 - eta * (size - tau))
        return tuple(scale * p for p in moment.after), state


class ImbalanceState(NamedTuple):
    """The state of an imbalance step: the first residual, the step at which it was made (-1: not yet), and its beta."""

    first: Float[Array, ""]
    fired: Int[Array, ""]
    beta: Float[Array, ""]


class ImbalanceStep(Event):
    """With the thin SVD ``F = A S V^T``: ``F <- beta A`` and ``G <- G V S / beta`` (Xiong 2024, eq. 5.1).

    F G^T is unchanged and ``F^T F = beta^2 I``, so the part of G that must vanish does so at a rate of
    ``step_size * beta^2`` per step. The step is made once: after step number ``at``, or after the first step whose root mean
    square residual is at most ``below`` times that of the first step.

    The formula (5.1) is damaged in the text that we work from. The bound on ||G|| in appendix F fits
    ``B Sigma_inv^(-1)``, which keeps the product for any orthogonal B, as this step does. B is V here: with V^T the product
    would be kept as well, but ``F^T F`` would not be ``beta^2 I``.

    ``beta`` is of the order of sqrt(sigma_r); by default :func:`automatic_beta` estimates it from F G^T and the residual.
    A stable descent with step size eta afterwards needs ``eta (beta^2 + (sigma_1 / beta)^2) < 2`` (:func:`stable_range`).

    Parameters
    ----------
    at
        The number of the step after which it is made.
    below
        The share of the first residual at which it is made, instead of ``at``.
    beta
        The size of F afterwards; estimated by default.

    >>> ImbalanceStep(at=500, beta=1.0).beta.item()
    1.0
    """

    at: Leaf
    below: Leaf
    beta: Leaf

    def __init__(self, *, at: int | None = None, below: float | None = None, beta: float | None = None):
        if (at is None) == (below is None):
            raise GyrostatError(
                "ImbalanceStep needs exactly one of at (a step) and below (a share of the first residual)."
            )
        self.at = None if at is None else np.asarray(errors.integer("at", at, least=0))
        self.below = None if below is None else errors.number("below", below, above=0, most=1)
        self.beta = None if beta is None else errors.number("beta", beta, above=0)

    @property
    def rotates(self) -> bool:
        return True

    def check(self, algorithm: Any, problem: Any) -> None:
        model = algorithm.model
        if not isinstance(model, Asymmetric):
            name = type(model).__name__
            raise GyrostatError(f"ImbalanceStep moves weight between F and G; {name} has no such pair: use Asymmetric.")
        rows, width = model.shapes(problem.shape)[0]
        if width > rows:
            raise GyrostatError(
                f"ImbalanceStep makes F's columns orthogonal: width must be at most {rows}; got {width}."
            )
        values = getattr(problem.environments, "invariant_values", getattr(problem.environments, "values", ()))
        if self.beta is None or not isinstance(algorithm.schedule, Constant) or np.size(values) == 0:
            return
        low, high = stable_range(float(algorithm.schedule.step_size), float(np.abs(values).max()))
        if not low < self.beta < high:
            raise GyrostatError(
                f"beta must lie between {low:.3g} and {high:.3g}, where step_size (beta^2 + (sigma_1 / beta)^2) < 2: "
                f"outside, the descent after the step is unstable; got {float(self.beta):g}."
            )

    def init(self, model: Model, params: Params) -> ImbalanceState:
        return ImbalanceState(jnp.array(jnp.nan), jnp.array(-1), jnp.array(jnp.nan))

    def __call__(self, state: ImbalanceState, model: Model, moment: Moment) -> tuple[Params, ImbalanceState]:
        residual = jnp.sqrt(moment.reading.residual_square)
        first = jnp.where(moment.step == 0, residual, state.first)
        due = moment.step == self.at if self.below is None else (state.fired < 0) & (residual <= self.below * first)

        def step(operand: tuple[Params, Array]) -> tuple[Params, Array]:
            F, G = operand[0]
            automatic = self.beta is None
            beta = automatic_beta(F @ G.T, residual, moment.step_size) if automatic else jnp.asarray(self.beta, float)
            return imbalanced((F, G), beta), beta

        params, beta = change_if_needed(due, step, (moment.after, state.beta))
        return params, ImbalanceState(first, jnp.where(due, moment.step + 1, state.fired), beta)

    def restarts_memory(self, before: ImbalanceState, after: ImbalanceState) -> Bool[Array, ""]:
        # The columns of F and G are now in the basis of the right singular vectors.
        return after.fired != before.fired

    def summary(self, state: ImbalanceState) -> dict[str, Array]:
        return {"imbalance_step": state.fired, "imbalance_beta": state.beta}

    def notes(self, summaries: Mapping[str, np.ndarray]) -> list[str]:
        never = int((summaries.get("imbalance_step", np.zeros(0)) < 0).sum())
        if never == 0:
            return []
        total = summaries["imbalance_step"].size
        return [f"ImbalanceStep was not made in {never} of {total} runs: its moment did not come before the end."]


def stable_range(step_size: float, sigma: float) -> tuple[float, float]:
    """The range of beta for which descent with ``step_size`` stays stable, for a largest singular value ``sigma``.

    After the step F^T F = beta^2 I and ||G|| = sigma / beta, and the steepest curvature ``||F||^2 + ||G||^2`` must be
    below 2 / step_size: beta^2 lies between ``(1 -+ sqrt(1 - (step_size sigma)^2)) / step_size``.

    >>> [round(x, 3) for x in stable_range(0.2, 1.0)]
    [0.318, 3.146]
    """
    if step_size * sigma >= 1:
        raise GyrostatError(
            f"step_size must be below 1 / sigma_1 = {1 / sigma:.3g} for any beta to be stable; got {step_size:g}."
        )
    root = math.sqrt(1 - (step_size * sigma) ** 2)
    # The smaller root comes from the product of the two, sigma^2: 1 - root cancels when the step is small.
    high = math.sqrt((1 + root) / step_size)
    return sigma / high, high


MARGIN = 2.0
"""A singular value counts as true when it exceeds this multiple of the residual."""


def automatic_beta(product: Float[Array, "n1 n2"], residual: Float[Array, ""], step_size: Float[Array, ""]) -> Array:
    """The default beta: the larger of ``sqrt(sigma_r)`` and the least stable beta.

    A singular value belongs to the truth when it is above the error of the product (Weyl's inequality). Few measurements
    underestimate that error, so twice the residual is used; sigma_r is the smallest singular value above it.
    The least stable beta is ``sigma_1 sqrt(step_size)``.

    >>> round(float(automatic_beta(np.diag([1.0, 0.25, 1e-3]), 0.01, 0.04)), 6)
    0.5
    """
    s = jnp.linalg.svd(product, compute_uv=False)
    least = jnp.min(jnp.where(s > MARGIN * residual, s, s[0]))  # the largest one, if none is above
    return jnp.maximum(jnp.sqrt(least), s[0] * jnp.sqrt(step_size))


def imbalanced(params: Params, beta: Float[Array, ""]) -> Params:
    """The factors after the step: same product, ``F^T F = beta^2 I``.

    >>> F, G = np.array([[2.0], [0.0]]), np.array([[1.0], [1.0]])
    >>> [x.tolist() for x in imbalanced((F, G), 1.0)]
    [[[1.0], [0.0]], [[2.0], [2.0]]]
    """
    F, G = params
    A, s, Vt = jnp.linalg.svd(F, full_matrices=False)
    return beta * A, (G @ Vt.T) * (s / beta)
