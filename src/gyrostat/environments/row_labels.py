"""Labels of environments, one for each row of a data set. Importing this file does not import JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError


def grouped(environments: Any, name: str = "environments") -> tuple[list, list[np.ndarray]]:
    """The distinct labels in order of first appearance, and the indices of the rows with each; messages call them ``name``.

    >>> grouped(["b", "a", "b"])
    (['b', 'a'], [array([0, 2]), array([1])])
    """
    labels = _listed(environments, name)
    if not labels:
        raise GyrostatError(f"{name} is empty: give one label for each row of the data set.")
    if missing := sum(map(_is_missing, labels)):
        raise GyrostatError(f"{name} has {missing} missing labels: give every row one, or leave those rows out.")
    code_of: dict[Any, int] = {}
    try:
        codes = np.array([code_of.setdefault(label, len(code_of)) for label in labels])
    except TypeError:
        raise _refusal(labels[0], name) from None
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return list(code_of), rows


def _listed(environments: Any, name: str) -> list:
    """One plain label per row. Data sets give lists of scalar tensors, which are equal only to themselves."""
    # Iterating over a table gives its column names, and over a string its letters: neither is a label per row.
    if isinstance(environments, str | bytes | Mapping) or getattr(environments, "ndim", 1) != 1:
        raise _refusal(environments, name)
    try:
        labels = environments.tolist() if hasattr(environments, "tolist") else list(environments)
    except TypeError:
        raise _refusal(environments, name) from None
    return [label.item() if getattr(label, "ndim", None) == 0 else label for label in labels]


def _refusal(got: Any, name: str) -> GyrostatError:
    return GyrostatError(f"{name} must hold one label (a number, a string, ...) for each row; got {errors.shown(got)}.")


def _is_missing(label: Any) -> bool:
    """Whether a label is None or not equal to itself (NaN, NaT, NA)."""
    try:
        return label is None or not bool(label == label)
    except (
        TypeError,
        ValueError,
    ):  # the comparison of pandas' NA has no truth value; a list of labels is refused later
        return not isinstance(label, list)
