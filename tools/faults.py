"""Faults on purpose: kills, stops, interrupts, full disks, flipped bits and deleted files, for sweeps, reproduce and Dask.

``make faults`` makes a hundred and more of them and prints a table: what was done, how often, and how it ended. A fault is
*kept* if the folder is in the end what an undisturbed command writes, *noticed* if reading the folder said so, and *lost* or
*silently wrong* otherwise. The exit status is 1 if there is one of the last two, or a traceback. Each suite draws its faults
from a seed of its own, so a suite alone makes the same faults as all of them together.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

TEST_TOOLS = Path(__file__).parents[1] / "tests" / "tools"
SPEC = """
title = "Faults"
seeds = 3
num_steps = 60
experiment = {kind = "slow_sweep:build", spread = 6.0}
axes.num_steps = {list = [60, 61, 62, 63]}
axes.spread = {list = [2.0, 6.0, 10.0]}
record.final = ["signal"]
record.paths = ["spurious"]
record.points = 3
success.spurious = {below = 0.1}
"""
PATIENCE = 600
DONE_BEFORE = "was done before"
BEFORE_OUR_FIRST_LINE = "before our first line"
"""Ctrl-C while Python itself starts, which prints a traceback of its own."""

NOT_POSSIBLE = "not possible here"
SURPRISE = 1
"""The exit status of the made-up paper that is reproduced: one of its claims is undecided."""

LIMIT = 5.0
"""Seconds after Ctrl-C in which a command must have ended, and in which a program must have its KeyboardInterrupt."""

NEXT_RUN_SECONDS = 30.0
"""Seconds in which the next ``gs.run`` of an interrupted program must have compiled and ended: it waits for nothing."""

# --- files ----------------------------------------------------------------------------------------------------------------


def content(folder: Path) -> dict[str, bytes]:
    """The files of a store, by name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def data_files(folder: Path) -> list[Path]:
    """The files of a results folder or a sweep that hold numbers, or say what they are."""
    names = ("sweep.json", "claims.json")
    stores = [p for name in ("store.zarr", "results.zarr") for p in (folder / name).rglob("*") if p.is_file()]
    return sorted([*stores, *(folder / name for name in names if (folder / name).exists())])


def flip(path: Path, bit: int) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "flipped bit": lambda path, rng: flip(path, rng.randrange(8 * path.stat().st_size)),
    "deleted file": lambda path, rng: path.unlink(),
    "truncated file": lambda path, rng: os.truncate(path, rng.randrange(path.stat().st_size)),
    "foreign file": lambda path, rng: path.write_bytes(rng.choice([b"", b"[]", b"{}", b"null", b"PK\3\4"])),
}


def damage_and_read(folder: Path, kind: str, rng: random.Random, read: Callable[[Path], object], good: object) -> str:
    """Damage one file, read the folder, and undo it; ``good`` is what undamaged files say.

    The outcome is ``noticed``, ``same numbers``, ``silently wrong`` or ``foreign error``.
    """
    from gyrostat.errors import GyrostatError

    files = data_files(folder)
    # Half of the faults go by the size of files, half by their number: small ones are metadata.
    path = rng.choices(files, [p.stat().st_size for p in files])[0] if rng.random() < 0.5 else rng.choice(files)
    before = path.read_bytes()
    DAMAGES[kind](path, rng)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return "same numbers" if read(folder) == good else f"silently wrong ({path.name})"
    except (GyrostatError, UserWarning):
        return "noticed"
    except Exception as error:
        return f"foreign error ({type(error).__name__} at {path.name})"
    finally:
        path.write_bytes(before)


def numbers_of_sweep(folder: Path) -> object:
    """Everything that a sweep says, in a form that can be compared."""
    from gyrostat.sweeps.store import load_sweep

    ds = load_sweep(folder)
    return str(ds.attrs), {str(n): (x.dims, str(x.attrs), x.values.tobytes()) for n, x in ds.variables.items()}


def numbers_of_results(folder: Path) -> object:
    """Everything that a results folder says."""
    from gyrostat import load_results

    results = load_results(folder)
    variables = {
        (name, str(key)): (x.dims, str(x.attrs), str(x.values.tolist()))
        for name, ds in results.items()
        for key, x in ds.variables.items()
    }
    return results.claims(), {name: (str(results.run(name)), str(ds.attrs)) for name, ds in results.items()}, variables


# --- processes ------------------------------------------------------------------------------------------------------------


def numbers(folder: Path) -> object:
    """The numbers and verdicts of a results folder, without the times at which they were made."""
    claims, _, variables = numbers_of_results(folder)
    return [{**record, "seconds": 0} for record in claims], variables


class Bench:
    """Starts commands in a folder, and ends what is left at the end."""

    def __init__(self, folder: Path):
        self.folder, self.started = folder, []
        self.good_sweep, self.good_results = folder / "sweep", folder / "results"
        self.good_numbers: object = None
        (folder / "spec.toml").write_text(SPEC)

    def start(self, *arguments: str, sleep: str = "0", **variables: str) -> subprocess.Popen:
        paths = os.pathsep.join([str(TEST_TOOLS), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "SWEEP_LOG": str(self.folder / "log"), "SWEEP_SLEEP": sleep}
        environment |= {"FAKE_SLEEP": sleep, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1", **variables}
        out = self.folder / f"said-{len(self.started)}"
        with out.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                # Commands in the background (nohup, &) ignore Ctrl-C, and their children inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
        self.started.append((process, out))
        return process

    def sweep(self, out: Path, *options: str, sleep: str = "0") -> subprocess.Popen:
        spec = str(self.folder / "spec.toml")
        return self.start("-m", "gyrostat", "sweep", spec, "--out", str(out), *options, sleep=sleep)

    def reproduce(self, out: Path, *options: str, sleep: str = "0") -> subprocess.Popen:
        names = ("--size", "smoke", "--jobs", "2", "--out", str(out))
        return self.start("-m", "gyrostat", "reproduce", f"{TEST_TOOLS / 'fake2024.py'}", *names, *options, sleep=sleep)

    def make_good_folders(self) -> None:
        """A sweep and results that nothing disturbs."""
        for process, status in (
            (self.sweep(self.good_sweep, "--jobs", "1"), 0),
            (self.reproduce(self.good_results), SURPRISE),
        ):
            assert process.wait(PATIENCE) == status, self.said(process)
        self.good_numbers = numbers(self.good_results)

    def sweep_ends(self, process: subprocess.Popen, out: Path) -> str:
        """Let a sweep run to its end: ``kept`` if its store is then that of an undisturbed one, byte for byte."""
        return self._ends(process, 0, lambda: content(out / "store.zarr") == content(self.good_sweep / "store.zarr"))

    def reproduce_ends(self, process: subprocess.Popen, out: Path) -> str:
        """Let a reproduction run to its end: ``kept`` if its numbers and verdicts are then those of an undisturbed one."""
        return self._ends(process, SURPRISE, lambda: numbers(out) == self.good_numbers)

    def _ends(self, process: subprocess.Popen, status: int, is_kept: Callable[[], bool]) -> str:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return "lost (hangs)"
        if "Traceback" in self.said(process) or process.returncode != status:
            return f"traceback or status {process.returncode}"
        return "kept" if is_kept() else "lost"

    def wait_for(self, word: str, process: subprocess.Popen) -> None:
        """Wait until a process has said a word, or has ended; not for ever."""
        end = time.monotonic() + PATIENCE
        while word not in self.said(process) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)

    def wait_for_cells(self, out: Path, count: int, process: subprocess.Popen) -> None:
        """Wait until a sweep has begun and has the data of some cells, or has ended."""
        while process.poll() is None:
            files = list((out / "store.zarr/diverged/c").rglob("*")) if (out / "sweep.json").exists() else None
            if files is not None and sum(path.is_file() for path in files) >= count:
                return
            time.sleep(0.02)

    def said(self, process: subprocess.Popen) -> str:
        return next(path for p, path in self.started if p is process).read_text()

    def end(self) -> None:
        for process, _ in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()


def interrupted(bench: Bench, process: subprocess.Popen, delay: float, word: str = "") -> str:
    """Press Ctrl-C some time from now: ``ended with 130`` if that is quiet and in time.

    A program says the ``word`` when it has got its KeyboardInterrupt, and then goes on for a moment.
    """
    try:
        process.wait(delay)
        return DONE_BEFORE
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    began = time.monotonic()
    if word:
        bench.wait_for(word, process)
    try:
        seconds = time.monotonic() - began
        process.wait(NEXT_RUN_SECONDS if word else PATIENCE)
        seconds = seconds if word else time.monotonic() - began
    except subprocess.TimeoutExpired:
        process.kill()
        return "ignored"
    said = bench.said(process)
    if process.returncode in (0, SURPRISE):
        return DONE_BEFORE
    if "_run_module_as_main" in said and "__main__.py" not in said:
        return BEFORE_OUR_FIRST_LINE
    if "Traceback" in said or "Exception ignored" in said or process.returncode != 130:
        return f"traceback or status {process.returncode}"
    return "ended with 130" if seconds < LIMIT else f"ended late ({seconds:.0f} s)"


def killed(process: subprocess.Popen, delay: float) -> None:
    """Kill a command some time after its start."""
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        return [int(child) for task in tasks for child in task.read_text().split()]
    except OSError:
        return []


def stopped_for_a_while(process: subprocess.Popen, delay: float, pause: float, rng: random.Random) -> None:
    """Stop a command or one of its workers (as Ctrl-Z does), and let it go on."""
    try:
        process.wait(delay)
        return
    except subprocess.TimeoutExpired:
        victim = rng.choice([process.pid, *children(process.pid)])
    try:
        os.kill(victim, signal.SIGSTOP)
        time.sleep(pause)
        os.kill(victim, signal.SIGCONT)
    except ProcessLookupError:
        return


# --- the suite ------------------------------------------------------------------------------------------------------------


GOOD = ("kept", "noticed", "same numbers", "ended with 130", DONE_BEFORE, BEFORE_OUR_FIRST_LINE, NOT_POSSIBLE)
"""The outcomes that a fault may have."""


class Table:
    """Counts outcomes by fault, and prints them."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter] = {}

    def add(self, fault: str, outcome: str, said: str = "") -> None:
        """Count an outcome; print it, and what the process ``said`` if the outcome is a bad one."""
        self.counts.setdefault(fault, Counter())[outcome] += 1
        print(f"  {fault}: {outcome}", flush=True)
        if outcome not in GOOD and said:
            print("\n".join(f"    {line}" for line in said.splitlines()[-40:]), flush=True)

    @property
    def bad(self) -> int:
        return sum(n for counts in self.counts.values() for outcome, n in counts.items() if outcome not in GOOD)

    def __str__(self) -> str:
        width = max(map(len, self.counts))
        lines = [
            f"{fault:{width}}  {sum(counts.values()):4}  {', '.join(f'{n} {o}' for o, n in counts.most_common())}"
            for fault, counts in self.counts.items()
        ]
        total = sum(sum(counts.values()) for counts in self.counts.values())
        return "\n".join([f"{'fault':{width}}  made  outcome", *lines, f"{total} faults, {self.bad} bad outcomes"])


def damage_suite(bench: Bench, table: Table, rng: random.Random, count: int) -> None:
    """Damaged files of a finished sweep and of finished results, which are read."""
    for read, folder, name in (
        (numbers_of_sweep, bench.good_sweep, "sweep"),
        (numbers_of_results, bench.good_results, "results"),
    ):
        good = read(folder)
        for kind in DAMAGES:
            for _ in range(count if kind == "flipped bit" else max(1, count // 5)):
                table.add(f"{kind}, {name} read", damage_and_read(folder, kind, rng, read, good))


def repair_suite(bench: Bench, table: Table, rng: random.Random, count: int) -> None:
    """Damaged sweeps and results whose command is run again."""
    for i in range(count):
        kind, out = list(DAMAGES)[i % len(DAMAGES)], bench.folder / f"repaired-{i}"
        shutil.copytree(bench.good_sweep, out)
        DAMAGES[kind](rng.choice(data_files(out)), rng)
        table.add(f"{kind}, sweep again", bench.sweep_ends(bench.sweep(out), out))
        shutil.rmtree(out)
        shutil.copytree(bench.good_results, out)
        DAMAGES[kind](rng.choice(data_files(out)), rng)
        process = bench.reproduce(out)
        if process.wait(PATIENCE) == 2 and "delete it" in bench.said(process):  # claims.json; what it says is done
            (out / "claims.json").unlink()
            process = bench.reproduce(out)
        table.add(f"{kind}, reproduce again", bench.reproduce_ends(process, out))
        shutil.rmtree(out)


def kill_suite(bench: Bench, table: Table, rng: random.Random, count: int) -> None:
    """Sweeps and reproductions that are killed or stopped at random moments, and then run to their end."""
    for i in range(count):
        out = bench.folder / f"killed-{i}"
        for _ in range(2):
            killed(bench.sweep(out, "--jobs", "2", sleep="0.05"), rng.uniform(0.5, 12))
        table.add("SIGKILL twice, sweep", bench.sweep_ends(bench.sweep(out, "--jobs", "2"), out))
        shutil.rmtree(out)
        process = bench.sweep(out, "--jobs", "2", sleep="0.05")
        stopped_for_a_while(process, rng.uniform(2, 8), 1.5, rng)
        table.add("SIGSTOP, sweep", bench.sweep_ends(process, out))
        shutil.rmtree(out)
        killed(bench.reproduce(out, sleep="2"), rng.uniform(1, 10))
        table.add("SIGKILL, reproduce", bench.reproduce_ends(bench.reproduce(out), out))
        shutil.rmtree(out)
        process = bench.reproduce(out, sleep="2")
        stopped_for_a_while(process, rng.uniform(2, 8), 1.5, rng)
        table.add("SIGSTOP, reproduce", bench.reproduce_ends(process, out))
        shutil.rmtree(out)


def interrupt_suite(bench: Bench, table: Table, rng: random.Random, count: int) -> None:
    """Ctrl-C at random moments of commands, from the first import to the last figure, and of ``gs.run`` in a program."""
    kinds: dict[str, Callable[[Path], subprocess.Popen]] = {
        "sweep": lambda out: bench.sweep(out, "--jobs", "2", "--fresh", sleep="0.1"),
        "sweep in this process": lambda out: bench.sweep(out, "--jobs", "0", "--fresh"),
        "reproduce": lambda out: bench.reproduce(out, "--fresh", sleep="3"),
        "gs.run": lambda out: bench.start(str(Path(__file__).with_name("long_run.py"))),
    }
    seconds = {"gs.run": GS_RUN_SECONDS}
    for kind in kinds.keys() - seconds:
        began = time.monotonic()
        kinds[kind](bench.folder / f"interrupted {kind}").wait(PATIENCE)
        seconds[kind] = time.monotonic() - began
    for i in range(count):
        kind, outcome = list(kinds)[i % len(kinds)], DONE_BEFORE
        while outcome in (DONE_BEFORE, BEFORE_OUR_FIRST_LINE):  # not one of the count
            process = kinds[kind](bench.folder / f"interrupted {kind}")
            if kind == "gs.run":
                bench.wait_for("begun", process)
            word = "interrupted" if kind == "gs.run" else ""
            outcome = interrupted(bench, process, rng.uniform(0.3, seconds[kind]), word)
            table.add(f"Ctrl-C, {kind}", outcome, bench.said(process))


GS_RUN_SECONDS = 6.0
"""Ctrl-C comes within so many seconds of the first line of ``gs.run``: most of them compile."""


def full_disk_suite(bench: Bench, table: Table, rng: random.Random, count: int) -> None:
    """A disk that is full before the end: what was written is kept, and more space finishes it."""
    disk = bench.folder / "disk"
    disk.mkdir()
    for i in range(2 * count):
        kind = ("sweep", "reproduce")[i % 2]
        outcome = DONE_BEFORE
        while outcome == DONE_BEFORE:  # the disk was large enough: not one of the count
            outcome = on_small_disk(bench, disk, kind, rng.randrange(*KILOBYTES[kind]))
            table.add(f"full disk, {kind}", outcome)
        if outcome == NOT_POSSIBLE:
            print("  A small disk cannot be mounted here (tmpfs; that is for root): full disks are left out.")
            return


KILOBYTES = {"sweep": (100, 450), "reproduce": (100, 5000)}
"""The sizes of the small disks, from a folder that can just be begun to one in which the last file has no room."""


def on_small_disk(bench: Bench, disk: Path, kind: str, kilobytes: int) -> str:
    """Run a command on a disk of this size; then give it more space, and run it again."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(disk)]
    if os.name != "posix" or subprocess.run(command, capture_output=True).returncode:
        return NOT_POSSIBLE
    out, is_sweep = disk / "out", kind == "sweep"
    start, ends = (bench.sweep, bench.sweep_ends) if is_sweep else (bench.reproduce, bench.reproduce_ends)
    try:
        process = start(out)
        process.wait(PATIENCE)
        if "Traceback" in bench.said(process) or process.returncode not in (0, SURPRISE, 2):
            return f"traceback or status {process.returncode}"
        if process.returncode != 2:
            return DONE_BEFORE
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True, capture_output=True)
        return ends(start(out), out)
    finally:
        subprocess.run(["umount", str(disk)], capture_output=True)


class Cluster:
    """A Dask scheduler and two workers on this machine."""

    def __init__(self, bench: Bench):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.bench, self.address = bench, f"tcp://127.0.0.1:{self.port}"
        self.scheduler, self.workers = self.start_scheduler(), [self.start_worker(), self.start_worker()]

    def start_scheduler(self) -> subprocess.Popen:
        process = self.bench.start("-m", "distributed.cli.dask_scheduler", "--port", str(self.port), *LOOPBACK)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.1)
        raise TimeoutError("the scheduler does not listen")

    def start_worker(self) -> subprocess.Popen:
        options = ("--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--local-directory", str(self.bench.folder))
        return self.bench.start(
            "-m", "distributed.cli.dask_worker", self.address, *options, *LOOPBACK, sleep=DASK_SLEEP
        )

    def kill_worker(self) -> None:
        """Kill one worker and start another one."""
        self.workers.pop(0).kill()
        self.workers.append(self.start_worker())

    def kill_scheduler(self) -> None:
        """Kill the scheduler, with the workers (which end without it, some seconds later), and start all of them again."""
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.wait()
        self.scheduler, self.workers = self.start_scheduler(), [self.start_worker(), self.start_worker()]


LOOPBACK = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
DASK_SLEEP = "0.5"
"""Seconds that a worker of the cluster waits in every cell, so that a fault finds it at work."""


def dask_suite(bench: Bench, table: Table, rng: random.Random, count: int) -> None:
    """Sweeps on a cluster whose worker, driver or scheduler is killed; then Ctrl-C of a sweep on it."""
    cluster = Cluster(bench)
    through = ("--scheduler", cluster.address)
    for i in range(3 * count):
        victim, out = ("a worker", "the driver", "the scheduler")[i % 3], bench.folder / f"dask-{i}"
        driver = bench.sweep(out, *through)
        bench.wait_for_cells(out, rng.randrange(1, 8), driver)
        if victim == "a worker":
            cluster.kill_worker()
        elif victim == "the driver":
            driver.kill()
            driver.wait()
            driver = bench.sweep(out, *through)
        else:
            cluster.kill_scheduler()
            driver.wait(PATIENCE)  # it may go on with the new scheduler, or stop and say that the old one is gone
            driver = driver if driver.returncode == 0 else bench.sweep(out, *through)
        table.add(f"SIGKILL of {victim}, Dask", bench.sweep_ends(driver, out), bench.said(driver))
        shutil.rmtree(out)
        driver = bench.sweep(out, *through)
        bench.wait_for_cells(out, rng.randrange(0, 8), driver)
        table.add("Ctrl-C, Dask", interrupted(bench, driver, 0.1), bench.said(driver))
        shutil.rmtree(out, ignore_errors=True)


SUITES: dict[str, tuple[Callable[[Bench, Table, random.Random, int], None], int]] = {
    "damage": (damage_suite, 200),
    "repair": (repair_suite, 12),
    "kill": (kill_suite, 6),
    "disk": (full_disk_suite, 4),
    "dask": (dask_suite, 3),
    "interrupt": (interrupt_suite, 200),
}
"""The suites, and how many faults (of each kind) they make."""


def run(seed: int, scale: float, only: list[str]) -> Table:
    """Make all faults; ``scale`` multiplies their numbers."""
    table = Table()
    sys.path.insert(0, str(TEST_TOOLS))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            bench.make_good_folders()
            for name in only or SUITES:
                suite, count = SUITES[name]
                suite(bench, table, random.Random(f"{seed} {name}"), max(1, round(scale * count)))
        finally:
            bench.end()
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help=", ".join(SUITES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of faults")
    given = parser.parse_args()
    found = run(given.seed, given.scale, given.only)
    print(found)
    sys.exit(int(found.bad > 0))
