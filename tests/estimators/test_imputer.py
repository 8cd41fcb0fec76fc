"""LowRankImputer: scikit-learn's contract, known answers, and bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics import r2_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from gyrostat.errors import GyrostatError
from gyrostat.estimators import LowRankImputer
from gyrostat.estimators.low_rank.table_cells import constant_columns, observed_cells


@parametrize_with_checks([LowRankImputer(random_state=0)])
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


def table(seed: int, shape=(40, 30), rank: int = 2, missing: float = 0.5, noise: float = 0.0):
    """A matrix of low rank, and the same with noise and holes."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    noisy = truth + noise * rng.standard_normal(shape)
    return truth, np.where(rng.random(shape) < missing, np.nan, noisy)


@pytest.mark.parametrize("seed", range(5))
def test_an_exact_matrix_is_found_with_its_rank(seed):
    truth, holes = table(seed, rank=3)
    model = LowRankImputer(random_state=seed).fit(holes)
    assert model.exact_ and model.rank_ == 3 and model.ridge_ == 0
    np.testing.assert_allclose(model.transform(holes), truth, atol=1e-5)  # certificates are exact to 1e-7 of the data
    rows, columns = np.nonzero(np.isnan(holes))
    np.testing.assert_allclose(model.predict(rows, columns), truth[rows, columns], atol=1e-5)


def test_noise_is_not_taken_for_an_exact_fit_and_beats_filling_with_means():
    errors = []
    for seed in range(10):
        truth, holes = table(seed, noise=0.3)
        model = LowRankImputer(random_state=seed).fit(holes)
        hidden = np.isnan(holes)
        assert not model.exact_
        errors.append(np.std((model.transform(holes) - truth)[hidden]) / np.std(truth[hidden]))
    # 138 degrees of freedom from 600 cells: about .3 sqrt(138 / 600) / sqrt(2) = .1 at best; means of columns have 1
    assert 0.08 < np.median(errors) < 0.2


def test_offsets_are_found_given_or_chosen():
    rng = np.random.default_rng(0)
    levels = 100 + 10 * rng.standard_normal(40)[:, None] + 10 * rng.standard_normal(30)
    holes = np.where(rng.random((40, 30)) < 0.5, np.nan, levels + rng.standard_normal((40, 30)))
    chosen, given = (LowRankImputer(random_state=0, offsets=offsets).fit(holes) for offsets in ("auto", True))
    assert given.mean_ > 90 and given.row_offsets_.std() > 5
    for model in (chosen, given):
        assert np.std((model.transform(holes) - levels)[np.isnan(holes)]) < 2  # the noise has 1, offsets vary by 10


def test_offsets_that_explain_nothing_do_not_add_to_the_rank():
    """They are a matrix of rank two: a table of rank 3 about zero would be found with rank 5."""
    _, holes = table(11, shape=(120, 100), rank=3, noise=0.2)
    model = LowRankImputer(random_state=0).fit(holes)
    assert model.mean_ == 0 and not model.row_offsets_.any() and model.rank_ == 3


def test_sparse_matrices_are_tables_whose_absent_cells_are_missing():
    _, holes = table(1)
    holes[0, :5] = 0.0  # explicit zeros are observed
    rows, columns = np.nonzero(~np.isnan(holes))
    stored = sparse.csr_matrix((holes[rows, columns], (rows, columns)), shape=holes.shape)
    dense, thin = (LowRankImputer(random_state=0, exact=False).fit(X) for X in (holes, stored))
    np.testing.assert_allclose(dense.predict(rows, columns), thin.predict(rows, columns), rtol=1e-8)
    assert stored.nnz == len(rows)
    with pytest.raises(GyrostatError, match="sparse"):
        thin.predict(stored)


def test_new_rows_are_filled_as_their_factors_ask():
    truth, holes = table(2, shape=(60, 30))
    model = LowRankImputer(random_state=0).fit(holes[:40])
    filled = model.transform(holes[40:])
    np.testing.assert_allclose(filled, truth[40:], atol=1e-4)
    assert model.score(holes[40:]) > 0.999


def test_rows_may_be_scaled_too():
    """Rows in units that differ a hundredfold, each with noise of its own size: scaled, none of them rules the others."""
    better = []
    for seed in range(12, 16):
        units = 10 ** np.random.default_rng(seed).uniform(-1, 1, (80, 1))
        truth, holes = table(seed, shape=(80, 60), rank=3, noise=0.3)
        missing = np.isnan(holes)
        without, model = (LowRankImputer(random_state=0, scale_rows=s).fit(units * holes) for s in (False, True))
        wrong = [np.abs(m.transform(units * holes) / units - truth)[missing].mean() for m in (model, without)]
        better.append(wrong[0] / wrong[1])
    assert max(better) < 1 and np.mean(better) < 0.9
    rows = np.flatnonzero(missing[:, 0])
    low, high = model.predict_interval(rows, np.zeros_like(rows))
    np.testing.assert_allclose((high - low) / model.row_scale_[rows], (high - low)[0] / model.row_scale_[rows[0]])


def mixed_units(seed: int, rows: int = 150, columns: int = 13):
    """A noisy table of rank 3 whose columns have levels of their own and units from 1 to 10^6, and the same with holes."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((rows, 3)) @ rng.standard_normal((3, columns)) / np.sqrt(3)
    units = 10.0 ** rng.permutation(np.linspace(0, 6, columns))
    X = (signal + 0.33 * rng.standard_normal(signal.shape) + 5 * rng.standard_normal(columns)) * units
    return X, np.where(rng.random(X.shape) < 0.2, np.nan, X), units


def test_units_of_columns_do_not_matter():
    """Errors in column standard deviations, and coverage by column: 2800 and 0.00 to 0.7 if units rule the fit."""
    wrong, inside = [], []
    for seed in range(10):
        X, holes, _ = mixed_units(seed)
        model = LowRankImputer(random_state=seed).fit(holes)
        _, columns = hidden = np.nonzero(np.isnan(holes))
        wrong.append(np.sqrt(np.mean(((model.predict(*hidden) - X[hidden]) / X.std(axis=0)[columns]) ** 2)))
        low, high = model.predict_interval(*hidden)
        covered = (low <= X[hidden]) & (X[hidden] <= high)
        inside.append(np.bincount(columns, covered) / np.bincount(columns))
        assert model.scaled_ and model.relative_error_ < 0.9
    assert np.median(wrong) < 0.6  # the noise alone is about 0.33 / sqrt(1 + 0.33^2) = 0.31; the mean of a column is 1
    # 10 tables with 30 cells in a column have a standard error of 0.02; a bias of 0.02 is allowed on either side
    assert np.min(np.mean(inside, axis=0)) > 0.84 and np.max(np.mean(inside, axis=0)) < 0.98
    assert 0.88 < np.mean(inside) < 0.96
    assert np.isinf(model.predict_interval([0], [0], 1.0)[1]).all()


def test_columns_that_share_a_unit_are_not_scaled_because_some_of_them_hardly_vary():
    """Pixels, of which some are nearly always black. Errors are those at hidden pixels, in grey levels."""
    X = load_digits().data
    hidden = np.random.default_rng(0).random(X.shape) < 0.5
    wrong = {}
    for scale in ("auto", False, True):
        filled = LowRankImputer(random_state=0, scale_columns=scale).fit_transform(np.where(hidden, np.nan, X))
        wrong[scale] = np.sqrt(np.mean((filled - X)[hidden] ** 2))
    assert wrong["auto"] <= wrong[False] < 0.99 * wrong[True]


def test_a_column_of_one_number_is_filled_with_it():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 6)) + 0.3 * rng.standard_normal((60, 6))
    X[:, 2], X[:, 4] = 7.1, -0.3
    hidden = rng.random(X.shape) < 0.3
    holes = np.where(hidden, np.nan, X)
    model = LowRankImputer(random_state=0)
    filled = model.fit_transform(holes)
    assert (filled[:, 2] == 7.1).all() and (filled[:, 4] == -0.3).all()
    assert (model.predict([0, 1], [2, 4]) == [7.1, -0.3]).all() and model.column_errors_[2] == 0.0
    rows = np.flatnonzero(hidden[:, 2])
    assert all((end == 7.1).all() for end in model.predict_interval(rows, np.full(len(rows), 2)))
    low, high = model.predict_interval(range(60), [0] * 60)  # columns without errors do not narrow those of the others
    assert np.mean(high - low) > 0.6


def test_equal_ratings_of_one_item_are_chance_and_not_a_rule():
    ratings = np.random.default_rng(0).choice([3.0, 4.0, 5.0], (12, 300), p=[0.2, 0.3, 0.5])
    ratings[:, 0] = 5.0
    ratings[11, 0] = np.nan
    assert np.isnan(constant_columns(observed_cells(ratings))).all()


def test_a_few_columns_in_a_small_unit_among_many_in_a_large_one_are_scaled():
    X, holes, units = mixed_units(5)
    ratio = np.where(np.arange(len(units)) < 4, 0.01, 1.0) / units  # two units only, the larger one is the usual one
    hidden = np.isnan(holes)
    X, holes = (Y * ratio - np.nanmean(holes * ratio, axis=0) for Y in (X, holes))  # levels do not tell units apart
    model = LowRankImputer(random_state=0)
    wrong = ((model.fit_transform(holes) - X) / X.std(axis=0))[hidden]
    assert model.scaled_ and np.sqrt(np.mean(wrong**2)) < 0.6  # as in the test above: noise alone is 0.31, means are 1


def test_a_wild_cell_is_named_and_does_not_rule_the_fit():
    X, holes, _ = mixed_units(4)
    hidden = np.nonzero(np.isnan(holes))

    def wrong(model):
        return np.sqrt(np.mean(((model.predict(*hidden) - X[hidden]) / X.std(axis=0)[hidden[1]]) ** 2))

    clean = wrong(LowRankImputer(random_state=0).fit(holes))
    holes[5, 2] = X[5, 2] * 1e6
    with pytest.warns(UserWarning, match=r"1 of \d+ cells .* in row 5, column 2\)"):
        spoilt = wrong(LowRankImputer(random_state=0).fit(holes))
    assert spoilt < 1.2 * clean  # the same cell without clipping: more than a thousandfold


def test_a_table_that_means_fill_better_is_told():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 8)) < 0.3, np.nan, rng.standard_normal((60, 8)))
    with pytest.warns(UserWarning, match="times that of filling each column with its mean"):
        model = LowRankImputer(random_state=0, ridge=1e-3, scale_columns=True).fit(X)
    assert model.relative_error_ > 1
    np.testing.assert_array_equal(model.column_errors_.shape, model.column_mean_errors_.shape)


def test_a_score_is_that_of_transform_and_writes_nothing_out(monkeypatch):
    _, holes = table(2, shape=(60, 30), noise=0.3)
    model = LowRankImputer(random_state=0).fit(holes[:40])
    new, there = holes[40:], np.nonzero(~np.isnan(holes[40:]))
    hidden = tuple(at[np.random.RandomState(0).random_sample(len(at)) < 0.2] for at in there)
    given = new.copy()
    given[hidden] = np.nan
    expected = r2_score(new[hidden], model.transform(given)[hidden])
    stored = sparse.csr_matrix((new[there], there), shape=new.shape)
    monkeypatch.setattr("gyrostat.estimators.low_rank.table_model.MOST_CELLS", 100)
    with pytest.raises(GyrostatError, match="too many to write out"):
        model.transform(stored)
    np.testing.assert_allclose([model.score(X) for X in (new, stored)], expected, rtol=1e-12)


def test_the_path_falls_and_the_best_ridge_is_taken():
    _, holes = table(3, noise=0.3)
    model = LowRankImputer(random_state=0, offsets=False, exact=False).fit(holes)
    path = model.path_
    assert (np.diff(path["ridge"][:10]) < 0).all() and path["rank"][0] <= 1
    np.testing.assert_allclose(model.validation_error_, path["validation_error"].min())
    given = LowRankImputer(random_state=0, offsets=False, ridge=2.0).fit(holes)
    assert given.ridge_ == pytest.approx(2.0, rel=0.2)  # for all cells, a tenth more than those of the path


def test_cells_to_judge_by_may_be_named():
    _, holes = table(8, noise=0.3)
    held = ~np.isnan(holes) & (np.random.default_rng(8).random(holes.shape) < 0.2)
    ways = (held, pd.DataFrame(held), sparse.csr_matrix(held), np.nonzero(held))
    models = [LowRankImputer(random_state=0, validation=way).fit(holes) for way in ways]
    for model in models[1:]:
        np.testing.assert_array_equal(model.path_, models[0].path_)
    assert 0 < models[0].validation_error_ < np.nanstd(holes)


def test_what_is_judged_has_not_seen_the_cells_that_judge_it():
    """Neither factors nor offsets: other values at the held-out cells change errors, and nothing else of the path."""
    _, holes = table(9, noise=0.3)
    held = ~np.isnan(holes) & (np.random.default_rng(9).random(holes.shape) < 0.1)
    first, second = (
        LowRankImputer(random_state=0, validation=held, offsets=True, ridge=3.0, scale_columns=True).fit(X)
        for X in (holes, np.where(held, holes + 5, holes))
    )
    np.testing.assert_array_equal(first.path_["ridge"], second.path_["ridge"])
    np.testing.assert_array_equal(first.path_["rank"], second.path_["rank"])
    assert (first.path_["validation_error"] < second.path_["validation_error"]).all()


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        (([0, 0], [0, 1]), "names the cell"),
        (np.ones((40, 30), dtype=bool), "leave some to fit"),
        (np.eye(3) > 0, "shape"),
        ("last", "validation"),
    ],
)
def test_bad_cells_to_judge_by_are_refused(validation, message):
    _, holes = table(8)
    holes[0, 0] = np.nan
    with pytest.raises(GyrostatError, match=message):
        LowRankImputer(validation=validation).fit(holes)


def test_rows_with_too_few_cells_for_an_exact_fit_are_told():
    truth, holes = table(2, rank=3)
    holes[7] = np.nan
    holes[7, :2] = truth[7, :2]
    with pytest.warns(UserWarning, match="rows 7 have too few"):
        model = LowRankImputer(random_state=0, offsets=False).fit(holes)
    assert model.exact_ and model.undetermined_rows_.tolist() == [7] and not len(model.undetermined_columns_)
    low, high = model.predict_interval([7, 8], [5, 5])
    assert np.isinf(high - low).tolist() == [True, False]
    with pytest.warns(UserWarning, match="rows 1 have fewer cells than the rank 3"):
        model.transform(holes[6:8])


def test_environments_have_column_offsets_of_their_own():
    truth, _ = table(4, shape=(80, 20))
    site = np.repeat(["a", "b"], 40)
    shifted = truth + np.where(site == "a", 0.0, 20.0)[:, None]
    holes = np.where(np.random.default_rng(4).random(truth.shape) < 0.4, np.nan, shifted)
    model = LowRankImputer(random_state=0).fit(holes, environments=site)
    assert model.environments_ == ["a", "b"] and model.column_offsets_.shape == (2, 20)
    filled = model.transform(holes, environments=site)
    assert np.std((filled - shifted)[np.isnan(holes)]) < 0.5
    with pytest.raises(GyrostatError, match="environments is missing"):
        model.transform(holes)
    with pytest.raises(GyrostatError, match="not seen"):
        model.transform(holes[:1], environments=["c"])


def test_empty_rows_and_columns_are_named():
    _, holes = table(5)
    holes[7], holes[:, 3] = np.nan, np.nan
    frame = pd.DataFrame(holes, columns=[f"c{j}" for j in range(30)])
    with pytest.warns(UserWarning, match="rows 7 and in columns c3"):
        filled = LowRankImputer(random_state=0, exact=False).set_output(transform="pandas").fit_transform(frame)
    assert list(filled.columns) == list(frame.columns) and not filled.isna().any(axis=None)


def test_ctrl_c_keeps_the_best_model(monkeypatch):
    from gyrostat.estimators.low_rank.solver import ridge_path

    _, holes = table(6, noise=0.1)
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return kept(*arguments)

    kept = ridge_path.grow_and_sweep
    monkeypatch.setattr(ridge_path, "grow_and_sweep", interrupted)
    model = LowRankImputer(random_state=0).fit(holes)
    assert model.interrupted_ and model.rank_ > 0 and len(model.path_) == 11
    assert np.isfinite(model.transform(holes)).all()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.inf], [2.0, 3.0]], "X holds inf in row 0, column 1: mark"),
        (sparse.csr_matrix(np.array([[0.0, 2.0], [-np.inf, 1.0]])), "X holds -inf in row 1, column 0: mark"),
        ([["a", "b"], ["c", "d"]], "X holds the text 'a' in row 0, column 0"),
        (pd.DataFrame({"a": [1.0, 2.0], "site": ["north", "south"]}), "X holds the text 'north' in row 0, column site"),
        (np.zeros((0, 3)), "0 sample"),
        (np.full((3, 3), np.nan), "no observed cell"),
    ],
)
def test_bad_tables_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        LowRankImputer().fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 1}, "depth"),
        ({"offsets": "rows"}, "offsets"),
        ({"exact": "yes"}, "exact"),
        ({"validation": 0}, "validation"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(GyrostatError, match=message):
        LowRankImputer(**options).fit(np.eye(3))


def test_integers_single_columns_and_few_cells():
    assert LowRankImputer(random_state=0).fit_transform(np.arange(12).reshape(4, 3)).dtype == float
    column = np.array([[1.0], [np.nan], [3.0], [2.0]])
    filled = LowRankImputer(random_state=0, offsets=True).fit_transform(column)
    assert 1 <= filled[1, 0] <= 3
    few = np.full((20, 20), np.nan)
    few[np.arange(20), np.arange(20)] = 1.0
    with pytest.warns(UserWarning, match="fewer than the 39 degrees of freedom"):
        LowRankImputer(random_state=0).fit(few)


def test_cells_outside_the_table_are_refused():
    model = LowRankImputer(random_state=0).fit(table(0)[1])
    for rows, columns, message in (
        ([40], [0], "rows must"),
        ([0], [-1], "columns must"),
        ([0, 1], [0], "equally long"),
    ):
        with pytest.raises(GyrostatError, match=message):
            model.predict(rows, columns)


def test_a_column_with_a_long_tail_does_not_stand_for_all_others():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((400, 4))  # four columns about which nothing is known, and two that repeat each other
    tail = np.exp(2 * rng.standard_normal(400))
    table = np.column_stack([noise, tail, 2 * tail * np.exp(0.01 * rng.standard_normal(400))])
    model = LowRankImputer(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.where(rng.random(table.shape) < 0.15, np.nan, table))
    by_column = model.column_errors_ / model.column_mean_errors_  # columns have nearly the same number of cells
    assert model.relative_error_ == pytest.approx(np.sqrt(np.mean(by_column**2)), abs=0.02)


def test_errors_and_intervals_contain_what_is_cut_off_wild_cells():
    """A column of fees: zero in most rows, and far from zero in a quarter of them, further than 10 usual spreads."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2)) @ rng.standard_normal((2, 5)) + 0.5 * rng.standard_normal((600, 5))
    X[:, 4] = np.where(rng.random(600) < 0.25, rng.normal(0, 40, 600), 0.1 * X[:, 4])
    hidden = rng.random(X.shape) < 0.2
    model = LowRankImputer(random_state=0, scale_columns=True)
    with pytest.warns(UserWarning, match="usual spread"):
        filled = model.fit_transform(np.where(hidden, np.nan, X))
    rows = np.flatnonzero(hidden[:, 4])
    low, high = model.predict_interval(rows, np.full(len(rows), 4))
    assert np.mean((low <= X[rows, 4]) & (X[rows, 4] <= high)) > 0.8
    assert model.column_errors_[4] > 0.8 * np.sqrt(np.mean((filled - X)[rows, 4] ** 2))
