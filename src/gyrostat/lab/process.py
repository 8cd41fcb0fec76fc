"""Inside a process that computes: jobs are generators, stepped one message at a time.

JAX runs in one thread of that process only: two programs of one process from two threads can wait for each other for ever.
"""

from __future__ import annotations

import contextlib
import signal
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

END = "end"


class Bench:
    """Jobs that wait inside the process: generators, those in the background stepped only when there is nothing else."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.urgent: deque[tuple[int, Iterator]] = deque()
        self.background: deque[tuple[int, Iterator]] = deque()

    def listen(self) -> None:
        """Take in what has arrived, waiting for it when there is nothing to do."""
        while not (self.urgent or self.background) or self.connection.poll():
            self._take(*self.connection.recv())

    def _take(self, number: int, kind: str, payload: dict[str, Any]) -> None:
        from gyrostat.lab.jobs import BACKGROUND, JOBS

        if kind == "drop":
            for jobs in (self.urgent, self.background):
                kept = [job for job in jobs if job[0] != number]
                jobs.clear()
                jobs.extend(kept)
        else:
            (self.background if kind in BACKGROUND else self.urgent).append((number, JOBS[kind](**payload)))

    def step(self) -> None:
        """The first job goes on to its next message, and to the end of the queue."""
        jobs = self.urgent or self.background
        number, job = jobs.popleft()
        try:
            message = next(job)
        except StopIteration:
            message = {"kind": END}
        except Exception as error:  # whatever a computation raises is told to the one who asked
            message = {"kind": "failed", "text": _line(error)}
        if message is None or message["kind"] not in (END, "failed"):
            jobs.append((number, job))
        if message is not None:
            self.connection.send((number, message))


def _line(error: Exception) -> str:
    from gyrostat.errors import GyrostatError

    text = " ".join(str(error).split())[:400]
    return text if isinstance(error, GyrostatError) else f"{type(error).__name__}: {text}"


def main(connection: Connection) -> None:
    """Work until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's to handle, which then ends this process
    bench = Bench(connection)
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        while True:
            bench.listen()
            bench.step()
