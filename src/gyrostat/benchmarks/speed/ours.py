"""Our side of the core suite: the same setting through the library. Imports JAX only when called."""

from __future__ import annotations

from typing import Any

from gyrostat.benchmarks.speed.naive import Setting


def cell(setting: Setting, *, fixed: bool = False) -> Any:
    """HeteroSGD on the setting, with fresh or fixed Gaussian measurements."""
    import gyrostat as gs

    law = gs.TwoPoint(mean=1.0, spread=setting.spread)
    measurements = (gs.FixedGaussian if fixed else gs.FreshGaussian)(setting.num_samples)
    problem = gs.Problem(gs.RandomEnvironments(setting.dimension, law=law), measurements)
    return gs.HeteroSGD(setting.step_size, init_scale=setting.init_scale), problem


def run(setting: Setting, steps: int, *, seeds: int = 1, fixed: bool = False) -> Any:
    """Run it and record the end only; the time spans everything from the call to NumPy arrays."""
    from gyrostat.engine.simulate import simulate

    return simulate([cell(setting, fixed=fixed)], num_steps=steps, seeds=seeds, record_at=1)
