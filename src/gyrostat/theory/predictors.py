"""The old place of :data:`gyrostat.theory.RULES`, kept for one version."""

import warnings
from typing import Any

from gyrostat.theory.prediction import RULES


def __getattr__(name: str) -> Any:
    if name != "PREDICTORS":
        raise AttributeError(f"gyrostat.theory.predictors has no {name!r}: rules are in gyrostat.theory.RULES.")
    warnings.warn(
        "gyrostat.theory.predictors.PREDICTORS is now gyrostat.theory.RULES.", DeprecationWarning, stacklevel=2
    )
    return RULES
