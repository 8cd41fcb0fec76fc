"""The two pictures of the page: matrices found over (oversampling, rank), and the restored image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gyrostat.benchmarks.completion.image import MISSING, SIDE, unpacked


def phase_picture(cells: Sequence[dict[str, Any]], path: Path) -> None:
    """Two panels of shares, ours and MatrixIRLS told the rank, with the numbers written in."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ranks, overs = (sorted({cell[name] for cell in cells}) for name in ("rank", "oversampling"))
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    titles = {"ours": "LowRankImputer, not told the rank", "told": "MatrixIRLS, told the rank"}
    for axes, (side, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        shares = np.full((len(ranks), len(overs)), np.nan)
        for cell in cells:
            at = ranks.index(cell["rank"]), overs.index(cell["oversampling"])
            shares[at] = cell[side] / cell["count"]
            axes.text(
                *at[::-1], f"{cell[side]}", ha="center", va="center", color="black" if shares[at] > 0.5 else "white"
            )
        image = axes.imshow(shares, vmin=0, vmax=1, origin="lower", aspect="auto", cmap="viridis")
        axes.set(title=title, xlabel="entries over degrees of freedom", ylabel="rank")
        axes.set_xticks(range(len(overs)), [f"{x:g}" for x in overs])
        axes.set_yticks(range(len(ranks)), [f"{r}" for r in ranks])
    figure.colorbar(image, ax=figure.axes, label=f"share of {cells[0]['count']} matrices found")
    _saved(figure, path)


def image_picture(found: dict[str, Any], path: Path) -> None:
    """What is seen, both restored images, and the image."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    titles = {
        "holes": f"{MISSING:.0%} of the pixels missing",
        "matrix": f"the image as a matrix ({found['matrix']:.1f} dB)",
        "patches": f"its {SIDE} x {SIDE} patches as rows ({found['patches']:.1f} dB)",
        "whole": "the image",
    }
    for axes, (name, title) in zip(figure.subplots(1, 4), titles.items(), strict=True):
        axes.imshow(unpacked(found["images"][name], found["side"]), cmap="gray", vmin=0, vmax=255)
        axes.set_title(title)
        axes.set_axis_off()
    _saved(figure, path)


def _saved(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
