"""Ctrl-C that ends a run also where Python would lose it.

Python turns Ctrl-C into an exception at whatever line runs. If that line belongs to a callback of the garbage collector (JAX
has one) or to a finaliser, Python prints the exception and goes on, for as long as the run takes.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_AFTER = 0.3
"""Seconds after which an interrupt that was lost is raised again."""

LOST_IN = ("_xla_gc_callback", "__del__")
"""Functions in which Python loses an exception; in these none is raised, because Python would print it."""


@contextmanager
def interrupts_repeated() -> Iterator[None]:
    """In this block Ctrl-C raises KeyboardInterrupt, and again until the block is left.

    Nothing changes in threads other than the main one, which get no signals, and where somebody else handles Ctrl-C.

    >>> with interrupts_repeated():
    ...     pass
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    left = threading.Event()

    def again() -> None:
        if not left.wait(AGAIN_AFTER):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=again, daemon=True).start()
        if not _is_lost(frame):
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        left.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_lost(frame: FrameType | None) -> bool:
    """Whether an exception in this frame would be lost."""
    while frame is not None:
        if frame.f_code.co_name in LOST_IN:
            return True
        frame = frame.f_back
    return False
