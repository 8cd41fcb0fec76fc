"""The 2 x 2 completion problem of Wang 2023, observed in three of its entries."""

import numpy as np

import gyrostat as gs

EPS = 0.25
TRUTH = np.array([[1.0, 1 / EPS], [EPS, 1.0]])
OBSERVED = [(0, 0), (1, 0), (1, 1)]
ENVIRONMENTS = gs.RectangularEnvironments.of(TRUTH)
