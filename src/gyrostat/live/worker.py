"""A process that computes, one message at a time, and the handle by which an event loop talks to it.

JAX runs in one thread of that process only: two programs of one process from two threads can wait for each other for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing as mp
import signal
import threading
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from gyrostat.lab.threads import one_thread

END = "end"
GONE = "The computing process ended (out of memory, perhaps). It is started again with the next change."


class _Bench:
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
        from gyrostat.live.jobs import BACKGROUND, JOBS

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


def _main(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's to handle, which then ends this process
    bench = _Bench(connection)
    with contextlib.suppress(EOFError, OSError):  # the server is gone
        while True:
            bench.listen()
            bench.step()


class Worker:
    """The process as an event loop sees it: ``ask`` gives the messages of a job as they come.

    It is started when it is first asked, and again after it has died or was ended for taking too long.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._queues: dict[int, asyncio.Queue] = {}
        self._numbers = iter(range(1, 2**62))

    def start(self) -> None:
        """Start the process if it is not running."""
        if self._process is not None:
            return
        ours, theirs = mp.get_context("spawn").Pipe()
        with one_thread():  # read by BLAS and XLA in the new process
            self._process = mp.get_context("spawn").Process(target=_main, args=(theirs,), daemon=True)
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
        if number in self._queues:
            self._queues[number].put_nowait(message)

    def _lost(self, connection: Connection) -> None:
        if connection is self._connection:
            self.stop()  # it may not have ended yet, only let go of its end

    def stop(self) -> None:
        """End the process and tell those who wait for it."""
        process, self._process, self._connection = self._process, None, None
        if process is not None:
            process.kill()
            process.join()
        for queue in self._queues.values():
            queue.put_nowait({"kind": "failed", "text": GONE})

    def submit(self, kind: str, payload: dict[str, Any]) -> Ticket:
        """Hand in a job."""
        self.start()
        assert self._connection is not None
        number = next(self._numbers)
        self._queues[number] = asyncio.Queue()
        self._connection.send((number, kind, payload))
        return Ticket(self, number)

    def forget(self, number: int, finished: bool) -> None:
        """Let go of a job, and tell the process if it has not finished."""
        self._queues.pop(number, None)
        if not finished and self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.send((number, "drop", {}))


class Ticket:
    """A job that was handed in."""

    def __init__(self, worker: Worker, number: int):
        self.worker, self.number, self.finished = worker, number, False
        self.queue = worker._queues[number]

    def supersede(self) -> None:
        """End it at once for the one who waits, and let go of it in the process."""
        self.queue.put_nowait({"kind": "superseded"})

    async def next(self, seconds: float) -> dict[str, Any]:
        """The next message; after so many seconds without one the process is ended."""
        try:
            message = await asyncio.wait_for(self.queue.get(), seconds)
        except TimeoutError:
            self.worker.stop()
            self.finished = True
            return {
                "kind": "failed",
                "text": f"This took more than {seconds:.0f} s and was stopped: lower the dimension, the steps or the seeds.",
            }
        self.finished = message["kind"] in (END, "failed")
        return message

    def close(self) -> None:
        """No more messages are wanted."""
        self.worker.forget(self.number, self.finished)
