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

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat import errors
from gyrostat.environments import Environment
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

    num_samples: Leaf = eqx.field(converter=lambda x: errors.count("num_samples", x))
    noise: Leaf = eqx.field(converter=lambda x: errors.number("noise", x, least=0), default=0.0)

    def sense(self, state: Any, key: PRNGKeyArray, scene: Scene, environment: Environment) -> tuple[Reading, Any]:
        M = residual(scene, environment)
        norm = jnp.sqrt(inner(M, M))
        unit = M / jnp.where(norm > 0, norm, 1.0)
        squares, normals = split(key)
        z, W = _normals(normals, 2, scene)
        chi2 = chi_square(squares, self.num_samples)
        span = _group(z, norm[None], chi2, self.noise)
        return _lift(W, unit[None], span, self.num_samples), state

    def mix(self, state: Any, key: PRNGKeyArray, scene: Scene) -> tuple[Reading, Any]:
        units, base = _mixture_span(scene)
        law: Any = scene.environments.law
        in_span, normals = split(key)
        if law.is_finite:
            z, W = _normals(normals, law.count * (base.size + 1), scene)
            span = self._finite_mixture(in_span, z.reshape(law.count, base.size + 1), law, base)
        else:
            _, W = _normals(normals, 0, scene)
            span = self._continuous_mixture(in_span, law, base)
        return _lift(W, units, span, self.num_samples), state

    def _finite_mixture(self, key: PRNGKeyArray, z: Float[Array, "K q"], law: Any, base: Float[Array, " p"]) -> _Span:
        counting, squares = split(key)
        counts = multinomial(counting, self.num_samples, jnp.asarray(law.weights))
        drawn = jax.vmap(chi_square)(split(squares, law.count), jnp.maximum(counts, 1.0))
        chi2 = jnp.where(counts > 0, drawn, 0.0)

        def group(index: Array, z: Array, chi2: Array) -> _Span:
            return _group(z, _coefficients(base, law.at(index).sigma), chi2, self.noise)

        spans = jax.vmap(group)(jnp.arange(law.count), z, chi2)
        return _Span(spans.along.sum(axis=0), spans.energy.sum())

    def _continuous_mixture(self, key: PRNGKeyArray, law: Any, base: Float[Array, " p"]) -> _Span:
        """Every sample has its own Sigma, so the p + 1 coordinates of each sample are drawn, in blocks of samples."""

        def block(i: Array, total: _Span) -> _Span:
            choosing, gaussians = split(fold_in(key, i))
            sigmas = jax.vmap(lambda k: law.draw(k).sigma)(split(choosing, BLOCK))
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
    c = jnp.append(c, -noise)
    length2 = c @ c
    z = z - c * (c @ z) / jnp.where(length2 > 0, length2, 1.0)
    along = chi2 * c + jnp.sqrt(length2 * chi2) * z
    return _Span(along[:-1], length2 * chi2)


def _lift(W: Array, units: Array, span: _Span, m: Array) -> Reading:
    """The reading with the given part in the span (of orthonormal ``units``, zeros allowed) and the law of the rest."""
    across = jnp.sqrt(span.energy)
    weights = (span.along - across * _project(units, W)) / m
    return Reading(jnp.tensordot(weights, units, axes=1) + across / m * W, span.energy / m)


def _mixture_span(scene: Scene) -> tuple[Array, Float[Array, " p"]]:
    """Orthonormal elements that span the residuals of all environments, and the coordinates of ``A - A_star``."""
    environments, r2 = scene.environments, scene.environments.law.rank
    sigmas = jax.vmap(SymmetricMatrices(r2).element)(jnp.eye(r2 * (r2 + 1) // 2, dtype=float))
    directions = jax.vmap(environments.spurious)(sigmas)
    B = scene.product - environments.invariant
    along = _project(directions, B)
    rest = B - jnp.tensordot(along, directions, axes=1)
    # A second pass: `rest` may be tiny relative to B, and its direction must be orthogonal to the others.
    again = _project(directions, rest)
    rest = rest - jnp.tensordot(again, directions, axes=1)
    norm = jnp.sqrt(inner(rest, rest))
    unit = rest / jnp.where(norm > 0, norm, 1.0)
    return jnp.concatenate([directions, unit[None]]), jnp.append(along + again, norm)


def _project(directions: Array, element: Array) -> Array:
    return jax.vmap(lambda direction: inner(direction, element))(directions)


def _coefficients(base: Float[Array, " p"], sigma: Float[Array, "r2 r2"]) -> Float[Array, " p"]:
    """Coordinates of ``A - A_star - V Sigma V^T``: Sigma changes only the first r2 (r2 + 1)/2 of them."""
    s = SymmetricMatrices(sigma.shape[0]).coordinates(sigma)
    return base.at[: s.size].add(-s)
