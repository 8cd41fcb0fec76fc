"""Writing ``index.html``: the data of the templates, and the one file that holds style, scripts, figures and claims."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.figures.pages import page_environment, plotly_script
from gyrostat.figures.palette import ON_DARK_PAGES, PAGE_COLOURS
from gyrostat.figures.plotly_renderer import RIM
from gyrostat.parallel.whole_files import write_whole
from gyrostat.reproduce.claims import measured_text
from gyrostat.reproduce.report.figures import figure_view
from gyrostat.reproduce.report.folder_contents import (
    HOLDS,
    KNOWN,
    OF_CLAIMS,
    STATUSES,
    SURPRISE,
    ReportedExperiment,
    claim_status,
    gather,
)
from gyrostat.reproduce.store import ResultsStore

HOME = Path(__file__).parent
SCRIPTS = ("announce_and_copy", "plots", "plot_keys", "figure_csv", "filters")


def rebuild(folder: Path, papers: Sequence[str] = ()) -> Path:
    """Write the page of a results folder again (``gyrostat report``).

    ``papers`` are files or modules that declare papers which are neither built in nor installed.
    """
    for reference in papers:
        errors.choice("paper", registry.resolve(reference)[0], registry.paper_names())
    store = ResultsStore(folder)
    if not store.data.is_dir():
        raise GyrostatError(f"{str(folder)!r} holds no results.zarr: run gyrostat reproduce --out {folder}.")
    store.refuse_losses()
    return write_report(store)


def write_report(store: ResultsStore) -> Path:
    """Write ``index.html`` from everything that is finished in the folder, whenever it was run.

    Figures are made again from the stored data; the verdicts are those of ``claims.json``.
    """
    entries = gather(store)
    environment = page_environment(HOME / "templates")
    environment.filters.update(claim_status=claim_status, measured_text=measured_text, setting_text=setting_text)
    page = environment.get_template("report.html").render(
        **_overview(entries),
        papers=_papers(store, entries),
        folder=str(store.folder),
        quoted_folder=shlex.quote(str(store.folder)),
        paper_choices={"all": "All"} | {entry.paper: entry.paper for entry in entries},
        verdict_choices={"all": "All"} | {status.key: status.brief for status in OF_CLAIMS},
        style=_static("report.css"),
        script_before_paint=_static("before_paint.js"),
        plotly=_trusted(plotly_script()),
        dark_colours=ON_DARK_PAGES | {RIM: PAGE_COLOURS["paper"][1].upper()},
        script=Markup("\n").join(_static(f"{name}.js") for name in SCRIPTS),
    )
    path = store.folder / "index.html"
    write_whole(path, page)
    return path


def _trusted(path: Path) -> Markup:
    """A file of ours or of plotly, which needs no escaping."""
    return Markup(path.read_text(encoding="utf-8"))


def _static(name: str) -> Markup:
    return _trusted(HOME / "static" / name)


def _papers(store: ResultsStore, entries: Sequence[ReportedExperiment]) -> list[dict[str, Any]]:
    """Every paper in the folder: its entries for the table, and a section for each experiment that was run."""
    papers = []
    for name in dict.fromkeys(entry.paper for entry in entries):
        of_paper = [entry for entry in entries if entry.paper == name]
        papers.append(
            {
                "name": name,
                **_title_and_link(name, of_paper),
                "entries": of_paper,
                "sections": [(entry, figure_view(store, entry)) for entry in of_paper if entry.was_run],
            }
        )
    return papers


def _title_and_link(name: str, entries: Sequence[ReportedExperiment]) -> dict[str, str]:
    """Of the declared paper, or else as stored with its data."""
    if any(entry.declared for entry in entries):
        paper = registry.find_paper(name)
        return {"title": paper.title, "long_title": paper.title, "link": paper.link}
    stored = next((entry.stored("paper", None) for entry in entries if entry.stored("paper", None)), None)
    if stored is None:
        return {"title": name, "long_title": "no longer declared", "link": ""}
    return {"title": stored["title"], "long_title": stored["title"], "link": stored["link"]}


def _overview(entries: Sequence[ReportedExperiment]) -> dict[str, Any]:
    """The values of the overview's template."""
    records = [record for entry in entries for record in entry.records]
    by_status = Counter(map(claim_status, records))
    failed = [entry.name for entry in entries if entry.error]
    counts = Counter(entry.status for entry in entries)
    return {
        "headline": headline(len(records), by_status[HOLDS], by_status[SURPRISE], len(failed)),
        "surprises": [record["id"] for record in records if claim_status(record) is SURPRISE],
        "failed": failed,
        "facts": _facts(entries),
        "status_counts": [(s, counts[s]) for s in STATUSES if counts[s] or s is SURPRISE],
        "missing_papers": [paper for paper in registry.PAPERS if all(entry.paper != paper for entry in entries)],
        "known_failures": [record for record in records if claim_status(record) is KNOWN],
    }


def headline(claims: int, held: int, surprises: int, failed: int) -> str:
    """The result of all experiments in one sentence.

    >>> headline(12, 10, 0, 0)
    'No surprise: 10 of 12 statements hold, 2 do not, for known reasons.'
    >>> headline(12, 10, 1, 2)
    '1 of 12 verdicts is a surprise; 2 could not be computed.'
    """
    if not surprises and not failed:
        others = f", {claims - held} do not, for known reasons" if held < claims else ""
        return f"No surprise: {held} of {claims} statements hold{others}."
    parts = [f"{surprises} of {claims} verdicts {'is' if surprises == 1 else 'are'} a surprise"] if surprises else []
    parts += [f"{failed} could not be computed"] if failed else []
    return f"{'; '.join(parts)}."


def _facts(entries: Sequence[ReportedExperiment]) -> dict[str, str]:
    runs = [entry.run for entry in entries if entry.run]

    def all_of(key: str) -> str:
        return ", ".join(sorted({str(run[key]) for run in runs})) or "none"

    return {
        "finished": f"{len(runs)} of {len(entries)} experiments",
        "version": all_of("version") + ("" if all_of("version") == __version__ else f" (page by {__version__})"),
        "seed": all_of("seed"),
        "size": all_of("size"),
        "machine": all_of("machine"),
        "computing": duration(sum(run["seconds"] for run in runs)),
        "time": time_span(sorted(run["time"] for run in runs)),
    }


def duration(seconds: float) -> str:
    """
    >>> duration(59.94), duration(3725)
    ('59.9 s', '62 min 5 s')
    """
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def time_span(times: Sequence[str]) -> str:
    """
    >>> time_span(["2026-01-02T03:04:05+00:00", "2026-01-02T04:00:00+00:00"])
    '2026-01-02 03:04:05 to 04:00:00 UTC'
    """
    ends = [time.replace("T", " ").replace("+00:00", "") for time in times]
    if not ends:
        return "never"
    first, last = ends[0], ends[-1].removeprefix(f"{ends[0].split()[0]} ")
    return f"{first} UTC" if first == ends[-1] else f"{first} to {last} UTC"


def setting_text(value: Any) -> str:
    """A setting as a reader writes it.

    >>> setting_text({"rank": [1, 2.0], "spread": 8.0})
    'rank 1, 2; spread 8'
    """
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {setting_text(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
