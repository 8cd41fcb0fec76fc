"""Files as people have them: separators, decimal commas, encodings, names, dates, orders, and what is told about them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from checks import call
from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor
from gyrostat.tables.column_values import as_numbers
from gyrostat.tables.fit_and_predict import rows_of_table
from gyrostat.tables.rows_on_disk import rows_on_disk
from gyrostat.tables.saved_model import Column, SavedModel, model_columns
from gyrostat.tables.table_files import read_table
from gyrostat.tables.table_parts import table_parts
from gyrostat.tables.text_files import FileFormat

PLAIN = pd.DataFrame({"site": ["Ærø", "Kiel", "Kiel"], "dose": [1234.5, 2.25, -3.0], "n": [1, 2, 3]})


def text(separator: str, decimal: str, thousands: str = "") -> str:
    lines = [separator.join(["site", "dose", "n"])]
    for row in PLAIN.itertuples():
        dose = f"{row.dose:,.2f}".replace(",", "_").replace(".", decimal).replace("_", thousands)
        lines.append(separator.join([row.site, f'"{dose}"' if separator in dose else dose, str(row.n)]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize(
    ("separator", "decimal", "thousands"),
    [
        (",", ".", ""),
        (";", ",", ""),
        (";", ",", "."),
        ("\t", ",", ""),
        ("|", ".", ","),
        (",", ".", ","),
        (";", ".", "'"),
    ],
)
def test_every_way_of_writing_is_the_same_table(tmp_path, encoding, separator, decimal, thousands):
    path = tmp_path / "rows.csv"
    path.write_text(text(separator, decimal, thousands), encoding=encoding)
    frame = read_table(path)
    pd.testing.assert_frame_equal(frame, PLAIN)
    told = " ".join(frame.attrs["notes"])
    assert ("--separator" in told) == (separator != ",") and ("--decimal" in told) == (decimal != ".")
    assert ("--thousands" in told) == bool(thousands) and ("--encoding" in told) == (encoding in ("cp1252", "utf-16"))


def test_what_is_detected_can_be_overridden(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a;b\n1,234;2\n5,678;3\n")
    assert read_table(path).a.tolist() == [1.234, 5.678]  # semicolons go with decimal commas
    assert read_table(path, FileFormat(decimal=".")).a.tolist() == [1234.0, 5678.0]
    for wrong in ({"separator": "ab"}, {"encoding": "utf-99"}):
        with pytest.raises(GyrostatError, match=f"--{next(iter(wrong))}"):
            FileFormat(**wrong)


def test_a_bad_cell_is_named_also_among_decimal_commas(tmp_path):
    path = tmp_path / "rows.csv"
    cells = [f"1.{i:03d},{i:02d}" for i in range(20)]
    path.write_text("a;b\n" + "".join(f"{cell};1\n" for cell in [*cells, "l4,2", "n.a."]))
    with pytest.raises(GyrostatError, match="column 'a' has 'l4,2' in row 21, and 20 of its 21 cells are numbers"):
        as_numbers(read_table(path).a, "--drop a")


def test_a_number_of_the_row_is_left_out_and_repeated_names_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    PLAIN.to_csv(path)
    frame = read_table(path)
    assert list(frame) == list(PLAIN) and "names the rows" in frame.attrs["notes"][0]
    path.write_text("y,sex,site,y\n1,f,a,2\n")
    with pytest.raises(GyrostatError, match="2 columns are called 'y'"):
        read_table(path)


def sites(rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"site": np.repeat(["a", "b", "c"], rows // 3), "x": rng.standard_normal(rows)})
    return frame.assign(y=frame.x + rng.standard_normal(rows))


def rows_of(frame: pd.DataFrame, **options):
    frame.attrs["notes"] = []
    return rows_of_table(frame, "y", "site", "", "", "error", **options)


def test_tiny_environments_and_constant_columns_are_left_out_and_told():
    frame = pd.concat([sites(), pd.DataFrame({"site": ["tiny"] * 2, "x": [0.0, 1.0], "y": [0.0, 1.0]})])
    rows = rows_of(frame.assign(unit="mg"))
    assert len(rows.y) == 120 and list(rows.X) == ["x"]
    assert rows.notes[0] == "unit has only one value and was left out."
    assert rows.notes[1].startswith("1 of 4 environments has fewer than 5 rows (for 1 feature) and was left out with")
    assert len(rows_of(frame, min_rows=1).y) == 120  # never fewer than the features require


def test_leakage_is_told():
    frame = sites()
    assert not rows_of(frame).notes
    (note,) = rows_of(frame.assign(euros=100 * frame.y + 3)).notes
    assert note.startswith("euros is nearly y (correlation 1.0000)") and note.endswith("--drop euros.")


def test_words_for_missing_numbers_are_empty_cells():
    frame = sites()
    frame["x"] = frame.x.map(str)
    frame.loc[3, "x"] = "n.a."
    frame.attrs["notes"] = []
    rows = rows_of_table(frame, "y", "site", "", "", "drop")
    assert len(rows.y) == 119 and rows.notes[0] == "1 cell of x holds a word for a missing value and counts as empty."


def test_orders_are_given_known_or_those_of_the_column(tmp_path):
    frame = sites().assign(
        size=np.tile(["low", "high", "medium"], 40),
        grade=np.tile(["B", "A"], 60),
        day=pd.date_range("2024-01-01", periods=120),
    )
    frame["band"] = pd.Categorical(np.tile(["z", "a"], 60), categories=["z", "a"], ordered=True)
    rows = rows_of(frame, ordered=["grade=B<A"])
    assert {c.name: c.kind for c in rows.columns} == {
        "x": "number",
        "size": "ordered",
        "grade": "ordered",
        "day": "date",
        "band": "ordered",
    }
    assert rows.X["size"][:3].tolist() == [0.0, 2.0, 1.0] and rows.X["band"][:2].tolist() == [0.0, 1.0]
    assert (
        "size has an order: low < medium < high." in rows.notes and "day holds dates and counts as days." in rows.notes
    )
    model = SavedModel("linear", "y", "site", rows.columns, [0.0] * 5, [1.0] * 5, 0.0, coefficients=[0, 1.0, 0, 0.1, 0])
    model.write(tmp_path / "model.json")
    again = SavedModel.read(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.columns == rows.columns and model_columns(frame, ["size"]) == [
        Column("size", ("low", "medium", "high"), "ordered")
    ]


@pytest.mark.parametrize("source", ["parquet", "dask"])
def test_rows_on_disk_give_the_same_model(tmp_path, source):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((900, 3)), columns=list("abc")).assign(
        sex=rng.choice(["f", "m"], 900), site=rng.choice(["u", "v", "w"], 900)
    )
    frame["y"] = frame.a + frame.b * frame.site.map({"u": 1, "v": -1, "w": 0.3}) + rng.standard_normal(900)
    frame.loc[7, "a"] = np.nan
    if source == "parquet":
        frame.to_parquet(tmp_path / "rows.parquet", row_group_size=70)
        parts = tmp_path / "rows.parquet"
    else:
        import dask.dataframe as dd

        parts = dd.from_pandas(frame, npartitions=7)
    whole = frame.dropna()
    X = whole[["a", "b", "c"]].assign(**{"sex=m": (whole.sex == "m").astype(float)})
    expected = InvariantLinearRegressor(random_state=0).fit(X, whole.y, environments=whole.site)
    with rows_on_disk(parts, target="y", environment="site", missing="drop", folder=tmp_path) as rows:
        assert list(rows.X) == list(X) and rows.notes == ("1 of 900 rows have missing values and were left out.",)
        np.testing.assert_array_equal(frame.y[rows.row_numbers - 1], rows.y)
        found = InvariantLinearRegressor(random_state=0).fit(rows.X, rows.y, environments=rows.labels)
        assert list(tmp_path.glob("gyrostat-rows-*"))
    assert not list(tmp_path.glob("gyrostat-rows-*")) and found.environments_ == expected.environments_
    np.testing.assert_array_equal(found.effects_, expected.effects_)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-12)
    table = table_parts(parts, target="y", environment="site", missing="drop")
    read = InvariantLinearRegressor(random_state=0).fit_parts(table)
    np.testing.assert_allclose(read.coef_, expected.coef_, rtol=1e-12)
    assert table.feature_names == list(X) and table.dropped == 1
    with pytest.raises(GyrostatError, match="row 8 has a missing value: use --missing drop"):
        rows_on_disk(parts, target="y", environment="site")


@pytest.mark.parametrize("more", [(), ("--in-parts",), ("--in-parts", "--family", "poisson")])
def test_the_row_that_is_named_is_that_of_the_file(tmp_path, capsys, monkeypatch, more):
    """Rows before it are left out for a missing value and for a site that is too small."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"site": np.tile(["u", "v"], 100), "x": rng.standard_normal(200)})
    frame["y"] = np.where(frame.site == "u", 50.0, 60.0) + frame.x + 0.1 * rng.standard_normal(200)
    frame.loc[[3, *range(60, 90), 120], "x"] = np.nan  # among them all rows of a part
    frame.loc[[10, 11], "site"] = "tiny"
    frame.loc[150, ["x", "y"]] = 6.0, 500.0
    frame["flat"] = 1.0
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=30)
    options = ("--target", "y", "--environment", "site", "--missing", "drop", "--out", tmp_path / "fit")
    status, text, _ = call(monkeypatch, capsys, "fit", tmp_path / "rows.parquet", *options, *more)
    assert status == 0 and "Row 151 alone moves the effect of x in u" in " ".join(text.split())
    for note in ("32 of 200 rows have missing values and were left out.", "flat has only one value", "rows: tiny"):
        assert note in text


def test_a_feature_of_sites_has_no_p_value_and_the_page_speaks_of_options(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"site": np.repeat(list("abcdefgh"), 50), "x": rng.standard_normal(400)})
    frame["income"] = frame.site.map(dict(zip("abcdefgh", rng.standard_normal(8), strict=True)))
    frame["y"] = frame.site.map(dict(zip("abcdefgh", (1, -1) * 4, strict=True))) * frame.x + frame.income
    frame["y"] += 0.1 * rng.standard_normal(400)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = ("--target", "y", "--environment", "site", "--out", tmp_path / "fit", "--by-feature")
    status, text, _ = call(monkeypatch, capsys, "fit", tmp_path / "rows.csv", *options)
    (line,) = [line for line in text.splitlines() if line.startswith("│income")]
    cells = [cell.strip() for cell in line.split("│")[1:-1]]
    assert status == 0 and cells[0] == "income" and cells[1] and cells[2:4] == ["", ""]
    call(monkeypatch, capsys, "fit", tmp_path / "rows.csv", *options, "--drop", "income")
    page = re.sub("</?span[^>]*>", "", (tmp_path / "fit" / "summary.html").read_text())  # of constant predictions
    assert "directions=" not in page and "purpose=" not in page and "(tolerance)" not in page
    assert "Allow more variation (--tolerance), or use gyrostat predict --purpose same-kind." in page
