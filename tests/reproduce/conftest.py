"""A made-up paper for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from gyrostat.experiments import registry


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Registers the fake paper and returns the file in which it logs what it computes."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "tools"))
    monkeypatch.setitem(registry.PAPERS, "fake2024", "fake2024:PAPER")
    log = tmp_path / "log"
    log.touch()
    monkeypatch.setenv("FAKE_LOG", str(log))
    return log
