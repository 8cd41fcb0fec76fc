"""Compiled programs agree with NumPy here, a wrong one is noticed, and the doctor reports both."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
from rich.console import Console

from gyrostat.cli import doctor
from gyrostat.jax_tools import compiled_against_numpy
from gyrostat.jax_tools.compiled_against_numpy import Check


def test_compiled_float64_programs_agree_with_numpy_here():
    checks = compiled_against_numpy.check_all()
    wrong = [check for check in checks if check.dtype == "float64" and not check.good]
    assert wrong == [] and len(checks) > 40


def test_a_wrong_program_is_noticed():
    def last_row_wrong(M, X):
        return compiled_against_numpy.ROWS["vmap of sum(M x)"][0](M, X).at[-1].add(0.01)

    random = np.random.default_rng(0)
    M, X = random.normal(size=(3, 3)), random.normal(size=(50, 3))
    pair = compiled_against_numpy.ROWS["vmap of sum(M x)"]
    with doctor_precision():
        assert compiled_against_numpy._check("right", pair, M, X).good
        assert not compiled_against_numpy._check("wrong", (last_row_wrong, pair[1]), M, X).good


def doctor_precision():
    from gyrostat.jax_tools.float64 import double

    return double()


def test_verdicts():
    good = Check("vmap of sum(M x)", "float64", (16_385, 3), 1e-16)
    bad = Check("vmap of sum(M x)", "float64", (16_385, 3), 0.1)
    single = Check("vmap of sum(M x)", "float32", (32_769, 3), 0.1)
    nothing = Check("vmap of sum(M x)", "float64", (16_385, 3), float("nan"))
    status, said = doctor.judge([good, bad], "0.10.2")
    assert status == 1 and "0.10.2 is known" in said[0] and said[-1].startswith("FAILED: 1 float64 case")
    status, said = doctor.judge([good, single], "0.10.1")
    assert status == 0 and any(line.startswith("WARNING") for line in said) and said[-1].startswith("All is well")
    assert doctor.judge([good], "0.8.3") == (0, ["All is well: compiled float64 programs agree with NumPy."])
    assert doctor.judge([nothing], "0.8.3")[0] == 1


def test_doctor_prints_what_is_installed(monkeypatch):
    monkeypatch.setattr(doctor, "check_all", lambda: [Check("p", dtype, (1,), 0.0) for dtype in ("float64", "float32")])
    console = Console(file=io.StringIO(), width=160)
    assert doctor.doctor(console) == 0
    said = console.file.getvalue()
    assert all(word in said for word in ("python", "jaxlib", "zarr", "devices", "XLA_FLAGS", "largest relative error"))


def test_import_does_not_change_the_precision_of_jax():
    code = (
        "import gyrostat, gyrostat.engine.run, gyrostat.reproduce.runner, jax, jax.numpy as jnp; "
        "print(jnp.ones(1).dtype, jax.config.read('jax_enable_x64'))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["float32", "False"]
