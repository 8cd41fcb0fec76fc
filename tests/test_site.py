"""The documentation site: it builds without a warning or a request, pages are current and easy to find, programs run."""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "site_tools"))

griffe = pytest.importorskip("griffe", reason="the site needs the extra docs")
import docstring_markup  # noqa: E402
import reference_pages  # noqa: E402
import site_counts  # noqa: E402
import tutorial_pages  # noqa: E402

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra test").expect
from browser import chromium, findings, needs_axe, needs_browser, picture, visit  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    ran = subprocess.run(  # without --quiet, which hides warnings from --strict
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        text=True,
        capture_output=True,
    )
    assert ran.returncode == 0, ran.stderr
    return folder


def test_the_site_asks_the_network_for_nothing(site):
    """Strict building has checked links and anchors; here are scripts, styles, fonts and pictures of other hosts."""
    loaded = re.compile(
        r"""<(?:script|img|iframe)[^>]+src="(https?:[^"]+)|<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(https?:[^"]+)"""
    )
    outside = {str(page): found for page in site.rglob("*.html") if (found := loaded.findall(page.read_text()))}
    assert len(list(site.rglob("*.html"))) > 30 and not outside
    assert not re.findall(r"@import|url\(https?:", "".join(style.read_text() for style in site.rglob("*.css")))


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    """The site on a server of this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


NEWCOMERS_WORDS = [
    "use my own matrices",
    "draw the trajectory",
    "custom distribution of environments",
    "adam optimizer",
    "custom model",
    "custom metric",
    "hyperparameter grid",
    "predict whether it will work",
    "cycle through environments",
    "csv rows with site labels",
    "continue after interruption",
    "compare my run with a paper figure",
]
"""What someone types who has not seen the page of the twelve tasks, task by task."""


def type_into_search(page: Any, words: str) -> None:
    """Replace what is in the search box; the theme looks when a key is released."""
    page.fill(".md-search__input", words)
    page.press(".md-search__input", "End")


def found_section(page: Any, words: str, number: int) -> Any:
    """The link to a task on one of the first three pages that the search finds, visible after at most two clicks."""
    page.click(".md-search__input")
    type_into_search(page, "")
    expect(page.locator(".md-search-result__meta")).to_have_text(re.compile("Type to start"))
    type_into_search(page, words)
    link = f"a[href*='how-to-twelve-tasks.html'][href*='#{number}-']"
    found = page.locator("li.md-search-result__item:nth-child(-n+3)").filter(has=page.locator(link))
    found.locator(link).wait_for(state="attached")
    if not found.locator(link).is_visible():
        found.locator("summary").click()
    expect(found.locator(link)).to_be_visible()
    return found.locator(link)


@needs_browser
def test_the_twelve_tasks_are_found_from_the_search_box_within_three_clicks(browser, address, site):
    """The box, perhaps "more on this page", and the section; no other host is asked. The last section is really opened."""
    headings = re.findall(r'<h2 id="([^"]+)">(\d+)\.', (site / "how-to-twelve-tasks.html").read_text())
    assert len(headings) == len(NEWCOMERS_WORDS) == 12
    with visit(browser, address + "index.html", allowed=address) as page:
        for words, (anchor, number) in zip(NEWCOMERS_WORDS, headings, strict=True):
            section = found_section(page, words, int(number))
            assert section.get_attribute("href").endswith(f"#{anchor}")
        section.click()
        assert page.locator("h2:target").inner_text().startswith("12. ")


@needs_browser
@needs_axe
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("index", 1280, "light"),
        ("reference/errors", 1280, "dark"),
        ("claims", 390, "dark"),
    ],
)
def test_a_page_can_be_used_by_everyone(browser, address, name, width, scheme):
    window = {"width": width, "height": 850}
    with visit(browser, f"{address}{name}.html", allowed=address, viewport=window, color_scheme=scheme) as page:
        page.wait_for_load_state("load")
        picture(page, f"site-{name.replace('/', '-')}-{width}-{scheme}")
        assert findings(page, "serious", "critical") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("face", docstring_markup.FACES)
def test_every_public_name_has_a_place_in_the_reference(face, site):
    pages = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    missing = [
        name for name in reference_pages.public_objects() if name.startswith(face) and f'id="{name}"' not in pages
    ]
    assert not missing


def test_the_generated_pages_are_current():
    for file, text in reference_pages.pages().items():
        assert (reference_pages.FOLDER / file).read_text() == text, (
            f"docs/reference/{file} is old: run python docs/site_tools/reference_pages.py"
        )


def test_every_parameter_of_every_public_name_is_documented():
    assert site_counts.undocumented() == {}


def run_here(commands: str) -> str:
    """Run lines of a shell block, ours in this process: a process of their own would take seconds to start.

    As in a process of its own, a command knows no paper that an earlier one was given, and reads its file anew.
    """
    from gyrostat.cli import app
    from gyrostat.experiments import registry

    said = []
    for line in commands.splitlines():
        program, *words = shlex.split(line)
        if program != "gyrostat":
            said.append(subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout)
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry, "_given", {})
            patch.setattr(sys, "path", list(sys.path))
            ran = CliRunner().invoke(app, words)
        assert ran.exit_code == 0, f"{line}: {ran.output} {ran.exception}"
        said.append(ran.stdout)
        here = [name for name, module in sys.modules.items() if _is_of(module, Path.cwd())]
        for name in here:
            del sys.modules[name]
    return "".join(said)


def _is_of(module: Any, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(folder)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("name", tutorial_pages.tutorial_names())
def test_a_tutorial_prints_what_its_page_says(name, tmp_path, monkeypatch):
    """Commands have to succeed; what they print holds times, and is not compared."""
    monkeypatch.chdir(tmp_path)
    page = (tutorial_pages.FOLDER / f"{name}.md").read_text()
    for cell, text, pictures in tutorial_pages.run_cells(
        (tutorial_pages.FOLDER / f"{name.replace('-', '_')}.py").read_text(), run_here
    ):
        assert (cell.text if cell.kind == "markdown" else f"```{cell.kind}\n{cell.text}\n```") in page
        assert cell.kind != "python" or not text or f"```text\n{text.rstrip()}\n```" in page
        assert all((tutorial_pages.PICTURES / f"{name}-{picture.name}").exists() for picture in pictures)


def commands_on(page: Path) -> list[str]:
    return [each.text for each in site_counts.shell_commands(page) if re.match(r"(gyrostat|make) ", each.text)]


@pytest.mark.parametrize("page", [page for page in site_counts.PAGES if commands_on(page)], ids=lambda page: page.name)
def test_commands_on_a_page_exist_with_their_options(page):
    import typer

    from gyrostat.cli import app

    commands = typer.main.get_command(app).commands
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in commands_on(page):
        program, name, *words = shlex.split(re.split(r" (?:&&|\|) ", line)[0])
        if program == "make":
            assert name in targets, line
        else:
            words = [word for word in words if not word.startswith("$")]
            assert commands[name].make_context(name, words, resilient_parsing=False), line


@pytest.fixture(scope="module")
def files_of_a_reader(tmp_path_factory):
    """A folder with the files that commands on the pages name: tables, results of two runs, a sweep, a paper."""
    from gyrostat.reproduce.runner import reproduce
    from gyrostat.sweeps import run_sweep
    from gyrostat.tables.examples import example

    folder = tmp_path_factory.mktemp("reader")
    table = example("sites")
    table.to_csv(folder / "DATA.csv", index=False)
    table.head(20).to_csv(folder / "NEW.csv", index=False)
    reproduce(["studies/fold"], size="smoke", out=folder / "results", jobs=1, console=Console(quiet=True))
    for name in ("results-before", "results-after"):
        shutil.copytree(folder / "results", folder / name)
    run_sweep(SMALL_SWEEP, out=folder / "diagram", jobs=0)
    shutil.copytree(folder / "diagram", folder / "sweep-results")
    (folder / "mypaper.py").write_text((ROOT / "tests/tools/zoo2024.py").read_text())
    return folder


SMALL_SWEEP = {
    "num_steps": 20,
    "seeds": 4,
    "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
    "environments": {"kind": "RandomEnvironments", "dimension": 4, "law": {"kind": "TwoPoint"}},
    "measurements": {"kind": "Identity"},
    "axes": {"spread": [1.0, 6.0]},
    "success": {"spurious": {"below": 0.1}},
}


def executed_on(page: Path) -> list[str]:
    found = [each.text for each in site_counts.shell_commands(page) if each.reason is None]
    return [] if site_counts.is_tutorial(page) else found


@pytest.mark.parametrize("page", [page for page in site_counts.PAGES if executed_on(page)], ids=lambda page: page.name)
def test_commands_on_a_page_succeed(page, files_of_a_reader, monkeypatch):
    """All of them, in order, except for those for which ``site_counts.NOT_RUN`` has a reason."""
    monkeypatch.chdir(files_of_a_reader)
    run_here("\n".join(executed_on(page)))


def test_every_reason_not_to_run_a_command_is_needed():
    texts = [each.text for page in site_counts.PAGES for each in site_counts.shell_commands(page)]
    assert [pattern for pattern in site_counts.NOT_RUN if not any(re.match(pattern, text) for text in texts)] == []


def test_the_first_page_shows_the_ten_lines_of_the_readme():
    shown = [
        re.search(r"```python\n.*?```\n\n```text\n.*?```", (ROOT / page).read_text(), re.DOTALL)
        for page in ("README.md", "docs/index.md")
    ]
    assert shown[0][0] == shown[1][0]


DEVICES = """
import hashlib, jax, gyrostat as gs
problem = gs.Problem(gs.RandomEnvironments(8, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(400))
with jax.default_device(jax.devices()[-1]):
    found = gs.run(gs.HeteroSGD(0.05), problem, num_steps=50, seeds=6)
print(len(jax.devices()), hashlib.sha256(found.spurious.values.tobytes()).hexdigest())
"""


def test_the_number_of_devices_changes_no_bit():
    """This process has one device, and a second one has two."""
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    there = subprocess.run(
        [sys.executable, "-c", DEVICES],
        text=True,
        capture_output=True,
        env={**os.environ, "XLA_FLAGS": flags},
        check=True,
    )
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(DEVICES, {})
    (one, bits), (two, same) = here.getvalue().split(), there.stdout.split()
    assert (one, two) == ("1", "2") and bits == same
