"""The NumPy backend: runs without compilation, for the laboratory's sliders and for the fits of estimators.

``models``, ``update_rules`` and ``loop`` do not import JAX. Estimators call the loop with gradients of their data. For the
laboratory, ``simulate`` runs ``U U^T`` under fresh or infinitely many measurements and gives the numbers of
:func:`gyrostat.run`, up to rounding: JAX draws the random numbers of a run once (``random_draws``), whatever the sliders
say, and NumPy takes the steps of many seeds at once (``gradients``, ``diagnostics``). At these sizes two matrix products are
the whole work of a step, BLAS computes them in half the time of XLA, and a new dimension or rank compiles nothing.
"""
