"""Two results folders side by side: what changed and what differs."""

from __future__ import annotations

import io
import json

import pytest
import xarray as xr
from rich.console import Console

from checks import call
from gyrostat.errors import GyrostatError
from gyrostat.reproduce.compare import compare_results
from gyrostat.reproduce.runner import reproduce
from gyrostat.reproduce.store import ResultsStore


def run_fake(name, folder):
    reproduce([f"fake2024/{name}"], size="smoke", out=folder, jobs=1, console=Console(file=io.StringIO()))


def store_claim(folder, verdict, measured, **run):
    """A results folder with one claim of a paper that is not known here."""
    store = ResultsStore(folder)
    store.prepare()
    how = {"version": "1", "seconds": 1.0, "size": "smoke", "settings": {}, "machine": "m"}
    store.save("made2026/fig1", xr.Dataset({"value": ("seed", [0.0, 1.0])}), "f", {**how, **run})
    store.put_claims("made2026/fig1", [{"id": "made2026/fig1/level", "verdict": verdict, "measured": measured}])
    return folder


def test_the_same_run_twice_is_the_same(fake, tmp_path):
    for folder in ("a", "b"):
        run_fake("fig1", tmp_path / folder)
    compared = compare_results(tmp_path / "a", tmp_path / "b")
    assert compared.status == 0 and compared.claims == 2 and not compared.runs and not any(compared.only.values())
    assert compared.numbers and {number.difference for number in compared.numbers} == {0.0}


def test_the_command(fake, tmp_path, monkeypatch, capsys):
    run_fake("figX", tmp_path / "b")
    old, new = {"numpy": "1.0", "jax": "1"}, {"numpy": "2.0", "jax": "1"}
    measured = {"mean": 0.0, "fixed": 1.0, "unknown": None}
    a = store_claim(tmp_path / "a", "holds", measured, seed=0, versions=old)
    b = store_claim(tmp_path / "b", "fails", {**measured, "mean": 3.0}, seed=1, versions=new)
    status, said, _ = call(monkeypatch, capsys, "compare", a, b, "--json")
    found = json.loads(said)
    assert status == 1 and found["verdicts"] == [{"claim": "made2026/fig1/level", "first": "holds", "second": "fails"}]
    assert found["runs"] == {"made2026/fig1": {"seed": [0, 1], "versions.numpy": ["1.0", "2.0"]}}
    assert found["only"]["experiments of the second"] == ["fake2024/figX"]
    differences = {number["name"]: number["difference"] for number in found["numbers"]}
    assert differences == {"mean": 3.0, "fixed": 0.0, "unknown": None}
    status, said, _ = call(monkeypatch, capsys, "compare", a, b)
    assert status == 1 and "Verdicts that changed" in said and "versions.numpy" in said
    assert "Only experiments of the second: fake2024/figX" in said
    assert "1 with another verdict; 1 of 3 numbers differ." in said
    assert call(monkeypatch, capsys, "compare", a, a)[0] == 0
    assert "holds no claims.json" in call(monkeypatch, capsys, "compare", a, tmp_path / "nowhere")[2]
    with pytest.raises(GyrostatError, match="holds no claims"):
        compare_results(tmp_path, a)
