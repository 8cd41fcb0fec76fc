"""The invariance suite: the linear estimator against other methods for several environments, on simulations and real data."""
