"""Checks that several files of tests share."""

from __future__ import annotations

import re
import sys

import pytest

import gyrostat as gs
from gyrostat import cli


def refuses(make, *words: str) -> str:
    """The message: one sentence, with these words in it."""
    with pytest.raises(gs.GyrostatError) as caught:
        make()
    message = str(caught.value)
    for word in words:
        assert word in message, message
    assert message.endswith((".", "?")) and "\n" not in message
    inside = re.sub(r"\d\.\d|\.\.\.|\w\.\w", "", message[:-1])  # decimals, names with dots, ellipses
    assert not re.search(r"[.!?] ", inside), message
    return message


def call(monkeypatch, capsys, *arguments):
    """Exit status, standard output and standard error of ``gyrostat arguments``."""
    monkeypatch.setattr(sys, "argv", ["gyrostat", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return left.value.code, *capsys.readouterr()
