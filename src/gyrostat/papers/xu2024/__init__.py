"""Xu, Gu, Fang 2024: multi-environment matrix sensing. Figures 1-6 and one experiment for each theory item."""

from gyrostat.experiments import Paper
from gyrostat.papers.xu2024 import (
    fig1_fig2_oscillation,
    fig3_fig4_transition,
    fig5_fig6_thm3_thm6_pooled,
    lemma_8_subspace_overlap,
    lemma_15_stability,
    lemmas_1_to_4_isometry,
    lemmas_5_6_7_prop1,
    lemmas_9_to_14_proof_steps,
    lemmas_16_to_20_gaussian,
    pooled_batches,
    section6_and_condition7,
    thm2_error,
    thm2_window_and_phases,
    thm7_quadratic_network,
    thm8_eigenvalues,
)
from gyrostat.papers.xu2024.settings import PRESETS

EXPERIMENTS = (
    fig1_fig2_oscillation.Fig1,
    fig1_fig2_oscillation.Fig2,
    fig3_fig4_transition.Fig3,
    fig3_fig4_transition.Readings,
    fig3_fig4_transition.Fig4,
    fig5_fig6_thm3_thm6_pooled.Fig5,
    pooled_batches.WithoutReplacement,
    fig5_fig6_thm3_thm6_pooled.Fig6,
    thm2_error.Thm2,
    thm2_error.Failure,
    thm2_window_and_phases.Window,
    thm2_window_and_phases.Phases,
    pooled_batches.Laws,
    lemmas_1_to_4_isometry.Isometry,
    lemmas_5_6_7_prop1.Lemma5,
    lemmas_5_6_7_prop1.Lemma6,
    lemmas_5_6_7_prop1.Lemma7,
    lemma_8_subspace_overlap.Lemma8,
    lemmas_9_to_14_proof_steps.ProofSteps,
    lemma_15_stability.Lemma15,
    lemmas_5_6_7_prop1.Prop1,
    lemmas_16_to_20_gaussian.Nets,
    lemmas_16_to_20_gaussian.Lemma17,
    lemmas_16_to_20_gaussian.Lemma19,
    fig5_fig6_thm3_thm6_pooled.Thm3,
    fig5_fig6_thm3_thm6_pooled.Thm6,
    thm7_quadratic_network.Thm7,
    lemmas_16_to_20_gaussian.Lemma20,
    thm8_eigenvalues.Thm8,
    thm8_eigenvalues.Indefinite,
    section6_and_condition7.Condition7,
    section6_and_condition7.Conjecture,
)

PAPER = Paper(
    name="xu2024",
    title="Xu, Gu, Fang: The Implicit Bias of Heterogeneity towards Invariance (NeurIPS 2024)",
    link="https://arxiv.org/abs/2403.01420",
    doi="10.48550/arXiv.2403.01420",
    experiments=EXPERIMENTS,
    presets=PRESETS,
    unchecked={
        "Assumption 1": "It states conditions; ranks above C log^4(d), and d far above them, need d of about 2e4 even if C "
        "is 1.",
    },
)
