"""Batches of one environment each, for ``torch.utils.data.DataLoader(batch_sampler=...)``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.data import BatchSampler, Dataset, DistributedSampler, Sampler

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sources.one_environment_batches import BatchPlan, BatchRules, EpochCoverage, RowsByEnvironment
from gyrostat.torch.labelled_dataset import labels_of_rows
from gyrostat.torch.sharding import (
    Process,
    check_pair,
    refuse_missing_group,
    refuse_mixing_trainer,
    this_process,
)

State = dict[str, Any]


class EnvironmentBatchSampler(BatchSampler):
    """Batches of row numbers in which all rows come from ONE environment (HeteroSGD, Xu 2024, Algorithm 3).

    The rows of an environment are used in a random order, and all of them are shuffled again when the remaining ones do not
    fill a batch. No row occurs twice in a batch, and no row is left out permanently. An epoch has as many batches as the rows
    of all environments fill, so it is about one pass over the data if the environments are equally large. If they are not,
    "iid", "cyclic" and "shuffled" visit a small environment as often as a large one: the rows of a small one occur many
    times in an epoch, and some rows of a large one do not occur. :meth:`coverage` counts them.

    With several processes, all of them use the SAME environment in each step and different rows of it, ``batch_size`` each.
    Gradients are averaged over processes. If each process had its own environment, the average would mix environments, and
    nothing would oscillate. Libraries that divide batches over processes must therefore not do so with this sampler, and it
    refuses them. Use :func:`prepare_loader` for accelerate and Hugging Face's Trainer. Lightning's DDP works if the sampler
    is made in ``train_dataloader()``.

    Each iteration is a new epoch, even if the one before was left early. All random numbers of an epoch follow from ``seed``
    and ``epoch``, the number of the next epoch. :meth:`set_epoch` chooses another one, and makes sure that processes agree.
    The global random states are neither read nor changed. :meth:`state_dict` and :meth:`load_state_dict` continue an epoch
    that was interrupted, with the same batches.

    Parameters
    ----------
    environments : one label per row of the data set, of any dtype; :meth:`for_dataset` finds them for a ``Subset``
    batch_size : rows of a batch, for each process
    order : how the environment of each batch is chosen: ``"iid"``, drawn at random for each batch, all with the same
        probability; ``"cyclic"``, one after the other, in the order in which they first appear in the labels; ``"shuffled"``,
        each environment once per round, each round in a new random order; ``"proportional"``, each environment once for each
        batch that its rows fill, in random order. Cyclic and shuffled epochs have whole rounds
    seed : the number from which all random numbers follow, with the epoch
    small : the rule for environments with fewer rows than a batch: ``"error"``, ``"wrap"`` (rows are repeated, almost equally
        often), ``"short"`` (the batch holds all of its rows) or ``"skip"`` (they are never visited: see ``skipped``)
    drop_last : whether rows that remain at the end of a pass over an environment and do not fill a batch are shuffled back.
        If False they make a short batch; then a proportional epoch covers every row once
    hold : how many batches in a row have the same environment: the number of batches whose gradients are accumulated. Trainers
        that accumulate another number are refused where they say so (accelerate, Hugging Face, Lightning)
    weights : how often each environment is visited relative to the others, as in ``{"site 1": 2.0, "site 2": 1.0}``; for the
        order "iid" as probabilities, for "shuffled" as exact shares of an epoch
    num_batches : the length of an epoch
    rank, num_replicas : the number of this process and their count; by default from ``torch.distributed`` at the time of each
        iteration, so that the sampler can be made before ``init_process_group``
    sampler : for Lightning, which hands over a ``DistributedSampler``; its ``rank`` and ``num_replicas`` are used

    >>> sampler = EnvironmentBatchSampler(["a", "b", "b", "a", "b", "b"], 2, order="cyclic")
    >>> len(sampler), [sorted(batch) for batch in sampler][0]
    (4, [0, 3])
    >>> sampler.environment_of([0, 3])
    'a'
    >>> print(sampler.coverage(epoch=0))
    Epoch 0 has 4 batches and sees 100.0% of the rows.
    'a': 2 batches, 2 of 2 rows (100.0%), some 2 times
    'b': 2 batches, 4 of 4 rows (100.0%)
    """

    def __init__(
        self,
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
        rank: int | None = None,
        num_replicas: int | None = None,
        sampler: DistributedSampler | None = None,
    ):
        if isinstance(environments, Sampler):
            raise GyrostatError(
                "environments must hold one label for each row; got a sampler, which a trainer put there to divide batches "
                "over processes: with Lightning make EnvironmentBatchSampler inside train_dataloader(), or use "
                "Trainer(use_distributed_sampler=False)."
            )
        self._rules = BatchRules(batch_size, order, small, drop_last, hold, num_batches, weights)
        self.batch_size, self.drop_last, self.hold = self._rules.batch_size, self._rules.drop_last, self._rules.hold
        self.order, self.small = self._rules.order, self._rules.small
        self.seed, self.epoch, self._start = errors.integer("seed", seed), 0, 0
        self._given = self._given_process(rank, num_replicas, sampler)
        self._labelled = RowsByEnvironment(environments)
        self._plans: dict[int, BatchPlan] = {}
        self._progress: list[int] = []  # epoch and next batch of the iteration that began last
        self._loaded = False
        self._continued: int | None = None  # the epoch that began last after a state was loaded
        self._plan()  # refuses what cannot be dealt out

    @classmethod
    def for_dataset(
        cls,
        dataset: Dataset,
        labels: Any,
        batch_size: int,
        *,
        order: str = "iid",
        seed: int = 0,
        small: str = "error",
        drop_last: bool = True,
        hold: int = 1,
        weights: Mapping[Any, float] | None = None,
        num_batches: int | None = None,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> EnvironmentBatchSampler:
        """A sampler for the rows of ``dataset``, also of a ``Subset``, a part of ``random_split`` or a ``ConcatDataset``.

        Parameters
        ----------
        dataset : the data set of the loader
        labels : one label for each row of the data set at the bottom of all subsets; for a ``ConcatDataset`` the labels of its
            parts one after the other, each data set at the bottom once
        batch_size : rows of a batch, for each process
        order, seed, small, drop_last, hold, weights, num_batches, rank, num_replicas : as in :class:`EnvironmentBatchSampler`

        >>> import torch
        >>> from torch.utils.data import Subset, TensorDataset
        >>> part = Subset(TensorDataset(torch.arange(6)), [5, 0, 4, 1])
        >>> sampler = EnvironmentBatchSampler.for_dataset(part, ["a", "a", "a", "b", "b", "b"], 2, order="cyclic")
        >>> sorted(next(iter(sampler))), sampler.labels
        ([0, 2], ['b', 'a'])
        """
        return cls(
            labels_of_rows(dataset, labels),
            batch_size,
            order=order,
            seed=seed,
            small=small,
            drop_last=drop_last,
            hold=hold,
            weights=weights,
            num_batches=num_batches,
            rank=rank,
            num_replicas=num_replicas,
        )

    @staticmethod
    def _given_process(
        rank: int | None, num_replicas: int | None, sampler: DistributedSampler | None
    ) -> tuple[int | None, int | None]:
        if sampler is not None:
            errors.instance("sampler", sampler, DistributedSampler, "a DistributedSampler, as Lightning gives it")
            return sampler.rank, sampler.num_replicas
        check_pair(rank, num_replicas)
        return rank, num_replicas

    @property
    def sampler(self) -> EnvironmentBatchSampler:  # type: ignore[override]
        """The sampler itself: Lightning and accelerate call ``set_epoch`` of a batch sampler's ``sampler``."""
        return self

    @property
    def rank(self) -> int:
        """The number of this process."""
        return this_process(*self._given).rank

    @property
    def num_replicas(self) -> int:
        """The number of processes that share each step's rows."""
        return this_process(*self._given).num_replicas

    @property
    def labels(self) -> list:
        """The labels of the environments that are visited."""
        return self._plan().labels

    @property
    def skipped(self) -> list:
        """The labels of the environments that are never visited."""
        return self._plan().skipped

    def _plan(self) -> BatchPlan:
        count = self.num_replicas
        if count not in self._plans:
            self._plans[count] = BatchPlan(self._labelled, self._rules, count)
        return self._plans[count]

    def set_epoch(self, epoch: int, *, start: int | None = None) -> None:
        """Set the epoch of the next iteration, as in PyTorch's ``DistributedSampler``.

        Parameters
        ----------
        epoch : the number of the next epoch
        start : how many of its batches to skip, to continue an epoch that was interrupted. Count the batches that were trained
            on, because a loader with workers has already asked for more. ``len`` remains that of a whole epoch. None keeps the
            start that was set for this epoch, because trainers call ``set_epoch(epoch)`` before each iteration
        """
        epoch = errors.integer("epoch", epoch)
        if start is None:
            self._refuse_other_epoch(epoch)
            start = self._start if epoch == self.epoch else 0
        else:
            self._loaded = False
        self._start = errors.integer("start", start, most=len(self), most_because=", the batches of an epoch")
        self.epoch, self._progress = epoch, []

    def _refuse_other_epoch(self, epoch: int) -> None:
        """After a state was loaded, a trainer that counts epochs from zero again must not undo it without a word.

        A trainer may name an epoch that has begun, because workers fetch before Lightning names it; it cannot begin again.
        """
        least = self.epoch if self._continued is None else self._continued
        if self._loaded and (epoch < least or (self._start and epoch != self.epoch)):
            raise self._contradiction(epoch, self.epoch)

    def _contradiction(self, named: int, epoch: int) -> GyrostatError:
        return GyrostatError(
            f"set_epoch({named}) contradicts the loaded state, which continues with batch {self._start} of epoch {epoch}: "
            f"with accelerate call loader.set_epoch({epoch}) before the loop; set_epoch({named}, start=0) drops the state."
        )

    def state_dict(self, *, start: int | None = None) -> State:
        """The position after the batches handed out so far, for :meth:`load_state_dict`, as plain numbers and text.

        Parameters
        ----------
        start : how many batches of the present epoch were trained on, for a loader with workers, which has asked for more.
            ``StatefulDataLoader`` of torchdata keeps count by itself
        """
        epoch, done = self._progress or (self.epoch, self._start)
        if start is not None:
            done = errors.integer("start", start, most=len(self), most_because=", the batches of an epoch")
        if done >= len(self):
            epoch, done = epoch + 1, 0
        return self._state(epoch, done)

    def _state(self, epoch: int, start: int) -> State:
        return {"epoch": epoch, "start": start, "seed": self.seed, "sampler": self._identity()}

    def _identity(self) -> dict[str, Any]:
        """What decides the batches apart from epoch and seed."""
        rows = {"rows": self._labelled.codes.size, "environments": self._labelled.digest}
        return {**rows, **self._rules.described(), "num_replicas": self.num_replicas}

    def load_state_dict(self, state_dict: State) -> None:
        """Continue where another sampler with the same labels and settings was, with the same batches.

        Parameters
        ----------
        state_dict : what :meth:`state_dict` returned
        """
        self.epoch, self._start = self._checked(state_dict)
        self._progress, self._loaded, self._continued = [], True, None

    def _checked(self, state: State) -> tuple[int, int]:
        """Epoch and start of a state; that of another sampler is refused. The seed is taken over."""
        if not isinstance(state, Mapping) or not {"epoch", "start", "seed", "sampler"} <= set(state):
            raise GyrostatError(
                f"state_dict must come from state_dict() of an EnvironmentBatchSampler; got {errors.shown(state)}."
            )
        theirs, ours = state["sampler"], self._identity()
        for name, value in ours.items():
            if theirs.get(name) != value:
                raise GyrostatError(
                    f"state_dict is of another sampler: {name} is {errors.shown(theirs.get(name))} there and "
                    f"{errors.shown(value)} here; make the sampler as it was, or use set_epoch."
                )
        self.seed = errors.integer("seed", state["seed"])
        return errors.integer("epoch", state["epoch"]), errors.integer("start", state["start"], most=len(self))

    def __len__(self) -> int:
        return self._plan().length

    def __iter__(self) -> EnvironmentBatchIterator:
        refuse_missing_group(self._given[0])
        refuse_mixing_trainer(
            type(self).__name__,
            num_replicas=self.num_replicas,
            batch_size=self.batch_size,
            hold=self.hold,
            start=self._start,
            full=self._plan().full,
            fill="drop_last=True and small='error', 'wrap' or 'skip'",
        )
        return EnvironmentBatchIterator(self)

    def environment_of(self, batch: Any) -> Any:
        """The label that the rows of a batch have in common.

        Parameters
        ----------
        batch : row numbers, as the sampler gives them
        """
        return self._labelled.environment_of(batch)

    def environments_of(self, batch: Any) -> list:
        """The label of each row of a batch, whether or not they are the same.

        Parameters
        ----------
        batch : row numbers
        """
        return [self._labelled.labels[code] for code in self._labelled.codes_of(batch)]

    def coverage(self, epoch: int | None = None) -> EpochCoverage:
        """What an epoch covers of each environment, counted batch by batch over all processes.

        Parameters
        ----------
        epoch : the number of the epoch; None for the next one

        >>> labels = [0] * 1000 + [1] * 4 + [2] * 4
        >>> print(EnvironmentBatchSampler(labels, 4, order="shuffled").coverage())
        Epoch 0 has 252 batches and sees 34.1% of the rows.
        0: 84 batches, 336 of 1000 rows (33.6%)
        1: 84 batches, 4 of 4 rows (100.0%), some 84 times
        2: 84 batches, 4 of 4 rows (100.0%), some 84 times
        """
        return self._plan().coverage(self.seed, self.epoch if epoch is None else errors.integer("epoch", epoch))


class EnvironmentBatchIterator(Iterator[list[int]]):
    """The batches of one epoch of an :class:`EnvironmentBatchSampler`, for one process.

    A DataLoader may ask for iterators that it never uses, so an epoch begins with its first batch. torchdata's
    ``StatefulDataLoader`` calls :meth:`state_dict` and :meth:`load_state_dict`.

    Parameters
    ----------
    sampler : the sampler

    >>> batches = iter(EnvironmentBatchSampler([0, 0, 0, 0], 2))
    >>> first = next(batches)
    >>> batches.state_dict()["start"]
    1
    """

    def __init__(self, sampler: EnvironmentBatchSampler):
        self._sampler = sampler
        self._position: tuple[int, int] | None = None
        self._progress: list[int] = []
        self._batches: Iterator = iter(())
        self._process = Process(0, 1)

    def _begin(self) -> None:
        sampler = self._sampler
        epoch, start = self._position or (sampler.epoch, sampler._start)
        if sampler._loaded and epoch == sampler._continued:
            raise sampler._contradiction(epoch, epoch + 1)
        sampler._continued = epoch
        sampler.epoch, sampler._start = epoch + 1, 0
        self._progress = sampler._progress = [epoch, start]
        self._process = this_process(*sampler._given)
        self._batches = sampler._plan().batches(sampler.seed, epoch, start)

    def __next__(self) -> list[int]:
        if not self._progress:
            self._begin()
        rows = next(self._batches)
        self._progress[1] += 1
        rank, num_replicas = self._process
        return (rows if num_replicas == 1 else rows[rank::num_replicas]).tolist()

    def state_dict(self) -> State:
        """Where this iteration is."""
        position = self._position or (self._sampler.epoch, self._sampler._start)
        return self._sampler._state(*(self._progress or position))

    def load_state_dict(self, state_dict: State) -> None:
        """Continue where another iteration was.

        Parameters
        ----------
        state_dict : what :meth:`state_dict` returned
        """
        self._position = self._sampler._checked(state_dict)
        self._progress = []
