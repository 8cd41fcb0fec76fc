"""Ctrl-C that is never lost and never shows a traceback.

Python turns Ctrl-C into an exception at whatever line runs at the moment. If that line belongs to a callback of the garbage
collector (JAX has one) or to a finaliser, the exception is printed and lost; if it belongs to a write, the write is cut. In
:func:`interrupts_noted` Ctrl-C is noted instead, and :func:`check_interrupt` raises it where the work can stop.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FORCED_AFTER = 3.0
"""Seconds after Ctrl-C at which a command that has not stopped is ended, if it asked for that."""

_noted = threading.Event()


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed in :func:`interrupts_noted` and not raised since."""
    if _noted.is_set():
        _noted.clear()
        raise KeyboardInterrupt


@contextmanager
def interrupts_noted(*, forced: bool = False) -> Iterator[None]:
    """In this block Ctrl-C is noted, and raised by :func:`check_interrupt` or at the end.

    ``forced`` is for commands: a second Ctrl-C ends the process at once, and so do :data:`FORCED_AFTER` seconds after the first
    one in which it has not stopped, also while it compiles. The exit status is 130. In threads other than the main one, which
    get no signals, nothing changes.

    >>> with interrupts_noted():
    ...     check_interrupt()
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before not in (_note_or_end, signal.SIG_IGN):  # of the command around this, or whoever started it ignores Ctrl-C
        signal.signal(signal.SIGINT, _note_or_end if forced else _note)
    try:
        if forced:
            with _watched():
                yield
        else:
            yield
        check_interrupt()
    finally:
        _noted.clear()
        signal.signal(signal.SIGINT, before)


def _note(number: int, frame: object) -> None:
    _noted.set()


def _note_or_end(number: int, frame: object) -> None:
    if _noted.is_set():
        end_at_once(number, frame)
    _noted.set()


def end_at_once(number: int, frame: object) -> None:
    """A handler of Ctrl-C for commands that have nothing to put in order: files are written whole or not at all."""
    os._exit(130)


@contextmanager
def _watched() -> Iterator[None]:
    """A thread that ends the process some seconds after Ctrl-C; it hears of it even while the main thread is in C++."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    stopped = threading.Event()

    def watch() -> None:
        with ours:
            while (heard := ours.recv(1)) and signal.SIGINT not in heard:
                pass
        if heard and not stopped.wait(FORCED_AFTER):
            os._exit(130)

    threading.Thread(target=watch, daemon=True).start()
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        stopped.set()
        signal.set_wakeup_fd(before)
        theirs.close()
