"""Tables that are damaged, odd or enormous, through ``fit`` and ``impute``; the whole suite only (``make fuzz``)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz_command_line import asked

from fuzz_tally import FULL, Tally, cases

pytestmark = pytest.mark.skipif(not FULL, reason="a fit takes a second: make fuzz")
CELLS = [
    "",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1e308",
    "1e154",
    "1e-320",
    "x",
    "TRUE",
    "0x10",
    "1,5",
    '"',
    "\x00",
    "9" * 400,
    "é",
    "1_000",
]
HEADERS = [
    "y,sex,site,y",
    "y,,site,a",
    "y,site",
    "site,y,a,a",
    "y,site,a\n",
    "",
    "\ufeffy,site,a",
    "y;site;a",
    "y\tsite\ta",
    'y,"site,a',
    "y,site," + ",".join(f"c{i}" for i in range(300)),
]
FIT = ("fit", "t.csv", "--target", "y", "--environment", "site", "--out", "o")
IMPUTE = ("impute", "t.csv", "--out", "o.csv", "--ignore", "site")


def rows(header: str) -> list[list[str]]:
    width = max(1, header.count(",") + 1)
    return [[str((i * 7 + j * 3) % 11 / 3) if j != 1 else "uv"[i % 2] for j in range(width)] for i in range(24)]


def test_cells_and_headers(tmp_path, monkeypatch, tally: Tally):
    monkeypatch.chdir(tmp_path)

    @cases(small=1, full=150)
    @given(st.sampled_from(["y,site,a,b", *HEADERS]), st.sampled_from(CELLS), st.integers(0, 23), st.integers(0, 3))
    def spoil(header: str, cell: str, row: int, column: int) -> None:
        body = rows(header)
        body[row][column % len(body[row])] = cell
        text = "\n".join([header, *(",".join(line) for line in body)]) + "\n"
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        names = header.split(",")
        for command in (FIT, IMPUTE):
            is_bad = len(set(names)) < len(names)
            tally.attempt(
                f"{command[0]}: {header[:30]!r} with {cell[:20]!r}", lambda c=command: asked(*c), is_bad=is_bad
            )

    spoil()
    tally.check()


def test_bytes(tmp_path, monkeypatch, tally: Tally):
    monkeypatch.chdir(tmp_path)

    @cases(small=1, full=100)
    @given(st.binary(max_size=200), st.sampled_from(["t.csv", "t.tsv", "t.parquet", "t.csv.gz"]))
    def spoil(content: bytes, name: str) -> None:
        (tmp_path / name).write_bytes(content)
        arguments = ("fit", name, *FIT[2:])
        tally.attempt(f"{name}: {content[:40]!r}", lambda: asked(*arguments), is_bad=True)

    spoil()
    tally.check()
