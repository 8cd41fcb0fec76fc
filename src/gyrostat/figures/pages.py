"""HTML pages: the Jinja2 environment, the frame and the style that all pages share, with the colours of the palette.

A page is a template that begins with ``{% extends "base_page.html" %}`` and fills the blocks ``title``, ``style``, ``head``
and ``body``.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gyrostat import __version__
from gyrostat.figures.palette import ON_DARK_PAGES, PAGE_COLOURS

TEMPLATES = Path(__file__).parent / "templates"


def page_environment(folder: Path) -> Environment:
    """The templates of ``folder`` and those that all pages share; every value that is put into one is escaped.

    ``base_style`` (the shared CSS) and ``version`` are known to all templates; the filter ``tojson`` writes compact JSON, in
    which no tag can begin.

    >>> page_environment(TEMPLATES).from_string("<p>{{ name }}</p>").render(name="a < b")
    '<p>a &lt; b</p>'
    """
    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"base_style": Markup(base_style()), "version": __version__}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False, "ensure_ascii": False}
    return environment


def base_style() -> str:
    """The CSS that all pages share: colours, letters, tables."""
    return colour_variables() + (TEMPLATES / "base_page.css").read_text(encoding="utf-8")


def colour_variables() -> str:
    """The colours of the palette as CSS variables (``--ink``, ``--paper``, ``--series-0`` ...), each in light and dark.

    They follow the system, or ``data-theme="light"`` or ``"dark"`` of the root element; prints are always light. Each is
    declared to be a colour, so that scripts can read the present one with ``getPropertyValue``.

    >>> "--paper: light-dark(#ffffff, #14171a);" in colour_variables()
    True
    """
    series = {f"series-{i}": pair for i, pair in enumerate(ON_DARK_PAGES.items())}
    pairs = PAGE_COLOURS | series
    declared = [
        f'@property --{name} {{ syntax: "<color>"; inherits: true; initial-value: {light}; }}'
        for name, (light, _) in pairs.items()
    ]
    values = [f"  --{name}: light-dark({light}, {dark});" for name, (light, dark) in pairs.items()]
    lines = [
        *declared,
        ":root { color-scheme: light dark;",
        *values,
        "}",
        ':root[data-theme="light"] { color-scheme: light; } :root[data-theme="dark"] { color-scheme: dark; }',
        "@media print { :root, :root[data-theme] { color-scheme: light; } }",
    ]
    return "\n".join(lines) + "\n"


def plotly_script() -> Path:
    """The file of plotly's JavaScript in the installed package; whole, because the package has no smaller bundle."""
    return Path(str(importlib.resources.files("plotly"))) / "package_data" / "plotly.min.js"
