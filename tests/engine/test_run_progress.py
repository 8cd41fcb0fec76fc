"""`progress`: a bar, a function, silence; never on standard output."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

import gyrostat as gs
from gyrostat.engine import progress as progress_module
from gyrostat.engine.progress import progress_shown


def problem() -> gs.Problem:
    return gs.Problem(gs.Environments.diagonal(3), gs.Identity())


def test_true_shows_a_bar_on_standard_error_and_changes_no_number(capsys):
    shown = gs.run(gs.HeteroSGD(0.05), problem(), num_steps=5, seeds=4, progress=True)
    said = capsys.readouterr()
    assert said.out == "" and "4/4" in said.err and "left" in said.err
    silent = gs.run(gs.HeteroSGD(0.05), problem(), num_steps=5, seeds=4)
    assert capsys.readouterr() == ("", "")
    assert np.array_equal(shown.signal, silent.signal)


def test_grids_and_branches_too(capsys):
    gs.run_grid(lambda eta: (gs.HeteroSGD(eta), problem()), {"eta": [0.1, 0.2]}, num_steps=5, seeds=3, progress=True)
    assert "6/6" in capsys.readouterr().err
    trunk = gs.GradientDescent(0.1, width=2)
    gs.engine.offshoots(trunk, problem(), at=[2], schedule=gs.schedules.Constant(0.01), num_steps=2, progress=True)
    assert "1/1" in capsys.readouterr().err


def test_a_function_gets_the_runs_done_and_all_runs():
    calls: list[tuple[int, int]] = []
    gs.run(gs.HeteroSGD(0.05), problem(), num_steps=5, seeds=4, progress=lambda *given: calls.append(given))
    assert calls[-1] == (4, 4)


def test_anything_else_is_refused():
    with pytest.raises(
        gs.GyrostatError, match=r"progress must be True, False or a function of \(done, total\); got 'yes'"
    ):
        gs.run(gs.HeteroSGD(0.05), problem(), num_steps=5, progress="yes")


@pytest.mark.parametrize(
    ("progress", "terminal", "announced"),
    [(None, True, True), (None, False, False), (False, True, False), (print, True, False), (True, False, True)],
)
def test_a_long_compilation_is_announced_once_on_a_terminal_or_with_a_bar(
    monkeypatch, capsys, progress, terminal, announced
):
    monkeypatch.setattr(progress_module, "SAY_AFTER", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with progress_shown(progress, 1) as report:
        for _ in range(2):
            with report.compiling():
                time.sleep(0.2)
    assert capsys.readouterr().err.count("gyrostat: compiling, once") == announced


def test_a_short_compilation_is_not_announced(monkeypatch, capsys):
    monkeypatch.setattr(progress_module, "SAY_AFTER", 0.1)
    with progress_shown(True, 1) as report:
        with report.compiling():
            pass
        time.sleep(0.3)  # nothing is compiled here
    assert "compiling" not in capsys.readouterr().err
