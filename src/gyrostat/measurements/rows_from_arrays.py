"""Rows of data as a user has them (arrays, pandas tables, one array per environment) as plain arrays with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sources.row_labels import grouped


class LabelledRows(NamedTuple):
    """Inputs (N, ...), responses (N,), the number of the environment of every row, and the label of every environment."""

    inputs: np.ndarray
    responses: np.ndarray
    codes: np.ndarray
    labels: tuple[Any, ...]


def labelled_rows(X: Any, y: Any, environments: Any = None) -> LabelledRows:
    """The rows of ``X`` and ``y``, checked; both are arrays with a label per row, or lists with an array per environment.

    >>> labelled_rows([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], ["b", "a", "b"])[2:]
    (array([0, 1, 0]), ('b', 'a'))
    >>> labelled_rows([[[1.0], [2.0]], [[3.0]]], [[1.0, 2.0], [3.0]]).codes.tolist()
    [0, 0, 1]
    """
    # An array, a Series or a list of numbers holds the responses of all rows.
    if isinstance(y, list | tuple) and len(y) > 0 and all(np.ndim(part) >= 1 for part in y):
        return _joined(X, y, environments)
    if environments is None:
        raise GyrostatError(
            "environments is missing: give one label for each row, or give X and y as lists with one array per environment."
        )
    _same_index(X=X, y=y, environments=environments)
    inputs, responses = _inputs("X", X), _responses("y", y)
    labels, rows = grouped(environments)
    count = sum(map(len, rows))
    if not len(inputs) == len(responses) == count:
        raise GyrostatError(
            f"X, y and environments must have one entry per row; got {len(inputs)}, {len(responses)} and {count} rows."
        )
    codes = np.empty(count, dtype=int)
    for code, where in enumerate(rows):
        codes[where] = code
    return LabelledRows(inputs, responses, codes, tuple(labels))


def _joined(X: Any, y: Sequence[Any], environments: Any) -> LabelledRows:
    """The rows of lists with an array for each environment."""
    count = len(y)
    if not isinstance(X, list | tuple) or len(X) != count:
        got = len(X) if isinstance(X, list | tuple) else errors.shown(X)
        raise GyrostatError(f"y lists {count} environments, so X must list as many arrays; got {got}.")
    labels = tuple(range(count)) if environments is None else tuple(grouped(environments)[0])
    if len(labels) != count:
        raise GyrostatError(
            f"environments must name each of the {count} arrays of X and y once; got {len(labels)} different labels."
        )
    inputs, responses = [], []
    for label, X_e, y_e in zip(labels, X, y, strict=True):
        name_X, name_y = (f"{name} of environment {label!r}" for name in ("X", "y"))
        _same_index(**{name_X: X_e, name_y: y_e})
        inputs.append(_inputs(name_X, X_e))
        responses.append(_responses(name_y, y_e))
        rows, width, first = len(inputs[-1]), inputs[-1].shape[1:], inputs[0].shape[1:]
        if rows != len(responses[-1]) or rows == 0:
            raise GyrostatError(
                f"environment {label!r} has {rows} rows in X and {len(responses[-1])} in y: give both at least one, as many."
            )
        if width != first:
            raise GyrostatError(
                f"rows of environment {label!r} have shape {width}, those of {labels[0]!r} {first}: make them equal."
            )
    codes = np.repeat(np.arange(count), [len(rows) for rows in inputs])
    return LabelledRows(np.concatenate(inputs), np.concatenate(responses), codes, labels)


def _inputs(name: str, X: Any) -> np.ndarray:
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        kinds = zip(X.columns, X.dtypes, strict=True)
        words = [str(column) for column, dtype in kinds if getattr(dtype, "kind", "O") not in "biuf"]
        if words:
            raise GyrostatError(f"{name} has columns that are not numbers ({', '.join(words)}): leave them out.")
    return errors.array(name, X, ndim=(2, 3))


def _responses(name: str, y: Any) -> np.ndarray:
    values = errors.array(name, y, ndim=(1, 2))
    if values.ndim == 2 and values.shape[1] != 1:
        raise GyrostatError(f"{name} must hold one number per row; got shape {values.shape}.")
    return values.reshape(-1)


def _same_index(**tables: Any) -> None:
    """Refuse pandas objects whose rows are labelled differently: they would be joined in the wrong order."""
    indexed = {name: x.index for name, x in tables.items() if hasattr(x, "index") and hasattr(x, "iloc")}
    if len(indexed) < 2:
        return
    (first, index), *others = indexed.items()
    for name, other in others:
        if len(other) != len(index) or other.equals(index):
            continue
        # Rows numbered from 0 are in their own order, unless the other table holds the same numbers in another order.
        numbered = any(list(i) == list(range(len(i))) for i in (index, other))
        if not numbered or set(other) == set(index):
            raise GyrostatError(
                f"{first} and {name} have rows in another order or with another index: align them first."
            )
