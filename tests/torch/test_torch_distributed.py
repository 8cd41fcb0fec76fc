"""One-environment batches in two real processes whose gradients are averaged at every step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import two_processes  # noqa: E402
from gyrostat.torch import EnvironmentBatchSampler  # noqa: E402


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each process saw and learnt."""
    folder = tmp_path_factory.mktemp("processes")
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}  # 127.0.0.1 only
    command = [sys.executable, str(Path(two_processes.__file__))]
    running = [
        subprocess.Popen([*command, str(rank), str(folder)], env=environment, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0], "\n".join(errors)
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.fixture(scope="module")
def alone():
    """One process with batches of twice the size."""
    network = two_processes.network(0)
    sampler = EnvironmentBatchSampler(two_processes.LABELS, 16, order="shuffled", seed=5)
    return two_processes.train(network, sampler), network.state_dict()


def test_processes_find_their_number_by_themselves(ranks):
    assert [found["process"] for found in ranks] == [[0, 2], [1, 2]]


def test_they_take_the_steps_of_one_process_with_twice_the_batch(ranks, alone):
    seen, state = alone
    both = zip(*(found["seen"] for found in ranks), strict=True)
    assert [sorted(mine + yours) for mine, yours in both] == [sorted(rows) for rows in seen]
    started = two_processes.network(0).state_dict()
    for name, values in state.items():
        assert torch.equal(ranks[0]["state"][name], ranks[1]["state"][name])
        # the same sums in another order
        torch.testing.assert_close(ranks[0]["state"][name], values, rtol=1e-12, atol=1e-13)
        assert not torch.allclose(values, started[name], rtol=1e-3)
