"""Reproducing papers: the runner, the results store, the table of claims, and the report."""
