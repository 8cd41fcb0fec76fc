"""The first-minute suite on a tiny program: its records, and that numbers which differ are noted."""

from __future__ import annotations

from benchmarks.speed import first_minute
from gyrostat.jax_tools.compile_cache import VARIABLE

ONE_LINE = "print({dimension} * {num_steps} * {seeds})"
"""In place of the ten lines, which compile two programs: the suite ``first-minute`` runs those, and the tests of the cache
compare the numbers of cached programs to the bit."""


def test_every_side_is_measured_and_prints_the_same(monkeypatch):
    sizes = first_minute.FirstMinuteSizes(dimension=3, num_steps=10, seeds=1, repeats=1)
    monkeypatch.setattr(first_minute, "TEN_LINES", ONE_LINE)
    monkeypatch.setattr(first_minute, "CHECK", "print('nothing')")
    report = first_minute.run(lambda text: None, sizes)
    assert not any("DIFFERENT" in note for note in report.notes)
    names = [f"first-minute/{part}-{side}" for part in ("ten-lines", "check") for side in ("cold", "warm")]
    assert [record.id for record in report.records] == names
    assert all(record.ours > 0 and record.peer and record.settings["aim"] > 0 for record in report.records)


def test_numbers_that_differ_are_noted():
    sizes = first_minute.FirstMinuteSizes(repeats=1)
    _, notes = first_minute._compare("check", f"import os; print(os.environ['{VARIABLE}'])", sizes)
    assert "DIFFERENT NUMBERS" in notes[0]
