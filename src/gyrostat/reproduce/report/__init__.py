"""``index.html``: what was run, what was claimed, what was found; one file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from gyrostat import __version__
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.figures.pages import base_style, plotly_script
from gyrostat.figures.palette import ON_DARK_PAGES, PAGE_COLOURS
from gyrostat.figures.plotly_renderer import RIM
from gyrostat.parallel.whole_files import write_whole
from gyrostat.reproduce.report import status
from gyrostat.reproduce.report.contents import Entry, gather
from gyrostat.reproduce.report.markup import HOME, Markup, fill, together
from gyrostat.reproduce.report.overview import overview
from gyrostat.reproduce.report.sections import section
from gyrostat.reproduce.store import ResultsStore

SCRIPTS = ("say", "plots", "keys", "table", "filters")


def write_report(store: ResultsStore) -> Path:
    """Write ``index.html`` from everything that is finished in the folder, whenever it was run.

    The figures are made again from the stored data; the verdicts are those of ``claims.json``.
    """
    entries = gather(store)
    page = fill(
        "page",
        style=Markup(base_style() + _file("report.css")),
        early=Markup(_file("early.js")),
        themes=_choices("theme", {"auto": "Auto", "light": "Light", "dark": "Dark"}),
        overview=overview(entries),
        paper_choices=_choices("paper", {"all": "All"} | {name: name for name in _papers(entries)}),
        verdict_choices=_choices("verdict", {"all": "All"} | {s.key: s.brief for s in status.OF_CLAIMS}),
        sections=together(_of_paper(store, paper, entries) for paper in _papers(entries)),
        version=__version__,
        folder=store.folder,
        library=Markup(plotly_script().read_text(encoding="utf-8")),
        script=Markup(_script()),
    )
    path = store.folder / "index.html"
    write_whole(path, page + "\n")
    return path


def rebuild(folder: Path) -> Path:
    """``gyrostat report DIR``: the page of a results folder, made again from what it holds."""
    store = ResultsStore(folder)
    if not store.data.is_dir():
        raise GyrostatError(f"{str(folder)!r} holds no results.zarr: run gyrostat reproduce --out {folder}.")
    return write_report(store)


def _file(name: str) -> str:
    return (HOME / name).read_text(encoding="utf-8")


def _script() -> str:
    parts = [
        f"const ON_DARK_PAGES = {json.dumps(ON_DARK_PAGES | {RIM: PAGE_COLOURS['paper'][1]})};",
        *(_file(f"{name}.js") for name in SCRIPTS),
    ]
    return '"use strict";\n' + "\n".join(parts)


def _papers(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(entry.paper for entry in entries))


def _choices(group: str, options: dict[str, str]) -> Markup:
    first = next(iter(options))
    return together(
        fill("choice", group=group, value=value, label=label, checked=" checked" if value == first else "")
        for value, label in options.items()
    )


def _of_paper(store: ResultsStore, paper: str, entries: Sequence[Entry]) -> Markup:
    shown = [entry for entry in entries if entry.paper == paper and (entry.run or entry.error)]
    title = registry.PAPERS.get(paper, paper)
    return fill("paper", paper=paper, title=title, sections=together(section(store, entry) for entry in shown))
