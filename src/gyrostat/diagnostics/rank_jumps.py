"""Jumps of rank along recorded singular values: when they happen, between which ranks, and how a run ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gyrostat import errors
from gyrostat.errors import GyrostatError


class Jump(NamedTuple):
    """A lasting change of rank: the first recorded step of the new rank, the rank before and after."""

    step: int
    before: int
    after: int


class Jumps(NamedTuple):
    """The outcome of one run: its jumps, its final rank, and ``"settled"``, ``"collapsed"`` (rank 0) or ``"diverged"``."""

    jumps: list[Jump]
    rank: int
    end: str


def ranks(values: ArrayLike, *, ratio: float = 0.01, zero: float = 1e-3) -> np.ndarray:
    """The number of singular values of at least ``ratio`` times the largest; 0 when that is below ``zero``, -1 for NaN.

    >>> ranks([[2.0, 1.0], [2.0, 0.001], [1e-9, 1e-9], [np.nan, np.nan]]).tolist()
    [2, 1, 0, -1]
    """
    s = np.asarray(values, dtype=float)
    level = float(errors.number("ratio", ratio, above=0, most=1))
    least = float(errors.number("zero", zero, least=0))
    if s.ndim < 1 or s.shape[-1] == 0:
        raise GyrostatError(f"values must hold singular values along its last dimension; got shape {s.shape}.")
    top = s.max(axis=-1, keepdims=True)
    rank = np.sum(s >= level * top, axis=-1) * (top[..., 0] >= least)
    return np.where(np.isfinite(s).all(axis=-1), rank, -1)


@errors.explains_keywords
def jumps(values: ArrayLike, steps: ArrayLike, *, ratio: float = 0.01, zero: float = 1e-3) -> Jumps:
    """The lasting changes of rank along one path of singular values (records x values).

    A run leaves rank r at the first recorded step after the last one at which the rank is at least r: a path that dips and
    comes back has not jumped. For rank 2 that is right after the last step with s_2 / s_1 >= ``ratio``.

    Parameters
    ----------
    values
        Singular values, (records, values).
    steps
        The recorded steps.
    ratio
        The least share of the largest singular value that counts towards the rank.
    zero
        The largest singular value below which the rank is 0.

    >>> path = [[2, 1], [2, 0.001], [2, 1], [2, 0.001], [2, 1e-9]]
    >>> jumps(path, [0, 10, 20, 30, 40])
    Jumps(jumps=[Jump(step=30, before=2, after=1)], rank=1, end='settled')
    """
    s, t = np.asarray(values, dtype=float), np.asarray(steps)
    if s.ndim != 2 or t.shape != s.shape[:1] or len(t) == 0:
        raise GyrostatError(
            f"values must be records x singular values with one step each; got shapes {s.shape} and {t.shape}."
        )
    if (np.diff(t) <= 0).any():
        raise GyrostatError("steps must increase.")
    path = ranks(s, ratio=ratio, zero=zero)
    alive = path[: np.argmax(path < 0)] if (path < 0).any() else path
    if alive.size == 0:
        return Jumps([], -1, "diverged")
    # The largest rank from each record on.
    ahead = np.maximum.accumulate(alive[::-1])[::-1]
    (at,) = np.nonzero(np.diff(ahead) < 0)
    listed = [Jump(int(t[k + 1]), int(ahead[k]), int(ahead[k + 1])) for k in at]
    if len(alive) < len(path):
        return Jumps(listed, -1, "diverged")
    return Jumps(listed, int(alive[-1]), "collapsed" if alive[-1] == 0 else "settled")


@errors.explains_keywords
def jump_times(values: ArrayLike, steps: ArrayLike, *, rank: int = 1, ratio: float = 0.01) -> np.ndarray:
    """The first step from which the rank of each run stays at most ``rank``; infinite if there is none or the run diverges.

    ``values`` has the shape (..., records, singular values).

    Parameters
    ----------
    values
        Singular values, (..., records, values).
    steps
        The recorded steps.
    rank
        The rank to stay at or below.
    ratio
        The least share of the largest singular value that counts towards the rank.

    >>> jump_times([[[2.0, 1.0], [2.0, 1e-9]], [[2.0, 1.0], [2.0, 1.0]]], [0, 10]).tolist()
    [10.0, inf]
    """
    s, t = np.asarray(values, dtype=float), np.asarray(steps)
    if s.ndim < 2 or t.shape != s.shape[-2:-1]:
        raise GyrostatError(
            f"values must end in records x singular values with one step each; got shapes {s.shape} and {t.shape}."
        )
    r = errors.integer("rank", rank)
    paths = ranks(s, ratio=ratio, zero=0.0)
    above = (paths > r) | (paths < 0)
    last = above.shape[-1] - np.argmax(above[..., ::-1], axis=-1)  # one past the last record above, if any
    last = np.where(above.any(axis=-1), last, 0)
    return np.where(last < len(t), np.append(t, 0)[last].astype(float), np.inf)
