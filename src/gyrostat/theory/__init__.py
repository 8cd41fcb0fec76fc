"""Theory: what the papers state, as functions that return values, bounds and verdicts, and our own predictors.

``bounds``, ``proof_sequences``, ``transition``, ``amplification`` and ``final_error`` are about HeteroSGD (Xu 2024),
``gradient_descent`` about factorisation and sensing (Xiong 2024), ``deep_linear`` about deep networks (Wang 2023).
``conditions`` declares a condition of a theorem; ``assessment`` checks all of them for one setting. Names are imported on
first use, so that the closed formulas do not import JAX.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
