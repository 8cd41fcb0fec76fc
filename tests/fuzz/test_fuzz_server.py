"""Requests to the laboratory's server: whatever comes, it answers with a status below 500 and its own headers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz_tally import Tally, cases
from gyrostat.errors import GyrostatError

testclient = pytest.importorskip("starlette.testclient", reason="needs the extra lab")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")
HOST, TOKEN = "127.0.0.1:8765", "the-token"
GOOD: dict[str, dict[str, Any]] = {
    "/api/draw": {"window": "w", "number": 1, "lab": "factors", "setting": {}},
    "/api/phase": {"window": "w", "number": 1, "lab": "environments", "setting": {"spread": "2"}},
    "/api/table": {
        "window": "w",
        "number": 1,
        "job": "fit",
        "name": "t.csv",
        "text": "a,b\n1,2\n",
        "target": "a",
        "environment": "b",
        "missing": "error",
        "family": "",
        "drop": [],
    },
}
TYPES = {
    "window": str,
    "number": int,
    "lab": str,
    "setting": dict,
    "job": str,
    "name": str,
    "text": str,
    "target": str,
    "environment": str,
    "missing": str,
    "family": str,
    "drop": list,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


class Idle:
    """A dispatcher that takes jobs and does nothing."""

    size, workers = 1, ()

    def first_worker(self, program: Any) -> int:
        hash(program)
        return 0

    def open(self, window: str, topic: str, number: int, jobs: Any) -> Idle:
        return self

    async def messages(self) -> Any:
        yield {"kind": "number"}

    def close(self) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture(scope="module")
def client():
    from gyrostat.lab.server import application

    headers = {"Cookie": f"gyrostat-8765={TOKEN}"}
    with testclient.TestClient(application({HOST}, TOKEN, Idle()), base_url=f"http://{HOST}", headers=headers) as found:
        yield found


def asked(client: Any, method: str, path: str, **options: Any) -> None:
    """Ask, and turn the answer into what a tally understands: a refusal is our sentence."""
    answer = client.request(method, path, follow_redirects=False, **options)
    assert "content-security-policy" in answer.headers, "an answer without our headers"
    assert answer.status_code < 500, f"status {answer.status_code}"
    if answer.status_code >= 400:
        text = answer.json()["text"] if answer.headers["content-type"] == "application/json" else "Refused."
        raise GyrostatError(text)


def test_bodies(client, tally: Tally):
    @cases(small=60, full=500)
    @given(st.sampled_from(list(GOOD)), st.data())
    def spoil(path: str, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(GOOD[path])))
        value = data.draw(JSON)
        is_bad = not isinstance(value, TYPES[name]) or isinstance(value, bool)
        content = json.dumps({**GOOD[path], name: value}).encode()
        headers = {"Content-Type": "application/json"}
        tally.attempt(
            f"{path} {name}={value!r}"[:90],
            lambda: asked(client, "POST", path, content=content, headers=headers),
            is_bad=is_bad,
        )

    spoil()
    tally.check()


def test_bytes_headers_and_paths(client, tally: Tally):
    words = st.text(
        st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f"), min_size=1, max_size=12
    )

    @cases(small=40, full=300)
    @given(
        st.binary(max_size=60), words, st.sampled_from(["Host", "Origin", "Content-Type", "Cookie", "Authorization"])
    )
    def spoil(body: bytes, word: str, header: str) -> None:
        kind = {"Content-Type": "application/json"}
        path = f"/api/draw?{word}" if "#" not in word else "/api/draw"
        tally.attempt(
            f"body {body!r}", lambda: asked(client, "POST", "/api/draw", content=body, headers=kind), is_bad=True
        )
        tally.attempt(f"query {word!r}", lambda: asked(client, "GET", path), is_bad=True)
        value = word.encode("latin-1")
        is_bad = header not in ("Authorization",)
        tally.attempt(
            f"{header}: {word!r}",
            lambda: asked(client, "GET", "/api/about", headers={header: value}),
            is_bad=is_bad and header != "Content-Type",
        )

    spoil()
    tally.check()
