"""`gs.load_results`: what was stored comes back, by name, lazily and without a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr

import gyrostat as gs
from gyrostat.reproduce.store import ResultsStore

RUN = {"size": "smoke", "seed": 3, "seconds": 1.5, "time": "2024-05-01T00:00:00+00:00", "version": "1"}


@pytest.fixture
def folder(tmp_path):
    store = ResultsStore(tmp_path)
    for number in (10, 2):
        data = {
            "loss": (("rule", "step"), np.arange(6.0).reshape(2, 3) + number, {"units": "seconds"}),
            "word": ("rule", ["one", "two"]),
        }
        dataset = xr.Dataset(data, coords={"rule": ["hetero", "pooled"]}, attrs={"seed": 3})
        store.save(f"paper/fig{number}", dataset, "mark", RUN)
    store.put_claims("paper/fig2", [{"id": "paper/fig2/falls", "verdict": "holds"}])
    return tmp_path


def test_a_dataset_comes_back_as_it_was_stored(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = gs.load_results(folder)["paper/fig2"]
        assert dataset.loss.sel(rule="pooled").values.tolist() == [5.0, 6.0, 7.0]
        assert dataset.word.values.tolist() == ["one", "two"] and dataset.attrs == {"seed": 3}
        xr.testing.assert_identical(dataset.load(), ResultsStore(folder).load("paper/fig2"))


def test_numbers_are_read_when_they_are_used(folder):
    dataset = gs.load_results(folder)["paper/fig2"]
    assert not dataset.variables["loss"]._in_memory
    chunks = folder / "results.zarr" / "paper" / "fig2" / "loss" / "c"
    part = next(path for path in chunks.rglob("0") if path.is_file())
    part.unlink()
    assert not (dataset.loss.values == np.arange(6.0).reshape(2, 3) + 2).any()


def test_the_mapping_names_what_is_finished(folder):
    (folder / "results.zarr" / "paper" / "fig3").mkdir()
    results = gs.load_results(str(folder))
    assert list(results) == ["paper/fig2", "paper/fig10"] and len(results) == 2
    assert "paper/fig2" in results and "paper/fig3" not in results and results.get("paper/none") is None
    assert "paper/fig10  smoke, seed 3, 1.5 s, 2024-05-01" in repr(results) and "2 finished experiments" in repr(
        results
    )
    assert "<pre>" in results._repr_html_()
    assert results.run("paper/fig2")["seed"] == 3
    assert [c["id"] for c in results.claims("paper/fig2")] == ["paper/fig2/falls"] and results.claims(
        "paper/fig10"
    ) == []


def test_unknown_names_are_one_sentence(folder):
    with pytest.raises(gs.GyrostatError, match=r"^unknown result 'paper/fig1': did you mean"):
        gs.load_results(folder)["paper/fig1"]
    with pytest.raises(KeyError):
        gs.load_results(folder)["../elsewhere"]


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(gs.GyrostatError, match=r"holds no results.zarr: give the folder"):
        gs.load_results(tmp_path)
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(gs.GyrostatError, match="it holds a sweep"):
        gs.load_results(tmp_path)
    with pytest.raises(gs.GyrostatError, match="is not a folder"):
        gs.load_results(tmp_path / "none")
