"""Where chunks are computed: in this process, in worker processes on this machine, or on an existing Dask cluster."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from gyrostat.errors import GyrostatError
from gyrostat.parallel.interrupts import check_interrupt
from gyrostat.parallel.threads import confine_this_process, one_thread
from gyrostat.parallel.workers import Listener, Workers, explain, run_in_this_process
from gyrostat.sweeps.plan import Chunk

LOST_AFTER = 20.0
"""Seconds without a scheduler after which a sweep stops; finished cells are kept."""

CONNECT_TIMEOUT = "10s"
POLL_SECONDS, COUNT_WORKERS_EVERY = 0.02, 1.0
CHUNKS_PER_THREAD = 2
"""Chunks that are sent to the cluster for each of its threads, so that no worker waits for the network."""


class Executor(Protocol):
    """Computes chunks, ``jobs`` at a time, and reports to a listener."""

    @property
    def jobs(self) -> int: ...
    def run(self, tasks: Sequence[Chunk], listener: Listener[Chunk]) -> None: ...


class SchedulerLost(Exception):
    """The scheduler does not answer any more."""


class ThisProcess:
    """Computes one chunk after the other in this process, with its own XLA flags; for tests and for a debugger."""

    jobs = 1

    def run(self, tasks: Sequence[Chunk], listener: Listener[Chunk]) -> None:
        """Compute all chunks."""
        run_in_this_process(tasks, listener)


@contextmanager
def local_executor(jobs: int) -> Iterator[Executor]:
    """``jobs`` worker processes on this machine, or this process when ``jobs`` is 0."""
    if jobs == 0:
        yield ThisProcess()
        return
    with one_thread(), Workers(jobs, prepare=confine_this_process) as workers:
        yield workers


@contextmanager
def dask_executor(address: str, tls: dict[str, str]) -> Iterator[Executor]:
    """An existing Dask cluster; ``tls`` gives ``ca_file``, ``cert`` and ``key``, unless Dask's configuration has them."""
    try:
        from distributed import Client, Security
    except ImportError:
        raise GyrostatError("scheduler needs Dask: pip install 'gyrostat[dask]'.") from None
    files = {"tls_ca_file": tls.get("ca_file"), "tls_client_cert": tls.get("cert"), "tls_client_key": tls.get("key")}
    given = {name: value for name, value in files.items() if value}
    try:
        security = Security(require_encryption=True, **given) if address.startswith("tls://") else None
        if security is not None and security.get_connection_args("client")["ssl_context"] is None:
            raise GyrostatError(
                f"scheduler {address!r} needs certificates: give --tls-ca-file, --tls-cert and --tls-key."
            )
        client = Client(address, security=security, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except GyrostatError:
        raise
    except (OSError, ValueError, TypeError) as error:  # the last two: Dask's words for an address it cannot read
        raise GyrostatError(
            f"scheduler {address!r} does not answer ({explain(error)[0]}): "
            "write tcp://HOST:PORT, and check that it is running there."
        ) from None
    try:
        with _without_tracebacks_of_lost_connections():
            yield _DaskCluster(client)
    finally:
        with contextlib.suppress(TimeoutError, OSError):
            client.close(timeout=2)


@contextmanager
def _without_tracebacks_of_lost_connections() -> Iterator[None]:
    """Dask logs a traceback at level INFO when a scheduler is lost, also when the client then finds it again."""
    log = logging.getLogger("distributed.batched")
    before = log.level
    log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.setLevel(before)


def _compute_on_worker(chunk: Chunk) -> tuple[dict[str, Any], float]:
    confine_this_process()
    return chunk.compute()


class _DaskCluster:
    """Sends chunks as workers become free, and sends those again that a lost scheduler forgot."""

    def __init__(self, client: Any):
        self.client, self.threads, self.counted_at = client, 1, -COUNT_WORKERS_EVERY

    @property
    def jobs(self) -> int:
        """The number of threads of the cluster, counted again from time to time because workers come and go."""
        if time.monotonic() > self.counted_at + COUNT_WORKERS_EVERY:
            with contextlib.suppress(OSError, TimeoutError):  # the scheduler is going: the next round notices
                self.threads = max(1, sum(self.client.nthreads().values()))
                self.counted_at = time.monotonic()
        return self.threads

    def run(self, tasks: Sequence[Chunk], listener: Listener[Chunk]) -> None:
        """Compute all chunks, the heaviest first."""
        waiting = deque(sorted(tasks, key=lambda task: -task.weight))
        sent: dict[Any, Chunk] = {}
        try:
            while waiting or sent:
                check_interrupt()
                self._wait_for_scheduler()
                room = CHUNKS_PER_THREAD * self.jobs
                while waiting and len(sent) < room:
                    task = waiting.popleft()
                    listener.started(task)
                    # Dask itself repeats a task whose worker was killed, and gives up on one that kills its workers.
                    sent[self.client.submit(_compute_on_worker, task, pure=False)] = task
                time.sleep(POLL_SECONDS)
                for future in [f for f in sent if f.status != "pending"]:
                    waiting.extend(_report(future, sent.pop(future), listener))
        finally:
            for future in sent:
                future.release()

    def _wait_for_scheduler(self) -> None:
        since = time.monotonic()
        while self.client.status != "running":
            check_interrupt()
            if time.monotonic() - since > LOST_AFTER or self.client.status == "closed":
                raise SchedulerLost
            time.sleep(0.1)


def _report(future: Any, task: Chunk, listener: Listener[Chunk]) -> Sequence[Chunk]:
    """Report how a task ended; return the tasks to compute again."""
    try:
        if future.status == "finished":
            listener.finished(task, *future.result())
            return ()
        if future.status == "error":
            error = future.exception()
            return listener.failed(task, *explain(error))
        return (task,)  # forgotten: the scheduler is new, or lost
    except (OSError, TimeoutError):  # the result was lost together with its scheduler
        return (task,)
    finally:
        future.release()
