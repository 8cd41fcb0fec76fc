"""Starting the laboratory: an address on this machine, a browser, an end at Ctrl-C; or only the curves, as a file."""

from __future__ import annotations

import csv
import ipaddress
import logging
import socket
import threading
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from rich.console import Console

from gyrostat.errors import GyrostatError

PORTS = range(8765, 8785)
EXTRA = "the laboratory needs Starlette, uvicorn and plotly: install them with pip install 'gyrostat[lab]'."


def serve(console: Console, *, host: str, port: int | None, state: str, browser: bool) -> None:
    """Serve the page until Ctrl-C."""
    try:
        import plotly  # noqa: F401
        import uvicorn

        from gyrostat.lab.server import application
    except ImportError as error:
        raise GyrostatError(f"{EXTRA} ({error})") from None
    chosen(state)
    if host in ("0.0.0.0", "::"):
        raise GyrostatError(
            f"--host {host} would answer to any name: give the one address of this machine to be reached at."
        )
    bound = _bound(host, port)
    name = f"[{host}]" if ":" in host else host
    at = f"{name}:{bound.getsockname()[1]}"
    hosts = {at, f"localhost:{bound.getsockname()[1]}"} if _loopback(host) else {at}
    url = f"http://{at}/" + (f"?{state}" if state else "")
    console.print(f"The laboratory is at {url}", highlight=False, soft_wrap=True)
    console.print("Ctrl-C ends it.", style="dim")
    if not _loopback(host):
        console.print("Everyone who can reach this address can use it.", style="bold")
    config = uvicorn.Config(
        application(hosts), log_level="warning", timeout_graceful_shutdown=1, lifespan="on", server_header=False
    )
    if browser:
        threading.Timer(0.5, webbrowser.open, (url,)).start()
    server = uvicorn.Server(config)
    ending = server.handle_exit

    def end(sig: int, frame: Any) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # streams that are cut off now are meant to be
        ending(sig, frame)

    server.handle_exit = end  # type: ignore[method-assign]
    server.run(sockets=[bound])


def _bound(host: str, port: int | None) -> socket.socket:
    """A socket at the port, or at the first free one of some if none was asked for."""
    for number in PORTS if port is None else [port]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # With the protocol named asyncio sends small messages at once; without it they wait 40 ms for the last one's receipt.
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, number))
            found.listen()
        except OSError as error:
            found.close()
            if port is not None:
                raise GyrostatError(
                    f"port {port} of {host} cannot be used ({error.strerror}): choose another with --port."
                ) from None
            continue
        return found
    raise GyrostatError(f"ports {PORTS[0]} to {PORTS[-1]} of {host} are all taken: choose one with --port.")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def chosen(state: str) -> tuple:
    """The laboratory and the setting that a state names, as it stands in the address after the question mark.

    >>> lab, setting = chosen("lab=environments&spread=8")
    >>> lab.name, setting["spread"]
    ('environments', 8.0)
    """
    from gyrostat.lab.laboratories import LABS, lab_of

    given = dict(parse_qsl(state.lstrip("?"), keep_blank_values=True))
    lab = lab_of(given.pop("lab", next(iter(LABS))))
    given.pop("tab", None)
    return lab, lab.read(given)


def write_curves(console: Console, *, state: str, path: Path) -> None:
    """Write the curves that the page draws for a state, one row for each side, curve and step."""
    from gyrostat.lab import jobs

    lab, setting = chosen(state)
    rows = []
    for i in range(len(lab.sides(setting))):
        *_, last = (message for message in jobs.curves(lab.name, setting, i) if message is not None)
        for key, curve in last["curves"].items():
            columns = zip(last["steps"], curve["low"], curve["middle"], curve["high"], strict=True)
            rows += [(last["side"], key, *numbers) for numbers in columns]
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("side", "curve", "step", "low", "median", "high"), *rows])
    except OSError as error:
        raise GyrostatError(
            f"--csv {str(path)!r} cannot be written ({error.strerror}): choose another place."
        ) from None
    console.print(f"{len(rows)} rows in {path}", highlight=False)
