"""How series look: colours that colour-blind readers can tell apart, and a second cue (marker, dash)."""

from __future__ import annotations

from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B")
"""Okabe and Ito's palette without black (kept for theory) and yellow (too pale on white), with a grey."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INKS = ("#111111", "#7A7A7A", "#4B2E83", "#8C510A")
"""Theory, bounds and the paper's own numbers, when the declaration gives them no colour."""

AFTER_DARK = {
    "#0072B2": "#3D9BE0",
    "#D55E00": "#F07E26",
    "#009E73": "#2FC79B",
    "#CC79A7": "#E39AC4",
    "#E69F00": "#F5B83D",
    "#56B4E9": "#9AD7FF",
    "#6B6B6B": "#A8A8A8",
    "#111111": "#F2F2F2",
    "#7A7A7A": "#A6A6A6",
    "#4B2E83": "#B79CF0",
    "#8C510A": "#D9A066",
}
"""The same looks on a dark page: as far apart, and each at least 4.5 times as bright as the page."""

DASHES: dict[str, Any] = {
    "measured": "solid",
    "theory": (0, (5, 2)),
    "bound": (0, (1, 1.5)),
    "paper": (0, (6, 2, 1, 2)),
}


class Looks:
    """Hands out looks to the series of one panel, in order.

    >>> looks = Looks()
    >>> looks.series(None)["color"], looks.series(None)["color"], looks.series(0)["color"]
    ('#0072B2', '#D55E00', '#0072B2')
    """

    def __init__(self) -> None:
        self._coloured = self._inked = 0

    def series(self, colour: int | None) -> dict[str, Any]:
        """Colour and marker of measured data."""
        i = self._coloured if colour is None else colour
        self._coloured += 1
        return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}

    def rule(self, role: str, colour: int | None = None) -> dict[str, Any]:
        """Colour and dash of a line that is not a measurement."""
        if colour is None:
            ink = INKS[self._inked % len(INKS)]
            self._inked += 1
        else:
            ink = COLOURS[colour % len(COLOURS)]
        return {"color": ink, "linestyle": DASHES[role], "linewidth": 1.4}
