"""The check of compiled programs passes here and notices wrong numbers."""

from __future__ import annotations

import numpy as np
import pytest

from gyrostat.jax_tools import miscompilation_check
from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.miscompilation_check import Check, compare, judge, rows


@pytest.mark.usefixtures("optimised")  # the compiler as users have it
def test_compiled_float64_programs_agree_with_numpy_here():
    checks = miscompilation_check.check_all()
    wrong = [check for check in checks if check.dtype == "float64" and not check.good]
    assert wrong == [] and {check.dtype for check in checks} == {"float64", "float32"}


def test_a_wrong_program_is_noticed():
    random = np.random.default_rng(0)
    M, X = random.normal(size=(3, 3)), random.normal(size=(50, 3))
    exact = (X @ M.T).sum(1)
    with double():
        assert compare("right", rows, (M, X), exact).good
        assert not compare("wrong", lambda M, X: rows(M, X).at[-1].add(0.01), (M, X), exact).good


def test_verdicts():
    good = Check("vmap of sum(M x)", "float64", (16_385, 3), 1e-16)
    bad = Check("vmap of sum(M x)", "float64", (16_385, 3), 0.1)
    single = Check("vmap of sum(M x)", "float32", (32_769, 3), 0.1)
    nothing = Check("vmap of sum(M x)", "float64", (16_385, 3), float("nan"))
    trusted, said = judge([good, bad], "0.10.2")
    assert not trusted and "0.10.2 is known" in said[0] and said[-1].startswith("FAILED: 1 float64 case")
    trusted, said = judge([good, single], "0.10.1")
    assert trusted and any(line.startswith("WARNING") for line in said) and said[-1].startswith("All is well")
    assert judge([good], "0.8.3") == (True, ["All is well: compiled float64 programs agree with NumPy."])
    assert not judge([nothing], "0.8.3")[0]
