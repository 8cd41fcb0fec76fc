"""Gradients under fresh or infinitely many Gaussian measurements, for many seeds at once.

``G = weight * residual + size * noise (+ a few directions)``: the formulas of :mod:`gyrostat.measurements.fresh_gaussian`,
whose docstring explains why they are exact in law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import numpy as np
from scipy.linalg import blas

from gyrostat.algorithms.batches import OneEnvironment
from gyrostat.engine.compile import Cell
from gyrostat.engine.numpy_backend import cached_draws
from gyrostat.engine.numpy_backend.cached_draws import CACHE, STEPS_AT_ONCE, NoiseSource, as_arguments, block_of_draws
from gyrostat.engine.numpy_backend.environments import DrawnEnvironments
from gyrostat.engine.numpy_backend.loop import DescentState
from gyrostat.engine.numpy_backend.update_rules import NumpyReading
from gyrostat.measurements import Identity
from gyrostat.models.symmetric_coordinates import diagonal, dimension_of, smat, svec


class RandomGradients:
    """Senses the gradients of a cell for the loop; random numbers are fetched for a block of steps at a time."""

    def __init__(self, cell: Cell, environments: DrawnEnvironments, first_seed: int):
        self.batches, self.measurements = cell[0].batches, cell[1].measurements
        self.environments, self.first_seed = environments, first_seed
        self.seeds, self.dimension = environments.invariant.shape[:2]
        self.dtype, self.law = environments.invariant.dtype.type, environments.law
        self.block = -1

    def __call__(self, state: DescentState) -> NumpyReading:
        """The gradients at the products of the state, which they overwrite."""
        block, step = divmod(state.step, STEPS_AT_ONCE)
        if block != self.block:
            self.block = block
            self.gradients = self._gradients()
        self.gradients(state.product, state.spare[0], step)
        return NumpyReading(state.product)

    def _gradients(self) -> BlockGradients:
        """The gradients of the current block of steps."""
        if isinstance(self.measurements, Identity):
            return self._population_mean() if self.batches.mixes else self._population()
        return self._mixed() if self.batches.mixes else self._single()

    def _population_mean(self) -> BlockGradients:
        half = self.environments.half_target(self.environments.mean, self.environments.values)
        return PopulationGradients(self.environments, np.broadcast_to(half, (STEPS_AT_ONCE, *half.shape)))

    def _population(self) -> BlockGradients:
        amplify = self.batches.amplify  # type: ignore[attr-defined]
        environments, (_, sigmas) = self.environments, self._chosen_environments()
        # The mean of such gradients is the gradient of the mean, so amplifying gradients means amplifying Sigma.
        if amplify is not None:
            sigmas = sigmas + float(amplify) * (sigmas - environments.mean)
        return PopulationGradients(environments, environments.half_target(sigmas, environments.values))

    def _kept(self, name: str, label: tuple, draw: Callable[[], np.ndarray]) -> np.ndarray:
        """The numbers of the current block with this name and label, drawn if they are not kept."""
        return CACHE.get((name, *label, self.first_seed, self.block), draw)

    def _draw(self, program: Callable[..., Any], *given: Any) -> Any:
        """The numbers that one of the programs of ``random_draws`` draws for the current block."""
        return block_of_draws(program, self.block, self.first_seed, *given)

    def _chosen_environments(self) -> tuple[np.ndarray, np.ndarray]:
        """The number (-1 for a continuous law) and the Sigma of the environment of every step: (step, seed, ...).

        They are drawn for a standard law, so that what is kept serves every centre and spread.
        """
        order, law = self.batches.order, self.law  # type: ignore[attr-defined]
        kind = np.asarray(law.weights).tobytes() if law.is_finite else type(law).__name__

        def draw() -> np.ndarray:
            which = as_arguments(law) if law.is_finite else _standard(law)
            numbers, sigmas = self._draw(cached_draws.chosen_environments, OneEnvironment(order), which)
            return numbers if law.is_finite else sigmas

        drawn = self._kept("environments", (order, kind), draw)[:, : self.seeds]
        if law.is_finite:
            return drawn, np.asarray(law.values)[drawn]
        scalars = float(law.centre) + float(law.spread) * drawn[..., :1, :1]
        return np.full(scalars.shape[:2], -1), scalars * np.eye(law.rank)

    def _single(self) -> BlockGradients:
        amplify = self.batches.amplify  # type: ignore[attr-defined]
        key_use = "iid" if self.batches.order == "iid" else "ordered"  # type: ignore[attr-defined]
        m, law, seeds = float(self.measurements.num_samples), self.law, self.seeds  # type: ignore[attr-defined]
        index, chosen = self._chosen_environments()
        sigmas, shares, batches = chosen[:, None], np.ones((len(index), 1, seeds)), 0
        if amplify is not None:
            batches = law.count
            sigmas = np.broadcast_to(np.asarray(law.values)[:, None], (len(index), batches, seeds, law.rank, law.rank))
            own = index[:, None] == np.arange(batches)[:, None]
            shares = (1 + amplify) * own - amplify * np.asarray(law.weights)[:, None]
        noise = CACHE.noise(NoiseSource(key_use, batches, self.first_seed), self.block, 2, self.dimension, self.dtype)
        label = (key_use, batches, m)
        squares = self._kept("chi-squares", label, lambda: self._draw(cached_draws.chi_squares, m, key_use, batches))
        squares, matrices = (x[:, :, :seeds] for x in (squares.swapaxes(1, 2), noise.matrices))
        halves = self.environments.half_target(sigmas, self.environments.values)
        return SingleGradients(self.environments, halves, shares, squares, matrices, m)

    def _mixed(self) -> BlockGradients:
        m, law, seeds = float(self.measurements.num_samples), self.law, self.seeds  # type: ignore[attr-defined]
        size = law.rank * (law.rank + 1) // 2 + 1
        extra = law.count * (size + 1) if law.is_finite else 0
        noise = CACHE.noise(NoiseSource("mixed", 0, self.first_seed), self.block, extra, self.dimension, self.dtype)
        matrices = noise.matrices[:, 0, :seeds]
        span: FiniteMixture | ContinuousMixture
        if law.is_finite:
            # The last normal of every environment is for label noise, which these runs do not have.
            normals = noise.normals[:, 0, :seeds].reshape(STEPS_AT_ONCE, seeds, law.count, size + 1)[..., :-1]
            span = self._finite_mixture(m, normals)
        else:
            span = self._continuous_mixture(m, size)
        known, across = (self.environments.spurious_coordinates(x) for x in (self.environments.invariant, matrices))
        return MixedGradients(self.environments, span, matrices, across, known, m)

    def _finite_mixture(self, m: float, normals: np.ndarray) -> FiniteMixture:
        weights = np.asarray(self.law.weights)
        label = (m, weights.tobytes())
        squares = self._kept("mixed chi-squares", label, lambda: self._draw(cached_draws.mixed_chi_squares, m, weights))
        sigmas = np.pad(svec(np.asarray(self.law.values)), ((0, 0), (0, 1)))
        return FiniteMixture(sigmas, squares[:, : self.seeds], normals)

    def _continuous_mixture(self, m: float, size: int) -> ContinuousMixture:
        law = self.law
        label = (m, type(law).__name__, law.rank)

        def draw() -> np.ndarray:
            return self._draw(cached_draws.mixed_moments, m, _standard(law), size)

        moments = self._kept("mixed moments", label, draw)
        return ContinuousMixture(moments[:, : self.seeds], float(law.centre), float(law.spread))


def _standard(law: Any) -> Any:
    """A continuous law with centre 0 and spread 1."""
    return as_arguments(eqx.tree_at(lambda x: (x.centre, x.spread), law, (np.zeros(()), np.ones(()))))


class BlockGradients(Protocol):
    """Turns products A (seed, d, d) into their gradients, in place, at step ``t`` of a block.

    ``room`` is scratch of the same shape: allocating arrays of this size would take longer than the step.
    """

    def __call__(self, A: np.ndarray, room: np.ndarray, t: int) -> None: ...


class PopulationGradients(NamedTuple):
    """Infinitely many measurements of one target per step; ``halves`` (step, seed, d, r) are half targets."""

    environments: DrawnEnvironments
    halves: np.ndarray

    def __call__(self, A: np.ndarray, room: np.ndarray, t: int) -> None:
        A -= self.environments.target(self.halves[t], room)


class SingleGradients(NamedTuple):
    """Batches that come from one environment each; with several batches per step, their sum with the given shares.

    ``halves`` is (step, batch, seed, d, r), ``shares`` and ``squares`` are (step, batch, seed), ``noise`` is
    (step, batch, seed, d, d).
    """

    environments: DrawnEnvironments
    halves: np.ndarray
    shares: np.ndarray
    squares: np.ndarray
    noise: np.ndarray
    samples: float

    def __call__(self, A: np.ndarray, room: np.ndarray, t: int) -> None:
        if self.shares.shape[1] == 1:
            self._one_batch(A, room, t, 0)
            return
        product = A.copy()
        A[:] = 0.0
        for k in range(self.shares.shape[1]):
            M = product.copy()
            self._one_batch(M, room, t, k)
            A += M

    def _one_batch(self, M: np.ndarray, room: np.ndarray, t: int, k: int) -> None:
        M -= self.environments.target(self.halves[t, k], room)
        x, w, chi2 = _flat(M), _flat(self.noise[t, k]), self.squares[t, k]
        # Without label noise the span is the residual's own direction, and no normal number is needed in it.
        norm, share = np.sqrt(np.vecdot(x, x)), self.shares[t, k] / self.samples
        across, chi = np.vecdot(x, w) / np.where(norm > 0, norm, 1.0), np.sqrt(chi2)
        _combine(x, share * (chi2 - chi * across), w, share * chi * norm)


class MixedGradients(NamedTuple):
    """Batches in which every sample has an environment of its own; ``span`` gives the law of their part in the span.

    ``across`` is the noise in the coordinates of the spurious directions (step, seed, s), ``known`` is A_star there (seed, s).
    """

    environments: DrawnEnvironments
    span: FiniteMixture | ContinuousMixture
    noise: np.ndarray
    across: np.ndarray
    known: np.ndarray
    samples: float

    def __call__(self, A: np.ndarray, room: np.ndarray, t: int) -> None:
        environments, m = self.environments, self.samples
        inside = environments.spurious_coordinates(A) - self.known
        A -= environments.target(environments.half_target(smat(inside), environments.values), room)
        x, w = _flat(A), _flat(self.noise[t])
        norm = np.sqrt(np.vecdot(x, x).astype(float))
        safe = np.where(norm > 0, norm, 1.0)
        along, energy = self.span(np.concatenate([inside, norm[:, None]], axis=1), t)
        size = np.sqrt(energy)
        _combine(x, (along[:, -1] - size * np.vecdot(x, w) / safe) / (m * safe), w, size / m)
        spurious = smat((along[:, :-1] - size[:, None] * self.across[t]) / m)
        A += environments.target(environments.half_target(spurious, 0.0), room)


class FiniteMixture(NamedTuple):
    """Samples of a list of environments: coordinates of their Sigmas (environment, p), chi-squares and normals of all steps."""

    sigmas: np.ndarray
    squares: np.ndarray
    normals: np.ndarray

    def __call__(self, base: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        z, chi2 = self.normals[t], self.squares[t]
        c = base[:, None] - self.sigmas
        square = np.vecdot(c, c)
        energy = square * chi2
        # z without its part along c, as in `gyrostat.measurements.fresh_gaussian._group`.
        length = np.sqrt(energy)
        z = z - c * (np.vecdot(c, z) / np.where(square > 0, square, 1.0))[..., None]
        return (chi2[..., None] * c + length[..., None] * z).sum(axis=1), energy.sum(axis=1)


class ContinuousMixture(NamedTuple):
    """Samples with a Sigma each: the moments of a batch (step, seed, q, q) from :func:`random_draws.mixed_moments`."""

    moments: np.ndarray
    centre: float
    spread: float

    def __call__(self, base: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        k = np.concatenate([base, np.full((len(base), 1), -self.spread)], axis=1)
        k[:, diagonal(dimension_of(base.shape[1] - 1))] -= self.centre
        along = np.einsum("bij,bj->bi", self.moments[t], k)
        return along[:, : base.shape[1]], np.vecdot(along, k)


def _flat(X: np.ndarray) -> np.ndarray:
    """Matrices as rows."""
    return X.reshape(len(X), -1)


def _combine(X: np.ndarray, a: np.ndarray, W: np.ndarray, b: np.ndarray) -> None:
    """``x <- a x + b w`` for rows x and w, with numbers a and b for every row."""
    scale, add = (blas.dscal, blas.daxpy) if X.dtype == np.float64 else (blas.sscal, blas.saxpy)
    for x, w, p, q in zip(X, W, a.tolist(), b.tolist(), strict=True):
        scale(p, x)
        add(w, x, a=q)
