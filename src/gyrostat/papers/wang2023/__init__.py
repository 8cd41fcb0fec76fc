"""Wang, Jacot 2023: one-way jumps from high to low rank in deep linear networks with a ridge. Figures, theory, studies."""

from gyrostat.papers.wang2023 import conventions, depth, difficulty, jumps, periodic, phases, starts

EXPERIMENTS = (
    jumps.FIG1,
    depth.FIG2,
    difficulty.FIG3,
    periodic.FIG4,
    conventions.CONVENTIONS_STUDY,
    starts.INITIALISATIONS,
    phases.PHASES,
)
