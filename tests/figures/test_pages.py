"""The frame of pages: everything is escaped, nothing undefined passes, every colour has a light and a dark value."""

from __future__ import annotations

import re

import pytest
from jinja2 import UndefinedError

from gyrostat.figures.pages import TEMPLATES, base_style, page_environment, plotly_script
from gyrostat.figures.palette import COLOURS, INKS, PAGE_COLOURS

HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028"


def page(body, **values):
    text = (
        "{% extends 'base_page.html' %}{% block title %}{{ title }}{% endblock %}{% block body %}"
        + body
        + "{% endblock %}"
    )
    return page_environment(TEMPLATES).from_string(text).render(title=HOSTILE, **values)


def test_values_are_escaped_also_in_scripts():
    made = page("<p>{{ x }}</p><script>{{ x | tojson }}</script>", x=HOSTILE)
    assert made.startswith("<!doctype html>") and "<img" not in made and made.count("</script>") == 1
    assert made.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&amp;") == 2


def test_a_name_that_is_not_given_is_an_error():
    with pytest.raises(UndefinedError):
        page("{{ nothing }}")
    with pytest.raises(ValueError, match="not JSON compliant"):
        page("{{ x | tojson }}", x=float("nan"))


def test_every_colour_that_the_style_uses_is_declared():
    style = base_style()
    declared = set(re.findall(r"@property (--[\w-]+)", style))
    assert declared == {f"--{name}" for name in PAGE_COLOURS} | {f"--series-{i}" for i in range(len(COLOURS + INKS))}
    assert set(re.findall(r"var\((--[\w-]+)\)", style)) <= declared


def test_the_library_is_installed():
    assert plotly_script().stat().st_size > 1e6
