"""The one place that decides threads and compiler effort: one thread per run, parallelism over runs.

On the small matrices of the papers this was up to ten times faster than letting BLAS and XLA share the cores,
and the order of every sum is then the same whatever the number of workers. Compiling takes seconds per program, so
the backend's optimisation level is 1: a fifth less time to compile, none more to run.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

XLA_SINGLE = "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=1"
XLA_QUICK = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
BLAS_SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def settings(*, quick: bool = False) -> dict[str, str]:
    """The environment variables that ask for one thread; ``quick`` as in :func:`one_thread`.

    >>> settings()["OMP_NUM_THREADS"]
    '1'
    """
    given = os.environ.get("XLA_FLAGS", "")
    # An unknown flag ends the process, and only this release line is known to have it.
    quick = quick and importlib.metadata.version("jaxlib").startswith("0.10.")
    flags = f"{XLA_SINGLE} {XLA_QUICK}" if quick else XLA_SINGLE
    return {**BLAS_SINGLE, "XLA_FLAGS": given if XLA_SINGLE in given else f"{given} {flags}".strip()}


@contextmanager
def one_thread(*, quick: bool = False) -> Iterator[None]:
    """Ask for one thread of BLAS and XLA within this block and in the processes started there.

    NumPy and JAX read this when they are first used, so enter it before them. ``quick`` is for short runs: programs
    compile in half the time and run at about half the speed.

    >>> with one_thread():
    ...     os.environ["OMP_NUM_THREADS"]
    '1'
    """
    with variables(settings(quick=quick)):
        yield


@contextmanager
def variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Environment variables within this block, for it and for the processes started there."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@functools.cache
def confine() -> None:
    """Make this process a worker for good: one thread of BLAS and XLA, also for XLA's element-wise loops.

    Call it before JAX is first used. No switch of XLA narrows its pool for element-wise loops, which is as wide as the cores
    that the process may use when JAX starts; so JAX starts on one core, and then every core is allowed again. (A process on
    two cores otherwise spent a fifth more time on the same numbers.)
    """
    os.environ.update(settings())
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        import jax

        jax.devices()
    finally:
        for thread in os.listdir("/proc/self/task"):
            with suppress(ProcessLookupError):  # a thread that has ended meanwhile
                os.sched_setaffinity(int(thread), allowed)
