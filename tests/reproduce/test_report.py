"""The report in a real browser: every figure is drawn, the network is not used, and every control works."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect
from rich.console import Console

from browser import PATIENCE, chromium, findings, needs_axe, needs_browser, picture, visit
from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.experiments.claims import KINDS
from gyrostat.parallel.whole_files import write_whole
from gyrostat.reproduce.claims import declared_claims, stored_claims
from gyrostat.reproduce.report import page as report
from gyrostat.reproduce.report.folder_contents import claim_status, gather, verdict_text
from gyrostat.reproduce.runner import reproduce
from gyrostat.reproduce.store import ResultsStore

FAKE = Path(__file__).parents[1] / "tools"
REAL = "xu2024/lemma5"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def zoo():
    """The made-up paper, registered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FAKE))
        import zoo2024

        patch.setitem(registry.PAPERS, "zoo2024", "zoo2024:PAPER")
        yield zoo2024


@pytest.fixture(scope="module")
def folder(zoo, tmp_path_factory):
    """A results folder with the made-up paper, not all of it, and one real figure."""
    out = tmp_path_factory.mktemp("report") / "results"
    names = ["zoo2024/curves", "zoo2024/shapes", REAL]
    reproduce(names, size="smoke", out=out, jobs=1, console=Console(file=io.StringIO()))
    return out


@pytest.fixture(scope="module")
def address(zoo, folder, tmp_path_factory):
    """The same results as one page."""
    whole = tmp_path_factory.mktemp("one-file") / "results"
    shutil.copytree(folder, whole)
    page = report.rebuild(whole, one_file=True)
    assert not list((whole / "pages").glob("*"))  # the pages of the papers would be stale
    return page.as_uri()


@pytest.fixture(scope="module")
def index(folder):
    return (folder / "index.html").as_uri()


@pytest.fixture(scope="module")
def paper_page(folder):
    return (folder / "pages/zoo2024.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def draw_all(page):
    """Scroll to every plot, as a reader would, until each is drawn."""
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
    expect(page.locator(".plot:not([data-drawn])")).to_have_count(0)


def ids(page, selector):
    return page.eval_on_selector_all(selector, "found => found.filter(x => x.checkVisibility()).map(x => x.id)")


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_without_a_complaint(browser, address, scheme):
    with visit(browser, address, color_scheme=scheme) as page:
        draw_all(page)
        panels = page.locator(".panel").count()
        assert panels == 6 + len(
            registry.experiments("xu2024")["lemma5"].draw(ResultsStore(folder_of(address)).load(REAL)).panels
        )
        assert page.locator(".panel .main-svg").count() >= panels
        assert set(page.eval_on_selector_all(".plot", "x => x.map(p => p.dataset.drawn)")) == {scheme}
        assert page.locator("#zoo2024\\/shapes .heatmaplayer image").count() == 1
        assert page.locator("#zoo2024\\/shapes .barlayer .point path").count() == 4
        assert page.locator("#zoo2024\\/shapes .errorbar").count() == 3 + 2 + 2
        assert page.locator("#zoo2024\\/shapes .plot").nth(3).locator(".ytick text").all_text_contents() == [
            "one method",
            "another method",
        ]
        # Ticks and points are on one scale, also where the declaration leaves one end of the axis open.
        points = page.locator("#zoo2024\\/shapes .plot").first
        one = middle(points.locator(".ytick text").filter(has_text=re.compile("^1$")))
        assert middle(points.locator(".scatterlayer .point").first) == pytest.approx(one, abs=3)
        picture(page, f"report-{scheme}")


def middle(thing):
    box = thing.bounding_box()
    return box["y"] + box["height"] / 2


def folder_of(address):
    return Path(address.removeprefix("file://")).parent


@needs_browser
def test_plots_are_drawn_when_they_come_near(browser, address):
    with visit(browser, address, viewport={"width": 390, "height": 500}) as page:
        page.wait_for_timeout(300)
        assert page.locator(".plot:not([data-drawn])").count() > 0
        draw_all(page)


@needs_browser
def test_no_word_becomes_a_tag(browser, address, zoo):
    with visit(browser, address) as page:
        page.on("dialog", lambda dialog: pytest.fail("a script in a label was run"))
        draw_all(page)
        claim = page.locator("[id='zoo2024/curves/nasty']")
        assert claim.locator(".statement").inner_text() == zoo.NASTY
        assert page.locator("main img:not(.still)").count() == page.locator(".panel b, .statement b").count() == 0
        assert page.locator("#zoo2024\\/curves figcaption").nth(1).inner_text() == zoo.NASTY
        plot = page.locator("#zoo2024\\/curves .plot").nth(1)
        assert hovered(plot, 0, 5)[0].startswith("<img src=x onerror")


def hovered(plot, curve, point):
    """The lines of the label that a pointer over this point is shown."""
    plot.evaluate("(p, at) => Plotly.Fx.hover(p, [{ curveNumber: at[0], pointNumber: at[1] }])", [curve, point])
    return lines_of_label(plot)


def lines_of_label(plot):
    plot.locator(".hovertext text").first.wait_for()
    return plot.locator(".hovertext text tspan.line").all_text_contents()


@needs_browser
def test_hover_tells_the_numbers(browser, address):
    with visit(browser, address) as page:
        draw_all(page)
        plot = page.locator("#zoo2024\\/curves .plot").first
        assert hovered(plot, 1, 4) == ["band", "x 5", "y 5", "from 3 to 7"]
        heat = page.locator("#zoo2024\\/shapes .plot").nth(2)
        heat.scroll_into_view_if_needed()
        box = heat.locator(".heatmaplayer image").bounding_box()
        page.mouse.move(box["x"] + box["width"] - 9, box["y"] + box["height"] - 9)
        assert lines_of_label(heat) == ["x 8", "y 1", "3"]


@needs_browser
def test_the_legend_puts_series_away(browser, address):
    with visit(browser, address) as page:
        draw_all(page)
        panel = page.locator("#zoo2024\\/curves .panel").first
        shown = lambda: panel.locator(".plot").evaluate(  # noqa: E731
            "p => [p.data.filter(t => t.visible !== false).length, p.layout.shapes.filter(s => s.visible !== false).length]"
        )
        traces, shapes = shown()
        panel.get_by_role("button", name="band").click()
        panel.get_by_role("button", name="time").press("Enter")
        page.wait_for_timeout(100)
        assert shown() == [traces - 3, shapes - 1]
        assert panel.get_by_role("button", name="band").get_attribute("aria-pressed") == "false"
        page.locator("input[name=theme][value=dark]").check()  # drawn again, and still put away
        expect(page.locator(".plot:not([data-drawn=dark])")).to_have_count(0)
        assert shown() == [traces - 3, shapes - 1]
        page.locator("#zoo2024\\/curves button.reset").click()
        page.wait_for_timeout(100)
        assert shown() == [traces, shapes]


@needs_browser
def test_filters(browser, address):
    with visit(browser, address) as page:
        everything = ids(page, ".claim")
        count = page.locator("#count")
        assert count.inner_text().startswith(f"{len(everything)} of {len(everything)} claims")
        page.locator("input[name=verdict][value=surprise]").check()
        assert ids(page, ".claim") == ["zoo2024/shapes/odd"] and ids(page, ".experiment") == ["zoo2024/shapes"]
        page.locator("input[name=verdict][value=fails]").check()
        assert ids(page, ".claim") == [c for c in everything if c in that_fail(folder_of(address))]
        assert {"zoo2024/curves/printed", "zoo2024/curves/typical"} <= set(ids(page, ".claim"))
        page.locator("input[name=verdict][value=all]").check()
        page.locator("input[name=paper][value=xu2024]").check()
        assert ids(page, ".experiment") == [REAL] and not page.locator("section#zoo2024").is_visible()
        page.locator("input[name=paper][value=all]").check()
        page.locator("#words").fill("ODD number")
        assert ids(page, ".claim") == ["zoo2024/shapes/odd"]
        page.locator("#words").fill("no such word")
        assert page.locator("#nothing").is_visible() and ids(page, ".experiment") == []
        page.locator("#everything").click()
        assert ids(page, ".claim") == everything


def that_fail(folder):
    records = json.loads((folder / "claims.json").read_text())
    return [r["id"] for r in records if r["verdict"] == r["expected"] == "fails"]


@needs_browser
def test_links_to_claims(browser, address):
    options = {"permissions": ["clipboard-read", "clipboard-write"], "reduced_motion": "reduce"}
    with visit(browser, f"{address}#zoo2024/shapes/even", **options) as page:
        claim = page.locator("[id='zoo2024/shapes/even']")
        assert claim.evaluate("c => c.getBoundingClientRect().top < innerHeight && c.matches(':target')")
        page.evaluate("new Promise(done => { addEventListener('hashchange', done); location.hash = 'zoo2024/curves' })")
        heading = page.locator("#zoo2024\\/curves h3")
        under = page.locator(".filters").bounding_box()
        assert under["height"] <= heading.bounding_box()["y"] < under["height"] + 100
        claim.locator(".address button.copy").click()
        page.locator("#said").filter(has_text="Link copied").wait_for(state="attached")
        assert page.evaluate("navigator.clipboard.readText()") == f"{address}#zoo2024/shapes/even"
        page.locator("input[name=verdict][value=surprise]").check()
        assert not claim.is_visible()
        page.evaluate("location.hash = ''")
        page.locator(".contents a[href='#zoo2024/curves']").click()  # put away by the filter: comes back
        page.locator("#zoo2024\\/curves").wait_for()
        assert claim.is_visible() and page.locator("input[name=verdict][value=all]").is_checked()
        page.locator("[id='zoo2024/curves/held'] summary").click()
        page.locator("[id='zoo2024/curves/held'] button[data-copy]").click()
        page.locator("#said").filter(has_text="Command copied").wait_for(state="attached")
        command = page.evaluate("navigator.clipboard.readText()")
        assert re.match(r"gyrostat reproduce zoo2024/curves --size smoke --seed 0 --out \S+ --fresh$", command)


@needs_browser
def test_light_dark_and_auto(browser, address):
    with visit(browser, address, color_scheme="dark") as page:
        background = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
        dark = background()
        page.locator("input[name=theme][value=light]").check()
        assert background() == "rgb(255, 255, 255)" != dark
        page.reload()
        assert background() == "rgb(255, 255, 255)"  # kept
        page.locator("input[name=theme][value=auto]").check()
        assert background() == dark
        draw_all(page)
        page.emulate_media(color_scheme="light")
        expect(page.locator(".plot:not([data-drawn=light])")).to_have_count(0)
        assert background() == "rgb(255, 255, 255)"


@needs_browser
def test_keyboard(browser, address):
    with visit(browser, address) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('#figures') !== null")
        draw_all(page)
        plot = page.locator("#zoo2024\\/curves .plot").first
        plot.focus()
        assert plot.evaluate("p => getComputedStyle(p).outlineStyle") == "solid"
        width = lambda: plot.evaluate("p => p._fullLayout.xaxis.range[1] - p._fullLayout.xaxis.range[0]")  # noqa: E731
        before = width()
        page.keyboard.press("+")
        page.wait_for_timeout(100)
        assert width() == pytest.approx(0.8 * before)
        start = plot.evaluate("p => p._fullLayout.xaxis.range[0]")
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(100)
        assert plot.evaluate("p => p._fullLayout.xaxis.range[0]") > start
        page.keyboard.press("0")
        page.wait_for_timeout(100)
        assert width() == pytest.approx(before)
        page.locator("input[name=paper][value=all]").focus()
        page.keyboard.press("ArrowRight")
        assert not page.locator("input[name=paper][value=all]").is_checked()


@needs_browser
def test_csv_holds_what_is_drawn(browser, address):
    with visit(browser, address) as page:
        with page.expect_download() as saved:
            page.locator("#zoo2024\\/shapes .figure button.csv").click()
        assert saved.value.suggested_filename == "zoo2024-shapes.csv"
        rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text(encoding="utf-8"))))
        points = [row for row in rows if row["series"] == "points"]
        assert [(row["x"], row["y"], row["low"], row["high"]) for row in points][2] == ("4", "0.1", "-1", "1")
        heat = {(row["x"], row["y"]): row["value"] for row in rows if row["series"] == "share of runs"}
        assert len(heat) == 12 and heat["8", "3"] == "11" and heat["1", "1"] == ""
        assert [row["x"] for row in rows if row["series"] == "fold"] == ["3"]
        assert [row["y"] for row in rows if row["series"] == ""] == ["3", "1"]
        assert [row["y"] for row in rows if row["series"] == "a"] == ["1", "2"]
        dots = [(row["x"], row["y"], row["low"], row["high"]) for row in rows if row["series"] == "ours"]
        assert dots == [("0.5", "one method", "0.2", "1"), ("2", "another method", "1", "4")]
        assert [row["x"] for row in rows if row["series"] == "edge"]


@needs_browser
def test_print_shows_still_pictures_of_everything(browser, address):
    with visit(browser, address, color_scheme="dark") as page:
        page.emulate_media(media="print")
        assert page.locator(".still:visible").count() == page.locator(".figure").count() == 3
        assert page.locator(".plot:visible, .filters:visible, button:visible").count() == 0
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator(".still").evaluate_all(
            "x => Promise.all(x.map(i => i.decode().then(() => i.naturalWidth > 600)))"
        )
        assert len(page.pdf()) > 20_000


@needs_browser
def test_without_scripts(browser, address):
    with visit(browser, address, java_script_enabled=False) as page:
        assert page.locator(".still:visible").count() == 3 and page.locator(".claim:visible").count() >= 6
        assert page.locator(".filters:visible, .panel:visible, button:visible").count() == 0


@needs_browser
def test_a_plot_that_cannot_be_drawn_leaves_its_picture(browser, folder, tmp_path):
    page = (folder / "pages/zoo2024.html").read_text()
    centres = '"label":"share of runs","x":[1,2,4,8],"y":[1,2,3]'
    assert centres in page
    (tmp_path / "index.html").write_text(page.replace(centres, '"label":"share of runs"'))
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    broken = context.new_page()
    broken.goto((tmp_path / "index.html").as_uri())
    broken.locator("#zoo2024\\/shapes").scroll_into_view_if_needed()
    broken.locator("#zoo2024\\/shapes .still").wait_for()
    context.close()


@needs_browser
def test_a_phone(browser, address):
    with visit(browser, address, **PHONE) as page:
        draw_all(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator(".plot").first.evaluate("p => p._fullLayout.dragmode") is False  # a finger scrolls the page
        drawing = page.locator(".plot .main-svg").first
        narrow = drawing.get_attribute("width")
        page.set_viewport_size({"width": 600, "height": 844})
        expect(drawing).not_to_have_attribute("width", narrow)
        assert float(drawing.get_attribute("width")) > float(narrow) + 100
        picture(page, "report-phone")


@needs_browser
@needs_axe
@pytest.mark.parametrize("options", [{}, PHONE | {"color_scheme": "dark"}])
def test_accessibility(browser, address, index, paper_page, options):
    for place in (address, index, paper_page):
        with visit(browser, place, **options) as page:
            if place == address:
                draw_all(page)
            page.locator("summary:visible").last.click()
            assert findings(page, "serious", "critical", "moderate") == []
            assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


@needs_browser
def test_old_links_arrive_at_the_page_of_the_paper(browser, index):
    with visit(browser, f"{index}#zoo2024/shapes/even") as page:
        page.wait_for_url(re.compile(r"pages/zoo2024\.html#zoo2024/shapes/even$"))
        claim = page.locator("[id='zoo2024/shapes/even']")
        assert claim.evaluate("c => c.open && c.matches(':target') && c.getBoundingClientRect().top < innerHeight")
        page.evaluate("location.hash = 'zoo2024/shapes/renamed'")  # no longer there: its figure is
        page.wait_for_function("document.getElementById('zoo2024/shapes').getBoundingClientRect().top < 200")
        page.goto(f"{index}#nobody/fig1")
        assert page.url.endswith("index.html#nobody/fig1")


@needs_browser
def test_the_index_finds_claims_of_all_papers(browser, index):
    with visit(browser, index) as page:
        assert page.locator(".card .lines[open]").count() == 0
        page.locator("#words").fill("odd number")
        hits = page.locator(".lines .claim:visible a")
        assert hits.count() == 1
        page.locator("#words").fill("")
        page.locator("#words").fill("typical")
        page.locator("input[name=verdict][value=fails]").check()
        hits.click()
        page.wait_for_url(re.compile("zoo2024.html#zoo2024/curves/typical$"))
        assert page.locator("[id='zoo2024/curves/typical']").evaluate("c => c.open")


@needs_browser
def test_claims_fold_and_pages_lead_to_each_other(browser, paper_page):
    with visit(browser, paper_page) as page:
        claim = page.locator("[id='zoo2024/curves/typical']")
        assert "does not hold here: not typical" in claim.locator("summary").inner_text()
        assert not claim.locator("> dl").is_visible()
        claim.locator("summary").click()
        assert claim.locator(".measured li").inner_text() == "half-time over theory 1.00"
        assert [t.inner_text() for t in claim.locator("dt").all()][:3] == ["Why not", "Criterion", "Measured"]
        assert claim.locator("button.csv").is_visible() and claim.locator("code").is_visible()
        page.locator("#fold").click()
        assert page.locator("details.claim:not([open])").count() == 0
        page.locator("#fold").click()
        assert page.locator("details.claim[open]").count() == 0
        page.locator("#zoo2024\\/curves a[rel=next]").click()
        expect(page.locator(".contents a[href='#zoo2024/shapes']")).to_have_attribute("aria-current", "true")
        page.locator("nav.papers a").click()
        page.wait_for_url(re.compile("xu2024.html$"))


RECORDS = [
    {"verdict": verdict, "expected": expected, "kind": kind, "ours": ours}
    for verdict in ("holds", "fails", "undecided")
    for expected, kind in [("holds", ""), *(("fails", kind) for kind in KINDS)]
    for ours in (False, True)
]
"""Every claim that there can be."""


def is_said_to_hold(words):
    return bool(re.search(r"(?<!not )\bholds?\b", re.sub(r"\b0 of \d+ [a-z ]+ hold\b", "", words)))


@pytest.mark.parametrize("verdict", ["holds", "fails", "undecided"])
def test_the_words_of_a_claim_agree_with_its_verdict(verdict):
    declared = [record | {"verdict": verdict} for record in declared_claims()]
    for record in [*declared, *(record for record in RECORDS if record["verdict"] == verdict)]:
        author = "ours" if record["ours"] else "the papers"
        counted = report.counted_statements([record], author)
        assert f" of 1 statements of {author} hold" in counted
        for words in (claim_status(record).word, verdict_text(record), counted):
            assert is_said_to_hold(words) == (verdict == "holds"), words
            assert bool(re.search(r"\bfails?\b|\bnot hold\b", words)) == (verdict == "fails"), words


def test_the_headline_counts_the_statements_of_the_papers_only_and_adds_up():
    ours = [record for record in RECORDS if record["ours"]]
    counts = "hold; 4 do not hold here, with a reason; 5 undecided; 1 fails unexpectedly."
    assert report.headline(RECORDS) == f"5 of 15 statements of the papers {counts}"
    assert report.counted_statements(ours, "ours") == f"5 of 15 statements of ours {counts}"
    assert report.headline(RECORDS, 2).endswith(" 2 experiments could not be computed.")
    assert report.headline(ours) == "No statement of the papers was checked."
    verdicts = ("holds", "fails", "undecided", "holds", "fails")  # 5 and the number of claims have no common divisor
    declared = [r | {"verdict": verdicts[i % 5]} for i, r in enumerate(declared_claims())]
    of_papers, of_ours = [[r for r in declared if r["ours"] == ours] for ours in (False, True)]
    for told, part in {
        report.headline(declared): of_papers,
        report.counted_statements(of_ours, "ours"): of_ours,
    }.items():
        held, total, *others = map(int, re.findall(r"\d+", told))
        assert held == sum(r["verdict"] == "holds" for r in part) and total == held + sum(others) == len(part) > 100


@pytest.mark.parametrize("stored", [{}, {"ours": False}, {"ours": True}])
def test_whose_a_statement_is_comes_from_its_declaration(zoo, folder, monkeypatch, stored):
    claims = ResultsStore.claims
    old = lambda self: [{k: v for k, v in r.items() if k != "ours"} | stored for r in claims(self)]  # noqa: E731
    monkeypatch.setattr(ResultsStore, "claims", old)
    reported = [record for entry in gather(ResultsStore(folder)) for record in entry.records]
    for records in (reported, stored_claims(folder)):
        assert [r["id"] for r in records if r["ours"]] == ["zoo2024/shapes/even"] and len(records) > 6


def test_the_command_counts_the_statements_of_the_papers_and_ours_on_lines_of_their_own(zoo, tmp_path):
    said = io.StringIO()
    reproduce(["zoo2024/shapes"], size="smoke", out=tmp_path, jobs=1, console=Console(file=said, width=120))
    for line in (
        "0 of 1 statements of the papers hold; 1 fails unexpectedly.",
        "1 of 1 statements of ours hold.",
        "2 claims, 1 with a verdict that was not expected; experiments that could not be computed: 0.",
    ):
        assert line in said.getvalue().splitlines()


def test_pages_without_a_browser(folder):
    index, paper = (folder / "index.html").read_text(), (folder / "pages/zoo2024.html").read_text()
    for page in (index, paper):
        assert "default-src 'none'" in page and 'src="http' not in page and '<link rel="stylesheet' not in page
        assert len(page) < 6e6
    assert 'id="plotly"' in paper and 'id="plotly"' not in index
    opening = index[: index.index('id="figures"')]
    papers, ours = opening.split("Do our own statements hold?")
    assert "Do the papers' figures and statements hold?" in papers
    answer = "4 of 7 statements of the papers hold; 2 do not hold here, with a reason; 1 fails unexpectedly.</p>"
    assert answer in papers and answer not in ours
    assert 'href="pages/zoo2024.html#zoo2024/shapes/odd"' in papers and "1 of 1 statements of ours hold." in ours
    for fact in ("3 of", "smoke", "Linux", "Python 3.", "Gyrostat is a laboratory"):
        assert fact in opening
    cards = index[index.index('id="figures"') :]
    assert cards.count('class="thumbnail"') == 3 and "not run" in cards
    assert re.search(r"<b>2/4</b> of the paper&#39;s hold, .*2 do not hold here<", cards)
    assert (
        re.search(r"<b>0/1</b> of the paper&#39;s hold, .*1 fails unexpectedly<", cards)
        and "<b>1/1</b> of ours holds<" in cards
    )
    assert [int(n) for n in re.findall(r"<b>(\d+)</b></dt>", papers)] == [4, 2, 1]  # hold, do not, fails unexpectedly
    assert re.findall(r"✓</span> holds <b>(\d+)</b></dt>", ours) == ["1"]
    for link in ("https://arxiv.org/abs/2403.01420", "https://doi.org/10.48550/arXiv.2403.01420"):
        assert link in cards
    for page in (cards, paper):
        assert "It is a two &amp; not a one." in page and "Most runs are slower." in page  # reasons
    assert re.search(r"<th scope=\"row\">jump</th><td>about 2</td><td>2.50</td>", paper)


def test_report_is_made_again_from_the_store(zoo, folder, tmp_path, monkeypatch, capsys):
    from gyrostat import cli

    paths = [folder / "index.html", folder / "pages/zoo2024.html"]
    before = [path.read_text() for path in paths]
    for path in [*paths, folder / "figures/zoo2024/shapes.png"]:
        path.unlink()
    (folder / "pages/gone2020.html").write_text("a paper that is no longer here")
    monkeypatch.setattr(sys, "argv", ["gyrostat", "report", str(folder)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().out
    assert end.value.code == 0 and all(str(path) in said for path in paths) and "gone2020" not in said
    assert [path.read_text() for path in paths] == before and (folder / "figures/zoo2024/shapes.png").exists()
    with pytest.raises(GyrostatError, match=r"holds no results.zarr: run gyrostat reproduce --out"):
        report.rebuild(tmp_path)


def test_what_went_wrong_is_shown(zoo, tmp_path, monkeypatch):
    store = ResultsStore(tmp_path)
    reproduce(["zoo2024/shapes"], size="smoke", out=tmp_path, jobs=1, console=Console(file=io.StringIO()))
    write_whole(store.error("zoo2024/later"), "Traceback\nRuntimeError: <late>")
    monkeypatch.setattr(zoo.Shapes, "draw", lambda self, ds: ds["gone"])
    assert "1 experiment could not be computed." in report.write_report(store).read_text()
    page = (tmp_path / "pages/zoo2024.html").read_text()
    assert "RuntimeError: &lt;late&gt;" in page
    assert "cannot be drawn by this version of gyrostat: KeyError" in page and "data:image/webp;base64," in page
