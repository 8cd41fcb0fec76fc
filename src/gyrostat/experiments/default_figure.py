"""The figure of an experiment that draws none itself: how near each measured number comes to the limit of its claim."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gyrostat.experiments.claims import Claim, Interval
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel

if TYPE_CHECKING:
    import xarray as xr

AXIS = (1e-4, 1e4)
"""Numbers further from their limit than this are drawn as arrows at the edge."""

ROWS = 7
"""The rows of a panel of the usual height."""


def share_of_limit(x: float, interval: Interval) -> float:
    """How much of what an interval allows a number takes: 1 at the nearer end, more outside.

    >>> share_of_limit(0.5, (0, 2)), share_of_limit(4.0, (1, math.inf)), share_of_limit(-1, (-2, 4))
    (0.25, 0.25, 0.5)
    >>> share_of_limit(1.0, (0.5, 1.25))
    0.8

    A share cannot be more than 1, so that this end of its interval is no limit:

    >>> share_of_limit(1.0, (0.9, 1)), share_of_limit(0.0, (0.9, 1))
    (0.9, inf)
    """
    low, high = interval
    if low > 0 and x <= 0:
        return math.inf
    if low > 0 and high == 1 and x <= 1:
        return low / x
    if low > 0:
        return max(x / high, low / x)
    end = high if x >= 0 else low
    return math.inf if end == 0 and x else x / end if end else 0.0


def how_near(claims: Sequence[Claim], ds: xr.Dataset) -> Figure:
    """A row for each number that is judged, in the order of the claims; statements that are expected to fail look different."""
    rows, shares, fails = [], [], []
    first_items = [claim.items[0] if claim.items else "" for claim in claims]
    for claim, item in zip(claims, first_items, strict=True):
        outcome = claim.measure(ds)
        head = item if item and first_items.count(item) == 1 else words_of(claim.slug, item)
        for number, interval in outcome.limits.items():
            words = claim.names.get(number, number.replace("_", " "))
            rows.append(f"{head}: {words}" if len(outcome.limits) > 1 else head)
            shares.append(share_of_limit(outcome.measured[number], interval))
            fails.append(bool(claim.kind))
    places, beyond = np.clip(shares, *AXIS), np.greater(shares, AXIS[1]) - 1 * np.less(shares, AXIS[0])
    series = [
        Dots(rows, np.where(some, places, np.nan), label, beyond=beyond, colour=colour)
        for some, label, colour in (
            (~np.array(fails, dtype=bool), "measured", 0),
            (np.array(fails, dtype=bool), "measured, for a statement that is expected to fail", 1),
        )
        if np.isfinite(places[some]).any()
    ]
    panel = Panel(
        title="How near to its limit each number is",
        xlabel="share of the limit",
        ylabel="",
        series=[*series, Marker(1.0, "the limit", axis="x", role="bound")],
        xscale="log",
        xlim=(AXIS[0] / 2, max(10.0, 2 * np.nanmax(places, initial=0.0))),
        height=max(1.0, len(rows) / ROWS),
    )
    note = "Left of 1 a number is inside the interval of its claim, right of it outside"
    further = "; arrows point to what lies further away" if beyond.any() else ""
    return Figure(title="", panels=[panel], note=f"{note}{further}.")


KINDS_OF_ITEMS = {"thm": "Theorem", "lemma": "Lemma", "prop": "Proposition"}


def words_of(slug: str, item: str) -> str:
    """A claim among several of one item, in words: the item, or the one that its slug begins with, and what it says besides.

    >>> words_of("D.1-other-rows", "Lemma D.1"), words_of("lemma-11", "Lemma 11"), words_of("start-law", "")
    ('Lemma D.1, other rows', 'Lemma 11', 'start law')
    >>> words_of("thmE.1", "Theorem B.2"), words_of("lemmaA.1-ball", "Lemma A.1")
    ('Theorem E.1', 'Lemma A.1, ball')
    """
    words = slug.replace("-", " ")
    if named := re.match(r"(thm|lemma|prop)([A-Z0-9][\w.]*)", words):
        item = f"{KINDS_OF_ITEMS[named[1]]} {named[2]}"
        words = words.replace(named[0], item, 1)
    if not item:
        return words
    number = item.strip("()").rpartition(" ")[2]
    besides = re.sub(rf"^({re.escape(item)}|{re.escape(number)})(?![\w.])", "", words, flags=re.IGNORECASE).strip()
    return f"{item}, {besides}" if besides else item
