"""Start the server of the laboratory: a socket on this machine, a browser, an end at Ctrl-C."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
import webbrowser
from typing import Any

from rich.console import Console

from gyrostat.errors import GyrostatError

PORTS = range(8765, 8785)
EXTRA = "the laboratory needs Starlette, uvicorn and plotly: install them with pip install 'gyrostat[lab]'."


def serve(console: Console, *, host: str, port: int | None, state: str, browser: bool) -> None:
    """Serve the page until Ctrl-C."""
    try:
        import plotly  # noqa: F401
        import uvicorn

        from gyrostat.lab.export import read_state
        from gyrostat.lab.server import application
    except ImportError as error:
        raise GyrostatError(f"{EXTRA} ({error})") from None
    read_state(state)
    if host in ("0.0.0.0", "::"):
        raise GyrostatError(
            f"--host {host} would answer to any name: give the one address of this machine to be reached at."
        )
    listening = listen(host, port)
    name = f"[{host}]" if ":" in host else host
    number = listening.getsockname()[1]
    address, local = f"{name}:{number}", _is_loopback(host)
    url = f"http://{address}/" + (f"?{state}" if state else "")
    console.print(f"The laboratory is at {url}", highlight=False, soft_wrap=True)
    console.print("Ctrl-C ends it.", style="dim")
    if not local:
        console.print("Everyone who can reach this address can use it.", style="bold")
    hosts = {address, f"localhost:{number}"} if local else {address}
    config = uvicorn.Config(
        application(hosts), log_level="warning", timeout_graceful_shutdown=1, lifespan="on", server_header=False
    )
    if browser:
        threading.Timer(0.5, webbrowser.open, (url,)).start()
    server = uvicorn.Server(config)
    handle_exit = server.handle_exit

    def end(sig: int, frame: Any) -> None:
        # Streams that are open now are cut off on purpose: uvicorn need not report them.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        handle_exit(sig, frame)

    server.handle_exit = end  # type: ignore[method-assign]
    server.run(sockets=[listening])


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens at the port; without one, at the first free port of ``PORTS``."""
    for number in PORTS if port is None else [port]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # asyncio sends small messages at once only if the protocol is named here; otherwise each waits 40 ms for the
        # receipt of the one before.
        candidate = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((host, number))
            candidate.listen()
        except OSError as error:
            candidate.close()
            if port is not None:
                raise GyrostatError(
                    f"port {port} of {host} cannot be used ({error.strerror}): choose another with --port."
                ) from None
            continue
        return candidate
    raise GyrostatError(f"ports {PORTS[0]} to {PORTS[-1]} of {host} are all taken: choose one with --port.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
