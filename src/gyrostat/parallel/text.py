"""Pieces of text that several parts of the lab print: tables of pages, and times."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table.

    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, *lines)).replace(
        "\n", f"\n|{'---|' * len(headings)}\n", 1
    )


def clock(seconds: float) -> str:
    """A time in minutes and seconds.

    >>> clock(75.2), clock(7530)
    ('1:15', '2:05:30')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
