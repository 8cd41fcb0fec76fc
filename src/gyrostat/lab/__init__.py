"""The laboratory: plumbing for experiments (declarations, claims, figures, store, runner, report); no mathematics."""
