"""Environment labels as the estimators take them: one label per row, from which the rows of each environment follow."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sources.row_labels import coded, grouped


def rows_by_environment(environments: Any, count: int, *, least: int) -> tuple[list, list[np.ndarray]]:
    """The distinct labels and the rows of each environment; one environment with the label None if there are no labels."""
    if environments is None:
        return [None], [np.arange(count)]
    labels, rows = grouped(environments)
    if (total := sum(map(len, rows))) != count:
        raise GyrostatError(f"environments must hold one label for each of the {count} rows of X; got {total}.")
    few = [label for label, mine in zip(labels, rows, strict=True) if len(mine) < least]
    if few:
        raise GyrostatError(
            f"environments must have at least {least} rows each; {errors.shown(few[0])} has fewer: merge it with another, "
            "or leave it out."
        )
    return labels, rows


def environment_codes(environments: Any, count: int) -> tuple[list, np.ndarray]:
    """The distinct labels, and the number of each row's label among them; no labels and zeros if there are none.

    >>> environment_codes(["b", "a", "b"], 3)
    (['b', 'a'], array([0, 1, 0]))
    """
    if environments is None:
        return [], np.zeros(count, dtype=int)
    labels, rows = grouped(environments)
    codes = np.empty(sum(map(len, rows)), dtype=int)
    for code, mine in enumerate(rows):
        codes[mine] = code
    if len(codes) != count:
        raise GyrostatError(f"environments must hold one label for each of the {count} rows; got {len(codes)}.")
    return labels, codes


def cluster_codes(cluster: Any, count: int, environments: list, rows: list[np.ndarray], *, least: int) -> Any:
    """The number of each row's cluster, or None; every environment must have at least ``least`` clusters.

    A warning is given if clusters reach over environments, because rows of different environments count as independent.
    """
    if cluster is None:
        return None
    try:
        _, codes = coded(cluster)
    except GyrostatError as error:
        raise GyrostatError(str(error).replace("environments", "cluster", 1)) from None
    if len(codes) != count:
        raise GyrostatError(f"cluster must hold one label for each of the {count} rows of X; got {len(codes)}.")
    own = [np.unique(codes[mine]) for mine in rows]
    for label, found in zip(environments, map(len, own), strict=True):
        if found < least:
            raise GyrostatError(
                f"cluster must have at least {least} values in every environment, or errors cannot be estimated; "
                f"{errors.shown(label)} has {found}: merge environments, or leave it out."
            )
    if shared := int(np.sum(np.unique(np.concatenate(own), return_counts=True)[1] > 1)):
        warnings.warn(
            f"cluster holds {shared} labels that occur in several environments, where they count as different clusters. If "
            "they are the same (a patient in two hospitals), standard errors are too small; if not, relabel them.",
            stacklevel=4,
        )
    return codes


def known_environment_codes(environments: Any, count: int, known: list) -> np.ndarray:
    """The number of each row's label among the labels that were known when the estimator was fitted."""
    if not known:
        return np.zeros(count, dtype=int)
    if environments is None:
        raise GyrostatError(
            "environments is missing: fit was given one label for each row, so transform needs them too."
        )
    labels, codes = environment_codes(environments, count)
    if unknown := [label for label in labels if label not in known]:
        raise GyrostatError(f"environments holds {errors.shown(unknown[0])}, which fit has not seen.")
    return np.array([known.index(label) for label in labels])[codes]


def stacked(pairs: Sequence[tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``X, y, environments`` for ``fit`` from a list with one ``(X, y)`` per environment.

    Parameters
    ----------
    pairs
        One ``(X, y)`` per environment.

    >>> X, y, environments = stacked([(np.ones((2, 3)), [1, 2]), (np.zeros((1, 3)), [3])])
    >>> X.shape, y.tolist(), environments.tolist()
    ((3, 3), [1, 2, 3], [0, 0, 1])
    """
    if (
        not isinstance(pairs, Sequence)
        or not all(isinstance(p, tuple | list) and len(p) == 2 for p in pairs)
        or not pairs
    ):
        raise GyrostatError(f"pairs must list one (X, y) per environment; got {errors.shown(pairs)}.")
    shapes = [(np.shape(X), np.shape(y)) for X, y in pairs]
    for e, (shape_of_X, shape_of_y) in enumerate(shapes):
        if len(shape_of_X) != 2 or shape_of_X[1] != shapes[0][0][1] or shape_of_y != shape_of_X[:1]:
            raise GyrostatError(
                f"pairs[{e}] has X of shape {shape_of_X} and y of shape {shape_of_y}: give every environment an X with as "
                "many columns as the first, and a y with one number for each row."
            )
    X, y = (np.concatenate([np.asarray(pair[i]) for pair in pairs]) for i in (0, 1))
    return X, y, np.repeat(np.arange(len(pairs)), [len(pair[1]) for pair in pairs])
