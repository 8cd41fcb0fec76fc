"""Loops in real processes: no step mixes environments, and ``kill -9`` in the middle of an epoch changes nothing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import one_environment_loops as loops  # noqa: E402
from integration_table import BEGIN, END, HEAVY, LIGHT, PAGE  # noqa: E402
from one_environment_loops import Evidence, launch  # noqa: E402


@pytest.mark.parametrize("row", LIGHT, ids=lambda row: row.name)
def test_no_step_mixes_and_a_killed_loop_goes_on_with_the_same_batches(row, tmp_path):
    found = row.measure(tmp_path)
    assert found.mixed == 0 and found.exact and found.rows == found.expected_rows


@pytest.mark.parametrize(
    ("loop", "options", "cause"),
    [
        (loops.unheld, {"accumulate": 4}, "accumulation"),
        (loops.one_environment_per_process, {"world": 2}, "processes"),
    ],
)
def test_the_audit_finds_faults_and_where_they_come_from(tmp_path, loop, options, cause):
    launch(loop, tmp_path, **options)
    found = Evidence(tmp_path, options.get("world", 1))
    audit = found.audit()
    assert audit["causes"] == [cause] and audit["mixed"] == found.mixed_steps() > audit["steps"] / 2


def test_the_audit_finds_processes_that_use_the_same_rows(tmp_path):
    launch(loops.same_rows, tmp_path, world=2)
    audit = Evidence(tmp_path, 2).audit()
    assert audit["mixed"] == 0 and audit["repeated"] == audit["steps"]


def test_the_page_has_a_row_for_each_integration():
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    names = [line.split(" | ")[0].removeprefix("| ") for line in table.strip().splitlines()[2:]]
    assert names == [row.name for row in (*LIGHT, *HEAVY)]
