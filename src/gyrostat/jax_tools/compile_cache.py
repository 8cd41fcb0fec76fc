"""Compiled programs kept between processes, in the user's cache folder, and a word when compiling takes long.

JAX has a persistent cache of compiled programs, which is off by default. :func:`use_compile_cache` turns it on for this
process, unless the process has configured one itself. JAX's own files are neither written whole nor limited in size, so the
cache hands JAX an object of ours that does both. JAX's key of a program holds the program, the versions of jax and jaxlib, and
the flags of XLA. It holds neither the instructions of this machine's CPU nor the number of threads for which the program was
split, so those name the folder.

``GYROSTAT_COMPILE_CACHE`` names another folder, or is ``off``.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import jax

VARIABLE = "GYROSTAT_COMPILE_CACHE"
"""The environment variable: a folder, or ``off``."""
OFF = ("off", "0", "false", "no")
LIMIT = 2**30
"""The bytes that a folder may hold; beyond them the programs that were not used for the longest time are deleted."""
WORTH_KEEPING = 0.1
"""Programs that compile in fewer seconds are not kept."""
SAY_AFTER = 1.0
"""Seconds after which a compilation is announced."""


def cache_folder() -> Path | None:
    """The folder of compiled programs for this machine and this JAX; None if the cache is off.

    >>> from gyrostat.parallel.threads import environment_variables
    >>> with environment_variables({VARIABLE: "off"}):
    ...     cache_folder() is None
    True
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted.lower() in OFF:
        return None
    import jaxlib
    import platformdirs

    root = Path(wanted).expanduser() if wanted else platformdirs.user_cache_path("gyrostat") / "compiled"
    return root / f"jaxlib-{jaxlib.__version__}-{machine_digest()}"


def machine_digest() -> str:
    """A short name of what a compiled program depends on beyond its key: the CPU's instructions and the number of threads."""
    return hashlib.sha256(f"{_processor()} {_threads()} {jax.__version__}".encode()).hexdigest()[:12]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("model name", "flags", "Features", "CPU part")
    return platform.machine() + " ".join(sorted({line for line in lines if line.startswith(wanted)}))


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def use_compile_cache() -> Path | None:
    """Keep compiled programs of this process in :func:`cache_folder`; the folder, or None where they are not kept.

    A process that has configured JAX's persistent cache itself is left alone.
    """
    given: Any = jax.config
    configured = given.jax_compilation_cache_dir or not given.jax_enable_compilation_cache
    folder = None if configured else cache_folder()
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to
        return None
    if given.jax_persistent_cache_min_compile_time_secs == 1.0:  # JAX's default
        jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
    try:
        _hand_over(ProgramFiles(folder))
    except (
        ImportError,
        AttributeError,
    ):  # another release of JAX: its own files, which are as good unless two write at once
        jax.config.update("jax_compilation_cache_dir", str(folder))
    return folder


class ProgramFiles:
    """Compiled programs as files, one each, written whole or not at all, by any number of processes.

    >>> import tempfile
    >>> files = ProgramFiles(Path(tempfile.mkdtemp()))
    >>> files.put("key", b"program")
    >>> files.get("key"), files.get("other")
    (b'program', None)
    """

    def __init__(self, folder: Path, limit: int = LIMIT):
        self.folder, self.limit = folder, limit

    def get(self, key: str) -> bytes | None:
        """The program with this key, or None."""
        path = self.folder / key
        try:
            content = path.read_bytes()
            os.utime(path)  # the time of the last use, by which programs are deleted
        except OSError:
            return None
        return content

    def put(self, key: str, value: bytes) -> None:
        """Keep a program. A full disk is not an error: the program is compiled again next time."""
        part = self.folder / f".{key}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            part.write_bytes(value)
            os.replace(part, self.folder / key)
        except OSError:
            part.unlink(missing_ok=True)
            return
        self._make_room()

    def _make_room(self) -> None:
        """Delete the programs that were not used for the longest time, and parts that a killed process left a day ago."""
        files = []
        for path in self.folder.iterdir():
            with suppress(OSError):  # another process has deleted it meanwhile
                status = path.stat()
                if path.suffix == ".part" and status.st_mtime < time.time() - 86_400:
                    path.unlink()
                elif path.suffix != ".part":
                    files.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in files) - self.limit
        for _, size, path in sorted(files):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def _hand_over(files: ProgramFiles) -> None:
    """Make JAX use these files, which has no public way to give it a cache of one's own."""
    from jax._src import compilation_cache as ours_now
    from jaxlib import utils

    read, set_level = ours_now.get_executable_and_time, utils.absl_set_min_log_level
    with ours_now._cache_initialized_mutex:
        if ours_now._cache is not None:
            return
        ours_now._cache, ours_now._cache_initialized = files, True  # type: ignore[assignment]

    def read_quietly(*given: Any, **named: Any) -> Any:
        # XLA prints two errors for every program it loads on CPUs for which it was tuned not to use some instruction, because
        # a preference is not a feature of the CPU. The name of the folder has made sure that the CPU is the same.
        set_level(3)
        try:
            return read(*given, **named)
        finally:
            set_level(int(os.environ.get("TF_CPP_MIN_LOG_LEVEL") or 1))

    ours_now.get_executable_and_time = read_quietly


# --- a word when compiling takes long --------------------------------------------------------------------------------------

_SAY: ContextVar[Callable[[str], Any] | None] = ContextVar("say", default=None)
_TIMER: ContextVar[threading.Timer | None] = ContextVar("timer", default=None)


@contextmanager
def long_compilations_announced(say: Callable[[str], Any] | None) -> Iterator[None]:
    """In this block, ``say`` gets a sentence when a program has been compiling for a second, but only one; None for silence."""
    if say is None:
        yield
        return
    _listen()
    said: set[str] = set()

    def say_first(line: str) -> None:
        if not said:
            said.add(line)
            say(line)

    token = _SAY.set(say_first)
    try:
        yield
    finally:
        _stop()
        _SAY.reset(token)


@functools.cache
def _listen() -> None:
    """Have JAX report the ends of its stages. A compilation begins when the program has been translated for XLA."""
    jax.monitoring.register_event_duration_secs_listener(_stage_ended)


def _stage_ended(event: str, duration_secs: float, **kwargs: Any) -> None:
    say = _SAY.get()
    if say is None:
        return
    if event.endswith("jaxpr_to_mlir_module_duration"):
        _stop()
        folder = use_compile_cache()
        kept = "" if folder is None else ", also for later processes"
        timer = threading.Timer(SAY_AFTER, say, (f"gyrostat: compiling, once{kept} ...",))
        timer.daemon = True
        timer.start()
        _TIMER.set(timer)
    elif event.endswith("backend_compile_duration"):
        _stop()


def _stop() -> None:
    timer = _TIMER.get()
    if timer is not None:
        timer.cancel()
        _TIMER.set(None)
