"""The web application: the files of the page, what it can set, and answers as streams of messages, one JSON object per line."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gyrostat import __version__
from gyrostat.errors import GyrostatError
from gyrostat.figures.pages import colour_variables, plotly_script
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import Lab
from gyrostat.lab.export import csv_command, python_program
from gyrostat.lab.laboratories import LABS, all_presets, lab_of
from gyrostat.lab.request_guard import RequestGuard, read_body, read_field
from gyrostat.lab.workers import Dispatcher, JobRequest
from gyrostat.tables.examples import PREFIX, examples

STATIC = Path(__file__).parent / "static"
FILES = {"/": "index.html", **{f"/{p.name}": p.name for p in STATIC.iterdir() if p.suffix in (".css", ".js", ".svg")}}
MOST_TABLE_BYTES = 8_000_000
"""The size of a table that may be uploaded."""


def application(hosts: set[str], dispatcher: Dispatcher | None = None) -> RequestGuard:
    """The application for requests to one of ``hosts`` (names with their ports), with workers of its own."""
    dispatcher = dispatcher or Dispatcher()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        for worker in dispatcher.workers[: dispatcher.size]:  # the others start when they are needed
            worker.start()
        yield
        dispatcher.stop()

    routes = [
        *(Route(path, _file) for path in FILES),
        Route("/colours.css", _colours),
        Route("/plotly.js", _plotly),
        Route("/api/about", _about),
        Route("/api/presets", _presets),
        Route("/api/draw", _draw, methods=["POST"]),
        Route("/api/phase", _phase, methods=["POST"]),
        Route("/api/table", _table, methods=["POST"]),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={GyrostatError: _refused})
    app.state.dispatcher = dispatcher
    return RequestGuard(app, hosts)


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"kind": "refused", "text": str(error)}, status_code=422)


async def _file(request: Request) -> Response:
    return FileResponse(STATIC / FILES[request.url.path])


async def _colours(request: Request) -> Response:
    return Response(colour_variables(), media_type="text/css")


async def _plotly(request: Request) -> Response:
    return FileResponse(plotly_script(), headers={"Cache-Control": "private, max-age=86400"})


async def _about(request: Request) -> Response:
    labs = [_described(lab) for lab in LABS.values()]
    return JSONResponse({"version": __version__, "labs": labs, "examples": examples()})


def _described(lab: Lab) -> dict[str, Any]:
    return {
        "name": lab.name,
        "title": lab.title,
        "lead": lab.lead,
        "controls": [control.described for control in lab.controls],
    }


def _presets(request: Request) -> Response:
    """Not part of ``about``, and in a thread: the papers take half a second to import."""
    return JSONResponse({name: [vars(preset) for preset in presets] for name, presets in all_presets().items()})


class DrawingRequest(NamedTuple):
    """A request for curves or a phase diagram: a window numbers its own requests."""

    lab: Lab
    setting: Setting
    window: str
    number: int


async def _read_drawing(request: Request) -> DrawingRequest:
    body = await read_body(request)
    lab = lab_of(read_field(body, "lab", str))
    window, number = read_field(body, "window", str), read_field(body, "number", int)
    return DrawingRequest(lab, lab.read(read_field(body, "setting", dict)), window[:64], number)


async def _draw(request: Request) -> Response:
    lab, setting, window, number = await _read_drawing(request)
    view, sides = lab.view(setting), lab.sides(setting)
    begin: dict[str, Any] = {
        "kind": "begin",
        "python": python_program(lab, setting),
        "command": csv_command(lab, setting),
        "sides": [{"name": side.name, "title": side.title} for side in sides],
        "view": {
            "title": view.title,
            "label": view.label,
            "log": view.log,
            "log_time": view.log_time,
            "together": view.together,
            "curves": [{"key": curve.key, "label": curve.label} for curve in view.curves],
        },
    }
    arguments = {"lab": lab.name, "setting": setting}
    first, size = _first_worker(request, lab, setting)
    jobs = [JobRequest(first, "theory", arguments)]
    jobs += [JobRequest(first + i % size, "curves", {**arguments, "side": i}) for i in range(len(sides))]
    return _stream(request, window, "draw", number, jobs, begin)


async def _phase(request: Request) -> Response:
    lab, setting, window, number = await _read_drawing(request)
    first, size = _first_worker(request, lab, setting)
    job = JobRequest(first + size - 1, "phase", {"lab": lab.name, "setting": setting})
    return _stream(request, window, "phase", number, [job])


def _first_worker(request: Request, lab: Lab, setting: Setting) -> tuple[int, int]:
    """The first worker that has compiled the programs of a setting, and how many workers after it have."""
    dispatcher: Dispatcher = request.app.state.dispatcher
    return dispatcher.first_worker((lab.name, *lab.program(setting))), dispatcher.size


async def _table(request: Request) -> Response:
    body = await read_body(request, MOST_TABLE_BYTES)
    window, number = read_field(body, "window", str)[:64], read_field(body, "number", int)
    example = read_field(body, "example", str) if "example" in body else None
    folder = tempfile.TemporaryDirectory(prefix="gyrostat-")
    if example is None:
        path = Path(folder.name) / "table.csv"
        path.write_text(read_field(body, "text", str), encoding="utf-8")
    else:
        path = Path(PREFIX + example)
    arguments: dict[str, Any] = {"path": str(path)}
    kind = "diagnose" if "target" in body else "columns"
    if kind == "diagnose":
        arguments |= {name: read_field(body, name, str) for name in ("target", "environment", "missing")}
    return _stream(request, window, "table", number, [JobRequest(0, kind, arguments)], folder=folder)


def _stream(
    request: Request,
    window: str,
    topic: str,
    number: int,
    jobs: list[JobRequest],
    begin: dict[str, Any] | None = None,
    folder: tempfile.TemporaryDirectory | None = None,
) -> Response:
    """The messages of the jobs as lines of JSON, after ``begin``; the temporary ``folder`` is removed at the end."""
    dispatcher: Dispatcher = request.app.state.dispatcher

    async def lines() -> AsyncIterator[bytes]:
        if begin is not None:
            yield _line(begin)
        try:
            async with contextlib.aclosing(dispatcher.messages(window, topic, number, jobs)) as messages:
                async for message in messages:
                    yield _line(message)
            yield _line({"kind": "end"})
        finally:
            if folder is not None:
                folder.cleanup()

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False, ensure_ascii=False).encode() + b"\n"
