"""The laboratory's server without a browser: what it sends, what it refuses, and its processes."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from gyrostat.errors import GyrostatError
from gyrostat.lab.laboratories import LABS, lab_of
from gyrostat.lab.start import listen, resolved
from gyrostat.lab.workers import PROCESS_ENDED, Job, LabWorkers

testclient = pytest.importorskip("starlette.testclient", reason="needs the extra lab")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")
from gyrostat.lab import server  # noqa: E402

HOST, TOKEN = "127.0.0.1:8765", "the-token"
SMALL = "lab=environments&num_steps=100&seeds=6&measurements=population"


@pytest.fixture(scope="module")
def client():
    app = server.application({HOST}, TOKEN, LabWorkers(1))
    cookie = {"Cookie": f"gyrostat-8765={TOKEN}"}
    with testclient.TestClient(app, base_url=f"http://{HOST}", headers=cookie) as client:
        yield client


def events(client: Any, address: str) -> list[dict[str, Any]]:
    answer = client.get(address)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line]


def test_page_is_complete_and_asks_no_other_server(client):
    page = client.get("/")
    assert page.status_code == 200 and "default-src 'none'" in page.headers["content-security-policy"]
    wanted = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert len(wanted) > 4 and all(client.get("/" + path).status_code == 200 for path in wanted)
    for path in Path(server.STATIC).iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"^\s*//.*$|[^:]// .*$", "", text, flags=re.M) and "innerHTML" not in text, path.name


def test_the_page_has_the_values_of_its_address_and_defaults_for_what_cannot_be_read(client):
    page = " ".join(client.get("/?lab=factors&width=7&rank=99&dimension=20&tab=phase").text.split())
    values = dict(re.findall(r'<input id="set-(\w+)"[^>]* value="([^"]*)"', page))
    assert (values["width"], values["rank"], values["step_size"]) == ("7", "2", "0.1")
    assert "<option selected>20</option>" in page and 'value="phase" checked' in page
    assert "One factor or two" in client.get("/?lab=factors").text.split("<title>")[1].split("</title>")[0]
    assert "Several environments ·" in client.get("/?lab=kitchen").text


def test_drawing_streams_the_theory_and_figures(client):
    theory, predicted, *rest, end = events(client, f"/draw?{SMALL}")
    assert "gs.run(" in theory["python"] and theory["command"].startswith("gyrostat lab --state")
    assert "Prediction" in theory["headline"] and {c["verdict"] for c in theory["conditions"]} == {"holds", "fails"}
    labels = [[entry["label"] for entry in panel["entries"]] for panel in predicted["panels"]]
    assert labels == [["R² of eq. (25)"]] * 2
    (curves,) = [message for message in rest if message["kind"] == "curves"]
    assert [entry["label"] for entry in curves["panels"][1]["entries"]][:2] == ["invariant", "spurious"]
    assert curves["status"] == "6 seeds: medians and quartiles" and curves["whole"] and end == {"kind": "end"}
    assert "sentences" in {message["kind"] for message in rest}


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("lab=nowhere", "unknown lab 'nowhere'"),
        ("spread=x", "spread must be a number"),
        ("dimension=31", "unknown dimension '31'"),
        ("tab=data", "use gyrostat fit"),
        ("stepsize=1", "did you mean 'step_size'"),
        ("measurements=fixed&law=gaussian", "FixedGaussian keeps data"),
        ("lab=factors&measurements=sensing&dimension=200", "takes too long"),
        ("=&&=%ff&x", "unknown setting"),
    ],
)
def test_a_bad_state_is_one_sentence_in_streams_and_files(client, state, sentence):
    failed, end = events(client, f"/draw?{state}")
    assert failed["kind"] == "failed" and sentence in failed["text"] and end["kind"] == "end"
    table = client.get(f"/curves.csv?{state}")
    assert table.status_code == 422 and table.text == failed["text"]


def test_a_laboratory_that_raises_is_one_sentence_and_the_server_goes_on(client, monkeypatch):
    class Broken(type(LABS["factors"])):
        name = "broken"

        def conditions(self, s: Any) -> Any:
            raise ZeroDivisionError("no theory")

    monkeypatch.setitem(LABS, "broken", Broken())
    failed, end = events(client, "/draw?lab=broken")
    assert failed == {"kind": "failed", "text": "ZeroDivisionError: no theory"} and end["kind"] == "end"
    # The processes do not know it either, so that computing fails there.
    answer = client.get("/curves.csv?lab=broken")
    assert answer.status_code == 422 and "unknown lab 'broken'" in answer.text
    assert events(client, f"/draw?{SMALL}")[-2]["kind"] in ("curves", "sentences")


def test_curves_are_files_for_print(client):
    rows = client.get(f"/curves.csv?{SMALL}").text.splitlines()
    assert rows[0] == "side,curve,step,low,median,high" and len(rows) == 1 + 2 * 3 * 101
    begins = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}
    for kind, magic in begins.items():
        answer = client.get(f"/curves.{kind}?{SMALL}")
        assert answer.content.startswith(magic) and f"environments.{kind}" in answer.headers["content-disposition"]
    assert client.get(f"/curves.exe?{SMALL}").status_code == 404


def test_only_who_knows_the_token_is_let_in(client):
    stranger = {"Cookie": ""}
    for path, headers in [("/", stranger), ("/?token=wrong", stranger), ("/presets", {"Cookie": "gyrostat-8765=x"})]:
        refused = client.get(path, headers=headers, follow_redirects=False)
        assert refused.status_code == 403 and "the address that gyrostat lab printed" in refused.text
        assert "set-cookie" not in refused.headers
    welcome = client.get(f"/?token={TOKEN}&lab=factors&x=%26", headers=stranger, follow_redirects=False)
    assert welcome.status_code == 303 and welcome.headers["location"].endswith("/?lab=factors&x=%26")
    cookie = welcome.headers["set-cookie"]
    assert cookie.startswith(f"gyrostat-8765={TOKEN}") and "HttpOnly" in cookie and "SameSite=lax" in cookie
    client.cookies.clear()
    assert client.get("/", headers={"Cookie": "", "Authorization": f"token {TOKEN}"}).status_code == 200
    for host in ("evil.example", "127.0.0.1:1", ""):
        assert client.get("/", headers={"Host": host}).status_code == 403


def test_every_answer_has_the_headers(client):
    paths = {"/": 200, "/nowhere": 404, "/curves.csv?lab=x": 422, "/../server.py": 404, "/draw?lab=x": 200}
    for path, status in paths.items():
        answer = client.get(path)
        assert answer.status_code == status
        assert all(answer.headers.get(name) == value for name, value in server.HEADERS.items()), path
    assert client.post("/draw").status_code == 405


def test_presets_of_a_plug_in_stand_beside_ours(client, monkeypatch):
    """Those that a laboratory cannot read are left out, with a warning, and break nothing."""
    from gyrostat.experiments import LabPreset, Paper, registry

    good = LabPreset(lab="factors", name="fig1", title="Mine", values={"num_steps": 100}, note="A note.")
    bad = [
        LabPreset(lab="factors", name="fig2", title="", values={"no_such_control": 1}),
        LabPreset(lab="kitchen", name="fig3", title="", values={}),
    ]
    paper = Paper(name="mine2026", title="Mine", experiments=[], presets=[bad[0], good, bad[1]])
    monkeypatch.setattr(registry, "installed_papers", lambda: {"mine2026": ["mine:PAPER"], "gone2026": ["gone:PAPER"]})
    find = registry.find_paper
    monkeypatch.setattr(registry, "find_paper", lambda name: paper if name == "mine2026" else find(name))
    with pytest.warns(UserWarning, match="is left out|are left out") as warned:
        presets = client.get("/presets").json()["One factor or two"]
    assert presets[-1] == ["mine2026/fig1", "Mine", "lab=factors&num_steps=100&figure=mine2026%2Ffig1"]
    assert len(warned) == 3 and "xiong2024/fig1.1" in {name for name, _, _ in presets}
    with pytest.warns(UserWarning, match="left out"):
        assert "Mine. A note." in client.get(f"/?{presets[-1][2]}").text


PHASE: Job = (
    0,
    "phase",
    {"lab": "environments", "setting": lab_of("environments").read({"measurements": "population"})},
)


def test_a_stream_that_nobody_reads_is_dropped_and_a_dead_process_is_said_and_started_again():
    async def scene() -> None:
        workers = LabWorkers(1)
        try:
            abandoned = workers.messages([PHASE])
            assert (await anext(abandoned))["done"] == 1
            await abandoned.aclose()
            (worker,) = workers.workers
            assert worker.waiting == {}
            sent, receive = [], worker.connection.recv
            worker.connection.recv = lambda: sent.append(message := receive()) or message
            second = workers.messages([PHASE])
            assert [(await anext(second))["done"] for _ in range(10)] == list(range(1, 11))
            assert len(sent) < 16  # jobs take turns: otherwise the first would have sent as many as the second
            worker.process.kill()
            last = [message async for message in second][-1]
            assert last == {"kind": "failed", "text": PROCESS_ENDED}
            third = workers.messages([PHASE])
            assert (await anext(third))["done"] == 1
            await third.aclose()
        finally:
            workers.stop()

    asyncio.run(scene())


def test_a_browser_that_leaves_in_the_middle_has_its_job_dropped():
    async def scene() -> None:
        workers = LabWorkers(1)
        app = server.application({HOST}, TOKEN, workers)
        sent: list[bytes] = []
        leaves = asyncio.Event()
        headers = [(b"host", HOST.encode()), (b"cookie", f"gyrostat-8765={TOKEN}".encode())]
        scope = {"type": "http", "method": "GET", "path": "/phase", "headers": headers, "query_string": SMALL.encode()}
        scope |= {"scheme": "http", "server": ("127.0.0.1", 8765), "root_path": "", "raw_path": b"/phase"}

        async def receive() -> dict[str, Any]:
            await leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message.get("body", b""))
            if b'"kind": "phase"' in sent[-1]:
                leaves.set()

        try:
            await asyncio.wait_for(app(scope, receive, send), 120)
            assert leaves.is_set() and b'"kind": "end"' not in b"".join(sent)
            assert workers.workers[0].waiting == {}
        finally:
            workers.stop()

    asyncio.run(scene())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0", "::ffff:0.0.0.0", "224.0.0.1"])
def test_every_address_at_once_is_refused(host):
    with pytest.raises(GyrostatError, match="every address"):
        resolved(host)


def test_addresses_and_ports_that_cannot_be_used_are_one_sentence():
    with pytest.raises(GyrostatError, match="--host"):
        resolved("no such host")
    with listen("127.0.0.1", None) as taken, pytest.raises(GyrostatError, match="choose another with --port"):
        listen("127.0.0.1", taken.getsockname()[1])
