"""The laboratory's server without a browser: what it sends, what it refuses, and its worker processes."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gyrostat import cli
from gyrostat.errors import GyrostatError
from gyrostat.lab import computations
from gyrostat.lab.laboratories import lab_of
from gyrostat.lab.start import listen
from gyrostat.lab.workers import Dispatcher, JobQueue

testclient = pytest.importorskip("starlette.testclient", reason="needs the extra lab")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")
SMALL = {"dimension": "5", "num_steps": "100", "seeds": "6", "num_samples": "400"}
HOST = {"Host": "127.0.0.1:8765"}


@pytest.fixture(scope="module")
def client():
    from gyrostat.lab.server import application

    with testclient.TestClient(
        application({HOST["Host"]}, Dispatcher(1, 1)), base_url=f"http://{HOST['Host']}"
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


def test_guard(client):
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    body = {"window": "w", "number": 1, "lab": "factors", "setting": {}}
    assert client.post("/api/draw", json=body, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/draw", content=json.dumps(body), headers={"Content-Type": "text/plain"}).status_code == 403
    assert client.post("/api/draw", json={**body, "window": "x" * 30_000}).status_code == 422
    assert client.get("/../server.py").status_code == 404
    assert client.post("/api/draw", content=b"[", headers={"Content-Type": "application/json"}).status_code == 422


def test_table_of_an_example_and_of_a_file(client):
    (columns, _) = ask(client, "/api/table", {"example": "sites"})
    assert columns["environment"] == "site" and columns["target"] == "outcome"
    asked = {"example": "sites", "target": "outcome", "environment": "site", "missing": "error"}
    found = next(m for m in ask(client, "/api/table", asked) if m["kind"] == "diagnosis")
    assert {f["name"]: f["verdict"] for f in found["features"]}["protocol"] == "removed"
    text = "a,<b>\n1,x\n2,y\n"
    (columns, _) = ask(client, "/api/table", {"text": text})
    assert columns["columns"] == ["a", "<b>"]
    failed = ask(client, "/api/table", {**asked, "text": text} | {"example": "nothing"})
    assert failed[0]["kind"] == "failed" or "unknown example" in str(failed)


def test_a_newer_request_ends_the_older_and_windows_do_not_disturb_each_other():
    async def scene() -> tuple[list[str], list[str], list[str]]:
        dispatcher = Dispatcher(1, 1)
        setting = lab_of("environments").read({"seeds": "64", **{k: v for k, v in SMALL.items() if k != "seeds"}})
        parts = [(0, "curves", {"lab": "environments", "setting": setting, "side": 0})]

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
        parts = [(0, "columns", {"path": "example:sites"})]
        try:
            task = asyncio.create_task(anext(dispatcher.messages("a", "table", 1, parts)))
            await asyncio.sleep(0.1)
            dispatcher.workers[0]._process.kill()
            assert "computing process ended" in (await task)["text"]
            assert (await anext(dispatcher.messages("a", "table", 2, parts)))["kind"] == "columns"
        finally:
            dispatcher.stop()

    asyncio.run(scene())


def test_every_address_at_once_is_refused():
    found = CliRunner().invoke(cli.app, ["lab", "--host", "0.0.0.0", "--no-browser"])
    assert isinstance(found.exception, GyrostatError) and "one address" in str(found.exception)


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
