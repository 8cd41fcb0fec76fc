"""The web application: the page, the curves and phase diagrams of a state as streams of figures, and the same as files.

A state is what follows the question mark of the page's address, so every request is a GET that a person could type. Who asks
must know the token, which the address that ``gyrostat lab`` prints holds; the first visit leaves it in a cookie.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gyrostat.errors import GyrostatError
from gyrostat.figures.declarations import Figure
from gyrostat.figures.pages import colour_variables, page_environment, plotly_script
from gyrostat.figures.palette import ON_DARK_PAGES
from gyrostat.lab.controls import Setting
from gyrostat.lab.declarations import Lab
from gyrostat.lab.export import csv_command, csv_text, python_program, read_state
from gyrostat.lab.laboratories import LABS, all_presets
from gyrostat.lab.pictures import curves_figure, page_panels, phase_figure
from gyrostat.lab.workers import FAILED, Job, LabWorkers, one_sentence
from gyrostat.theory.condition import condition_text

STATIC = Path(__file__).parent / "static"
HEADERS = {
    # Plotly adds style elements and draws pictures through data and blob addresses; nothing is fetched from elsewhere.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
FILES = {"csv": "text/csv", "png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
PRINT_DPI = 300

Messages = AsyncIterator[dict[str, Any]]


def application(
    hosts: set[str], token: str, workers: LabWorkers, *, opening: tuple[Lab, Setting] | None = None
) -> Guard:
    """The application for requests to one of ``hosts`` (names with their ports) by who knows ``token``.

    The programs of the state ``opening`` are compiled at once, while the browser opens.
    """

    async def compile_programs() -> None:
        async for _ in workers.messages(_curve_jobs(*opening) if opening else ()):
            pass

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        workers.start()
        compiling = asyncio.create_task(compile_programs())
        yield
        compiling.cancel()
        workers.stop()

    routes = [
        Route("/", _page),
        *(Route(f"/{name}", _static) for name in ("lab.js", "lab.css", "icon.svg")),
        Route("/colours.css", Response(colour_variables(), media_type="text/css")),
        Route("/plotly.js", _plotly),
        Route("/presets", _presets),
        *(Route(path, _stream) for path in STREAMS),
        *(Route(f"/curves.{kind}", _file) for kind in FILES),
    ]
    refusals = {GyrostatError: _refused, Exception: _refused}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=refusals)
    app.state.workers = workers
    return Guard(app, hosts, token)


class Guard:
    """Refuses requests to another host (any name can be made to point here) and those without the token."""

    def __init__(self, app: ASGIApp, hosts: set[str], token: str):
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(Request(scope)) if scope["type"] == "http" else None
        await (answer or self.app)(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        host = Headers(scope=request.scope).get("host", "")
        if host not in self.hosts:
            return PlainTextResponse("This laboratory answers to its own address only.", status_code=403)
        # Browsers send the cookies of one port to all ports of a machine.
        cookie = f"gyrostat-{host.rpartition(':')[2]}"
        if self._is_token(request.query_params.get("token", "")):
            answer = RedirectResponse(request.url.remove_query_params("token"), status_code=303)
            answer.set_cookie(cookie, self.token, httponly=True, samesite="lax")
            return answer
        header = request.headers.get("authorization", "").removeprefix("token ")  # what a program sends
        if self._is_token(request.cookies.get(cookie, "")) or self._is_token(header):
            return None
        text = "This laboratory is for the person who started it: open the address that gyrostat lab printed, with its token."
        return PlainTextResponse(text, status_code=403)

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(errors="replace"), self.token.encode())


async def _refused(request: Request, error: Exception) -> Response:
    return PlainTextResponse(one_sentence(error), status_code=422 if isinstance(error, GyrostatError) else 500)


async def _page(request: Request) -> Response:
    """The page of a laboratory. What cannot be read in its address has the default; the stream says what is wrong."""
    state = dict(request.query_params)
    lab = LABS.get(state.get("lab", ""), next(iter(LABS.values())))
    defaults, values = ({"tab": "draw"} | {c.name: c.shown(s) for c in lab.controls.values()} for s in ({}, state))
    if state.get("tab") == "phase":
        values["tab"] = "phase"
    lead = lab.lead
    if figure := state.get("figure"):
        lead = next((f"{p.title}. {p.note}" for p in all_presets()[lab.name] if p.name == figure), lead)
    known = {"lab": lab, "labs": list(LABS.values()), "lead": lead, "values": values, "defaults": defaults}
    views = [(word, word) for word in lab.controls["view"].options]
    page = page_environment(STATIC).get_template("lab.html").render(known, views=views, on_dark=ON_DARK_PAGES)
    return HTMLResponse(page, headers={"Cache-Control": "no-store"})


async def _static(request: Request) -> Response:
    return FileResponse(STATIC / request.url.path[1:])


async def _plotly(request: Request) -> Response:
    return FileResponse(plotly_script(), headers={"Cache-Control": "private, max-age=86400"})


def _presets(request: Request) -> Response:
    """The name, title and state of each. Not part of the page, and in a thread: the papers take half a second to import."""
    return JSONResponse(
        {
            LABS[lab].title: [(p.name, p.title, urlencode({"lab": lab, **p.values, "figure": p.name})) for p in presets]
            for lab, presets in all_presets().items()
        }
    )


# ------------------------------------------------------------------------------------------------- streams


async def _draw(workers: LabWorkers, lab: Lab, setting: Setting) -> Messages:
    """The theory, and the figure of the curves each time that all sides have as many runs."""
    conditions = [condition_text(c)._asdict() for c in lab.conditions(setting)]
    yield {
        "kind": "theory",
        "python": python_program(lab, setting),
        "command": csv_command(lab, setting),
        "headline": lab.headline(setting),
        "conditions": conditions,
    }
    label = lab.view(setting).label
    yield _shown("predicted", curves_figure(lab, setting, {}), label, "The runs are being computed.")
    jobs: list[Job] = [(1, "sentences", {"lab": lab.name, "setting": setting}), *_curve_jobs(lab, setting)]
    found: dict[str, Any] = {}
    async with contextlib.aclosing(workers.messages(jobs)) as messages:  # type: ignore[type-var]
        async for message in messages:
            if message["kind"] != "curves":
                yield message
                continue
            found[message["side"]] = message
            counts = {side["seeds"] for side in found.values()}
            if len(found) == len(lab.sides(setting)) and len(counts) == 1:
                count, seeds = counts.pop(), setting["seeds"]
                said = f"{count} seeds" if count == seeds else f"{count} of {seeds} seeds so far"
                said += ": medians and quartiles"
                for name, side in found.items():
                    if side["diverged"]:
                        said += f" · {side['diverged']} of {count} {name} runs left the finite range"
                yield _shown("curves", curves_figure(lab, setting, found), label, said, whole=count == seeds)


async def _phase(workers: LabWorkers, lab: Lab, setting: Setting) -> Messages:
    """The phase diagram each time that another cell is known."""
    jobs: list[Job] = [(1, "phase", {"lab": lab.name, "setting": setting})]
    async with contextlib.aclosing(workers.messages(jobs)) as messages:  # type: ignore[type-var]
        async for message in messages:
            if message["kind"] == "phase":
                done, count = message["done"], message["of"]
                said = f"{done} of {count} cells, {message['seeds']} seeds each · click a cell to go there"
                about = {"whole": done == count, "axes": [lab.plane.across, lab.plane.up]}
                yield _shown("phase", phase_figure(lab, setting, message), lab.plane.note, said, **about)
            else:
                yield message


STREAMS: dict[str, Callable[[LabWorkers, Lab, Setting], Messages]] = {"/draw": _draw, "/phase": _phase}


def _curve_jobs(lab: Lab, setting: Setting) -> list[Job]:
    arguments = {"lab": lab.name, "setting": setting}
    return [(i, "curves", {**arguments, "side": i}) for i in range(len(lab.sides(setting)))]


def _shown(kind: str, figure: Figure, note: str, status: str, **about: Any) -> dict[str, Any]:
    return {"kind": kind, "panels": page_panels(figure), "note": note, "status": status, "whole": False, **about}


async def _stream(request: Request) -> Response:
    """Messages as server-sent events, a failure among them; who closes the connection ends the computation."""

    async def events() -> AsyncIterator[str]:
        try:
            stream = STREAMS[request.url.path](request.app.state.workers, *read_state(request.url.query))
            async with contextlib.aclosing(stream) as messages:  # type: ignore[type-var]
                async for message in messages:
                    yield f"data: {json.dumps(message, allow_nan=False)}\n\n"
        except Exception as error:  # the page says it, and the server goes on
            yield f"data: {json.dumps({'kind': FAILED, 'text': one_sentence(error)})}\n\n"
        yield 'data: {"kind": "end"}\n\n'

    return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


# --------------------------------------------------------------------------------------------------- files


async def _file(request: Request) -> Response:
    """The curves as a table, or as a picture for print, as wide as a column."""
    kind = request.url.path.rpartition(".")[2]
    lab, setting = read_state(request.url.query)
    found = {}
    async for message in request.app.state.workers.messages(_curve_jobs(lab, setting)):
        if message["kind"] == FAILED:
            raise GyrostatError(message["text"])
        found[message["side"]] = message
    headers = {"Content-Disposition": f'attachment; filename="gyrostat-{lab.name}.{kind}"'}
    if kind == "csv":
        return PlainTextResponse(csv_text(found), media_type=FILES[kind], headers=headers)
    from gyrostat.figures.matplotlib_renderer import draw, write  # not before the page is open

    with tempfile.TemporaryDirectory() as folder:
        path = write(draw(curves_figure(lab, setting, found), "column"), Path(folder) / f"curves.{kind}", PRINT_DPI)
        return Response(path.read_bytes(), media_type=FILES[kind], headers=headers)
