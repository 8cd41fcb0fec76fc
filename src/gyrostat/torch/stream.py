"""Batches of one environment each from a stream of samples, with a bounded buffer for each environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from torch.utils.data import IterableDataset, default_collate, get_worker_info

import torch
from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sources.row_labels import coded
from gyrostat.torch.sharding import Process, check_pair, refuse_missing_group, refuse_mixing_trainer, this_process
from torch import distributed

STREAM_ORDERS = ("arrival", "iid", "cyclic", "shuffled")


class EnvironmentBatchStream(IterableDataset):
    """Batches in which all samples come from ONE environment, for data that can only be read from beginning to end.

    Use it as ``DataLoader(stream, batch_size=None)``. Samples wait in a buffer, one for each environment, and a batch is a
    random choice from a buffer. The batches follow from the source, ``seed`` and ``epoch``: they are the same for any number
    of workers, and all processes of a distributed run use the same environment in each step and different samples of it.
    For this every worker and every process reads the whole source; only the calls of ``collate`` are divided between them,
    so costly work (decoding, augmentation) belongs there.

    Without workers each iteration is a new epoch. With workers call :meth:`set_epoch` before each epoch: a second iteration
    of the same epoch is refused. An epoch that was interrupted is continued by reading the source again from its beginning.

    Parameters
    ----------
    source : an iterable that gives the same samples each time, or a function that takes the epoch and returns one
    environment : a function that gives the label of a sample's environment
    batch_size : samples of a batch, for each process
    buffer_size : the most samples of an environment that wait
    order : how the environment of each batch is chosen. ``"arrival"``: the environment whose buffer is full, so that every
        environment is visited in proportion to its samples, and only the last samples are lost. ``"iid"``, ``"cyclic"`` and
        ``"shuffled"`` as in :class:`EnvironmentBatchSampler`: the source is read until the chosen environment can fill a
        batch. Meanwhile samples of a full buffer are overwritten (see ``counts``). The epoch ends when the source does
    environments : the labels of all environments, for the orders other than "arrival"
    seed : the number from which all random numbers follow, with the epoch
    hold : how many batches in a row have the same environment, for gradient accumulation
    drop_last : whether samples that do not fill a batch at the end are left out; for the order "arrival"
    collate : makes a batch of a list of samples; PyTorch's own function by default
    rank, num_replicas : as in :class:`EnvironmentBatchSampler`

    Attributes
    ----------
    counts : for each label, how many samples the last whole epoch of this process read, used and lost

    >>> stream = EnvironmentBatchStream(range(12), lambda i: i % 3, 2, buffer_size=2, collate=sorted)
    >>> list(stream)
    [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]
    """

    def __init__(
        self,
        source: Iterable | Callable[[int], Iterable],
        environment: Callable[[Any], Any],
        batch_size: int,
        *,
        buffer_size: int = 1024,
        order: str = "arrival",
        environments: Sequence | None = None,
        seed: int = 0,
        hold: int = 1,
        drop_last: bool = True,
        collate: Callable[[list], Any] = default_collate,
        rank: int | None = None,
        num_replicas: int | None = None,
    ):
        self.source, self.environment, self.collate = source, environment, collate
        self.batch_size = errors.integer("batch_size", batch_size, least=1)
        self.buffer_size = errors.integer("buffer_size", buffer_size, least=1)
        self.order = errors.choice("order", order, STREAM_ORDERS)
        self.seed, self.hold = errors.integer("seed", seed), errors.integer("hold", hold, least=1)
        self.drop_last = drop_last
        self.labels = None if environments is None else coded(environments)[0]
        if (self.labels is None) != (order == "arrival"):
            wanted = "needs environments, the labels of all" if self.labels is None else "takes no environments"
            raise GyrostatError(f"order={order!r} {wanted}; got environments={errors.shown(environments)}.")
        check_pair(rank, num_replicas)
        self._given = (rank, num_replicas)
        # Epoch, start, and the mark and epoch of the workers' last iteration, where persistent workers see them too.
        self._shared = torch.tensor([0, 0, 0, -1]).share_memory_()
        self._progress: list[int] = []  # epoch, first and next batch of the iteration that began last, without workers
        self.counts: dict[Any, dict[str, int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """A worker that does not inherit the process group is told the rank."""
        grouped = distributed.is_available() and distributed.is_initialized()
        return {**self.__dict__, "_given": tuple(this_process(*self._given)) if grouped else self._given}

    @property
    def epoch(self) -> int:
        """The number of the next epoch."""
        return int(self._shared[0])

    def set_epoch(self, epoch: int, *, start: int | None = None) -> None:
        """Set the epoch of the next iteration, also for workers that are running.

        Parameters
        ----------
        epoch : the number of the next epoch
        start : how many of its batches to skip, to continue an epoch; None keeps the start that was set for this epoch
        """
        kept = int(self._shared[1]) if epoch == self.epoch else 0
        self._shared[0] = errors.integer("epoch", epoch)
        self._shared[1] = kept if start is None else errors.integer("start", start)
        self._shared[3] = -1
        self._progress = []

    def state_dict(self) -> dict[str, Any]:
        """The position after the batches handed out so far; with workers, what :meth:`set_epoch` set."""
        return self._state(*(self._progress or self._next()))

    def _next(self) -> list[int]:
        """Epoch, first and next batch of the next iteration."""
        epoch, start = self._shared[:2].tolist()
        return [epoch, start, start]

    def _state(self, epoch: int, first: int, start: int) -> dict[str, Any]:
        return {**self._identity(), "epoch": epoch, "first": first, "start": start}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where another stream with the same settings was.

        Parameters
        ----------
        state_dict : what :meth:`state_dict` of a stream or of its iterator returned
        """
        epoch, _, start = self._checked(state_dict)
        self.set_epoch(epoch, start=start)

    def _identity(self) -> dict[str, Any]:
        names = ("batch_size", "buffer_size", "order", "seed", "hold", "drop_last")
        count = this_process(*self._given).num_replicas
        return {**{name: getattr(self, name) for name in names}, "environments": self.labels, "num_replicas": count}

    def _checked(self, state: dict[str, Any]) -> list[int]:
        for name, value in self._identity().items():
            if name not in state or state[name] != value:
                raise GyrostatError(
                    f"state_dict is of another stream: {name} is {errors.shown(state.get(name))} there and "
                    f"{errors.shown(value)} here; make the stream as it was, or use set_epoch."
                )
        return [errors.integer(name, state[name]) for name in ("epoch", "first", "start")]

    def __iter__(self) -> EnvironmentStreamIterator:
        refuse_mixing_trainer(
            type(self).__name__,
            num_replicas=this_process(*self._given).num_replicas,
            batch_size=self.batch_size,
            hold=self.hold,
            start=int(self._shared[1]),
            full=self.drop_last or self.order != "arrival",
            fill="drop_last=True",
        )
        return EnvironmentStreamIterator(self)

    def _begin(self, position: list[int]) -> list[int]:
        """Epoch, first and next batch of an iteration that begins now, at ``position`` if that is not empty."""
        epoch, _, mark, last = self._shared.tolist()
        position = position or self._next()
        worker = get_worker_info()
        if worker is None:
            refuse_missing_group(self._given[0])
            self._shared[:2] = torch.tensor([position[0] + 1, 0])
            self._progress = position
            return position
        mine = (worker.seed - worker.id) % 2**62  # the same for all workers of an iteration
        if last == epoch and mark != mine:
            raise GyrostatError(
                f"epoch {epoch} begins a second time: with workers call stream.set_epoch(epoch) before each epoch."
            )
        self._shared[2], self._shared[3] = mine, epoch
        return position

    def _read(self, epoch: int) -> Iterator[tuple[Any, Any]]:
        """Each sample with its label."""
        known = None if self.labels is None else set(self.labels)
        for sample in self.source(epoch) if callable(self.source) else self.source:
            label = self.environment(sample)
            if known is not None and label not in known:
                raise GyrostatError(
                    f"environments does not list {errors.shown(label)}, the environment of a sample: add it, or leave such "
                    "samples out of source."
                )
            if label is None or label != label:
                raise GyrostatError("environment gave a missing label for a sample: leave such samples out of source.")
            yield sample, label

    def _steps(self, epoch: int, process: Process) -> Iterator[list]:
        """The samples of each step of all processes together."""
        wanted = self.batch_size * process.num_replicas
        if wanted * self.hold > self.buffer_size:
            raise GyrostatError(
                f"buffer_size={self.buffer_size} cannot hold the {wanted * self.hold} samples of a step (batch_size="
                f"{self.batch_size} for each of {process.num_replicas} processes and hold={self.hold}): raise buffer_size."
            )
        buffers = StreamBuffers(np.random.default_rng([self.seed, epoch]), self.buffer_size)
        held = self._by_arrival if self.order == "arrival" else self._by_choice
        for samples in held(buffers, self._read(epoch), wanted * self.hold, epoch):
            size = len(samples) // (self.hold * process.num_replicas) * process.num_replicas
            for first in range(0, size * self.hold, size or 1):
                yield samples[first : first + size]
        self.counts = buffers.counts()

    def _by_arrival(self, buffers: StreamBuffers, read: Iterator, wanted: int, epoch: int) -> Iterator[list]:
        for sample, label in read:
            if buffers.add(sample, label) == self.buffer_size:
                yield buffers.take(label, wanted)
        while full := buffers.with_at_least(wanted):
            yield buffers.take(full[buffers.rng.integers(len(full))], wanted)
        for label in [] if self.drop_last else buffers.with_at_least(1):
            yield buffers.take(label, wanted)

    def _by_choice(self, buffers: StreamBuffers, read: Iterator, wanted: int, epoch: int) -> Iterator[list]:
        for label in self._chosen(buffers.rng):
            while buffers.size(label) < wanted:
                found = next(read, None)
                if found is None:
                    if not buffers.size(label) and not buffers.arrived.get(label):
                        raise GyrostatError(
                            f"environments lists {label!r}, but no sample of epoch {epoch} is from it: leave it out."
                        )
                    return
                buffers.add(*found)
            yield buffers.take(label, wanted)

    def _chosen(self, rng: np.random.Generator) -> Iterator[Any]:
        """The environments of the steps, without end."""
        labels = self.labels or []
        while True:
            if self.order == "iid":
                yield labels[rng.integers(len(labels))]
            else:
                order = range(len(labels)) if self.order == "cyclic" else rng.permutation(len(labels))
                yield from (labels[number] for number in order)


class StreamBuffers:
    """The samples that wait, by environment."""

    def __init__(self, rng: np.random.Generator, capacity: int):
        self.rng, self.capacity = rng, capacity
        self._waiting: dict[Any, list] = {}
        self.arrived: dict[Any, int] = {}
        self._used: dict[Any, int] = {}

    def size(self, label: Any) -> int:
        """How many samples of an environment wait."""
        return len(self._waiting.get(label, ()))

    def add(self, sample: Any, label: Any) -> int:
        """Let a sample wait, in place of a random one if the buffer is full; how many wait then."""
        waiting = self._waiting.setdefault(label, [])
        self.arrived[label] = self.arrived.get(label, 0) + 1
        if len(waiting) < self.capacity:
            waiting.append(sample)
        else:
            waiting[self.rng.integers(self.capacity)] = sample
        return len(waiting)

    def take(self, label: Any, count: int) -> list:
        """Remove a random choice of an environment's samples, of which ``count`` or all are taken."""
        waiting = self._waiting[label]
        chosen = self.rng.choice(len(waiting), min(count, len(waiting)), replace=False)
        taken = [waiting[i] for i in chosen]
        for i in sorted(chosen.tolist(), reverse=True):
            waiting[i] = waiting[-1]
            waiting.pop()
        self._used[label] = self._used.get(label, 0) + len(taken)
        return taken

    def with_at_least(self, count: int) -> list:
        """The labels of which at least ``count`` samples wait."""
        return [label for label, waiting in self._waiting.items() if len(waiting) >= count]

    def counts(self) -> dict[Any, dict[str, int]]:
        """For each label, how many samples were read, used and lost."""
        return {
            label: {"read": read, "used": self._used.get(label, 0), "lost": read - self._used.get(label, 0)}
            for label, read in self.arrived.items()
        }


class EnvironmentStreamIterator(Iterator):
    """One epoch of an :class:`EnvironmentBatchStream` in one process, or in one of its workers.

    Parameters
    ----------
    stream : the stream

    >>> batches = iter(EnvironmentBatchStream(range(4), lambda i: 0, 2, buffer_size=2, collate=sorted))
    >>> next(batches), batches.state_dict()["start"]
    ([0, 1], 1)
    """

    def __init__(self, stream: EnvironmentBatchStream):
        self._stream = stream
        self._position: list[int] = []  # epoch, first batch of the iteration, next batch
        self._batches: Iterator | None = None

    def _begin(self) -> Iterator:
        stream = self._stream
        self._position = stream._begin(self._position)
        epoch, first, start = self._position
        process, worker = this_process(*stream._given), get_worker_info()
        turn, turns = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for number, samples in enumerate(stream._steps(epoch, process)):
            if number >= start and (number - first) % turns == turn:
                self._position[2] = number + 1
                yield stream.collate(samples[process.rank :: process.num_replicas])
        if stream._progress is self._position:
            stream._progress = []  # the epoch is over: the state is that of the next one

    def __next__(self) -> Any:
        if self._batches is None:
            self._batches = self._begin()
        return next(self._batches)

    def state_dict(self) -> dict[str, Any]:
        """Where this iteration is."""
        return self._stream._state(*(self._position or self._stream._next()))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue where another iteration was; the source is read again from its beginning.

        Parameters
        ----------
        state_dict : what :meth:`state_dict` returned
        """
        self._position, self._batches = self._stream._checked(state_dict), None
