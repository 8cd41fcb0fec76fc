"""Lemmas that bound something for every object of a kind: the two sides on random instances, with one judge for all of them.

A subclass of :class:`Inequalities` draws instances that meet the conditions, and each method marked with :func:`inequality`
returns the left and the right side on one of them::

    class Norms(Inequalities):
        \"\"\"Norms of products\"\"\"

        source = "Mine 2026, Lemma 1"

        def instances(self, rng, samples):
            return rng.standard_normal((samples, 2, 3, 3))

        @inequality(items="Lemma 1", tight=0.5)
        def submultiplicative(self, A, B):
            \"\"\"||A B|| <= ||A|| ||B|| in the Frobenius norm.\"\"\"
            return np.linalg.norm(A @ B), np.linalg.norm(A) * np.linalg.norm(B)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from gyrostat.experiments.claims import Method, claim
from gyrostat.experiments.experiment import Experiment, ExperimentRun

ROUNDING = 1e-9
"""How far rounding may take a ratio that equals 1 above it."""


def inequality(
    criterion: str = "", *, tight: float = 0.0, slug: str = "", **options: Any
) -> Callable[[Method], Method]:
    """Make a method that returns the left and the right side on one instance a claim, which its docstring states.

    The claim is that the left side is never larger, and that some instance comes as near as ``tight`` times the right side, so
    that a factor that is lost on either side is noticed. Sides may be arrays: one inequality for each entry.

    Parameters
    ----------
    criterion
        What decides it, in words, where there is something to add.
    tight
        The least value of the largest ratio of the left side to the right one; 0 leaves it open.
    slug
        The last part of its id, where that is not the name of the method with hyphens.
    options
        Other arguments of :func:`~gyrostat.experiments.claims.claim`.
    """
    nearest = f" (and at least {tight:g})" if tight else ""
    words = criterion or f"largest left side over the right side at most 1{nearest}"

    def mark(sides: Method) -> Method:
        name = slug or sides.__name__.replace("_", "-")

        def judged(self: Any, ds: xr.Dataset) -> xr.DataArray:
            return ds.ratio.sel(inequality=name).max()

        judged.__name__, judged.__doc__ = sides.__name__, sides.__doc__
        limits = (tight or -np.inf, 1 + ROUNDING)
        sides.inequality = name  # type: ignore[attr-defined]
        sides.claims = claim(words, slug=name, largest=limits, **options)(judged).claims  # type: ignore[attr-defined]
        return sides

    return mark


class Inequalities(Experiment):
    """A table of inequalities, each tested on the same random instances."""

    sizes: ClassVar[Mapping[str, Any]] = {"samples": (100, 1000, 10_000)}

    def instances(self, rng: np.random.Generator, samples: int) -> Iterable[Any]:
        """The arguments of the methods, one tuple for each instance."""
        raise NotImplementedError

    def compute(self, run: ExperimentRun, samples: int) -> xr.Dataset:
        """The largest ratio of the left to the right side of each inequality on each instance."""
        methods = [getattr(self, name) for name in self._claims_by_method()]
        table = {sides.inequality: sides for sides in methods if hasattr(sides, "inequality")}
        rows = [
            [np.max(np.divide(*sides(*instance))) for sides in table.values()]
            for instance in self.instances(run.rng, samples)
        ]
        return xr.Dataset({"ratio": (("sample", "inequality"), rows)}, {"inequality": list(table)})
