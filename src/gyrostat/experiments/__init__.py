"""Experiments: declared computations with claims, the statistics that claims use, and the registry of papers."""
