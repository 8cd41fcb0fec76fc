"""The experiments of xu2024 at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

import numpy as np
import pytest

import paper_checks
from gyrostat.papers.xu2024.axis_aligned_runs import AxisSetting, axis_runs, factor_norms


class TestXu2024(paper_checks.Checks):
    paper = "xu2024"


def test_runs_in_axes_know_the_overlap_and_the_off_diagonal_entries():
    setting = AxisSetting(6, (1.0, 1.0), 2, 3.0, 0.1, 0.5, np.inf, overlap=0.3, off_diagonal=0.2)
    _, _, sigma, residual, _ = next(axis_runs(setting, 1, runs=1, rng=np.random.default_rng(2)))
    spurious = 0.25 * np.eye(6) - np.diag([1.0, 1, 0, 0, 0, 0]) - residual[0]
    values, vectors = np.linalg.eigh(spurious)
    V_star = vectors[:, np.abs(values) > 1e-9]
    assert np.linalg.norm(V_star[:2], 2) == pytest.approx(0.3)  # U* are the first two axes
    Sigma = np.diag(sigma[0]) + 0.2 * (1 - np.eye(2))
    np.testing.assert_allclose(np.sort(values[np.abs(values) > 1e-9]), np.linalg.eigvalsh(Sigma))
    V_star = np.eye(6)[:, 2:4] * 0.91**0.5 + np.eye(6)[:, :2] * 0.3
    U = np.random.default_rng(3).standard_normal((6, 6))
    Q = U.T @ V_star
    E = U - np.eye(6)[:, :2] @ U[:2] - V_star @ Q.T
    norms = factor_norms(setting, U[None])
    np.testing.assert_allclose(norms["q"][0], np.linalg.norm(Q, axis=0))
    assert norms["e"][0] == pytest.approx(np.linalg.norm(E, 2))
    assert norms["f"][0] == pytest.approx(np.sum(E**2))
