"""Kill -9 of a worker and of the driver: nothing is lost and the final stores are equal, byte for byte.

``make faults`` kills at random moments, with two workers, and kills the scheduler of a cluster, too.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gyrostat.parallel.threads import environment_variables
from gyrostat.sweeps import executors, read_spec, run_sweep
from gyrostat.sweeps.store import SweepStore

TOOLS = Path(__file__).parents[1] / "tools"
PATIENCE = 120
SPEC = """
title = "Killed"
seeds = 4
num_steps = 100
experiment = {kind = "slow_sweep:build", spread = 6.0}
axes.num_steps = {list = [100, 101, 102, 103, 104, 105, 106, 107]}
axes.spread = {list = [2.0, 6.0, 10.0]}
record.final = ["signal"]
record.paths = ["spurious"]
record.points = 3
success.spurious = {below = 0.1}
"""
CELLS = 24


def environment(**variables: str) -> dict[str, str]:
    paths = [str(TOOLS), str(TOOLS.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p), **variables}


class Processes:
    """Processes of a test, ended by their numbers when it is over."""

    def __init__(self, folder: Path):
        self.folder, self.started = folder, []
        self.log = folder / "log"

    def start(self, *arguments: str, sleep: str = "0") -> subprocess.Popen:
        out = (self.folder / f"out-{len(self.started)}").open("w")
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment(SWEEP_LOG=str(self.log), SWEEP_SLEEP=sleep),
        )
        self.started.append((process, Path(out.name)))
        return process

    def sweep(self, options: str, sleep: str = "0") -> subprocess.Popen:
        """A driver. It runs the sweep without the command, which would draw it as well."""
        program = (
            f"import sys; from gyrostat.sweeps import run_sweep; run_sweep(sys.argv[1], out=sys.argv[2], {options})"
        )
        spec, out = str(self.folder / "spec.toml"), str(self.folder / "out")
        return self.start("-c", program, spec, out, sleep=sleep)

    def said(self, process: subprocess.Popen) -> str:
        return next(path for p, path in self.started if p is process).read_text()

    def end(self) -> None:
        for process, _ in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()

    @property
    def store(self) -> Path:
        return self.folder / "out" / "store.zarr"

    def done(self) -> int:
        import zarr

        try:
            return int((zarr.open_group(self.store, mode="r")["done"][...] > 0).sum())
        except (FileNotFoundError, KeyError, ValueError):
            return 0

    def times(self) -> dict[Path, int]:
        """When the data of every cell that is done were written."""
        import zarr

        cells = np.argwhere(zarr.open_group(self.store, mode="r")["done"][...] > 0)
        found = [p for i, j in cells for p in self.store.glob(f"*/c/{i}/{j}/**/*") if p.is_file()]
        return {p: p.stat().st_mtime_ns for p in found}

    def workers(self) -> list[int]:
        """The processes that computed cells, the last one last."""
        return [int(line.split()[0]) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def processes(tmp_path):
    found = Processes(tmp_path)
    (tmp_path / "spec.toml").write_text(SPEC)
    yield found
    found.end()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The store of a sweep that nobody disturbs, with one worker."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "spec.toml").write_text(SPEC)
    with environment_variables(environment()):
        summary = run_sweep(
            read_spec(str(folder / "spec.toml")), out=folder / "out", jobs=1, console=Console(quiet=True)
        )
    assert summary.status == 0
    return files(folder / "out" / "store.zarr")


def files(store: Path) -> dict[str, bytes]:
    return {str(p.relative_to(store)): p.read_bytes() for p in sorted(store.rglob("*")) if p.is_file()}


def wait_until(condition) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def finishes(processes: Processes, process: subprocess.Popen, uninterrupted: dict[str, bytes]) -> None:
    assert process.wait(PATIENCE) == 0, processes.said(process)
    stated = json.loads((processes.folder / "out" / "sweep.json").read_text())
    assert stated["cells"] == {"grid": CELLS, "asked": CELLS, "done": CELLS, "failed": 0, "left": 0}
    assert files(processes.store) == uninterrupted


def test_a_killed_worker_is_replaced_and_a_killed_driver_goes_on_where_it_was(processes, uninterrupted):
    """A worker dies and its cell is done again; then the driver dies, takes its worker along, and is started again."""
    process = processes.sweep("jobs=1", sleep="0.15")
    wait_until(lambda: processes.done() >= 2)
    os.kill(processes.workers()[-1], signal.SIGKILL)
    wait_until(lambda: len(set(processes.workers())) == 2)
    after = processes.done()
    wait_until(lambda: processes.done() >= after + 2)
    process.kill()
    process.wait()
    first = processes.workers()
    wait_until(lambda: not any(alive(pid) for pid in set(first)))
    before, written = processes.done(), processes.times()
    assert after + 2 <= before < CELLS - 3 and len(written) >= before

    finishes(processes, processes.sweep("jobs=1"), uninterrupted)
    second = processes.workers()[len(first) :]
    assert len(set(second)) == 1 and not set(first) & set(second)
    assert written.items() <= processes.times().items()  # nothing that was done is written again
    assert len(second) == CELLS - before  # or computed again


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


LOOPBACK = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
"""Without the second, Dask's web pages listen on every interface, also with --no-dashboard."""


class Cluster:
    """A scheduler and workers started by hand, on the loopback."""

    def __init__(self, processes: Processes):
        self.processes, self.port = processes, free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"

    def scheduler(self) -> subprocess.Popen:
        module = ("-m", "distributed.cli.dask_scheduler", "--port", str(self.port))
        process = self.processes.start(*module, *LOOPBACK)
        wait_until(self._listens)
        return process

    def _listens(self) -> bool:
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def worker(self, sleep: str) -> subprocess.Popen:
        module = ("-m", "distributed.cli.dask_worker", self.address, "--no-nanny", "--nthreads", "1")
        options = ("--memory-limit", "0", "--death-timeout", "10", "--local-directory", str(self.processes.folder))
        return self.processes.start(*module, *options, *LOOPBACK, sleep=sleep)


def test_killed_driver_and_worker_of_a_cluster(processes, uninterrupted):
    pytest.importorskip("distributed")
    cluster = Cluster(processes)
    cluster.scheduler()
    worker = cluster.worker("0.15")
    through = f"scheduler={cluster.address!r}"

    driver = processes.sweep(through)
    wait_until(lambda: processes.done() >= 3)
    driver.kill()
    driver.wait()
    before = processes.done()
    assert before < CELLS - 3
    driver = processes.sweep(through)
    wait_until(lambda: processes.done() >= before + 1)
    worker.kill()  # its cells are sent to the next one
    assert processes.done() < CELLS
    cluster.worker("0")
    finishes(processes, driver, uninterrupted)
    assert len(set(processes.workers())) == 2
    assert SweepStore(processes.folder / "out").load().done.min() == 4


def test_a_lost_scheduler_ends_the_sweep_with_a_word(processes, monkeypatch):
    """As Dask's client shows it: it says that it is closed, and knows no workers."""

    class Gone:
        status = "closed"

        def nthreads(self) -> dict[str, int]:
            return {}

    @contextmanager
    def cluster(address: str, tls: dict[str, str]) -> Iterator[executors.Executor]:
        yield executors._DaskCluster(Gone())

    monkeypatch.setattr(executors, "dask_executor", cluster)
    with environment_variables(environment()):
        summary = run_sweep(str(processes.folder / "spec.toml"), out=processes.folder / "out", scheduler="tcp://gone:1")
    assert summary.status == 1 and summary.done == 0
    (line,) = summary.sentences(processes.folder)
    assert "the scheduler is gone" in line and "run the same command to continue" in line
