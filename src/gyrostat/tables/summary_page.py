"""``summary.html``: the findings of a fit as a page for people, in one file that needs no network."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gyrostat.estimators.invariant.diagnosis import HeterogeneityReport
from gyrostat.estimators.invariant.influence import KEPT, REMOVED
from gyrostat.estimators.invariant.verdicts import shown_p
from gyrostat.figures.pages import page_environment
from gyrostat.parallel.whole_files import write_whole
from gyrostat.tables.row_checks import in_command_words
from gyrostat.tables.saved_model import SavedModel

TEMPLATES = Path(__file__).parent / "templates"
CSS_CLASSES = {KEPT: "holds", REMOVED: "fails"}


def write_summary(
    path: Path,
    report: HeterogeneityReport,
    model: SavedModel,
    forest: Path,
    *,
    notes: Sequence[str] = (),
    uses: Sequence[str] = (),
) -> None:
    """Write the page; ``forest`` is the forest plot as an SVG file, which the page embeds.

    ``notes`` are sentences on the table that was read, ``uses`` on what to predict with.
    """
    template = page_environment(TEMPLATES).get_template("summary_page.html")
    page = template.render(
        model=model,
        findings=[in_command_words(sentence) for sentence in findings(report, model)],
        notes=notes,
        uses=uses,
        forest=base64.b64encode(forest.read_bytes()).decode(),
        features=_rows(report.features, "feature"),
        directions=_rows(report.directions, "direction"),
    )
    write_whole(path, page)


def findings(report: HeterogeneityReport, model: SavedModel) -> list[str]:
    """The findings in sentences. Those on a quadratic model come first, as the diagnostics are about linear effects."""
    if model.kind == "linear":
        return list(report.advice)
    kept, removed = (model.about[name] for name in ("invariant_directions", "spurious_directions"))
    nothing = [] if len(kept) else ["No direction of squares holds in every environment, so predictions are constant."]
    return [
        "The model uses squares and products of the standardised features, and decides on directions of these.",
        *nothing,
        *(f"Kept: {_combination(v, model.features)}." for v in kept),
        *(f"Removed: {_combination(v, model.features)}." for v in removed),
        "Everything below is about linear effects, which this model does not use.",
        *report.advice,
    ]


def percent(share: float) -> str:
    """A share as text.

    >>> percent(0.25), percent(25.0)
    ('25%', '> 1000%')
    """
    return f"{share:.0%}" if share < 10 else "> 1000%"


def _rows(data: xr.Dataset, dim: str) -> list[dict[str, str]]:
    """The rows of one table of the page; loadings are a column only where they exist."""
    rows = []
    for j in range(data.sizes[dim]):
        one = data.isel({dim: j})
        verdict = str(one.verdict.item())
        low, high = (percent(one[name].item()) for name in ("variation_low", "variation_high"))
        mean, variation, differ_p = compared(one)
        row = {
            "name": str(one[dim].item()),
            "verdict": verdict,
            "css_class": CSS_CLASSES.get(verdict, "undecided"),
            "mean": mean,
            "variation": f"{variation} ({low} to {high})" if variation else "",
            "differ_p": differ_p,
            "lyapunov": f"{one.lyapunov_amplified.item():+.3g}",
            "reason": str(one.reason.item()),
        }
        if "loading" in one:
            row["combination"] = _combination(one.loading.values, one.feature.values)
        rows.append(row)
    return rows


def compared(one: xr.Dataset) -> tuple[str, str, str]:
    """The mean effect with its interval, its variation, and the p-value that all effects are the same; empty if unknown."""
    mean, low, high = (one[name].item() for name in ("mean", "mean_low", "mean_high"))
    effect = f"{mean:.3g} ({low:.3g} to {high:.3g})" if np.isfinite(mean) else ""
    if not np.isfinite(one.effect).any():  # a comparison of environments gives an effect, and no variation
        return effect, "", ""
    return effect, percent(one.variation.item()), shown_p(one.differ_p.item()).removeprefix("= ")


def _combination(direction: Any, names: Any) -> str:
    """The three largest entries of a unit vector with their names. A direction has no sign: the largest is positive."""
    order = sorted(range(len(direction)), key=lambda j: -abs(direction[j]))[:3]
    sign = -1 if direction[order[0]] < 0 else 1
    return ", ".join(f"{sign * direction[j]:+.2f} {names[j]}" for j in order)
