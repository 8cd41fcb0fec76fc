"""The old place of :mod:`gyrostat.sources.grain_batches`, for one version."""

import warnings
from typing import Any

from gyrostat.sources import grain_batches


def __getattr__(name: str) -> Any:
    there = getattr(grain_batches, name)
    warnings.warn(
        f"gyrostat.environments.grain_batches is now gyrostat.sources.grain_batches: import {name} from there.",
        DeprecationWarning,
        stacklevel=2,
    )
    return there
