"""Xu, Gu, Fang 2024: multi-environment matrix sensing. Figures 1-6 and one experiment for each theory item."""

from gyrostat.experiments.declarations import Paper
from gyrostat.papers.xu2024 import (
    amplified_heterogeneity,
    eigenvalues_and_condition7,
    fig1_fig2_oscillation,
    fig3_fig4_transition,
    fig5_fig6_thm3_thm6_pooled,
    lemmas_1_to_4_isometry,
    lemmas_5_6_7_prop1,
    lemmas_16_to_20_gaussian,
    linear_regression,
    momentum,
    order_and_predictors,
    thm2_error_and_data,
    thm2_window_and_phases,
    thm7_quadratic_network,
)
from gyrostat.papers.xu2024.numbered_items import ITEMS

EXPERIMENTS = (
    fig1_fig2_oscillation.FIG1,
    fig1_fig2_oscillation.FIG2,
    fig3_fig4_transition.FIG3,
    fig3_fig4_transition.FIG4,
    fig5_fig6_thm3_thm6_pooled.FIG5,
    fig5_fig6_thm3_thm6_pooled.FIG6,
    thm2_error_and_data.THEOREM2,
    thm2_window_and_phases.WINDOW,
    thm2_window_and_phases.PHASES,
    thm2_error_and_data.DATA,
    lemmas_1_to_4_isometry.ISOMETRY,
    lemmas_5_6_7_prop1.LEMMA5,
    lemmas_5_6_7_prop1.LEMMA6,
    lemmas_5_6_7_prop1.LEMMA7,
    lemmas_5_6_7_prop1.PROPOSITION1,
    lemmas_16_to_20_gaussian.NETS,
    lemmas_16_to_20_gaussian.MATRICES,
    lemmas_16_to_20_gaussian.PRODUCTS,
    fig5_fig6_thm3_thm6_pooled.THEOREM3,
    fig5_fig6_thm3_thm6_pooled.THEOREM6,
    thm7_quadratic_network.THEOREM7,
    lemmas_16_to_20_gaussian.TRUNCATION,
    eigenvalues_and_condition7.KAPPA,
    eigenvalues_and_condition7.INDEFINITE,
    eigenvalues_and_condition7.CONDITION7,
    linear_regression.DIAGONAL,
    linear_regression.STRUCTURAL,
    order_and_predictors.ORDER,
    order_and_predictors.PREDICTOR,
    amplified_heterogeneity.AMPLIFY,
    momentum.MOMENTUM,
)

PAPER = Paper(
    name="xu2024",
    title="Xu, Gu, Fang: The Implicit Bias of Heterogeneity towards Invariance (NeurIPS 2024)",
    link="https://arxiv.org/abs/2403.01420",
    experiments=EXPERIMENTS,
    items=ITEMS,
)
