"""Benchmarks: speed, and accuracy where the answer is known, against other methods. Not part of what is installed.

``make bench SUITE="core gd"`` runs suites; without names, all but the long ones. ``runner`` starts each in a process of its own
on one core; ``records`` holds what a suite returns; ``measuring`` has the timing and memory tools.
"""
