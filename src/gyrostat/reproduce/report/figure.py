"""A figure on the page: panels with their words and legends, the numbers to draw them, and a still picture."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from gyrostat.figures.declarations import Figure, Panel
from gyrostat.figures.palette import COLOURS, DASHES, INKS
from gyrostat.figures.plotly_renderer import plotly_panels
from gyrostat.reproduce.report.markup import Markup, escaped, fill, together

MARKS = {
    "o": '<circle cx="17" cy="7" r="3.6"/>',
    "s": '<rect x="13.6" y="3.6" width="6.8" height="6.8"/>',
    "^": '<path d="M17 2.6 21 10.4H13z"/>',
    "v": '<path d="M17 11.4 13 3.6H21z"/>',
    "D": '<path d="M17 2.4 21.6 7 17 11.6 12.4 7z"/>',
    "P": '<path d="M15.4 3h3.2v2.4H21v3.2h-2.4V11h-3.2V8.6H13V5.4h2.4z"/>',
    "X": '<path d="m14 3 3 2.6L20 3l1.6 1.7L19 7l2.6 2.3L20 11l-3-2.6L14 11l-1.6-1.7L15 7l-2.6-2.3z"/>',
}
HATCHES = {
    "": "",
    "/": "M6 12 14 2M14 12 22 2M22 12 29 2",
    ".": "M9 5h1M16 5h1M23 5h1M12 9h1M19 9h1M26 9h1",
    "x": "M6 12 14 2M6 2 14 12M20 12 28 2M20 2 28 12",
}
SHADES = 48
"""Colours in a still picture; more cannot be told apart in a drawing, and each costs bytes."""


def figure_block(name: str, figure: Figure, base: Path) -> Markup:
    """The figure of the experiment ``name``, whose files are at ``base``."""
    drawn = plotly_panels(figure)
    panels = together(_panel(panel, spec) for panel, spec in zip(figure.panels, drawn, strict=True))
    words = [{"title": panel.title, "x": panel.xlabel, "y": panel.ylabel} for panel in figure.panels]
    numbers = [word | spec for word, spec in zip(words, drawn, strict=True)]
    alt = f"{figure.title}. Panels: {'; '.join(panel.title for panel in figure.panels)}."
    return fill(
        "figure",
        name=name,
        columns=min(3, len(figure.panels)),
        panels=panels,
        note=figure.note,
        alt=alt,
        drawing=_json(numbers),
        **still(base),
    )


def still(base: Path) -> dict[str, Any]:
    """The picture file as a data address with few colours, and its size on the page."""
    with Image.open(base.with_name(f"{base.name}.png")) as file:
        picture = file.convert("RGB").quantize(SHADES, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    stream = io.BytesIO()
    # WebP, without loss: two thirds of the bytes of a PNG.
    picture.convert("RGB").save(stream, "WEBP", lossless=True, method=2, quality=50)
    address = f"data:image/webp;base64,{base64.b64encode(stream.getvalue()).decode()}"
    return {"image": address, "width": picture.width // 2, "height": picture.height // 2}


def _json(x: Any) -> Markup:
    """JSON inside a script element: no tag can begin in it."""
    text = json.dumps(x, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _panel(panel: Panel, spec: dict[str, Any]) -> Markup:
    scales = {"x": panel.xscale, "y": panel.yscale}
    logs = " and ".join(axis for axis, scale in scales.items() if scale == "log")
    description = (
        f"Plot of {panel.ylabel} against {panel.xlabel}{f', {logs} logarithmic' if logs else ''}. "
        "Plus and minus zoom, arrows move, 0 resets."
    )
    return fill(
        "panel",
        title=panel.title,
        xlabel=panel.xlabel,
        ylabel=panel.ylabel,
        description=description,
        legend=together(_entry(entry) for entry in spec["entries"] if _is_named(entry["label"])),
    )


def _is_named(label: str) -> bool:
    """Whether a label belongs into the legend, as it does in the files: not when empty or after an underscore."""
    return label != "" and not label.startswith("_")


def _entry(entry: dict[str, Any]) -> Markup:
    places = "; ".join(f"{axis} = {at:.4g}" for axis, at in entry.get("at", ()))
    label = f"{entry['label']} ({places})" if places else entry["label"]
    numbers = {key: " ".join(map(str, entry[key])) for key in ("traces", "shapes")}
    return fill("entry", label=label, swatch=_swatch(entry["swatch"]), **numbers)


def _swatch(look: dict[str, Any]) -> Markup:
    """A small drawing of how a series looks: colour is never the only cue."""
    if look.get("heat"):
        return fill("swatch", kind="heat", colour="--ink", parts="")
    parts = []
    if "hatch" in look:
        parts += ['<rect x="5" y="1" width="24" height="12"/>', f'<path class="hatch" d="{HATCHES[look["hatch"]]}"/>']
    if look.get("band"):
        parts.append('<rect x="1" y="1" width="32" height="12" opacity=".22"/>')
    if look.get("line") or "role" in look:
        dash = DASHES[look.get("role", "measured")]
        dashes = "" if dash == "solid" else f' stroke-dasharray="{" ".join(f"{2 * length:g}" for length in dash[1])}"'
        parts.append(f'<path class="pen" d="M1 7H33"{dashes}/>')
    if "marker" in look:
        parts.append(MARKS[look["marker"]])
    return fill("swatch", kind="", colour=colour_variable(look["color"]), parts=Markup("".join(parts)))


def colour_variable(colour: str) -> str:
    """The CSS variable that has this colour of the palette on a light page and its equivalent on a dark one."""
    return f"--series-{(*COLOURS, *INKS).index(colour)}"


def lone_picture(base: Path, title: str, why: str) -> Markup:
    """The still picture alone, when there is nothing to draw from."""
    if not base.with_name(f"{base.name}.png").exists():
        return Markup(f'<p class="quiet">No figure was drawn. {escaped(why)}</p>')
    return fill("alone", alt=title, why=why, **still(base))
