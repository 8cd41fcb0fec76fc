"""Faults on purpose: kills, stops, interrupts, full disks, flipped bits and deleted files, for sweeps, reproduce and Dask.

``make faults`` makes a hundred and more of them and prints a table: what was done, how often, and how it ended. A fault is
*kept* if the folder is in the end what an undisturbed command writes, *noticed* if reading the folder said so, and *lost* or
*silently wrong* otherwise. The exit status is 1 if there is one of the last two, or a traceback.
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

TOOLS = Path(__file__).parent
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
CELLS = 12
PATIENCE = 240
LIMIT = 5.0
"""Seconds after Ctrl-C in which a command must have ended."""

# --- files ----------------------------------------------------------------------------------------------------------------


def content(folder: Path) -> dict[str, bytes]:
    """The files of a store, by name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def data_files(folder: Path) -> list[Path]:
    """The files of a results folder or a sweep that hold numbers, or say what they are."""
    names = ("sweep.json", "claims.json")
    stores = [p for name in ("store.zarr", "results.zarr") for p in (folder / name).rglob("*") if p.is_file()]
    # The groups above those of experiments hold nothing.
    stores = [p for p in stores if p.parent.parent.name != "results.zarr" and p.parent.name != "results.zarr"]
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


def damage_and_read(folder: Path, kind: str, rng: random.Random, read: Callable[[Path], object]) -> str:
    """Damage one file, read the folder, and undo it: ``noticed``, ``same numbers``, ``silently wrong`` or ``foreign error``."""
    from gyrostat.errors import GyrostatError

    files = data_files(folder)
    # Half of the faults go by the size of files, half by their number: small ones are metadata.
    path = rng.choices(files, [p.stat().st_size for p in files])[0] if rng.random() < 0.5 else rng.choice(files)
    good, before = read(folder), path.read_bytes()
    DAMAGES[kind](path, rng)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if read(folder) == good:
                return "same numbers"
            return "noticed by gyrostat verify" if is_reported(folder) else f"silently wrong ({path.name})"
    except (GyrostatError, UserWarning):
        return "noticed"
    except Exception as error:
        return f"foreign error ({type(error).__name__} at {path.name})"
    finally:
        path.write_bytes(before)


def is_reported(folder: Path) -> bool:
    """Whether ``gyrostat verify`` says that something is missing or damaged."""
    from gyrostat.reproduce.store import check_results
    from gyrostat.sweeps.store import check_sweep

    return bool((check_results if (folder / "results.zarr").exists() else check_sweep)(folder)[1])


def numbers_of_sweep(folder: Path) -> object:
    """Everything that a sweep says, in a form that can be compared."""
    from gyrostat.sweeps.store import load_sweep

    ds = load_sweep(folder)
    return str(ds.attrs), {str(n): (x.dims, str(x.attrs), x.values.tobytes()) for n, x in ds.variables.items()}


def numbers_of_results(folder: Path) -> object:
    """Everything that a results folder says."""
    from gyrostat.reproduce.store import ResultsStore

    store = ResultsStore(folder)
    loaded = {name: store.load(name) for name in store.finished()}
    variables = {
        (name, str(key)): (x.dims, str(x.attrs), str(x.values.tolist()))
        for name, ds in loaded.items()
        for key, x in ds.variables.items()
    }
    return store.claims(), {name: (str(store.run(name)), str(ds.attrs)) for name, ds in loaded.items()}, variables


# --- processes ------------------------------------------------------------------------------------------------------------


class Bench:
    """Starts commands in a folder, and ends what is left at the end."""

    def __init__(self, folder: Path):
        self.folder, self.started = folder, []
        (folder / "spec.toml").write_text(SPEC)

    def start(self, *arguments: str, sleep: str = "0", **variables: str) -> subprocess.Popen:
        paths = os.pathsep.join([str(TOOLS), os.environ.get("PYTHONPATH", "")])
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
        return self.start("-m", "gyrostat", "reproduce", f"{TOOLS / 'fake2024.py'}", *names, *options, sleep=sleep)

    def said(self, process: subprocess.Popen) -> str:
        return next(path for p, path in self.started if p is process).read_text()

    def end(self) -> None:
        for process, _ in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()


def interrupted(bench: Bench, start: Callable[[], subprocess.Popen], delay: float) -> str:
    """Press Ctrl-C some time after the start: ``ended`` if that is quiet, in time and with exit status 130."""
    process = start()
    try:
        process.wait(delay)
        return "was done before"
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    began = time.monotonic()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return "ignored"
    seconds, said = time.monotonic() - began, bench.said(process)
    # A process that has hardly begun, or has almost ended, is not Python's to handle: the signal itself ends it.
    if "Traceback" in said or "Exception ignored" in said or process.returncode not in (130, -signal.SIGINT, 0):
        return f"traceback or status {process.returncode}"
    if process.returncode == 0:
        return "was done before"
    return "ended" if seconds < LIMIT else f"ended late ({seconds:.0f} s)"


def finish(bench: Bench, start: Callable[[], subprocess.Popen], store: Path, expected: dict[str, bytes]) -> str:
    """Let a command run to its end: ``kept`` if its store is then what an undisturbed command writes."""
    process = start()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return "lost (hangs)"
    if "Traceback" in bench.said(process):
        return "traceback"
    return "kept" if content(store) == expected else "lost"


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


class Table:
    """Counts outcomes by fault, and prints them."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter] = {}

    def add(self, fault: str, outcome: str) -> None:
        self.counts.setdefault(fault, Counter())[outcome] += 1
        print(f"  {fault}: {outcome}", flush=True)

    @property
    def bad(self) -> int:
        good = (
            "kept",
            "noticed",
            "noticed by gyrostat verify",
            "same numbers",
            "ended",
            "was done before",
            "not possible here",
        )
        return sum(n for counts in self.counts.values() for outcome, n in counts.items() if outcome not in good)

    def __str__(self) -> str:
        width = max(map(len, self.counts))
        lines = [
            f"{fault:{width}}  {sum(counts.values()):4}  {', '.join(f'{n} {o}' for o, n in counts.most_common())}"
            for fault, counts in self.counts.items()
        ]
        total = sum(sum(counts.values()) for counts in self.counts.values())
        return "\n".join([f"{'fault':{width}}  made  outcome", *lines, f"{total} faults, {self.bad} bad outcomes"])


def damage_suite(bench: Bench, table: Table, rng: random.Random, count: int, sweep: Path, results: Path) -> None:
    """Damaged files of a finished sweep and of finished results."""
    for read, folder, name in ((numbers_of_sweep, sweep, "sweep"), (numbers_of_results, results, "results")):
        for kind in DAMAGES:
            for _ in range(count if kind == "flipped bit" else max(1, count // 5)):
                table.add(f"{kind}, {name}", damage_and_read(folder, kind, rng, read))


def repair_suite(bench: Bench, table: Table, rng: random.Random, count: int, good: Path) -> None:
    """A damaged sweep that is run again."""
    expected = content(good / "store.zarr")
    for i in range(count):
        out = bench.folder / f"repaired-{i}"
        shutil.copytree(good, out)
        kind = list(DAMAGES)[i % len(DAMAGES)]
        DAMAGES[kind](rng.choice(data_files(out)), rng)
        table.add(f"{kind}, sweep again", finish(bench, lambda o=out: bench.sweep(o), out / "store.zarr", expected))
        shutil.rmtree(out)


def kill_suite(bench: Bench, table: Table, rng: random.Random, count: int, good: Path) -> None:
    """Sweeps that are killed or stopped at random moments, then run to their end."""
    expected = content(good / "store.zarr")
    for i in range(count):
        out = bench.folder / f"killed-{i}"
        for _ in range(2):
            killed(bench.sweep(out, "--jobs", "2", sleep="0.05"), rng.uniform(0.5, 12))
        outcome = finish(bench, lambda o=out: bench.sweep(o, "--jobs", "2"), out / "store.zarr", expected)
        table.add("SIGKILL twice, sweep", outcome)
        shutil.rmtree(out)
        process = bench.sweep(out, "--jobs", "2", sleep="0.05")
        stopped_for_a_while(process, rng.uniform(2, 8), 1.5, rng)
        table.add("SIGSTOP, sweep", finish(bench, lambda p=process: p, out / "store.zarr", expected))
        shutil.rmtree(out)


def reproduce_suite(bench: Bench, table: Table, rng: random.Random, count: int, good: Path) -> None:
    """Reproductions that are killed, then run to their end."""
    expected = numbers(good)
    for i in range(count):
        out = bench.folder / f"results-{i}"
        killed(bench.reproduce(out, sleep="2"), rng.uniform(1, 10))
        process = bench.reproduce(out)
        process.wait(PATIENCE)
        same = "Traceback" not in bench.said(process) and numbers(out) == expected
        table.add("SIGKILL, reproduce", "kept" if same else "lost")
        shutil.rmtree(out)


def numbers(folder: Path) -> object:
    """The numbers and verdicts of a results folder, without the times at which they were made."""
    claims, _, variables = numbers_of_results(folder)
    return [{**record, "seconds": 0} for record in claims], variables


def interrupt_suite(bench: Bench, table: Table, rng: random.Random, count: int) -> None:
    """Ctrl-C at random moments, from the first import to the last figure."""
    for i in range(count):
        out = bench.folder / f"interrupted-{i % 4}"
        kind = ("sweep", "sweep in this process", "reproduce")[i % 3]
        options = ("--jobs", "0") if kind == "sweep in this process" else ("--jobs", "2")
        if kind == "reproduce":
            outcome = interrupted(
                bench, lambda o=out: bench.reproduce(o / "r", "--fresh", sleep="3"), rng.uniform(0.3, 12)
            )
        else:
            outcome = interrupted(
                bench, lambda o=out, g=options: bench.sweep(o / "s", *g, "--fresh", sleep="0.1"), rng.uniform(0.3, 12)
            )
        table.add(f"Ctrl-C, {kind}", outcome)


def full_disk_suite(bench: Bench, table: Table, rng: random.Random, count: int, good: Path) -> None:
    """A disk that is full before the end: what was written is kept, and more space finishes it."""
    disk = bench.folder / "disk"
    disk.mkdir()
    for _ in range(count):
        size = rng.randrange(500, 900)
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(disk)]
        if os.name != "posix" or subprocess.run(command, capture_output=True).returncode:
            table.add("full disk, sweep", "not possible here")
            return
        try:
            process = bench.sweep(disk / "out", "--jobs", "1")
            process.wait(PATIENCE)
            said = bench.said(process)
            quiet = process.returncode in (0, 2) and "Traceback" not in said
            subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True, capture_output=True)
            expected = content(good / "store.zarr")
            outcome = finish(bench, lambda: bench.sweep(disk / "out", "--jobs", "1"), disk / "out/store.zarr", expected)
            table.add("full disk, sweep", outcome if quiet else f"traceback or status {process.returncode}")
        finally:
            subprocess.run(["umount", str(disk)], capture_output=True)


def dask_suite(bench: Bench, table: Table, rng: random.Random, count: int, good: Path) -> None:
    """A cluster on this machine whose workers, and whose driver, are killed or interrupted."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    loopback = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    bench.start("-m", "distributed.cli.dask_scheduler", "--port", str(port), *loopback)
    address = f"tcp://127.0.0.1:{port}"

    def worker() -> subprocess.Popen:
        options = ("--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--local-directory", str(bench.folder))
        return bench.start("-m", "distributed.cli.dask_worker", address, *options, *loopback, sleep="0.1")

    through = ("--scheduler", address)
    workers = [worker(), worker()]
    time.sleep(5)
    for i in range(count):
        out = bench.folder / f"dask-{i}"
        driver = bench.sweep(out, *through)
        time.sleep(rng.uniform(3, 10))
        if i % 2:
            workers.pop(0).kill()
            workers.append(worker())
        else:
            driver.kill()
            driver.wait()
            driver = bench.sweep(out, *through)
        expected = content(good / "store.zarr")
        outcome = finish(bench, lambda d=driver: d, out / "store.zarr", expected)
        table.add(f"SIGKILL of {'a worker' if i % 2 else 'the driver'}, Dask", outcome)
        outcome = interrupted(bench, lambda o=out: bench.sweep(o, *through, "--fresh"), rng.uniform(0.5, 10))
        table.add("Ctrl-C, Dask", outcome)
        shutil.rmtree(out, ignore_errors=True)


def run(seed: int, scale: float, only: list[str]) -> Table:
    """Make all faults; ``scale`` multiplies their numbers."""
    rng, table = random.Random(seed), Table()

    def many(n: int) -> int:
        return max(1, round(scale * n))

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        sys.path.insert(0, str(TOOLS))
        sweep, results = Path(folder) / "sweep", Path(folder) / "results"
        try:
            for process in (bench.sweep(sweep, "--jobs", "1"), bench.reproduce(results)):
                process.wait(PATIENCE)
            suites: dict[str, Callable[[], None]] = {
                "damage": lambda: damage_suite(bench, table, rng, many(200), sweep, results),
                "repair": lambda: repair_suite(bench, table, rng, many(12), sweep),
                "kill": lambda: kill_suite(bench, table, rng, many(6), sweep),
                "reproduce": lambda: reproduce_suite(bench, table, rng, many(6), results),
                "interrupt": lambda: interrupt_suite(bench, table, rng, many(60)),
                "disk": lambda: full_disk_suite(bench, table, rng, many(4), sweep),
                "dask": lambda: dask_suite(bench, table, rng, many(4), sweep),
            }
            for name, suite in suites.items():
                if not only or name in only:
                    suite()
        finally:
            bench.end()
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="damage, repair, kill, reproduce, interrupt, disk, dask")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of faults")
    given = parser.parse_args()
    found = run(given.seed, given.scale, given.only)
    print(found)
    sys.exit(int(found.bad > 0))
