"""Start the server of the laboratory: a socket on this machine, a browser, an end at Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import Any

from rich.console import Console

from gyrostat.errors import GyrostatError

PORTS = range(8765, 8785)
EXTRA = "the laboratory needs Starlette, uvicorn and plotly: install them with pip install 'gyrostat[lab]'."


def serve(console: Console, *, host: str, port: int | None, state: str, browser: bool) -> None:
    """Serve the page until Ctrl-C."""
    try:
        import plotly  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise GyrostatError(f"{EXTRA} ({error})") from None
    found = resolved(host)
    with listen(str(found), port) as listening:
        number, is_local = listening.getsockname()[1], found.is_loopback
        address = f"[{found}]:{number}" if found.version == 6 else f"{found}:{number}"
        hosts = {address, f"localhost:{number}" if is_local else f"{host.lower()}:{number}"}
        token = secrets.token_urlsafe(24)
        url = f"http://{address}/?token={token}" + (f"&{state.lstrip('?')}" if state else "")

        def announce() -> None:
            console.print(f"The laboratory is at {url}", markup=False, highlight=False, soft_wrap=True)
            console.print("Ctrl-C ends it.", style="dim")
            if not is_local:
                console.print("Whoever can reach this address and knows its token can use it.", style="bold")
            if browser:
                threading.Timer(0.1, webbrowser.open, (url,)).start()

        asyncio.run(_serve(listening, hosts, token, state, announce))


async def _serve(
    listening: socket.socket, hosts: set[str], token: str, state: str, announce: Callable[[], None]
) -> None:
    from gyrostat.lab.workers import LabWorkers

    workers = LabWorkers()
    workers.start()  # they import what computes while this process imports what serves
    try:
        import uvicorn

        from gyrostat.lab.export import read_state
        from gyrostat.lab.server import application

        config = uvicorn.Config(
            application(hosts, token, workers, opening=read_state(state)),
            ws="none",
            log_level="error",  # a request that is not HTTP is refused, and not worth a line
            timeout_graceful_shutdown=1,
            lifespan="on",
            server_header=False,
        )
        server = uvicorn.Server(config)
        handle_exit = server.handle_exit

        def end(sig: int, frame: Any) -> None:
            # Streams that are open now are cut off on purpose: uvicorn need not report them.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            handle_exit(sig, frame)

        server.handle_exit = end  # type: ignore[method-assign]
        announce()
        await server.serve(sockets=[listening])
    finally:
        workers.stop()


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def resolved(host: str) -> Address:
    """The one address of this machine that a name stands for; an error if it stands for every address, or for none.

    >>> resolved("127.0.0.1").is_loopback
    True
    """
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host.strip() else []
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a name"
        raise GyrostatError(f"--host {host!r} is not known here ({reason}): give an address of this machine.") from None
    if not answers:
        raise GyrostatError(f"--host must be an address of this machine, such as 127.0.0.1; got {host!r}.")
    # The first answer is the one that is listened on: what is checked and what is bound must not differ.
    found = ipaddress.ip_address(str(answers[0][4][0]).partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_unspecified or found.is_multicast:
        raise GyrostatError(
            f"--host {host} means every address ({found}), and would answer to any name: "
            "give one address of this machine."
        )
    return found


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens at the port of an address; without a port, at the first free one of ``PORTS``."""
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
            if port is not None or error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise GyrostatError(
                    f"port {number} of {host} cannot be used ({error.strerror}): choose another with --port or --host."
                ) from None
            continue
        return candidate
    raise GyrostatError(f"ports {PORTS[0]} to {PORTS[-1]} of {host} are all taken: choose one with --port.")
