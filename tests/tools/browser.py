"""A real browser for tests of pages: Debian's chromium, driven by Playwright, that writes down what goes wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from playwright.sync_api import expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gyrostat"
AXE = CACHE / "axe/node_modules/axe-core/axe.min.js"
"""Where ``tests/tools/prepare-browser`` puts the accessibility checker."""
SCREENSHOTS = os.environ.get("GYROSTAT_SCREENSHOTS")
"""A folder in which tests leave pictures of what they saw."""

_OPTIONS: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""The options of contexts that visits share."""
PATIENCE = 20_000
"""Milliseconds after which a page is called stuck: far beyond what a busy machine needs."""

needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here (tests/tools/prepare-browser installs it)"
)
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="no axe-core here (tests/tools/prepare-browser installs it with npm)"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser."""
    # Chromium refuses its sandbox to root, who runs tests in containers; no page here comes from elsewhere.
    options = ["--process-per-site", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@contextmanager
def visit(browser: Any, address: str, *, allowed: str = "file:", **options: Any) -> Iterator[Any]:
    """A page at ``address``; at the end it must have said nothing wrong and asked for nothing that is not ``allowed``.

    ``options`` are those of a Playwright context: ``viewport``, ``color_scheme``, ``java_script_enabled``, ...
    """
    context = _context(browser, options) if allowed == "file:" else browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: None if innocent(request.url, allowed) else wrong.append(request.url))
    page.goto(address)
    try:
        yield page
        assert wrong == []
    finally:
        if allowed != "file:":
            context.close()
        else:
            _leave(context, page)


def _context(browser: Any, options: dict[str, Any]) -> Any:
    """One context for all visits with the same options: a report's megabytes of script are compiled once in its process."""
    found = next((c for c in browser.contexts if _OPTIONS.get(c) == options), None)
    if found is None:
        found = browser.new_context(**options)
        _OPTIONS[found] = options
    return found


def _leave(context: Any, page: Any) -> None:
    """Nothing is remembered; the first page stays open, since a process ends with its last one."""
    if _OPTIONS[context].get("java_script_enabled", True):
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    if page is not context.pages[0]:
        page.close()


def innocent(address: str, allowed: str) -> bool:
    """Whether a request stays on this machine: ``data:`` and ``blob:`` never leave the page."""
    return address.startswith((allowed, "data:", "blob:"))


def findings(page: Any, *impacts: str) -> list[str]:
    """What axe-core finds of these impacts, as lines that say where."""
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    grave = [one for one in found if one["impact"] in impacts]
    return [f"{one['impact']}: {one['id']} at {node['target']}" for one in grave for node in one["nodes"]]


def picture(page: Any, name: str) -> None:
    """Keep a screenshot, if a folder for them is given."""
    if SCREENSHOTS:
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")
