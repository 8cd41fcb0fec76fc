"""The processes that compute.

In a process JAX runs in one thread only: two programs started from two threads can wait for each other without end. So each
process steps its jobs in turn, and a job for which nobody waits any more is dropped between two of its steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing as mp
import signal
from collections.abc import AsyncIterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from gyrostat.errors import GyrostatError
from gyrostat.parallel.threads import one_thread

Job = tuple[int, str, dict[str, Any]]
"""The number of a worker (modulo their count), the name of a computation, and its arguments."""
END, FAILED = "end", "failed"
"""The kinds of messages after which a job sends nothing more."""
DROP = ""
"""In place of the name of a computation: nobody waits for the job any more."""
PROCESS_ENDED = "The computing process ended (out of memory, perhaps). It is started again with the next change."


def one_sentence(error: Exception) -> str:
    """What the page says of an error.

    >>> one_sentence(GyrostatError("rank must be at most 3.")), one_sentence(KeyError("rank"))
    ('rank must be at most 3.', "KeyError: 'rank'")
    """
    text = " ".join(str(error).split())[:400]
    return text if isinstance(error, GyrostatError) else f"{type(error).__name__}: {text}"


def work(connection: Connection) -> None:
    """The main function of a process: step the jobs that it is sent until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C and then ends this process
    from gyrostat.lab.computations import COMPUTATIONS

    jobs: dict[int, tuple[str, Any]] = {}
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        while True:
            while not jobs or connection.poll():
                number, kind, arguments = connection.recv()
                if kind == DROP:
                    jobs.pop(number, None)
                else:
                    jobs[number] = kind, COMPUTATIONS[kind](**arguments)
            number = min(jobs, key=lambda n: jobs[n][0] != "curves")  # everything else goes on when no curve waits
            kind, job = jobs.pop(number)
            try:
                message = next(job, {"kind": END})
            except Exception as error:  # the page shows whatever a computation raises
                message = {"kind": FAILED, "text": one_sentence(error)}
            if message["kind"] not in (END, FAILED):
                jobs[number] = kind, job  # behind the others
            connection.send((number, message))


class Worker:
    """A process as the server's event loop sees it. It starts with its first job, and again after it has died."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Queue[Any]] = {}
        self.process: BaseProcess | None = None
        self.connection: Connection

    def start(self) -> None:
        """Start the process if it is not running."""
        if self.process is not None:
            return
        spawn = mp.get_context("spawn")
        self.connection, other_end = spawn.Pipe()
        with one_thread():  # read by BLAS and XLA in the new process
            self.process = spawn.Process(target=work, args=(other_end,), daemon=True)
            self.process.start()
        other_end.close()
        asyncio.get_running_loop().add_reader(self.connection.fileno(), self._read)

    def send(self, job: Job) -> None:
        """Give the process a job, with its number in place of the worker's."""
        with contextlib.suppress(OSError):  # the process has ended, and those who wait are told
            self.connection.send(job)

    def _read(self) -> None:
        try:
            while self.connection.poll():
                number, message = self.connection.recv()
                if number in self.waiting:
                    self.waiting[number].put_nowait(message)
        except (EOFError, OSError):
            self.stop()

    def stop(self) -> None:
        """End the process; jobs that wait for it fail."""
        process, self.process = self.process, None
        if process is None:
            return
        asyncio.get_running_loop().remove_reader(self.connection.fileno())
        self.connection.close()
        process.kill()
        process.join()
        for queue in self.waiting.values():
            queue.put_nowait({"kind": FAILED, "text": PROCESS_ENDED})


class LabWorkers:
    """Processes, and the messages of jobs that they run side by side."""

    def __init__(self, count: int = 2):
        self.workers = [Worker() for _ in range(count)]
        self._numbers = itertools.count(1)

    def start(self) -> None:
        """Start all processes."""
        for worker in self.workers:
            worker.start()

    async def messages(self, jobs: Sequence[Job]) -> AsyncIterator[dict[str, Any]]:
        """The messages of all jobs in the order they come; who stops asking has the jobs dropped."""
        queue: asyncio.Queue[Any] = asyncio.Queue()
        sent: list[tuple[Worker, int]] = []
        try:
            for place, kind, arguments in jobs:
                worker, number = self.workers[place % len(self.workers)], next(self._numbers)
                worker.start()
                worker.waiting[number] = queue
                sent.append((worker, number))
                worker.send((number, kind, arguments))
            running = len(sent)
            while running:
                message = await queue.get()
                running -= message["kind"] in (END, FAILED)
                if message["kind"] != END:
                    yield message
        finally:
            for worker, number in sent:
                del worker.waiting[number]
                worker.send((number, DROP, {}))

    def stop(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.stop()
