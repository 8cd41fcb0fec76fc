"""Ctrl-C in a run: raised at once, raised again where Python loses it, and left to others who handle it."""

from __future__ import annotations

import os
import signal
import time

import pytest

from gyrostat.engine.keyboard_interrupt import AGAIN_AFTER, interrupts_repeated


def wait(seconds: float) -> None:
    """Run lines of Python for some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.01)


class InterruptedWhenDeleted:
    """Ctrl-C in a finaliser, whose exceptions Python prints and loses."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        wait(0.05)


@interrupts_repeated()
def interrupted_by(press, seconds: float) -> None:
    """Press Ctrl-C in some way, and go on for some time."""
    press()
    wait(seconds)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_is_raised_at_once_and_the_handler_is_given_back():
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted_by(press, 20)
    assert time.monotonic() - began < 10
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_is_lost_is_raised_again(capsys):
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted_by(InterruptedWhenDeleted, 20)
    assert time.monotonic() - began < 10
    assert "Exception ignored" not in capsys.readouterr().err


def test_a_lost_interrupt_is_not_raised_after_the_block():
    interrupted_by(InterruptedWhenDeleted, 0)
    try:
        wait(2 * AGAIN_AFTER)
    except KeyboardInterrupt:
        pytest.fail("an interrupt after the end")


def test_another_handler_is_left_alone():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with interrupts_repeated():
            os.kill(os.getpid(), signal.SIGINT)
            wait(0.05)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [1]
