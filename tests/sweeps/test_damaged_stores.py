"""Damaged, deleted and foreign files, and full disks: noticed when read, computed again by a resume, never other numbers.

``make faults`` makes many more of them, in processes that are killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import faults
from checks import call, refuses
from gyrostat.parallel.checked_files import CHECKSUM, KINDS
from gyrostat.parallel.interrupts import check_interrupt, interrupts_noted
from gyrostat.parallel.whole_files import write_whole
from gyrostat.reproduce.store import ResultsStore
from gyrostat.sweeps import run_sweep
from gyrostat.sweeps.store import SweepStore, load_sweep

pytestmark = [pytest.mark.usefixtures("hasty"), pytest.mark.filterwarnings("ignore::UserWarning")]

TABLE = {
    "num_steps": 40,
    "seeds": 2,
    "algorithm": {"kind": "HeteroSGD", "step_size": 0.05, "init_scale": 0.05},
    "environments": {"kind": "RandomEnvironments", "dimension": 3, "law": {"kind": "TwoPoint"}},
    "measurements": {"kind": "Identity"},
    "axes": {"step_size": [0.05, 9.0], "order": ["iid", "cyclic"]},  # half of the runs diverge
    "record": {"final": ["signal"], "paths": ["spurious"], "points": 2},
    "success": {"spurious": {"below": 0.1}},
}
GOOD = {"noticed", "same numbers"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished sweep."""
    folder = tmp_path_factory.mktemp("whole")
    run_sweep(TABLE, out=folder, jobs=0)
    return folder


@pytest.fixture
def sweep_folder(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "sweep"))


@pytest.fixture
def results_folder(tmp_path):
    store = ResultsStore(tmp_path / "results")
    for name in ("fig1", "fig2"):
        data = {
            "loss": ("step", np.linspace(0, 1, 6)),
            "never": ("step", np.full(6, np.nan)),
            "kind": ("k", ["a", "b"]),
        }
        store.save(f"paper/{name}", xr.Dataset(data, attrs={"title": "Losses"}), "a1b2", {"seconds": 0.1})
        store.put_claims(
            f"paper/{name}", [{"id": f"paper/{name}/slope", "measured": {"slope": 0.5}, "verdict": "holds"}]
        )
    return store.folder


@pytest.mark.parametrize("kind", faults.DAMAGES)
def test_damage_of_a_sweep_is_noticed(sweep_folder, kind):
    rng = random.Random(kind)
    count = 25 if kind == "flipped bit" else 6
    assert {faults.damage_and_read(sweep_folder, kind, rng, faults.numbers_of_sweep) for _ in range(count)} <= GOOD


@pytest.mark.parametrize("kind", faults.DAMAGES)
def test_damage_of_results_is_noticed(results_folder, kind):
    rng = random.Random(kind)
    count = 40 if kind == "flipped bit" else 8
    found = {faults.damage_and_read(results_folder, kind, rng, faults.numbers_of_results) for _ in range(count)}
    assert found <= GOOD | {"noticed by gyrostat verify"}


def test_the_tool_notices_a_store_that_notices_nothing(sweep_folder):
    rng = random.Random(0)
    found = [
        faults.damage_and_read(sweep_folder, "flipped bit", rng, lambda f: (f / "sweep.json").read_bytes())
        for _ in range(200)
    ]
    assert any(outcome.startswith("silently wrong") or outcome == "noticed by gyrostat verify" for outcome in found)


def test_a_resume_computes_again_what_is_lost_and_says_so(whole, sweep_folder, capsys):
    from rich.console import Console

    store = sweep_folder / "store.zarr"
    (store / "signal/c/1/0/0").unlink()  # of a cell whose runs all diverged: the fill value would look like them
    faults.flip(store / "spurious_path/c/0/1/0/0", 40)
    faults.flip(store / "steps/zarr.json", 900)
    faults.flip(sweep_folder / "sweep.json", 3000)
    shutil.rmtree(store / "order")
    refuses(lambda: load_sweep(sweep_folder), "does not match its checksum", "--fresh")
    summary = run_sweep(TABLE, out=sweep_folder, jobs=0, console=Console(width=300))
    assert (summary.kept, summary.computed) == (2, 2)
    said = capsys.readouterr().out
    assert "Missing or damaged" in said and "data of 2 cells, computed again" in said and "sweep.json" in said
    assert faults.content(store) == faults.content(whole / "store.zarr")
    assert load_sweep(sweep_folder).identical(load_sweep(whole))


def test_lost_marks_are_made_again_from_the_data(whole, sweep_folder):
    shutil.rmtree(sweep_folder / "store.zarr/done/c")
    summary = run_sweep(TABLE, out=sweep_folder, jobs=0)
    assert (summary.kept, summary.computed) == (4, 0)
    assert faults.content(sweep_folder / "store.zarr") == faults.content(whole / "store.zarr")


def test_verify(sweep_folder, results_folder, tmp_path, monkeypatch, capsys):
    assert call(monkeypatch, capsys, "verify", sweep_folder)[:2] == (
        0,
        "4 of 4 cells are done, and all of their data are there and undamaged.\n",
    )
    assert call(monkeypatch, capsys, "verify", results_folder)[0] == 0
    (sweep_folder / "store.zarr/signal/c/0/0/0").unlink()
    (results_folder / "results.zarr/paper/fig1/never/c/0").unlink()
    for folder, file in ((sweep_folder, "signal/c/0/0/0"), (results_folder, "never/c/0")):
        status, said, _ = call(monkeypatch, capsys, "verify", folder)
        assert status == 1 and file in said and "missing" in said
    assert call(monkeypatch, capsys, "verify", tmp_path)[0] == 2


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_store_of_an_older_version_is_read_with_a_word(sweep_folder, whole, monkeypatch, capsys):
    def without_seal(path, inside):
        content = json.loads(path.read_text())
        for part in (content, content.get(inside, {})):
            for key in (CHECKSUM, KINDS):
                part.pop(key, None)
        path.write_text(json.dumps(content))

    for path in (sweep_folder / "store.zarr").rglob("zarr.json"):
        without_seal(path, "attributes")
    without_seal(sweep_folder / "sweep.json", "")
    with pytest.warns(UserWarning, match="older than checksums"):
        assert np.array_equal(load_sweep(sweep_folder).signal, load_sweep(whole).signal, equal_nan=True)
    status, said, _ = call(monkeypatch, capsys, "verify", sweep_folder)
    assert status == 0 and "older than checksums" in said


def test_a_full_disk_keeps_the_cells_that_are_written(whole, tmp_path, monkeypatch):
    plain, written = SweepStore._write_cell, []

    def write(self, point, *given):
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(point)
        plain(self, point, *given)

    monkeypatch.setattr(SweepStore, "_write_cell", write)
    summary = run_sweep(TABLE, out=tmp_path, jobs=0)
    assert summary.status == 2 and summary.done == 3
    (line,) = summary.sentences(tmp_path)
    assert "(No space left on device): 3 of 4 cells are done and kept" in line and "free some space" in line
    assert json.loads((tmp_path / "sweep.json").read_text())["cells"]["left"] == 1
    monkeypatch.setattr(SweepStore, "_write_cell", plain)
    again = run_sweep(TABLE, out=tmp_path, jobs=0)
    assert (again.kept, again.computed, again.status) == (3, 1, 0)
    assert faults.content(tmp_path / "store.zarr") == faults.content(whole / "store.zarr")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "file", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "old"


def test_an_interrupt_is_noted_wherever_it_lands():
    """Also in a finaliser, where an exception would be printed and lost."""

    class Finalised:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with interrupts_noted():
        Finalised()
        with pytest.raises(KeyboardInterrupt):
            check_interrupt()
        check_interrupt()  # once is enough
    with pytest.raises(KeyboardInterrupt), interrupts_noted():
        os.kill(os.getpid(), signal.SIGINT)  # and nobody asks
    assert signal.getsignal(signal.SIGINT) is before
