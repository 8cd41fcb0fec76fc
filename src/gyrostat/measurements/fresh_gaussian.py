"""Fresh Gaussian batches, exact in law and never materialised.

With X_1 ... X_m standard Gaussian elements of the space and M independent of them, write
``w_i = <X_i, M> - noise * eps_i`` and split each X_i into its part in a small span that contains M and the rest.
The rest is independent of w, so

    (1/m) sum_i w_i X_i  =  (1/m) sum_i w_i (X_i in the span)  +  |w|/m * (a Gaussian orthogonal to the span)

in law. The first sum lies in one dimension for a batch from one environment (it is made of a chi-square and a normal), and
in 1 + r2 (r2 + 1)/2 dimensions for a mixed batch. The cost is that of one Gaussian element, whatever m.

Label noise is one more Gaussian coordinate: (X_i, eps_i) is a Gaussian vector and M is extended by -noise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments.laws import Environment
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import fold_in, normal, split
from gyrostat.jax_tools.rejection_sampling import chi_square, multinomial
from gyrostat.measurements.base import Measurements, Reading, Scene, inner, residual
from gyrostat.models.spaces import SymmetricMatrices
from gyrostat.typing import Leaf

BLOCK = 1024
"""The number of samples simulated together in a mixed batch over a continuous law."""


class _Span(NamedTuple):
    """``along = sum_i w_i g_i`` in the coordinates of the span, and ``energy = sum_i w_i^2``."""

    along: Float[Array, " p"]
    energy: Float[Array, ""]


class FreshGaussian(Measurements):
    """New Gaussian measurements at every step (Xu 2024, sections 3.1 and B.2), exact in law at a cost independent of m.

    Parameters
    ----------
    num_samples
        The number m of measurements in a batch.
    noise
        The standard deviation of the error in each response.

    >>> FreshGaussian(8000).num_samples.item()
    8000.0
    """

    num_samples: Leaf = errors.count()
    noise: Leaf = errors.nonnegative(default=0.0)

    def check_second_reading(self) -> None:
        raise GyrostatError(
            "the rule asks for a gradient at other parameters (reading.at), and FreshGaussian draws gradients, not samples "
            "that could be seen twice: use Dense(num_samples, redraw=True)."
        )

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        m = self.num_samples
        norm, unit = _direction(residual(scene, environment))
        squares, normals = split(key)
        z, W = _normals(normals, 2, scene)
        span = _group(z, norm[None], chi_square(squares, m), self.noise)
        across = jnp.sqrt(span.energy)
        gradient = (span.along[0] - across * inner(unit, W)) / m * unit + across / m * W
        return Reading(gradient, span.energy / m), state

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        m, environments = self.num_samples, scene.environments
        law: Any = environments.law
        sigmas = SymmetricMatrices(law.rank)

        # The span holds V Sigma V^T for every Sigma, and a unit element along the rest of A - A_star. The part of an element
        # that is spurious is read by its block, in the coordinates of Sigma: the span is never written out.
        def spurious_coordinates(element: Array) -> Float[Array, " p"]:
            return sigmas.coordinates(sigmas.project(environments.spurious_block(element)))

        def spurious_element(coordinates: Float[Array, " p"]) -> Array:
            return environments.spurious(sigmas.element(coordinates))

        rest = scene.product - environments.invariant
        first = spurious_coordinates(rest)
        rest = rest - spurious_element(first)
        # A second pass: `rest` may be tiny relative to A - A_star, and its direction must be orthogonal to the others.
        second = spurious_coordinates(rest)
        norm, unit = _direction(rest - spurious_element(second))
        base = jnp.append(first + second, norm)

        in_span, normals = split(key)
        if law.is_finite:
            z, W = _normals(normals, law.count * (base.size + 1), scene)
            span = self._finite_mixture(in_span, z.reshape(law.count, base.size + 1), law, base)
        else:
            _, W = _normals(normals, 0, scene)
            span = self._continuous_mixture(in_span, law, base)
        across = jnp.sqrt(span.energy)
        spurious = spurious_element((span.along[:-1] - across * spurious_coordinates(W)) / m)
        gradient = spurious + (span.along[-1] - across * inner(unit, W)) / m * unit + across / m * W
        return Reading(gradient, span.energy / m), state

    def _finite_mixture(self, key: PRNGKeyArray, z: Float[Array, "K q"], law: Any, base: Float[Array, " p"]) -> _Span:
        counting, squares = split(key)
        counts = multinomial(counting, self.num_samples, jnp.asarray(law.weights))
        chi2 = jax.vmap(chi_square)(split(squares, law.count), jnp.maximum(counts, 1.0))
        chi2 = jnp.where(counts > 0, chi2, 0.0)

        def group(index: Array, z: Array, chi2: Array) -> _Span:
            return _group(z, _coefficients(base, law.at(index).sigma), chi2, self.noise)

        spans = jax.vmap(group)(jnp.arange(law.count), z, chi2)
        return _Span(spans.along.sum(axis=0), spans.energy.sum())

    def _continuous_mixture(self, key: PRNGKeyArray, law: Any, base: Float[Array, " p"]) -> _Span:
        """Every sample has its own Sigma, so the p + 1 coordinates of each sample are drawn, in blocks of samples."""

        def block(i: Array, total: _Span) -> _Span:
            choosing, gaussians = split(fold_in(key, i))
            sigmas = jax.vmap(lambda k: law.environment(k).sigma)(split(choosing, BLOCK))
            g = jax.random.normal(gaussians, (BLOCK, base.size + 1), dtype=float)
            c = jax.vmap(lambda sigma: _coefficients(base, sigma))(sigmas)
            w = jnp.sum(c * g[:, :-1], axis=1) - self.noise * g[:, -1]
            w = jnp.where(i * BLOCK + jnp.arange(BLOCK) < self.num_samples, w, 0.0)
            return _Span(total.along + w @ g[:, :-1], total.energy + w @ w)

        blocks = jnp.ceil(self.num_samples / BLOCK).astype(int)
        return jax.lax.fori_loop(0, blocks, block, _Span(jnp.zeros_like(base), jnp.zeros((), dtype=float)))


def _normals(key: PRNGKeyArray, extra: int, scene: Scene) -> tuple[Float[Array, " extra"], Array]:
    """``extra`` normals and a Gaussian element from one call: compiling a second generator costs half a second."""
    draws = normal(key, extra + scene.space.size)
    return draws[:extra], scene.space.element(draws[extra:])


def _group(z: Float[Array, " q"], c: Float[Array, " p"], chi2: Float[Array, ""], noise: Array) -> _Span:
    """The span of samples that share the residual with coordinates ``c``; chi2 has as many degrees of freedom as samples."""
    # The coordinate of the noise is written apart: vectors of two numbers cost XLA seven kernels more.
    length2 = c @ c + noise**2
    z_across = z[:-1] - c * (c @ z[:-1] - noise * z[-1]) / jnp.where(length2 > 0, length2, 1.0)
    return _Span(chi2 * c + jnp.sqrt(length2 * chi2) * z_across, length2 * chi2)


def _direction(element: Array) -> tuple[Float[Array, ""], Array]:
    """The norm of an element and the unit element along it, which is zero for a norm of zero."""
    norm = jnp.sqrt(inner(element, element))
    return norm, element / jnp.where(norm > 0, norm, 1.0)


def _coefficients(base: Float[Array, " p"], sigma: Float[Array, "r2 r2"]) -> Float[Array, " p"]:
    """Coordinates of ``A - A_star - V Sigma V^T``: Sigma changes only the first r2 (r2 + 1)/2 of them."""
    s = SymmetricMatrices(sigma.shape[0]).coordinates(sigma)
    return base.at[: s.size].add(-s)
