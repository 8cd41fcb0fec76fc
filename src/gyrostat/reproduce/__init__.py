"""Reproducing papers: the runner, the results store, claims and their tables, and the report."""
