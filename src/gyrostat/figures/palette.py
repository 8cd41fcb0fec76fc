"""Colours, markers and dashes of series, and the colours of pages in light and dark.

Colour-blind readers can tell the colours of the series apart, and every series has a second cue: a marker or a dash.
"""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B")
"""Okabe and Ito's palette without black (kept for theory) and yellow (too pale on white), with a grey."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INKS = ("#111111", "#7A7A7A", "#4B2E83", "#8C510A")
"""Theory, bounds and the paper's own numbers, when the declaration gives them no colour."""

ON_DARK_PAGES = {
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
"""The colour of each series and ink on a dark page: as far apart as in light, with a contrast of at least 4.5 to the page."""

PAGE_COLOURS = {
    "ink": ("#1b1f24", "#e6e9ed"),
    "paper": ("#ffffff", "#14171a"),
    "soft": ("#f3f5f7", "#1e2328"),
    "line": ("#d5dae0", "#363d45"),
    "edge": ("#76808b", "#7f8a96"),
    "quiet": ("#545d68", "#a3adb8"),
    "link": ("#0b57a4", "#7db8f5"),
    "on-link": ("#ffffff", "#0c1117"),
    "holds": ("#0a6640", "#5fd0a0"),
    "holds-soft": ("#e3f4ee", "#12332a"),
    "fails": ("#9a3412", "#f0a070"),
    "fails-soft": ("#fdebe1", "#3f2114"),
    "undecided": ("#6b4e00", "#e3c567"),
    "odd": ("#b00020", "#ff8a95"),
    "odd-soft": ("#fde8ea", "#3d1b20"),
    "gap": ("#d9d9d9", "#3a3f45"),
    "grid": ("#e4e7eb", "#2c3239"),
}
"""The colours of every page in light and in dark; ``figures.pages`` makes them CSS variables such as ``--ink``.

Text is ``ink``, less important text is ``quiet``. ``paper`` is the page, ``soft`` a card on it, ``line`` separates, ``edge``
borders what can be clicked, ``gap`` is a missing cell of a heat map. A name with ``-soft`` is the background for text in the
colour of the same name.
"""

DASHES = {"measured": (), "theory": (5, 2), "bound": (1, 1.5), "paper": (6, 2, 1, 2)}
"""Dashes and gaps of each role, in multiples of the line width."""

STRETCH = (1, 1, 2.5, 2.5)
"""How much wider the gaps of each ink are. In grey, the last two inks are as dark as the first two."""

HATCHES = ("", "/", ".", "x")
"""The patterns of bars, so that grey is enough to tell them apart; matplotlib has them twice as dense when doubled."""

HEAT_COLOURS = "viridis"
"""The colour map of every heat map, by its name in matplotlib; plotly's begins with a capital."""
