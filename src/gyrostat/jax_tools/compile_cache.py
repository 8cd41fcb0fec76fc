"""Compiled programs kept between processes, in the user's cache folder.

JAX has a persistent cache of compiled programs, which is off by default. :func:`use_compile_cache` turns it on for this
process, unless the process has configured one itself. JAX's key of a program holds the program, the versions of jax and
jaxlib, and the flags of XLA. It holds neither the instructions of this machine's CPU nor the number of threads for which the
program was split, so those name the folder.

``GYROSTAT_COMPILE_CACHE`` names another folder, or is ``off``.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

VARIABLE = "GYROSTAT_COMPILE_CACHE"
"""The environment variable: a folder, or ``off``."""
OFF = ("off", "0", "false", "no")
LIMIT = 2**30
"""The bytes that a folder may hold when a process begins to use it."""
WORTH_KEEPING = 0.02
"""Programs that compile in fewer seconds are not kept: loading one takes a hundredth of a second."""


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
    digest = hashlib.sha256(f"{_processor()} {_threads()} {jax.__version__}".encode()).hexdigest()[:12]
    return root / f"jaxlib-{jaxlib.__version__}-{digest}"


def _processor() -> str:
    """The kind of CPU and its instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("model name", "flags", "Features", "CPU part")
    return platform.machine() + " ".join(sorted({line for line in lines if line.startswith(wanted)}))


def _threads() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def use_compile_cache() -> Path | None:
    """Keep compiled programs of this process in :func:`cache_folder`; the folder, or None where they are not kept.

    A process that has configured JAX's persistent cache itself is left alone.
    """
    config: Any = jax.config
    configured = config.jax_compilation_cache_dir or not config.jax_enable_compilation_cache
    folder = None if configured else cache_folder()
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to
        return None
    _make_room(folder, LIMIT)
    if config.jax_persistent_cache_min_compile_time_secs == 1.0:  # JAX's default
        jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    from jax.experimental.compilation_cache import compilation_cache

    compilation_cache.reset_cache()  # else a program that was compiled before has decided that there is none
    with suppress(ImportError, AttributeError):  # another release of JAX: programs are loaded as it likes
        _delete_what_does_not_load(folder)
    return folder


def _make_room(folder: Path, limit: int) -> None:
    """Delete the programs that were not used for the longest time.

    JAX would do that itself, with a lock, and with a look at every file for each program that is kept or loaded.
    """
    files = []
    for path in folder.iterdir():
        with suppress(OSError):  # another process has deleted it meanwhile
            status = path.stat()
            files.append((max(status.st_atime, status.st_mtime), status.st_size, path))
    excess = sum(size for _, size, _ in files) - limit
    for _, size, path in sorted(files):
        if excess > 0:
            path.unlink(missing_ok=True)
            excess -= size


def _delete_what_does_not_load(folder: Path) -> None:
    """Have JAX delete a program that it cannot load, quietly.

    A kill can leave half of a program, and JAX never writes over a file: every later process would compile it again.
    """
    from jax._src import compilation_cache
    from jaxlib import utils

    load, set_log_level = compilation_cache.get_executable_and_time, utils.absl_set_min_log_level

    @functools.wraps(load)
    def load_or_delete(key: str, *args: Any, **kwargs: Any) -> Any:
        # XLA prints two errors for every program that it loads on CPUs for which it was tuned not to use some instruction,
        # because a preference is not a feature of the CPU. The name of the folder has made sure that the CPU is the same.
        set_log_level(3)
        try:
            return load(key, *args, **kwargs)
        except Exception:  # whatever is wrong with it, the program is compiled again and kept
            (folder / f"{key}-cache").unlink(missing_ok=True)
            return None, None
        finally:
            set_log_level(int(os.environ.get("TF_CPP_MIN_LOG_LEVEL") or 1))

    compilation_cache.get_executable_and_time = load_or_delete  # type: ignore[assignment]
