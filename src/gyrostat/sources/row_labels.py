"""Labels of environments, one for each row of a data set. Importing this file does not import JAX."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError

MANY = 100_000
"""From so many labels on, importing pandas to hash them pays."""


def grouped(environments: Any) -> tuple[list, list[np.ndarray]]:
    """The distinct labels in order of first appearance, and the indices of the rows with each.

    >>> grouped(["b", "a", "b"])
    (['b', 'a'], [array([0, 2]), array([1])])
    """
    labels, codes = coded(environments)
    return labels, rows_of_codes(codes, len(labels))


def coded(environments: Any) -> tuple[list, np.ndarray]:
    """The distinct labels in order of first appearance, and the number of each row's label among them.

    >>> coded(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    _refuse_other_shapes(environments)
    if (numbers := _as_numbers(environments)) is not None:
        return _coded_numbers(numbers)
    labels = _listed(environments)
    if not labels:
        raise _empty()
    code_of: dict[Any, int] = {}
    try:
        codes = np.array([code_of.setdefault(label, len(code_of)) for label in labels])
    except TypeError:
        raise _refusal(labels[0]) from None
    if missing := [code for label, code in code_of.items() if _is_missing(label)]:
        raise _missing(int(np.isin(codes, missing).sum()))
    return list(code_of), codes


def rows_of_codes(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """The indices of the rows with each of ``count`` codes, in ascending order.

    >>> rows_of_codes(np.array([0, 1, 0]), 2)
    [array([0, 2]), array([1])]
    """
    # NumPy sorts integers of 16 bits by their digits, in linear time: the low digits first, then the high ones.
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    if count > 2**16:
        order = order[np.argsort((codes[order] >> 16).astype(np.uint16), kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=count)).tolist()
    return [order[start:end] for start, end in itertools.pairwise([0, *ends])]


def _as_numbers(environments: Any) -> np.ndarray | None:
    """The labels as an array of integers, truth values or floats; None for labels of another kind, or for few."""
    if hasattr(environments, "__len__") and len(environments) < MANY:
        return None
    if isinstance(environments, list | tuple):
        # [1, "1"] and [1, True] must not become text or integers, so all labels have to be of one type.
        kinds = set(map(type, environments))
        if kinds not in ({int}, {bool}, {float}):
            return None
    elif not hasattr(environments, "__array__") or hasattr(environments, "categories"):
        return None
    try:
        found = np.asarray(environments)
    except (
        OverflowError,
        RuntimeError,
        TypeError,
        ValueError,
    ):  # a tensor elsewhere, or with a gradient: taken one by one
        return None
    return found if found.dtype.kind in "iubf" and found.ndim == 1 else None


def _coded_numbers(numbers: np.ndarray) -> tuple[list, np.ndarray]:
    """The same as :func:`coded` by hashing: ten million integers take a fraction of a second."""
    import pandas as pd

    if not numbers.size:
        raise _empty()
    if missing := int(np.isnan(numbers).sum()) if numbers.dtype.kind == "f" else 0:
        raise _missing(missing)
    codes, labels = pd.factorize(numbers)
    return np.asarray(labels).tolist(), codes


def _refuse_other_shapes(environments: Any) -> None:
    # Iterating over a table gives its column names, and over a string its letters: neither is a label per row.
    if isinstance(environments, str | bytes | Mapping) or getattr(environments, "ndim", 1) != 1:
        raise _refusal(environments)


def _listed(environments: Any) -> list:
    """One plain label per row. Data sets give lists of scalar tensors, which are equal only to themselves."""
    try:
        labels = environments.tolist() if hasattr(environments, "tolist") else list(environments)
    except TypeError:
        raise _refusal(environments) from None
    return [label.item() if getattr(label, "ndim", None) == 0 else label for label in labels]


def _refusal(got: Any) -> GyrostatError:
    return GyrostatError(
        f"environments must hold one label (a number, a string, ...) for each row; got {errors.shown(got)}."
    )


def _empty() -> GyrostatError:
    return GyrostatError("environments is empty: give one label for each row of the data set.")


def _missing(count: int) -> GyrostatError:
    return GyrostatError(f"environments has {count} missing labels: give every row one, or leave those rows out.")


def _is_missing(label: Any) -> bool:
    """Whether a label is None or not equal to itself (NaN, NaT, NA)."""
    try:
        return label is None or not bool(label == label)
    except TypeError:  # the comparison of pandas' NA has no truth value
        return True
