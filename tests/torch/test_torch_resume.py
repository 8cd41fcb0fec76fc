"""Loops in real processes: no step mixes environments, and ``kill -9`` in the middle of an epoch changes nothing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import one_environment_loops as loops  # noqa: E402
from one_environment_loops import Evidence, killed_and_resumed, launch  # noqa: E402

LENGTHS = {1: 27, 2: 12}  # 6 + 8 + 11 whole batches of 8 rows in whole rounds of three; 3 + 4 + 5 of 2 x 8


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", [1, 2])
def test_a_killed_loop_goes_on_with_the_same_batches(tmp_path, world, workers):
    length = LENGTHS[world]
    kill_at = length + 7  # in epoch 1; the last checkpoint is one or two steps older
    found = killed_and_resumed(loops.plain, tmp_path, kill_at=kill_at, world=world, workers=workers)
    assert len(found.undisturbed.steps()[0]) == 2 * length == len(found.resumed.steps()[0])
    assert 2 * length < found.resumed.notes() <= 2 * length + loops.EVERY  # it was killed, and steps were done again
    assert found.exact()
    audit = found.undisturbed.audit()
    assert audit == {"steps": 2 * length, "mixed": 0, "repeated": 0, "causes": []}
    assert found.undisturbed.mixed_steps() == 0
