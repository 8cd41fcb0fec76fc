"""The pictures of a run against the same run written out in NumPy."""

from __future__ import annotations

import numpy as np

from gyrostat.lab.laboratories.environments import ENVIRONMENTS
from gyrostat.lab.step_by_step import frames


def test_pictures_are_those_of_a_run_whose_environments_take_turns():
    eta, alpha, num_steps = 0.05, 1e-3, 200
    found = frames(ENVIRONMENTS.read({"spread": "8", "overlap": "0.3", "measurements": "population"}))
    invariant, targets = np.array(found["invariant"]), np.array(found["targets"])
    v = np.array([0.3, np.sqrt(1 - 0.3**2), 0, 0, 0])  # the spurious direction, in the coordinates of the pictures
    expected = [np.diag([1.0, 0, 0, 0, 0]) + strength * np.outer(v, v) for strength in (1 - 8, 1 + 8)]
    np.testing.assert_allclose(invariant, np.diag([1.0, 0, 0, 0, 0]), rtol=0, atol=1e-3)
    np.testing.assert_allclose(targets, expected, rtol=0, atol=1e-3)  # three digits are kept
    for name, target in (("hetero", lambda t: expected[t % 2]), ("pooled", lambda t: np.mean(expected, axis=0))):
        U, path = alpha * np.eye(5), []
        for t in range(num_steps + 1):
            path.append(U @ U.T)
            U = U - eta * (U @ U.T - target(t)) @ U
        np.testing.assert_allclose(found["products"][name], np.array(path)[found["steps"]], rtol=0, atol=1e-3)
