"""Coordinates of symmetric matrices in NumPy: against the twin, against the JAX space, and without importing JAX."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import reference
from gyrostat.models.spaces import SymmetricMatrices
from gyrostat.models.symmetric_coordinates import diagonal, dimension_of, smat, svec


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_coordinates_equal_the_twin_and_the_space_of_jax(d, x64):
    A = np.random.default_rng(d).standard_normal((2, 5, d, d))
    A = A + np.swapaxes(A, -1, -2)
    x = svec(A)
    assert x.shape == (2, 5, d * (d + 1) // 2) and dimension_of(x.shape[-1]) == d
    space = SymmetricMatrices(d)
    for i, j in np.ndindex(2, 5):
        np.testing.assert_allclose(x[i, j], reference.svec(A[i, j]), rtol=1e-15)
        np.testing.assert_allclose(x[i, j], space.coordinates(A[i, j]), rtol=1e-15)
        np.testing.assert_allclose(smat(x)[i, j], space.element(x[i, j]), rtol=1e-15)
        np.testing.assert_array_equal(x[i, j][diagonal(d)], np.diagonal(A[i, j]))
    np.testing.assert_allclose(smat(x), A, rtol=1e-15)
    assert smat(x).flags.c_contiguous  # products of another order in memory round differently


def test_the_result_is_a_copy_in_double_precision():
    for d in (1, 3):
        A = np.eye(d, dtype=np.float32)
        x = svec(A)
        back = smat(x)
        assert x.dtype == back.dtype == np.float64
        assert not np.shares_memory(x, A) and not np.shares_memory(back, x)


def test_types_and_coordinates_do_not_import_jax():
    code = (
        "import sys, gyrostat.typing, gyrostat.models.symmetric_coordinates; "
        "print([name for name in ('jax', 'equinox') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
