"""Everything the theory says about one setting: assumptions, step windows, predicted outcome and error; and in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat import errors
from gyrostat.diagnostics import IsometryEstimate, isometry_constant
from gyrostat.theory.condition import Condition
from gyrostat.theory.ours.final_error import error_law
from gyrostat.theory.ours.transition import eliminated_by_lyapunov
from gyrostat.theory.prediction import Prediction, prediction_of
from gyrostat.theory.setting import Setting
from gyrostat.theory.xu2024.bounds import assumptions, pooled_gap, step_conditions
from gyrostat.theory.xu2024.oscillation import informal_window


class Assessment(NamedTuple):
    """Conditions with their verdicts, the isometry constant if it was estimated, and the predicted outcome.

    Parameters
    ----------
    conditions
        The conditions with their verdicts.
    isometry
        The estimate of the isometry constant, or None.
    prediction
        Whether the spurious signal is eliminated.
    error
        The error that is left if it is, in Frobenius norm.
    pooled_gap
        The least distance of pooled training from A_star; None unless the mean of Sigma is the identity.
    """

    conditions: list[Condition]
    isometry: IsometryEstimate | None
    prediction: Prediction
    error: float
    pooled_gap: float | None


@errors.explains_formula
def assess(setting: Setting, *, isometry_draws: int = 3, runs: int = 2000, seed: int = 0) -> Assessment:
    """Check every assumption and condition of Xu 2024 for a setting, and predict the outcome of the run.

    The isometry constant is estimated on ``isometry_draws`` designs, which takes most of the time; with 0 it is not, and the
    two conditions that need it are left out.

    Parameters
    ----------
    setting
        The run to assess.
    isometry_draws
        The number of designs on which the isometry constant is estimated; 0 to leave it out.
    runs
        The number of simulated runs.
    seed
        The seed of the random numbers.

    >>> from gyrostat import TwoPoint
    >>> outcome = assess(Setting(TwoPoint(spread=8.0), dimension=30, num_samples=2400), isometry_draws=2, runs=500)
    >>> outcome.prediction.eliminated, outcome.prediction.probability > 0.8
    (True, True)
    """
    law, d, r1, eta, m = setting.law, setting.dimension, setting.rank, setting.step_size, setting.num_samples
    isometry = (
        isometry_constant(d, int(m), isometry_rank(setting), draws=isometry_draws, seed=seed)
        if isometry_draws
        else None
    )
    conditions = [
        *assumptions(
            law,
            dimension=d,
            rank=r1,
            overlap=setting.overlap,
            delta=None if isometry is None else isometry.value,
            init_scale=setting.init_scale,
        ),
        *step_conditions(law, eta),
        Condition("step size in the informal window", "section 4", eta, "in", informal_window(law), "gamma = 0.1"),
        eliminated_by_lyapunov(law, eta, init_scale=setting.init_scale, num_steps=setting.num_steps),
    ]
    return Assessment(
        conditions,
        isometry,
        prediction_of(setting, runs=runs, seed=seed),
        error_law(law, dimension=d, rank=r1, step_size=eta, num_samples=m),
        pooled_gap(r1, law.rank) if np.allclose(law.mean, np.eye(law.rank)) else None,
    )


def isometry_rank(setting: Setting) -> int:
    """Assumption 3 asks for RIP of rank 4 (r1 + r2); above the dimension that is the whole spectrum."""
    return min(4 * (setting.rank + setting.law.rank), setting.dimension)


def assessment_sentences(setting: Setting, assessment: Assessment) -> list[str]:
    """The isometry constant, if it was estimated, and the predicted outcome in words."""
    delta, prediction = assessment.isometry, assessment.prediction
    sentences = []
    if delta is not None:
        sentences.append(
            f"Isometry constant (rank {isometry_rank(setting)}): at least {delta.value:.3g} [{delta.low:.3g}, "
            f"{delta.high:.3g}], found by search on {len(delta.draws)} designs."
        )
    sentences.append(
        f"Predicted for step size {setting.step_size:g}, initial scale {setting.init_scale:g} and "
        f"{setting.num_steps} steps:\n{prediction}"
    )
    if prediction.eliminated or (prediction.probability or 0) > 0.05:
        sentences.append(f"Where it is eliminated, the error ||UU^T - A_star||_F is about {assessment.error:.3g}.")
    if assessment.pooled_gap is not None:
        sentences.append(f"Pooled training never comes closer to A_star than {assessment.pooled_gap:.3g}.")
    return sentences
