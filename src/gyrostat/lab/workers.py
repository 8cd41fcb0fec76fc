"""The processes that compute, and which of them does what.

``JobQueue`` runs inside a process and steps its jobs; ``Worker`` is that process as the server's event loop sees it;
``Dispatcher`` hands the jobs of a request to workers and ends them when the same window asks for something newer.

In a process JAX runs in one thread only: two programs started from two threads can wait for each other without end.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing as mp
import signal
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Hashable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from gyrostat.errors import GyrostatError
from gyrostat.parallel.threads import one_thread

END, FAILED, SUPERSEDED = "end", "failed", "superseded"
"""Kinds of messages that end a job."""
MOST_REQUESTS = 24
TIMEOUT = 90.0
"""Seconds after which a computation without a message is stopped."""
TABLES = -1
"""The number of the worker for tables."""
PROCESS_ENDED = "The computing process ended (out of memory, perhaps). It is started again with the next change."


class TooBusy(GyrostatError):
    """A request for which there is no room now."""


# ---------------------------------------------------------------------------------- inside a process


class JobQueue:
    """The jobs of a process: generators that take turns. Jobs in the background are stepped only when no other job waits."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.urgent: deque[tuple[int, Iterator]] = deque()
        self.background: deque[tuple[int, Iterator]] = deque()

    def receive(self) -> None:
        """Take in the jobs that have arrived; without a job to step, wait for one."""
        while not (self.urgent or self.background) or self.connection.poll():
            self._take(*self.connection.recv())

    def _take(self, number: int, kind: str, arguments: dict[str, Any]) -> None:
        from gyrostat.lab.computations import BACKGROUND, JOBS

        if kind == "drop":
            for jobs in (self.urgent, self.background):
                kept = [job for job in jobs if job[0] != number]
                jobs.clear()
                jobs.extend(kept)
        else:
            (self.background if kind in BACKGROUND else self.urgent).append((number, JOBS[kind](**arguments)))

    def step(self) -> None:
        """Run the first job up to its next message, send it, and put the job at the end of its queue."""
        jobs = self.urgent or self.background
        number, job = jobs.popleft()
        try:
            message = next(job)
        except StopIteration:
            message = {"kind": END}
        except Exception as error:  # the page shows whatever a computation raises
            message = {"kind": FAILED, "text": _one_line(error)}
        if message is None or message["kind"] not in (END, FAILED):
            jobs.append((number, job))
        if message is not None:
            self.connection.send((number, message))


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())[:400]
    return text if isinstance(error, GyrostatError) else f"{type(error).__name__}: {text}"


def work(connection: Connection) -> None:
    """The main function of a process: step jobs until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C and then ends this process
    queue = JobQueue(connection)
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        while True:
            queue.receive()
            queue.step()


# ------------------------------------------------------------------------------------- in the server


class Worker:
    """A process that computes. It starts with its first job, and again after it has died or was stopped.

    The jobs of a ``disposable`` one take long and cannot be interrupted: it is stopped when nobody waits for its jobs any more.
    """

    def __init__(self, *, disposable: bool = False) -> None:
        self._disposable = disposable
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._messages: dict[int, asyncio.Queue] = {}
        self._numbers = iter(range(1, 2**62))

    def start(self) -> None:
        """Start the process if it is not running."""
        if self._process is not None:
            return
        ours, theirs = mp.get_context("spawn").Pipe()
        with one_thread():  # read by BLAS and XLA in the new process
            self._process = mp.get_context("spawn").Process(target=work, args=(theirs,), daemon=True)
            self._process.start()
        theirs.close()
        self._connection, loop = ours, asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(ours, loop), daemon=True).start()

    def _read(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended
            try:
                while True:
                    loop.call_soon_threadsafe(self._deliver, *connection.recv())
            except (EOFError, OSError):
                loop.call_soon_threadsafe(self._lost, connection)

    def _deliver(self, number: int, message: dict[str, Any]) -> None:
        if number in self._messages:
            self._messages[number].put_nowait(message)

    def _lost(self, connection: Connection) -> None:
        if connection is self._connection:
            self.stop()  # the process may still be there, with its end of the pipe closed

    def stop(self) -> None:
        """End the process; jobs that wait for it fail."""
        process, self._process, self._connection = self._process, None, None
        if process is not None:
            process.kill()
            process.join()
        for queue in self._messages.values():
            queue.put_nowait({"kind": FAILED, "text": PROCESS_ENDED})

    def submit(self, kind: str, arguments: dict[str, Any], seconds: float) -> PendingJob:
        """Send a job to the process."""
        self.start()
        assert self._connection is not None
        number = next(self._numbers)
        self._messages[number] = asyncio.Queue()
        self._connection.send((number, kind, arguments))
        return PendingJob(self, number, self._messages[number], seconds)

    def forget(self, number: int, finished: bool) -> None:
        """Deliver no more messages of a job, and have the process drop it if it has not finished."""
        self._messages.pop(number, None)
        if finished:
            return
        if self._disposable and not self._messages:
            self.stop()
        elif self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.send((number, "drop", {}))


class PendingJob:
    """A job that was sent to a worker, and its messages."""

    def __init__(self, worker: Worker, number: int, messages: asyncio.Queue, seconds: float):
        self.worker, self.number, self.messages, self.finished = worker, number, messages, False
        self.seconds = seconds

    def supersede(self) -> None:
        """Tell the request that waits for this job that a newer one has replaced it."""
        self.messages.put_nowait({"kind": SUPERSEDED})

    async def next_message(self) -> dict[str, Any]:
        """The next message. Without one for ``seconds``, the process is ended and the job fails."""
        try:
            message = await asyncio.wait_for(self.messages.get(), self.seconds)
        except TimeoutError:
            self.worker.stop()
            self.finished = True
            less = "the dimension, the steps, the seeds, or the rows and columns of a table"
            text = f"This took more than {self.seconds:.0f} s and was stopped: lower {less}."
            return {"kind": FAILED, "text": text}
        self.finished = message["kind"] in (END, FAILED)
        return message

    def close(self) -> None:
        """Ask for no more messages."""
        self.worker.forget(self.number, self.finished)


class JobRequest(NamedTuple):
    """A job for a worker, by the worker's number (modulo their count), or for the one of ``TABLES``.

    It fails after ``seconds`` without a message.
    """

    worker: int
    kind: str
    arguments: dict[str, Any]
    seconds: float = TIMEOUT


class OpenRequest:
    """A request whose jobs are under way; without ``pending`` jobs, one that came after a newer one of its window."""

    def __init__(
        self,
        register: dict[tuple[str, str], OpenRequest],
        key: tuple[str, str],
        number: int,
        pending: list[PendingJob] | None,
    ):
        self.register, self.key, self.number, self.pending = register, key, number, pending

    async def messages(self) -> AsyncGenerator[dict[str, Any], None]:
        """The messages of all jobs, until a newer request replaces this one."""
        if self.pending is None:
            yield {"kind": SUPERSEDED}
            return
        async for message in _merged(self.pending):
            yield message
            if message["kind"] == SUPERSEDED:
                return

    def close(self) -> None:
        """Give the jobs back and make room for others."""
        for job in self.pending or ():
            job.close()
        if self.register.get(self.key) is self:
            del self.register[self.key]


class Dispatcher:
    """Hands the jobs of requests to ``groups`` groups of ``size`` workers and one for tables; messages come back in order.

    Every window has one open request per topic (curves, phase diagram, table); a newer one replaces it.
    """

    def __init__(self, size: int = 2, groups: int = 2):
        self.size, self.workers = size, [Worker() for _ in range(size * groups)]
        self.tables = Worker(disposable=True)
        self._groups: dict[Hashable, int] = {}
        self._last = -size
        self._open: dict[tuple[str, str], OpenRequest] = {}

    def first_worker(self, program: Hashable) -> int:
        """The number of the first worker of the group that has compiled a program.

        A new program goes to the group that was not asked last. A compilation takes seconds and cannot be stopped, and
        meanwhile the other group can still draw what was on the page before.

        >>> dispatcher = Dispatcher()
        >>> [dispatcher.first_worker(p) for p in ("two layers", "three layers", "two layers", "four layers")]
        [0, 2, 0, 2]
        """
        if program not in self._groups:
            self._groups[program] = (self._last + self.size) % len(self.workers)
        self._last = self._groups[program]
        return self._last

    def open(self, window: str, topic: str, number: int, jobs: Sequence[JobRequest]) -> OpenRequest:
        """Hand out the jobs of a request, which replaces one of a lower number of the same window and topic."""
        before = self._open.get((window, topic))
        if before is not None and before.number > number:
            return OpenRequest(self._open, (window, topic), number, None)
        for job in before.pending or () if before else ():
            job.supersede()
        if before is None and len(self._open) >= MOST_REQUESTS:
            raise TooBusy(f"{MOST_REQUESTS} drawings are under way: wait a moment, or close some windows.")
        pending = [self._worker(job.worker).submit(job.kind, job.arguments, job.seconds) for job in jobs]
        mine = OpenRequest(self._open, (window, topic), number, pending)
        self._open[window, topic] = mine
        return mine

    def _worker(self, number: int) -> Worker:
        return self.tables if number == TABLES else self.workers[number % len(self.workers)]

    async def messages(
        self, window: str, topic: str, number: int, jobs: Sequence[JobRequest]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The messages of all jobs of a request, until a higher number of the same window and topic replaces it."""
        opened = self.open(window, topic, number, jobs)
        try:
            async with contextlib.aclosing(opened.messages()) as messages:
                async for message in messages:
                    yield message
        finally:
            opened.close()

    def stop(self) -> None:
        """End all processes."""
        for worker in (*self.workers, self.tables):
            worker.stop()


async def _merged(jobs: list[PendingJob]) -> AsyncIterator[dict[str, Any]]:
    """The messages of several jobs in the order they come, until all jobs have ended."""
    waiting = {asyncio.ensure_future(job.next_message()): job for job in jobs}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                job, message = waiting.pop(future), future.result()
                if message["kind"] != END:
                    yield message
                if not job.finished and message["kind"] != SUPERSEDED:
                    waiting[asyncio.ensure_future(job.next_message())] = job
    finally:
        for future in waiting:
            future.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*waiting, return_exceptions=True)
