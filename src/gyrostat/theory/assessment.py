"""Everything the theory says about one setting: assumptions, step windows, predicted outcome and error; and in words."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from gyrostat import errors
from gyrostat.diagnostics import IsometryEstimate, isometry_constant
from gyrostat.environments import Finite, Law
from gyrostat.theory import hetero_sgd_bounds, transition
from gyrostat.theory.condition import Condition
from gyrostat.theory.final_error import error_law
from gyrostat.theory.predictors import surrogate


@dataclasses.dataclass(frozen=True)
class Setting:
    """A HeteroSGD run as the theory sees it.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    overlap
        The largest principal cosine between the two subspaces.
    step_size
        The step size eta.
    init_scale
        The scale alpha of the start.
    num_steps
        The number of steps T.
    num_samples
        The number m of measurements in a batch.

    >>> Setting(law=Finite([-5.0, 7.0])).dimension
    100
    """

    law: Law
    dimension: int = 100
    rank: int = 1
    overlap: float = 0.0
    step_size: float = 0.05
    init_scale: float = 1e-3
    num_steps: int = 200
    num_samples: int = 8000

    def __post_init__(self) -> None:
        errors.check_parameters(self)
        errors.integer("dimension", self.dimension, least=2)
        errors.integer("rank", self.rank, least=1, most=self.dimension, most_because=", the dimension")
        errors.number("overlap", self.overlap, least=0, most=1)
        errors.number("step_size", self.step_size, above=0)
        errors.number("init_scale", self.init_scale, above=0)
        errors.integer("num_steps", self.num_steps, least=1)
        errors.integer("num_samples", self.num_samples, least=1)


class Prediction(NamedTuple):
    """The predicted outcome: the probability that the spurious part is eliminated, and the error that is left if it is.

    Parameters
    ----------
    eliminated
        The probability that the spurious part is eliminated.
    lyapunov
        Whether the Lyapunov rule predicts that.
    critical_spread
        The spread at which its verdict changes; None for laws of other kinds.
    error
        The error that is left, in Frobenius norm.
    pooled_gap
        The least distance of pooled training from A_star.
    """

    eliminated: float
    lyapunov: bool
    critical_spread: float | None
    error: float
    pooled_gap: float | None


class Assessment(NamedTuple):
    """Conditions with their verdicts, the isometry constant if it was estimated, and the predicted outcome.

    Parameters
    ----------
    conditions
        The conditions with their verdicts.
    isometry
        The estimate of the isometry constant, or None.
    prediction
        The predicted outcome.
    """

    conditions: list[Condition]
    isometry: IsometryEstimate | None
    prediction: Prediction


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
    >>> outcome.prediction.lyapunov, outcome.prediction.eliminated > 0.8
    (True, True)
    """
    law, d, r1 = setting.law, setting.dimension, setting.rank
    # Assumption 3 asks for RIP of rank 4 (r1 + r2); above the dimension that is the whole spectrum.
    rip_rank = min(4 * (r1 + law.rank), d)
    isometry = (
        isometry_constant(d, setting.num_samples, rip_rank, draws=isometry_draws, seed=seed) if isometry_draws else None
    )
    delta = None if isometry is None else isometry.value
    rule = transition.eliminated_by_lyapunov(
        law, setting.step_size, init_scale=setting.init_scale, num_steps=setting.num_steps
    )
    informal = transition.informal_window(law)
    conditions = [
        *hetero_sgd_bounds.assumptions(
            law, dimension=d, rank=r1, overlap=setting.overlap, delta=delta, init_scale=setting.init_scale
        ),
        *hetero_sgd_bounds.step_conditions(law, setting.step_size),
        Condition("step size in the informal window", "section 4", setting.step_size, "in", informal, "gamma = 0.1"),
        rule,
    ]
    return Assessment(conditions, isometry, _predict(setting, rule.holds, runs, seed))


def _predict(setting: Setting, lyapunov: bool, runs: int, seed: int) -> Prediction:
    law = setting.law
    final = surrogate(
        law,
        setting.step_size,
        init_scale=setting.init_scale,
        num_steps=setting.num_steps,
        num_samples=setting.num_samples,
        runs=runs,
        seed=seed,
    )
    error = error_law(
        law,
        dimension=setting.dimension,
        rank=setting.rank,
        step_size=setting.step_size,
        num_samples=setting.num_samples,
    )
    gap = hetero_sgd_bounds.pooled_gap(setting.rank, law.rank) if np.allclose(law.mean, np.eye(law.rank)) else None
    return Prediction(float((final < transition.LEARNT).mean()), lyapunov, _critical(setting), error, gap)


def _critical(setting: Setting) -> float | None:
    """The critical spread in closed form, if the law has two equally likely values; otherwise None."""
    law = setting.law
    if not (isinstance(law, Finite) and law.count == 2 and np.allclose(law.weights, 0.5) and law.rank >= 1):
        return None
    mean = float(np.asarray(law.mean)[0, 0])
    return transition.critical_spread(
        setting.step_size, init_scale=setting.init_scale, num_steps=setting.num_steps, mean=mean
    )


def assessment_sentences(setting: Setting, assessment: Assessment) -> list[str]:
    """The isometry constant, if it was estimated, and the predicted outcome in words."""
    delta, prediction = assessment.isometry, assessment.prediction
    outcome = "eliminated" if prediction.lyapunov else "learnt"
    sentences = []
    if delta is not None:
        sentences.append(
            f"Isometry constant (rank {min(4 * (setting.rank + setting.law.rank), setting.dimension)}): at least "
            f"{delta.value:.3g} [{delta.low:.3g}, {delta.high:.3g}], found by search on {len(delta.draws)} designs."
        )
    sentences += [
        f"Predicted: the spurious signal is {outcome} in a typical run; {prediction.eliminated:.0%} of runs end "
        "without it (surrogate).",
    ]
    if prediction.critical_spread is not None:
        sentences.append(
            f"Predicted transition: M* = {prediction.critical_spread:.3g} at this step size, initial scale and horizon."
        )
    if prediction.eliminated > 0.05:
        sentences.append(f"Where it is eliminated, the error ||UU^T - A_star||_F is about {prediction.error:.3g}.")
    if prediction.pooled_gap is not None:
        sentences.append(f"Pooled training never comes closer to A_star than {prediction.pooled_gap:.3g}.")
    return sentences
