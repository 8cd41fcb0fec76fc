"""Damaged, deleted and foreign files, and full disks: noticed when read, computed again by a resume, never other numbers.

``make faults`` makes many more of them, in processes that are killed.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import faults
from checks import call, refuses
from gyrostat import load_results
from gyrostat.parallel.checked_files import CHECKSUM, KINDS
from gyrostat.parallel.interrupts import check_interrupt, interrupts_noted
from gyrostat.parallel.whole_files import write_whole
from gyrostat.reproduce.runner import reproduce
from gyrostat.reproduce.store import ResultsStore
from gyrostat.sweeps import run_sweep
from gyrostat.sweeps.store import SweepStore, load_sweep

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

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
        run = {"seconds": 0.1, "claims": ["slope"], "size": "smoke", "seed": 0, "time": "2026-01-01", "settings": {}}
        store.save(f"paper/{name}", xr.Dataset(data, attrs={"title": "Losses"}), "a1b2", run)
        store.put_claims(
            f"paper/{name}", [{"id": f"paper/{name}/slope", "measured": {"slope": 0.5}, "verdict": "holds"}]
        )
    return store.folder


def outcomes(folder, kind, read, count):
    """What damage of one kind leads to, at random places that are the same in every run."""
    rng, good = random.Random(kind), read(folder)
    return {faults.damage_and_read(folder, kind, rng, read, good) for _ in range(count)}


@pytest.mark.parametrize("kind", faults.DAMAGES)
def test_damage_of_a_sweep_is_noticed(sweep_folder, kind):
    count = 25 if kind == "flipped bit" else 6
    assert outcomes(sweep_folder, kind, faults.numbers_of_sweep, count) <= GOOD


@pytest.mark.parametrize("kind", faults.DAMAGES)
def test_damage_of_results_is_noticed(results_folder, kind):
    count = 40 if kind == "flipped bit" else 8
    assert outcomes(results_folder, kind, faults.numbers_of_results, count) <= GOOD


def test_the_tool_notices_a_store_that_notices_nothing(sweep_folder):
    found = outcomes(sweep_folder, "flipped bit", lambda folder: (folder / "sweep.json").read_bytes(), 200)
    assert any(outcome.startswith("silently wrong") for outcome in found)


def test_a_resume_computes_again_what_is_lost_and_says_so(whole, sweep_folder, capsys):
    store = sweep_folder / "store.zarr"
    (store / "signal/c/1/0/0").unlink()  # of a cell whose runs all diverged: the fill value would look like them
    faults.flip(store / "spurious_path/c/0/1/0/0", 40)
    faults.flip(store / "steps/zarr.json", 900)
    faults.flip(sweep_folder / "sweep.json", 3000)
    shutil.rmtree(store / "order")
    refuses(lambda: load_sweep(sweep_folder), "does not match its checksum", "run the same sweep again")
    summary = run_sweep(TABLE, out=sweep_folder, jobs=0, console=Console(width=300))
    assert (summary.kept, summary.computed) == (2, 2)
    said = capsys.readouterr().out
    assert "Missing or damaged" in said and "data of 2 cells, computed again" in said and "sweep.json" in said
    assert faults.content(store) == faults.content(whole / "store.zarr")
    assert load_sweep(sweep_folder).identical(load_sweep(whole))


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: faults.flip(path, 40)], ids=["deleted", "damaged"])
def test_cells_whose_marks_are_lost_are_computed_again(whole, sweep_folder, lose):
    lose(sweep_folder / "store.zarr/done/c/0/0")
    summary = run_sweep(TABLE, out=sweep_folder, jobs=0)
    assert (summary.kept, summary.computed) == (0, 4)
    assert faults.content(sweep_folder / "store.zarr") == faults.content(whole / "store.zarr")


def test_a_lost_chunk_is_noticed_by_whatever_reads_it(sweep_folder, fake, tmp_path, monkeypatch, capsys):
    results, again = tmp_path / "results", Console(width=300)
    make = functools.partial(reproduce, ["fake2024/fig1"], size="smoke", out=results, jobs=1)
    make(console=Console(quiet=True))
    (sweep_folder / "store.zarr/signal/c/0/0/0").unlink()
    lost = results / "results.zarr/fake2024/fig1/walk/c/0/0"
    lost.unlink()
    status, _, error = call(monkeypatch, capsys, "plot", sweep_folder)
    assert status == 2 and "signal/c/0/0/0' of cell (0, 0) is missing" in error and error.count("\n") == 1
    refuses(
        lambda: load_results(results)["fake2024/fig1"], f"{str(lost)!r} is missing", "gyrostat reproduce fake2024/fig1"
    )
    assert call(monkeypatch, capsys, "report", results)[0] == 0
    assert "The stored data are damaged" in (results / "pages/fake2024.html").read_text()
    assert make(console=again).computed == ["fake2024/fig1"] and lost.is_file()
    assert f"fake2024/fig1 is computed again: {str(lost)!r} is missing" in capsys.readouterr().out


LOSSES = {
    "results.zarr/paper/fig1/zarr.json": "zarr.json' is missing, or its experiment is not finished",
    "results.zarr/paper/fig1": "zarr.json' is missing, or its experiment is not finished",
    "claims.json": "claims.json' is missing",
}


@pytest.mark.parametrize("lost", LOSSES)
def test_commands_that_read_results_say_what_is_lost(results_folder, tmp_path, monkeypatch, capsys, lost):
    whole = shutil.copytree(results_folder, tmp_path / "whole")
    path = results_folder / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    for command in (
        ("claims", results_folder),
        ("report", results_folder),
        ("compare", whole, results_folder),
    ):
        status, said, error = call(monkeypatch, capsys, *command)
        assert status == 2 and LOSSES[lost] in error and "gyrostat reproduce paper/fig1" in error, (command, said)
        assert error.count("\n") == 1
    if lost == "claims.json":
        refuses(lambda: load_results(results_folder).claims(), LOSSES[lost], "gyrostat reproduce paper/fig1")
        assert list(load_results(results_folder)) == ["paper/fig1", "paper/fig2"]
    else:
        refuses(lambda: load_results(results_folder), LOSSES[lost], "gyrostat reproduce paper/fig1")


def test_a_list_of_claims_that_is_cut_or_not_ours_is_refused(results_folder, monkeypatch, capsys):
    path = results_folder / "claims.json"
    for text, why in (
        (path.read_text()[:-9], "is not a list of claims"),
        ("[]", "lacks the claim paper/fig1/slope"),
        ("{}", "is not a list of claims"),
    ):
        path.write_text(text)
        status, _, error = call(monkeypatch, capsys, "claims", results_folder)
        assert status == 2 and why in error and "gyrostat reproduce" in error
        refuses(lambda: load_results(results_folder).claims(), why)


@pytest.mark.parametrize("lost", ["sweep.json", "store.zarr", "store.zarr/zarr.json", "store.zarr/done/zarr.json"])
def test_commands_that_read_a_sweep_say_what_is_lost(sweep_folder, monkeypatch, capsys, lost):
    path = sweep_folder / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    status, _, error = call(monkeypatch, capsys, "plot", sweep_folder)
    assert status == 2 and "is missing" in error and "run the same sweep again" in error and error.count("\n") == 1
    refuses(lambda: load_sweep(sweep_folder), "is missing", "run the same sweep again")


def test_a_store_without_a_description_belongs_to_its_own_spec_only(whole, sweep_folder):
    (sweep_folder / "sweep.json").unlink()
    refuses(lambda: run_sweep({**TABLE, "num_steps": 80}, out=sweep_folder, jobs=0), "is missing", "--fresh")
    assert run_sweep(TABLE, out=sweep_folder, jobs=0).kept == 4
    assert load_sweep(sweep_folder).identical(load_sweep(whole))


def test_stores_without_checksums_as_of_older_versions_are_refused(sweep_folder, results_folder):
    for path in (*sweep_folder.rglob("*.json"), *results_folder.rglob("*.json")):
        content = json.loads(path.read_text())
        records = content if isinstance(content, list) else [content, content.get("attributes", {})]
        for record in records:
            for key in (CHECKSUM, KINDS):
                record.pop(key, None)
        path.write_text(json.dumps(content))
    refuses(lambda: load_sweep(sweep_folder), "sweep.json' does not match its checksum", "run the same sweep again")
    refuses(lambda: run_sweep(TABLE, out=sweep_folder, jobs=0), "sweep.json' does not match", "--fresh")
    assert run_sweep(TABLE, out=sweep_folder, jobs=0, fresh=True).computed == 4
    store = ResultsStore(results_folder)
    refuses(lambda: store.load("paper/fig1"), "zarr.json' does not match its checksum", "run the same command")
    refuses(store.claims, "claims.json' does not match its checksum", "delete it")


def test_a_full_disk_keeps_the_chunks_that_are_written(whole, tmp_path, monkeypatch):
    plain, written = SweepStore._write_cell, []

    def write(self, point, *given):
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(point)
        plain(self, point, *given)

    monkeypatch.setattr(SweepStore, "_write_cell", write)
    summary = run_sweep(TABLE, out=tmp_path, jobs=0)
    assert summary.status == 2 and summary.done == 2  # a chunk holds two cells: the third is computed again
    (line,) = summary.sentences(tmp_path)
    assert "(No space left on device): 2 of 4 cells are done and kept" in line and "free some space" in line
    assert json.loads((tmp_path / "sweep.json").read_text())["cells"]["left"] == 2
    monkeypatch.setattr(SweepStore, "_write_cell", plain)
    again = run_sweep(TABLE, out=tmp_path, jobs=0)
    assert (again.kept, again.computed, again.status) == (2, 2, 0)
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
