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
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.figures.pages import colour_variables, page_environment, plotly_script
from gyrostat.lab import shipped_curves
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import Lab
from gyrostat.lab.export import csv_command, python_program
from gyrostat.lab.first_drawing import first_drawing
from gyrostat.lab.laboratories import LABS, all_presets, lab_of
from gyrostat.lab.request_guard import RequestGuard, TooLarge, read_body, read_field
from gyrostat.lab.workers import TABLES, Dispatcher, JobRequest, OpenRequest, TooBusy
from gyrostat.tables.examples import PREFIX, examples
from gyrostat.tables.table_files import TEXT_KINDS, file_kind

STATIC = Path(__file__).parent / "static"
FILES = {f"/{p.name}": p.name for p in STATIC.iterdir() if p.suffix in (".css", ".js", ".svg")}
PAGES = page_environment(STATIC)
MOST_TABLE_BYTES = 8_000_000
"""The size of a table that may be uploaded."""

TABLE_JOBS = ("columns", "fit", "compare")
TABLE_SECONDS = 600.0
"""Seconds that a job on a table may take; comparing methods takes minutes on a busy machine."""

MOST_NAME_BYTES = 200
"""The length of a file name that the server keeps."""

MOST_COLUMNS = 2_000
"""Columns of a table that may be uploaded; a table with many more takes minutes to read."""


def application(hosts: set[str], token: str, dispatcher: Dispatcher | None = None) -> RequestGuard:
    """The application for requests to one of ``hosts`` (names with their ports) by who knows ``token``; it has own workers."""
    dispatcher = dispatcher or Dispatcher()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        for worker in dispatcher.workers[: dispatcher.size]:  # the others start when they are needed
            worker.start()
        yield
        dispatcher.stop()

    routes = [
        Route("/", _page),
        *(Route(path, _file) for path in FILES),
        Route("/colours.css", _colours),
        Route("/plotly.js", _plotly),
        Route("/api/about", _about),
        Route("/api/presets", _presets),
        Route("/api/draw", _draw, methods=["POST"]),
        Route("/api/phase", _phase, methods=["POST"]),
        Route("/api/steps", _steps, methods=["POST"]),
        Route("/api/table", _table, methods=["POST"]),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={GyrostatError: _refused})
    app.state.dispatcher = dispatcher
    return RequestGuard(app, hosts, token)


async def _refused(request: Request, error: Exception) -> Response:
    status = 413 if isinstance(error, TooLarge) else 503 if isinstance(error, TooBusy) else 422
    # A body that was not read must not be taken for the next request of the connection.
    headers = {"Connection": "close"} if status == 413 else None
    return JSONResponse({"kind": "refused", "text": str(error)}, status_code=status, headers=headers)


async def _page(request: Request) -> Response:
    """The page, with the shipped curves of its address drawn."""
    page = PAGES.get_template("index.html").render(first=first_drawing(request.url.query))
    return HTMLResponse(page, headers={"Cache-Control": "no-store"})


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
        "compiling_controls": lab.compiling_controls(setting),
        "shipped": shipped_curves.find(lab, setting),
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


async def _steps(request: Request) -> Response:
    lab, setting, window, number = await _read_drawing(request)
    if lab.name != "environments":
        raise GyrostatError(f"lab must be 'environments' to be shown step by step; got {lab.name!r}.")
    size = request.app.state.dispatcher.size
    return _stream(request, window, "steps", number, [JobRequest(size - 1, "steps", {"setting": setting})])


def _first_worker(request: Request, lab: Lab, setting: Setting) -> tuple[int, int]:
    """The first worker that has compiled the programs of a setting, and how many workers after it have."""
    dispatcher: Dispatcher = request.app.state.dispatcher
    return dispatcher.first_worker((lab.name, *lab.program(setting))), dispatcher.size


async def _table(request: Request) -> Response:
    body = await read_body(request, MOST_TABLE_BYTES)
    window, number = read_field(body, "window", str)[:64], read_field(body, "number", int)
    kind = errors.choice("job", read_field(body, "job", str) if "job" in body else "columns", TABLE_JOBS)
    chosen: dict[str, Any] = {}
    if kind != "columns":
        chosen = {name: read_field(body, name, str) for name in ("target", "environment", "missing", "family")}
        chosen["drop"] = [str(name) for name in read_field(body, "drop", list)]
    folder = tempfile.TemporaryDirectory(prefix="gyrostat-")
    try:
        name = _table_file(body, Path(folder.name))
    except GyrostatError:
        folder.cleanup()
        raise
    table: dict[str, Any] = {"folder": folder.name, "name": name}
    arguments = table if kind == "columns" else {"asked": table | chosen}
    job = JobRequest(TABLES, kind, arguments, seconds=TABLE_SECONDS)
    return _stream(request, window, "table", number, [job], folder=folder)


def _table_file(body: dict[str, Any], folder: Path) -> str:
    """The name of the table of a request: that of an example, or of the file that was sent, which is put into ``folder``."""
    if "example" in body:
        return PREFIX + read_field(body, "example", str)
    text, name = read_field(body, "text", str), read_field(body, "name", str) if "name" in body else "table.csv"
    kind = file_kind("DATA", Path(name))
    if kind not in TEXT_KINDS or kind.endswith(".gz"):
        raise GyrostatError(f"the page takes tables of text, not {kind}: use gyrostat fit for {name!r}.")
    if {"/", "\\", "\0"} & set(name) or name.startswith(PREFIX) or len(name.encode()) > MOST_NAME_BYTES:
        name = f"table{kind}"
    _check_columns(text)
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return name


def _check_columns(text: str) -> None:
    """Refuse a table by its first line: reading a million columns takes minutes."""
    first = text[: text.find("\n")] if "\n" in text else text
    columns = 1 + max(first.count(separator) for separator in ",;\t")
    if columns > MOST_COLUMNS:
        raise GyrostatError(
            f"the first line of the table has {columns} columns; the page takes {MOST_COLUMNS}: "
            "choose some of them, or use gyrostat fit with --features."
        )


class JobStream(StreamingResponse):
    """An answer in lines of JSON that gives back its jobs and its folder however it ends, even before its first line."""

    def __init__(self, lines: AsyncIterator[bytes], opened: OpenRequest, folder: tempfile.TemporaryDirectory | None):
        super().__init__(lines, media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})
        self.opened, self.folder = opened, folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.opened.close()
            if self.folder is not None:
                self.folder.cleanup()


def _stream(
    request: Request,
    window: str,
    topic: str,
    number: int,
    jobs: list[JobRequest],
    begin: dict[str, Any] | None = None,
    folder: tempfile.TemporaryDirectory | None = None,
) -> Response:
    """The messages of the jobs as lines of JSON, after ``begin``; the temporary ``folder`` is removed at the end.

    The jobs are handed out here, before the answer begins: one for which there is no room is refused with a status.
    """
    dispatcher: Dispatcher = request.app.state.dispatcher
    try:
        opened = dispatcher.open(window, topic, number, jobs)
    except GyrostatError:
        if folder is not None:
            folder.cleanup()
        raise

    async def lines() -> AsyncIterator[bytes]:
        if begin is not None:
            yield _line(begin)
        async with contextlib.aclosing(opened.messages()) as messages:
            async for message in messages:
                yield _line(message)
        yield _line({"kind": "end"})

    return JobStream(lines(), opened, folder)


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, allow_nan=False, ensure_ascii=False).encode() + b"\n"
