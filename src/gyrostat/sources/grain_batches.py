"""Batches of one environment each for Grain, the data loader of JAX users. Neither Grain nor PyTorch is imported."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sources.one_environment_batches import BatchPlan, BatchRules, EpochCoverage, RowsByEnvironment

KEPT_EPOCHS = 4
"""Epochs whose rows are remembered; Grain's threads read ahead and out of order."""


def stacked(records: Sequence) -> Any:
    """Records of one structure (mappings, tuples, lists, arrays, numbers) as one structure of NumPy arrays.

    >>> stacked([{"x": 1, "y": [2, 3]}, {"x": 4, "y": [5, 6]}])
    {'x': array([1, 4]), 'y': [array([2, 5]), array([3, 6])]}
    """
    first = records[0]
    if isinstance(first, Mapping):
        return {key: stacked([record[key] for record in records]) for key in first}
    if isinstance(first, tuple | list):
        return type(first)([stacked(parts) for parts in zip(*records, strict=True)])
    return np.stack(records)


class GrainEnvironmentBatches:
    """Batches in which all records come from ONE environment, as a random-access source for ``grain.MapDataset.source``.

    Batch number i is batch ``i % batches`` of epoch ``i // batches``, with the rows that
    :class:`gyrostat.torch.EnvironmentBatchSampler` with the same arguments gives. Grain's state of an iterator is the number of
    the next batch, so its checkpoints continue exactly, with any number of threads or workers::

        batches = GrainEnvironmentBatches(data, labels, 32, order="shuffled", num_epochs=10)
        iterator = iter(grain.MapDataset.source(batches).to_iter_dataset())

    With several JAX processes each gets its share of every batch; do not slice the data set by process as well.

    Parameters
    ----------
    data : a sequence of records, or any object with ``__getitem__``
    environments : one label for each record
    batch_size : records of a batch, for each process
    order, seed, small, drop_last, hold, weights, num_batches : as in :class:`gyrostat.torch.EnvironmentBatchSampler`
    num_epochs : how many epochs there are; None for as many as are read
    collate : makes a batch of a list of records
    rank, num_replicas : the number of this process and their count; by default those of JAX

    >>> batches = GrainEnvironmentBatches([10, 20, 30, 40], ["a", "b", "a", "b"], 2, order="cyclic")
    >>> sorted(batches[0].tolist()), batches.environment_of(0)
    ([10, 30], 'a')
    """

    def __init__(
        self,
        data: Any,
        environments: Any,
        batch_size: int,
        *,
        order: str = "iid",
        seed: int = 0,
        small: str = "error",
        drop_last: bool = True,
        hold: int = 1,
        weights: Mapping[Any, float] | None = None,
        num_batches: int | None = None,
        num_epochs: int | None = None,
        collate: Callable[[list], Any] = stacked,
        rank: int | None = None,
        num_replicas: int | None = None,
    ):
        self.data, self.collate, self.seed = data, collate, errors.integer("seed", seed)
        self.num_epochs = None if num_epochs is None else errors.integer("num_epochs", num_epochs, least=1)
        if (rank is None) != (num_replicas is None):
            raise GyrostatError(
                f"rank and num_replicas belong together; got rank={rank} and num_replicas={num_replicas}."
            )
        self.rank, self.num_replicas = _jax_process() if rank is None or num_replicas is None else (rank, num_replicas)
        errors.integer("rank", self.rank, most=self.num_replicas - 1, most_because=", num_replicas - 1")
        labelled = RowsByEnvironment(environments)
        if hasattr(data, "__len__") and len(data) != labelled.codes.size:
            raise GyrostatError(
                f"environments must hold one label for each of the {len(data)} records; got {labelled.codes.size}."
            )
        rules = BatchRules(batch_size, order, small, drop_last, hold, num_batches, weights)
        self._plan = BatchPlan(labelled, rules, self.num_replicas)
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._epochs: dict[int, tuple[Iterator[np.ndarray], list[np.ndarray]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes deal out the rows again."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_epochs")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __repr__(self) -> str:
        rules, labelled = self._plan.rules, self._plan.labelled
        return (
            f"GrainEnvironmentBatches({labelled.codes.size} records of {len(labelled.labels)} environments, {rules}, "
            f"seed={self.seed}, num_replicas={self.num_replicas}, labels={labelled.digest})"
        )

    def __len__(self) -> int:
        epochs = sys.maxsize // self._plan.length if self.num_epochs is None else self.num_epochs
        return epochs * self._plan.length

    def __getitem__(self, index: int) -> Any:
        return self.collate([self.data[row] for row in self.rows(index)])

    def rows(self, index: int) -> list[int]:
        """The row numbers of a batch, for this process.

        Parameters
        ----------
        index : the number of the batch, counted over all epochs
        """
        return self._step(index)[self.rank :: self.num_replicas].tolist()

    def environment_of(self, index: int) -> Any:
        """The label of a batch's environment.

        Parameters
        ----------
        index : the number of the batch, counted over all epochs
        """
        return self._plan.labelled.environment_of(self._step(index))

    def coverage(self, epoch: int = 0) -> EpochCoverage:
        """What an epoch covers of each environment.

        Parameters
        ----------
        epoch : the number of the epoch
        """
        return self._plan.coverage(self.seed, errors.integer("epoch", epoch))

    def _step(self, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        epoch, number = divmod(index, self._plan.length)
        with self._lock:
            if epoch not in self._epochs:
                if len(self._epochs) == KEPT_EPOCHS:
                    del self._epochs[min(self._epochs)]
                self._epochs[epoch] = (self._plan.batches(self.seed, epoch), [])
            coming, done = self._epochs[epoch]
            while len(done) <= number:
                done.append(next(coming))
            return done[number]


def _jax_process() -> tuple[int, int]:
    import jax

    return jax.process_index(), jax.process_count()
