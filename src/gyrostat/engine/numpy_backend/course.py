"""The steps of some seeds, a block at a time, so that a run can be dropped between two blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gyrostat.engine.compile import Cell
from gyrostat.engine.numpy_backend.draws import LANES, STEPS
from gyrostat.engine.numpy_backend.looks import LOOKS, Sight
from gyrostat.engine.numpy_backend.readings import Reading
from gyrostat.engine.numpy_backend.seen import reader
from gyrostat.engine.numpy_backend.truth import Truth, truth
from gyrostat.engine.step import LIMIT
from gyrostat.jax_tools.float64 import double

Values = dict[str, np.ndarray]
LONG = 1000


def course(
    cell: Cell, record: tuple[str, ...], grid: np.ndarray, first: int, seeds: int, dtype: type
) -> Iterator[Values | None]:
    """None after every block of steps, at the end the values of ``record`` at the steps of ``grid`` and ``diverged``.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(400))
    >>> *_, last = course((gs.HeteroSGD(0.05), problem), ("signal",), np.arange(0, 101, 20), 0, 2, float)
    >>> last["signal"].shape
    (2, 6)
    """
    assert seeds <= LANES
    algorithm, problem = cell
    of = truth(problem.environments, first, seeds, dtype)
    start: Any = algorithm.start
    read, run = reader(cell, of, first, seeds, dtype), _Run(of, float(start.scale), record, grid)
    rates, keeps = _rates(algorithm, int(grid[-1]))
    for block in range(len(rates)):
        run.advance(read(block), block * STEPS, rates[block], keeps[block])
        if (block + 1) * STEPS < grid[-1]:
            yield None
    yield run.values()


def _rates(algorithm: Any, num_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """What multiplies the gradient and the parameters at every step (block, step)."""
    with double():
        schedule = jax.tree.map(lambda x: jnp.asarray(x) if eqx.is_array_like(x) else x, algorithm.schedule)
        # One program serves a thousand lengths: no shape depends on the number of steps.
        found = [_scheduled(schedule, start + jnp.arange(LONG)) for start in range(0, num_steps, LONG)]
    rates, ridges = (np.concatenate(x).reshape(-1, STEPS)[: -(-num_steps // STEPS)] for x in zip(*found, strict=True))
    return -float(algorithm.model.gradient_factor) * rates, 1 - float(algorithm.rule.decay) * rates * ridges


@eqx.filter_jit
def _scheduled(schedule: Any, steps: jax.Array) -> Any:
    return jax.vmap(schedule)(steps)


class _Run:
    """Factors U (seed, d, d), and what was seen of them."""

    def __init__(self, of: Truth, scale: float, record: tuple[str, ...], grid: np.ndarray):
        self.of, self.grid, self.seen = of, grid, 0
        seeds, d = of.invariant.shape[:2]
        self.U = np.repeat(scale * np.eye(d, dtype=of.invariant.dtype)[None], seeds, axis=0)
        self.next, self.A = np.empty_like(self.U), np.empty_like(self.U)
        self.diagonal = np.einsum("bii->bi", self.A)
        self.diverged = np.full(seeds, -1)
        self.found: dict[str, list[np.ndarray]] = {name: [] for name in record}

    def advance(self, read: Reading, start: int, rates: np.ndarray, keeps: np.ndarray) -> None:
        """The steps of a block: ``U <- (keep + rate * G) U``."""
        # What has left the finite range goes on, as in the library's loop, and is NaN where it is looked at.
        with np.errstate(all="ignore"):
            for t in range(min(STEPS, int(self.grid[-1]) - start)):
                self._look(start + t)
                read(self.A, self.next, t, float(rates[t]))
                self.diagonal += keeps[t]
                np.matmul(self.A, self.U, out=self.next)
                self.U, self.next = self.next, self.U
            if start + STEPS >= self.grid[-1]:
                self._look(int(self.grid[-1]))

    def _look(self, t: int) -> None:
        """Make the product, see whether it is finite, and record it when it is due."""
        # With a transposed view the product takes half as long again as with a copy.
        np.copyto(self.next, self.U.swapaxes(1, 2))
        np.matmul(self.U, self.next, out=self.A)
        size = self.diagonal.sum(axis=1)
        self.diverged[(self.diverged < 0) & ~(size < LIMIT**2)] = t
        while self.seen < len(self.grid) and self.grid[self.seen] == t:
            sight = Sight(self.U, self.A, self.of, self.next)
            for name, values in self.found.items():
                values.append(LOOKS[name](sight).astype(float))
                values[-1][self.diverged >= 0] = np.nan
            self.seen += 1

    def values(self) -> Values:
        """What was recorded (seed, step, ...)."""
        return {name: np.stack(x, axis=1) for name, x in self.found.items()} | {"diverged": self.diverged}
