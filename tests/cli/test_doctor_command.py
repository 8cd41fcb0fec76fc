"""``gyrostat doctor``: what it prints, and its exit status."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from checks import call
from gyrostat.cli import doctor
from gyrostat.jax_tools import miscompilation_check
from gyrostat.jax_tools.miscompilation_check import Check


def checks(error: float):
    return lambda: [Check("p", dtype, (1,), error) for dtype in ("float64", "float32")]


def test_doctor_prints_what_is_installed(monkeypatch):
    monkeypatch.setattr(miscompilation_check, "check_all", checks(0.0))
    console = Console(file=io.StringIO(), width=160)
    assert doctor.examine(console) == 0
    said = console.file.getvalue()
    assert all(word in said for word in ("python", "jaxlib", "zarr", "devices", "XLA_FLAGS", "largest relative error"))


@pytest.mark.parametrize(("error", "status", "words"), [(0.0, 0, "All is well"), (0.1, 1, "FAILED: 1 float64 case")])
def test_the_exit_status_says_whether_programs_can_be_trusted(monkeypatch, capsys, error, status, words):
    monkeypatch.setattr(miscompilation_check, "check_all", checks(error))
    found, said, _ = call(monkeypatch, capsys, "doctor")
    assert found == status and words in said


def test_a_changed_default_precision_is_a_failure(monkeypatch):
    monkeypatch.setattr(miscompilation_check, "check_all", checks(0.0))
    monkeypatch.setattr(doctor, "default_precision_is_unchanged", lambda: False)
    console = Console(file=io.StringIO(), width=160)
    assert doctor.examine(console) == 1 and "changed the default precision" in console.file.getvalue()
