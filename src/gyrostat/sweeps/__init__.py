"""Sweeps: phase diagrams over a grid of settings that resume, on the cores of this machine or on a Dask cluster."""

from __future__ import annotations

from gyrostat.sweeps.run import run_sweep, sweep
from gyrostat.sweeps.spec import Spec, read_spec, ready_made_specs

__all__ = ["Spec", "read_spec", "ready_made_specs", "run_sweep", "sweep"]
