"""Data of a user as measurements: labels of any kind, pandas, lists; the same runs as with numbered rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gyrostat as gs
from checks import refuses

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 3)), RNG.standard_normal(12)
CODES = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 1])
TABLE = pd.DataFrame(X, columns=["a", "b", "c"])


def same(one: gs.DenseData, other: gs.DenseData) -> bool:
    names = ("matrices", "responses", "starts", "counts")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["north", "south", "east"])[CODES],
        [["north", 2, "x"][c] for c in CODES],
        pd.Categorical.from_codes(CODES, ["z", "y", "x"]),
        pd.Series(pd.to_datetime(["2024-01-01", "2023-01-01", "2025-01-01"])[CODES]),
        CODES * 10.5,
        CODES.astype(np.uint8),
        (CODES == 1).astype(int) + 2 * (CODES == 2),
    ],
    ids=["strings", "mixed", "categories", "dates", "floats", "bytes", "integers"],
)
def test_labels_of_any_kind_are_numbered_by_first_appearance(labels):
    data = gs.DenseData.from_arrays(X, Y, labels)
    assert same(data, gs.DenseData(X, Y, CODES))
    assert len(data.labels) == 3


def test_pandas_and_lists_give_the_same_data():
    arrays = gs.DenseData.from_arrays(X, Y, CODES)
    inputs, tables, responses = ([x[e == CODES] for e in range(3)] for x in (X, TABLE, Y))
    for others in (
        (TABLE, pd.Series(Y), pd.Series(CODES)),
        (TABLE, pd.DataFrame({"y": Y}), CODES),
        (inputs, responses, ["p", "q", "r"]),
        (tables, list(map(pd.Series, responses))),
    ):
        assert same(arrays, gs.DenseData.from_arrays(*others))
    assert gs.DenseData.from_arrays(inputs, responses, ["p", "q", "r"]).labels == ("p", "q", "r")


def test_matrices_as_inputs():
    data = gs.DenseData.from_arrays(RNG.standard_normal((4, 2, 3)), np.ones(4), list("abab"))
    assert data.shape == (2, 3) and data.observed().shape == (2, 3)


SHUFFLED = pd.Series(Y).sample(frac=1, random_state=0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((X, Y), "environments is missing"),
        ((X, Y, CODES[:-1]), "got 12, 12 and 11 rows"),
        ((X, Y[:-1], CODES), "got 12, 11 and 12 rows"),
        ((X, Y, [*CODES[:-1], None]), "1 missing labels"),
        ((X[:, 0], Y, CODES), "X must have 2 or 3 dimensions"),
        ((X, np.stack([Y, Y], 1), CODES), "one number per row"),
        ((TABLE.assign(site="x"), Y, CODES), "not numbers (site)"),
        ((TABLE, SHUFFLED, CODES), "align them first"),
        (([X, X], [Y]), "X must list as many arrays; got 2"),
        ((X, [Y, Y]), "X must list as many arrays"),
        (([X, X[:5]], [Y, Y], ["p", "q"]), "environment 'q' has 5 rows in X and 12 in y"),
        (([X, X[:, :2]], [Y, Y]), "rows of environment 1 have shape (2,)"),
        (([X, X], [Y, Y], ["p", "p"]), "got 1 different labels"),
        ((np.where(X > 1, np.nan, X), Y, CODES), "X must be finite"),
    ],
)
def test_bad_input_is_one_sentence(arguments, words):
    refuses(lambda: gs.DenseData.from_arrays(*arguments), words)
