"""The reproduce suite on one experiment: its records add up, and say what was aimed at."""

from __future__ import annotations

import pytest

from benchmarks.speed import reproduce


def test_the_parts_add_up_and_the_efficiency_is_that_of_the_clock():
    report = reproduce.run(lambda text: None, "smoke", ["xu2024/lemma7"])
    found = {record.id.removeprefix("reproduce/"): record for record in report.records}
    assert list(found) == ["xu2024", "other", "all", "clock", "efficiency"]
    assert found["xu2024"].ours == sum(found["xu2024"].settings["experiments"].values()) > 0
    assert found["xu2024"].ours + found["other"].ours == pytest.approx(found["all"].ours)
    cores = found["all"].settings["cores"]
    assert found["efficiency"].ours == pytest.approx(found["all"].ours / (found["clock"].ours * cores))
    assert found["clock"].settings["aim"] == 180
    assert "xu2024/lemma7" in report.notes[0]
