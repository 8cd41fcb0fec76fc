"""A process that computes, as an event loop sees it."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing as mp
import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from gyrostat.lab.process import END, main
from gyrostat.parallel.threads import one_thread

GONE = "The computing process ended (out of memory, perhaps). It is started again with the next change."


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
            self._process = mp.get_context("spawn").Process(target=main, args=(theirs,), daemon=True)
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
