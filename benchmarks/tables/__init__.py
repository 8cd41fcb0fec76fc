"""Benchmarks of ordinary tables: mixed units, awkward fits, sizes beyond memory, and ratings."""
