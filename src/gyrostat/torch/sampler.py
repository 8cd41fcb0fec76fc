"""Batches of one environment each, for ``torch.utils.data.DataLoader(batch_sampler=...)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import Sampler

from gyrostat import errors
from gyrostat.environments.row_labels import grouped
from gyrostat.errors import GyrostatError
from torch import distributed

ORDERS = ("iid", "cyclic", "shuffled", "proportional")
RULES = ("error", "wrap", "short", "skip")


class EnvironmentBatchSampler(Sampler[list[int]]):
    """Batches of row numbers in which all rows come from ONE environment (HeteroSGD, Xu 2024, Algorithm 3).

    ``environments`` holds one label per row of the data set, of any dtype. ``order`` tells how the environment of each batch is
    chosen:

    - ``"iid"``: drawn at random for each batch, all with the same probability;
    - ``"cyclic"``: one after the other, in the order in which they first appear in the labels;
    - ``"shuffled"``: each environment once per round, each round in a new random order;
    - ``"proportional"``: each environment once for each whole batch that its rows fill, in random order.

    The rows of an environment are used in a random order, and all of them are shuffled again when the remaining ones do not
    fill a batch. No row occurs twice in a batch, and no row is left out permanently. An epoch has as many batches as the rows
    of all environments fill, so it is about one pass over the data. Cyclic and shuffled orders round this up to whole rounds,
    so that all environments are visited equally often. ``num_batches`` sets another length.

    ``small`` is the rule for environments with fewer rows than a batch: ``"error"``, ``"wrap"`` (rows are repeated, almost
    equally often), ``"short"`` (the batch holds all of its rows) or ``"skip"`` (they are never visited: see ``skipped``).

    With several processes, ``rank`` is the number of this process and ``num_replicas`` their count. By default both are taken
    from ``torch.distributed``, if its process group exists. In each step all processes use the SAME environment and different
    rows of it, ``batch_size`` each. Gradients are averaged over processes: with one environment per process the average
    would be over a mixture, in which nothing oscillates. Tools that distribute batches over processes must therefore not be
    used with this sampler.

    Each iteration is a new epoch, also after one that was left early, and all its random numbers follow from ``seed`` and
    ``epoch``, the number of the next epoch. :meth:`set_epoch` chooses another one, and makes sure that processes agree. The
    global random states are neither read nor changed. Rows are numbered as in the data set of the loader: for a ``Subset``,
    give the labels of its rows.

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
        self.rank, self.num_replicas = _process(rank, num_replicas)
        labels, rows = grouped(environments)
        self._step_rows = self.batch_size * self.num_replicas  # of all processes together
        self._refuse_small(labels, rows)
        used = [small != "skip" or mine.size >= self._step_rows for mine in rows]
        self.labels = [label for label, kept in zip(labels, used, strict=True) if kept]
        self.skipped = [label for label, kept in zip(labels, used, strict=True) if not kept]
        self._rows = [mine for mine, kept in zip(rows, used, strict=True) if kept]
        self._whole_batches = [max(1, mine.size // self._step_rows) for mine in self._rows]
        if num_batches is None:
            self._length = self._default_length()
        else:
            self._length = errors.integer("num_batches", num_batches, least=1)

    def set_epoch(self, epoch: int, *, start: int = 0) -> None:
        """Set the epoch of the next iteration, as in PyTorch's ``DistributedSampler``.

        ``start`` skips that many of its batches, to continue an epoch that was interrupted. Count the batches that were
        trained on, because a loader with workers has already asked for more. ``len`` remains that of a whole epoch.
        """
        self.epoch = errors.integer("epoch", epoch)
        self._start = errors.integer("start", start, most=len(self), most_because=", the batches of an epoch")

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[list[int]]:
        # A DataLoader may ask for iterators that it never uses, so an epoch begins with its first batch.
        epoch, start = self.epoch, self._start
        self.epoch, self._start = epoch + 1, 0
        rng = np.random.default_rng([self.seed, epoch])
        decks: dict[int, np.ndarray] = {}
        for number, e in enumerate(self._visits(rng, epoch)):
            rows, decks[e] = self._deal(rng, self._rows[e], decks.get(e))
            if number >= start:
                yield rows[self.rank :: self.num_replicas].tolist()

    def _visits(self, rng: np.random.Generator, epoch: int) -> list[int]:
        """The environment of each batch of an epoch."""
        count, length = len(self._rows), len(self)
        if self.order == "iid":
            return rng.integers(count, size=length).tolist()
        if self.order == "cyclic":
            return ((epoch * length + np.arange(length)) % count).tolist()
        one = np.repeat(np.arange(count), self._whole_batches if self.order == "proportional" else 1)
        rounds = -(-length // one.size)
        return np.concatenate([rng.permutation(one) for _ in range(rounds)])[:length].tolist()

    def _deal(
        self, rng: np.random.Generator, rows: np.ndarray, deck: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of one step of all processes together, and the remaining rows of the environment in their order."""
        wanted = self._step_rows
        if rows.size >= wanted:
            deck = rng.permutation(rows) if deck is None or deck.size < wanted else deck
            return deck[:wanted], deck[wanted:]
        shuffled = rng.permutation(rows)
        if self.small == "short":  # the same number for each process; a random rest is left out
            return shuffled[: rows.size - rows.size % self.num_replicas], shuffled[:0]
        return np.resize(shuffled, wanted), shuffled[:0]

    def _default_length(self) -> int:
        total, count = sum(self._whole_batches), len(self._rows)
        return -(-total // count) * count if self.order in ("cyclic", "shuffled") else total

    def _refuse_small(self, labels: list, rows: list[np.ndarray]) -> None:
        sizes = [mine.size for mine in rows]
        least = int(np.argmin(sizes))
        step = f"a step takes {self._step_rows} (batch_size={self.batch_size} for each of num_replicas={self.num_replicas})"
        got = f"environment {labels[least]!r} has {sizes[least]} rows and {step}"
        if self.small == "error" and sizes[least] < self._step_rows:
            raise GyrostatError(f"{got}: choose small='wrap' (repeat rows), 'short' or 'skip', or lower batch_size.")
        if self.small == "short" and sizes[least] < self.num_replicas:
            raise GyrostatError(f"{got}: with small='short' a process would get no rows; use small='wrap' or 'skip'.")
        if self.small == "skip" and max(sizes) < self._step_rows:
            raise GyrostatError(
                f"small='skip' skips every environment: the largest has {max(sizes)} rows and {step}; lower batch_size."
            )


def _process(rank: int | None, num_replicas: int | None) -> tuple[int, int]:
    """The number of this process and the count of processes: as given, else from the process group, else one."""
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
