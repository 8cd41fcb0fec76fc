"""The completion suite: the low-rank imputer against other methods on tables with known missing cells."""
