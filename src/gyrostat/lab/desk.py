"""Who has asked for what: one drawing and one phase diagram per window, the newest replacing the one before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Hashable
from typing import Any

from gyrostat.errors import GyrostatError
from gyrostat.lab.process import END
from gyrostat.lab.worker import Ticket, Worker

MOST_WINDOWS = 24
SECONDS = 90.0
"""A computation that says nothing for so long is stopped."""

Part = tuple[int, str, dict[str, Any]]
"""The number of a worker, a kind of job, and what it needs."""


class Desk:
    """Takes requests of windows, hands their parts to workers and gives their messages back in the order they come."""

    def __init__(self, workers: int = 2, groups: int = 2):
        self.size, self.workers = workers, [Worker() for _ in range(workers * groups)]
        self._homes: dict[Hashable, int] = {}
        self._last = -workers
        self._open: dict[tuple[str, str], tuple[int, list[Ticket]]] = {}

    def home(self, program: Hashable) -> int:
        """The first of the workers who know a program. A new one goes to those who were not asked last.

        A compilation takes seconds and cannot be stopped: so the way back to what was drawn before stays open meanwhile.

        >>> desk = Desk()
        >>> [desk.home(program) for program in ("two layers", "three layers", "two layers", "four layers")]
        [0, 2, 0, 2]
        """
        if program not in self._homes:
            self._homes[program] = (self._last + self.size) % len(self.workers)
        self._last = self._homes[program]
        return self._last

    async def messages(
        self, window: str, topic: str, number: int, parts: list[Part]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The messages of all parts; a newer number of the same window and topic ends this at once."""
        before = self._open.get((window, topic))
        if before is not None and before[0] > number:
            yield {"kind": "superseded"}
            return
        for ticket in before[1] if before else []:
            ticket.supersede()
        if before is None and len(self._open) >= MOST_WINDOWS:
            raise GyrostatError(f"more than {MOST_WINDOWS} drawings are under way: close some windows.")
        tickets = [self.workers[at % len(self.workers)].submit(kind, payload) for at, kind, payload in parts]
        mine = (number, tickets)
        self._open[window, topic] = mine
        try:
            async for message in _merged(tickets):
                yield message
                if message["kind"] == "superseded":
                    return
        finally:
            for ticket in tickets:
                ticket.close()
            if self._open.get((window, topic)) is mine:
                del self._open[window, topic]

    def stop(self) -> None:
        """End all processes."""
        for worker in self.workers:
            worker.stop()


async def _merged(tickets: list[Ticket]) -> AsyncIterator[dict[str, Any]]:
    """Messages of several jobs as they come, until all have ended."""
    pending = {asyncio.ensure_future(ticket.next(SECONDS)): ticket for ticket in tickets}
    try:
        while pending:
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                ticket, message = pending.pop(future), future.result()
                if message["kind"] != END:
                    yield message
                if not ticket.finished and message["kind"] != "superseded":
                    pending[asyncio.ensure_future(ticket.next(SECONDS))] = ticket
    finally:
        for future in pending:
            future.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*pending, return_exceptions=True)
