"""Xiong, Ding, Du 2024: over-parameterised gradient descent in matrix sensing. Figures, theory items, and two studies."""

from gyrostat.papers.xiong2024 import beyond, bounds, factorisation, more_sensing, peers, rates, sensing

EXPERIMENTS = (
    factorisation.FIG11,
    sensing.FIG12,
    more_sensing.FIG_I1,
    more_sensing.FIG_I2,
    more_sensing.FIG_I3,
    more_sensing.FIG_I4,
    more_sensing.FIG_I5,
    bounds.THEOREM31,
    bounds.THEOREM41,
    bounds.IMBALANCE,
    rates.THEOREM42,
    rates.THEOREM51,
    peers.PEERS,
    beyond.HETERO,
    beyond.NOISE,
)
