"""The imbalance step of Xiong 2024: one change of the factors, after which convergence no longer depends on the start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gyrostat import errors
from gyrostat.algorithms.schedules import Constant, Event, Moment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.lazy_condition import rarely
from gyrostat.models import Asymmetric, Model, Params
from gyrostat.models.spaces import Leaf


class Watch(NamedTuple):
    """What an imbalance step remembers: the first residual, the step at which it was made (-1: not yet), its beta."""

    first: Float[Array, ""]
    fired: Int[Array, ""]
    beta: Float[Array, ""]


class ImbalanceStep(Event):
    """With the thin SVD ``F = A S V^T``: ``F <- beta A`` and ``G <- G V S / beta`` (Xiong 2024, eq. 5.1, put right).

    F G^T is unchanged and ``F^T F = beta^2 I``, so that the part of G that must vanish does so at a rate of
    ``step_size * beta^2`` per step. (As printed, with F's right singular vectors applied to G without their values, the
    product is not preserved.) The step is made once, after step number ``at``, or after the first step whose root
    mean square residual is at most ``below`` times that of the first step.

    ``beta`` is of the order of sqrt(sigma_r); left out, :func:`automatic_beta` reads it off F G^T and the residual.
    A stable descent with step size eta afterwards needs ``eta (beta^2 + (sigma_1 / beta)^2) < 2`` (:func:`stable_range`).

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

    def init(self, model: Model, params: Params) -> Watch:
        return Watch(jnp.array(jnp.nan), jnp.array(-1), jnp.array(jnp.nan))

    def __call__(self, state: Watch, model: Model, moment: Moment) -> tuple[Params, Watch]:
        residual = jnp.sqrt(moment.reading.residual_square)
        first = jnp.where(moment.step == 0, residual, state.first)
        low_enough = (state.fired < 0) & (residual <= (0.0 if self.below is None else self.below) * first)
        due = low_enough if self.at is None else moment.step == self.at

        chosen = jnp.array(jnp.nan) if self.beta is None else jnp.asarray(self.beta, dtype=float)
        params, beta, *_ = rarely(due, _step, (moment.after, state.beta, chosen, residual, moment.step_size))
        return params, Watch(first, jnp.where(due, moment.step + 1, state.fired), beta)

    def summary(self, state: Watch) -> dict[str, Array]:
        return {"imbalance_step": state.fired, "imbalance_beta": state.beta}

    def notes(self, found: Mapping[str, np.ndarray]) -> list[str]:
        never = int((found.get("imbalance_step", np.zeros(0)) < 0).sum())
        if never == 0:
            return []
        total = found["imbalance_step"].size
        return [f"ImbalanceStep was not made in {never} of {total} runs: its moment did not come before the end."]


def stable_range(step_size: float, sigma: float) -> tuple[float, float]:
    """The values of beta after which descent with ``step_size`` is stable, for a largest singular value ``sigma``.

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
    # The smaller root through the product of the two, sigma^2: 1 - root cancels when the step is small.
    high = math.sqrt((1 + root) / step_size)
    return sigma / high, high


def _step(operand: tuple[Params, Array, Array, Array, Array]) -> tuple[Params, Array, Array, Array, Array]:
    params, _, chosen, residual, eta = operand
    F, G = params
    beta = jnp.where(jnp.isnan(chosen), automatic_beta(F @ G.T, residual, eta), chosen)
    return imbalanced(params, beta), beta, chosen, residual, eta


MARGIN = 2.0


def automatic_beta(product: Float[Array, "n1 n2"], residual: Float[Array, ""], step_size: Float[Array, ""]) -> Array:
    """The beta of a step whose user did not choose one: ``sqrt(sigma_r)``, or the least that is stable if that is more.

    A singular value belongs to the truth when it is above the error of the product (Weyl's inequality). Few measurements
    show less of that error than there is, so the residual is taken twice; sigma_r counts as the smallest value above.
    The least stable beta is ``sigma_1 sqrt(step_size)``.

    >>> round(float(automatic_beta(np.diag([1.0, 0.25, 1e-3]), 0.01, 0.04)), 6)
    0.5
    """
    largest = jnp.linalg.norm(product, 2)
    return jnp.maximum(jnp.sqrt(least_above(product, MARGIN * residual)), largest * jnp.sqrt(step_size))


def imbalanced(params: Params, beta: Float[Array, ""]) -> Params:
    """The factors after the step: same product, ``F^T F = beta^2 I``.

    >>> F, G = np.array([[2.0], [0.0]]), np.array([[1.0], [1.0]])
    >>> [x.tolist() for x in imbalanced((F, G), 1.0)]
    [[[1.0], [0.0]], [[2.0], [2.0]]]
    """
    F, G = params
    A, s, Vt = jnp.linalg.svd(F, full_matrices=False)
    return beta * A, (G @ Vt.T) * (s / beta)


def least_above(product: Float[Array, "n1 n2"], residual: Float[Array, ""]) -> Float[Array, ""]:
    """The smallest singular value above ``residual`` (the largest if none is): an estimate of sigma_r.

    >>> float(least_above(np.diag([3.0, 2.0, 1e-3, 1e-4]), 0.1))
    2.0
    """
    s = jnp.linalg.svd(product, compute_uv=False)
    return jnp.min(jnp.where(s > residual, s, s[0]))
