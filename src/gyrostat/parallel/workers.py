"""Running tasks: in this process, or in worker processes that take one task after the other.

Workers only compute. They send their data back, and the parent alone writes, so that nothing a dying or
orphaned worker does can reach the results folder.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, Self, TypeVar

REPORT_EVERY = 0.2


class Task(Protocol):
    """What can be run here or in another process."""

    @property
    def weight(self) -> float:
        """A rough cost: long ones start first."""

    @property
    def program(self) -> Hashable:
        """Tasks that agree in this compile the same programs, so a worker likes to go on with them."""

    def compute(self, progress: Callable[[int, int], None]) -> tuple[Any, float]:
        """The result and the seconds it took."""


Job = TypeVar("Job", bound=Task)


class Listener(Protocol[Job]):
    """What is told about tasks as they run. A failure may be answered with tasks to run instead."""

    def started(self, task: Job) -> None: ...
    def progress(self, task: Job, done: int, total: int) -> None: ...
    def finished(self, task: Job, result: Any, seconds: float) -> None: ...
    def failed(self, task: Job, line: str, details: str) -> Sequence[Job]: ...


def run_tasks(tasks: Sequence[Job], jobs: int, listener: Listener[Job]) -> None:
    """Run all tasks, the largest weight first; one that raises is reported and does not stop the others."""
    if jobs == 1 or len(tasks) <= 1:
        run_here(tasks, listener)
    else:
        run_in_workers(tasks, jobs, listener)


def _ordered(tasks: Sequence[Job]) -> deque[Job]:
    return deque(sorted(tasks, key=lambda task: -task.weight))


def explain(error: BaseException) -> tuple[str, str]:
    """An exception as one line and as a traceback."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__, "".join(
        traceback.format_exception(error)
    )


def run_here(tasks: Sequence[Job], listener: Listener[Job]) -> None:
    """Run all tasks in this process."""
    waiting = _ordered(tasks)
    while waiting:
        task = waiting.popleft()
        listener.started(task)
        try:
            result, seconds = task.compute(partial(listener.progress, task))
        except Exception as error:
            waiting.extend(listener.failed(task, *explain(error)))
        else:
            listener.finished(task, result, seconds)


def run_in_workers(tasks: Sequence[Job], jobs: int, listener: Listener[Job]) -> None:
    """Run all tasks in ``jobs`` worker processes."""
    with Workers(jobs) as workers:
        workers.run(tasks, listener)


@dataclass
class _Worker:
    process: BaseProcess
    task: Any = None


class Workers:
    """Worker processes that take one task after the other; one that dies is replaced while there is work.

    They stay between calls of :meth:`run`, with what they have compiled, and end with the block. ``prepare`` is the first
    thing that a worker calls.
    """

    def __init__(self, jobs: int, prepare: Callable[[], Any] | None = None):
        self.jobs, self.prepare = jobs, prepare
        self.busy: dict[Any, _Worker] = {}
        self.idle: dict[Any, _Worker] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.busy.values():
            worker.process.terminate()
        for link in self.idle:
            link.close()  # heard as the end
        for link, worker in (self.busy | self.idle).items():
            worker.process.join()
            link.close()

    def run(self, tasks: Sequence[Job], listener: Listener[Job]) -> None:
        """Run all tasks, the largest weight first."""
        waiting = _ordered(tasks)
        while waiting or self.busy:
            while waiting and len(self.busy) < self.jobs:
                link, worker = self.idle.popitem() if self.idle else _start_worker(self.prepare)
                self.busy[link] = worker
                self._give(link, waiting, listener)
            # A signal that arrives just before the wait begins would only be noticed at its end: look up now and then.
            for ready in wait(list(self.busy), timeout=1.0):
                self._hear(ready, waiting, listener)

    def _hear(self, link: Any, waiting: deque[Any], listener: Listener) -> None:
        worker = self.busy[link]
        task = worker.task
        try:
            kind, *content = link.recv()
        except (EOFError, OSError):  # the worker is gone: killed, out of memory
            del self.busy[link]
            worker.process.join()
            line = f"its worker process ended with exit status {worker.process.exitcode} (killed, or out of memory)"
            waiting.extend(listener.failed(task, line, line))
            return
        if kind == "progress":
            listener.progress(task, *content)
            return
        if kind == "failed":
            waiting.extend(listener.failed(task, *content))
        # The next task goes out before this one is written and drawn, so that the worker does not wait for that.
        if waiting:
            self._give(link, waiting, listener)
        else:
            self.idle[link] = self.busy.pop(link)
        if kind == "finished":
            listener.finished(task, *content)

    def _give(self, link: Any, waiting: deque[Any], listener: Listener) -> None:
        worker = self.busy[link]
        worker.task = _next(waiting, worker.task)
        listener.started(worker.task)
        try:
            link.send(worker.task)
        except OSError:  # it died between two tasks: its end of file is heard next, and reported as this task's failure
            return


def _next(waiting: deque[Any], last: Task | None) -> Any:
    """The first task that computes what the worker has just computed, its programs being compiled there, or the first."""
    task = next((t for t in waiting if last is not None and t.program == last.program), waiting[0])
    waiting.remove(task)
    return task


def _start_worker(prepare: Callable[[], Any] | None) -> tuple[Connection, _Worker]:
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, prepare), daemon=True)
    with _unheard_interrupts():
        process.start()
    theirs.close()
    return ours, _Worker(process)


@contextmanager
def _unheard_interrupts() -> Iterator[None]:
    """Processes started here never hear Ctrl-C, from their first instruction on: the parent stops them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(link: Connection, prepare: Callable[[], Any] | None) -> None:
    """A worker's life: take a task, compute, send, until the parent closes the link."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()
    while True:
        try:
            task = link.recv()
        except EOFError:
            return
        try:
            result, seconds = task.compute(_Reporter(link))
            message = ("finished", result, seconds)
        except Exception as error:
            message = ("failed", *explain(error))
        link.send(message)


def _end_with_parent() -> None:
    parent = mp.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Reporter:
    """Sends progress to the parent, not more often than it can be seen."""

    def __init__(self, link: Connection):
        self.link, self.last = link, -REPORT_EVERY

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.last >= REPORT_EVERY:
            self.last = now
            self.link.send(("progress", int(done), int(total)))
