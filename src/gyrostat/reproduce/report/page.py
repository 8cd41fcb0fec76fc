"""Writing the report: ``index.html`` and a page for each paper, or one file with everything."""

from __future__ import annotations

import base64
import gzip
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.figures.mathematics import GREEK, html_text
from gyrostat.figures.pages import page_environment, plotly_script
from gyrostat.figures.palette import ON_DARK_PAGES, PAGE_COLOURS
from gyrostat.figures.plotly_renderer import RIM
from gyrostat.parallel.whole_files import write_whole
from gyrostat.reproduce.claims import by_author, is_surprise
from gyrostat.reproduce.report.figures import figure_view
from gyrostat.reproduce.report.folder_contents import (
    FAILS,
    FAILS_UNEXPECTEDLY,
    HOLDS,
    HOLDS_UNEXPECTEDLY,
    UNDECIDED,
    ReportedExperiment,
    Status,
    claim_status,
    gather,
    number_that_hold,
    tally,
    verdict_text,
)
from gyrostat.reproduce.report.readable_numbers import (
    duration,
    human_number,
    name_and_unit,
    setting_text,
    time_span,
    with_unit,
)
from gyrostat.reproduce.store import ClaimRecord, ResultsStore

HOME = Path(__file__).parent
PAGES = "pages"
"""The folder of the papers' pages, beside ``index.html``."""
SCRIPTS = ("announce_and_copy", "plots", "plot_keys", "figure_csv", "filters", "contents")
MEANINGS = {
    HOLDS: "The criterion is met.",
    FAILS: "The criterion is not met, as expected. The claim says in which sense, and why.",
    UNDECIDED: "The data cannot decide.",
    FAILS_UNEXPECTEDLY: "The criterion is not met, which we did not expect: look at it first.",
    HOLDS_UNEXPECTEDLY: "The criterion is met, which we did not expect: look at it first.",
}


@dataclass(frozen=True)
class Links:
    """Addresses as one page writes them. ``here`` is ``index``, the name of a paper, or empty on a page with everything.

    >>> Links("index", ("a1", "b2")).to("a1/fig1/x"), Links("a1").to("a1/fig1"), Links("a1").to("b2"), Links("").to("a1")
    ('pages/a1.html#a1/fig1/x', '#a1/fig1', 'b2.html', '#a1')
    """

    here: str
    papers: tuple[str, ...] = ()

    @property
    def is_index(self) -> bool:
        return self.here == "index"

    @property
    def index(self) -> str:
        return {"": "#", "index": "index.html"}.get(self.here, "../index.html")

    def to(self, name: str) -> str:
        """The address of a paper, an experiment or a claim."""
        paper = name.split("/")[0]
        if self.here in ("", paper):
            return f"#{name}"
        page = f"{PAGES}/{paper}.html" if self.is_index else f"{paper}.html"
        return page if name == paper else f"{page}#{name}"

    def shows(self, paper: str) -> bool:
        """Whether this page holds the figures of a paper."""
        return self.here in ("", paper)

    @property
    def pages(self) -> dict[str, str]:
        """Where the papers are, if not on this page: links of old reports, which had one page, are sent there."""
        return {paper: self.to(paper) for paper in self.papers} if self.is_index else {}


def rebuild(folder: Path, papers: Sequence[str] = (), *, one_file: bool = False) -> Path:
    """Write the pages of a results folder again (``gyrostat report``).

    ``papers`` are files or modules that declare papers which are neither built in nor installed. With ``one_file``, everything
    is on one page.
    """
    for reference in papers:
        errors.choice("paper", registry.resolve(reference)[0], registry.paper_names())
    store = ResultsStore(folder)
    if not store.data.is_dir():
        raise GyrostatError(f"{str(folder)!r} holds no results.zarr: run gyrostat reproduce --out {folder}.")
    store.refuse_losses()
    return write_report(store, one_file=one_file)


def write_report(store: ResultsStore, *, one_file: bool = False) -> Path:
    """Write ``index.html`` and ``pages/PAPER.html`` from everything that is finished in the folder, whenever it was run.

    Figures are made again from the stored data; the verdicts are those of ``claims.json``. Pages of an earlier report that are
    not written again are deleted.
    """
    entries = gather(store)
    papers = _papers(store, entries)
    environment = _environment(store, entries, papers)
    if one_file:
        pages = {"index.html": _rendered(environment, "one_file.html", Links(""), papers)}
    else:
        names = tuple(paper["name"] for paper in papers)
        pages = {"index.html": _rendered(environment, "index.html", Links("index", names), papers)}
        for paper in papers:
            page = _rendered(environment, "paper.html", Links(paper["name"]), [paper], paper=paper)
            pages[f"{PAGES}/{paper['name']}.html"] = page
    for place, page in pages.items():
        write_whole(store.folder / place, page)
    for stale in (store.folder / PAGES).glob("*.html"):
        if f"{PAGES}/{stale.name}" not in pages:
            stale.unlink()
    return store.folder / "index.html"


def _environment(
    store: ResultsStore, entries: Sequence[ReportedExperiment], papers: list[dict[str, Any]]
) -> Environment:
    """The templates, with the values that all pages share."""
    environment = page_environment(HOME / "templates")
    environment.filters.update(
        claim_status=claim_status,
        verdict_text=verdict_text,
        human_number=human_number,
        name_and_unit=name_and_unit,
        with_unit=with_unit,
        setting_text=setting_text,
        maths=html_text,
    )
    environment.globals |= _overview(entries) | {
        "papers": papers,
        "folder": str(store.folder),
        "quoted_folder": shlex.quote(str(store.folder)),
        "paper_choices": {"all": "All"} | {entry.paper: entry.paper for entry in entries},
        "verdict_choices": {"all": "All"}
        | {status.key: f"{status.mark} {status.brief}" for status in (HOLDS, FAILS, UNDECIDED)}
        | {"surprise": "! surprise"},
        "style": _static("report.css"),
        "script_before_paint": _static("before_paint.js"),
        "dark_colours": ON_DARK_PAGES | {RIM: PAGE_COLOURS["paper"][1].upper()},
        "greek": GREEK,
        "script": Markup("\n").join(_static(f"{name}.js") for name in SCRIPTS),
    }
    return environment


def _rendered(environment: Environment, template: str, links: Links, shown: list[dict[str, Any]], **more: Any) -> str:
    """A page; plotly is in it only if there is something to draw."""
    draws = not links.is_index and any(figure.panels for paper in shown for _, figure in paper["sections"])
    plotly = packed(plotly_script()) if draws else ""
    return environment.get_template(template).render(links=links, plotly=plotly, **more)


@cache
def packed(path: Path) -> str:
    """A script as gzip in base64, which ``static/plots.js`` unpacks: two fifths of the size."""
    return base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode()


def _trusted(path: Path) -> Markup:
    """A file of ours or of plotly, which needs no escaping."""
    return Markup(path.read_text(encoding="utf-8"))


def _static(name: str) -> Markup:
    return _trusted(HOME / "static" / name)


def _papers(store: ResultsStore, entries: Sequence[ReportedExperiment]) -> list[dict[str, Any]]:
    """Every paper in the folder: its entries with their figures, and a section for each experiment that was run."""
    names = list(dict.fromkeys(entry.paper for entry in entries))
    papers = []
    for i, name in enumerate(names):
        of_paper = [entry for entry in entries if entry.paper == name]
        cards = [(entry, figure_view(store, entry) if entry.was_run else None) for entry in of_paper]
        papers.append(
            {
                "name": name,
                **_title_and_links(name, of_paper),
                "entries": of_paper,
                "cards": cards,
                "sections": [(entry, figure) for entry, figure in cards if figure is not None],
                "kinds": _kinds([record for entry in of_paper for record in entry.records]),
                "previous": names[i - 1] if i else "",
                "next": names[i + 1] if i + 1 < len(names) else "",
            }
        )
    return papers


def _kinds(records: Sequence[ClaimRecord]) -> dict[str, list[tuple[Status, int, str]]]:
    """The statuses of the papers' statements and of ours, with how many have each and what it means."""
    return {
        author: [(status, count, MEANINGS[status]) for status, count in tally(part)]
        for author, part in by_author(records).items()
    }


def _title_and_links(name: str, entries: Sequence[ReportedExperiment]) -> dict[str, str]:
    """Of the declared paper, or else as stored with its data."""
    if any(entry.declared for entry in entries):
        paper = registry.find_paper(name)
        return {"title": paper.title, "link": paper.link, "doi": paper.doi}
    stored: dict[str, str] = next((entry.stored("paper", None) for entry in entries if entry.stored("paper", None)), {})
    return {"title": f"{name} (no longer declared)", "link": "", "doi": "", **stored}


def _overview(entries: Sequence[ReportedExperiment]) -> dict[str, Any]:
    """The values of the overview's template."""
    records = [record for entry in entries for record in entry.records]
    failed = [entry.name for entry in entries if entry.error]
    return {
        "headline": headline(records, len(failed)),
        "headline_of_ours": counted_statements(by_author(records).get("ours", []), "ours"),
        "surprises": [record["id"] for record in records if is_surprise(record)],
        "failed": failed,
        "facts": _facts(entries),
        "kinds": _kinds(records),
        "missing_papers": [paper for paper in registry.PAPERS if all(entry.paper != paper for entry in entries)],
    }


def headline(records: Sequence[ClaimRecord], failed: int = 0) -> str:
    """Whether the papers' statements hold, in one sentence, and how many experiments ``failed``.

    >>> held = {"verdict": "holds", "expected": "holds"}
    >>> headline([held, {"verdict": "fails", "expected": "fails"}, held, {**held, "ours": True}])
    '2 of 3 statements of the papers hold; 1 does not hold here, with a reason.'
    >>> headline([], 2)
    'No statement of the papers was checked. 2 experiments could not be computed.'
    """
    of_papers = by_author(records).get("the papers", [])
    answer = counted_statements(of_papers, "the papers") if of_papers else "No statement of the papers was checked."
    return f"{answer} {failed} experiment{'s' if failed > 1 else ''} could not be computed." if failed else answer


def counted_statements(records: Sequence[ClaimRecord], author: str) -> str:
    """How many statements of an author hold, and how many do not; the numbers add up to all of them.

    >>> counted_statements([{"verdict": "holds", "expected": "holds"}, {"verdict": "fails", "expected": "holds"}], "ours")
    '1 of 2 statements of ours hold; 1 fails unexpectedly.'
    """
    others = [status.counted(count) for status, count in tally(records) if status not in (HOLDS, HOLDS_UNEXPECTEDLY)]
    return "; ".join([f"{number_that_hold(records)} of {len(records)} statements of {author} hold", *others]) + "."


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
