"""Where chunks are computed: worker processes on this machine, or an existing Dask cluster."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from gyrostat.errors import GyrostatError
from gyrostat.parallel.threads import confine, one_thread
from gyrostat.parallel.workers import Listener, Workers, explain, run_here
from gyrostat.reproduce.code_digest import code_digest
from gyrostat.sweeps.chunks import Chunk

LOST_AFTER = 20.0
"""Seconds without a scheduler after which a sweep stops; what is done is kept."""

CONNECT = "10s"
POLL, ASK_EVERY = 0.02, 1.0
AHEAD = 2
"""Chunks that are sent to the cluster for each of its threads, so that no worker waits for the network."""


class Engine(Protocol):
    """Computes chunks, ``jobs`` at a time, and tells a listener."""

    @property
    def jobs(self) -> int: ...
    def run(self, tasks: Sequence[Chunk], listener: Listener[Chunk]) -> None: ...


class Lost(Exception):
    """The scheduler is gone."""


class Here:
    """This process, with its own flags of XLA; for tests and for a debugger."""

    jobs = 1

    def run(self, tasks: Sequence[Chunk], listener: Listener[Chunk]) -> None:
        """Compute one chunk after the other."""
        run_here(tasks, listener)


@contextmanager
def local(jobs: int) -> Iterator[Engine]:
    """Worker processes on the cores of this machine."""
    if jobs == 0:
        yield Here()
        return
    with one_thread(), Workers(jobs, prepare=confine) as workers:
        yield workers


@contextmanager
def cluster(address: str, tls: dict[str, str]) -> Iterator[Engine]:
    """A Dask cluster that is there already; ``tls`` gives ``ca_file``, ``cert`` and ``key``, if Dask's own settings do not."""
    try:
        from distributed import Client, Security
    except ImportError:
        raise GyrostatError("scheduler needs Dask: pip install 'gyrostat[dask]'.") from None
    files = {"tls_ca_file": tls.get("ca_file"), "tls_client_cert": tls.get("cert"), "tls_client_key": tls.get("key")}
    given = {name: value for name, value in files.items() if value}
    try:
        safe = Security(require_encryption=True, **given) if address.startswith("tls://") else None
        if safe is not None and safe.get_connection_args("client")["ssl_context"] is None:
            raise GyrostatError(
                f"scheduler {address!r} needs certificates: give --tls-ca-file, --tls-cert and --tls-key."
            )
        client = Client(address, security=safe, timeout=CONNECT, set_as_default=False)
    except OSError as error:
        raise GyrostatError(
            f"scheduler {address!r} does not answer ({explain(error)[0]}): is it running there?"
        ) from None
    try:
        yield _Cluster(client)
    finally:
        with contextlib.suppress(TimeoutError, OSError):
            client.close(timeout=2)


def _remote(chunk: Chunk, code: str) -> tuple[dict[str, Any], float]:
    """On a worker of the cluster."""
    if code_digest() != code:
        raise GyrostatError("this worker has another state of gyrostat: install the same one everywhere.")
    confine()
    return chunk.compute()


class _Cluster:
    """Sends chunks as workers have room, and sends again what a lost scheduler forgot."""

    def __init__(self, client: Any):
        self.client, self.threads, self.asked = client, 1, -ASK_EVERY

    @property
    def jobs(self) -> int:
        """The threads of the cluster; asked of the scheduler now and then, since workers come and go."""
        if time.monotonic() > self.asked + ASK_EVERY:
            with contextlib.suppress(OSError, TimeoutError):  # a scheduler that is going: heard of in the next round
                self.threads, self.asked = max(1, sum(self.client.nthreads().values())), time.monotonic()
        return self.threads

    def run(self, tasks: Sequence[Chunk], listener: Listener[Chunk]) -> None:
        """Compute all chunks, the heaviest first."""
        waiting = deque(sorted(tasks, key=lambda task: -task.weight))
        sent: dict[Any, Chunk] = {}
        try:
            while waiting or sent:
                self._need_scheduler()
                room = AHEAD * self.jobs
                while waiting and len(sent) < room:
                    task = waiting.popleft()
                    listener.started(task)
                    # Dask itself does a task of a killed worker again, and gives up on one that kills its workers.
                    sent[self.client.submit(_remote, task, code_digest(), pure=False)] = task
                time.sleep(POLL)
                for future in [f for f in sent if f.status != "pending"]:
                    waiting.extend(_heard(future, sent.pop(future), listener))
        finally:
            for future in sent:
                future.release()

    def _need_scheduler(self) -> None:
        since = time.monotonic()
        while self.client.status != "running":
            if time.monotonic() - since > LOST_AFTER or self.client.status == "closed":
                raise Lost
            time.sleep(0.1)


def _heard(future: Any, task: Chunk, listener: Listener[Chunk]) -> Sequence[Chunk]:
    """Tell the listener; what must be done (again) is returned."""
    try:
        if future.status == "finished":
            listener.finished(task, *future.result())
            return ()
        if future.status == "error":
            error = future.exception()
            return listener.failed(task, *explain(error))
        return (task,)  # forgotten by a scheduler that is new, or gone
    except (OSError, TimeoutError):  # the result was lost on the way, with its scheduler
        return (task,)
    finally:
        future.release()
