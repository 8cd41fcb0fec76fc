"""Exact reductions: a run in a small subspace that equals the full run up to rounding."""
