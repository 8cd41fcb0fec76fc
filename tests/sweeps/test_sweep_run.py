"""Running sweeps: one trace per shape, resuming, extending, failing cells, the lock, the table of cells."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import gyrostat as gs
from checks import refuses
from gyrostat.engine.one_run import OneRun
from gyrostat.experiments.statistics import wilson
from gyrostat.parallel.checked_files import sealed
from gyrostat.parallel.progress import ProgressDisplay
from gyrostat.sweeps import executors, plan, read_spec, run_sweep, sweep
from gyrostat.sweeps.run import Session
from gyrostat.sweeps.store import SweepStore, lock_folder, open_store, with_times
from gyrostat.sweeps.tables import cell_table

TABLE = {
    "num_steps": 40,
    "seeds": 3,
    "algorithm": {"kind": "HeteroSGD", "step_size": 0.05, "init_scale": 0.05},
    "environments": {"kind": "RandomEnvironments", "dimension": 3, "law": {"kind": "TwoPoint"}},
    "measurements": {"kind": "Identity"},
    "axes": {"spread": [2.0, 8.0, 14.0], "step_size": [0.05, 0.1]},
    "record": {"final": ["signal"], "paths": ["spurious"], "points": 3},
    "success": {"spurious": {"below": 0.1}},
}


def with_(**changes):
    return {**TABLE, **changes}


def files(folder: Path) -> dict[str, bytes]:
    store = folder / "store.zarr"
    return {str(p.relative_to(store)): p.read_bytes() for p in sorted(store.rglob("*")) if p.is_file()}


def test_nothing_is_compiled_per_cell(tmp_path, monkeypatch):
    traced = []
    plain = OneRun.step
    monkeypatch.setattr(OneRun, "step", lambda self, *a: traced.append(self.problem.shape) or plain(self, *a))
    monkeypatch.setattr(plan, "cells_per_chunk", lambda *a: 2)  # many chunks, and calls, for one program
    axes = {
        "spread": {"linear": [1, 8], "points": 4},
        "step_size": [0.05, 0.1],
        "num_steps": [30, 40],
        "dimension": [6, 7],
    }
    fresh = {"kind": "FreshGaussian", "num_samples": 100}
    sweep(with_(axes=axes, measurements=fresh), out=tmp_path, jobs=0)
    assert sorted(traced) == [(6, 6), (7, 7)]  # one trace for each dimension, none for 32 cells in 16 chunks


def stopping(after: int):
    """An executor that is interrupted after this many chunks."""

    class Stopping:
        jobs = 1

        def run(self, tasks, listener):
            for task in tasks[:after]:
                listener.finished(task, *task.compute())
            raise KeyboardInterrupt

    return Stopping()


def session(table, out, executor):
    store, spec = open_store(read_spec(table), out, extend=False, fresh=False)
    return Session(spec, store, ProgressDisplay(Console(quiet=True), "cells")).run(executor, refine=False)


@pytest.mark.parametrize("quantiles", [[], ["signal"]])
def test_interrupted_and_resumed_is_uninterrupted_byte_for_byte(tmp_path, monkeypatch, quantiles):
    table = with_(record={**TABLE["record"], "quantiles": quantiles})
    whole = sweep(table, out=tmp_path / "whole", jobs=0)
    monkeypatch.setattr(plan, "cells_per_chunk", lambda *a: 1)
    summary = session(table, tmp_path / "parts", stopping(2))
    assert summary.status == 130 and summary.done == 2
    stated = json.loads((tmp_path / "parts" / "sweep.json").read_text())
    assert stated["cells"] == {"grid": 6, "asked": 6, "done": 2, "failed": 0, "left": 4}
    leftover = tmp_path / "parts" / "store.zarr" / "signal" / "x.partial"
    leftover.write_text("a write that was killed")
    summary = run_sweep(table, out=tmp_path / "parts", jobs=0)
    assert (summary.kept, summary.computed, summary.status) == (2, 4, 0)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")
    assert SweepStore(tmp_path / "parts").load().identical(whole)


def test_the_mark_comes_last(tmp_path, monkeypatch):
    store, spec = open_store(read_spec(TABLE), tmp_path, extend=False, fresh=False)
    chunk = plan.plan_chunks(spec, store.unfinished([(0, 0)], 3), 1)[0][0]
    data, _ = chunk.compute()
    written = []
    plain = type(store.root["done"]).__setitem__

    def spy(array, where, value):
        written.append(array.basename)
        plain(array, where, value)

    monkeypatch.setattr(type(store.root["done"]), "__setitem__", spy)
    store.write_cells(chunk.points, 0, data, 3)
    assert written.index("done") == len(written) - 1 and {"signal", "spurious_path", "succeeded"} < set(written)


def test_what_is_stored_is_what_an_ordinary_grid_computes(tmp_path):
    axes = {"spread": [2.0, 8.0], "step_size": [0.05, 0.1]}
    kept = {"final": ["signal"], "paths": ["spurious"], "quantiles": ["signal"], "points": 3}
    found = sweep(with_(axes=axes, record=kept), out=tmp_path, jobs=0)

    def build(spread, step_size):
        environments = gs.RandomEnvironments(3, law=gs.TwoPoint(spread=spread))
        return gs.HeteroSGD(step_size, init_scale=0.05), gs.Problem(environments, gs.Identity())

    expected = gs.run_grid(build, axes, num_steps=40, seeds=3, record=("signal", "spurious"), record_at=3)
    assert np.allclose(found.signal, expected.signal.isel(step=-1), rtol=1e-9)
    assert np.allclose(found.spurious_path, expected.spurious, rtol=1e-9)
    assert np.allclose(found.signal_quantiles.sel(quantile=0.5), expected.signal.median("seed"), rtol=1e-9)
    share = (expected.spurious.isel(step=-1) < 0.1).mean("seed")
    assert np.array_equal(found.success, share)
    low, high = wilson(share.values * 3, 3)
    assert np.allclose(found.success_low, low) and np.allclose(found.success_high, high)
    assert (found.steps == 40).all() and np.isinf(found.diverged).all()


def test_runs_that_diverge_are_failures_and_are_counted(tmp_path):
    with pytest.warns(gs.errors.DivergenceWarning, match=r"3 of 6 runs \(50 %\) diverged") as caught:
        found = sweep(with_(axes={"step_size": [0.05, 5.0]}), out=tmp_path, jobs=0)
    assert [w.filename for w in caught if w.category is gs.errors.DivergenceWarning] == [__file__]
    assert next(iter(found.attrs)) == "diverged"
    assert found.success.values.tolist() == [0.0, 0.0]
    assert np.isfinite(found.diverged.values[1]).all() and np.isinf(found.diverged.values[0]).all()
    summary = gs.summary(found)
    assert summary.diverged_share.values.tolist() == [0.0, 1.0] and summary.runs.values.tolist() == [3, 3]
    end = summary.isel(record=-1)
    for name in ("signal", "spurious_path"):
        assert np.isinf(end[name].sel(step_size=5.0)).all() and np.isfinite(end[name].sel(step_size=0.05)).all()


def test_the_store_keeps_whole_numbers_and_what_is_not_computed_is_nan(tmp_path):
    sweep(with_(axes={"step_size": [0.05]}), out=tmp_path, jobs=0)
    raw = xr.open_zarr(tmp_path / "store.zarr", consolidated=False)
    assert raw.diverged.dtype == np.int32 and (raw.diverged == -1).all()  # as in stores that were written before
    missing = with_times(xr.Dataset({"diverged": (("cell", "seed"), np.array([[-2, -1, 7]], dtype=np.int32))}))
    np.testing.assert_array_equal(missing.diverged, [[np.nan, np.inf, 7.0]])


def test_every_variable_of_a_sweep_says_what_it_is(tmp_path):
    kept = {"final": ["signal"], "paths": ["spurious"], "quantiles": ["signal"], "points": 3}
    found = sweep(with_(axes={"step_size": [0.05]}, record=kept, tolerance=1e-3), out=tmp_path, jobs=0)
    for name in found.variables:
        about = found[name].attrs
        assert about["long_name"] and about["units"] and about["one_means"], name


def test_a_run_that_never_reaches_the_tolerance_is_not_early(tmp_path):
    table = with_(axes={"step_size": [0.05]}, tolerance=1e-12, success={"reached": {"below": 1000}})
    found = sweep(table, out=tmp_path, jobs=0)
    assert np.isinf(found.reached).all() and found.success.values.tolist() == [0.0]


def test_a_changed_spec_is_refused_with_the_difference(tmp_path):
    sweep(with_(axes={"spread": [2.0, 8.0]}), out=tmp_path, jobs=0)
    before = files(tmp_path)
    changed = with_(axes={"spread": [2.0, 8.0]}, num_steps=41, seed=1)
    refuses(lambda: sweep(changed, out=tmp_path, jobs=0), "num_steps: 40 -> 41", "seed: 0 -> 1", "--fresh")
    refuses(lambda: sweep(with_(axes={"spread": [2.0, 9.0]}), out=tmp_path, jobs=0), "axes.spread", "--extend")
    refuses(lambda: sweep(with_(axes={"step_size": [0.1]}), out=tmp_path, jobs=0, extend=True), "axes.spread", "absent")
    assert files(tmp_path) == before
    fresh = sweep(changed, out=tmp_path, jobs=0, fresh=True)
    assert (fresh.steps == 41).all()


def test_a_second_sweep_in_a_folder_is_refused(tmp_path):
    with lock_folder(tmp_path):
        refuses(lambda: sweep(TABLE, out=tmp_path, jobs=0), "another sweep is writing")
    (tmp_path / "file").write_text("")
    refuses(lambda: sweep(TABLE, out=tmp_path / "file", jobs=0), "cannot write results")


def test_numbers_of_another_code_are_not_continued(tmp_path):
    sweep(TABLE, out=tmp_path, jobs=0)
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(sealed(json.loads(path.read_text().replace('"jax": "', '"jax": "0.')))))
    refuses(lambda: sweep(TABLE, out=tmp_path, jobs=0), "jax: '0.")


def test_extending_keeps_what_is_there_and_adds_the_rest(tmp_path, monkeypatch):
    small = with_(axes={"spread": [8.0, 2.0], "step_size": [0.1]}, seeds=2)
    large = with_(axes={"spread": [2.0, 5.0, 8.0], "step_size": [0.05, 0.1]}, seeds=3)
    sweep(small, out=tmp_path / "grown", jobs=0)
    made = []
    plain = Session.finished

    def finished(self, task, result, seconds):
        made.extend((*self.spec.axis_values(point).values(), task.first_seed) for point in task.points)
        plain(self, task, result, seconds)

    monkeypatch.setattr(Session, "finished", finished)
    grown = sweep(large, out=tmp_path / "grown", jobs=0, extend=True)
    assert sorted(made) == [  # of cells that were there only the third seed
        (2.0, 0.05, 0),
        (2.0, 0.1, 2),
        (5.0, 0.05, 0),
        (5.0, 0.1, 0),
        (8.0, 0.05, 0),
        (8.0, 0.1, 2),
    ]
    whole = sweep(large, out=tmp_path / "whole", jobs=0)
    assert grown.drop_attrs().identical(whole.drop_attrs())
    again = run_sweep(large, out=tmp_path / "grown", jobs=0)
    assert (again.kept, again.computed) == (6, 0)  # the order of the values makes no difference


def test_poisoned_cells_are_reported_and_do_not_stop_the_rest(tmp_path, monkeypatch):
    """One cell that cannot be built and one that fails whenever it is computed, in chunks with others."""
    tried = []
    plain = plan.Chunk.compute

    def compute(self, progress=None):
        tried.append(self.points)
        if (0, 2) in self.points:
            raise FloatingPointError("poison")
        return plain(self, progress)

    monkeypatch.setattr(plan.Chunk, "compute", compute)
    monkeypatch.setattr(plan, "cells_per_chunk", lambda *a: 4)
    table = with_(axes={"spread": [2.0, 8.0], "overlap": [0.0, 0.1, 0.2, 0.3, 1.5]})
    summary = run_sweep(table, out=tmp_path, jobs=0)
    assert set(summary.failures) == {(0, 2), (0, 4), (1, 4)} and summary.status == 1
    assert summary.failures[0, 2] == "FloatingPointError: poison" and "overlap" in summary.failures[1, 4]
    assert tried.count(((0, 2),)) == 3
    stated = json.loads((tmp_path / "sweep.json").read_text())
    assert stated["cells"] == {"grid": 10, "asked": 10, "done": 7, "failed": 3, "left": 0}
    assert {"setting": {"spread": 2.0, "overlap": 0.2}, "error": "FloatingPointError: poison"} in stated["failures"]
    assert "Traceback" in (tmp_path / "errors" / "cell-0-2.txt").read_text()
    found = SweepStore(tmp_path).load()
    assert np.isnan(found.signal.sel(spread=2.0, overlap=0.2)).all() and int((found.done > 0).sum()) == 7
    monkeypatch.setattr(plan.Chunk, "compute", plain)
    again = run_sweep(table, out=tmp_path, jobs=0)  # without the cause, only the cells that failed are tried again
    assert (again.kept, again.computed, len(again.failures)) == (7, 1, 2)


def test_python_hears_of_cells_that_failed(tmp_path):
    """A warning when some cells fail, the reason when all do."""
    table = with_(axes={"overlap": [0.1, 2.0]})
    with pytest.warns(UserWarning, match=r"1 of 2 cells failed, the first one with: .*overlap"):
        found = sweep(table, out=tmp_path / "some", jobs=0)
    assert np.isnan(found.success.values).tolist() == [False, True]
    with pytest.raises(gs.GyrostatError, match=r"no cell of this sweep can be built: overlap"):
        sweep({**table, "axes": {"overlap": [2.0, 3.0]}}, out=tmp_path / "all", jobs=0)


def test_a_scheduler_that_is_not_there(tmp_path):
    pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executors, "CONNECT_TIMEOUT", "0.2s")
        refuses(lambda: sweep(TABLE, out=tmp_path, scheduler="tcp://127.0.0.1:9"), "tcp://127.0.0.1:9", "running")
    refuses(lambda: sweep(TABLE, out=tmp_path, scheduler="tls://127.0.0.1:9"), "certificates", "--tls-cert")
    absent = {"ca_file": "absent.pem", "cert": "absent.pem", "key": "absent.pem"}
    refuses(lambda: sweep(TABLE, out=tmp_path, scheduler="tls://127.0.0.1:9", tls=absent), "FileNotFoundError")


def test_the_store_is_one_of_xarray_and_the_table_has_a_row_for_each_cell(tmp_path):
    found = sweep(with_(axes={"order": ["iid", "cyclic"], "spread": [2.0, 14.0]}), out=tmp_path, jobs=0)
    stored = xr.open_zarr(tmp_path / "store.zarr", consolidated=False)
    assert np.array_equal(stored.spurious_path, found.spurious_path) and stored.order.values.tolist() == [
        "iid",
        "cyclic",
    ]
    table = cell_table(found)
    assert len(table) == 4 and table.success.tolist() == found.success.values.ravel().tolist()
    assert np.allclose(table.signal_median, np.median(found.signal.values, axis=-1).ravel())


@pytest.mark.parametrize(
    ("success", "is_noted"),
    [
        ({"spurious": {"below": 0.1}}, True),
        ({"spurious": {"below": 0.1}, "diverged": {"above": 1e6}}, True),
        ({"spurious": {"below": 0.1}, "signal": {"above": 0.5}}, False),
        ({"error": {"below": 0.1}}, False),
        ({}, False),
    ],
)
def test_a_success_that_also_counts_runs_which_learnt_nothing_says_so(tmp_path, success, is_noted):
    table = with_(axes={"step_size": [0.05]}, num_steps=5, success=success)
    words = "success.signal = {above = 0.5}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sweep(table, out=tmp_path, jobs=0)
    assert [w.filename for w in caught if words in str(w.message)] == [__file__] * is_noted
    said = " ".join(run_sweep(table, out=tmp_path, jobs=0).sentences(tmp_path))
    assert (words in said) == (words in json.loads((tmp_path / "sweep.json").read_text()).get("note", "")) == is_noted
