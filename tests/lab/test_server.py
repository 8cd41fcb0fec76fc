"""The laboratory's server without a browser: what it sends, what it refuses, and its worker processes."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gyrostat import cli
from gyrostat.errors import GyrostatError
from gyrostat.lab import computations, workers
from gyrostat.lab.laboratories import lab_of
from gyrostat.lab.request_guard import HEADERS
from gyrostat.lab.start import listen, resolved
from gyrostat.lab.workers import TABLES, Dispatcher, JobQueue, JobRequest

testclient = pytest.importorskip("starlette.testclient", reason="needs the extra lab")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")
SMALL = {"dimension": "5", "num_steps": "100", "seeds": "6", "num_samples": "400"}
HOST = {"Host": "127.0.0.1:8765"}
TOKEN = "the-token"
KNOWN = {"Cookie": f"gyrostat-8765={TOKEN}"}


@pytest.fixture(scope="module")
def client():
    from gyrostat.lab.server import application

    with testclient.TestClient(
        application({HOST["Host"]}, TOKEN, Dispatcher(1, 1)), base_url=f"http://{HOST['Host']}", headers=KNOWN
    ) as found:
        yield found


def ask(client: Any, path: str, body: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    answer = client.post(path, json={"window": "w", "number": 1, **body}, headers=headers)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_page_is_complete_and_asks_no_other_server(client):
    page = client.get("/")
    assert page.status_code == 200 and "default-src 'none'" in page.headers["content-security-policy"]
    wanted = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert wanted and all(client.get("/" + path).status_code == 200 for path in wanted)
    root = Path(computations.__file__).parent / "static"
    for path in root.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"^\s*//.*$|[^:]// .*$", "", text, flags=re.M), path.name
        assert "innerHTML" not in text, path.name
    imported = {name for path in root.glob("*.js") for name in re.findall(r'from "\./([^"]+)"', path.read_text())}
    assert imported | {"main.js"} == {path.name for path in root.glob("*.js")}
    assert all(client.get("/" + name).status_code == 200 for name in imported)


def test_drawing_streams_curves_conditions_and_code(client):
    messages = ask(
        client, "/api/draw", {"lab": "factors", "setting": {"num_steps": "100", "seeds": "2", "dimension": "8"}}
    )
    kinds = [message["kind"] for message in messages]
    assert kinds[0] == "begin" and kinds[-1] == "end" and {"conditions", "predictions", "curves"} <= set(kinds)
    assert {m["side"] for m in messages if m["kind"] == "curves"} == {"symmetric", "asymmetric", "stepped"}
    assert "gs.run(" in messages[0]["python"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"lab": "nowhere", "setting": {}}, "unknown lab 'nowhere'"),
        ({"lab": "environments", "setting": {"spread": "x"}}, "spread must be a number"),
        (
            {"lab": "environments", "setting": {"dimension": "8", "rank": "8", "spurious_rank": "8"}},
            "do not fit in dimension",
        ),
        ({"lab": "factors", "setting": {"measurements": "sensing", "dimension": "200"}}, "takes too long"),
        ({"lab": "factors", "setting": [1]}, "setting must be a dict"),
        ({"lab": "factors"}, "setting must be a dict"),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(client, body, said):
    answer = client.post("/api/draw", json={"window": "w", "number": 1, **body})
    assert answer.status_code == 422 and said in answer.json()["text"]


def test_only_the_first_laboratory_is_shown_step_by_step(client):
    answer = client.post("/api/steps", json={"window": "w", "number": 1, "lab": "factors", "setting": {}})
    assert answer.status_code == 422 and "lab must be 'environments'" in answer.json()["text"]


def test_guard(client):
    body = {"window": "w", "number": 1, "lab": "factors", "setting": {}}
    assert client.post("/api/draw", json=body, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/draw", content=json.dumps(body), headers={"Content-Type": "text/plain"}).status_code == 403
    assert client.get("/../server.py").status_code == 404


def test_only_who_knows_the_token_is_let_in(client):
    stranger = {"Cookie": ""}
    for path, headers in [("/", stranger), ("/?token=wrong", stranger), ("/api/about", {"Cookie": "gyrostat-8765=x"})]:
        refused = client.get(path, headers=headers, follow_redirects=False)
        assert refused.status_code == 403 and "the address that gyrostat lab printed" in refused.text
        assert "set-cookie" not in refused.headers
    welcome = client.get(f"/?token={TOKEN}&lab=factors&x=%26", headers=stranger, follow_redirects=False)
    assert welcome.status_code == 303 and welcome.headers["location"] == "/?lab=factors&x=%26"
    cookie = welcome.headers["set-cookie"]
    assert cookie.startswith(KNOWN["Cookie"]) and "HttpOnly" in cookie and "SameSite=lax" in cookie
    client.cookies.clear()
    script = {"Cookie": "", "Authorization": f"token {TOKEN}"}
    assert client.get("/api/about", headers=script).status_code == 200


def test_every_answer_has_the_headers(client):
    """Refusals, errors and unknown addresses, too."""
    answers = [
        client.get("/"),
        client.get("/nowhere"),
        client.get("/", headers={"Host": "evil.example"}),
        client.get("/", headers={"Cookie": ""}),
        client.get("/api/draw"),
        client.post("/api/draw", json={"window": "w" * 30_000}),
        client.post("/api/draw", json={}),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 403, 403, 405, 413, 422]
    for answer in answers:
        assert all(answer.headers.get(name) == value for name, value in HEADERS.items()), answer.status_code


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 10_000,
        b'{"a":' * 3_000,
        b'{"window": "\\ud800"}',
        b'{"window": "\xed\xa0\x80"}',
        b"\xff",
        b'{"a": 1' + b"0" * 5_000,
    ],
)
def test_json_that_cannot_be_read_is_refused(client, content):
    answer = client.post("/api/draw", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422 and "JSON object" in answer.json()["text"]


def test_an_upload_that_is_too_large_is_not_read(client):
    """The guard asks for no byte of a body whose announced length is over the limit."""
    headers = {**HOST, **KNOWN, "Content-Type": "application/json", "Content-Length": "900000000"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/table",
        "raw_path": b"/api/table",
        "query_string": b"",
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        raise AssertionError("a byte was asked for")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(client.app(scope, receive, send))
    assert sent[0]["status"] == 413


def test_a_million_columns_are_refused_with_advice(client):
    for separator in ",;\t":
        text = separator.join(["a"] * 1_000_001) + "\n"
        answer = client.post("/api/table", json={"window": "w", "number": 1, "text": text})
        assert answer.status_code == 422 and "1000001 columns" in answer.json()["text"]
        assert "gyrostat fit" in answer.json()["text"]


def test_a_window_too_many_is_refused_before_the_answer_begins(client, monkeypatch):
    monkeypatch.setattr(workers, "MOST_REQUESTS", 0)
    body = {"window": "w", "number": 1, "lab": "factors", "setting": {}}
    answer = client.post("/api/draw", json=body)
    assert answer.status_code == 503 and "close some windows" in answer.json()["text"]
    assert client.post("/api/table", json={**body, "text": "a,b\n"}).status_code == 503


def test_slow_connections_are_closed():
    """One that sends nothing, one that stops within a head, and one that is not HTTP, which gets our headers."""
    from uvicorn import Config
    from uvicorn.server import ServerState

    from gyrostat.lab import connections

    async def scene() -> list[tuple[bytes, bytes]]:
        loop, config = asyncio.get_running_loop(), Config(lambda *a: None, http=connections.PatientProtocol, ws="none")
        config.load()
        server = await loop.create_server(
            lambda: connections.PatientProtocol(config, ServerState(), {}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        answers = []
        for first in (b"", b"GET / HTTP/1.1\r\nHost:", b"nonsense\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            answers.append((first, await asyncio.wait_for(reader.read(), 20)))
            writer.close()
        server.close()
        return answers

    patience, connections.HEAD_SECONDS = connections.HEAD_SECONDS, 0.2
    try:
        (_, nothing), (_, half), (_, nonsense) = asyncio.run(scene())
    finally:
        connections.HEAD_SECONDS = patience
    assert nothing == b"" and half == b""
    assert nonsense.startswith(b"HTTP/1.1 400") and b"content-security-policy" in nonsense


FIT = {"job": "fit", "target": "y", "environment": "site", "missing": "error", "family": "", "drop": []}


def table_text(rows: int = 60) -> str:
    """A table in which x has one effect in both sites, and room another in each."""
    lines = [
        f"{(7 * i) % 13},{i % 3},{'ab'[i % 2]},{(7 * i) % 13 + (i % 3) * (-1) ** i + i % 5 / 9}" for i in range(rows)
    ]
    return "\n".join(["x,room,site,y", *lines]) + "\n"


def test_table_of_an_example_and_of_a_file(client):
    (columns, _) = ask(client, "/api/table", {"example": "sites"})
    assert columns["environment"] == "site" and columns["target"] == "outcome"
    text = "a,<b>\n1,x\n2,y\n"
    (columns, _) = ask(client, "/api/table", {"text": text})
    assert columns["columns"] == ["a", "<b>"]
    failed = ask(client, "/api/table", {**FIT, "example": "nothing"})
    assert "unknown example" in str(failed)


def test_a_fit_is_that_of_the_command(client, tmp_path, monkeypatch):
    """The same model and sentences, and the command that the page shows gives them."""
    asked = {**FIT, "name": "my sites.csv", "text": table_text(), "drop": ["room"]}
    found = next(m for m in ask(client, "/api/table", asked) if m["kind"] == "fit")
    assert [f["name"] for f in found["features"]] == ["x"] and found["rows"] == 60
    assert f"<td>{found['features'][0]['mean_effect']}</td>" in found["page"]
    monkeypatch.chdir(tmp_path)
    Path("my sites.csv").write_text(table_text())
    said = CliRunner().invoke(cli.app, shlex.split(found["command"])[1:])
    assert said.exit_code == 0, said.output
    assert json.loads(Path("fit-results/model.json").read_text()) == json.loads(found["model"])
    assert Path("fit-results/summary.html").read_text() == found["page"]
    printed = " ".join(said.output.split())
    assert found["sentences"] and all(" ".join(text.split()) in printed for text in found["sentences"])


@pytest.mark.parametrize(
    ("change", "name", "content"),
    [
        ({}, "t.csv", "x,site,y\n"),
        ({"target": "z"}, "t.csv", table_text()),
        ({"environment": "x"}, "t.csv", "x,y\n1,2\n1,3\n"),
        ({"drop": ["nothing"]}, "t.csv", table_text()),
        ({}, "t.csv", table_text().replace("\n7,", "\n,", 1)),
        ({"family": "normal"}, "t.csv", table_text()),
    ],
)
def test_bad_tables_get_the_sentence_of_the_command(client, change, name, content, tmp_path, monkeypatch):
    asked = {**FIT, **change}
    (*_, failed, _) = ask(client, "/api/table", {**asked, "name": name, "text": content})
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(content)
    options = {"--target": "target", "--environment": "environment", "--missing": "missing", "--family": "family"}
    words = [word for option, key in options.items() if asked[key] for word in (option, asked[key])]
    words += ["--drop", ",".join(asked["drop"])] if asked["drop"] else []
    refused = CliRunner().invoke(cli.app, ["fit", name, *words])
    assert isinstance(refused.exception, GyrostatError)
    assert failed == {"kind": "failed", "text": str(refused.exception)}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("t.png", "DATA 't.png' is not a known kind of table"),
        ("t.parquet", "the page takes tables of text, not .parquet"),
    ],
)
def test_other_files_are_refused(client, name, said):
    answer = client.post("/api/table", json={"window": "w", "number": 1, "name": name, "text": "a"})
    assert answer.status_code == 422 and said in answer.json()["text"]


@pytest.mark.parametrize("name", ["../../t.csv", "/t.csv", "example:t.csv", "é" * 150 + ".csv"])
def test_the_name_of_a_file_leads_nowhere_else(client, name):
    (columns, _) = ask(client, "/api/table", {"name": name, "text": "a,b\n1,2\n"})
    assert columns["columns"] == ["a", "b"]
    (failed, _) = ask(client, "/api/table", {"name": name, "text": "a,b\n"})
    assert "'table.csv' has no rows" in failed["text"]


def test_a_long_job_on_a_table_is_ended_when_nobody_waits_for_it():
    async def scene() -> None:
        dispatcher = Dispatcher(1, 1)
        try:
            job = JobRequest(TABLES, "columns", {"folder": ".", "name": "example:sites"})
            first, second = (dispatcher.open(window, "table", 1, [job]) for window in "ab")
            process = dispatcher.tables._process
            first.close()
            assert dispatcher.tables._process is process  # another window waits
            second.close()
            assert dispatcher.tables._process is None and not process.is_alive()
        finally:
            dispatcher.stop()

    asyncio.run(scene())


def test_a_newer_request_ends_the_older_and_windows_do_not_disturb_each_other():
    async def scene() -> tuple[list[str], list[str], list[str]]:
        dispatcher = Dispatcher(1, 1)
        setting = lab_of("environments").read({"seeds": "64", **{k: v for k, v in SMALL.items() if k != "seeds"}})
        parts = [JobRequest(0, "curves", {"lab": "environments", "setting": setting, "side": 0})]

        async def kinds(window: str, number: int) -> list[str]:
            return [message["kind"] async for message in dispatcher.messages(window, "draw", number, parts)]

        try:
            old, other = asyncio.create_task(kinds("a", 1)), asyncio.create_task(kinds("b", 1))
            await asyncio.sleep(0.05)
            new = asyncio.create_task(kinds("a", 2))
            ended = await asyncio.wait_for(old, 5)  # at once: the first compilation alone takes longer
            late = await kinds("a", 1)
            assert late == ["superseded"]
            return ended, await new, await other
        finally:
            dispatcher.stop()

    old, new, other = asyncio.run(scene())
    assert old[-1] == "superseded" and "curves" not in old
    assert new[-1] == "curves" and other[-1] == "curves"


def test_a_killed_worker_is_reported_and_started_again():
    async def scene() -> None:
        dispatcher = Dispatcher(1, 1)
        parts = [JobRequest(0, "columns", {"folder": ".", "name": "example:sites"})]
        try:
            task = asyncio.create_task(anext(dispatcher.messages("a", "table", 1, parts)))
            await asyncio.sleep(0.1)
            dispatcher.workers[0]._process.kill()
            assert "computing process ended" in (await task)["text"]
            assert (await anext(dispatcher.messages("a", "table", 2, parts)))["kind"] == "columns"
        finally:
            dispatcher.stop()

    asyncio.run(scene())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", " ", "0", "0.0", "0x0", "::ffff:0.0.0.0", "224.0.0.1"])
def test_every_address_at_once_is_refused(host):
    found = CliRunner().invoke(cli.app, ["lab", "--host", host, "--no-browser"])
    assert isinstance(found.exception, GyrostatError) and "address of this machine" in str(found.exception)


@pytest.mark.parametrize(
    ("host", "address"), [("127.1", "127.0.0.1"), ("::1", "::1"), ("::ffff:127.0.0.1", "127.0.0.1")]
)
def test_addresses_are_checked_after_resolving(host, address):
    assert str(resolved(host)) == address and resolved(host).is_loopback


def test_a_name_that_nobody_knows_is_one_sentence():
    with pytest.raises(GyrostatError, match="is not known here"):
        resolved("nowhere.invalid")


def test_a_taken_port_is_one_sentence():
    first = listen("127.0.0.1", None)
    with first, pytest.raises(GyrostatError, match="cannot be used"):
        listen("127.0.0.1", first.getsockname()[1])
    with listen("127.0.0.1", None) as other:
        assert other.getsockname()[1] > 0


def test_a_dropped_job_is_not_worked_on_and_the_background_waits(monkeypatch):
    sent: list[tuple[int, dict[str, Any]]] = []
    asked: list[tuple[int, str, dict[str, Any]]] = []

    class Pipe:
        def poll(self) -> bool:
            return bool(asked)

        def recv(self) -> Any:
            return asked.pop(0)

        def send(self, message: Any) -> None:
            sent.append(message)

    def count(upto: int) -> Any:
        return iter([{"kind": "number", "value": i} for i in range(upto)])

    monkeypatch.setitem(computations.JOBS, "phase", count)
    monkeypatch.setitem(computations.JOBS, "curves", count)
    queue = JobQueue(Pipe())
    asked += [(1, "phase", {"upto": 9}), (2, "curves", {"upto": 1})]
    for _ in range(3):
        queue.receive()
        queue.step()
    assert [n for n, _ in sent] == [2, 2, 1]  # its message, its end, then the background
    asked.append((1, "drop", {}))
    asked.append((3, "curves", {"upto": 0}))
    queue.receive()
    queue.step()
    assert sent[-1] == (3, {"kind": "end"}) and not queue.background


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
    with pytest.warns(UserWarning, match="is left out|are left out") as told:
        presets = client.get("/api/presets").json()
    assert presets["factors"][-1] == {
        "name": "mine2026/fig1",
        "title": "Mine",
        "values": {"num_steps": 100},
        "note": "A note.",
    }
    assert presets["factors"][0]["name"] == "xiong2024/fig1.1" and len(told) == 3
