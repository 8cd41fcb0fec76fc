"""How few cells are enough: the share of matrices found, by rank and by observed cells over degrees of freedom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.completion.problems import HiddenCells, Synthetic, synthetic
from benchmarks.completion.study import is_found, ours
from benchmarks.records import grid
from gyrostat.estimators.low_rank.solver.exact_fit import fit_of_rank
from gyrostat.figures.palette import HEAT_COLOURS

FIRST = 5000
"""The seed of the first matrix: neither the seeds of the main comparison nor those used to develop the solver."""
PHASE = "images/completion-phase.png"


def count_found(rank: int, oversampling: float, count: int, n: int) -> dict[str, Any]:
    """How many of ``count`` n x n matrices are found by the whole imputer, and by MatrixIRLS told the rank."""
    setting = Synthetic(n, rank, oversampling)
    problems = [synthetic(setting, FIRST + k) for k in range(count)]
    mine, theirs = ([is_found(p, predict(p)) for p in problems] for predict in (ours, told_the_rank))
    return {"rank": rank, "oversampling": oversampling, "count": count, "n": n, "ours": sum(mine), "told": sum(theirs)}


def told_the_rank(problem: HiddenCells) -> np.ndarray:
    """MatrixIRLS (Kuemmerle, Mayrink Verdun 2021) told the rank: our reweighted least squares of infinite depth, alone."""
    assert problem.rank is not None
    factors = fit_of_rank(problem.seen, problem.rank, np.inf, limit=300, stalled=0.98).factors
    return factors.at(problem.test.rows, problem.test.columns)


def values(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the page shows: the number of matrices, and a table of counts."""
    ranks, overs = (sorted({cell[name] for cell in cells}) for name in ("rank", "oversampling"))
    cell_at = {(cell["rank"], cell["oversampling"]): cell for cell in cells}
    rows = [[str(rank), *(_share(cell_at.get((rank, x))) for x in overs)] for rank in ranks]
    return {"matrices": cells[0]["count"], "found": grid(["rank", *(f"{x:g} times the freedom" for x in overs)], rows)}


def _share(cell: dict[str, Any] | None) -> str:
    return f"{cell['ours']} / {cell['told']}" if cell else "-"


def phase_picture(cells: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw two panels of shares, ours and MatrixIRLS told the rank, with the counts written in."""
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
        image = axes.imshow(shares, vmin=0, vmax=1, origin="lower", aspect="auto", cmap=HEAT_COLOURS)
        axes.set(title=title, xlabel="entries over degrees of freedom", ylabel="rank")
        axes.set_xticks(range(len(overs)), [f"{x:g}" for x in overs])
        axes.set_yticks(range(len(ranks)), [f"{r}" for r in ranks])
    figure.colorbar(image, ax=figure.axes, label=f"share of {cells[0]['count']} matrices found")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
