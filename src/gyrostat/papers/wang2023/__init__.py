"""Wang, Jacot 2023: one-way jumps from high to low rank in deep linear networks with a ridge. Figures, theory, studies."""

from gyrostat.papers.wang2023 import (
    beyond,
    conventions,
    cost,
    depth,
    difficulty,
    folds,
    jumps,
    landscape,
    periodic,
    phases,
    regions,
    starts,
    streaks,
)

EXPERIMENTS = (
    jumps.FIG1,
    depth.FIG2,
    difficulty.FIG3,
    periodic.FIG4,
    conventions.CONVENTIONS_STUDY,
    starts.INITIALISATIONS,
    phases.PHASES,
    folds.FOLD,
    landscape.LANDSCAPE,
    cost.COST,
    cost.BALANCE,
    regions.REGIONS,
    streaks.STREAKS,
    beyond.HETERO,
)
