"""The registry of papers and their experiments. A paper is a package in ``papers/`` with a list ``EXPERIMENTS``."""

from __future__ import annotations

import importlib

from gyrostat import errors
from gyrostat.experiments.declarations import Experiment

PAPERS = {
    "xu2024": "Xu, Gu, Fang: The Implicit Bias of Heterogeneity towards Invariance (NeurIPS 2024)",
    "xiong2024": "Xiong, Ding, Du: How Over-Parameterization Slows Down Gradient Descent in Matrix Sensing (ICLR 2024)",
    "wang2023": "Wang, Jacot: Implicit Bias of SGD in L2-Regularized Linear DNNs, One-Way Jumps from High to Low Rank (2023)",
}


def experiments(paper: str) -> dict[str, Experiment]:
    """The experiments of a paper by name, in the order of the paper.

    >>> "fig3" in experiments("xu2024")
    True
    """
    errors.choice("paper", paper, PAPERS)
    declared = importlib.import_module(f"gyrostat.papers.{paper}").EXPERIMENTS
    return {experiment.name: experiment for experiment in declared}
