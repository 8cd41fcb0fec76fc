"""Coordinates of symmetric matrices in NumPy: against the twin, against the JAX space, and without importing JAX."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import reference
from gyrostat.models.spaces import SymmetricMatrices
from gyrostat.models.symmetric_coordinates import smat, svec


@pytest.mark.parametrize("d", [1, 2, 7])
def test_coordinates_equal_the_twin_and_the_space_of_jax(d, x64):
    A = np.random.default_rng(d).standard_normal((5, d, d))
    A = A + np.swapaxes(A, -1, -2)
    x, space = svec(A), SymmetricMatrices(d)
    for matrix, coordinates in zip(A, x, strict=True):
        np.testing.assert_allclose(coordinates, reference.svec(matrix), rtol=1e-15)
        np.testing.assert_allclose(coordinates, space.coordinates(matrix), rtol=1e-15)
        np.testing.assert_allclose(smat(coordinates), space.element(coordinates), rtol=1e-15)
    np.testing.assert_allclose(smat(x), A, rtol=1e-15)
    assert smat(x).flags.c_contiguous  # products of another order in memory round differently
    assert svec(A.astype(np.float32)).dtype == np.float64


def test_types_and_coordinates_do_not_import_jax():
    code = (
        "import sys, gyrostat.typing, gyrostat.models.symmetric_coordinates; "
        "print([name for name in ('jax', 'equinox') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
