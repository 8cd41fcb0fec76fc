"""The web application: the page, what it may set, and streams of messages, one JSON object per line."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gyrostat import __version__
from gyrostat.errors import GyrostatError
from gyrostat.lab import code
from gyrostat.lab.desk import Desk, Part
from gyrostat.lab.guard import Guard, body_of, field
from gyrostat.lab.lab import Lab
from gyrostat.lab.laboratories import LABS, lab_of
from gyrostat.tables.examples import PREFIX, examples

PAGE = Path(__file__).parent / "static"
FILES = {"/": "index.html", **{f"/{p.name}": p.name for p in PAGE.iterdir() if p.suffix in (".css", ".js", ".svg")}}
MOST_TABLE = 8_000_000
"""Bytes of a table that may be uploaded."""


def application(hosts: set[str], desk: Desk | None = None) -> Guard:
    """The application for requests to one of ``hosts`` (names with their ports), with workers of its own."""
    desk = desk or Desk()

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        for worker in desk.workers[: desk.size]:  # the others when they are needed
            worker.start()
        yield
        desk.stop()

    routes = [
        *(Route(path, _file) for path in FILES),
        Route("/plotly.js", _plotly),
        Route("/api/about", _about),
        Route("/api/draw", _draw, methods=["POST"]),
        Route("/api/phase", _phase, methods=["POST"]),
        Route("/api/table", _table, methods=["POST"]),
    ]
    app = Starlette(routes=routes, lifespan=life, exception_handlers={GyrostatError: _refused})
    app.state.desk = desk
    return Guard(app, hosts)


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"kind": "refused", "text": str(error)}, status_code=422)


async def _file(request: Request) -> Response:
    return FileResponse(PAGE / FILES[request.url.path])


async def _plotly(request: Request) -> Response:
    path = Path(str(resources.files("plotly"))) / "package_data" / "plotly.min.js"
    return FileResponse(path, headers={"Cache-Control": "private, max-age=86400"})


async def _about(request: Request) -> Response:
    return JSONResponse({"version": __version__, "labs": [_lab(lab) for lab in LABS.values()], "examples": examples()})


def _lab(lab: Lab) -> dict[str, Any]:
    return {
        "name": lab.name,
        "title": lab.title,
        "lead": lab.lead,
        "controls": [c.described for c in lab.controls],
        "presets": [vars(preset) for preset in lab.presets],
        "plane": {"across": lab.plane.across, "up": lab.plane.up},
    }


def _asked(body: dict[str, Any]) -> tuple[Lab, dict[str, Any], str, int]:
    lab, window, number = lab_of(field(body, "lab", str)), field(body, "window", str), field(body, "number", int)
    return lab, lab.read(field(body, "setting", dict)), window[:64], number


async def _draw(request: Request) -> Response:
    lab, setting, window, number = _asked(await body_of(request))
    view = lab.view(setting)
    begin: dict[str, Any] = {
        "kind": "begin",
        "number": number,
        "state": code.state(lab, setting),
        "python": code.python(lab, setting),
        "command": code.command(lab, setting),
        "sides": [{"name": s.name, "title": s.title} for s in lab.sides(setting)],
        "view": {
            "title": view.title,
            "label": view.label,
            "log": view.log,
            "log_time": view.log_time,
            "together": view.together,
            "curves": [{"key": c.key, "label": c.label} for c in view.curves],
        },
    }
    asked = {"lab": lab.name, "setting": setting}
    desk: Desk = request.app.state.desk
    home = desk.home((lab.name, *lab.program(setting)))
    sides: list[Part] = [(home + i % desk.size, "curves", {**asked, "side": i}) for i in range(len(begin["sides"]))]
    return _stream(request, window, "draw", number, [(home, "theory", asked), *sides], begin)


async def _phase(request: Request) -> Response:
    lab, setting, window, number = _asked(await body_of(request))
    desk: Desk = request.app.state.desk
    at = desk.home((lab.name, *lab.program(setting))) + desk.size - 1
    return _stream(request, window, "phase", number, [(at, "phase", {"lab": lab.name, "setting": setting})])


async def _table(request: Request) -> Response:
    body = await body_of(request, most=MOST_TABLE)
    window, number = field(body, "window", str)[:64], field(body, "number", int)
    source = field(body, "example", str) if "example" in body else None
    folder = tempfile.TemporaryDirectory(prefix="gyrostat-")
    if source is None:
        path = Path(folder.name) / "table.csv"
        path.write_text(field(body, "text", str), encoding="utf-8")
    else:
        path = Path(PREFIX + source)
    asked: dict[str, Any] = {"path": str(path)}
    kind = "diagnose" if "target" in body else "columns"
    if kind == "diagnose":
        asked |= {name: field(body, name, str) for name in ("target", "environment", "missing")}
    return _stream(request, window, "table", number, [(0, kind, asked)], folder=folder)


def _stream(
    request: Request,
    window: str,
    topic: str,
    number: int,
    parts: list[Part],
    begin: dict[str, Any] | None = None,
    folder: tempfile.TemporaryDirectory | None = None,
) -> Response:
    desk: Desk = request.app.state.desk

    async def lines() -> AsyncIterator[bytes]:
        if begin is not None:
            yield _line(begin)
        try:
            async with contextlib.aclosing(desk.messages(window, topic, number, parts)) as messages:
                async for message in messages:
                    yield _line(message)
            yield _line({"kind": "end"})
        finally:
            if folder is not None:
                folder.cleanup()

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False, ensure_ascii=False).encode() + b"\n"
