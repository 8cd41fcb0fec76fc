"""Numbers whose squares a float holds: data with others are refused, because every sum of squares would be infinite or zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gyrostat.errors import LARGEST, GyrostatError


def squarable(name: str, values: np.ndarray, columns: Sequence[Any] | None = None, *, power: int = 1) -> None:
    """Refuse an array of finite numbers (rows, ...) if the squares of a column would be infinite, or would all vanish.

    ``columns`` are names for the message, and ``power`` is 2 if products of two numbers are squared. Sums of many squares of
    the largest numbers that pass can still be represented.

    >>> squarable("X", np.array([[1.0, 2.0], [3.0, 1e200]]), ["dose", "age"])
    Traceback (most recent call last):
    gyrostat.errors.GyrostatError: X holds 1e+200 in column age, whose square is too large a number: give it in a larger unit.
    """
    flat = np.abs(values.reshape(len(values), -1))
    peaks = flat.max(axis=0, initial=0.0)
    bad = np.flatnonzero((peaks > LARGEST ** (1 / power)) | ((peaks > 0) & (peaks < LARGEST ** (-1 / power))))
    if bad.size:
        peak, j = peaks[bad[0]], int(bad[0])
        where = f" in column {j if columns is None else columns[j]}" if flat.shape[1] > 1 or columns is not None else ""
        if peak > 1:
            raise GyrostatError(
                f"{name} holds {peak:g}{where}, whose square is too large a number: give it in a larger unit."
            )
        raise GyrostatError(
            f"{name} holds no number above {peak:g}{where}, and their squares vanish: give it in a smaller unit."
        )
