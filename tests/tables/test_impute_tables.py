"""``gyrostat impute``: files in, files out, one sentence for what is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from checks import call


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


def test_every_filled_cell_may_have_an_interval(monkeypatch, capsys, table):
    truth, holes, folder = table
    rng = np.random.default_rng(1)
    names = [f"c{j}" for j in range(12)]
    holes[names] += 0.1 * rng.standard_normal(truth.shape)
    holes.to_csv(folder / "data.csv", index=False)
    out, listed = folder / "filled.csv", folder / "cells.csv"
    options = ("--out", out, "--ignore", "name", "--intervals", listed, "--coverage", "0.8")
    status, said, _ = call(monkeypatch, capsys, "impute", folder / "data.csv", *options)
    found, filled = pd.read_csv(listed), pd.read_csv(out)
    assert status == 0 and f"Each with an interval of 80% in {listed}." in said
    assert len(found) == holes[names].isna().sum().sum() and (found.low < found.value).all()
    at = found.row - 1, found.column.map(names.index)
    np.testing.assert_allclose(filled[names].to_numpy()[at], found.value)
    inside = (found.low <= truth[at]) & (truth[at] <= found.high)
    assert inside.mean() > 0.7  # at least .8 of the noisy values, on average over tables
    status, _, wrong = call(monkeypatch, capsys, "impute", folder / "data.csv", *options[:-1], "1.5")
    assert status == 2 and "--coverage must be" in wrong


def test_environments_are_a_column_and_empty_columns_are_named(monkeypatch, capsys, table):
    _, holes, folder = table
    holes["site"], holes["c3"] = ["a", "b"] * 15, np.nan
    holes.to_csv(folder / "data.csv", index=False)
    out = folder / "filled.csv"
    options = ("--ignore", "name", "--environments", "site")
    status, said, _ = call(monkeypatch, capsys, "impute", folder / "data.csv", "--out", out, *options)
    assert status == 0 and "columns c3" in said
    assert not pd.read_csv(out).isna().any(axis=None)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a,b\nx,1\ny,2\n", (), "column 'a' holds 'x', which is not a number"),
        ("a,b\n1,inf\n2,3\n", (), "column 'b' holds infinite values"),
        ("a,b\n", (), "has no rows"),
        ("", (), "cannot be read as .csv"),
        ("a,b\n,\n,\n", (), "no observed cell"),
        ("a,b\n1,2\n", ("--ignore", "aa"), "unknown column 'aa': did you mean 'a'?"),
        ("a\n1\n", ("--ignore", "a"), "no column is left"),
    ],
)
def test_bad_tables_are_one_sentence(monkeypatch, capsys, tmp_path, text, arguments, message):
    (tmp_path / "data.csv").write_text(text)
    out = tmp_path / "out.csv"
    status, _, wrong = call(monkeypatch, capsys, "impute", tmp_path / "data.csv", "--out", out, *arguments)
    assert status == 2 and message in wrong and len(wrong.strip().splitlines()) == 1 and not out.exists()


@pytest.mark.parametrize(
    ("source", "out", "message"), [("none.csv", "x.csv", "there is no file"), ("a.xls", "x.csv", "must end in .csv")]
)
def test_bad_files_are_one_sentence(monkeypatch, capsys, tmp_path, source, out, message):
    status, _, wrong = call(monkeypatch, capsys, "impute", tmp_path / source, "--out", tmp_path / out)
    assert status == 2 and message in wrong
