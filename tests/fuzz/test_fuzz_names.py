"""Names are data: columns, sites, files, folders and labels that look like markup go through the commands as they are."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from test_fuzz_command_line import SPEC, asked

from fuzz_tally import FULL, Tally
from gyrostat.cli.console import NamesAreData, console, printable
from gyrostat.figures.declarations import Bars, Dots, Figure, Line, Marker, Panel
from gyrostat.figures.matplotlib_renderer import render
from gyrostat.figures.plotly_renderer import plotly_panels
from hostile import NAMES

FEW = [name for name in NAMES if name in ("[/red]", "[bold]x", "$\\frac{$", "<b>x</b>", "_x", "\x1b[31mred")]


def table_of(names: list[str], path: Path) -> None:
    """A table whose columns and sites have these names, with a target ``y`` and empty cells in its second column."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((75, len(names)))
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["y", "site", *names])
        for i, row in enumerate(rows):
            out.writerow(
                [row.sum(), names[i % min(4, len(names))], *(x if i % 7 or j else "" for j, x in enumerate(row))]
            )


def test_the_console_prints_names_as_they_are(capsys):
    for name in NAMES:
        console().print(name, soft_wrap=True, highlight=False)
        table = Table(title=name)
        table.add_column(name, overflow="fold")
        table.add_row(name)
        console().print(table)
        shown = capsys.readouterr().out
        assert shown.startswith(printable(name)) and "\x1b" not in shown


def test_a_terminal_gets_colours_but_no_control_characters_of_names():
    written = io.StringIO()
    made = Console(file=written, force_terminal=True, markup=False, emoji=False)
    made.push_render_hook(NamesAreData())
    made.print("\x1b[2Jx", style="red", highlight=False)
    assert written.getvalue() == "\x1b[31m\\x1b[2Jx\x1b[0m\n"


@pytest.mark.parametrize("names", [FEW, NAMES] if FULL else [FEW], ids=len)
def test_figures_show_names_as_they_are(tmp_path, names):
    series = [Line([0, 1], [1, 2], name) for name in names]
    kinds = [
        Bars(names[:3], [1.0, 2.0, 3.0], names[0]),
        Dots(names[:3], [1.0, 2.0, 3.0], names[1], low=[0, 1, 2], high=[2, 3, 4]),
        Marker(0.5, names[2]),
    ]
    made = [Panel(title=names[0], xlabel=names[1], ylabel=names[2], series=[s]) for s in kinds[:1]]
    made += [
        Panel(title=names[3], xlabel=names[4], ylabel=names[5], series=s) for s in ([*series, kinds[2]], [kinds[1]])
    ]
    figure = Figure(title=names[2], panels=made, note=" ".join(names))
    _, svg = render(figure, tmp_path / "figure")
    ET.parse(svg)
    assert all("<script" not in str(panel["layout"]) for panel in plotly_panels(figure))


@pytest.mark.parametrize("names", [[name] * 1 for name in NAMES] if FULL else [FEW], ids=repr)
def test_commands_take_names_as_they_are(tmp_path, monkeypatch, tally: Tally, names):
    """Folders, columns, sites: every command that reads a table. All of these names are good."""
    monkeypatch.chdir(tmp_path)
    names = [*names, "b", "c", "d"]  # three are left where a name, such as 'nan', means a missing value
    table_of(names, tmp_path / "data.csv")
    folder = names[0].replace("/", "|").strip(".") or "dots"
    model = f"./{folder}"
    fit = ("fit", "data.csv", "--target", "y", "--environment", "site", "--missing", "drop", "--out", model)
    for arguments in (
        fit,
        ("predict", model, "data.csv", "--out", f"./{folder}.csv"),
        ("impute", "data.csv", "--out", f"./{folder} filled.csv", "--ignore", "site"),
        ("compare-methods", *fit[1:]),
    ):
        tally.tried += 1
        asked(*arguments)
    ET.parse(tmp_path / folder / "forest.svg")
    ET.parse(tmp_path / folder / "comparison.svg")


def test_sweeps_take_labels_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = SPEC.replace("axes.spread = [1.0, 2.0]", "axes.spread = {list = [1.0, 2.0], label = '[/red] $x'}")
    (tmp_path / "spec.toml").write_text("title = '$\\frac{$ [/red]'\nsummary = '[bold]x'\n" + spec)
    asked("sweep", "spec.toml", "--out", "[/red] $x", "--jobs", "0")
    assert (tmp_path / "[/red] $x" / "table.csv").is_file()
