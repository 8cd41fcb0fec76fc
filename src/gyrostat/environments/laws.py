"""Laws of the spurious part: how Sigma_e (r2 x r2) varies over environments.

:class:`TwoPoint`, :class:`Finite`, :class:`Uniform` and :class:`Gaussian` are laws, :class:`Sampler` is one that a function
draws, and :class:`Absent` that of no spurious part. Derive one of your own from :class:`Law`, or from :class:`RandomLaw` if its
parameters differ from seed to seed.

In this file, ``xi`` is one diagonal entry of Sigma_e, the scalar in the theory of Xu 2024.
"""

from __future__ import annotations

import abc
import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.fast_random import uniform
from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.readable_modules import ReadableModule, text_of
from gyrostat.typing import Leaf

__all__ = ["Absent", "Finite", "Gaussian", "Law", "RandomLaw", "Sampler", "TwoPoint", "Uniform"]


def __dir__() -> list[str]:
    return __all__


ScalarFunction = Callable[[np.ndarray], np.ndarray]
AnyModule = TypeVar("AnyModule", bound=ReadableModule)


class Environment(NamedTuple):
    """One environment: its index in a finite law (-1 in any other) and its Sigma."""

    index: Int[Array, ""]  # type: ignore[assignment]  # hides tuple.index, which an environment does not need
    sigma: Float[Array, "r2 r2"]


class Law(ReadableModule):
    """A distribution of symmetric matrices Sigma_e, with the moments that the theory needs.

    A law of your own defines :attr:`rank`, :meth:`draw` and :meth:`nodes`; all moments follow. :class:`Sampler` is a law around
    a function, and a :class:`RandomLaw` has new parameters in every run.

    >>> import jax
    >>> class Arcsine(Law):
    ...     rank = 1
    ...     def draw(self, key):
    ...         return jax.numpy.cos(jax.random.uniform(key, maxval=jax.numpy.pi))
    ...     def nodes(self):
    ...         angles = (np.arange(100) + 0.5) * np.pi / 100  # Chebyshev's quadrature
    ...         return np.cos(angles)[:, None, None], np.full(100, 0.01)
    >>> round(Arcsine().second_moment, 12)
    0.5
    """

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """The size r2 of Sigma."""

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray) -> Array:
        """A random Sigma: a number (times the identity), a diagonal or a symmetric matrix."""

    @abc.abstractmethod
    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Values (n, r2, r2) and weights (n,) whose weighted sums are the law's expectations.

        Exact for finite laws, a quadrature for uniform and Gaussian ones, 2^16 fixed draws for a user's sampler.
        """

    def environment(self, key: PRNGKeyArray) -> Environment:
        """A random environment: Sigma as :meth:`draw` gives it, as a matrix."""
        draw, rank = self.draw(key), self.rank
        if isinstance(draw, Environment):  # a law that was written for version 0.2
            return draw
        sigma = jnp.asarray(draw, dtype=float)
        if sigma.shape not in ((), (rank,), (rank, rank)):
            raise GyrostatError(
                f"the draw function of {type(self).__name__} must return a number, {rank} numbers or a {rank} x {rank} matrix, "
                f"because its rank is {rank}; got shape {sigma.shape}."
            )
        if sigma.ndim < 2:
            sigma = jnp.diag(sigma) if sigma.ndim else sigma * jnp.eye(rank, dtype=float)
        return Environment(jnp.asarray(-1, dtype=jnp.int32), sigma)

    def in_basis(self, matrix: Float[Array, "s r2"]) -> Law:
        """The law of ``R Sigma R^T``: the same spurious part in another basis, which may be smaller.

        >>> Finite([2.0]).in_basis([[3.0]]).values.ravel().tolist()
        [18.0]
        """
        R = _array("matrix", matrix, ndim=2)
        if R.shape[1] != self.rank:
            raise GyrostatError(f"matrix must have {self.rank} columns, the rank of the law; got shape {R.shape}.")
        return self._in_basis(R)

    def _in_basis(self, R: Array) -> Law:
        return _InBasis(self, R)

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
        gap = values - self.mean
        return jnp.einsum("n,nij,nij->", weights, gap, gap)

    @property
    def off_diagonal(self) -> float:
        """sup_e max_i sum_{j != i} |Sigma_ij|, the left side of condition (7) without its r2^2."""
        sizes = np.abs(self.nodes()[0])
        return float((sizes.sum(axis=2) - _diagonals(sizes)).max(initial=0.0))


def _diagonals(values: np.ndarray) -> np.ndarray:
    return np.diagonal(values, axis1=1, axis2=2)


# --- finite laws -------------------------------------------------------------------------------------------------------------


class Finite(Law):
    """A finite list of environments with weights.

    Parameters
    ----------
    values
        K numbers s_e (Sigma_e = s_e I_rank), K vectors (diagonals) or K symmetric matrices.
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
        x = _array("values", values, ndim=(1, 2, 3))
        if len(x) == 0:
            raise GyrostatError("values lists zero environments; give at least one.")
        if x.ndim == 1:
            x = x[:, None, None] * np.eye(errors.integer("rank", rank))
        elif x.ndim == 2:
            x = x[:, :, None] * np.eye(x.shape[1])
        if x.shape[1] != x.shape[2]:
            raise GyrostatError(f"values must hold square matrices; got shape {x.shape}.")
        if isinstance(x, np.ndarray) and not np.allclose(x, np.swapaxes(x, 1, 2), atol=1e-12):
            raise GyrostatError("values must hold symmetric matrices; symmetrise them with (S + S.T) / 2.")
        p = np.full(len(x), 1 / len(x)) if weights is None else _array("weights", weights, ndim=1)
        if p.shape != (len(x),):
            raise GyrostatError(f"weights must have one entry per environment ({len(x)}); got {p.size}.")
        if isinstance(p, np.ndarray) and ((p < 0).any() or abs(p.sum() - 1) > 1e-9):
            raise GyrostatError(
                f"weights must be non-negative and sum to one; got sum {p.sum():.6g}, least {p.min():.6g}: "
                "divide them by their sum."
            )
        self.values, self.weights = x, p

    def implied(self) -> Mapping[str, Any]:
        return {"weights": np.full(self.count, 1 / self.count)}

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

    def _in_basis(self, R: Array) -> Law:
        return unchecked(Finite, values=R @ self.values @ R.T, weights=self.weights)

    def at(self, index: Int[Array, ""]) -> Environment:
        """Environment number ``index``."""
        return Environment(jnp.asarray(index, dtype=jnp.int32), jnp.asarray(self.values)[index])

    def environment(self, key: PRNGKeyArray) -> Environment:
        # A sum instead of a search: a loop costs more to compile and to run than a pass over all environments.
        edges = jnp.cumsum(jnp.asarray(self.weights))
        return self.at(jnp.minimum(jnp.sum(uniform(key, 1) >= edges), self.count - 1))

    def draw(self, key: PRNGKeyArray) -> Array:
        return self.environment(key).sigma


class TwoPoint(Finite):
    """Sigma_e = (mean - spread) I or (mean + spread) I with probability 1/2 each (Xu 2024, section 5).

    Parameters
    ----------
    mean
        The mean strength.
    spread
        The paper's heterogeneity M: strengths are ``mean - spread`` and ``mean + spread``.
    rank
        The size of Sigma.
    independent
        True to draw the sign of every diagonal entry separately: 2^rank environments.

    >>> TwoPoint(mean=1.0, spread=6.0).values.ravel().tolist()
    [-5.0, 7.0]
    """

    # For the text alone: the values hold them with rounding errors.
    centre: Leaf
    spread: Leaf

    def __init__(self, mean: float = 1.0, spread: float = 1.0, *, rank: int = 1, independent: bool = False):
        self.centre, self.spread = _number("mean", mean), _number("spread", spread, least=0)
        r = errors.integer("rank", rank, least=1, most=12 if independent else None)
        signs = list(itertools.product((-1.0, 1.0), repeat=r)) if independent else [(-1.0,) * r, (1.0,) * r]
        super().__init__(self.centre + self.spread * np.array(signs))

    def arguments(self) -> Mapping[str, Any]:
        return {"mean": self.centre, "spread": self.spread, "rank": self.rank, "independent": len(self.values) > 2}


class Absent(Finite):
    """No spurious part: one environment, for plain recovery of the invariant matrix."""

    def __init__(self) -> None:
        super().__init__(np.zeros((1, 0, 0)))


# --- continuous laws ---------------------------------------------------------------------------------------------------------


class _DiagonalLaw(Law):
    """A continuous law of diagonal matrices: entries mean + spread * z, shared or independent."""

    centre: Leaf
    spread: Leaf
    size: int = eqx.field(static=True)
    independent: bool = eqx.field(static=True)

    def __init__(self, mean: float = 1.0, spread: float = 1.0, *, rank: int = 1, independent: bool = False):
        self.centre, self.spread = _number("mean", mean), _number("spread", spread, least=0)
        self.size, self.independent = errors.integer("rank", rank, least=1), bool(independent)

    def arguments(self) -> Mapping[str, Any]:
        return {"mean": self.centre, "spread": self.spread, "rank": self.size, "independent": self.independent}

    @abc.abstractmethod
    def _standard(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Array:
        """Draws of z."""

    @abc.abstractmethod
    def _quadrature(self, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
        """Gauss nodes and weights of z."""

    @property
    def rank(self) -> int:
        return self.size

    def draw(self, key: PRNGKeyArray) -> Array:
        z = self._standard(key, (self.size if self.independent else 1,))
        return self.centre + self.spread * jnp.broadcast_to(z, (self.size,))

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        dimension = self.size if self.independent else 1
        if dimension > 12:
            raise GyrostatError(f"rank must be at most 12 for a quadrature of independent entries; got {dimension}.")
        z, weights = self._quadrature() if dimension == 1 else self._quadrature(int(4096 ** (1 / dimension) + 1e-9))
        points = np.stack(np.meshgrid(*[z] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
        masses = functools.reduce(np.multiply.outer, [weights] * dimension).ravel()
        return (self.centre + self.spread * points)[:, :, None] * np.eye(self.size), masses

    # All entries have one law, so these need no grid over all of them, which would be coarser.

    def expectation(self, function: ScalarFunction) -> np.ndarray:
        z, weights = self._quadrature()
        return np.full(self.size, weights @ function(self.centre + self.spread * z))

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

    @property
    def off_diagonal(self) -> float:
        return 0.0


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
        z, w = np.polynomial.hermite_e.hermegauss(count)  # the weights of more nodes underflow
        return z, w / w.sum()


# --- laws around a function of the key ---------------------------------------------------------------------------------------


class Sampler(Law):
    """A law given by a function of a JAX key that returns a number, a diagonal or a symmetric matrix.

    The function is compiled once, so all its randomness must come from the key: one that does not use the key is refused.

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
        self.function = errors.function_of("function", function, "a JAX key that returns Sigma")
        self.size = errors.integer("rank", rank, least=1)
        if not _uses_key(lambda key: self.environment(key).sigma):
            raise GyrostatError(
                "function does not use its key, so that all environments would be the same: draw with jax.random and the "
                "key (jax.random.choice(key, jnp.array([-1.0, 1.0])), not NumPy's rng.choice), or use Finite for a fixed "
                "list."
            )

    @property
    def rank(self) -> int:
        return self.size

    def draw(self, key: PRNGKeyArray) -> Array:
        return self.function(key)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        return _fixed_draws(self)

    @property
    def bound(self) -> float:
        sizes = np.abs(_diagonals(self.nodes()[0])).max(axis=1)
        return float(sizes.max()) if (sizes == sizes.max()).sum() > 1 else np.inf

    @property
    def has_second_moment(self) -> bool:
        return bool(_error_of_mean(_squares(self.nodes()[0])) <= LARGEST_ERROR)

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


def _uses_key(function: Callable[[PRNGKeyArray], Any]) -> bool:
    """Whether what a function returns depends on its key."""
    program = jax.make_jaxpr(function)(jax.random.key(0)).jaxpr
    _, used = dce_jaxpr(program, [True] * len(program.outvars))
    return any(used)


@functools.lru_cache(maxsize=32)
def _fixed_draws(law: Sampler) -> tuple[np.ndarray, np.ndarray]:
    # Also called while a run is traced (diagnostics use the mean of the law), hence the eager context.
    with jax.ensure_compile_time_eval(), double():
        draw = jax.jit(jax.vmap(lambda key: law.environment(key).sigma))
        values = np.asarray(draw(jax.random.split(jax.random.key(0), 2**16)), dtype=np.float64)
    return values, np.full(len(values), 1 / len(values))


# --- laws that every run draws, and laws in another basis --------------------------------------------------------------------


class RandomLaw(Law):
    """A law with parameters of its own in every run: each seed draws a law, from which its environments are drawn.

    A subclass defines :meth:`draw_law`. There are no moments that hold for all runs, so the theory refuses such a law, while
    each run knows its own. The laws of all runs are of one kind and have equally many environments.

    >>> import jax
    >>> class Sites(RandomLaw):
    ...     def draw_law(self, key):
    ...         return Finite(1 + 6 * jax.random.normal(key, (4,)))
    >>> Sites().count, Sites().draw_law(jax.random.key(0)) == Sites().draw_law(jax.random.key(1))
    (4, False)
    """

    @abc.abstractmethod
    def draw_law(self, key: PRNGKeyArray) -> Law:
        """The law of the run with this key."""

    def __check_init__(self) -> None:
        # The example is drawn outside a program, where all its numbers are checked.
        errors.instance(f"{type(self).__name__}.draw_law", self._example, Law, "a function that returns a Law")
        if not _uses_key(self.draw_law):
            raise GyrostatError(
                f"{type(self).__name__}.draw_law does not use its key, so that all runs would have the same law: draw its "
                "parameters with jax.random and the key, or use the law that it returns."
            )

    @property
    def _example(self) -> Any:
        with double():
            return self.draw_law(jax.random.key(0))

    @property
    def _form(self) -> Any:
        """The law of any run, with shapes in place of numbers."""
        return jax.eval_shape(self.draw_law, jax.random.key(0))

    @property
    def rank(self) -> int:
        return self._form.rank

    @property
    def is_finite(self) -> bool:
        return self._form.is_finite

    @property
    def count(self) -> int:
        """The number of environments K of a finite law."""
        return self._form.count

    @property
    def weights(self) -> np.ndarray:
        """The weights of the environments in one run: unequal if those of other runs are."""
        return self._example.weights

    @property
    def has_second_moment(self) -> bool:
        return False

    def _in_basis(self, R: Array) -> Law:
        return _RandomInBasis(self, R)

    def draw(self, key: PRNGKeyArray) -> Array:
        raise self._refusal("environments")

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        raise self._refusal("moments")

    def _refusal(self, wanted: str) -> GyrostatError:
        return GyrostatError(
            f"{type(self).__name__} has no {wanted} of its own, because every run draws another law: ask draw_law(key), the "
            "law of one run."
        )


def law_of_run(law: Law, key: PRNGKeyArray) -> Law:
    """The law of the run whose environments are drawn by ``key``: ``law`` itself, unless it is a :class:`RandomLaw`."""
    # The number is far from the small ones that splitting a key folds into it.
    return law.draw_law(jax.random.fold_in(key, 2**30)) if isinstance(law, RandomLaw) else law


class _InBasis(Law):
    law: Law
    matrix: Leaf

    def __repr__(self) -> str:
        return f"{self.law!r}.in_basis({text_of(self.matrix)})"

    @property
    def rank(self) -> int:
        return self.matrix.shape[-2]

    @property
    def has_second_moment(self) -> bool:
        return self.law.has_second_moment

    def draw(self, key: PRNGKeyArray) -> Array:
        return self.matrix @ self.law.environment(key).sigma @ self.matrix.T

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        values, weights = self.law.nodes()
        return self.matrix @ values @ self.matrix.T, weights

    @property
    def bound(self) -> float:
        return super().bound if np.isfinite(self.law.bound) else np.inf

    @property
    def mean(self) -> Array:
        return self.matrix @ self.law.mean @ self.matrix.T


class _RandomInBasis(RandomLaw):
    law: RandomLaw
    matrix: Leaf

    __repr__ = _InBasis.__repr__

    def draw_law(self, key: PRNGKeyArray) -> Law:
        return self.law.draw_law(key).in_basis(self.matrix)


def unchecked(kind: type[AnyModule], **fields: Any) -> AnyModule:
    """A module from traced arrays, whose numbers (orthonormal columns, symmetry) cannot be checked while tracing."""
    module = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(module, name, value)
    return module


# --- arguments of constructors -----------------------------------------------------------------------------------------------
# A :class:`RandomLaw` draws them inside a program, where their numbers are not known yet; its example is checked in full.


def _number(name: str, value: Any, **bounds: float) -> Any:
    return value if isinstance(value, jax.core.Tracer) else errors.number(name, value, **bounds)


def _array(name: str, value: Any, *, ndim: int | tuple[int, ...]) -> Any:
    return value if isinstance(value, jax.core.Tracer) else errors.array(name, value, ndim=ndim)
