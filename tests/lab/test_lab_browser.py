"""The laboratory in a real browser: Debian's Chromium through Playwright."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from conftest import HASTY
from gyrostat import cli

pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra test")
pytest.importorskip("starlette", reason="needs the extra lab")
from browser import chromium, findings, needs_axe, needs_browser, picture

pytestmark = needs_browser
SMALL = "lab=environments&dimension=8&seeds=8&spread=1"
WHOLE = "#status[data-whole=true]"
PATIENCE = 90_000
MOVE = (
    "([id, value]) => { const s = document.getElementById(id); s.value = value;"
    " s.dispatchEvent(new Event('input', { bubbles: true })); }"
)
"""A function of the page that moves a slider."""


class Served:
    """A laboratory in a process of its own, and its address."""

    def __init__(self) -> None:
        start = [sys.executable, "-c", "from gyrostat.cli import main; main()", "lab", "--no-browser"]
        as_users_have_it = {**os.environ, HASTY.upper(): "0"}  # its programs run for longer than they compile
        self.process = subprocess.Popen(
            start, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=as_users_have_it
        )
        assert self.process.stdout is not None
        found = re.search(r"(http://[\d.]+:\d+/)\?(token=[\w-]+)", self.process.stdout.readline())
        assert found is not None
        self.url, self.token = found[1], found[2]

    def end(self) -> None:
        """End it as Ctrl-C does, so that it ends its workers."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    server = Served()
    yield server
    server.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def page(served: Served, browser: Any) -> Iterator[Any]:
    """The page with its first curves. At the end, it must have logged no error and asked no other server."""
    # axe-core is added to the page as a script, which the page's own policy forbids.
    found = browser.new_page(viewport={"width": 1300, "height": 850}, bypass_csp=True, reduced_motion="reduce")
    wrong: list[str] = []
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on(
        "console", lambda said: wrong.append(said.text) if said.type == "error" and "422" not in said.text else None
    )
    found.on(
        "request",
        lambda asked: None if asked.url.startswith((served.url, "blob:", "data:")) else wrong.append(asked.url),
    )
    found.goto(f"{served.url}?{served.token}&{SMALL}")
    assert "token" not in found.url
    found.wait_for_selector(WHOLE, timeout=PATIENCE)
    yield found
    assert wrong == []
    found.close()


def settle(page: Any, before: int) -> None:
    """Wait until all seeds of a request after number ``before`` are drawn."""
    page.wait_for_selector(f"{WHOLE}:not([data-number='{before}'])", timeout=PATIENCE)


def slide(page: Any, name: str, value: float) -> None:
    before = number(page)
    page.evaluate(MOVE, [f"slide-{name}", value])
    settle(page, before)


def number(page: Any) -> int:
    return page.evaluate("gyrostat.shown.number")


def end(page: Any, side: str, curve: str) -> float:
    return page.evaluate(f"gyrostat.shown.sides.{side}.curves.{curve}.middle.at(-1)")


def test_the_spurious_curve_falls_when_heterogeneity_grows(page):
    assert end(page, "hetero", "spurious") > 0.8 and "✗" in page.text_content("#conditions li >> nth=0")
    drawn = page.evaluate("document.querySelectorAll('#plot .scatterlayer .trace').length")
    assert drawn >= 12  # three curves with a band each, on two sides
    slide(page, "spread", 8)
    assert end(page, "hetero", "spurious") < 0.1 < 0.8 < end(page, "pooled", "spurious")
    assert end(page, "hetero", "signal") > 0.9
    assert page.text_content("#conditions li >> nth=0").startswith("✓ holds")
    said = page.inner_text("#headline")
    assert said.startswith(
        "Prediction: spurious signal eliminated, transition at M* = 4.2; the theorem itself does not"
    )
    assert not page.is_visible("#conditions")
    page.click("#details summary")
    assert page.is_visible("#conditions")
    assert "spread=8" in page.url


def test_the_address_restores_the_state(page, browser, served):
    other = browser.new_page()  # with cookies of its own: a stranger until it brings the token
    assert other.goto(page.url).status == 403
    other.goto(f"{page.url}&{served.token}")
    other.wait_for_selector(WHOLE, timeout=PATIENCE)
    assert other.input_value("#set-spread") == "8" and other.input_value("#set-dimension") == "8"
    assert end(other, "hetero", "spurious") == end(page, "hetero", "spurious")
    other.close()


def test_copied_python_gives_the_numbers_on_the_screen(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = number(page)
    page.select_option("#set-measurements", "population")  # compiled in a second; test_lab.py compares fresh ones
    settle(page, before)
    exec(page.text_content("#python"), {})
    printed = dict(re.findall(r"(\w+) (\{.*\})", capsys.readouterr().out))
    for side in ("hetero", "pooled"):
        ends = json.loads(printed[side].replace("'", '"'))
        for curve, value in ends.items():
            assert end(page, side, curve) == pytest.approx(value, rel=0, abs=1e-12)
        assert (tmp_path / f"{side}.png").read_bytes().startswith(b"\x89PNG")
    before = number(page)
    page.select_option("#set-measurements", "fresh")
    settle(page, before)


def test_bad_values_are_refused_visibly(page):
    before = end(page, "hetero", "signal")
    page.fill("#set-step_size", "7")
    page.wait_for_selector("#refused:visible")
    assert "step_size must be a number between" in page.inner_text("#refused")
    assert page.get_attribute("#set-step_size", "aria-invalid") == "true"
    assert end(page, "hetero", "signal") == before
    now = number(page)
    page.fill("#set-step_size", "0.05")
    settle(page, now)
    assert not page.is_visible("#refused") and page.get_attribute("#set-step_size", "aria-invalid") is None


def test_phase_diagram_fills_in_and_its_cells_move_the_sliders(page):
    page.click("#tab-phase")
    page.wait_for_selector("#phase-status[data-done='81']", timeout=PATIENCE)
    page.wait_for_selector("#phase-plot .hm image", timeout=PATIENCE, state="attached")
    page.wait_for_timeout(600)  # the last cells are drawn
    box = page.locator("#phase-plot .nsewdrag").first.bounding_box()
    page.mouse.click(box["x"] + 0.5 * box["width"] - 2 * box["width"] / 9, box["y"] + box["height"] / 2)
    page.wait_for_selector("#controls")
    page.wait_for_url(lambda url: "spread=8" not in url, timeout=PATIENCE)
    assert float(page.input_value("#set-spread")) < 8
    page.click("#tab-curves")


def test_a_run_is_played_step_by_step(page):
    page.select_option("#set-measurements", "population")  # compiled sooner
    page.click("#tab-steps")
    page.wait_for_selector("#frame:not([disabled])", timeout=PATIENCE)
    squares = "[...document.querySelectorAll('#product-hetero rect')].map((square) => square.style.fill)"
    at_first, first_target = page.evaluate(squares), page.inner_text("#name-hetero")
    assert page.inner_text("#seen").startswith("Step 0.")
    page.click("#play")
    page.wait_for_function("Number(document.getElementById('frame').value) > 1")
    page.click("#play")
    assert page.inner_text("#play") == "Play" and not page.inner_text("#seen").startswith("Step 0.")
    page.evaluate("const f = document.getElementById('frame'); f.value = f.max; f.dispatchEvent(new Event('input'))")
    assert page.evaluate(squares) != at_first
    page.evaluate("const f = document.getElementById('frame'); f.value = 1; f.dispatchEvent(new Event('input'))")
    assert page.inner_text("#name-hetero") != first_target  # the environments take turns


def test_the_tour_goes_through_three_settings(page):
    page.click("#tour-start")
    assert page.inner_text("#tour-title").startswith("1 of 3. What is invariant?") and page.is_visible("#panel-steps")
    page.click("#tour-next")
    assert page.is_visible("#panel-curves") and page.input_value("#set-spread") == "1"
    assert page.locator(".look-here #slide-spread").count() == 1
    page.click("#tour-next")
    assert page.get_attribute("#views button[value=errors]", "aria-pressed") == "true"
    assert "average" in page.inner_text("#tour-text") and page.inner_text("#tour-next") == "Done"
    page.click("#tour-next")
    assert not page.is_visible("#tour") and page.locator(".look-here").count() == 0


@needs_axe
@pytest.mark.parametrize("tab", ["curves", "steps", "phase", "data"])
def test_every_tab_can_be_used_by_everyone(page, tab):
    page.click("#place-data" if tab == "data" else f"#tab-{tab}")
    page.wait_for_selector(
        {
            "curves": WHOLE,
            "steps": "#frame:not([disabled])",
            "phase": "#phase-status[data-done]",
            "data": "#effects td",
        }[tab],
        timeout=PATIENCE,
    )
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        picture(page, f"lab-{tab}-{scheme}")
        assert findings(page, "serious", "critical") == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert findings(page, "serious", "critical") == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.set_viewport_size({"width": 1300, "height": 850})
    page.emulate_media(color_scheme="light")
    page.click("#labs button[value=environments]" if tab == "data" else "#tab-curves")


def answer(page: Any, *messages: dict[str, Any]) -> None:
    """Have the server's next answers about curves be these messages, and then nothing more."""
    body = "".join(json.dumps(message) + "\n" for message in (*messages, {"kind": "end"}))
    page.route("**/api/draw", lambda route: route.fulfill(body=body, content_type="application/x-ndjson"))


def test_curves_of_another_experiment_are_never_left_under_a_new_title(page):
    """A program that compiles, and has no shipped curves: the old curves are faint, and the page says why."""
    begin = page.evaluate("({...gyrostat.shown.begin, shipped: null})")
    answer(page, begin, {"kind": "compiling", "side": "hetero"})
    page.click("#labs button[value=factors]")
    assert "stale" in page.get_attribute("#plot", "class")  # at once
    assert page.inner_text("#headline") == "" == page.text_content("#conditions")
    page.wait_for_selector("#pending:has-text('Compiling the program of hetero')")
    assert "those of the previous setting" in page.inner_text("#pending") and not page.is_visible("#origin")
    page.unroute("**/api/draw")
    before = number(page)
    page.click("#labs button[value=environments]")
    page.wait_for_function(f"gyrostat.shown.number > {before}", timeout=PATIENCE)
    assert "stale" not in page.get_attribute("#plot", "class") and not page.is_visible("#pending")


def test_presets_load(page):
    before = number(page)
    page.select_option("#preset", "factors xiong2024/fig1.2c")
    # Its program compiles for seconds. Until then the page shows the shipped curves of the same preset, and says so.
    page.wait_for_selector(f"#status[data-level=shipped]:not([data-number='{before}'])", timeout=PATIENCE)
    assert page.inner_text("#origin").startswith("Shipped curves (gyrostat ")
    shipped = {side: end(page, side, "distance_loss") for side in ("symmetric", "asymmetric", "stepped")}
    settle(page, before)
    assert page.inner_text("#origin").startswith("Live")
    assert shipped == pytest.approx({side: end(page, side, "distance_loss") for side in shipped}, rel=1e-3)
    assert page.input_value("#set-init_scale") == "0.05" and "lab=factors" in page.url
    assert "The figure has k = 3" in page.inner_text("#lead")  # what differs
    # After the imbalance step the rate no longer depends on the start: many orders of magnitude.
    assert end(page, "stepped", "distance_loss") < 1e-10 * end(page, "asymmetric", "distance_loss")


def test_a_slider_that_compiles_asks_once_when_it_rests(page):
    """In the laboratory of the factors, which has a program for every dimension."""
    asked: list[str] = []
    if "lab=factors" not in page.url:
        before = number(page)
        page.click("#labs button[value=factors]")
        settle(page, before)
    begin = page.evaluate("({...gyrostat.shown.begin, shipped: null})")
    assert "dimension" in begin["compiling_controls"] and "init_scale" not in begin["compiling_controls"]
    answer(page, begin)
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/api/draw") else None)
    with page.expect_request("**/api/draw") as waiting:
        page.evaluate(f"for (let n = 51; n <= 60; n++) ({MOVE})(['slide-dimension', n])")
        assert "slider rests" in page.inner_text("#pending")
    assert waiting.value.post_data_json["setting"]["dimension"] == "60" and len(asked) == 1
    page.unroute("**/api/draw")


def test_downloads(page, tmp_path):
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<svg"), ("csv", b"side,curve,step")):
        with page.expect_download() as waiting:
            page.click(f"#{kind}")
        waiting.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(start)


MARKUP = "<img src=x onerror=document.title=1>"
PATTERN = [(0.3, 1.2), (-1.1, 0.4), (0.8, -0.9), (1.5, 0.1), (-0.6, -1.3), (-1.4, 0.7), (0.2, 0.9), (1.0, -0.5)]


def own_table() -> str:
    """Three sites; x has the same effect in all of them, room another in each."""
    rows = [
        f"{x},{room},{site},{x + slope * room + (i % 3 - 1) / 9:.3f},{i % 4}"
        for slope, site in zip((1, -1, 2), "abc", strict=True)
        for i, (x, room) in enumerate(PATTERN + [(-b, a) for a, b in PATTERN])
    ]
    return "\n".join([f"x,room,site,y,{MARKUP}", *rows]) + "\n"


def drop_file(page: Any, name: str, text: str) -> None:
    """Drop a file on the page as a mouse does."""
    carried = page.evaluate_handle(
        "([name, text]) => { const d = new DataTransfer(); d.items.add(new File([text], name)); return d; }",
        [name, text],
    )
    for event in ("dragover", "drop"):
        page.dispatch_event("#drop-box", event, {"dataTransfer": carried})


def test_a_table_is_dropped_fitted_downloaded_and_compared(page, tmp_path, monkeypatch):
    page.click("#place-data")
    page.wait_for_selector("#effects td", timeout=PATIENCE)  # the example, on a first visit
    assert (
        "removed" in page.inner_text("#effects") and not page.is_visible("#tabs") and not page.is_visible("#controls")
    )
    drop_file(page, "my sites.csv", own_table())
    page.wait_for_selector("#table-name:has-text('my sites.csv: 48 rows, 5 columns')", timeout=PATIENCE)
    assert not page.is_visible("#fit-result")  # what was found in another table is gone
    page.select_option("#target", "y")
    page.select_option("#environment", "site")
    page.uncheck("#features input[value=room]")
    page.click("#run-fit")
    page.wait_for_selector("#effects td", timeout=PATIENCE)
    named = page.locator("#effects tbody th").all_inner_texts()
    assert named == ["x", MARKUP] and page.title() == "Gyrostat laboratory" and page.locator("main img").count() == 0
    page.wait_for_selector("#forest .trace", state="attached")
    for kind in ("page", "model"):
        with page.expect_download() as waiting:
            page.click(f"#save-{kind}")
        waiting.value.save_as(tmp_path / kind)
    assert "<h1" in (tmp_path / "page").read_text()
    command = page.inner_text("#fit-command")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my sites.csv").write_text(own_table())
    assert CliRunner().invoke(cli.app, shlex.split(command)[1:]).exit_code == 0
    assert json.loads((tmp_path / "fit-results/model.json").read_text()) == json.loads((tmp_path / "model").read_text())
    page.click("#run-compare")
    page.wait_for_selector("#methods td", timeout=PATIENCE)
    assert {"ours, everywhere", "least squares", "ridge"} <= set(page.locator("#methods tbody th").all_inner_texts())
    assert page.inner_text("#compare-command").startswith("gyrostat compare-methods 'my sites.csv' --target y")
    page.wait_for_selector("#compare-plot .trace", state="attached")
    page.check("#features input[value=room]")
    assert "outdated" in page.get_attribute("#fit-result", "class") and "run again" in page.inner_text("#data-status")
    page.set_input_files("#file", {"name": "t.csv", "mimeType": "text/csv", "buffer": b"a,b\n"})
    page.wait_for_selector("#data-refused:visible", timeout=PATIENCE)
    assert page.inner_text("#data-refused").startswith("'t.csv' has no rows: give a table")  # as on the command line
    before = number(page)
    page.click("#labs button[value=environments]")
    assert page.is_visible("#panel-curves") and not page.is_visible("#panel-data")
    settle(page, before)  # the next test ends the server: no answer may be under way on this page


def test_shipped_curves_come_first_and_the_page_says_that_the_server_is_gone(served, browser, record_property):
    """The last test: it ends the server."""
    still = browser.new_page(java_script_enabled=False)
    still.goto(f"{served.url}?{served.token}&lab=factors")
    still.wait_for_selector("#first-drawing .median >> nth=0")  # visible, without any script
    assert still.inner_text("#origin").startswith("Shipped curves (gyrostat ")
    still.close()
    page = browser.new_page()
    page.goto(f"{served.url}?{served.token}&lab=factors")
    page.wait_for_selector("#python:not(:empty)", state="attached", timeout=PATIENCE)
    page.wait_for_selector("#status[data-level]", timeout=PATIENCE)
    opening = page.evaluate("gyrostat.opening")
    assert opening["origin"] == "shipped"  # before anything is compiled
    assert page.locator("#first-drawing").count() == 0  # plotly has replaced it
    record_property("first_curves_ms", opening["milliseconds"])
    assert not page.is_visible("#lost")
    served.end()
    assert served.process.returncode in (0, 130, -signal.SIGINT)
    assert served.process.stderr is not None and served.process.stderr.read() == ""
    page.fill("#set-rank", "3")
    page.wait_for_selector("#lost:visible", timeout=PATIENCE)
    assert "gyrostat lab" in page.inner_text("#lost")
    page.close()
