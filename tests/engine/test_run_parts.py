"""A run in parts: the same bits wherever it is cut, one compilation, Ctrl-C between two parts."""

from __future__ import annotations

import os
import signal
import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from gyrostat.engine import program as programs
from gyrostat.engine.one_run import OneRun

LAW = gs.Finite([-0.5, 1.5], [0.5, 0.5])
SHARED = gs.Dense(1100, design=0)  # more numbers than every run has a copy of


@pytest.fixture
def parts(monkeypatch) -> list[tuple[int, ...]]:
    """The parts that are made: start, stop, first and last recording."""
    made: list[tuple[int, ...]] = []
    plain = programs.advance

    def advance(given, states, values):
        made.append(tuple(int(x) for x in given[2:]))
        return plain(given, states, values)

    monkeypatch.setattr(programs, "advance", advance)
    return made


@pytest.mark.parametrize(
    ("algorithm", "problem", "options"),
    [
        (gs.HeteroSGD(0.05), gs.Problem(gs.RandomEnvironments(6, law=gs.TwoPoint()), gs.FreshGaussian(200)), {}),
        (gs.GradientDescent(0.1), gs.Problem(gs.Environments.diagonal(3), SHARED), {"tolerance": 0.01}),
        (gs.HeteroSGD(0.05), gs.Problem(gs.RandomEnvironments(4, law=LAW), gs.FixedGaussian(50)), {"record_at": [9]}),
    ],
    ids=["fresh", "shared design", "revealed design"],
)
def test_the_numbers_do_not_depend_on_where_a_run_is_cut(monkeypatch, parts, algorithm, problem, options):
    options = {"num_steps": 23, "seeds": 3, "record_at": 5, **options}
    traced = []
    plain = OneRun.step
    monkeypatch.setattr(OneRun, "step", lambda *args: traced.append(args) or plain(*args))
    results = []
    for seconds in (0.0, 1e9):  # parts of one step, and parts that grow
        monkeypatch.setattr(programs, "PART_SECONDS", seconds)
        parts.clear()
        results.append(gs.run(algorithm, problem, **options))
        assert (max(stop - start for start, stop, _, _ in parts) > 3) == (seconds > 0)
    assert results[0].identical(results[1]) and len(traced) == 1


def test_parts_grow_by_steps_and_by_recordings(monkeypatch, parts):
    """Many recordings after many steps without any: a part has at most four times as many of both as the longest before."""
    monkeypatch.setattr(programs, "PART_SECONDS", 1e9)
    dense = [500, *range(501, 701)]
    gs.run(gs.HeteroSGD(0.05), gs.Problem(gs.Environments.diagonal(3), gs.Identity()), num_steps=700, record_at=dense)
    assert [stop for _, stop, _, _ in parts[:5]] == [1, 5, 21, 85, 341]
    recorded = [last - first for _, _, first, last in parts]
    assert all(after <= 4 * max(recorded[: i + 1]) + 1 for i, after in enumerate(recorded[1:]))
    assert max(recorded) > 50 and parts[-1][1] == 700 and len(parts) < 15


def test_an_interrupt_ends_a_run_between_two_parts(monkeypatch, parts):
    """And progress counts runs that are under way by their steps."""
    monkeypatch.setattr(programs, "PART_SECONDS", 0.0)
    shown = []

    def progress(done, total):
        shown.append((done, total))
        if len(shown) == 3:
            raise KeyboardInterrupt

    problem = gs.Problem(gs.Environments.diagonal(3), gs.Identity())
    with pytest.raises(KeyboardInterrupt):
        gs.run(gs.HeteroSGD(0.05), problem, num_steps=10, seeds=4, progress=progress)
    assert len(parts) == 3 and np.allclose(shown, [(0.4, 4), (0.8, 4), (1.2, 4)])


def slowly(view):
    """A recording that takes about 10 ms."""
    return jnp.linalg.svd(jnp.tile(view.product, (16, 16)))[1][0]


@pytest.mark.parametrize("moment", ["first second", "middle", "long recording"])
def test_ctrl_c_ends_a_run_of_many_minutes_soon(moment):
    """Ctrl-C is pressed once. Interrupted in its first second, a run is still being traced or compiled."""
    problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint()), gs.FreshGaussian(2000))
    pressed: list[float] = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def progress(done, total):
        if moment != "first second" and not timers and done / total > 1e-5:
            timers.append(threading.Timer(0.3, press))
            timers[-1].start()

    timers = []
    if moment == "first second":
        timers.append(threading.Timer(0.3, press))
        timers[-1].start()
    options = {"num_steps": 20_000_000, "record_at": 3}
    if moment == "long recording":
        options = {"num_steps": 50_000, "record_at": 50_001, "record": [gs.diagnostics.Diagnostic("slow", slowly)]}
    with pytest.raises(KeyboardInterrupt):
        gs.run(gs.HeteroSGD(0.05), problem, seeds=4, progress=progress, **options)
    assert (
        time.monotonic() - pressed[0] < 15
    )  # about a second on an idle machine, and two for a program that is being compiled
