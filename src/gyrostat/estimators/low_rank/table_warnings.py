"""What is said of a table with too few cells, or with rows and columns of which too little is known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gyrostat.estimators.low_rank.solver import Observed


def warn_if_few(seen: Observed) -> None:
    """Fewer cells than the degrees of freedom of a matrix of rank one."""
    if len(seen) < (least := seen.freedom(1)):
        warnings.warn(
            f"X has {len(seen)} observed cells, fewer than the {least} degrees of freedom of a {seen.shape[0]} x "
            f"{seen.shape[1]} matrix of rank one: expect little beyond offsets.",
            stacklevel=3,
        )


def warn_of_empty(rows: np.ndarray, columns: np.ndarray, names: Any) -> None:
    """Name the rows and columns without any observed cell."""
    if said := " and in ".join(_said(rows, columns, names)):
        warnings.warn(
            f"Nothing is observed in {said}: they are filled with offsets only (the mean of the rest of their row or column "
            "with offsets, else zero).",
            stacklevel=3,
        )


def warn_of_free(rows: np.ndarray, columns: np.ndarray, names: Any) -> None:
    """Name the rows and columns that an exact fit does not determine."""
    if said := " and ".join(_said(rows, columns, names)):
        warnings.warn(
            f"The fit is exact, but {said} have too few cells to be determined by it: do not rely on those.",
            stacklevel=3,
        )


def warn_of_short(seen: Observed, rank: int) -> None:
    """Name the rows, new ones perhaps, with fewer cells than the rank of an exact fit."""
    short = np.flatnonzero(np.bincount(seen.rows, minlength=seen.shape[0]) < rank)
    if short.size:
        warnings.warn(
            f"rows {_listed(short)} have fewer cells than the rank {rank}: their missing cells are not determined.",
            stacklevel=3,
        )


def _said(rows: np.ndarray, columns: np.ndarray, names: Any) -> list[str]:
    said = [f"rows {_listed(rows)}"] if rows.size else []
    if columns.size:
        said.append(f"columns {_listed(columns if names is None else np.asarray(names)[columns])}")
    return said


def _listed(names: np.ndarray, most: int = 8) -> str:
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
