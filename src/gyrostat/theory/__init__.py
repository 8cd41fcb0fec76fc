"""Theory: what the papers state, as functions that return values, bounds and verdicts; and predictions of a run.

``xu2024`` is about HeteroSGD, ``xiong2024`` about factorisation and sensing, ``wang2023`` about deep linear networks, and
``ours`` holds what is in no paper. ``predict`` says what a run will learn, and refuses a run that does not meet an assumption;
``assess`` checks every condition of Xu 2024 for a ``Setting``. Names are imported on first use, so that the closed formulas do
not import JAX.
"""

import importlib
import warnings
from typing import Any

import lazy_loader as lazy

_find, __dir__, __all__ = lazy.attach_stub(__name__, __file__)

RENAMED = {"heterogeneity": "constants", "Heterogeneity": "Constants"}


def __getattr__(name: str) -> Any:
    try:
        return _find(name)
    except AttributeError:
        if name.startswith("_"):
            raise
    from gyrostat.what_went import instead_of

    for paper in ("xu2024", "xiong2024", "wang2023", "ours"):
        formulas, there = importlib.import_module(f"{__name__}.{paper}"), RENAMED.get(name, name)
        if there in formulas.__all__:
            warnings.warn(
                f"gyrostat.theory.{name} is now gyrostat.theory.{paper}.{there}.", DeprecationWarning, stacklevel=2
            )
            return getattr(formulas, there)
    raise AttributeError(
        instead_of(f"gyrostat.theory.{name}")
        or f"gyrostat.theory has no {name!r}: dir(gyrostat.theory) lists its names.",
        name=name,
    )
