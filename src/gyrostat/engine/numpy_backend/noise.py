"""The Gaussian noise of batches, drawn once and read again at every move of a slider.

The noise of step t of a seed depends on neither the step size nor the strength of anything, and drawing it takes several
times as long as using it. The numbers are those that :func:`gyrostat.run` draws.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from gyrostat.engine.numpy_backend import draws
from gyrostat.jax_tools.float64 import double
from gyrostat.models.spaces import SymmetricMatrices
from gyrostat.models.symmetric_coordinates import upper_triangle

MOST = 250_000_000
"""Bytes that are kept."""


class Source(NamedTuple):
    """Where noise comes from: the way of its keys, the batches of a step (0: one, without a number), the first seed."""

    way: str
    voices: int
    first: int


class Noise(NamedTuple):
    """Of a block of steps: normals (step, voice, seed, extra) and symmetric Gaussian matrices (step, voice, seed, d, d)."""

    normals: np.ndarray
    matrices: np.ndarray


class Shelf:
    """What was used last, up to :data:`MOST` bytes."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.kept: OrderedDict[tuple, np.ndarray] = OrderedDict()

    def keep(self, label: tuple, make: Callable[[], np.ndarray]) -> np.ndarray:
        """The array of this label, made if it is not there.

        >>> shelf = Shelf(20)
        >>> [shelf.keep((i,), lambda: np.zeros(2)).size for i in range(3)], list(shelf.kept)
        ([2, 2, 2], [(2,)])
        """
        if label not in self.kept:
            self.kept[label] = make()
            while len(self.kept) > 1 and sum(x.nbytes for x in self.kept.values()) > self.most:
                self.kept.popitem(last=False)
        self.kept.move_to_end(label)
        return self.kept[label]

    def noise(self, source: Source, block: int, extra: int, dimension: int, dtype: type) -> Noise:
        """The noise of a block of steps: ``extra`` normals, then a matrix."""
        needed = extra + SymmetricMatrices(dimension).size
        pieces = -(-needed // draws.PIECE)
        raw = self.keep((source, block, pieces), lambda: _streams(source, block, pieces))
        label = (source, block, extra, dimension, np.dtype(dtype).name)
        matrices = self.keep(label, lambda: _matrices(raw[..., extra:needed], dimension, dtype))
        return Noise(raw[..., :extra], matrices)


def _streams(source: Source, block: int, pieces: int) -> np.ndarray:
    with double():
        _, stepping = draws.run_keys(jnp.asarray(source.first))
        keys = draws.normal_keys(stepping, jnp.asarray(block * draws.STEPS), source.way, source.voices)
        keys = jnp.swapaxes(keys, 1, 2)
        flat = keys.reshape(-1)
        parts = [draws.normals(flat, jnp.asarray(i * draws.PIECE)) for i in range(pieces)]
        return np.concatenate([np.asarray(part).reshape(*keys.shape, -1) for part in parts], axis=-1)


def _matrices(coordinates: np.ndarray, dimension: int, dtype: type) -> np.ndarray:
    """Symmetric matrices with these isometric coordinates, as :class:`SymmetricMatrices` makes them."""
    table = upper_triangle(dimension)
    # XLA multiplies by the inverse of a constant instead of dividing by it; `smat` divides, which rounds differently.
    return np.take((coordinates * (1 / table.scale)).astype(dtype), table.position, axis=-1)


SHELF = Shelf()
"""That of this process."""
