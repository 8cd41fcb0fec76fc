"""Wang, Jacot 2023: one-way jumps from high to low rank in deep linear networks with a ridge. Figures and theory."""

from gyrostat.experiments import Paper
from gyrostat.papers.wang2023 import (
    appendix_c_facts,
    appendix_d_one_step,
    appendix_e_f_low_rank,
    fig1_jumps,
    fig2_depth,
    fig3_annealing,
    fig4_periodic,
    lemma_a1_small_ridge,
    remark2_1_langevin,
    section2_2_descent,
    starts,
    thm3_1_landscape,
    thm3_1_larger_problems,
    thm3_2_absorbing_sets,
    thm3_2_balance,
    update_conventions,
)
from gyrostat.papers.wang2023.settings import PRESETS

EXPERIMENTS = (
    fig1_jumps.Fig1,
    fig2_depth.Fig2,
    fig3_annealing.Fig3,
    fig4_periodic.Fig4,
    starts.PyTorchStart,
    remark2_1_langevin.Langevin,
    update_conventions.Conventions,
    section2_2_descent.DescentMinima,
    thm3_1_landscape.Landscape,
    thm3_1_larger_problems.LargerLandscape,
    lemma_a1_small_ridge.LemmaA1,
    thm3_2_balance.Balance,
    thm3_2_absorbing_sets.AbsorbingSets,
    appendix_c_facts.AppendixC,
    appendix_d_one_step.AppendixD,
    appendix_e_f_low_rank.AppendixEF,
)

PAPER = Paper(
    name="wang2023",
    title="Wang, Jacot: Implicit Bias of SGD in L2-Regularized Linear DNNs, One-Way Jumps from High to Low Rank (2023)",
    link="https://arxiv.org/abs/2305.16038",
    doi="10.48550/arXiv.2305.16038",
    experiments=EXPERIMENTS,
    presets=PRESETS,
    unchecked={
        "Formula (2)": "It defines a vector that Lemma C.2 uses, and states nothing by itself.",
    },
)
