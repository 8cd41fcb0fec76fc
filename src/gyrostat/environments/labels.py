"""Labels that say which environment a row of data comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError


def grouped(environments: Any) -> tuple[list, list[np.ndarray]]:
    """The distinct labels as they first appear, and the numbers of the rows of each.

    >>> grouped(["b", "a", "b"])
    (['b', 'a'], [array([0, 2]), array([1])])
    """
    labels = _listed(environments)
    if not labels:
        raise GyrostatError("environments is empty: give one label for each row of the data set.")
    if missing := sum(map(_is_missing, labels)):
        raise GyrostatError(f"environments has {missing} missing labels: give every row one, or leave those rows out.")
    numbers: dict[Any, int] = {}
    try:
        codes = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    except TypeError:
        raise _refusal(labels[0]) from None
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return list(numbers), rows


def _listed(environments: Any) -> list:
    """One plain label per row. Lists of scalar tensors come from data sets; they are equal only to themselves."""
    # A table gives its column names and a string its letters when gone through: neither is a label per row.
    if isinstance(environments, str | bytes | Mapping) or getattr(environments, "ndim", 1) != 1:
        raise _refusal(environments)
    try:
        labels = environments.tolist() if hasattr(environments, "tolist") else list(environments)
    except TypeError:
        raise _refusal(environments) from None
    return [label.item() if getattr(label, "ndim", None) == 0 else label for label in labels]


def _refusal(got: Any) -> GyrostatError:
    return GyrostatError(
        f"environments must hold one label (a number, a string, ...) for each row; got {errors.shown(got)}."
    )


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or one of their relatives, which are not even equal to themselves."""
    try:
        return label is None or not bool(label == label)
    except (TypeError, ValueError):  # pandas' NA has no truth; a list of labels is refused later
        return not isinstance(label, list)
