"""Exact reductions: a run in a small space that equals the full run up to rounding.

Rows and columns: when the measurements see the residual itself, the columns of every iterate stay in the span of the
targets' bases and of the first factor's columns, and nothing depends on the coordinates outside it. In an orthonormal basis
of that span a run has r1 + r2 + k rows instead of n, so the cost of a factorisation does not depend on n. (The rows outside
the signal are replaced by the k x k factor of their QR decomposition, and by a few more rows for bases that overlap.)

Hidden layers: a deep linear network stays in a few dimensions of every hidden layer (``hidden_layers``), for all kinds of
measurements. Both reductions may apply to one run.
"""
