"""Benchmarks: speed, and accuracy where the answer is known, against other methods.

``runner`` runs suites, each in a process of its own on one core; ``records`` holds what a suite returns; ``measuring`` has
the timing and memory tools. The suites are in ``speed``, ``invariance`` and ``completion``.
"""
