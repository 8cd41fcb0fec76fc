"""The page ``invariance.md``: tables and sentences made from the rows of a study, no number of it typed by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from gyrostat.benchmarks.invariance.methods import BY_MEAN, OURS, OWN, REFERENCE
from gyrostat.benchmarks.invariance.real import DATA
from gyrostat.benchmarks.invariance.study import Row
from gyrostat.benchmarks.invariance.table import ABSENT, HEADINGS, main_cells, ratio_table, short
from gyrostat.benchmarks.records import markdown_table

PEERS = tuple(m.name for m in BY_MEAN if m.name not in (REFERENCE, *OWN))
INTRODUCTION = """\
# Evidence: what the linear estimator gains, and where it does not

Made by `gyrostat bench invariance`; no number of the results was typed by hand (`make evidence` puts the page here).

![Errors relative to pooled least squares](images/invariance.png)

`InvariantLinearRegressor` (**ours**) against pooled least squares and other methods for data from several environments
(places), on simulations whose answer is known and on real data with one place left out at a time. Ratios below 1 are better
than least squares.

- **Choosing.** Every method sees features and response in pooled standard units. One hyper-parameter each (ours: `tolerance`)
  is chosen in the same way for all: the value with the least squared error in training places left out one at a time, by
  the mean over them; in the last table, by the worst of them. With two training places nothing is left to compare, and
  defaults are taken. *Untuned* is our estimator as it comes, *principal* as it comes with `directions="principal"`: it
  decides on combinations of features.
- **Peers.** Least squares, ridge, fixed effects (the means of each place taken out), IRMv1, V-REx, GroupDRO and ANDMask are
  written here for linear models and minimised to the end (IRMv1 and V-REx, which are not convex, from least squares); anchor
  regression (places as anchors) and invariant causal prediction (ICP: the first six features of the lasso, all their
  subsets) come from the packages ivmodels and causalicp. Labels are 1 and -1, and all methods regress on them.
- **Intervals** are of 95 percent, by the bootstrap: over repetitions of a simulation, or over rows of the place left out (what
  other rows to learn from would change is not in them). *wins*, *ties*, *loses* say where the interval of the paired
  difference of errors lies; less than one percent is a tie. The *best other* of a setting is picked after the fact, by
  the first error of the setting.
- **Sources.** The settings of other papers are written here from their descriptions, with numbers checked against code that
  their authors published; Examples 1 to 3s with 2000 rows per place instead of 10000.
- **Expected** was declared with each setting: is our method meant to find the answer there? Beating least squares is less.
"""


def page(rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """The whole page."""
    parts = [INTRODUCTION, "## Ours\n", main_table(rows), *(f"\n{note}\n" for note in notes)]
    parts += ["\n## Where we lose or tie against least squares, and real data\n", *_explained(rows)]
    parts += ["\n## Where another method does better\n", *_beaten(rows)]
    parts += ["\n## All methods, relative to least squares\n", markdown_table(*ratio_table(rows, worst=False))]
    parts += ["\n### The hyper-parameter chosen by the worst place\n", markdown_table(*ratio_table(rows, worst=True))]
    parts += ["\n## The settings\n", *_settings(rows)]
    return "\n".join(parts) + "\n"


def main_table(rows: Sequence[Row]) -> str:
    """One line for each setting and error; real data that are not installed say so."""
    seen = {row.setting for row in rows}
    absent = [[data.name, *[ABSENT] * (len(HEADINGS) - 1)] for data in DATA if data.name not in seen]
    return markdown_table(list(HEADINGS), [main_cells(row) for row in rows] + absent)


def _explained(rows: Sequence[Row]) -> list[str]:
    """A line for each reason, with the settings that it explains."""
    said: dict[str, list[str]] = {}
    for setting in dict.fromkeys(row.setting for row in rows):
        mine = [row for row in rows if row.setting == setting]
        verdicts = [row.methods[REFERENCE]["ours"] for row in mine]
        if set(verdicts) != {"wins"} or mine[0].solvable is None:
            odd = "; **not as expected**" if mine[0].solvable and verdicts[0] != "wins" else ""
            said.setdefault(mine[0].why, []).append(f"**{setting}** ({'; '.join(map(_words, mine))}{odd})")
    return [f"- {', '.join(settings)}. {why}" for why, settings in said.items()] or ["Nowhere."]


def _words(row: Row) -> str:
    """The verdict; on real data also against fixed effects, which tell a gain of levels from one of effects."""
    said = f"{row.measure}: {row.methods[REFERENCE]['ours']}"
    fixed = row.methods.get("fixed effects")
    return f"{said}, against fixed effects {fixed['ours']}" if row.solvable is None and fixed else said


def _beaten(rows: Sequence[Row]) -> list[str]:
    """For each error, the methods that have less of it, the best first, with our error as a multiple of theirs."""
    said = []
    for row in rows:
        mine = row.methods[OURS]["error"]
        better = [
            (row.methods[name]["error"], name) for name in PEERS if row.methods.get(name, {}).get("ours") == "loses"
        ]
        words = [f"{name} ({short(mine / its) + ' times' if its else 'no error'})" for its, name in sorted(better)]
        said += [f"- {row.setting}, {row.measure}: {', '.join(words)}."] if words else []
    return ["Our error as a multiple of theirs:\n", *said] if said else ["Nowhere."]


def _settings(rows: Sequence[Row]) -> list[str]:
    """What was drawn or read, and what our estimator, untuned, said of itself."""
    said = []
    for row in {row.setting: row for row in rows}.values():
        states = ", ".join(f"{status} {count}" for status, count in sorted(row.statuses.items()))
        said.append(f"- **{row.setting}** ({row.source}; {row.sample}). {row.text} Status of ours: {states or 'none'}.")
    return said


def write(rows: Sequence[Row], notes: Sequence[str], folder: Path) -> None:
    """The page and its picture into a folder."""
    from gyrostat.benchmarks.invariance.picture import picture
    from gyrostat.figures.matplotlib_renderer import render

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "invariance.md").write_text(page(rows, notes))
    render(picture(rows), folder / "images" / "invariance")


def read(path: Path) -> list[Row]:
    """The rows in a ``bench.json``."""
    return [Row(**record["settings"]["row"]) for record in json.loads(path.read_text()) if "row" in record["settings"]]


if (
    __name__ == "__main__"
):  # python -m gyrostat.benchmarks.invariance.page bench.json FOLDER, after a change of the text
    write(read(Path(sys.argv[1])), (), Path(sys.argv[2]))
