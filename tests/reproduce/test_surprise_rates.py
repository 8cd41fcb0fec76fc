"""Surprise rates with a made-up paper: counting, resuming, judging again."""

from __future__ import annotations

import io
import json
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binomtest

from gyrostat.errors import GyrostatError
from gyrostat.parallel.workers import _next_task
from gyrostat.reproduce import surprise_rates
from gyrostat.reproduce.surprise_rates import SurpriseRate, count_surprises, read_seeds
from gyrostat.reproduce.tasks import seed_of

NAMES = ["fake2024/fig1", "fake2024/fig10"]


def computed(log):
    return [line.split()[0] for line in log.read_text().splitlines()]


def count(out, seeds, names=NAMES, **options):
    console = Console(file=io.StringIO(), width=200)
    counted = count_surprises(names, seeds=seeds, size="smoke", out=out, jobs=1, console=console, **options)
    return counted, console.file.getvalue()


def spread(name, seed):
    """The number that the claim ``spread`` looks at, without the runner."""
    return np.random.default_rng(seed_of(seed, name)).normal(size=(3, 5)).cumsum(axis=1).std()


def test_surprises_are_counted_by_claim_and_seed(fake, tmp_path, monkeypatch):
    seeds = [*range(1, 8), 20]
    limit = np.median([spread("fake2024/fig1", seed) for seed in seeds])
    monkeypatch.setenv("FAKE_LIMIT", str(limit))
    counted, said = count(tmp_path / "out", seeds)
    at = {name: tuple(seed for seed in seeds if spread(name, seed) > limit) for name in NAMES}
    assert {rate.id: (rate.runs, rate.surprises, rate.at) for rate in counted.rates} == {
        "fake2024/fig1/spread": (8, 4, at["fake2024/fig1"]),
        "fake2024/fig1/still": (8, 0, ()),
        "fake2024/fig10/spread": (8, len(at["fake2024/fig10"]), at["fake2024/fig10"]),
    }
    assert counted.status == 1 and "fake2024/fig1/spread" in said and "fake2024/fig1/still" not in said
    section = json.loads((tmp_path / "out/surprises.json").read_text())["smoke"]
    assert section["seeds"] == seeds and section["command"].endswith("--size smoke --seeds 1:7,20")
    assert section["claims"][0]["share"] == 0.5
    page = (tmp_path / "out/surprises.md").read_text()
    assert "| `fake2024/fig1/spread` | holds | 8 | 4 | 50.0% | 21.5% to 78.5% |" in page
    assert "| `fake2024/fig1` | 1 | 8 | 32.4% |" in page
    assert computed(fake) == ["fig1"] * 8 + ["fig10"] * 8  # the seeds of an experiment follow each other


def test_only_what_is_missing_is_computed_and_criteria_are_judged_again(fake, tmp_path, monkeypatch):
    assert count(tmp_path, [1, 2])[0].status == 0
    monkeypatch.setenv("FAKE_LIMIT", "0")
    again, _ = count(tmp_path, [1, 2, 3])
    assert computed(fake) == ["fig1"] * 2 + ["fig10"] * 2 + ["fig1", "fig10"]
    assert [(rate.runs, rate.surprises) for rate in again.rates] == [(3, 3), (3, 0), (3, 3)]
    count(tmp_path, [1], ["fake2024/fig10"], fresh=True)
    assert computed(fake)[6:] == ["fig10"]


def test_an_interrupted_count_resumes(fake, tmp_path, monkeypatch):
    finished = surprise_rates.SeedSessions.finished

    def interrupt_at_seed_two(self, task, *rest):
        if task.seed == 2:
            raise KeyboardInterrupt
        finished(self, task, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(surprise_rates.SeedSessions, "finished", interrupt_at_seed_two)
        counted, said = count(tmp_path, [1, 2, 3])
    assert counted.status == 130 and "1 of 6 runs are finished" in said and "again to resume" in said
    assert not (tmp_path / "surprises.json").exists()
    assert count(tmp_path, [1, 2, 3])[0].status == 0 and len(computed(fake)) == 7


def test_an_experiment_that_fails_is_no_silent_success(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_FAIL", "fig1")
    counted, said = count(tmp_path, [1, 2])
    assert counted.status == 1 and "fake2024/fig1 (seed 2) failed: RuntimeError" in said
    assert [rate.id for rate in counted.rates] == ["fake2024/fig10/spread"]
    assert "fake2024/fig1 (seed 1) failed" in (tmp_path / "surprises.md").read_text()


def test_the_interval_is_that_of_scipy():
    for k, n in ((0, 20), (3, 20), (1, 60)):
        wanted = binomtest(k, n).proportion_ci(method="wilson")
        assert SurpriseRate("a", "holds", n, k).interval == pytest.approx((wanted.low, wanted.high), abs=1e-5)


def test_seeds_as_text():
    assert read_seeds("3 1:2,2") == [3, 1, 2]
    for text in ("", "a", "-1", "3:1", "1:2:3", "1.5", "0:10000000"):
        with pytest.raises(GyrostatError, match="--seeds must be numbers or ranges"):
            read_seeds(text)


def test_a_worker_takes_a_program_that_no_other_has():
    tasks = [SimpleNamespace(program=name) for name in "aabb"]
    assert _next_task(deque(tasks), None, ["a"]) is tasks[2]
    assert _next_task(deque(tasks), tasks[3], ["a", "b"]) is tasks[2]
    assert _next_task(deque(tasks[:2]), tasks[3], ["a"]) is tasks[0]
