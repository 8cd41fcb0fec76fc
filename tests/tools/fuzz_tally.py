"""The counts of the fuzz suite: what was tried, what was refused, what went wrong; printed at the end by ``make fuzz``."""

from __future__ import annotations

import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

from gyrostat.errors import GyrostatError

FULL = "GYROSTAT_FUZZ" in os.environ
"""Whether the whole suite is run (``make fuzz``) or the small part of ``make test``."""

SECONDS = 60
"""After so many seconds a case counts as one that never ends."""


def cases(small: int, full: int) -> settings:
    """Settings of hypothesis with a number of cases for each of the two sizes; both are the same in every run."""
    return settings(
        max_examples=full if FULL else small,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


class Tally:
    """Counts of one suite. ``foreign`` are exceptions that are no sentences of ours, ``silent`` bad input that was taken."""

    def __init__(self, name: str):
        self.name, self.tried, self.refused = name, 0, 0
        self.foreign: Counter[str] = Counter()
        self.silent: Counter[str] = Counter()

    def attempt(self, what: str, call: Callable[[], Any], *, is_bad: bool, also: tuple[type, ...] = ()) -> None:
        """Make a call. It may succeed unless its input ``is_bad``; otherwise it must raise one of our sentences."""
        self.tried += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _within(call)
        except GyrostatError as error:
            self.refused += 1
            if "\n" in str(error) or not str(error).endswith((".", "?")):
                self.foreign[f"{what}: not one sentence: {str(error)[:120]!r}"] += 1
        except also:
            self.refused += 1
        except Exception as error:
            self.foreign[f"{what}: {type(error).__name__}: {str(error)[:120]!r}"] += 1
        else:
            self.silent[what] += is_bad

    def check(self) -> None:
        """Fail with everything that went wrong."""
        wrong = [f"foreign: {text} ({n})" for text, n in self.foreign.items()]
        wrong += [f"silently accepted: {text} ({n})" for text, n in self.silent.items() if n]
        assert not wrong, "\n".join(wrong)


def _within(call: Callable[[], Any]) -> None:
    def end(*_: object) -> None:
        raise TimeoutError(f"no end after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        call()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


TALLIES: dict[str, Tally] = {}
"""The counts of every suite that has run in this process."""


def table() -> list[str]:
    """The counts as lines of text."""
    rows = [(t.name, t.tried, t.refused, t.foreign.total(), t.silent.total()) for t in TALLIES.values()]
    sums = tuple(sum(row[i] for row in rows) for i in range(1, 5))
    lines = [f"{'suite':16}{'tried':>9}{'refused':>9}{'foreign exceptions':>20}{'silently accepted':>19}"]
    return lines + [f"{row[0]:16}{row[1]:9}{row[2]:9}{row[3]:20}{row[4]:19}" for row in (*rows, ("all", *sums))]
