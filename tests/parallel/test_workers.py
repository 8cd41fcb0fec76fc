"""A worker ends without a word when its parent is gone, and takes a program that no other has."""

from __future__ import annotations

import multiprocessing as mp
from collections import deque
from types import SimpleNamespace

import pytest

from gyrostat.parallel import workers


@pytest.mark.parametrize("unread", [0, 1])
def test_a_worker_ends_quietly_when_its_parent_closes_the_link_also_before_it_has_read_every_report(
    unread, monkeypatch
):
    monkeypatch.setattr(workers, "_end_with_parent", lambda: None)
    ours, theirs = mp.get_context("spawn").Pipe()
    for _ in range(unread):
        theirs.send(("progress", 1.0, 2))
    ours.close()
    workers._serve(theirs, None)
    assert not theirs.closed


def test_a_worker_takes_a_program_that_no_other_has():
    tasks = [SimpleNamespace(program=name) for name in "aabb"]
    assert workers._next_task(deque(tasks), None, ["a"]) is tasks[2]
    assert workers._next_task(deque(tasks), tasks[3], ["a", "b"]) is tasks[2]
    assert workers._next_task(deque(tasks[:2]), tasks[3], ["a"]) is tasks[0]
