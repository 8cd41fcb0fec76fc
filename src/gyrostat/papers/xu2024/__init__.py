"""Xu, Gu, Fang 2024: multi-environment matrix sensing. Figures 1-6 and one experiment for each theory item."""

from gyrostat.experiments import Paper, experiments_in
from gyrostat.papers.xu2024 import (
    fig1_fig2_oscillation,
    fig3_fig4_transition,
    fig5_fig6_thm3_thm6_pooled,
    lemmas_1_to_4_isometry,
    lemmas_5_6_7_sequences,
    lemmas_8_to_15_proof_steps,
    pooled_batches,
    prop1_lemmas_16_to_19,
    section6_and_condition7,
    thm2_error,
    thm2_window_and_phases,
    thm7_quadratic_network,
    thm8_eigenvalues,
)
from gyrostat.papers.xu2024.settings import PRESETS

PAPER = Paper(
    name="xu2024",
    title="Xu, Gu, Fang: The Implicit Bias of Heterogeneity towards Invariance (NeurIPS 2024)",
    link="https://arxiv.org/abs/2403.01420",
    doi="10.48550/arXiv.2403.01420",
    experiments=experiments_in(
        fig1_fig2_oscillation,
        fig3_fig4_transition,
        fig5_fig6_thm3_thm6_pooled,
        pooled_batches,
        thm2_error,
        thm2_window_and_phases,
        lemmas_1_to_4_isometry,
        lemmas_5_6_7_sequences,
        lemmas_8_to_15_proof_steps,
        prop1_lemmas_16_to_19,
        thm7_quadratic_network,
        thm8_eigenvalues,
        section6_and_condition7,
    ),
    presets=PRESETS,
    unchecked={
        "Assumption 1": "It states conditions; ranks above C log^4(d), and d far above them, need d of about 2e4 even if C "
        "is 1.",
    },
)
