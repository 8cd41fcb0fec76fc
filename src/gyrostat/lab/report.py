"""``index.html``: what was run, what was claimed, what was found; one file that needs nothing else."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import Any

from gyrostat import papers
from gyrostat.lab.experiment import Experiment
from gyrostat.lab.store import Record, Store, experiment_of, write_whole
from gyrostat.lab.tables import measured, surprise
from gyrostat.lab.tasks import select
from gyrostat.version import __version__

STYLE = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")


def write_report(store: Store) -> None:
    """Write ``index.html`` from everything that is finished in the folder, whenever it was run."""
    order = {name: i for i, name in enumerate(select([]))}
    names = sorted(store.finished(), key=lambda name: order.get(name, len(order)))
    records = sorted(store.claims(), key=lambda r: order.get(experiment_of(r), len(order)))
    runs = {name: store.run(name) for name in names}
    parts = [_overview(runs), _claims_table(records)]
    parts += [_section(store, name, runs[name], [r for r in records if experiment_of(r) == name]) for name in names]
    body = "\n".join(parts)
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Gyrostat: reproduction report</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )
    write_whole(store.folder / "index.html", page)


def _text(x: Any) -> str:
    return html.escape(str(x))


def _overview(runs: dict[str, dict[str, Any]]) -> str:
    seconds = sum(run["seconds"] for run in runs.values())
    times = sorted(run["time"] for run in runs.values())
    when = f"{times[0]} to {times[-1]}" if times else "never"

    def all_of(key: str) -> str:
        return ", ".join(sorted({_text(run[key]) for run in runs.values()})) or "none"

    return (
        "<h1>Gyrostat: reproduction report</h1>\n"
        f'<p class="quiet">{len(runs)} experiments, version {all_of("version")} '
        f"(report by {_text(__version__)}), seed {all_of('seed')}, size {all_of('size')}, "
        f"{seconds:.1f} s of computing, finished {_text(when)}, on {all_of('machine')}.</p>"
    )


def _verdict(record: Record) -> str:
    word = _text(record["verdict"])
    return f'<span class="{word}">{word}</span>'


def _mark(record: Record) -> str:
    return '<span class="mark">SURPRISE</span>' if surprise(record) else ""


def _odd(record: Record) -> str:
    return " odd" if surprise(record) else ""


def _claims_table(records: list[Record]) -> str:
    odd = sum(surprise(record) for record in records)
    rows = "\n".join(
        f'<tr class="row{_odd(r)}"><td><a href="#{_text(r["id"])}">{_text(r["id"])}</a></td>'
        f"<td>{_verdict(r)} {_mark(r)}</td><td>{_text(r['expected'])}</td>"
        f"<td>{_text(measured(r))}</td></tr>"
        for r in records
    )
    return (
        f"<h2>Claims</h2>\n<p>{len(records)} claims; {odd} with a verdict that was not expected.</p>\n"
        '<div class="scroll"><table><thead><tr><th>claim</th><th>verdict</th><th>expected</th>'
        f"<th>measured</th></tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _section(store: Store, name: str, run: dict[str, Any], records: list[Record]) -> str:
    declared = _declared(name)
    title, source, summary = (
        (declared.title, declared.source, declared.summary) if declared else (name, "no longer declared", "")
    )
    settings = "\n".join(f"{key} = {value}" for key, value in run["settings"].items())
    command = f"gyrostat reproduce {name} --size {run['size']} --seed {run['seed']} --out {store.folder} --fresh"
    return (
        f'<section id="{_text(name)}">\n<h2>{_text(title)}</h2>\n'
        f'<p class="quiet">{_text(name)} · {_text(source)} · {run["seconds"]:.1f} s</p>\n'
        f"<p>{_text(summary)}</p>\n{_image(store, name, title)}\n"
        + "\n".join(_claim(record) for record in records)
        + f"\n<h3>Settings</h3>\n<pre>{_text(settings)}</pre>\n"
        f"<h3>Run it again</h3>\n<pre>{_text(command)}</pre>\n</section>"
    )


def _declared(name: str) -> Experiment | None:
    paper, experiment = name.split("/")
    return papers.experiments(paper).get(experiment) if paper in papers.PAPERS else None


def _image(store: Store, name: str, title: str) -> str:
    path = store.folder / "figures" / f"{name}.svg"
    if not path.exists():
        return '<p class="quiet">No figure was drawn.</p>'
    # As an image, not inline: the identifiers inside one drawing then cannot meet those of another.
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{_text(title)}" src="data:image/svg+xml;base64,{data}">'


def _claim(record: Record) -> str:
    seeds = f"; {_text(record['seeds'])} seeds" if record["seeds"] else ""
    reason = f'<p class="quiet">Why it is expected to fail: {_text(record["reason"])}</p>' if record["reason"] else ""
    return (
        f'<div class="claim{_odd(record)}" id="{_text(record["id"])}">\n<p>{_text(record["statement"])}</p>\n'
        f"<p>{_verdict(record)} (expected: {_text(record['expected'])}) {_mark(record)}</p>\n"
        f'<p class="quiet">Criterion: {_text(record["criterion"])}</p>\n'
        f'<p class="quiet">Measured: {_text(measured(record))}{seeds}</p>\n'
        f"{reason}</div>"
    )
