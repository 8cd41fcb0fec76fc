"""Inner-product spaces of products, targets and residuals: vectors, rectangular and symmetric matrices, any arrays.

A Gaussian measurement needs only two things of its space: coordinates in which the inner product is the Euclidean one, and
the standard Gaussian of that inner product. The exact-in-law measurements are therefore written once for all spaces.
"""

from __future__ import annotations

import abc
import functools
import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from gyrostat.jax_tools.fast_random import normal
from gyrostat.models.symmetric_coordinates import upper_triangle


class Space(eqx.Module):
    """A finite-dimensional inner-product space, isometric to R^size through its coordinates."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of an element as an array."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of coordinates."""

    @abc.abstractmethod
    def coordinates(self, element: Array) -> Float[Array, " size"]:
        """Isometric coordinates: ``<A, B> = coordinates(A) . coordinates(B)``."""

    @abc.abstractmethod
    def element(self, coordinates: Float[Array, " size"]) -> Array:
        """The element with these coordinates; the inverse of :meth:`coordinates`."""

    def project(self, array: Array) -> Array:
        """The nearest element of the space to any array of its shape."""
        return array

    def gaussian(self, key: PRNGKeyArray) -> Array:
        """A standard Gaussian element: independent N(0, 1) coordinates."""
        return self.element(normal(key, self.size))


class _Entries(Space):
    """Arrays with the sum of the products of their entries as inner product: the entries are the coordinates."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def coordinates(self, element: Array) -> Float[Array, " size"]:
        return element.reshape(self.size)

    def element(self, coordinates: Float[Array, " size"]) -> Array:
        return coordinates.reshape(self.shape)


class Vectors(_Entries):
    """R^p with the dot product.

    >>> Vectors(3).size
    3
    """

    length: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.length,)


class RectangularMatrices(_Entries):
    """Rectangular matrices with ``<A, B> = trace(A^T B)``; the standard Gaussian has iid N(0, 1) entries."""

    rows: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns)


class Arrays(_Entries):
    """Arrays of any shape.

    >>> Arrays((2, 3, 4)).size
    24
    """

    sides: tuple[int, ...] = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sides


def space_of(shape: tuple[int, ...]) -> Space:
    """The space of all arrays of a shape.

    >>> space_of((2, 3))
    RectangularMatrices(rows=2, columns=3)
    """
    if len(shape) == 1:
        return Vectors(*shape)
    return RectangularMatrices(*shape) if len(shape) == 2 else Arrays(tuple(shape))


class SymmetricMatrices(Space):
    """Symmetric d x d matrices; the standard Gaussian has N(0, 1) on the diagonal and N(0, 1/2) off it.

    This is the law of a symmetrised matrix of iid N(0, 1) entries, the measurement of Xu 2024, section B.2.

    >>> import numpy as np
    >>> space = SymmetricMatrices(2)
    >>> [round(float(x), 3) for x in space.coordinates(np.array([[1.0, 2.0], [2.0, 3.0]]))]
    [1.0, 2.828, 3.0]
    """

    dimension: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dimension, self.dimension)

    @property
    def size(self) -> int:
        return self.dimension * (self.dimension + 1) // 2

    def project(self, array: Array) -> Array:
        return (array + array.T) / 2

    def coordinates(self, element: Array) -> Array:
        rows, columns, scale, _ = _triangle(self.dimension, jnp.result_type(float))
        return jnp.asarray(element)[rows, columns] * scale

    def element(self, coordinates: Array) -> Array:
        _, _, scale, where = _triangle(self.dimension, jnp.result_type(float))
        return (coordinates / scale)[where]


@functools.lru_cache(maxsize=64)
def _triangle(d: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The tables of :func:`upper_triangle` as constants of a program: int32 indices, and a scale of the given precision.

    JAX caches converted constants by the identity of the array, so an array that was a constant of a program in double
    precision cannot be used in single precision. Each precision has its own.
    """
    table = upper_triangle(d)
    rows, columns, where = (x.astype(np.int32) for x in (table.rows, table.columns, table.position))
    return rows, columns, table.scale.astype(dtype), where
