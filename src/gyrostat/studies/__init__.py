"""Studies of the papers' algorithms beyond the papers: what happens with momentum or Adam, and what predicts or explains it."""

from gyrostat.experiments import Paper, experiments_in
from gyrostat.studies import amplify, fold, momentum, other_methods, predictor

PAPER = Paper(
    name="studies",
    title="Studies beyond the papers",
    experiments=experiments_in(momentum, amplify, predictor, other_methods, fold),
)
