"""Offshoots: runs that branch off a trunk and follow their own schedule."""

from __future__ import annotations

import numpy as np

import gyrostat as gs
from completion_problem import ENVIRONMENTS, OBSERVED


def test_offshoots_leave_the_trunk_and_then_follow_their_own_schedule():
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
    high, low = gs.schedules.WarmUp(5, 0.03, gs.schedules.Constant(0.2, 0.1)), gs.schedules.Constant(0.02, 0.001)

    def descent(schedule):
        return gs.RidgeDescent(schedule, model=gs.DeepLinear(3, 8), start=gs.starts.Orthogonal())

    options = {"seeds": 2, "record": ["product"]}
    trunk = gs.run(descent(high), problem, num_steps=30, record_at=31, **options)
    branches = gs.engine.offshoots(
        descent(high), problem, at=[0, 10, 25], schedule=low, num_steps=12, record_at=[0, 4], **options
    )
    assert branches.product.dims == ("branch", "seed", "record", "row", "column")
    assert branches.step.values.tolist() == [[0, 4, 12], [10, 14, 22], [25, 29, 37]]
    for t, branch in zip((0, 10, 25), branches.product, strict=True):
        np.testing.assert_allclose(branch[:, 0], trunk.product.sel(step=t), rtol=1e-11, atol=1e-13)
        whole = gs.run(
            descent(gs.schedules.Annealing(high, low, at=t)), problem, num_steps=t + 12, record_at=[t + 12], **options
        )
        np.testing.assert_allclose(branch[:, -1], whole.product[:, -1], rtol=1e-11, atol=1e-13)
    assert not np.allclose(branches.product[2, :, -1], trunk.product.sel(step=30), atol=1e-3)
