"""Gaussian noise in place of the noise of SGD: Langevin dynamics, and noise matched to that of steps on single entries.

Remark 2.1 needs it. Both are events as a user writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.algorithms.events import Event, Moment
from gyrostat.algorithms.update_rules import CONVENTIONS
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import normal, split
from gyrostat.measurements import Entries
from gyrostat.models import Model
from gyrostat.typing import Leaf, Params


class LangevinNoise(Event):
    """``theta <- theta + sqrt(2 eta' T) N(0, I)`` after a step: Langevin dynamics at temperature T (Wang 2023, Remark 2.1).

    eta' is the multiplier of the gradient of ``(1/2N) sum (A_ij - y_ij)^2``: the step size times that of the convention.

    Parameters
    ----------
    temperature
        T. Descent on a loss with this noise visits parameters with a density of ``exp(-loss / T)`` if eta' is small.
    convention
        That of the update rule (:class:`RidgeStep`).

    >>> LangevinNoise(1e-3).temperature.item()
    0.001
    """

    temperature: Leaf = errors.nonnegative()
    convention: str = errors.field(check=errors.choice, options=CONVENTIONS, static=True, default="weight_decay")

    def __call__(self, state: Any, model: Model, moment: Moment) -> tuple[Params, Any]:
        eta = CONVENTIONS[self.convention][0] * moment.step_size
        noise = _normals(moment.key, moment.after)
        return tuple(
            p + jnp.sqrt(2 * eta * self.temperature) * z for p, z in zip(moment.after, noise, strict=True)
        ), state


class MatchedNoise(Event):
    """Gaussian noise after a full-batch step that is matched to what SGD on one observed entry per step would add.

    With g_k the gradient of ``(A_ij - y_ij)^2 / 2`` at the k-th of N observed entries, a step of SGD differs from the
    full-batch step by eta' times a random vector of mean zero and covariance ``S = mean g_k g_k^T - mean g_k mean g_k^T``.

    Parameters
    ----------
    pairs
        The observed (row, column) pairs, as those of the measurements.
    match
        ``"trace"``: independent normal numbers in all P parameters, each of variance ``eta'^2 tr(S) / P``, so isotropic noise
        of the same size. ``"covariance"``: normal with the covariance ``eta'^2 S`` itself.
    convention
        That of the update rule (:class:`RidgeStep`).
    scale
        A factor of the noise: 1 is as large as that of SGD, 0 is none.

    >>> MatchedNoise([(0, 0), (1, 0)], "trace").match
    'trace'
    """

    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True, converter=lambda pairs: Entries(pairs).pairs)
    match: str = errors.field(check=errors.choice, options=("trace", "covariance"), static=True)
    convention: str = errors.field(check=errors.choice, options=CONVENTIONS, static=True, default="weight_decay")
    scale: Leaf = errors.nonnegative(default=1.0)

    @property
    def rotates(self) -> bool:
        return self.match == "covariance"

    def check(self, algorithm: Any, problem: Any) -> None:
        seen = problem.measurements
        if not isinstance(seen, Entries) or seen.batch_size is not None or seen.pairs != self.pairs:
            raise GyrostatError(
                "MatchedNoise replaces the noise of single entries in full-batch steps: use Entries(pairs) without a "
                "batch_size, with the same pairs."
            )

    def __call__(self, state: Any, model: Model, moment: Moment) -> tuple[Params, Any]:
        eta = self.scale * CONVENTIONS[self.convention][0] * moment.step_size
        gradients = self._gradients(model, moment)
        noise = self._isotropic(moment, gradients) if self.match == "trace" else self._sampled(moment.key, gradients)
        return tuple(p + eta * z for p, z in zip(moment.after, noise, strict=True)), state

    def _gradients(self, model: Model, moment: Moment) -> list[Params]:
        """The gradient at every observed entry."""
        mean = moment.reading.gradient
        singles = [jnp.zeros_like(mean).at[i, j].set(len(self.pairs) * mean[i, j]) for i, j in self.pairs]
        return [model.pullback(moment.before, single) for single in singles]

    def _isotropic(self, moment: Moment, gradients: list[Params]) -> Params:
        size = sum(p.size for p in moment.after)
        scale = jnp.sqrt(covariance_trace(gradients) / size)
        return tuple(scale * z for z in _normals(moment.key, moment.after))

    def _sampled(self, key: PRNGKeyArray, gradients: list[Params]) -> Params:
        # One-hot vectors of a uniform choice have the covariance (I - 1 1^T / N) / N.
        z = normal(key, len(gradients))
        weights = (z - jnp.mean(z)) / len(gradients) ** 0.5
        return tuple(sum(w * g for w, g in zip(weights, layer, strict=True)) for layer in zip(*gradients, strict=True))


def covariance_trace(gradients: Sequence[Params]) -> Float[Array, ""]:
    """``mean ||g_k||^2 - ||mean g_k||^2``: the trace of the covariance of one of these gradients, chosen at random.

    >>> float(covariance_trace([(jnp.array([1.0, 0.0]),), (jnp.array([-1.0, 0.0]),)]))
    1.0
    """
    layers = [jnp.stack(layer) for layer in zip(*gradients, strict=True)]
    spread = [jnp.sum((g - jnp.mean(g, axis=0)) ** 2) for g in layers]
    return jnp.sum(jnp.stack(spread)) / len(gradients)


def _normals(key: PRNGKeyArray, params: Params) -> Params:
    """Independent standard normal numbers in the shape of the parameters."""
    keys = split(key, len(params))
    return tuple(normal(k, p.size).reshape(p.shape) for k, p in zip(keys, params, strict=True))
