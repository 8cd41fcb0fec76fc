"""The environments of a data set's rows: labels under subsets, and batches that say which environment they are from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset, default_collate

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sources.row_labels import coded

KEY = "environment"
"""The name under which a batch that is a mapping holds its environment."""


def labels_of_rows(dataset: Dataset, labels: Any) -> np.ndarray:
    """The label of each row of a data set, from those of the data sets at the bottom of its subsets."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise GyrostatError(
            f"dataset must have a length; got {errors.shown(type(dataset).__name__)}: use EnvironmentBatchStream for a stream."
        )
    bottoms: dict[int, int] = {}
    places = _places(dataset, bottoms)
    total = sum(bottoms.values())
    names, codes = coded(labels)
    if codes.size != total:
        inside = "" if len(places) == total else f" (dataset has {len(places)} rows, which are part of them)"
        raise GyrostatError(
            f"labels must hold one label for each of the {total} rows of the innermost data set{inside}; got {codes.size}."
        )
    distinct = np.empty(len(names), dtype=object)
    distinct[:] = names
    return distinct[codes[places]]


def _places(dataset: Any, bottoms: dict[int, int]) -> np.ndarray:
    """The place of each row among the rows of all data sets at the bottom; ``bottoms`` collects their lengths."""
    if isinstance(dataset, Subset):
        inside, indices = _places(dataset.dataset, bottoms), np.asarray(dataset.indices, dtype=np.intp)
        if indices.size and (indices.max() >= len(inside) or indices.min() < -len(inside)):
            raise GyrostatError(
                f"dataset is a Subset with the row {int(indices[np.argmax(np.abs(indices))])}, but the data set inside has "
                f"{len(inside)} rows."
            )
        return inside[indices]
    if isinstance(dataset, ConcatDataset):
        return np.concatenate([_places(part, bottoms) for part in dataset.datasets])
    before = list(bottoms)[: list(bottoms).index(id(dataset))] if id(dataset) in bottoms else list(bottoms)
    bottoms.setdefault(id(dataset), len(dataset))
    return sum(bottoms[one] for one in before) + np.arange(len(dataset))


class LabelledDataset(Dataset):
    """A data set whose samples come with the label of their environment, for :class:`EnvironmentCollate`.

    Parameters
    ----------
    dataset : the data set
    labels : one label for each of its rows, as :meth:`EnvironmentBatchSampler.for_dataset` takes them

    >>> LabelledDataset(["x", "y"], ["site 1", "site 2"])[1]
    ('y', 'site 2')
    """

    def __init__(self, dataset: Dataset, labels: Any):
        self.dataset, self.labels = dataset, labels_of_rows(dataset, labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.dataset[index], self.labels[index]

    def __getitems__(self, indices: list[int]) -> list[tuple[Any, Any]]:
        """Samples of several rows at once, in one call where the data set offers it."""
        many = getattr(self.dataset, "__getitems__", None)
        samples = many(indices) if many else [self.dataset[index] for index in indices]
        return list(zip(samples, self.labels[indices], strict=True))


class EnvironmentCollate:
    """A collate function that adds the environment to each batch of a :class:`LabelledDataset`.

    A batch that is a mapping gets the key ``"environment"``, a tuple or list gets it as last entry, and anything else
    becomes the first entry of a pair. A batch with rows of several environments is refused.

    Parameters
    ----------
    collate : the function that makes a batch of samples; PyTorch's own by default
    mixed : whether batches of several environments are accepted, with a list of labels, one per row; for an audit

    >>> batch = EnvironmentCollate()([((1.0, 2.0), "a"), ((3.0, 4.0), "a")])
    >>> len(batch), environment_of(batch)
    (3, 'a')
    """

    def __init__(self, collate: Callable[[list], Any] = default_collate, *, mixed: bool = False):
        self.collate, self.mixed = collate, mixed

    def __call__(self, samples: list[tuple[Any, Any]]) -> Any:
        labels = [label for _, label in samples]
        distinct = set(labels)
        if len(distinct) != 1 and not self.mixed:
            shown = ", ".join(map(repr, list(distinct)[:3]))
            raise GyrostatError(
                f"a batch holds rows of {len(distinct)} environments ({shown}): give the loader batch_sampler=an "
                "EnvironmentBatchSampler for this data set."
            )
        environment = labels[0] if len(distinct) == 1 else labels
        batch = self.collate([sample for sample, _ in samples])
        if isinstance(batch, Mapping):
            return {**batch, KEY: environment}
        return [*batch, environment] if isinstance(batch, list | tuple) else [batch, environment]


def environment_of(batch: Any) -> Any:
    """The environment of a batch that :class:`EnvironmentCollate` made.

    Parameters
    ----------
    batch : the batch

    >>> environment_of({"x": 1, "environment": "a"})
    'a'
    """
    if isinstance(batch, Mapping) and KEY in batch:
        return batch[KEY]
    if isinstance(batch, list | tuple) and batch:
        return batch[-1]
    raise GyrostatError(
        "batch does not carry its environment: use LabelledDataset and EnvironmentCollate; "
        f"got {errors.shown(type(batch).__name__)}."
    )
