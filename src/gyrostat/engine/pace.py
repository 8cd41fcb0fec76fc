"""How many steps a part of a run has: parts take about a quarter of a second, so that a run can be interrupted."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

import numpy as np

from gyrostat.engine.one_run import RunPart

PART_SECONDS = 0.25
"""How long a part of a call takes, about: an interrupt ends a run after so long, and progress is shown as often."""

LEAST_MULTIPLE_OF_FIXED_COST = 4
"""A part takes at least so many times its fixed cost, also where that is longer than :data:`PART_SECONDS`."""

FIRST_STEPS = 4
"""The steps of the first part, whose cost is not known."""

MOST_GROWTH, MOST_GROWTH_IF_SLOW = 16, 4
"""The next part has at most so many times the steps of the last one, depending on whether that took :data:`PART_SECONDS`."""

TRIAL, RECENT = 8, 16
"""Every :data:`TRIAL` parts one is twice as long, which shows how much of the cost is fixed. Of all parts the last
:data:`RECENT` count."""


class Pace:
    """Cuts runs into parts that take about :data:`PART_SECONDS`, from the seconds that the parts before took.

    A part of n steps takes ``a + b n`` seconds. The fixed cost a is that of a call, which hands over the whole state and all
    recordings; on a busy machine it can exceed :data:`PART_SECONDS`, and shorter parts would then only add calls. So both
    numbers are estimated, by least squares.
    """

    def __init__(self) -> None:
        self.steps = FIRST_STEPS
        self.count = 0
        self.recent: deque[tuple[int, float]] = deque(maxlen=RECENT)

    def parts(self, grid: np.ndarray) -> Iterator[RunPart]:
        """The parts of a run with recordings at the steps of ``grid``; each is timed until the next one is asked for."""
        start, total = 0, int(grid[-1])
        while True:
            stop = min(start + self.steps, total)
            first, last = np.searchsorted(grid, start, "right") if start else 0, np.searchsorted(grid, stop) + 1
            began = time.perf_counter()
            # As NumPy's numbers: Python's would be of JAX's weak types, for which the program would be compiled again.
            yield RunPart(*(np.int64(x) for x in (start, stop, first, min(last, len(grid)))))  # type: ignore[arg-type]
            self._learn(stop - start, time.perf_counter() - began)
            if stop == total:
                return
            start = stop

    def _learn(self, steps: int, seconds: float) -> None:
        """Choose the length of the next part."""
        self.count += 1
        if self.count == 1 and seconds > 2 * PART_SECONDS:  # slow, or compiled first
            self.steps = max(1, steps // 2)
            return
        self.recent.append((steps, seconds))
        if steps == self.steps:  # else it was cut short by the end of the run
            fixed = self._fixed_cost()
            wanted = max(PART_SECONDS, LEAST_MULTIPLE_OF_FIXED_COST * fixed)
            growth = (wanted - fixed) / max(seconds - fixed, 1e-9)
            most = MOST_GROWTH if seconds < PART_SECONDS else MOST_GROWTH_IF_SLOW
            self.steps = max(1, int(steps * min(growth, most)))
            if self.count % TRIAL == 0:
                self.steps = max(self.steps, 2 * steps)

    def _fixed_cost(self) -> float:
        """The seconds of a part without steps: the intercept of a line through the recent parts, and no more than any took."""
        n, s = np.array(self.recent).T
        spread = n - n.mean()
        per_step = max(float(spread @ s) / float(spread @ spread), 0.0) if np.ptp(n) else np.inf
        return float(np.clip(s.mean() - per_step * n.mean(), 0.0, s.min()))
