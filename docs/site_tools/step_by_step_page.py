"""Write the pictures of docs/step-by-step.md: ``python docs/site_tools/step_by_step_page.py``.

One run of HeteroSGD and one of PooledSGD in the same two environments, in coordinates in which the signals come first. Each
row of the picture is a step: the target of its batch and the product of the model, for both. The page shows a row at a time.
"""

from __future__ import annotations

from pathlib import Path

import jax
import matplotlib as mpl
import numpy as np

import gyrostat as gs
from gyrostat.figures.palette import COLOURS

FILE = Path(__file__).parents[1] / "images" / "step-by-step.png"
NUM_STEPS, PAIRS = 200, 20
ENTRY, GAP = 24, 16
"""Pixels of an entry, and between two matrices."""
MOST = 1.2
"""The size of an entry that has the full colour."""


def pictures() -> np.ndarray:
    """All rows, as one image of shape (height, width, 4)."""
    law = gs.TwoPoint(mean=1.0, spread=6.0)
    drawn = gs.Problem(gs.RandomEnvironments(5, law=law), gs.Identity()).draw(jax.random.key(0))
    problem = gs.Problem(drawn, gs.FreshGaussian(2400))
    first = np.unique(np.linspace(0, NUM_STEPS - 2, PAIRS).astype(int))
    pairs = np.unique([first, first + 1])
    basis, _ = np.linalg.qr(np.hstack([drawn.invariant_basis, drawn.spurious_basis]), mode="complete")
    targets = basis.T @ np.array([drawn.target(sigma) for sigma in law.values]) @ basis
    columns = []
    for algorithm, mixes in ((gs.HeteroSGD(0.05, order="cyclic"), False), (gs.PooledSGD(0.05), True)):
        result = gs.run(algorithm, problem, num_steps=NUM_STEPS, record=["product"], record_at=pairs)
        environment = result.step.values % 2
        columns.append(
            np.broadcast_to(targets.mean(axis=0), (len(environment), 5, 5)) if mixes else targets[environment]
        )
        columns.append(basis.T @ result["product"].values[0] @ basis)
    colours = mpl.colors.LinearSegmentedColormap.from_list("signs", [COLOURS[1], "#F4F4F4", COLOURS[0]])
    squares = [
        np.kron(colours(0.5 + np.clip(x, -MOST, MOST) / (2 * MOST)), np.ones((1, ENTRY, ENTRY, 1))) for x in columns
    ]
    rows = np.concatenate([np.pad(x, ((0, 0), (0, 0), (0, GAP), (0, 0))) for x in squares], axis=2)
    return rows.reshape(-1, *rows.shape[2:])


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    import matplotlib.image

    FILE.parent.mkdir(exist_ok=True)
    matplotlib.image.imsave(FILE, pictures())
    print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")
