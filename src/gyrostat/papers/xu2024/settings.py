"""What the experiments of this paper share: its default setting and comparisons of algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

import gyrostat as gs
from gyrostat.engine.compile import Cell

PAPER = "Xu 2024"
ALPHA = 1e-3


def spread_cell(
    spread: float, *, dimension: int = 100, num_samples: float = 8000, step_size: float = 0.05, order: str = "iid"
) -> Cell:
    """HeteroSGD in the setting of section 5: r1 = r2 = 1, s = 1 - M or 1 + M, U0 = 1e-3 I."""
    places = gs.RandomEnvironments(dimension, rank=1, law=gs.TwoPoint(mean=1.0, spread=spread))
    return gs.HeteroSGD(step_size, init_scale=ALPHA, order=order), gs.Problem(places, gs.FreshGaussian(num_samples))


def compare(cells: Mapping[str, Cell], **options: Any) -> xr.Dataset:
    """Run named cells side by side, along a dimension ``algorithm``."""
    return gs.run_grid(lambda algorithm: cells[algorithm], {"algorithm": list(cells)}, **options)
