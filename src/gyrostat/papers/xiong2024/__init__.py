"""Xiong, Ding, Du 2024: over-parameterised gradient descent in matrix sensing. Figures and theory items."""

from gyrostat.experiments import Paper
from gyrostat.papers.xiong2024 import (
    appendix_i_figures,
    fig1_1_factorisation,
    fig1_2_sensing,
    imbalance_drift,
    lemmas_b1_b2_b3_one_factor,
    lemmas_d1_d2_g3_two_factors,
    lemmas_g1_g2_angles_and_isometry,
    rectangular_sensing,
    thm3_1_lower_bound,
    thm4_1_toy_example,
    thm4_2_thm5_1_rates,
)
from gyrostat.papers.xiong2024.settings import PRESETS

EXPERIMENTS = (
    fig1_1_factorisation.Fig11,
    fig1_2_sensing.Fig12,
    appendix_i_figures.FigI1,
    appendix_i_figures.FigI2,
    appendix_i_figures.FigI3,
    fig1_2_sensing.FigI4,
    fig1_2_sensing.FigI5,
    thm3_1_lower_bound.Theorem31,
    lemmas_b1_b2_b3_one_factor.LemmasB,
    thm4_1_toy_example.Theorem41,
    imbalance_drift.Imbalance,
    lemmas_d1_d2_g3_two_factors.LemmasD,
    lemmas_d1_d2_g3_two_factors.LemmasDSensing,
    thm4_2_thm5_1_rates.Theorem42,
    thm4_2_thm5_1_rates.Theorem51,
    rectangular_sensing.Rectangular,
    lemmas_g1_g2_angles_and_isometry.LemmasG,
)

PAPER = Paper(
    name="xiong2024",
    title="Xiong, Ding, Du: How Over-Parameterization Slows Down Gradient Descent in Matrix Sensing (ICLR 2024)",
    link="https://arxiv.org/abs/2310.01769",
    doi="10.48550/arXiv.2310.01769",
    experiments=EXPERIMENTS,
    unchecked={
        "Table 1": "It compares what other papers proved, which no computation decides.",
        "(2.3)": "It defines the descent with one factor; every claim on one factor runs it.",
        "(4.3)": "It is the triangle inequality for the four blocks of the error.",
        "(4.6)": "It defines two constants of another paper up to factors that are not given.",
        "(F.5), (F.9)": "They have constants that are not given; the rate that follows from them is judged with Theorem 5.1.",
    },
    presets=PRESETS,
)
