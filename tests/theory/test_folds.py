"""The fold and the critical points of the small completion problem, against descent and each other."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from gyrostat.diagnostics import ranks
from gyrostat.jax_tools.float64 import double
from gyrostat.theory import critical_points, fold
from gyrostat.theory.deep_linear_landscape import OBSERVED


@pytest.mark.parametrize(
    ("eps", "depth", "ridge"),
    [
        (0.1, 3, 0.0457),
        (0.2, 3, 0.0320),
        (0.25, 3, 0.0259),
        (0.1, 4, 0.0257),
        (0.15, 4, 0.0194),
    ],
)
def test_the_fold_is_where_descent_loses_its_second_component(eps, depth, ridge):
    found = fold(eps, depth)
    assert found.ridge == pytest.approx(ridge, abs=6e-5)  # measured once with other software, to four digits
    if (eps, depth) != (0.25, 3):
        return
    # Gradient descent from the minimum at the fold: below it rank 2 stays, above it is lost.
    problem = gs.Problem(gs.RectangularEnvironments.of([[1.0, 1 / eps], [eps, 1.0]]), gs.Entries(OBSERVED))
    with double():
        start = gs.Given(*gs.DeepLinear(depth).factorise(jnp.asarray(found.matrix)))
    for factor, rank in ((0.98, 2), (1.02, 1)):
        algorithm = gs.RidgeDescent(
            0.1, factor * found.ridge, model=gs.DeepLinear(depth), start=start, convention="main_text"
        )
        s = gs.run(algorithm, problem, num_steps=30_000, record=["singular_values"], record_at=2).singular_values
        assert int(ranks(s.values[0, -1])) == rank


def test_no_minimum_of_rank_two_no_fold():
    assert fold(1.0, 4).ridge == 0


def test_critical_points_of_the_small_problem():
    found = critical_points([[1.0, 4.0], [0.25, 1.0]], OBSERVED, 3, 0.005, tries=150)
    for point in found:  # Prop. A.1 and section 2.2, at rounding error
        assert point.imbalance < 1e-9 and abs(point.gap) < 1e-9
        assert sum(point.signature) == 12
        W = point.matrix
        U, s, Vt = np.linalg.svd(W)
        if s[1] > 1e-4:  # C_lambda is smooth there: its own gradient vanishes, R / 3 + 2 lambda U s^(2/3 - 1) V^T
            R = (W - np.array([[1.0, 0.0], [0.25, 1.0]])) * np.array([[1, 0], [1, 1]])
            np.testing.assert_allclose(R / 3, -0.01 * (U * s ** (2 / 3 - 1)) @ Vt, atol=1e-9)
    minima = [p for p in found if p.kind == "minimum"]
    assert [p.rank for p in minima] == [0, 1, 1, 2]  # the paper says three: it leaves out the one of the wrong sign
    assert sorted(np.sign(np.round(p.matrix[0, 1], 6)) for p in minima if p.rank == 1) == [-1, 1]
    assert all(p.signature[0] > 0 for p in found if p.kind != "minimum")  # Thm 3.1: the others are strict saddles
    assert len(found) >= 10
