"""Threads of BLAS and XLA, and XLA's compiler effort: one thread per process, parallelism over processes.

On the small matrices of the papers this was up to ten times faster than letting BLAS and XLA share the cores, and the order of
every sum does not depend on the number of workers. Compiling takes seconds per program; at optimisation level 1 it takes a
fifth less time, and programs run as fast.
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


def single_thread_settings(*, quick: bool = False) -> dict[str, str]:
    """The environment variables that ask for one thread; ``quick`` as in :func:`one_thread`.

    >>> single_thread_settings()["OMP_NUM_THREADS"]
    '1'
    """
    given = os.environ.get("XLA_FLAGS", "")
    # XLA ends the process at an unknown flag, and only this release line is known to have these.
    quick = quick and importlib.metadata.version("jaxlib").startswith("0.10.")
    flags = f"{XLA_SINGLE} {XLA_QUICK}" if quick else XLA_SINGLE
    return {**BLAS_SINGLE, "XLA_FLAGS": given if XLA_SINGLE in given else f"{given} {flags}".strip()}


@contextmanager
def one_thread(*, quick: bool = False) -> Iterator[None]:
    """One thread of BLAS and XLA in this block and in the processes that it starts.

    NumPy and JAX read the environment variables when they are first used, so enter the block before that. ``quick`` is for
    short computations: programs compile in half the time and run at about half the speed.

    >>> with one_thread():
    ...     os.environ["OMP_NUM_THREADS"]
    '1'
    """
    with environment_variables(single_thread_settings(quick=quick)):
        yield


@contextmanager
def environment_variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for this block and for the processes that it starts."""
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
def confine_this_process() -> None:
    """Use one thread of BLAS and XLA in this process from now on, also for XLA's element-wise loops.

    Call it before JAX is first used. XLA has no flag for the size of its pool for element-wise loops: it is the number of cores
    that the process may use when JAX starts. So JAX starts while one core is allowed, and then all cores are allowed again.
    (Otherwise a process on two cores spent a fifth more time on the same numbers.)
    """
    os.environ.update(single_thread_settings())
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        import jax

        from gyrostat.jax_tools.compile_cache import use_compile_cache

        use_compile_cache()  # here, because the number of threads is part of the name of its folder
        jax.devices()
    finally:
        for thread in os.listdir("/proc/self/task"):
            with suppress(ProcessLookupError):  # the thread has ended meanwhile
                os.sched_setaffinity(int(thread), allowed)
