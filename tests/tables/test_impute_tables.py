"""``gyrostat impute``: files in, files out, one sentence for what is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from checks import call
from gyrostat.estimators import LowRankImputer
from gyrostat.tables.impute import fill_table


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 12))
    holes = pd.DataFrame(np.where(rng.random(truth.shape) < 0.4, np.nan, truth), columns=[f"c{j}" for j in range(12)])
    holes.insert(0, "name", [f"row {i}" for i in range(30)])
    holes.to_csv(tmp_path / "data.csv", index=False)
    return truth, holes, tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_is_filled(monkeypatch, capsys, table, ending):
    truth, holes, folder = table
    out = folder / "new" / f"filled.{ending}"
    status, said, _ = call(monkeypatch, capsys, "impute", folder / "data.csv", "--out", out, "--ignore", "name")
    assert status == 0 and "rank 2" in said and "an exact fit" in said and str(holes.isna().sum().sum()) in said
    filled = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert list(filled.columns) == list(holes.columns) and filled["name"].tolist() == holes["name"].tolist()
    np.testing.assert_allclose(filled.iloc[:, 1:].to_numpy(dtype=float), truth, atol=1e-5)


def test_environments_are_a_column(monkeypatch, capsys, table):
    _, holes, folder = table
    holes["site"] = ["a", "b"] * 15
    holes.loc[holes.site == "b", "c3"] += 100
    holes.to_csv(folder / "data.csv", index=False)
    options = ("--out", folder / "filled.csv", "--ignore", "name", "--environments", "site")
    assert call(monkeypatch, capsys, "impute", folder / "data.csv", *options)[0] == 0
    filled = pd.read_csv(folder / "filled.csv")
    assert ((filled.c3 > 50) == (holes.site == "b")).all() and not filled.isna().any(axis=None)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a\nx\ny\n", (), "no column is left to fill"),
        ("a,b\n" + "1,2\n" * 20 + "l,2\n", (), "column 'a' has 'l' in row 21, and 20 of its 21 cells are numbers"),
        ("a,b\n1,inf\n2,3\n", (), "column 'b' holds inf in row 1"),
        ("a,b\n1,2\n", ("--depth", "deep"), "--depth must be auto or a number"),
        ("a,b\n1,2\n", ("--offsets", "maybe"), "unknown --offsets 'maybe'"),
        ("a,b\n1,2\n", ("--intervals", "x.csv", "--coverage", "1.5"), "--coverage must be"),
        ("a,b\n1,2\n", ("--ignore", "aa"), "unknown column 'aa': did you mean 'a'?"),
    ],
)
def test_bad_tables_are_one_sentence(monkeypatch, capsys, tmp_path, text, arguments, message):
    (tmp_path / "data.csv").write_text(text)
    out = tmp_path / "out.csv"
    status, _, wrong = call(monkeypatch, capsys, "impute", tmp_path / "data.csv", "--out", out, *arguments)
    assert status == 2 and message in wrong and len(wrong.strip().splitlines()) == 1 and not out.exists()


@pytest.fixture
def mixed(tmp_path):
    """Numbers in different units, an ordered category, a category and a date that all follow one hidden number."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal(240)
    noisy = lambda: z + 0.25 * rng.standard_normal(240)  # noqa: E731
    frame = pd.DataFrame({f"n{j}": 10.0**j * noisy() for j in range(6)})
    frame["size"] = np.array(["S", "M", "L"])[np.digitize(noisy(), [-0.5, 0.5])]
    frame["kind"] = np.where(noisy() < 0, "ash", "oak")
    frame["day"] = (pd.Timestamp("2024-06-01") + pd.to_timedelta((100 * noisy()).round(), unit="D")).strftime(
        "%Y-%m-%d"
    )
    holes = frame.mask(rng.random(frame.shape) < 0.2)
    holes["id"] = [f"tree {i}" for i in range(240)]
    holes.to_csv(tmp_path / "mixed.csv", index=False, sep=";", decimal=",")
    return frame, holes, tmp_path


def test_categories_orders_and_dates_are_filled_with_intervals(monkeypatch, capsys, mixed):
    frame, holes, folder = mixed
    out, listed = folder / "filled.csv", folder / "cells.csv"
    options = ("--out", out, "--intervals", listed, "--ordered", "size=S<M<L")
    status, said, _ = call(monkeypatch, capsys, "impute", folder / "mixed.csv", *options)
    assert status == 0 and "id holds 240 different words" in said and "--decimal ','" in said
    assert f"Each with an interval of 90% in {listed}." in said and "most common" in said
    filled, cells = pd.read_csv(out), pd.read_csv(listed)
    empty = holes.isna().to_numpy()[:, :-1]
    assert not filled.isna().any(axis=None) and len(cells) == empty.sum() and filled["id"].equals(holes["id"])
    right = {name: np.mean((filled[name] == frame[name])[holes[name].isna()]) for name in ("size", "kind")}
    assert right["size"] > 0.6 and right["kind"] > 0.75  # most common: about 0.4 and 0.5
    days = [pd.to_datetime(x["day"][holes["day"].isna()]) for x in (filled, frame)]
    assert np.abs((days[0] - days[1]).dt.days).mean() < 50  # the deviation of a column is 100 days
    truth = frame.to_numpy()[cells.row - 1, cells.column.map(list(frame).index)]
    inside = {
        "kind": [t in levels.split("|") for t, levels in zip(truth, cells.levels.fillna(""), strict=True)],
        "size": [
            "SML".find(low) <= "SML".find(t) <= "SML".find(high) if c == "size" else False
            for c, t, low, high in zip(cells.column, truth, cells.low, cells.high, strict=True)
        ],
    }
    for name, covered in inside.items():
        assert np.mean(np.array(covered)[cells.column == name]) > 0.8


def test_trees_are_said_to_win_on_a_nonlinear_table(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (150, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 0] ** 2, "d": np.abs(x[:, 1]), "e": x[:, 0] * x[:, 1]})
    frame["f"] = np.cos(2 * x[:, 0])
    frame.mask(rng.random(frame.shape) < 0.1).to_csv(tmp_path / "curved.csv", index=False)
    options = ("--out", tmp_path / "filled.csv", "--compare")
    status, said, _ = call(monkeypatch, capsys, "impute", tmp_path / "curved.csv", *options)
    assert status == 0 and "Trees are better here" in said


def test_counts_are_filled_with_counts_and_nothing_is_filled_below_zero(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    size = rng.gamma(1.0, 2.0, 300)
    table = pd.DataFrame(
        {
            "visits": rng.poisson(size),
            "cost": 100 * size * rng.gamma(4.0, 0.25, 300),
            "stays": rng.poisson(0.3 * size),
            "change": size * rng.standard_normal(300),
        }
    )
    holes = table.mask(rng.random(table.shape) < 0.2)
    holes.to_csv(tmp_path / "holes.csv", index=False)
    out, listed = tmp_path / "out.csv", tmp_path / "cells.csv"
    options = ("--out", out, "--intervals", listed, "--coverage", "0.8")
    code, *_ = call(monkeypatch, capsys, "impute", tmp_path / "holes.csv", *options)
    filled, cells = pd.read_csv(out), pd.read_csv(listed)
    assert code == 0 and filled.visits.dtype.kind == filled.stays.dtype.kind == "i"  # 3 is written as 3, not as 3.0
    assert (filled[["visits", "cost", "stays"]] >= 0).all(axis=None)
    assert (cells.low[cells.column != "change"] >= 0).all() and (cells.low[cells.column == "change"] < 0).any()
    np.testing.assert_array_equal(filled.where(holes.notna()), holes)
    truth = table.to_numpy()[cells.row - 1, table.columns.get_indexer(cells.column)]
    assert 0.75 < ((cells.low <= truth) & (truth <= cells.high)).mean() < 0.87


def test_notes_count_rows_as_the_list_of_cells_does(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.standard_normal((60, 4)) * [1, 100, 1, 1], columns=list("abcd"))
    table.loc[6, "c"], table.loc[3, "a"] = 1e6, np.nan  # the seventh row of the file
    table.to_csv(tmp_path / "table.csv", index=False)
    _, printed, _ = call(monkeypatch, capsys, "impute", tmp_path / "table.csv", "--out", tmp_path / "out.csv")
    assert "1e+06 in row 7, column c" in printed


def test_the_error_of_counts_is_that_of_the_counts_that_are_filled_in():
    rng = np.random.default_rng(3)
    x = rng.standard_normal(400)
    frame = pd.DataFrame({"x": x, "z": x + rng.standard_normal(400), "few": rng.poisson(0.6 * np.exp(0.5 * x))})
    filled = fill_table(frame.mask(rng.random(frame.shape) < 0.1), imputer=LowRankImputer(random_state=0))
    rows, columns, values = filled.imputer.unseen_predictions()
    mine = columns == 2
    rounded = np.maximum(np.round(values[mine]), 0)
    expected = np.sqrt(np.mean((rounded - frame.few.to_numpy()[rows[mine]]) ** 2))
    quality = filled.quality().set_index("column")
    assert quality.error["few"] == pytest.approx(expected, rel=1e-12)
    assert quality.error["few"] > filled.imputer.column_errors_[2]  # rounding has a price, which is told
