"""Wang, Jacot 2023: one-way jumps from high to low rank in deep linear networks with a ridge. Figures, theory, studies."""

from gyrostat.experiments.declarations import Paper
from gyrostat.papers.wang2023 import (
    fig1_jumps,
    fig2_depth,
    fig3_annealing,
    fig4_periodic,
    fold,
    initialisations,
    representation_cost,
    ridge_and_step_size,
    several_environments,
    thm3_1_landscape,
    thm3_2_absorbing_sets,
    thm3_2_streaks,
    update_conventions,
)

EXPERIMENTS = (
    fig1_jumps.FIG1,
    fig2_depth.FIG2,
    fig3_annealing.FIG3,
    fig4_periodic.FIG4,
    update_conventions.CONVENTIONS_STUDY,
    initialisations.INITIALISATIONS,
    ridge_and_step_size.PHASES,
    fold.FOLD,
    thm3_1_landscape.LANDSCAPE,
    representation_cost.COST,
    representation_cost.BALANCE,
    thm3_2_absorbing_sets.REGIONS,
    thm3_2_streaks.STREAKS,
    several_environments.HETERO,
)

PAPER = Paper(
    name="wang2023",
    title="Wang, Jacot: Implicit Bias of SGD in L2-Regularized Linear DNNs, One-Way Jumps from High to Low Rank (2023)",
    link="https://arxiv.org/abs/2305.16038",
    doi="10.48550/arXiv.2305.16038",
    experiments=EXPERIMENTS,
)
