"""One run step by step, as pictures: what the batch of a step asks for, and what the model holds, with and without mixing."""

from __future__ import annotations

from typing import Any

import numpy as np

from gyrostat.engine.numpy_backend.environments import drawn_environments
from gyrostat.engine.simulate import simulate
from gyrostat.lab.controls import Setting
from gyrostat.lab.laboratories.environments import ENVIRONMENTS

PAIRS = 40
"""Pairs of successive steps that are shown, so that both environments are seen."""
OTHERS = 3
"""Directions that neither signal has, and that are shown beside those of the signals."""
KEPT = ("spread", "mean", "overlap", "rank", "spurious_rank", "step_size", "num_steps", "init_scale", "num_samples")


def copied(setting: Setting) -> Setting:
    """The setting that is shown: two environments that take turns, in few dimensions, and what else pictures can show.

    >>> small = copied(ENVIRONMENTS.read({"spread": "8", "law": "gaussian"}))
    >>> small["spread"], small["law"], small["order"], small["dimension"]
    (8.0, 'two-point', 'cyclic', 5)
    """
    size = setting["rank"] + setting["spurious_rank"] + OTHERS
    same = {name: setting[name] for name in KEPT} | {
        "measurements": "population" if setting["measurements"] == "population" else "fresh"
    }
    return ENVIRONMENTS.read({**same, "law": "two-point", "order": "cyclic", "dimension": size, "seeds": 1})


def shown_steps(num_steps: int) -> np.ndarray:
    """Pairs of successive steps, spread over the run.

    >>> shown_steps(200)[:6].tolist()
    [0, 1, 5, 6, 10, 11]
    """
    first = np.unique(np.round(np.linspace(0, num_steps - 1, PAIRS)).astype(int))
    return np.unique(np.concatenate([first, first + 1]))


def frames(setting: Setting) -> dict[str, Any]:
    """The matrices of a run, in coordinates in which the signals come first.

    ``targets`` holds the target of each environment, and environment ``step % 2`` is the one that the batch of a step comes
    from. ``products`` holds ``U U^T`` of each side at each of the ``steps``; the entries of a diverged run are None.
    """
    small = copied(setting)
    sides = ENVIRONMENTS.sides(small)
    cells = [side.build() for side in sides]
    grid = shown_steps(small["num_steps"])
    environments = drawn_environments(cells[0][1].environments, 0, 1, float)
    basis = _completed(environments.frame[0])
    strengths = np.asarray(environments.law.values)
    halves = environments.half_target(strengths[:, None], environments.values)[:, 0]
    products = {}
    for side, cell in zip(sides, cells, strict=True):
        found = simulate([cell], num_steps=small["num_steps"], seeds=range(1), record=("left_factor",), record_at=grid)
        U = found.values["left_factor"][0, 0]
        products[side.name] = _plain(basis.T @ U @ U.mT @ basis)
    return {
        "kind": "frames",
        "dimension": small["dimension"],
        "rank": small["rank"],
        "spurious_rank": small["spurious_rank"],
        "steps": grid.tolist(),
        "strengths": strengths[:, 0, 0].tolist(),
        "targets": _plain(basis.T @ halves @ environments.transposed[0] @ basis),
        "invariant": _plain(basis.T @ environments.invariant[0] @ basis),
        "products": products,
    }


def _completed(frame: np.ndarray) -> np.ndarray:
    """An orthonormal basis whose first vectors span the columns of ``frame``, each with the sign of its column."""
    Q, R = np.linalg.qr(frame, mode="complete")
    signs = np.ones(len(Q))
    signs[: frame.shape[1]] = np.where(np.diagonal(R) < 0, -1.0, 1.0)
    return Q * signs


def _plain(matrices: np.ndarray) -> list[Any]:
    """Three digits behind the point; None where a number is not finite."""
    rounded = np.round(matrices, 3).astype(object)
    rounded[~np.isfinite(matrices)] = None
    return rounded.tolist()
