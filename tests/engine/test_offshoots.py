"""Offshoots: runs that branch off a trunk and follow their own schedule."""

from __future__ import annotations

import numpy as np

import gyrostat as gs
from completion_problem import ENVIRONMENTS, OBSERVED


def test_offshoots_leave_the_trunk_and_then_follow_their_own_schedule():
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
    high, low = gs.WarmUp(5, 0.03, gs.Constant(0.2, 0.1)), gs.Constant(0.02, 0.001)
    trunk = gs.RidgeDescent(high, model=gs.DeepLinear(3, 8), start=gs.Orthogonal())
    options = {"seeds": 2, "record": ["product"]}
    main = gs.run(trunk, problem, num_steps=30, record_at=31, **options)
    found = gs.offshoots(trunk, problem, at=[0, 10, 25], schedule=low, num_steps=12, record_at=4, **options)
    assert found.product.dims == ("branch", "seed", "record", "row", "column")
    assert found.step.values.tolist() == [[0, 4, 8, 12], [10, 14, 18, 22], [25, 29, 33, 37]]
    for k, t in enumerate((0, 10, 25)):
        np.testing.assert_allclose(found.product[k, :, 0], main.product.sel(step=t), rtol=1e-11, atol=1e-13)
        alone = gs.RidgeDescent(gs.Annealing(high, low, at=t), model=gs.DeepLinear(3, 8), start=gs.Orthogonal())
        whole = gs.run(alone, problem, num_steps=t + 12, record_at=[t + 12], **options)
        np.testing.assert_allclose(found.product[k, :, -1], whole.product[:, -1], rtol=1e-11, atol=1e-13)
    assert not np.allclose(found.product[2, :, -1], main.product.sel(step=30), atol=1e-3)
