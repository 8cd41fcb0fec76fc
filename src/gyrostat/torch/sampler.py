"""Batches of one environment each, for ``torch.utils.data.DataLoader(batch_sampler=...)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import Sampler

from gyrostat import errors
from gyrostat.environments.labels import grouped
from gyrostat.errors import GyrostatError
from torch import distributed

ORDERS = ("iid", "cyclic", "shuffled", "proportional")
RULES = ("error", "wrap", "short", "skip")


class EnvironmentBatchSampler(Sampler[list[int]]):
    """Numbers of rows, batch by batch, every batch from ONE environment (HeteroSGD, Xu 2024, Algorithm 3).

    ``environments`` holds one label per row of the data set, of any dtype. ``order`` says whose turn it is:

    - ``"iid"``: every batch draws its environment, all alike;
    - ``"cyclic"``: one after the other, as they first appear in the labels;
    - ``"shuffled"``: every environment once per round, each round in a new random order;
    - ``"proportional"``: every environment once for each whole batch that its rows make, in random order.

    An environment deals its rows out in a random order, and shuffles all of them again when the rest would not fill a
    batch: no row is twice in a batch, and none is left out for ever. An epoch has as many batches as whole ones can be
    dealt out of all environments, so about one pass over the data; cyclic and shuffled orders round this up to whole
    rounds, which visits all environments equally often. ``num_batches`` sets another length.

    ``small`` is the rule for environments with fewer rows than a batch: ``"error"``, ``"wrap"`` (repeat rows, every row
    almost equally often), ``"short"`` (a batch of all rows there are) or ``"skip"`` (never visit them: see ``skipped``).

    With several processes, each is number ``rank`` out of ``num_replicas``; both are those of ``torch.distributed`` when
    its process group exists already. In every step all of them see the SAME environment and different rows of it,
    ``batch_size`` each: gradients are averaged over processes, so one environment each would be a mixture, in which
    nothing oscillates. For the same reason, tools that deal out batches to processes by themselves must not.

    Every iteration is a new epoch, also after one that was left early, and all its numbers follow from ``seed`` and
    ``epoch``, the number of the next one; :meth:`set_epoch` goes to any other, and makes sure that processes agree.
    The global random states are neither read nor changed. Rows are numbered as in the data set of the loader: for a
    ``Subset``, give the labels of its rows.

    >>> sampler = EnvironmentBatchSampler(["a", "b", "b", "a", "b", "b"], 2, order="cyclic")
    >>> len(sampler), [sorted(batch) for batch in sampler][0]
    (4, [0, 3])
    """

    def __init__(
        self,
        environments: Any,
        batch_size: int,
        *,
        order: str = "iid",
        seed: int = 0,
        small: str = "error",
        num_batches: int | None = None,
        rank: int | None = None,
        num_replicas: int | None = None,
    ):
        self.batch_size = errors.integer("batch_size", batch_size, least=1)
        self.order = errors.choice("order", order, ORDERS)
        self.small = errors.choice("small", small, RULES)
        self.seed, self.epoch, self._start = errors.integer("seed", seed), 0, 0
        self.rank, self.num_replicas = _place(rank, num_replicas)
        labels, rows = grouped(environments)
        self._wanted = self.batch_size * self.num_replicas  # rows of a step, of all processes together
        self._refuse(labels, rows)
        serves = [small != "skip" or mine.size >= self._wanted for mine in rows]
        self.labels = [label for label, kept in zip(labels, serves, strict=True) if kept]
        self.skipped = [label for label, kept in zip(labels, serves, strict=True) if not kept]
        self._rows = [mine for mine, kept in zip(rows, serves, strict=True) if kept]
        self._turns = [max(1, mine.size // self._wanted) for mine in self._rows]
        if num_batches is None:
            self._length = self._default_length()
        else:
            self._length = errors.integer("num_batches", num_batches, least=1)

    def set_epoch(self, epoch: int, *, start: int = 0) -> None:
        """Make the next iteration that of epoch number ``epoch``, as with PyTorch's ``DistributedSampler``.

        ``start`` leaves out that many of its batches, to go on with an epoch that was interrupted. Count those that were
        trained on: a loader with workers has asked for more. ``len`` stays that of a whole epoch.
        """
        self.epoch = errors.integer("epoch", epoch)
        self._start = errors.integer("start", start, most=len(self), most_because=", the batches of an epoch")

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[list[int]]:
        # A DataLoader may ask for iterators that it never uses: the epoch begins with the first batch.
        epoch, start = self.epoch, self._start
        self.epoch, self._start = epoch + 1, 0
        rng = np.random.default_rng([self.seed, epoch])
        decks: dict[int, np.ndarray] = {}
        for number, e in enumerate(self._visits(rng, epoch)):
            whole, decks[e] = self._deal(rng, self._rows[e], decks.get(e))
            if number >= start:
                yield whole[self.rank :: self.num_replicas].tolist()

    def _visits(self, rng: np.random.Generator, epoch: int) -> list[int]:
        """The environment of every batch of an epoch."""
        count, length = len(self._rows), len(self)
        if self.order == "iid":
            return rng.integers(count, size=length).tolist()
        if self.order == "cyclic":
            return ((epoch * length + np.arange(length)) % count).tolist()
        one = np.repeat(np.arange(count), self._turns if self.order == "proportional" else 1)
        rounds = -(-length // one.size)
        return np.concatenate([rng.permutation(one) for _ in range(rounds)])[:length].tolist()

    def _deal(
        self, rng: np.random.Generator, rows: np.ndarray, deck: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of one step, for all processes together, and what remains of the environment's order."""
        wanted = self._wanted
        if rows.size >= wanted:
            deck = rng.permutation(rows) if deck is None or deck.size < wanted else deck
            return deck[:wanted], deck[wanted:]
        mixed = rng.permutation(rows)
        if self.small == "short":  # the same number for every process; who is left out is random
            return mixed[: rows.size - rows.size % self.num_replicas], mixed[:0]
        return np.resize(mixed, wanted), mixed[:0]

    def _default_length(self) -> int:
        total, count = sum(self._turns), len(self._rows)
        return -(-total // count) * count if self.order in ("cyclic", "shuffled") else total

    def _refuse(self, labels: list, rows: list[np.ndarray]) -> None:
        sizes = [mine.size for mine in rows]
        least = int(np.argmin(sizes))
        step = (
            f"a step takes {self._wanted} (batch_size={self.batch_size} for each of num_replicas={self.num_replicas})"
        )
        got = f"environment {labels[least]!r} has {sizes[least]} rows and {step}"
        if self.small == "error" and sizes[least] < self._wanted:
            raise GyrostatError(f"{got}: choose small='wrap' (repeat rows), 'short' or 'skip', or lower batch_size.")
        if self.small == "short" and sizes[least] < self.num_replicas:
            raise GyrostatError(f"{got}: with small='short' a process would get none; use small='wrap' or 'skip'.")
        if self.small == "skip" and max(sizes) < self._wanted:
            raise GyrostatError(
                f"small='skip' skips every environment: the largest has {max(sizes)} rows and {step}; lower batch_size."
            )


def _place(rank: int | None, num_replicas: int | None) -> tuple[int, int]:
    """This process among all: as given, else as the process group says, else alone."""
    if distributed.is_available() and distributed.is_initialized():
        rank = distributed.get_rank() if rank is None else rank
        num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
    elif (rank is None) != (num_replicas is None):
        raise GyrostatError(
            f"rank and num_replicas belong together; got rank={rank} and num_replicas={num_replicas}: "
            "give both, or start torch.distributed first and give none."
        )
    count = errors.integer("num_replicas", 1 if num_replicas is None else num_replicas, least=1)
    mine = errors.integer("rank", 0 if rank is None else rank, most=count - 1, most_because=", num_replicas - 1")
    return mine, count
