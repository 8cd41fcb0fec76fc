"""The one place that decides threads: one per run, parallelism over runs.

On the small matrices of the papers this was up to ten times faster than letting BLAS and XLA share the cores,
and the order of every sum is then the same whatever the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

XLA_SINGLE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
BLAS_SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def one_thread() -> Iterator[None]:
    """Ask for one thread of BLAS and XLA within this block and in the processes started there.

    NumPy and JAX read this when they are first used, so enter it before them.

    >>> with one_thread():
    ...     os.environ["OMP_NUM_THREADS"]
    '1'
    """
    given = os.environ.get("XLA_FLAGS", "")
    flags = given if XLA_SINGLE in given else f"{given} {XLA_SINGLE}".strip()
    wanted = {**BLAS_SINGLE, "XLA_FLAGS": flags}
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
