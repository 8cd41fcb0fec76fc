"""Runs of ``U U^T`` under fresh or infinitely many measurements, at the pace of a slider.

The numbers are those of :func:`gyrostat.run`, to rounding, made another way: all that is random in a run is drawn once by
JAX (``draws``, ``noise``), whatever the sliders say, and the steps themselves are NumPy's products of some seeds side by
side (``course``, ``readings``). At these sizes two products are the whole work of a step, BLAS makes them in half the time
of XLA, and nothing is compiled when a dimension or a rank changes. Other models go through the library's own loop.
"""
