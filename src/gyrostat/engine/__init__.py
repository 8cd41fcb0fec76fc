"""The engine: one loop for every algorithm, compiled for many seeds and settings at once, with labelled results."""
