"""Wang, Jacot 2023: one-way jumps from high to low rank in deep linear networks with a ridge. Figures, theory, studies."""

from gyrostat.experiments.declarations import Paper
from gyrostat.papers.wang2023 import (
    appendix_c_facts,
    appendix_d_one_step,
    appendix_e_f_low_rank,
    fig1_jumps,
    fig2_depth,
    fig3_annealing,
    fig4_periodic,
    figs2_4_pytorch_start,
    fold,
    initialisations,
    lemma_a1_small_ridge,
    remark2_1_langevin,
    representation_cost,
    thm3_1_landscape,
    thm3_1_larger_problems,
    thm3_2_absorbing_sets,
    thm3_2_streaks,
    update_conventions,
)
from gyrostat.papers.wang2023.numbered_items import ITEMS

EXPERIMENTS = (
    fig1_jumps.FIG1,
    fig2_depth.FIG2,
    fig3_annealing.FIG3,
    fig4_periodic.FIG4,
    figs2_4_pytorch_start.PYTORCH_START,
    remark2_1_langevin.LANGEVIN,
    update_conventions.CONVENTIONS_STUDY,
    initialisations.INITIALISATIONS,
    fold.FOLD,
    thm3_1_landscape.LANDSCAPE,
    thm3_1_larger_problems.LARGER,
    lemma_a1_small_ridge.SMALL_RIDGE,
    representation_cost.COST,
    representation_cost.BALANCE,
    thm3_2_absorbing_sets.REGIONS,
    thm3_2_streaks.STREAKS,
    appendix_c_facts.FACTS_OF_ALGEBRA,
    appendix_d_one_step.ONE_STEP,
    appendix_e_f_low_rank.LOW_RANK,
)

PAPER = Paper(
    name="wang2023",
    title="Wang, Jacot: Implicit Bias of SGD in L2-Regularized Linear DNNs, One-Way Jumps from High to Low Rank (2023)",
    link="https://arxiv.org/abs/2305.16038",
    doi="10.48550/arXiv.2305.16038",
    experiments=EXPERIMENTS,
    items=ITEMS,
)
