"""Files that used to be misread without a word: each gives the numbers of the plain file, or is refused in one sentence."""

from __future__ import annotations

import html
import re

import numpy as np
import pandas as pd
import pytest

from checks import call
from gyrostat.errors import GyrostatError
from gyrostat.tables.fit_and_predict import rows_of_table
from gyrostat.tables.saved_model import Column, SavedModel
from gyrostat.tables.table_files import read_table
from gyrostat.tables.text_files import FileFormat

RANDOM = np.random.default_rng(3)
PLAIN = pd.DataFrame(
    {
        "dose": RANDOM.normal(2000, 500, 60).round(2),
        "share": RANDOM.uniform(-0.9, 0.9, 60).round(3),
        "age": RANDOM.integers(18, 90, 60),
        "site": np.repeat(["Oslo", "Bern", "Cork"], 20),
    }
)


def german(numbers, thousands="."):
    return [f"{x:,.2f}".replace(",", "_").replace(".", ",").replace("_", thousands) for x in numbers]


def written(tmp_path, content, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


TABLE = PLAIN.to_csv(index=False)
LINES = TABLE.splitlines()
SAME = {
    "a column with other marks than the rest": PLAIN.assign(dose=german(PLAIN.dose)).to_csv(index=False, sep=";"),
    "euros": PLAIN.assign(dose=[f"{x} €" for x in german(PLAIN.dose)]).to_csv(index=False, sep=";"),
    "a unit": PLAIN.assign(dose=[f"{x:.2f} kg" for x in PLAIN.dose]).to_csv(index=False),
    "per cent": PLAIN.assign(share=[f"{x:.3f}%" for x in PLAIN.share]).to_csv(index=False),
    "a typographic apostrophe": PLAIN.assign(dose=[f"{x:,.2f}".replace(",", "\u2019") for x in PLAIN.dose]).to_csv(index=False),
    "a typographic minus": PLAIN.assign(share=[f"{x:.3f}".replace("-", "\u2212") for x in PLAIN.share]).to_csv(index=False),
    "negative numbers in brackets": PLAIN.assign(
        share=[f"({-x:.3f})" if x < 0 else f"{x:.3f}" for x in PLAIN.share]
    ).to_csv(index=False),
    "a title with separators": "Export of May,,,\n,,,\n" + TABLE,
    "a declared separator": "sep=;\n" + PLAIN.to_csv(index=False, sep=";"),
    "separators at the end of rows": "\n".join([LINES[0], *(f"{line}," for line in LINES[1:])]),
    "names of rows": "\n".join([LINES[0], *(f'"r{i}",{line}' for i, line in enumerate(LINES[1:]))]),
    "numbers of shuffled rows": PLAIN.set_axis(RANDOM.permutation(60)).to_csv(),
    "blanks between cells": PLAIN.to_csv(index=False, sep=" "),
    "two bytes without a mark": TABLE.encode("utf-16-le"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_the_numbers_are_those_of_the_plain_file(tmp_path, name):
    frame = read_table(written(tmp_path, SAME[name]))
    assert list(frame) == list(PLAIN)
    for column in ("dose", "share", "age"):
        np.testing.assert_allclose(frame[column].astype(float), PLAIN[column], rtol=1e-12)


def test_three_digits_after_a_mark_are_decimals_or_thousands_by_what_else_is_known(tmp_path):
    path = written(tmp_path, "a;b\n0,505;1\n1,234;2\n")
    assert read_table(path).a.tolist() == [0.505, 1.234]  # no thousands begin with a zero
    path = written(tmp_path, "a;b\n1.234.567;1\n890.123;2\n")
    assert read_table(path).a.tolist() == [1234567, 890123]
    path = written(tmp_path, "a;b\n1.234;1\n890;2\n")
    (_, note) = read_table(path).attrs["notes"]
    assert note == "a: 1.234 was read as a number with decimals; if it is 1234, use --thousands '.'."
    assert read_table(path, FileFormat(thousands=".")).a.tolist() == [1234, 890]


REFUSED = {
    "decimal commas between commas": (
        "\n".join([LINES[0], *(line.replace(".", ",", 1) for line in LINES[1:])]),
        "the line of names has 4 cells, and most lines below it have 5: put quotes",
    ),
    "a line with more cells": (TABLE + "1,2,3,4,5,6\n", "line 62 of .* has 6 cells, and those above it have 4"),
    "no names": ("\n".join(LINES[1:]), "the first line of .* holds numbers such as"),
    "an archive": (b"PK\x03\x04" + bytes(200), "is not text but a zip archive or a spreadsheet"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_understood_is_refused(tmp_path, name):
    content, message = REFUSED[name]
    with pytest.raises(GyrostatError, match=message):
        read_table(written(tmp_path, content))


def test_labels_are_not_numbers(tmp_path):
    table = pd.DataFrame(
        {"zip": ["01002", "94110"], "room": ["1a", "2b"], "quarter": ["Q1", "Q2"], "rank": ["1st", "2nd"]}
    )
    frame = read_table(written(tmp_path, table.to_csv(index=False)))
    assert frame.to_dict("list") == table.to_dict("list")


# --- notes on the rows ----------------------------------------------------------------------------


def rows_of(frame, **options):
    frame.attrs["notes"] = []
    return rows_of_table(frame, "y", "site", "", "", "error", **options)


def sites(rows=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"site": np.repeat(["a", "b", "c"], rows // 3), "x": rng.standard_normal(rows)})
    return frame.assign(y=frame.x + rng.standard_normal(rows))


def coded(frame):
    return frame.assign(x=np.where(np.arange(120) % 10 == 0, 999.0, frame.x))


def summed(frame):
    part = np.random.default_rng(1).standard_normal(120)
    return frame.assign(first=part, second=frame.y - part)


def shouted(frame):
    return frame.assign(site=[s.upper() if i % 2 else s for i, s in enumerate(frame.site)])


def flattened(frame):
    return pd.concat([frame, frame[:40].assign(site="flat", y=1.0)])


NOTED = {
    "x is 999 in 12 rows, and from .* if 999 stands for a missing value, use --empty x=999": coded,
    "y is computed from first, second without any error": summed,
    "id only numbers the rows: leave it out with --drop id": lambda f: f.assign(id=np.random.default_rng(2).permutation(120)),
    "20 rows are exact copies of others .first: row 121": lambda f: pd.concat([f, f[:20]]),
    "site: 'A' and 'a' differ only in capitals": shouted,
    "y is the same in all rows of 1 environment, .* was left out: flat": flattened,
    "day holds dates .* read with the day first, as 01/02/2024 does not tell": lambda f: f.assign(
        day=[f"{1 + i % 12:02d}/{2 + i % 2:02d}/2024" for i in range(120)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", NOTED)
def test_what_looks_wrong_in_rows_is_told(message):
    import re

    notes = rows_of(NOTED[message](sites())).notes
    assert any(re.search(message, note) for note in notes), notes
    assert not any(re.search(message, note) for note in rows_of(sites()).notes)


def test_a_column_that_counts_the_rows_is_no_feature():
    frame = sites().assign(id=np.arange(1, 121))
    rows = rows_of(frame)
    assert list(rows.X) == ["x"] and "id counts the rows of the file and was left out" in rows.notes[0]
    assert list(rows_of_table(frame, "y", "site", "id,x", "", "error").X) == ["id", "x"]  # asked for


def test_the_advice_on_small_sites_is_one_that_helps():
    few = sites(15).assign(a=0.1 * np.arange(15) ** 2, b=np.sin(np.arange(15)))
    with pytest.raises(GyrostatError, match=r"at least 7 rows \(for 3 features\): use fewer features"):
        rows_of(few)  # a smaller --min-rows would change nothing
    with pytest.raises(GyrostatError, match="at least 30 rows: use a smaller --min-rows"):
        rows_of(sites(60), min_rows=30)


def test_blanks_after_the_name_of_a_site_make_no_other_site():
    frame = sites()
    rows = rows_of(frame.assign(site=[s + " " * (i % 2) for i, s in enumerate(frame.site)]))
    assert sorted(set(rows.labels)) == ["a", "b", "c"]


def test_values_that_stand_for_empty_cells_can_be_given(tmp_path):
    path = written(tmp_path, coded(sites()).to_csv(index=False))
    frame = read_table(path, FileFormat(empty=("x=999",)))
    assert frame.x.isna().sum() == 12 and frame.attrs["notes"] == ["12 cells of x hold 999 and count as empty."]
    for wrong, message in (
        ("x", "must name a column and a value"),
        ("z=1", "--empty column 'z'"),
        ("x=5", "in no cell"),
    ):
        with pytest.raises(GyrostatError, match=message):
            read_table(path, FileFormat(empty=(wrong,)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.assign(y=[f"word {i}" for i in range(120)]),
            "target 'y' must hold numbers, or two words; it holds 120",
        ),
        (lambda f: f.assign(y=f.y.mask(f.y > 1)), "use --missing drop to leave those rows out[.]$"),
        (
            lambda f: f.assign(patient=[f"p{i // 2}" for i in range(120)]),
            "or use --cluster patient if rows with the same",
        ),
        (
            lambda f: f.assign(day=["2024-01-31", "31.01.2024"] * 60),
            "'31.01.2024' in row 2 is not one, or is written in another way than '2024-01-31' in row 1",
        ),
    ],
)
def test_refusals_say_what_helps(change, message):
    with pytest.raises(GyrostatError, match=message):
        rows_of(change(sites()))


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "style", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%d %b %Y", "%B %d, %Y", "%Y%m%d", "%d-%b-%y"]
)
def test_dates_are_days(style):
    days = pd.date_range("2023-11-20", periods=60, freq="D")
    values = pd.Series(days.strftime(style), name="day")
    rows = rows_of(sites(60).assign(day=values.astype(int) if style == "%Y%m%d" else values))
    np.testing.assert_allclose(rows.X["day"], (days - pd.Timestamp(0)).days)


def test_a_model_reads_dates_as_those_that_it_was_fitted_to(tmp_path, capsys, monkeypatch):
    days = pd.date_range("2024-01-01", periods=120, freq="D")  # the 13th of a month tells that the month is first
    frame = sites().assign(day=days.strftime("%m/%d/%Y"))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = ("--target", "y", "--environment", "site", "--out", str(tmp_path / "fit"))
    assert call(monkeypatch, capsys, "fit", tmp_path / "rows.csv", *options)[0] == 0
    model = SavedModel.read(tmp_path / "fit" / "model.json")
    (column,) = (c for c in model.columns if c.name == "day")
    assert column.format == "%m/%d/%Y"
    early = frame[frame.day.str[3:5] <= "12"]  # these could be read with the day first
    np.testing.assert_allclose(model.predict(early), model.predict(frame)[early.index], rtol=1e-12)


def test_a_model_without_a_format_reads_dates_as_before():
    values = pd.DataFrame({"day": ["2024-01-31", "2024-02-01"]})
    np.testing.assert_allclose(Column("day", None, "date").numbers(values)[:, 0], [19753, 19754])


# --- what is said about a fit ---------------------------------------------------------------------


def fitted_page(frame, tmp_path, capsys, monkeypatch):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = ("--target", "y", "--environment", "site", "--out", tmp_path / "fit")
    _, printed, _ = call(monkeypatch, capsys, "fit", tmp_path / "rows.csv", *options)
    return printed, html.unescape(re.sub("</?span[^>]*>", "", (tmp_path / "fit" / "summary.html").read_text()))


def test_the_page_has_the_notes_and_the_advice_that_were_printed(tmp_path, capsys, monkeypatch):
    printed, page = fitted_page(coded(sites()), tmp_path, capsys, monkeypatch)
    (note,) = (line for line in printed.splitlines() if "--empty x=999" in line)
    advice = [line for line in printed.splitlines() if line.startswith("For ")]
    assert len(advice) == 2 and all(line.strip() in page for line in (note, *advice))


def test_errors_of_arithmetic_make_no_method_better_than_another(tmp_path, capsys, monkeypatch):
    printed, _ = fitted_page(summed(sites()), tmp_path, capsys, monkeypatch)
    assert printed.count("within one percent of that") == 2


def test_predictions_that_are_worse_than_the_mean_are_said_to_be(tmp_path, capsys, monkeypatch):
    fitted_page(sites(), tmp_path, capsys, monkeypatch)
    frame = sites()
    for sign, worse in ((1, False), (-1, True)):
        frame.assign(x=sign * frame.x).to_csv(tmp_path / "new.csv", index=False)
        _, printed, _ = call(
            monkeypatch, capsys, "predict", tmp_path / "fit", tmp_path / "new.csv", "--out", tmp_path / "p.csv"
        )
        assert ("The mean of these rows would be a better prediction." in printed) == worse
