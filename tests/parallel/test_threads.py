"""One thread of BLAS and XLA: the environment variables are set in a block and restored after it."""

from __future__ import annotations

import os

from gyrostat.parallel.threads import XLA_SINGLE, one_thread


def test_threads_are_restored(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/nowhere")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with one_thread(), one_thread():
        assert os.environ["XLA_FLAGS"] == f"--xla_dump_to=/nowhere {XLA_SINGLE}"
        assert os.environ["OMP_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=/nowhere" and "OMP_NUM_THREADS" not in os.environ
