"""The solver behind LowRankImputer: its parts against matrices written out, and recovery near the limit."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.completion.problems import Synthetic, synthetic
from gyrostat.estimators.low_rank.solver import (
    Factors,
    ObservedEntries,
    Options,
    complete,
    observed_entries,
    ridge_path,
    search,
)
from gyrostat.estimators.low_rank.solver.determined_rows import extended, undetermined
from gyrostat.estimators.low_rank.solver.exact_fit import fit_of_rank, repaired_fit
from gyrostat.estimators.low_rank.solver.observed_entries import balanced, split
from gyrostat.estimators.low_rank.solver.ridge_path import (
    Ridge,
    largest_ridge,
    ridge_regressions,
    sweep,
    with_new_components,
)
from gyrostat.estimators.low_rank.solver.tangent_steps import (
    TangentRidge,
    ThinSVD,
    tangent_step,
)


def some(seed: int = 0, shape=(7, 5), share: float = 0.6) -> tuple[ObservedEntries, np.ndarray, np.ndarray]:
    """ObservedEntries entries, the matrix they are from and the mask."""
    rng = np.random.default_rng(seed)
    A, mask = rng.standard_normal(shape), rng.random(shape) < share
    rows, columns = np.nonzero(mask)
    order = rng.permutation(len(rows))
    return ObservedEntries(shape, rows[order], columns[order], A[rows, columns][order]), A, mask


def test_blocks_give_what_the_whole_gives(monkeypatch):
    seen, *_ = some(4)
    factors = [np.random.default_rng(1).standard_normal((n, 3)) for n in seen.shape]
    sides = [(factors[1], False), (factors[0], True)]
    whole = [ridge_regressions(seen, x, np.ones(3), transposed=t) for x, t in sides]
    before = [len(list(seen.row_batches(3, transposed=t))) for _, t in sides]
    monkeypatch.setattr(observed_entries, "GATHER_SIZE", 20)  # a row or two at a time
    assert all(len(list(seen.row_batches(3, transposed=t))) > few for (_, t), few in zip(sides, before, strict=True))
    for (x, t), wanted in zip(sides, whole, strict=True):
        np.testing.assert_allclose(ridge_regressions(seen, x, np.ones(3), transposed=t), wanted, rtol=1e-12)


def test_sweeps_of_large_tables_in_single_precision_are_precise_enough(monkeypatch):
    seen, *_ = some(4, shape=(60, 40))
    start, ridge = Factors(*(np.random.default_rng(1).standard_normal((n, 3)) for n in seen.shape)), Ridge(0.1)
    wanted = sweep(seen, start, ridge)[1]
    monkeypatch.setattr(ridge_path, "LARGE", 1)
    single = sweep(seen, start, ridge)[1]
    assert 0 < np.abs(single - wanted).max() < 1e-4 * wanted.max()
    assert ridge_path.sufficient_precision(seen, start) is np.float32
    fitted = seen.with_values(start.at(seen.rows, seen.columns))  # without noise every digit counts
    assert ridge_path.sufficient_precision(fitted, start) is np.float64


def test_splitting_leaves_something_everywhere():
    seen, *_ = some(3, share=0.3)
    fit, held = split(seen, 0.5, np.random.RandomState(0))
    assert len(fit) + len(held) == len(seen) and len(held) > 0
    assert set(fit.rows) == set(seen.rows) and set(fit.columns) == set(seen.columns)


def test_one_factor_is_a_ridge_regression_for_each_row():
    seen, A, mask = some(4)
    G, w = np.random.default_rng(5).standard_normal((5, 2)), np.array([0.3, 2.0])
    found = ridge_regressions(seen, G, w, transposed=False)
    for i in range(7):
        X = G[mask[i]]
        np.testing.assert_allclose(found[i], np.linalg.solve(X.T @ X + np.diag(w), X.T @ A[i, mask[i]]), atol=1e-10)


def objective(seen: ObservedEntries, factors: Factors, ridge: Ridge) -> float:
    left = seen.values - factors.at(seen.rows, seen.columns)
    return 0.5 * np.sum(left**2) + ridge.strength * np.sum(balanced(factors)[1] ** ridge.power)


def test_a_row_with_fewer_cells_than_components_has_the_shortest_solution_if_the_ridge_is_lost_in_rounding():
    rows, columns, G = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 2]), np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    entries = ObservedEntries((2, 3), rows, columns, np.array([1.0, 4.0, 5.0, 6.0]))
    found = ridge_regressions(entries, G, np.full(2, 1e-40), transposed=False)
    np.testing.assert_allclose(found, [[1, 2], [1.8, 0.6]], atol=1e-12)


@pytest.mark.parametrize("depth", [2.0, 3.0, 5.0])
def test_sweeps_lower_the_penalised_loss(depth):
    """The weights majorise the Schatten penalty, so no sweep that drops nothing may raise the objective."""
    seen, *_ = some(6, shape=(20, 15))
    ridge = Ridge(0.02, depth)
    factors = with_new_components(seen, Factors.zero((20, 15)), ridge, 4)
    values = [objective(seen, factors, ridge)]
    for _ in range(5):
        before = factors.rank
        factors, _ = sweep(seen, factors, ridge)
        assert factors.rank == before
        values.append(objective(seen, factors, ridge))
    assert (np.diff(values) <= 1e-9).all() and values[-1] < values[0]


@pytest.mark.parametrize("depth", [3.0, 4.0])
def test_the_fold_is_where_the_minimum_is_lost(depth):
    ridge = Ridge(0.7, depth)
    s_fold, t_fold = ridge.fold(2.0)
    s = np.linspace(1e-3, 10, 200_001)
    for t, has in ((1.01 * t_fold, True), (0.99 * t_fold, False)):
        slope = 2.0 * (s - t) + 0.7 * ridge.power * s ** (ridge.power - 1)
        assert (slope.min() < 0) == has
    assert abs(2.0 * (s_fold - t_fold) + 0.7 * ridge.power * s_fold ** (ridge.power - 1)) < 1e-10


def test_nothing_comes_in_above_the_largest_ridge():
    seen, *_ = some(7, shape=(30, 20))
    top, nothing = largest_ridge(seen, 3.0), Factors.zero((30, 20))
    assert (
        with_new_components(seen, nothing, Ridge(1.01 * top), 5).rank == 0
        and with_new_components(seen, nothing, Ridge(0.99 * top), 5).rank >= 1
    )


def test_the_joint_step_is_least_squares_on_the_tangent_space():
    seen, *_ = some(8, shape=(9, 8), share=0.9)
    rng = np.random.default_rng(9)
    U, V = (np.linalg.qr(rng.standard_normal((n, 2)))[0] for n in (9, 8))
    point, w = (
        ThinSVD(U, np.array([3.0, 1.0]), V),
        TangentRidge(np.array([0.1, 0.4]), np.array([[0.02, 0.03], [0.03, 0.3]])),
    )
    step = tangent_step(seen, point, w, accuracy=1e-13, limit=500)
    inside, outside = np.eye(9) - U @ U.T, np.eye(8) - V @ V.T

    def cost(F: np.ndarray, G: np.ndarray) -> float:
        left = seen.values - Factors(np.hstack([F, U]), np.hstack([V, G])).at(seen.rows, seen.columns)
        ridge = np.sum(w.outside * ((inside @ F) ** 2).sum(0)) + np.sum(w.inside * (U.T @ F) ** 2)
        return np.sum(left**2) + ridge + np.sum(w.outside * (G**2).sum(0))

    best = cost(step.F, step.G)
    np.testing.assert_allclose(V.T @ step.G, 0, atol=1e-10)
    for _ in range(20):
        dF, dG = 1e-3 * rng.standard_normal((9, 2)), 1e-3 * outside @ rng.standard_normal((8, 2))
        assert cost(step.F + dF, step.G + dG) > best


def test_recovery_near_the_limit_without_the_rank():
    """A fifth more entries than degrees of freedom."""
    found = []
    for seed in range(10):
        problem = synthetic(Synthetic(30, 3, 1.2), seed)
        result = complete(problem.seen, Options(), np.random.RandomState(seed))
        wrong = result.factors.at(problem.test.rows, problem.test.columns) - problem.test.values
        rows, columns = undetermined(problem.seen, 3)
        wrong = wrong[~np.isin(problem.test.rows, rows) & ~np.isin(problem.test.columns, columns)]
        exact = np.sqrt(np.mean(wrong**2)) < 1e-4 * problem.scale
        assert result.exact == exact  # where cells determine it, a certificate does not lie
        found.append(exact and result.factors.rank == 3)
    assert np.mean(found) >= 0.9  # ten were found when this was written


def test_noise_that_is_plain_ends_the_search_for_an_exact_fit(monkeypatch):
    """Held-out entries are not taken in for a search that cannot succeed; without noise the same table is exact."""
    whole = []
    kept = search._RankSearch.on_all_entries

    def counted(self, ranks, **options):
        whole.append(1)
        return kept(self, ranks, **options)

    monkeypatch.setattr(search._RankSearch, "on_all_entries", counted)
    for noise in (0.05, 0.0):
        problem = synthetic(Synthetic(80, 8, 1.5, noise=noise))
        result = complete(problem.seen, Options(), np.random.RandomState(0))
        assert result.exact == (noise == 0) and result.factors.rank == 8 and not whole


def test_a_nuclear_norm_is_tried_where_a_deeper_ridge_finds_little():
    depths = []
    for noise in (0.1, 2.0):
        problem = synthetic(Synthetic(60, 3, 2.0, noise=noise))
        path = complete(problem.seen, Options(exact=False), np.random.RandomState(0)).path
        depths.append({depth for _, depth, _, _ in path})
    assert depths == [{3.0}, {2.0, 3.0}]


def test_a_wrong_rank_is_not_certified():
    problem = synthetic(Synthetic(40, 4, 2.0))
    assert [fit_of_rank(problem.seen, rank, 3.0).exact for rank in (1, 3, 4)] == [False, False, True]


def test_what_is_known_determines_the_rest():
    """The whole matrix from the factors of half of its rows and half of its columns."""
    problem = synthetic(Synthetic(40, 2, 2.0))
    whole = fit_of_rank(problem.seen, 2, 3.0).factors
    known = [np.arange(40) % 2 == 0] * 2
    found = extended(problem.seen, Factors(whole.left[known[0]], whole.right[known[1]]), known)
    wrong = found.at(problem.test.rows, problem.test.columns) - problem.test.values
    assert np.median(np.abs(wrong)) < 1e-6


@pytest.mark.parametrize(("oversampling", "noise"), [(1.2, 0.0), (2.0, 0.1)])
def test_a_fit_that_is_nearly_right_is_repaired_and_noise_is_let_be(oversampling, noise):
    seen = synthetic(Synthetic(100, 3, oversampling, noise=noise), 1009).seen
    tried = fit_of_rank(seen, 3, 3.0)
    found = repaired_fit(seen, tried, 3.0)
    assert not tried.exact and found.exact == (noise == 0)
    assert (found is tried) == (noise > 0)


def test_rows_that_share_their_few_entries_are_undetermined():
    """A row of 4 entries, two of them in columns of 3: 9 unknowns, 8 equations. Found as an exact fit with a wrong row."""
    problem = synthetic(Synthetic(100, 3, 1.2), 103)
    rows, columns = undetermined(problem.seen, 3)
    assert 10 in rows and {14, 53} <= set(columns.tolist()) and len(rows) < 10
