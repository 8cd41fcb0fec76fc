"""The laboratory in a real browser: Debian's Chromium through Playwright."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from conftest import HASTY
from gyrostat.lab.export import csv_command, python_program, read_state

pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra test")
pytest.importorskip("starlette", reason="needs the extra lab")
from browser import chromium, findings, needs_axe, needs_browser, picture

pytestmark = needs_browser
SMALL = "lab=environments&seeds=8&spread=1"
WHOLE = "#status[data-kind=curves][data-whole=true]"
PATIENCE = 90_000
MOVE = (
    "([id, value]) => { const s = document.getElementById(id); s.value = value;"
    " for (const kind of ['input', 'change']) s.dispatchEvent(new Event(kind, { bubbles: true })); }"
)
"""A function of the page that moves a slider and releases it."""
END = """([panel, label]) => {
  const { entries, data } = gyrostat.shown.panels[panel], { traces } = entries.find((entry) => entry.label === label);
  return traces.map((i) => data[i]).find((trace) => trace.mode.startsWith("lines") && !trace.fill).y.at(-1);
}"""
"""The last value of a curve."""


class Served:
    """A laboratory in a process of its own, and its address."""

    def __init__(self) -> None:
        start = [sys.executable, "-c", "from gyrostat.cli import main; main()", "lab", "--no-browser"]
        as_users_have_it = {**os.environ, HASTY.upper(): "0"}  # its programs run for longer than they compile
        self.process = subprocess.Popen(start, stdout=subprocess.PIPE, text=True, env=as_users_have_it)
        assert self.process.stdout is not None
        address = re.search(r"(http://[\d.]+:\d+/)\?(token=[\w-]+)", self.process.stdout.readline())
        assert address is not None
        self.url, self.token = address[1], address[2]

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
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def page(served: Served, browser: Any) -> Iterator[Any]:
    """The page with its first curves. At the end, it must have said nothing wrong and asked no other server."""
    # axe-core is added to the page as a script, which the page's own policy forbids.
    page = browser.new_page(viewport={"width": 1280, "height": 850}, bypass_csp=True, reduced_motion="reduce")
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text))
    page.on(
        "request",
        lambda request: None if request.url.startswith((served.url, "blob:", "data:")) else wrong.append(request.url),
    )
    page.goto(f"{served.url}?{served.token}&{SMALL}")
    assert "token" not in page.url
    page.wait_for_selector(WHOLE, timeout=PATIENCE)
    yield page
    assert wrong == []
    page.close()


def settle(page: Any, before: int) -> None:
    """Wait until a drawing after number ``before`` is complete."""
    page.wait_for_selector(f"#status[data-whole=true]:not([data-number='{before}'])", timeout=PATIENCE)


def drawings(page: Any) -> int:
    return int(page.evaluate("document.getElementById('status').dataset.number"))


def slide(page: Any, name: str, value: float) -> None:
    before = drawings(page)
    page.evaluate(MOVE, [f"slide-{name}", value])
    settle(page, before)


def end(page: Any, panel: int, label: str) -> float:
    return page.evaluate(END, [panel, label])


def test_the_spurious_curve_falls_when_heterogeneity_grows(page):
    assert end(page, 0, "spurious") > 0.8 and "✗" in page.text_content("#conditions li >> nth=0")
    slide(page, "spread", 8)
    assert end(page, 0, "spurious") < 0.1 < 0.8 < end(page, 1, "spurious") and end(page, 0, "invariant") > 0.9
    assert page.text_content("#conditions li >> nth=0").startswith("✓ holds")
    headline = page.inner_text("#headline")
    assert headline.startswith(
        "Prediction: spurious signal eliminated, transition at M* = 4.2; the theorem itself does"
    )
    assert re.fullmatch(r"\(\d of 10 hold\)", page.inner_text("#tally")) and not page.is_visible("#conditions")
    page.click("summary >> nth=0")
    assert page.is_visible("#conditions") and "spread=8" in page.url


def test_both_algorithms_are_in_one_view_without_scrolling(page):
    boxes = page.evaluate(
        "[...document.querySelectorAll('.plot')].map((plot) => plot.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == 2 and boxes[0]["top"] == boxes[1]["top"] and boxes[0]["right"] < boxes[1]["left"]
    status = page.evaluate("document.getElementById('status').getBoundingClientRect().bottom + scrollY")
    assert status < 850


def test_the_address_restores_the_state(page, browser, served):
    other = browser.new_page()  # with cookies of its own: a stranger until it brings the token
    assert other.goto(page.url).status == 403
    other.goto(f"{page.url}&{served.token}")
    other.wait_for_selector(WHOLE, timeout=PATIENCE)
    assert other.input_value("#set-spread") == "8" and end(other, 0, "spurious") == end(page, 0, "spurious")
    other.close()


def test_the_page_shows_the_program_and_the_command_of_its_state(page):
    state = read_state(page.url.partition("?")[2])
    assert page.text_content("#python") == python_program(*state) and "spread=8.0" in page.text_content("#python")
    assert page.text_content("#command") == csv_command(*state)
    page.click("summary >> nth=1")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("text=Copy as Python")
    page.wait_for_selector("button:has-text('✓')")
    assert page.evaluate("navigator.clipboard.readText()") == python_program(*state)


def test_bad_values_are_refused_visibly_and_the_next_good_one_is_drawn(page):
    page.fill("#set-spread", "99")
    page.wait_for_selector("#refused:not([hidden])")
    assert "spread must be a number between 0 and 20; got '99'" in page.inner_text("#refused")
    assert page.get_attribute("#set-spread", "aria-invalid") == "true"
    assert "stale" in page.get_attribute("#panels", "class")
    before = drawings(page)
    page.fill("#set-spread", "8")
    settle(page, before)
    assert page.is_hidden("#refused") and page.get_attribute("#set-spread", "aria-invalid") == "false"


@pytest.mark.parametrize(
    ("state", "sentence"),
    [("lab=kitchen", "unknown lab 'kitchen'"), ("stepsize=1", "'step_size'"), ("=%ff&", "unknown")],
)
def test_a_state_that_does_not_parse_is_one_sentence_and_the_page_works(page, served, state, sentence):
    page.goto(f"{served.url}?{state}")
    page.wait_for_selector("#refused:not([hidden])")
    assert sentence in page.inner_text("#refused")
    page.fill("#set-spread", "8")
    page.wait_for_selector(WHOLE, timeout=PATIENCE)
    assert page.is_hidden("#refused") and page.url.endswith("?lab=environments&spread=8")


def test_controls_that_do_not_matter_are_disabled_and_say_why(page):
    why = "only with update rule: momentum or Nesterov"
    assert page.is_disabled("#set-beta") and page.is_visible(f"text={why}")
    before = drawings(page)
    page.select_option("#set-rule", "momentum")
    settle(page, before)
    assert page.is_enabled("#set-beta") and not page.is_visible(f"text={why}")


def test_a_slider_that_compiles_asks_when_it_is_released(page):
    before = drawings(page)
    slider = page.locator("#slide-rank")
    slider.evaluate("(slider) => { slider.value = 2; slider.dispatchEvent(new Event('input', { bubbles: true })); }")
    assert page.input_value("#set-rank") == "2" and "rank=2" not in page.url
    slide(page, "rank", 2)
    assert "rank=2" in page.url and drawings(page) == before + 1


@pytest.mark.parametrize("figure", ["xu2024/fig3", "xiong2024/fig1.2c", "wang2023/fig1"])
def test_presets_of_every_paper_load_and_their_sliders_move(page, figure):
    page.wait_for_selector(f"#preset option[value='{figure}']", state="attached")
    lead = page.inner_text("#lead")
    with page.expect_navigation():
        page.select_option("#preset", figure)
    page.wait_for_selector(WHOLE, timeout=PATIENCE)
    page.wait_for_function("(figure) => document.getElementById('preset').value === figure", arg=figure)
    assert page.inner_text("#lead") != lead and page.locator("#labs [aria-current]").count() == 1
    picture(page, f"lab-{figure.replace('/', '-')}")
    slide(page, "step_size", -1)
    assert page.input_value("#set-step_size") == "0.1"
    assert page.input_value("#preset") == "" and "figure" not in page.url  # it is no longer the setting of the figure
    for view in page.locator("#views label").all()[1:]:
        before = drawings(page)
        view.click()
        settle(page, before)
    widths = "[...document.querySelectorAll('.plot')].map((plot) => plot.clientWidth - plot._fullLayout.width)"
    assert all(abs(difference) <= 1 for difference in page.evaluate(widths))  # also where two panels became one


def test_phase_diagram_fills_in_and_its_cells_move_the_sliders(page, served):
    page.goto(f"{served.url}?{SMALL}&measurements=population&num_steps=100")
    page.wait_for_selector(WHOLE, timeout=PATIENCE)
    page.click("#tabs >> text=Phase diagram")
    page.wait_for_selector("#status[data-kind=phase][data-whole=true]", timeout=PATIENCE)
    picture(page, "lab-phase")
    box = page.locator(".plot .nsewdrag").bounding_box()
    page.mouse.click(box["x"] + 0.95 * box["width"], box["y"] + 0.5 * box["height"])
    page.wait_for_function("document.getElementById('set-spread').value === '11'")
    assert "tab=phase" in page.url and "spread=11" in page.url and page.input_value("#slide-spread") == "11"
    page.click("#tabs >> text=Trajectories")
    page.wait_for_selector(WHOLE, timeout=PATIENCE)


def test_downloads_are_files_for_print(page, tmp_path):
    for kind, start in (("PDF", b"%PDF"), ("PNG", b"\x89PNG"), ("SVG", b"<?xml"), ("CSV", b"side,curve,step")):
        with page.expect_download() as waiting:
            page.click(f"#files >> text={kind}")
        waiting.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(start)


@needs_axe
@pytest.mark.parametrize("tab", ["draw", "phase"])
@pytest.mark.parametrize("lab", ["environments", "factors", "completion"])
def test_everyone_can_use_every_laboratory_at_every_width(page, served, lab, tab):
    page.goto(f"{served.url}?lab={lab}&tab={tab}")
    page.wait_for_selector("#status[data-kind]", timeout=PATIENCE)
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "dark"), (390, "light")):
        page.set_viewport_size({"width": width, "height": 850})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("() => !document.querySelector('.stale')")
        picture(page, f"lab-{lab}-{tab}-{width}-{scheme}")
        assert findings(page, "minor", "moderate", "serious", "critical") == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.set_viewport_size({"width": 1280, "height": 850})


def test_something_is_drawn_before_anything_is_computed_and_the_page_says_that_the_server_is_gone(browser):
    server = Served()
    page = browser.new_page()
    page.goto(f"{server.url}?{server.token}&{SMALL}&seeds=5")
    page.wait_for_selector(".plot .xaxislayer-above", timeout=PATIENCE)
    assert len(page.query_selector_all("#legend li")) in (1, 4)  # the predicted curve, if the runs are not there yet
    page.wait_for_selector(WHOLE, timeout=PATIENCE)
    server.end()
    page.evaluate(MOVE, ["slide-spread", 5])
    page.wait_for_selector("#lost:not([hidden])")
    assert "gyrostat lab" in page.inner_text("#lost") and "spread=5" in page.url
    page.close()
