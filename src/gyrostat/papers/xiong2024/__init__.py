"""Xiong, Ding, Du 2024: over-parameterised gradient descent in matrix sensing. Figures, theory items, and two studies."""

from gyrostat.papers.xiong2024 import (
    beyond,
    conditioning,
    drift,
    factorisation,
    lower_bound,
    overtaking,
    peers,
    rank_five,
    rates,
    scales,
    sensing,
    toy,
)

EXPERIMENTS = (
    factorisation.FIG11,
    sensing.FIG12,
    overtaking.FIG_I1,
    conditioning.FIG_I2,
    scales.FIG_I3,
    rank_five.FIG_I4,
    scales.FIG_I5,
    lower_bound.THEOREM31,
    toy.THEOREM41,
    drift.IMBALANCE,
    rates.THEOREM42,
    rates.THEOREM51,
    peers.PEERS,
    beyond.HETERO,
    beyond.NOISE,
)
