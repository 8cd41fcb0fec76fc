"""Deep linear networks on matrix completion with a ridge (Wang 2023, section 3.1).

Critical points of the loss, the fold at which the rank-2 minimum ends, and (ours) how fast the second singular value decays.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from gyrostat import errors
from gyrostat.diagnostics.layers import representation_cost
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import Entries
from gyrostat.models import DeepLinear
from gyrostat.models.deep_linear import forward

FLAT = 1e-8
"""Eigenvalues of a Hessian below this in size count as zero."""

OBSERVED = ((0, 0), (1, 0), (1, 1))
"""The entries of the 2 x 2 problem [[1, *], [epsilon, 1]]."""


class CriticalPoint(NamedTuple):
    """A critical point of ``C(A) + lambda ||theta||^2``, by its matrix; the Hessian is that of all layers.

    ``signature`` counts its negative, zero and positive eigenvalues; ``kind`` is ``"minimum"`` (no negative ones, and C_lambda
    does not fall nearby), ``"strict saddle"`` or ``"degenerate"``; ``imbalance`` and ``gap`` (the loss less C_lambda(A)) are
    zero by Prop. A.1 and section 2.2.

    Parameters
    ----------
    matrix
        The matrix A.
    rank
        Its rank.
    kind
        ``"minimum"``, ``"strict saddle"`` or ``"degenerate"``.
    signature
        The numbers of negative, zero and positive eigenvalues of the Hessian.
    loss
        The loss with the ridge.
    imbalance
        How far the layers are from balanced.
    gap
        The loss less the least loss of any layers with this product.
    """

    matrix: np.ndarray
    rank: int
    kind: str
    signature: tuple[int, int, int]
    loss: float
    imbalance: float
    gap: float


@errors.explains_formula
def critical_points(
    target: Any, pairs: Sequence[tuple[int, int]], depth: int, ridge: float, *, tries: int = 200, seed: int = 0
) -> list[CriticalPoint]:
    """Critical points of ``(1/2N) sum (A_ij - A*_ij)^2 + lambda ||theta||^2`` found from many starts, sorted by rank.

    Hidden layers are as wide as the smaller side, which every critical point fits into (it is balanced). The search is
    a least-squares solution of gradient = 0 with the exact Hessian; more ``tries`` may find more points, and never wrong
    ones.

    Parameters
    ----------
    target
        The matrix A*; only its observed entries are used.
    pairs
        The observed (row, column) pairs.
    depth
        The number L of layers.
    ridge
        The strength lambda of the ridge.
    tries
        The number of starts.
    seed
        The seed of the random numbers.

    >>> found = critical_points([[1.0, 4.0], [0.25, 1.0]], OBSERVED, 3, 0.02, tries=8)
    >>> found[0].rank, found[0].kind
    (0, 'minimum')
    """
    from scipy.optimize import least_squares, minimize

    truth = errors.array("target", target, ndim=2)
    lam = float(errors.number("ridge", ridge, above=0))
    tries, seed = errors.integer("tries", tries, least=1), errors.integer("seed", seed)
    model, observed = DeepLinear(depth), Entries(pairs)
    observed.check(None, model.space(truth.shape), False)
    rng = np.random.default_rng(seed)
    layers_of_points: dict[tuple[float, ...], np.ndarray] = {}
    with double():
        problem = _CompletionLoss(truth, observed, model, lam)
        for k in range(tries):
            start = problem.start(rng, k)
            if k // 4 % 2:  # four of every eight descend first: to minima, without raising the rank of the start
                start = minimize(problem.loss_and_gradient, start, jac=True, method="L-BFGS-B").x
            # Levenberg-Marquardt down to rounding error: a critical point is a zero of the gradient, not almost one.
            near = least_squares(
                problem.gradient, start, jac=problem.hessian, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15
            )
            if np.abs(near.fun).max() < 1e-11:
                layers_of_points.setdefault(tuple(np.round(problem.matrix(near.x).ravel(), 5) + 0.0), near.x)
        points = [problem.classify(theta) for theta in layers_of_points.values()]
    return sorted(points, key=lambda p: (p.rank, p.loss))


class _CompletionLoss:
    """The loss as a function of all layers, flattened into one vector."""

    def __init__(self, truth: np.ndarray, observed: Entries, model: DeepLinear, ridge: float):
        self.truth, self.observed, self.model, self.ridge = truth, observed, model, ridge
        self.shapes = model.shapes(truth.shape)
        i, j = (np.array(x) for x in zip(*observed.pairs, strict=True))

        def fit(A: Array) -> Array:
            return jnp.sum((A[i, j] - truth[i, j]) ** 2) / (2 * len(i))

        def loss(theta: Array) -> Array:
            return fit(forward(self.layers(theta))[-1]) + ridge * theta @ theta

        def cost(A: Array) -> Array:
            return fit(A) + ridge * representation_cost(A, model.depth)

        # Compiled: every start calls them, and operation by operation they are slow.
        self.loss, self.gradient, self.hessian = jax.jit(loss), jax.jit(jax.grad(loss)), jax.jit(jax.hessian(loss))
        self.loss_and_gradient = jax.jit(jax.value_and_grad(loss))
        self.cost = jax.jit(jax.vmap(cost))
        self.product = jax.jit(lambda theta: forward(self.layers(theta))[-1])
        self.factorise = jax.jit(model.factorise)

    def layers(self, theta: Any) -> Any:
        cuts = np.cumsum([a * b for a, b in self.shapes])[:-1]
        return tuple(x.reshape(s) for x, s in zip(jnp.split(jnp.asarray(theta), cuts), self.shapes, strict=True))

    def matrix(self, theta: np.ndarray) -> np.ndarray:
        return np.asarray(self.product(theta))

    def start(self, rng: np.random.Generator, k: int) -> np.ndarray:
        """Zero first; then in turn random layers, and balanced ones of full rank, of rank one, of randomly completed data."""
        size = sum(a * b for a, b in self.shapes)
        if k % 4 == 0:
            return min(k, 1) * rng.choice([0.1, 0.3, 0.6, 1.0]) * rng.standard_normal(size)
        U, _, Vt = np.linalg.svd(rng.standard_normal(self.truth.shape), full_matrices=False)
        s = np.sort(np.exp(rng.uniform(np.log(1e-5), np.log(4.0), len(Vt))))[::-1]
        A = (U * s) @ Vt if k % 4 == 1 else s[0] * np.outer(U[:, 0], Vt[0])
        if k % 4 == 3:
            A = rng.standard_normal(self.truth.shape)
            for i, j in self.observed.pairs:
                A[i, j] = self.truth[i, j]
        return np.concatenate([np.asarray(W).ravel() for W in self.factorise(A)])

    def classify(self, theta: np.ndarray) -> CriticalPoint:
        A, W = self.matrix(theta), self.layers(theta)
        s = np.linalg.svd(A, compute_uv=False)
        values = np.linalg.eigvalsh(self.hessian(theta))
        signature = int((values < -FLAT).sum()), int((np.abs(values) <= FLAT).sum()), int((values > FLAT).sum())
        cost = float(self.cost(A[None])[0])
        kind = "strict saddle" if signature[0] else "minimum" if self._is_lowest(A, cost, s) else "degenerate"
        imbalance = max(float(jnp.abs(a @ a.T - b.T @ b).max()) for a, b in itertools.pairwise(W))
        return CriticalPoint(
            A,
            int((s > 1e-7).sum()),
            kind,
            signature,
            float(self.loss(theta)),
            imbalance,
            float(self.loss(theta)) - cost,
        )

    def _is_lowest(self, A: np.ndarray, cost: float, s: np.ndarray) -> bool:
        """Whether C_lambda does not fall in any of many directions; with tiny steps where a root is infinitely steep."""
        D = np.random.default_rng(1).standard_normal((600, *A.shape))
        D /= np.linalg.norm(D, axis=(1, 2), keepdims=True)
        step = 1e-4 if s[-1] > 1e-7 else 1e-8
        return bool(np.asarray(self.cost(A + step * D)).min() >= cost - 1e-13)


class Fold(NamedTuple):
    """Where the rank-2 minimum of the 2 x 2 problem ends: the ridge, and the minimum there.

    Parameters
    ----------
    ridge
        The ridge at which the minimum ends.
    matrix
        The minimum there.
    """

    ridge: float
    matrix: np.ndarray


@errors.explains_formula
def fold(epsilon: float, depth: int) -> Fold:
    """lambda_c: up to this ridge ``C(A) + lambda L sum s^(2/L)`` on [[1, *], [epsilon, 1]] has a rank-2 minimum.

    In the main text's normalisation (``"weight_decay"`` with ridge lambda has lambda / 4 here). The minimum is followed from
    a ridge of zero, where it completes the matrix with least cost, to the fold, where its Hessian becomes singular. If there
    is no such minimum at all, the ridge is 0.

    Parameters
    ----------
    epsilon
        The small observed entry.
    depth
        The number L of layers.

    >>> round(fold(0.25, 3).ridge, 3)
    0.026
    """
    from scipy.optimize import root

    eps = float(errors.number("epsilon", epsilon, above=0, most=1))
    L = errors.integer("depth", depth, least=3)
    with double():
        gradient, hessian = _derivatives(L)
        A = _least_completion(eps, L)
        if A is None:
            return Fold(0.0, np.full((2, 2), np.nan))
        lam, step = 0.0, 1e-3
        while step > 1e-6:
            near = root(gradient, A, (lam + step, eps), jac=hessian, tol=1e-13)
            fine = (
                near.success
                and np.linalg.norm(near.x - A) < 0.5
                and np.linalg.eigvalsh(hessian(near.x, lam + step, eps))[0] > 0
            )
            A, lam, step = (near.x, lam + step, step) if fine else (A, lam, step / 2)
        direction = np.linalg.eigh(hessian(A, lam, eps))[1][:, 0]

        def singular(x: np.ndarray) -> np.ndarray:
            v, d = x[:4], x[4:8]
            return np.concatenate([gradient(v, x[8], eps), np.asarray(hessian(v, x[8], eps)) @ d, [d @ d - 1]])

        end = root(singular, np.concatenate([A, direction, [lam]]), tol=1e-12)
    return Fold(float(end.x[8]), end.x[:4].reshape(2, 2))


def _powers(v: Array, L: int) -> Array:
    """``sum s^(2/L)`` of a 2 x 2 matrix, smooth where its singular values are distinct and positive."""
    total, det = jnp.sum(v * v), v[0] * v[3] - v[1] * v[2]
    root = jnp.sqrt(total**2 - 4 * det**2)
    large = (total + root) / 2
    return large ** (1 / L) + (det**2 / large) ** (1 / L)  # the product of the squares is det^2: no cancellation


@functools.cache  # compiled once for all epsilon
def _derivatives(L: int) -> tuple[Callable[..., Array], Callable[..., Array]]:
    def cost(v: Array, lam: Array, eps: Array) -> Array:
        fit = (v[0] - 1) ** 2 + (v[2] - eps) ** 2 + (v[3] - 1) ** 2
        return fit / 6 + lam * L * _powers(v, L)

    return jax.jit(jax.grad(cost)), jax.jit(jax.hessian(cost))


def _least_completion(eps: float, L: int) -> np.ndarray | None:
    """The rank-2 completion of least cost, below the rank-1 one; None if the cost has no such minimum."""
    x = np.linspace(-2.0, 1 / eps - 1e-3, 20_001)
    s = np.linalg.svd(np.array([[[1.0, t], [eps, 1.0]] for t in x]), compute_uv=False)
    cost = np.sum(s ** (2 / L), axis=1)
    (at,) = np.nonzero((cost[1:-1] < cost[:-2]) & (cost[1:-1] < cost[2:]))
    return np.array([1.0, x[at[0] + 1], eps, 1.0]) if at.size else None


@errors.explains_formula
def turning_rate(
    matrix: Any, truth: Any, observed: Sequence[tuple[int, int]], *, step_size: float, depth: int
) -> np.ndarray:
    """How much faster than ``-L log(1 - eta lambda)`` per step s2 falls because noise turns the first singular pair.

    At rank 1 a step on entry (i, j) with error d adds to the last layer a column along e_i and to the first a row along
    e_j, of relative size ``c = 2 eta d s1^(1 - 2/L)``. That turns the first singular vectors, and what was orthogonal to
    them shrinks by the cosine: ``(c u2_i v1_j)^2 / 2`` in the last layer and ``(c u1_i v2_j)^2 / 2`` in the first. The mean
    over the observed entries is returned, for each of the matrices (2 x 2, with any number of leading dimensions).

    With two layers the second pair appears in its own gradient, which this leaves out, so depth must be 3 or more. Steps
    follow the convention ``weight_decay``, ``eta grad (A_ij - y_ij)^2``.

    Parameters
    ----------
    matrix
        Matrices A (2 x 2, with any number of leading dimensions).
    truth
        The matrix A*.
    observed
        The observed (row, column) pairs.
    step_size
        The step size eta.
    depth
        The number L of layers.

    >>> A = np.array([[1.0, 2.0], [0.5, 1.0]])
    >>> turning_rate(A, A, [(0, 0)], step_size=0.2, depth=3).item()
    0.0
    """
    A, eta = np.asarray(matrix, dtype=float), float(errors.number("step_size", step_size, above=0))
    L = errors.integer("depth", depth, least=3)
    u, s, vt = np.linalg.svd(A)
    total = np.zeros(A.shape[:-2])
    for i, j in observed:
        c = 2 * eta * (A[..., i, j] - np.asarray(truth)[i][j]) * s[..., 0] ** (1 - 2 / L)
        total += c**2 * ((u[..., i, 1] * vt[..., 0, j]) ** 2 + (u[..., i, 0] * vt[..., 1, j]) ** 2) / 2
    return total / len(observed)
