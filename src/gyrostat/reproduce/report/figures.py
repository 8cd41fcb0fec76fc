"""Figures of the report: panels with legends, the numbers that plotly draws, and still pictures for print."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from gyrostat.figures.declarations import Figure, Panel, Printed
from gyrostat.figures.mathematics import unicode_text
from gyrostat.figures.matplotlib_renderer import render
from gyrostat.figures.palette import COLOURS, INKS
from gyrostat.figures.plotly_renderer import plotly_panels
from gyrostat.parallel.checked_files import DamagedStore
from gyrostat.parallel.workers import explain
from gyrostat.reproduce.report.folder_contents import ReportedExperiment
from gyrostat.reproduce.store import ResultsStore

MARKERS = {
    "o": "M13.4 7a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",
    "s": "M13.6 3.6h6.8v6.8h-6.8z",
    "^": "M17 2.6 21 10.4H13z",
    "v": "M17 11.4 13 3.6H21z",
    "D": "M17 2.4 21.6 7 17 11.6 12.4 7z",
    "P": "M15.4 3h3.2v2.4H21v3.2h-2.4V11h-3.2V8.6H13V5.4h2.4z",
    "X": "m14 3 3 2.6L20 3l1.6 1.7L19 7l2.6 2.3L20 11l-3-2.6L14 11l-1.6-1.7L15 7l-2.6-2.3z",
    ">": "M13 2.6 21 7 13 11.4z",
    "<": "M21 2.6 13 7 21 11.4z",
}
HATCHES = {
    "": "",
    "/": "M6 12 14 2M14 12 22 2M22 12 29 2",
    ".": "M9 5h1M16 5h1M23 5h1M12 9h1M19 9h1M26 9h1",
    "x": "M6 12 14 2M6 2 14 12M20 12 28 2M20 2 28 12",
}
"""SVG paths of the markers of ``figures.palette`` and of the hatches of bars, for legends of 34 by 14 pixels."""
STILL_COLOURS = 48
"""Colours in a still picture; more cannot be told apart in a drawing, and each costs bytes."""

THUMBNAIL = (640, 400)
"""The largest width and height of a thumbnail, in pixels."""


@dataclass(frozen=True)
class StillPicture:
    """A picture as a data address, with its size on the page."""

    address: str
    width: int
    height: int


@dataclass(frozen=True)
class FigureView:
    """A figure for the template: panels and numbers, or a still picture alone, or only the note that says why not."""

    note: str
    alt: str = ""
    still: StillPicture | None = None
    thumbnail: StillPicture | None = None
    printed: Sequence[Printed] = ()
    panels: list[dict[str, Any]] = field(default_factory=list)
    numbers: list[dict[str, Any]] = field(default_factory=list)


def figure_view(store: ResultsStore, entry: ReportedExperiment) -> FigureView:
    """The figure of an experiment, made again from the stored data; its files are drawn as well if they are missing."""
    if entry.error:
        return FigureView("There is no figure.")
    base = store.figure(entry.name)
    if entry.declared is None:
        reason = (
            "Its paper is not known here, or no longer declares this experiment, so only its file is shown; "
            "gyrostat report DIR --paper FILE.py makes a paper known."
        )
        return _still_only(base, entry, reason)
    try:
        dataset = store.load(entry.name)
    except DamagedStore as error:
        return _still_only(base, entry, f"The stored data are damaged: {error}")
    if dataset is None:
        return _still_only(base, entry, "")
    try:
        figure = entry.declared.figure(dataset)
        if not _png(base).exists():
            render(figure, base)
    except Exception as error:  # data of another version: the page says so and shows the rest
        reason = f"The stored data cannot be drawn by this version of gyrostat: {explain(error)[0]}"
        return _still_only(base, entry, reason)
    drawn = plotly_panels(figure)
    panels = "; ".join(panel.title for panel in figure.panels)
    return FigureView(
        note=figure.note,
        alt=unicode_text(f"{figure.title}. Panels: {panels}."),
        still=_still_picture(base),
        thumbnail=_thumbnail(base),
        printed=figure.printed,
        panels=[_panel(panel, spec) for panel, spec in zip(figure.panels, drawn, strict=True)],
        numbers=_numbers(figure, drawn),
    )


def _png(base: Path) -> Path:
    return base.with_name(f"{base.name}.png")


def _still_only(base: Path, entry: ReportedExperiment, reason: str) -> FigureView:
    if not _png(base).exists():
        return FigureView(f"No figure was drawn. {reason}")
    return FigureView(reason, alt=entry.title, still=_still_picture(base), thumbnail=_thumbnail(base))


def _still_picture(base: Path) -> StillPicture:
    with Image.open(_png(base)) as file:
        picture = file.convert("RGB").quantize(
            STILL_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
    stream = io.BytesIO()
    # WebP, without loss: two thirds of the bytes of a PNG.
    picture.convert("RGB").save(stream, "WEBP", lossless=True, method=2, quality=50)
    return StillPicture(_data_address(stream), picture.width // 2, picture.height // 2)


def _thumbnail(base: Path) -> StillPicture:
    """The figure at a glance, twice as large as it is shown, for sharp screens."""
    with Image.open(_png(base)) as file:
        picture = file.convert("RGB")
        picture.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    picture.save(stream, "WEBP", quality=60, method=4)
    return StillPicture(_data_address(stream), picture.width // 2, picture.height // 2)


def _data_address(stream: io.BytesIO) -> str:
    return f"data:image/webp;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _numbers(figure: Figure, drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the scripts need to draw each panel and to write it as CSV."""
    return [
        {"title": panel.title, "x": panel.xlabel, "y": panel.ylabel, **spec}
        for panel, spec in zip(figure.panels, drawn, strict=True)
    ]


def _panel(panel: Panel, spec: dict[str, Any]) -> dict[str, Any]:
    logs = " and ".join(axis for axis, scale in (("x", panel.xscale), ("y", panel.yscale)) if scale == "log")
    description = (
        f"Plot of {panel.ylabel} against {panel.xlabel}{f', {logs} logarithmic' if logs else ''}. "
        "Plus and minus zoom, arrows move, 0 resets."
    )
    return {
        "title": panel.title,
        "xlabel": panel.xlabel,
        "ylabel": panel.ylabel,
        "description": unicode_text(description),
        "legend": [_legend_entry(entry) for entry in spec["entries"] if _is_named(entry["label"])],
    }


def _is_named(label: str) -> bool:
    """Whether a label belongs in the legend: as in the files, not if it is empty or begins with an underscore."""
    return label != "" and not label.startswith("_")


def _legend_entry(entry: dict[str, Any]) -> dict[str, Any]:
    positions = "; ".join(f"{axis} = {at:.4g}" for axis, at in entry.get("at", ()))
    says_it = any(letter.isdigit() for letter in entry["label"])
    label = f"{entry['label']} ({positions})" if positions and not says_it else entry["label"]
    return {"label": label, "traces": entry["traces"], "shapes": entry["shapes"], "look": _look(entry["swatch"])}


def _look(swatch: dict[str, Any]) -> dict[str, Any]:
    """The parts of the small drawing in the legend, as SVG paths and CSS variables."""
    return {
        "heat": swatch.get("heat", False),
        "colour": colour_variable(swatch["color"]),
        "hatch": HATCHES[swatch["hatch"]] if "hatch" in swatch else None,
        "band": swatch.get("band", False),
        "line": swatch.get("line", False),
        "dash": " ".join(f"{2 * length:g}" for length in swatch.get("dash", ())),
        "marker": MARKERS[swatch["marker"]] if "marker" in swatch else "",
    }


def colour_variable(colour: str) -> str:
    """The CSS variable with this colour of the palette on a light page and its equivalent on a dark one.

    >>> colour_variable(COLOURS[1])
    '--series-1'
    """
    return f"--series-{(*COLOURS, *INKS).index(colour)}"
