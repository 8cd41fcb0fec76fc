"""The count of surprises (``make surprises``) with a made-up paper: by claim and seed, resumed, and with what fails."""

from __future__ import annotations

import numpy as np
import pytest

import surprises
from gyrostat.reproduce.tasks import seed_of

NAMES = ["fake2024/fig1", "fake2024/fig10"]
SEEDS = range(1, 5)


@pytest.fixture
def count(fake, tmp_path):
    """Counts at four seeds: the exit status, the page, and the experiments that have been computed so far."""

    def call():
        page = tmp_path / "page.md"
        folders = ["--out", str(tmp_path / "out"), "--page", str(page)]
        status = surprises.main([*NAMES, "--smoke", "1:4", "--jobs", "1", *folders])
        return status, page.read_text(), [line.split()[0] for line in fake.read_text().splitlines()]

    return call


def spread(name, seed):
    """The number that the claim ``spread`` looks at, without the runner."""
    return np.random.default_rng(seed_of(seed, name)).normal(size=(3, 5)).cumsum(axis=1).std()


def test_surprises_are_counted_by_claim_and_seed_and_what_is_finished_is_kept(count, monkeypatch):
    status, page, computed = count()
    assert status == 0 and "0 of 12 verdicts" in page and computed == ["fig1", "fig10"] * 4
    assert "| `fake2024/fig1` | 2 | 4 | 49.0% |" in page  # Wilson: z^2 / (n + z^2)
    limit = np.median([spread("fake2024/fig1", seed) for seed in SEEDS])
    monkeypatch.setenv("FAKE_LIMIT", str(limit))
    status, page, computed = count()
    at = [seed for seed in SEEDS if spread("fake2024/fig1", seed) > limit]
    row = f"| `fake2024/fig1/spread` | holds | 4 | 2 | 50.0% | 15.0% to 85.0% | {at[0]},{at[1]} |"
    assert status == 1 and row in page and len(computed) == 8
    assert "| `fake2024/fig1` | 1 | 4 | 49.0% |" in page


def test_an_experiment_that_fails_is_no_silent_success(count, monkeypatch):
    monkeypatch.setenv("FAKE_FAIL", "fig1")
    status, page, _ = count()
    assert status == 1 and "- fake2024/fig1 (seed 2) failed: RuntimeError" in page and "0 of 4 verdicts" in page


@pytest.mark.parametrize("options", [[], ["--smoke", "3:1"], ["--smoke", "3"]])
def test_seeds_are_a_range_of_a_size(options, capsys):
    with pytest.raises(SystemExit) as end:
        surprises.main([*options, "--page", "/nowhere/page.md"])
    assert end.value.code == 2 and "--smoke" in capsys.readouterr().err.splitlines()[-1]
