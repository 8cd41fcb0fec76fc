"""Laws of the spurious part: how Sigma_e (r2 x r2) varies over environments.

In this file, ``xi`` is one diagonal entry of Sigma_e, the scalar in the theory of Xu 2024.
"""

from __future__ import annotations

import abc
import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import uniform
from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.frozen_randomness import TRACES, program_and_constants
from gyrostat.jax_tools.readable_modules import ReadableModule
from gyrostat.typing import Leaf

ScalarFunction = Callable[[np.ndarray], np.ndarray]


class Environment(NamedTuple):
    """One environment: its index in a finite law (-1 when the law is continuous) and its Sigma."""

    index: Int[Array, ""]  # type: ignore[assignment]  # hides tuple.index, which an environment does not need
    sigma: Float[Array, "r2 r2"]


class Law(ReadableModule):
    """A distribution of symmetric matrices Sigma_e, with the moments that the theory needs."""

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """The size r2 of Sigma."""

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray) -> Environment:
        """A random environment."""

    @abc.abstractmethod
    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Values (n, r2, r2) and weights (n,) whose weighted sums are the law's expectations.

        Exact for finite laws, a quadrature for uniform and Gaussian ones, 2^16 fixed draws for a user's sampler.
        """

    @property
    def is_finite(self) -> bool:
        """Whether there is a finite list of environments, which batches can cycle through or pool exactly."""
        return False

    @property
    def has_second_moment(self) -> bool:
        """Whether E ||Sigma||_F^2 is finite and :meth:`nodes` tell it."""
        return True

    @property
    def bound(self) -> float:
        """M1 of (6): the supremum of |Sigma_ii|."""
        values, _ = self.nodes()
        return float(np.abs(_diagonals(values)).max(initial=0.0))

    @property
    def mean(self) -> Float[Array, "r2 r2"]:
        """E Sigma."""
        values, weights = self.nodes()
        return jnp.einsum("n,nij->ij", weights, values)

    def expectation(self, function: ScalarFunction) -> np.ndarray:
        """E f(Sigma_ii) for each i.

        >>> TwoPoint(mean=1.0, spread=6.0).expectation(lambda xi: xi**2).tolist()
        [37.0]
        """
        values, weights = self.nodes()
        return np.einsum("n,ni->i", weights, function(_diagonals(values)))

    @property
    def variance(self) -> np.ndarray:
        """Var Sigma_ii for each i."""
        return self.expectation(np.square) - self.expectation(lambda xi: xi) ** 2

    @property
    def second_moment(self) -> float:
        """E ||Sigma||_F^2."""
        values, weights = self.nodes()
        return float(np.einsum("n,nij,nij->", weights, values, values))

    @property
    def scatter(self) -> Float[Array, ""]:
        """E ||Sigma - E Sigma||_F^2."""
        values, weights = self.nodes()
        gap = jnp.asarray(values) - self.mean
        return jnp.einsum("n,nij,nij->", jnp.asarray(weights), gap, gap)

    @property
    def off_diagonal(self) -> float:
        """sup_e max_i sum_{j != i} |Sigma_ij|, the left side of condition (7) without its r2^2."""
        values, _ = self.nodes()
        rows = np.abs(values).sum(axis=2) - np.abs(_diagonals(values))
        return float(rows.max(initial=0.0))


def _diagonals(values: np.ndarray) -> np.ndarray:
    return np.diagonal(values, axis1=1, axis2=2)


class Finite(Law):
    """A finite list of environments with weights (equal ones by default).

    ``values`` may be K numbers (Sigma_e = s_e I_rank), K vectors (diagonals) or K symmetric matrices.

    Parameters
    ----------
    values
        K numbers, K vectors (diagonals) or K symmetric matrices.
    weights
        How often each environment is drawn; equally often by default.
    rank
        The size of Sigma where ``values`` are numbers.

    >>> Finite([-5.0, 7.0]).bound
    7.0
    """

    values: Leaf
    weights: Leaf

    def __init__(self, values: Any, weights: Any = None, *, rank: int = 1):
        x = errors.array("values", values, ndim=(1, 2, 3))
        if x.shape[0] == 0:
            raise GyrostatError("values lists zero environments; give at least one.")
        if x.ndim == 1:
            x = x[:, None, None] * np.eye(errors.integer("rank", rank, least=0))
        elif x.ndim == 2:
            x = x[:, :, None] * np.eye(x.shape[1])
        if x.shape[1] != x.shape[2]:
            raise GyrostatError(f"values must hold square matrices; got shape {x.shape}.")
        if not np.allclose(x, np.swapaxes(x, 1, 2), atol=1e-12):
            raise GyrostatError("values must hold symmetric matrices; symmetrise them with (S + S.T) / 2.")
        p = np.full(len(x), 1 / len(x)) if weights is None else errors.array("weights", weights, ndim=1)
        if p.shape != (len(x),):
            raise GyrostatError(f"weights must have one entry per environment ({len(x)}); got {p.size}.")
        if (p < 0).any() or abs(p.sum() - 1) > 1e-9:
            raise GyrostatError(
                f"weights must be non-negative and sum to one; got sum {p.sum():.6g}, least {p.min():.6g}: "
                "divide them by their sum."
            )
        self.values, self.weights = x, p

    @property
    def rank(self) -> int:
        return self.values.shape[-1]

    @property
    def count(self) -> int:
        """The number of environments K."""
        return self.weights.shape[-1]

    @property
    def is_finite(self) -> bool:
        return True

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        return self.values, self.weights

    def at(self, index: Int[Array, ""]) -> Environment:
        """Environment number ``index``."""
        return Environment(jnp.asarray(index, dtype=jnp.int32), jnp.asarray(self.values)[index])

    def draw(self, key: PRNGKeyArray) -> Environment:
        # A sum instead of a search: a loop costs more to compile and to run than a pass over all environments.
        edges = jnp.cumsum(jnp.asarray(self.weights))
        return self.at(jnp.minimum(jnp.sum(uniform(key, 1) >= edges), self.count - 1))


class TwoPoint(Finite):
    """Sigma_e = (mean - spread) I or (mean + spread) I with probability 1/2 each (Xu 2024, section 5).

    ``spread`` is the paper's heterogeneity M. With ``independent=True`` every diagonal entry has its own sign
    (2^rank environments).

    Parameters
    ----------
    mean
        The mean strength.
    spread
        The paper's heterogeneity M: strengths are ``mean - spread`` and ``mean + spread``.
    rank
        The size of Sigma.
    independent
        True to draw the sign of every diagonal entry separately.

    >>> TwoPoint(mean=1.0, spread=6.0).values.ravel().tolist()
    [-5.0, 7.0]
    """

    def __init__(self, mean: float = 1.0, spread: float = 1.0, *, rank: int = 1, independent: bool = False):
        centre, width = errors.number("mean", mean), errors.number("spread", spread, least=0)
        r = errors.integer("rank", rank, least=1, most=12 if independent else None)
        signs = itertools.product((-1.0, 1.0), repeat=r) if independent else ((s,) * r for s in (-1.0, 1.0))
        super().__init__([[centre + s * width for s in row] for row in signs])

    def arguments(self) -> Mapping[str, Any]:
        low, high = (float(x) for x in (self.values[0, 0, 0], self.values[-1, 0, 0]))
        # The digits that were given: (mean - spread, mean + spread) may hold them with a rounding error.
        mean, spread = (float(f"{x:.14g}") for x in ((low + high) / 2, (high - low) / 2))
        return {"mean": mean, "spread": spread, "rank": self.rank, "independent": len(self.values) > 2}


class Absent(Finite):
    """No spurious part: one environment, for plain recovery of the invariant matrix."""

    def __init__(self) -> None:
        super().__init__(np.zeros((1, 0, 0)))


class _DiagonalLaw(Law):
    """A continuous law of diagonal matrices: entries mean + spread * z, shared or independent."""

    centre: Leaf
    spread: Leaf
    size: int = eqx.field(static=True)
    independent: bool = eqx.field(static=True)

    def __init__(self, mean: float = 1.0, spread: float = 1.0, *, rank: int = 1, independent: bool = False):
        self.centre = errors.number("mean", mean)
        self.spread = errors.number("spread", spread, least=0)
        self.size = errors.integer("rank", rank, least=1)
        self.independent = bool(independent)

    def arguments(self) -> Mapping[str, Any]:
        return {"mean": self.centre, "spread": self.spread, "rank": self.size, "independent": self.independent}

    @property
    def rank(self) -> int:
        return self.size

    @property
    def mean(self) -> Array:
        return self.centre * jnp.eye(self.size, dtype=float)

    @property
    def second_moment(self) -> float:
        return float(self.size * self.expectation(np.square)[0])

    @property
    def scatter(self) -> Array:
        z, weights = self._quadrature()
        return self.size * self.spread**2 * (weights @ z**2)

    def draw(self, key: PRNGKeyArray) -> Environment:
        z = self._standard(key, (self.size if self.independent else 1,))
        diagonal = self.centre + self.spread * jnp.broadcast_to(z, (self.size,))
        return Environment(jnp.asarray(-1, dtype=jnp.int32), jnp.diag(diagonal))

    @property
    def off_diagonal(self) -> float:
        return 0.0

    def expectation(self, function: ScalarFunction) -> np.ndarray:
        z, weights = self._quadrature()  # every entry has the same law
        return np.full(self.size, weights @ function(self.centre + self.spread * z))

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.independent or self.size == 1:
            z, weights = self._quadrature()
            return (self.centre + self.spread * z)[:, None, None] * np.eye(self.size), weights
        if self.size > 12:
            raise GyrostatError(f"rank must be at most 12 for a quadrature of independent entries; got {self.size}.")
        z, weights = self._quadrature(int(4096 ** (1 / self.size) + 1e-9))
        points = np.stack(np.meshgrid(*[z] * self.size, indexing="ij"), axis=-1).reshape(-1, self.size)
        masses = functools.reduce(np.multiply.outer, [weights] * self.size).ravel()
        return (self.centre + self.spread * points)[:, :, None] * np.eye(self.size), masses

    @abc.abstractmethod
    def _standard(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Array: ...

    @abc.abstractmethod
    def _quadrature(self, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
        """Gauss nodes and weights of the standard entry."""


class Uniform(_DiagonalLaw):
    """Diagonal entries uniform on [mean - spread, mean + spread], shared by default.

    Parameters
    ----------
    mean
        The mean of the entries.
    spread
        Half of the length of the interval.
    rank
        The size of Sigma.
    independent
        True to draw every diagonal entry separately.

    >>> round(float(Uniform(mean=1.0, spread=3.0).variance[0]), 6)
    3.0
    """

    @property
    def bound(self) -> float:
        return float(abs(self.centre) + self.spread)

    def _standard(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
        return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0, dtype=float)

    def _quadrature(self, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
        z, w = np.polynomial.legendre.leggauss(count)
        return z, w / 2


class Gaussian(_DiagonalLaw):
    """Diagonal entries N(mean, spread^2), shared by default; unbounded, so M1 of (6) is infinite.

    Parameters
    ----------
    mean
        The mean of the entries.
    spread
        Their standard deviation.
    rank
        The size of Sigma.
    independent
        True to draw every diagonal entry separately.

    >>> Gaussian(mean=1.0, spread=3.0).bound
    inf
    """

    @property
    def bound(self) -> float:
        return float("inf") if self.spread > 0 else float(abs(self.centre))

    def _standard(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
        return jax.random.normal(key, shape, dtype=float)

    def _quadrature(self, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
        z, w = np.polynomial.hermite_e.hermegauss(count)
        return z, w / w.sum()


class Sampler(Law):
    """A law given by a function of a JAX key that returns a number, a diagonal or a symmetric matrix.

    All randomness must come from the key. The function is compiled once, so a number drawn in another way (by NumPy, by
    Python's ``random``) would never change; such a function is refused.

    Expectations are means of 2^16 fixed draws, and are refused where a few of these decide: the tails are then too heavy.
    ``bound`` is the largest draw if it came up more than once; otherwise it is infinite, because draws cannot tell the
    supremum of a continuous law.

    Parameters
    ----------
    function
        A function of a JAX key that returns a number, a diagonal or a symmetric matrix.
    rank
        The size of Sigma.

    >>> import jax
    >>> law = Sampler(lambda key: 1 + 6 * jax.random.rademacher(key, (), dtype=float))
    >>> law.bound
    7.0
    """

    function: Callable[[PRNGKeyArray], Array] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, function: Callable[[PRNGKeyArray], Array], *, rank: int = 1):
        if not callable(function):
            raise GyrostatError(f"function must take a JAX key and return Sigma; got {function!r}.")
        self.function = function
        self.size = errors.integer("rank", rank, least=1)
        shape = jax.eval_shape(self._matrix, jax.random.key(0)).shape
        if shape != (self.size, self.size):
            raise GyrostatError(
                f"function must return a number, {rank} numbers or a {rank} x {rank} matrix; got {shape}."
            )
        _check_uses_key(function)

    def _matrix(self, key: PRNGKeyArray) -> Array:
        x = jnp.asarray(self.function(key))
        if x.ndim == 0:
            return x * jnp.eye(self.size, dtype=float)
        return jnp.diag(x) if x.ndim == 1 else x

    @property
    def rank(self) -> int:
        return self.size

    def draw(self, key: PRNGKeyArray) -> Environment:
        return Environment(jnp.asarray(-1, dtype=jnp.int32), self._matrix(key))

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        return _sampled(self.function, self.size)

    @property
    def bound(self) -> float:
        sizes = np.abs(_diagonals(self.nodes()[0])).max(axis=1)
        return float(sizes.max()) if (sizes == sizes.max()).sum() > 1 else np.inf

    @property
    def has_second_moment(self) -> bool:
        return bool((_error_of_mean(_squares(self.nodes()[0])) <= LARGEST_ERROR).all())

    def expectation(self, function: ScalarFunction) -> np.ndarray:
        return self._mean(function(_diagonals(self.nodes()[0])))

    @property
    def second_moment(self) -> float:
        return float(self._mean(_squares(self.nodes()[0])))

    def _mean(self, draws: np.ndarray) -> np.ndarray:
        error = _error_of_mean(draws).max()
        if error > LARGEST_ERROR:
            raise GyrostatError(
                f"function has tails so heavy that {len(draws):,} draws leave an expectation {100 * error:.0f} % uncertain: "
                "theory needs a law with a second moment; bound what the function returns, for example with jnp.clip."
            )
        return draws.mean(axis=0)


LARGEST_ERROR = 0.1
"""The largest standard error of an expectation over draws, relative to the mean of the absolute values. A Gaussian law is at
0.006 for its square, and a Student law with 1.5 degrees of freedom, which has no second moment, at 0.3 to 1."""


def _error_of_mean(draws: np.ndarray) -> np.ndarray:
    """The standard error of the mean of draws, relative to the mean of their absolute values."""
    size = np.abs(draws).mean(axis=0)
    return draws.std(axis=0) / np.sqrt(len(draws)) / np.where(size > 0, size, 1.0)


def _squares(values: np.ndarray) -> np.ndarray:
    return np.einsum("nij,nij->n", values, values)


def _check_uses_key(function: Callable[[PRNGKeyArray], Array]) -> None:
    """Refuse a function whose value does not depend on its key, or that draws numbers from elsewhere while it is traced."""
    program = jax.make_jaxpr(lambda key: jnp.asarray(function(key)))(jax.random.key(0))
    if not _depends_on_input(program.jaxpr):
        raise GyrostatError(
            "function does not use its key, so that all environments would be the same: draw with jax.random and the key "
            "(jax.random.choice(key, jnp.array([-1.0, 1.0])), not NumPy's rng.choice), or use Finite for a fixed list."
        )
    first = program_and_constants(function, jax.random.key(0))
    if any(program_and_constants(function, jax.random.key(k % 2)) != first for k in range(TRACES)):
        raise GyrostatError(
            "function draws numbers that do not come from its key; it is compiled once, so they would never change: "
            "draw all of them with jax.random and the key."
        )


def _depends_on_input(jaxpr: Any) -> bool:
    """Whether the output of a traced function depends on its input."""
    reached = set(jaxpr.invars)
    for equation in jaxpr.eqns:
        if any(not isinstance(v, jax.extend.core.Literal) and v in reached for v in equation.invars):
            reached.update(equation.outvars)
    return any(not isinstance(v, jax.extend.core.Literal) and v in reached for v in jaxpr.outvars)


_NODES: dict[tuple[Any, int], tuple[np.ndarray, np.ndarray]] = {}


def _sampled(function: Callable[[PRNGKeyArray], Array], size: int, count: int = 2**16) -> tuple[np.ndarray, np.ndarray]:
    if (function, size) not in _NODES:
        # Also called while a run is traced (diagnostics use the mean of the law), hence the eager context.
        with jax.ensure_compile_time_eval(), double():
            law = Sampler(function, rank=size)
            keys = jax.random.split(jax.random.key(0), count)
            values = np.asarray(jax.jit(jax.vmap(law._matrix))(keys), dtype=np.float64)
        _NODES[function, size] = values, np.full(count, 1 / count)
    return _NODES[function, size]


class Congruent(Law):
    """``R Sigma R^T`` for Sigma of another law: the same spurious part in another basis, which may be smaller."""

    law: Law
    matrix: Leaf

    @property
    def rank(self) -> int:
        return self.matrix.shape[-2]

    @property
    def has_second_moment(self) -> bool:
        return self.law.has_second_moment

    @property
    def is_finite(self) -> bool:
        return self.law.is_finite

    @property
    def count(self) -> int:
        """The number of environments of the underlying finite law."""
        return self.law.count  # type: ignore[attr-defined]

    def at(self, index: Int[Array, ""]) -> Environment:
        """Environment number ``index`` of the underlying finite law, in this basis."""
        return self._congruent(self.law.at(index))  # type: ignore[attr-defined]

    @property
    def weights(self) -> np.ndarray:
        """The weights of the underlying finite law."""
        return self.law.weights  # type: ignore[attr-defined]

    def _congruent(self, environment: Environment) -> Environment:
        R = self.matrix
        return environment._replace(sigma=R @ environment.sigma @ R.T)

    @property
    def scatter(self) -> Float[Array, ""]:
        values, weights = self.law.nodes()
        R = self.matrix
        gap = R @ jnp.asarray(values) @ R.T - self.mean
        return jnp.einsum("n,nij,nij->", jnp.asarray(weights), gap, gap)

    def draw(self, key: PRNGKeyArray) -> Environment:
        return self._congruent(self.law.draw(key))

    @property
    def bound(self) -> float:
        return super().bound if np.isfinite(self.law.bound) else np.inf

    @property
    def mean(self) -> Array:
        return self.matrix @ self.law.mean @ self.matrix.T

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        values, weights = self.law.nodes()
        R = np.asarray(self.matrix)
        return R @ values @ R.T, weights
