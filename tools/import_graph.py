"""Draws which room imports which, for `docs/architecture.md`: python tools/import_graph.py docs/images/rooms.png

Left: the arrows that are needed to reach every room (the transitive reduction). Right: how many modules of a room (row)
import a module of another room (column); everything lies below the diagonal, because rooms import downwards only.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import grimp
import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).parents[1]
PAINT = "#0072B2"
SHIFTS = (0.0, 0.35, -0.35)
"""Levels are shifted sideways, so that fewer arrows run behind a room."""
EVERYWHERE = ("errors", "typing", "what_went")
"""Every room may import these files: they are not drawn."""


def rooms() -> list[str]:
    """The rooms from the lowest to the highest, as the contract in pyproject.toml lists them."""
    (contract,) = (
        c
        for c in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if c["type"] == "layers"
    )
    return [room for room in contract["layers"][::-1] if room not in EVERYWHERE]


def imports(names: list[str]) -> np.ndarray:
    """How many modules of room i import a module of room j."""
    graph = grimp.build_graph("gyrostat")
    counts = np.zeros((len(names), len(names)), dtype=int)
    for i, name in enumerate(names):
        home = f"gyrostat.{name}"
        for module in {home} | graph.find_descendants(home):
            seen = {target.split(".")[1] for target in graph.find_modules_directly_imported_by(module) if "." in target}
            for target in seen - {name, *EVERYWHERE}:
                counts[i, names.index(target)] += 1
    return counts


def needed(counts: np.ndarray) -> np.ndarray:
    """The arrows without those that a longer way makes superfluous."""
    direct = counts > 0
    reach = direct.copy()
    for _ in range(len(direct)):
        reach = reach | (reach.astype(int) @ direct.astype(int) > 0)
    longer = direct.astype(int) @ reach.astype(int) > 0
    return direct & ~longer


def draw(path: Path) -> None:
    names = rooms()
    counts = imports(names)
    arrows = needed(counts)
    level = np.zeros(len(names), dtype=int)
    for i in range(len(names)):
        level[i] = max((level[j] + 1 for j in np.flatnonzero(arrows[i])), default=0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(15, 8.5), width_ratios=(1.15, 1), layout="constrained")
    spots = {}
    for at in range(level.max() + 1):
        here = np.flatnonzero(level == at)
        for k, i in enumerate(here):
            spots[i] = (1.25 * (k - (len(here) - 1) / 2) + SHIFTS[at % 3], at)
    boxes = {}
    for i, (x, y) in spots.items():
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": PAINT, "linewidth": 1.4}
        boxes[i] = left.text(x, y, names[i], ha="center", va="center", fontsize=10, bbox=box, zorder=3).get_bbox_patch()
    left.set(xlim=(-2.4, 2.4), ylim=(-0.7, level.max() + 0.7), title="An arrow points to the room that is imported")
    left.axis("off")
    right.imshow(
        np.where(counts > 0, np.log1p(counts), np.nan), cmap="Blues", vmin=-0.5, vmax=np.log1p(counts.max()) * 1.4
    )
    for i, j in np.argwhere(counts > 0):
        right.text(j, i, counts[i, j], ha="center", va="center", fontsize=7.5)
    right.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=9)
    right.set_yticks(range(len(names)), names, fontsize=9)
    right.set_title("Modules of a room (row) that import another room (column)")
    figure.canvas.draw()  # the arrows end at the boxes, whose sizes are known now
    for i, j in np.argwhere(arrows):
        style = {
            "arrowstyle": "-|>",
            "color": "0.45",
            "shrinkA": 2,
            "shrinkB": 2,
            "patchA": boxes[i],
            "patchB": boxes[j],
        }
        left.annotate("", spots[j], spots[i], arrowprops=style, zorder=2)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
