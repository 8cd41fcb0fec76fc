"""HTML from small template files; everything that is put into one is escaped unless it is HTML already."""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any

HOME = Path(__file__).parent
TEMPLATES = HOME / "templates"


class Markup(str):
    """Text that is HTML already."""


def escaped(x: Any) -> Markup:
    """``x`` as HTML.

    >>> escaped("a < b"), escaped(Markup("<b>"))
    ('a &lt; b', '<b>')
    """
    return x if isinstance(x, Markup) else Markup(html.escape(str(x)))


def together(parts: Iterable[Any], between: str = "\n") -> Markup:
    """Parts one after the other, each escaped."""
    return Markup(between.join(escaped(part) for part in parts))


def fill(template: str, **values: Any) -> Markup:
    """The file ``templates/<template>.html`` with ``$name`` replaced by the values.

    >>> fill("fact", name="seed", value="<0>")
    '<div><dt>seed</dt><dd>&lt;0&gt;</dd></div>'
    """
    return Markup(_read(template).substitute({name: escaped(value) for name, value in values.items()}))


@functools.cache
def _read(template: str) -> Template:
    return Template((TEMPLATES / f"{template}.html").read_text(encoding="utf-8").strip())
