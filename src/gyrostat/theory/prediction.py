"""What will a run of HeteroSGD learn? One prediction, the rules that it rests on, and how often each of them was right."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from gyrostat import errors
from gyrostat.algorithms import Algorithm
from gyrostat.environments import Finite
from gyrostat.errors import GyrostatError
from gyrostat.measurements import Problem
from gyrostat.theory.ours.surrogate_model import surrogate
from gyrostat.theory.ours.transition import critical_spread, eliminated_by_lyapunov, lyapunov_exponent
from gyrostat.theory.setting import Setting
from gyrostat.theory.xu2024.oscillation import informal_window


def _lyapunov(s: Setting) -> float:
    rule = eliminated_by_lyapunov(
        s.law, s.step_size, init_scale=s.init_scale, num_steps=s.num_steps, threshold=s.threshold
    )
    return float(np.subtract(rule.bound, rule.value))


def _exponent(s: Setting) -> float:
    return -lyapunov_exponent(s.law, s.step_size)


def _window(s: Setting) -> float:
    return s.step_size - informal_window(s.law)[0]


RULES: dict[str, Callable[[Setting], float]] = {"lyapunov": _lyapunov, "exponent": _exponent, "window": _window}
"""Name of a rule -> a function of a :class:`Setting` that is positive where it predicts that the spurious part is eliminated.

``lyapunov`` (ours): a typical direction is still small after T steps, ``lambda T < log(sqrt(threshold) / alpha)``.
``exponent``: a typical direction shrinks, ``lambda < 0``. ``window``: the lower end of the window of Xu 2024, section 4,
``4 E xi / ((1 - gamma) Var xi) < eta``. The best stands first. A rule of your own, put in under a name, is part of every
prediction and is drawn on every phase diagram."""

SHARE_RIGHT = {"surrogate": 0.99, "lyapunov": 0.94, "exponent": 0.81, "window": 0.63}
"""The share of measured cells in which the verdict of a rule was what most runs did: the 154 cells of step size, spread and
horizon of the experiment xu2024/predictor (standard size, seed 0) in which no factor ``1 + eta xi`` is negative."""


@dataclasses.dataclass(frozen=True, repr=False)
class Prediction:
    """Whether a typical run ends without the spurious signal, which rule says so, and what the other rules say.

    Parameters
    ----------
    eliminated
        The prediction: the verdict of the best rule that covers the run.
    by
        The name of that rule.
    probability
        The share of runs that end without the spurious signal, by the surrogate; None where it does not cover the run.
    exponent
        The Lyapunov exponent lambda: a typical spurious direction grows by the factor exp(lambda) per step.
    critical_spread
        The spread M* at which the Lyapunov rule changes its verdict; None unless the law has two equally likely strengths.
    margins
        A number for every rule, positive where the rule predicts that the spurious signal is eliminated.

    >>> import gyrostat as gs
    >>> print(gs.theory.assess(gs.theory.Setting(gs.TwoPoint(spread=6.0), rank=2), isometry_draws=0).prediction)
    The spurious signal is eliminated in a typical run (lyapunov).
      lambda = +0.00621 per step, M* = 4.16
      lyapunov   eliminated  margin     +4.51   right in 94% of measured cells
      exponent   learnt      margin  -0.00621   right in 81% of measured cells
      window     learnt      margin   -0.0735   right in 63% of measured cells
    """

    eliminated: bool
    by: str
    probability: float | None
    exponent: float
    critical_spread: float | None
    margins: dict[str, float]

    @property
    def verdicts(self) -> dict[str, bool]:
        """Whether the spurious signal is eliminated, according to every rule."""
        return {name: margin > 0 for name, margin in self.margins.items()}

    def __bool__(self) -> bool:
        raise GyrostatError(
            "a Prediction has several answers: ask for its .eliminated, the .verdicts of all rules, or the .probability."
        )

    def __repr__(self) -> str:
        share = "" if self.probability is None else f", in {self.probability:.0%} of runs"
        transition = "" if self.critical_spread is None else f", M* = {self.critical_spread:.3g}"
        lines = [
            f"The spurious signal is {_outcome(self.eliminated)} in a typical run ({self.by}{share}).",
            f"  lambda = {self.exponent:+.3g} per step{transition}",
        ]
        for name, margin in self.margins.items():
            line = f"  {name:10} {_outcome(margin > 0):11} margin {margin:+9.3g}"
            if name in SHARE_RIGHT:
                line += f"   right in {SHARE_RIGHT[name]:.0%} of measured cells"
            lines.append(line)
        return "\n".join(lines)


def _outcome(is_eliminated: bool) -> str:
    return "eliminated" if is_eliminated else "learnt"


@errors.explains_keywords
def predict(algorithm: Algorithm, problem: Problem, *, num_steps: int) -> Prediction:
    """Whether a typical run ends without the spurious signal; refused for a run that does not meet an assumption.

    Parameters
    ----------
    algorithm, problem
        What :func:`gyrostat.run` takes.
    num_steps
        The number of steps of the run.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(720))
    >>> prediction = predict(gs.HeteroSGD(0.05), problem, num_steps=200)
    >>> prediction.eliminated, prediction.by, prediction.verdicts["exponent"]
    (True, 'surrogate', False)
    """
    return prediction_of(Setting.of(algorithm, problem, num_steps))


def prediction_of(setting: Setting, *, runs: int = 500, seed: int = 0) -> Prediction:
    """The prediction for a setting, with ``runs`` runs of the surrogate where it covers the setting."""
    margins, probability = {}, None
    if setting.independent and setting.rank == setting.law.rank == 1:
        final = surrogate(
            setting.law,
            setting.step_size,
            init_scale=setting.init_scale,
            num_steps=setting.num_steps,
            num_samples=setting.num_samples,
            runs=runs,
            seed=seed,
        )
        probability = float((final < setting.threshold).mean())
        margins["surrogate"] = probability - 0.5
    margins |= {name: float(rule(setting)) for name, rule in RULES.items()}
    by = next(iter(margins))
    return Prediction(
        eliminated=margins[by] > 0,
        by=by,
        probability=probability,
        exponent=lyapunov_exponent(setting.law, setting.step_size),
        critical_spread=_critical_spread(setting),
        margins=margins,
    )


def _critical_spread(setting: Setting) -> float | None:
    """M* in closed form, if the law has two equally likely strengths; otherwise None."""
    law = setting.law
    if not (isinstance(law, Finite) and law.count == 2 and np.allclose(law.weights, 0.5) and law.rank >= 1):
        return None
    return critical_spread(
        setting.step_size,
        init_scale=setting.init_scale,
        num_steps=setting.num_steps,
        mean=float(np.asarray(law.mean)[0, 0]),
        threshold=setting.threshold,
    )
