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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Protocol

from gyrostat.lab.tasks import Task

if TYPE_CHECKING:
    import xarray as xr

REPORT_EVERY = 0.2


class Listener(Protocol):
    """What is told about tasks as they run."""

    def started(self, task: Task) -> None: ...
    def progress(self, task: Task, done: int, total: int) -> None: ...
    def finished(self, task: Task, dataset: xr.Dataset, seconds: float) -> None: ...
    def failed(self, task: Task, line: str, details: str) -> None: ...


def run_tasks(tasks: Sequence[Task], jobs: int, listener: Listener) -> None:
    """Run all tasks, the largest weight first; one that raises is reported and does not stop the others."""
    ordered = sorted(tasks, key=lambda task: -task.declared.weight)
    if jobs == 1 or len(ordered) <= 1:
        _run_here(ordered, listener)
    else:
        _run_in_workers(ordered, jobs, listener)


def explain(error: BaseException) -> tuple[str, str]:
    """An exception as one line and as a traceback."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__, "".join(
        traceback.format_exception(error)
    )


def _run_here(tasks: Sequence[Task], listener: Listener) -> None:
    for task in tasks:
        listener.started(task)
        try:
            dataset, seconds = task.compute(partial(listener.progress, task))
        except Exception as error:
            listener.failed(task, *explain(error))
        else:
            listener.finished(task, dataset, seconds)


@dataclass
class _Worker:
    process: BaseProcess
    task: Task


def _run_in_workers(tasks: Sequence[Task], jobs: int, listener: Listener) -> None:
    waiting = deque(tasks)
    workers: dict[Any, _Worker] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                task = waiting.popleft()
                link, process = _start_worker()
                workers[link] = _Worker(process, task)
                _give(link, task, listener)
            # A signal that arrives just before the wait begins would only be noticed at its end: look up now and then.
            for ready in wait(list(workers), timeout=1.0):
                _hear(ready, workers, waiting, listener)
    finally:
        for worker in workers.values():
            worker.process.terminate()
        for link, worker in workers.items():
            worker.process.join()
            link.close()


def _hear(link: Any, workers: dict[Any, _Worker], waiting: deque[Task], listener: Listener) -> None:
    worker = workers[link]
    task = worker.task
    try:
        kind, *content = link.recv()
    except (EOFError, OSError):  # the worker is gone: killed, out of memory
        del workers[link]
        worker.process.join()
        code = worker.process.exitcode
        line = f"its worker process ended with exit status {code} (killed, or out of memory)"
        listener.failed(task, line, line)
        return
    if kind == "progress":
        listener.progress(task, *content)
        return
    # The next task goes out before this one is written and drawn, so that the worker does not wait for that.
    if waiting:
        worker.task = _next(waiting, task)
        _give(link, worker.task, listener)
    else:
        del workers[link]
        link.close()
        worker.process.join()
    if kind == "finished":
        listener.finished(task, *content)
    else:
        listener.failed(task, *content)


def _next(waiting: deque[Task], last: Task) -> Task:
    """The first task that computes what the worker has just computed, its programs being compiled there, or the first."""
    task = next((t for t in waiting if t.declared.compute is last.declared.compute), waiting[0])
    waiting.remove(task)
    return task


def _give(link: Connection, task: Task, listener: Listener) -> None:
    listener.started(task)
    try:
        link.send(task)
    except OSError:  # it died between two tasks: its end of file is heard next, and reported as this task's failure
        return


def _start_worker() -> tuple[Connection, BaseProcess]:
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with _unheard_interrupts():
        process.start()
    theirs.close()
    return ours, process


@contextmanager
def _unheard_interrupts() -> Iterator[None]:
    """Processes started here never hear Ctrl-C, from their first instruction on: the parent stops them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(link: Connection) -> None:
    """A worker's life: take a task, compute, send, until the parent closes the link."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = link.recv()
        except EOFError:
            return
        try:
            dataset, seconds = task.compute(_Reporter(link))
            message = ("finished", dataset, seconds)
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
