"""Ordinary files that were read, or filled, wrongly without a word."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from gyrostat.errors import GyrostatError
from gyrostat.estimators import LowRankImputer
from gyrostat.tables.fit_and_predict import fit, rows_of_table
from gyrostat.tables.impute import fill_table, impute
from gyrostat.tables.table_files import read_table
from gyrostat.tables.text_files import FileFormat

N = 120


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    f = rng.standard_normal((N, 2))
    frame = pd.DataFrame(
        10 + f @ rng.standard_normal((2, 3)) + 0.2 * rng.standard_normal((N, 3)), columns=["a", "b", "c"]
    )
    return frame.round(2).assign(site=np.repeat(["Oslo", "Bern", "Cork"], N // 3), f=f[:, 0].round(3))


def notes(path: Path) -> str:
    return " ".join(rows_of_table(read_table(path), "a", "site", "", "", "error").notes)


def filled(path: Path, **options) -> tuple[pd.DataFrame, str]:
    out, text = path.with_name("out.csv"), io.StringIO()
    console = Console(file=text, width=500)
    impute(path, out, console, ignore=[], environments=None, options={"random_state": 0}, **options)
    return pd.read_csv(out, dtype=str, keep_default_na=False), text.getvalue()


def test_none_is_a_level_of_a_category(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame["pain"] = np.array(["None", "Mild", "Severe"])[np.digitize(frame.f, [-0.5, 0.7])]
    expected = frame.pain.copy()
    frame.loc[::10, "pain"] = ""
    frame.to_csv(path, index=False)
    done, said = filled(path)
    kept = np.arange(N) % 10 != 0
    assert (done.pain[kept] == expected[kept]).all()
    assert "None < Mild < Severe" in said and "--empty pain=None" in said
    assert read_table(path).pain.isna().sum() == N / 10


def test_na_in_a_column_of_words_is_told_of(tmp_path):
    path = tmp_path / "t.csv"
    table().assign(site=np.repeat(["NA", "EU", "AS"], N // 3)).to_csv(path, index=False)
    assert any("40 cells of site hold 'NA' and count as empty" in note for note in read_table(path).attrs["notes"])


@pytest.mark.parametrize(("name", "separator"), [("t.tsv", "\t"), ("t.csv", ",")])
def test_points_between_thousands_are_told_of_in_every_file(tmp_path, name, separator):
    frame, path = table(), tmp_path / name
    frame["people"] = [f"{round(np.exp(7 + x)):,}".replace(",", ".") for x in frame.f]
    frame.to_csv(path, index=False, sep=separator)
    assert "--thousands '.'" in notes(path)
    table().assign(x=[f"{v:.3f}" for v in 1 + table().f.abs()]).to_csv(path, index=False, sep=separator)
    assert "--thousands" not in notes(path)


def test_a_word_among_few_different_decimals_is_a_bad_cell(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame["dose"] = np.resize(["0,5", "1", "1,5", "2"], N)
    frame.loc[7, "dose"] = "hoch"
    frame.to_csv(path, index=False, sep=";", decimal=",")
    with pytest.raises(GyrostatError, match="'hoch' in row 8"):
        notes(path)


def test_numbers_without_the_unit_of_their_column_are_told_of(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame["rate"] = [f"{30 + 9 * x:.0f}%" for x in frame.f]
    frame.loc[::20, "rate"] = "0.31"
    frame.to_csv(path, index=False)
    assert "6 of them have none" in notes(path)


def test_values_below_a_limit_are_no_ordered_category(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame["crp"] = [f"{x:.1f}" if x > 2 else "<2" for x in np.exp(1 + frame.f)]
    frame.to_csv(path, index=False)
    with pytest.raises(GyrostatError, match=r"'<2' in .* below or above a limit"):
        notes(path)
    frame.assign(crp=np.resize(["<18", "18-39", "40+"], N)).to_csv(path, index=False)
    assert "<18 < 18-39 < 40+" in notes(path)


def test_years_of_two_digits_are_told_of(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    born = pd.Timestamp("1955-06-15") + pd.to_timedelta((5000 * frame.f).round(), unit="D")
    frame.assign(born=born.dt.strftime("%d/%m/%y")).to_csv(path, index=False)
    assert "Years of two digits were read as" in notes(path)


@pytest.mark.parametrize("written", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y-%m-%d %H:%M", "%m/%d/%Y %I:%M %p"])
def test_filled_dates_are_written_as_the_others(tmp_path, written):
    frame, path = table(), tmp_path / "t.csv"
    day = pd.Timestamp("2023-06-15 10:30") + pd.to_timedelta(60 * frame.f, unit="D")
    frame["visit"] = day.dt.strftime(written)
    frame.loc[::10, "visit"] = ""
    frame.to_csv(path, index=False)
    done, _ = filled(path)
    again = pd.to_datetime(done.visit, format=written)
    assert (again - day).abs().max() < pd.Timedelta(days=120) and done.visit.str.len().nunique() == 1


def test_impute_tells_of_dates_with_two_readings(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame["visit"] = np.resize(["01/02/2023", "03/04/2023", "05/06/2023", ""], N)
    frame.to_csv(path, index=False)
    assert "day first" in filled(path)[1]


def test_dates_of_a_time_zone_are_filled(tmp_path):
    frame, path = table(), tmp_path / "t.parquet"
    frame["when"] = pd.Timestamp("2023-06-15", tz="Europe/Oslo") + pd.to_timedelta((60 * frame.f).round(), unit="D")
    frame.loc[::10, "when"] = pd.NaT
    frame.to_parquet(path)
    assert filled(path)[0].when.str.match(r"202\d-\d\d-\d\d").all()


def test_impute_tells_of_codes_remarks_and_two_ways_to_say_yes(tmp_path):
    frame, path = table()[["site", "a", "b", "c", "f"]], tmp_path / "t.csv"
    frame["age"] = (45 + 9 * frame.f).round().where(np.arange(N) % 15 > 0, -9)
    frame["smoker"] = np.where(
        np.arange(N) % 3 == 0, np.where(frame.f > 0, "1", "0"), np.where(frame.f > 0, "yes", "no")
    )
    frame.loc[5, "a"] = np.nan
    path.write_text(frame.to_csv(index=False) + "\nSource: Statistics office\n")
    said = filled(path)[1]
    assert "--empty age=-9" in said and "'yes' and '1' count as different" in said
    assert "row 121) holds 'Source: Statistics office' and nothing else" in said


def test_codes_of_three_digits_keep_their_zeros(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame.insert(0, "patient", [f"{i:03d}" for i in np.random.default_rng(0).permutation(N)])
    frame.loc[::9, "a"] = np.nan
    frame.to_csv(path, index=False)
    assert (filled(path)[0].patient == frame.patient).all()


def test_sites_that_differ_in_blanks_are_told_of(tmp_path):
    path = tmp_path / "t.csv"
    table().assign(site=np.repeat(["New York", "New\u00a0York", "Bern"], N // 3)).to_csv(path, index=False)
    assert "differ only in blanks or accents" in notes(path)


def test_labels_that_are_one_number_stay_different(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame.assign(site=np.repeat(["1.1", "1.2", "1.10"], N // 3)).to_csv(path, index=False)
    said = io.StringIO()
    fit(path, target="a", environment="site", out=tmp_path / "out", console=Console(file=said, width=500), drop="b")
    assert "site has labels that differ as words only" in said.getvalue() and "in 3 environments" in said.getvalue()
    frame.assign(site=np.repeat([1, 2, 10], N // 3)).to_csv(path, index=False)
    assert pd.api.types.is_integer_dtype(read_table(path, FileFormat(labels=("site",))).site)


def test_a_column_of_a_few_numbers_is_not_filled(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame["rare"] = pd.Series(dtype=float)
    frame.loc[3, "rare"] = 3.5
    frame.loc[5, "a"] = np.nan
    frame.to_csv(path, index=False)
    done, said = filled(path)
    assert done.rare.tolist() == ["3.5" if i == 3 else "" for i in range(N)]
    assert "rare holds 1 number, too few to fill its empty cells from" in said and "a" in said


def test_identifiers_of_many_digits_are_not_rounded(tmp_path):
    frame, path = table(), tmp_path / "t.csv"
    frame["patient"] = [str(515_000_000_000_000_001 + 7 * i) for i in range(N)]
    frame.loc[4, "patient"] = frame.loc[5, "a"] = np.nan
    frame.to_csv(path, index=False)
    kept = np.arange(N) != 4
    assert (filled(path)[0].patient[kept] == frame.patient[kept]).all()


def test_a_level_of_a_single_row_raises_no_alarm():
    """A fold without that row has an indicator of zeros, which was filled with anything."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        f = rng.standard_normal((240, 2))
        X = 10 + 3 * (f @ rng.standard_normal((2, 5)) + 0.3 * rng.standard_normal((240, 5)))
        frame = pd.DataFrame(np.where(rng.random(X.shape) < 0.1, np.nan, X), columns=list("abcde"))
        frame["site"] = np.repeat(["A", "B", "C", "D"], 60)
        frame.loc[rng.integers(240), "site"] = "Total"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fill_table(frame, imputer=LowRankImputer(random_state=0)).imputer.relative_error_ < 0.95
