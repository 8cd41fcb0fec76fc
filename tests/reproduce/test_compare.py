"""Two results folders side by side: what changed, what differs, and whether that is beyond chance."""

from __future__ import annotations

import io
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from rich.console import Console

from checks import call
from gyrostat.errors import GyrostatError
from gyrostat.experiments import Claim, Experiment, Paper, last, registry, within
from gyrostat.figures.declarations import Figure
from gyrostat.reproduce.claims import judge
from gyrostat.reproduce.compare import compare_results, dealt, permutation_test, swapped
from gyrostat.reproduce.runner import reproduce
from gyrostat.reproduce.store import ResultsStore

TOOLS = Path(__file__).parents[1] / "tools"


@pytest.fixture
def fake(monkeypatch):
    """The made-up paper of the tests of the runner."""
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.setitem(registry.PAPERS, "fake2024", "fake2024:PAPER")


STUDY = Experiment(
    name="fig1",
    title="t",
    source="s",
    summary="",
    sizes={"smoke": {}, "standard": {}, "full": {}},
    compute=lambda **_: xr.Dataset(),
    draw=lambda ds: Figure(title="", panels=[], note=""),
    claims=[
        Claim(
            slug="level",
            statement="",
            criterion="",
            measure=lambda ds: within(-1, 1, mean=last(ds.value).mean(), spread=last(ds.value).std(), fixed=ds.fixed),
        )
    ],
)
PAPER = Paper(name="made2026", title="Made up", experiments=[STUDY])


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setitem(registry.PAPERS, "made2026", f"{__name__}:PAPER")
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def store_values(folder, values, *, seed=0, fixed=1.0, **run):
    """A results folder with one experiment whose last value in every run is given."""
    values = np.asarray(values, dtype=float)
    ds = xr.Dataset(
        {"value": (("seed", "step"), np.stack([0 * values, values], 1)), "fixed": fixed},
        {"seed": np.arange(len(values))},
    )
    store = ResultsStore(folder)
    store.prepare()
    how = {"version": "1", "seconds": 1.0, "seed": seed, "derived_seed": seed, "size": "smoke", "settings": {}}
    store.save("made2026/fig1", ds, "f", {**how, "machine": "m", "time": "2026-01-01T00:00:00+00:00", **run})
    store.put_claims("made2026/fig1", judge("made2026/fig1", STUDY, ds, 1.0))
    return folder


def numbers(compared):
    return {number.name: number for number in compared.numbers}


def test_the_same_run_twice_is_the_same(fake, tmp_path):
    for folder in ("a", "b"):
        reproduce(["fake2024/fig1"], size="smoke", out=tmp_path / folder, jobs=1, console=Console(file=io.StringIO()))
    compared = compare_results(tmp_path / "a", tmp_path / "b")
    assert compared.status == 0 and compared.claims == 2 and not compared.runs and not any(compared.only.values())
    assert {number.judgement for number in compared.numbers} == {"same"}


def test_a_real_change_is_beyond_chance_and_noise_is_not(made, tmp_path):
    rng = np.random.default_rng(0)
    base = rng.normal(size=40)
    a = store_values(tmp_path / "a", base)
    noisy = store_values(tmp_path / "b", base + 0.1 * rng.normal(size=40))
    moved = store_values(tmp_path / "c", base + 0.1 + 0.1 * rng.normal(size=40))
    assert numbers(compare_results(a, noisy))["mean"].judgement == "within chance"
    found = numbers(compare_results(a, moved))
    assert found["mean"].judgement == "beyond chance" and found["mean"].test == "paired by seed"
    assert found["mean"].difference == pytest.approx(0.1, abs=0.05) and found["fixed"].judgement == "same"
    # The same shift without the pairing drowns in the differences between runs.
    other = store_values(tmp_path / "d", rng.normal(size=40) + 0.1, seed=1)
    unpaired = numbers(compare_results(a, other))["mean"]
    assert unpaired.judgement == "within chance" and unpaired.test == "runs pooled"


def test_p_values_agree_with_scipy(made, tmp_path):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=30), rng.normal(size=30) + 0.3
    mine = numbers(compare_results(store_values(tmp_path / "a", x), store_values(tmp_path / "b", y)))["mean"].p
    theirs = scipy.stats.permutation_test(
        (x, y), lambda a, b: np.mean(b - a), permutation_type="samples", n_resamples=20_000
    )
    pooled = numbers(compare_results(tmp_path / "a", store_values(tmp_path / "c", y, seed=1)))["mean"].p
    welch = scipy.stats.ttest_ind(x, y).pvalue
    # Besag and Clifford stop at 20 hits: a relative standard error of about 1/sqrt(20).
    assert mine == pytest.approx(theirs.pvalue, rel=0.7) and pooled == pytest.approx(welch, rel=0.7)


def test_chance_is_kept_at_its_level(made):
    """2000 tests without a difference: at level .05 between 3 % and 7 % are below it (four standard errors)."""
    rng = np.random.default_rng(2)
    below = 0
    for _ in range(2000):
        d = rng.normal(size=12)
        (p,) = permutation_test(lambda _, d=d: [float(np.mean(d * rng.choice([-1, 1], 12)))], [float(d.mean())], 199)
        below += p <= 0.05
    assert 0.03 < below / 2000 < 0.07


def test_dealing_keeps_every_run_whole():
    rng = np.random.default_rng(3)
    one, two = (
        xr.Dataset({"x": ("seed", v), "y": ("seed", 10 * v), "k": 1.0}, {"seed": np.arange(4)})
        for v in (np.arange(4.0), np.arange(4.0) + 100)
    )
    for deal in (swapped, dealt):
        a, b = deal(one, two, rng)
        assert sorted([*a.x.values, *b.x.values]) == sorted([*one.x.values, *two.x.values])
        assert (a.y == 10 * a.x).all() and a.sizes == one.sizes and a.k == 1.0
    a, b = swapped(one, two, rng)
    assert (np.abs(a.x - b.x) == 100).all()
    every = {tuple(swapped(one, two, rng)[0].x.values) for _ in range(400)}
    assert every == set(itertools.product(*zip(one.x.values, two.x.values, strict=True)))


def test_what_cannot_be_tested_says_why(made, tmp_path):
    a = store_values(tmp_path / "a", np.arange(40.0))
    fixed = compare_results(a, store_values(tmp_path / "b", np.arange(40.0), fixed=2.0))
    assert numbers(fixed)["fixed"].test == "does not depend on the runs"
    few = compare_results(store_values(tmp_path / "c", [1, 2, 3]), store_values(tmp_path / "d", [2, 3, 5]))
    assert numbers(few)["mean"].test == "too few runs" and numbers(few)["mean"].judgement == "not tested"
    odd = store_values(tmp_path / "e", np.arange(40.0) + 1)
    records = ResultsStore(odd).claims()
    records[0]["measured"]["mean"] = 7.0
    ResultsStore(odd).put_claims("made2026/fig1", records)
    assert numbers(compare_results(a, odd))["mean"].test == "this version measures it differently"
    more = store_values(tmp_path / "f", np.arange(50.0))
    assert numbers(compare_results(a, more))["mean"].test == "runs pooled"


def test_unknown_papers_are_compared_but_not_tested(made, tmp_path, monkeypatch):
    a, b = store_values(tmp_path / "a", np.arange(40.0)), store_values(tmp_path / "b", np.arange(40.0) + 1)
    monkeypatch.delitem(registry.PAPERS, "made2026")
    found = numbers(compare_results(a, b))["mean"]
    assert found.difference == 1.0 and found.test == "its paper is not known here: name it with --paper"


def test_the_command(made, fake, tmp_path, monkeypatch, capsys):
    old, new = {"numpy": "1.0", "jax": "1"}, {"numpy": "2.0", "jax": "1"}
    a = store_values(tmp_path / "a", np.zeros(20), versions=old, settings={"seeds": 20})
    b = store_values(tmp_path / "b", np.full(20, 3.0), versions=new, settings={"seeds": 20}, seed=1)
    reproduce(["fake2024/figX"], size="smoke", out=b, jobs=1, console=Console(file=io.StringIO()))
    status, said, _ = call(monkeypatch, capsys, "compare", a, b, "--json")
    found = json.loads(said)
    assert status == 1 and found["verdicts"] == [{"claim": "made2026/fig1/level", "first": "holds", "second": "fails"}]
    assert found["runs"] == {"made2026/fig1": {"seed": [0, 1], "versions.numpy": ["1.0", "2.0"]}}
    assert found["only"]["experiments of the second"] == ["fake2024/figX"]
    mean = next(number for number in found["numbers"] if number["name"] == "mean")
    assert mean["difference"] == 3.0 and mean["judgement"] == "beyond chance" and mean["p"] < 0.01
    status, said, _ = call(monkeypatch, capsys, "compare", a, b)
    assert status == 1 and "Verdicts that changed" in said and "versions.numpy" in said
    assert "Only experiments of the second: fake2024/figX" in said and "1 with another verdict" in said
    assert call(monkeypatch, capsys, "compare", a, a)[0] == 0
    assert "holds no claims.json" in call(monkeypatch, capsys, "compare", a, tmp_path / "nowhere")[2]
    with pytest.raises(GyrostatError, match="holds no claims"):
        compare_results(tmp_path, a)
