"""Xiong, Ding, Du 2024: over-parameterised gradient descent in matrix sensing. Figures, theory items, and a study."""

from gyrostat.experiments.declarations import Paper
from gyrostat.papers.xiong2024 import (
    fig1_1_factorisation,
    fig1_2_sensing,
    fig_i1_one_or_two_factors,
    fig_i2_condition_number,
    fig_i3_fig_i5_initial_scales,
    fig_i4_rank_five,
    imbalance_drift,
    lemmas_b1_b2_b3_one_factor,
    lemmas_d1_d2_g3_two_factors,
    lemmas_g1_g2_angles_and_isometry,
    other_methods,
    rectangular_sensing,
    thm3_1_lower_bound,
    thm4_1_toy_example,
    thm4_2_thm5_1_rates,
)
from gyrostat.papers.xiong2024.numbered_items import ITEMS

EXPERIMENTS = (
    fig1_1_factorisation.FIG11,
    fig1_2_sensing.FIG12,
    fig_i1_one_or_two_factors.FIG_I1,
    fig_i2_condition_number.FIG_I2,
    fig_i3_fig_i5_initial_scales.FIG_I3,
    fig_i4_rank_five.FIG_I4,
    fig_i3_fig_i5_initial_scales.FIG_I5,
    thm3_1_lower_bound.THEOREM31,
    lemmas_b1_b2_b3_one_factor.LEMMAS_B,
    thm4_1_toy_example.THEOREM41,
    imbalance_drift.IMBALANCE,
    lemmas_d1_d2_g3_two_factors.LEMMAS_D,
    thm4_2_thm5_1_rates.THEOREM42,
    thm4_2_thm5_1_rates.THEOREM51,
    rectangular_sensing.RECTANGULAR,
    lemmas_g1_g2_angles_and_isometry.LEMMAS_G,
    other_methods.PEERS,
)

PAPER = Paper(
    name="xiong2024",
    title="Xiong, Ding, Du: How Over-Parameterization Slows Down Gradient Descent in Matrix Sensing (ICLR 2024)",
    link="https://arxiv.org/abs/2310.01769",
    doi="10.48550/arXiv.2310.01769",
    experiments=EXPERIMENTS,
    items=ITEMS,
)
