"""``summary.html``: what a fit found, for people who would rather read a page than a table; one file, no network."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import Any

import xarray as xr

from gyrostat.estimators.invariant.diagnosis import KEPT, REMOVED, HeterogeneityReport, shown_p
from gyrostat.figures.pages import base_style
from gyrostat.parallel.whole_files import write_whole
from gyrostat.tables.model_files import SavedModel

# The report's style, with words that never break in a table, room for sentences, and a picture that scrolls on a phone.
WIDE = """table { font-size: .88rem; } th { white-space: normal; } th, td { overflow-wrap: normal; word-break: keep-all; }
td { white-space: nowrap; } td:last-child { white-space: normal; min-width: 15rem; } td:first-child { min-width: 6rem; }
.scroll img { min-width: 46rem; }
"""
CLASSES = {KEPT: "holds", REMOVED: "fails"}
READING = (
    "An effect is the change of the response for one unit more of a feature, the others held fixed, within one environment. "
    "Its variation is the standard deviation of the effect over environments, without what errors of estimation add, as a "
    "share of its mean. A feature is kept if the interval of its variation lies within the tolerance, and removed if effects "
    "differ by more than the tolerance: then its coefficient is zero. What cannot be told stays in the model. The Lyapunov "
    "exponent is the growth per step of gradient descent on one environment at a time, with the differences between "
    "environments amplified as the model did: below zero, a direction dies out."
)


def said(found: HeterogeneityReport, model: SavedModel) -> list[str]:
    """What was found, in sentences; a quadratic model speaks first, as the diagnostics are of linear effects."""
    if model.kind == "linear":
        return list(found.advice)
    kept, removed = (model.about[name] for name in ("invariant_directions", "spurious_directions"))
    nothing = [] if len(kept) else ["No direction of squares holds in every environment, so predictions are constant."]
    return [
        "The model is of squares and products of the standardised features, and decides on directions of those.",
        *nothing,
        *(f"Kept: {_made_of(v, model.features)}." for v in kept),
        *(f"Removed: {_made_of(v, model.features)}." for v in removed),
        "All below is about linear effects, which this model leaves alone.",
        *found.advice,
    ]


def write_summary(path: Path, found: HeterogeneityReport, model: SavedModel, picture: Path) -> None:
    """Write the page."""
    about = model.about
    drawing = f"data:image/svg+xml;base64,{base64.b64encode(picture.read_bytes()).decode()}"
    parts = [
        f"<h1>{_text(model.target)} by {_text(model.environment)}</h1>",
        f'<p class="quiet">{about["rows"]} rows of {_text(about["data"])}, {about["environments"]} environments, '
        f"{len(model.features)} features; gyrostat {_text(about['gyrostat'])}, {_text(model.kind)} model, tolerance "
        f"{about['tolerance']:g}, level {about['level']:g}; status: {_text(about['status'])}.</p>",
        "<h2>What was found</h2>",
        *(f"<p>{_text(sentence)}</p>" for sentence in said(found, model)),
        "<h2>Effects</h2>",
        f'<div class="scroll"><img alt="Forest plot of effects" src="{drawing}"></div>',
        "<h2>Features</h2>",
        _table(found.features, "feature", model),
        *_directions(found.directions),
        "<h2>How to read this</h2>",
        f"<p>{READING}</p>",
        "<h2>Use it</h2>",
        f"<pre>gyrostat predict {_text(about['out'])} NEW.csv --out predictions.csv</pre>",
    ]
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(model.target)} by {_text(model.environment)}: gyrostat</title>\n"
        f"<style>\n{base_style()}{WIDE}</style>\n</head>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )
    write_whole(path, page)


def _directions(directions: xr.Dataset) -> list[str]:
    if not directions.sizes["direction"]:
        return []
    lead = "Combinations of features, in standard deviations, along which effects vary most between environments:"
    return ["<h2>Principal directions of variation</h2>", f"<p>{lead}</p>", _table(directions, "direction", None)]


def _table(data: xr.Dataset, dim: str, model: SavedModel | None) -> str:
    linear = model is not None and model.kind == "linear"
    heads = [dim, "verdict", "mean effect", "variation (interval)", "p, all the same", "Lyapunov exponent", "reason"]
    if linear:
        heads.insert(2, "coefficient")
    if dim == "direction":
        heads.insert(1, "made of")
    lines = []
    for j in range(data.sizes[dim]):
        row = data.isel({dim: j})
        word = str(row.verdict.item())
        cells = [
            _text(row[dim].item()),
            f'<span class="{CLASSES.get(word, "undecided")}">{_text(word)}</span>',
            f"{row['mean'].item():.3g}",
            _variation(row),
            html.escape(shown_p(row.differ_p.item())),
            f"{row.lyapunov_amplified.item():+.3g}",
            _text(row.reason.item()),
        ]
        if linear and model is not None:
            cells.insert(2, f"{model.coefficients[j]:.3g}")
        if dim == "direction":
            cells.insert(1, _loading(row))
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "\n".join(lines)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _variation(row: xr.Dataset) -> str:
    middle, low, high = (row[name].item() for name in ("variation", "variation_low", "variation_high"))
    return f"{_percent(middle)} ({_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share < 10 else "&gt; 1000%"


def _loading(row: xr.Dataset) -> str:
    return _text(_made_of(row.loading.values, row.feature.values))


def _made_of(direction: Any, names: Any) -> str:
    """The three largest parts of a unit vector, the largest positive: a direction has no sign."""
    order = sorted(range(len(direction)), key=lambda j: -abs(direction[j]))[:3]
    sign = -1 if direction[order[0]] < 0 else 1
    return ", ".join(f"{sign * direction[j]:+.2f} {names[j]}" for j in order)


def _text(x: Any) -> str:
    return html.escape(str(x))
