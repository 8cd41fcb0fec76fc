"""Low-rank matrices of unknown rank: missing cells and linear measurements."""
