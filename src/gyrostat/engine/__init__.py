"""The engine: one compiled loop for every algorithm, labelled results, and a NumPy backend for short runs."""
