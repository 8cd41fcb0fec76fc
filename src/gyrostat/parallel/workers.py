"""Running tasks in this process or in worker processes.

Workers only compute. They send their results to the parent process, which alone writes files, so that a worker that dies or
loses its parent cannot damage a results folder.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, Self, TypeVar

from gyrostat.parallel.interrupts import check_interrupt
from gyrostat.parallel.threads import confine_this_process

REPORT_EVERY = 0.2
"""Seconds between two reports of progress from a worker."""

END_SECONDS = 1.0
"""Seconds in which an idle worker may end by itself."""


class WorkerTask(Protocol):
    """A task that can run in this process or in another one."""

    @property
    def weight(self) -> float:
        """A rough cost: the heaviest tasks start first."""

    @property
    def program(self) -> Hashable:
        """Tasks with the same value compile the same programs, so a worker takes them one after the other."""

    def compute(self, progress: Callable[[float, int], None]) -> tuple[Any, float]:
        """Returns the result and the seconds it took."""


Job = TypeVar("Job", bound=WorkerTask)


class Listener(Protocol[Job]):
    """Is called as tasks start, advance and end. ``failed`` returns tasks to run instead, if any."""

    def started(self, task: Job) -> None: ...
    def progress(self, task: Job, done: float, total: int) -> None: ...
    def finished(self, task: Job, result: Any, seconds: float) -> None: ...
    def failed(self, task: Job, line: str, details: str) -> Sequence[Job]: ...


def run_tasks(tasks: Sequence[Job], jobs: int, listener: Listener[Job]) -> None:
    """Run all tasks, the heaviest first, each on one thread. A task that raises is reported and does not stop the others."""
    if jobs == 1 or len(tasks) <= 1:
        run_in_this_process(tasks, listener)
    else:
        with Workers(jobs, prepare=confine_this_process) as workers:
            workers.run(tasks, listener)


def _heaviest_first(tasks: Sequence[Job]) -> deque[Job]:
    return deque(sorted(tasks, key=lambda task: -task.weight))


def explain(error: BaseException) -> tuple[str, str]:
    """An exception as one line and as a traceback."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__, "".join(
        traceback.format_exception(error)
    )


def run_in_this_process(tasks: Sequence[Job], listener: Listener[Job]) -> None:
    """Run all tasks in this process, the heaviest first."""
    waiting = _heaviest_first(tasks)
    while waiting:
        check_interrupt()
        task = waiting.popleft()
        listener.started(task)
        try:
            result, seconds = task.compute(partial(_report, listener, task))
        except Exception as error:
            waiting.extend(listener.failed(task, *explain(error)))
        else:
            listener.finished(task, result, seconds)


def _report(listener: Listener[Job], task: Job, done: float, total: int) -> None:
    check_interrupt()
    listener.progress(task, done, total)


@dataclass
class _Worker:
    """A worker process and the task that it computes, or computed last."""

    process: BaseProcess
    task: Any = None


class Workers:
    """A pool of ``jobs`` worker processes; a process that dies is replaced while there is work.

    The processes and their compiled programs are kept between calls of :meth:`run`; they end with the ``with`` block. Each
    process calls ``prepare`` first.
    """

    def __init__(self, jobs: int, prepare: Callable[[], Any] | None = None):
        self.jobs, self.prepare = jobs, prepare
        self.busy: dict[Any, _Worker] = {}
        self.idle: dict[Any, _Worker] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.busy.values():
            worker.process.kill()  # also one that is stopped; a worker has nothing to put in order
        for link in self.idle:
            link.close()  # the worker reads an end of file and returns
        for link, worker in (self.busy | self.idle).items():
            worker.process.join(END_SECONDS)
            worker.process.kill()
            worker.process.join()
            link.close()

    def run(self, tasks: Sequence[Job], listener: Listener[Job]) -> None:
        """Run all tasks, the heaviest first."""
        waiting = _heaviest_first(tasks)
        while waiting or self.busy:
            check_interrupt()
            while waiting and len(self.busy) < self.jobs:
                link, worker = self.idle.popitem() if self.idle else _start_worker(self.prepare)
                self.busy[link] = worker
                self._send_next(link, waiting, listener)
            # With a timeout, because Ctrl-C does not end the wait.
            for ready in wait(list(self.busy), timeout=0.5):
                check_interrupt()
                self._receive(ready, waiting, listener)

    def _receive(self, link: Any, waiting: deque[Any], listener: Listener) -> None:
        worker = self.busy[link]
        task = worker.task
        try:
            kind, *content = link.recv()
        except (EOFError, OSError):  # the worker has died: killed, or out of memory
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
        # The next task is sent before this one is written and drawn, so that the worker does not wait for that.
        if waiting:
            self._send_next(link, waiting, listener)
        else:
            self.idle[link] = self.busy.pop(link)
        if kind == "finished":
            listener.finished(task, *content)

    def _send_next(self, link: Any, waiting: deque[Any], listener: Listener) -> None:
        worker = self.busy[link]
        elsewhere = [
            other.task.program for other in self.busy.values() if other is not worker and other.task is not None
        ]
        worker.task = _next_task(waiting, worker.task, elsewhere)
        listener.started(worker.task)
        try:
            link.send(worker.task)
        except (
            OSError
        ):  # the worker died between two tasks: its end of file is read next and reported as a failure of this task
            return


def _next_task(waiting: deque[Any], last: WorkerTask | None, elsewhere: Sequence[Hashable]) -> Any:
    """The first task with the program that the worker has just compiled, or with one that no other has, or just the first."""
    own = (task for task in waiting if last is not None and task.program == last.program)
    new = (task for task in waiting if task.program not in elsewhere)
    task = next(chain(own, new, waiting))
    waiting.remove(task)
    return task


def _start_worker(prepare: Callable[[], Any] | None) -> tuple[Connection, _Worker]:
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, prepare), daemon=True)
    with _interrupts_blocked():
        process.start()
    theirs.close()
    return ours, _Worker(process)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes started in this block ignore Ctrl-C from their first instruction on; the parent stops them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(link: Connection, prepare: Callable[[], Any] | None) -> None:
    """The main function of a worker: receive a task, compute, send the result, until the parent closes the link.

    A parent that ends before it has read all reports resets the link, which means the same.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if prepare is not None:
        prepare()
    with suppress(EOFError, ConnectionError):
        while True:
            link.send(_computed(link.recv(), _Reporter(link)))


def _computed(task: WorkerTask, report: _Reporter) -> tuple[Any, ...]:
    """What the parent is told of a task that has ended."""
    try:
        return "finished", *task.compute(report)
    except Exception as error:
        return "failed", *explain(error)


def _end_with_parent() -> None:
    """Wait for the parent process to end, then end this one."""
    parent = mp.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Reporter:
    """Sends progress to the parent, at most once every ``REPORT_EVERY`` seconds."""

    def __init__(self, link: Connection):
        self.link, self.last = link, -REPORT_EVERY

    def __call__(self, done: float, total: int) -> None:
        now = time.monotonic()
        if now - self.last >= REPORT_EVERY:
            self.last = now
            self.link.send(("progress", float(done), int(total)))
