"""Completion with unknown rank: a path of ridges judged on held-out entries, a search for an exact fit, a last fit to all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.observed import Factors, Observed, held_out
from gyrostat.estimators.low_rank.solver.path import Stage, root_mean_square, settled
from gyrostat.estimators.low_rank.solver.ranks import Ranks
from gyrostat.estimators.low_rank.solver.reweighted import Found
from gyrostat.estimators.low_rank.solver.ridge import Ridge, sweep
from gyrostat.estimators.low_rank.solver.search import LARGE, Options, Say, Search

MANY = 1000
"""Held-out entries from which on choice and intervals have their own."""
REFITS, SETTLED = 30, 1e-4
"""The most sweeps of the last fit, and the change of the fitted values, as a share of the data, that ends them."""


class Completion(NamedTuple):
    """What was found: factors, how they were chosen, and the errors at untouched entries that judge them.

    ``fitted`` is the number of entries fitted so far, ``most`` the most components at any time.
    """

    factors: Factors
    ridge: float
    depth: float
    path: list[tuple[float, float, int, float]]
    exact: bool
    validation_error: float
    calibration: np.ndarray
    interrupted: bool
    most: int
    fitted: int


def _silent(what: str, stage: Stage) -> None:
    pass


def complete(
    seen: Observed,
    options: Options,
    random: np.random.RandomState,
    *,
    held: np.ndarray | None = None,
    say: Say = _silent,
) -> Completion:
    """Search and fit the best model to all entries; ``held`` marks those held out, by default a tenth.

    >>> rng = np.random.RandomState(0)
    >>> A = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    >>> rows, columns = np.nonzero(rng.random_sample(A.shape) < 0.6)
    >>> found = complete(Observed(A.shape, rows, columns, A[rows, columns]), Options(), rng)
    >>> found.exact, found.factors.rank, bool(np.abs(found.factors.left @ found.factors.right.T - A).max() < 1e-6)
    (True, 2, True)
    """
    held = held_out(seen, 0.1, random) if held is None else held
    return refitted(seen, searched(seen, held, options, random, say))


def searched(
    seen: Observed, held: np.ndarray, options: Options, random: np.random.RandomState, say: Say = _silent
) -> Completion:
    """The best model of the entries that are not held out, or an exact fit of all. Ctrl-C keeps the best model so far.

    Of the entries held out, one half chooses the ridge and the other is only looked at afterwards, for intervals; when they
    are few, all do both, which costs the intervals a little of their honesty and saves the choice from chance.
    """
    train, out = seen.take(~held), seen.take(held)
    half = random.random_sample(len(out)) < 0.5
    choosing, calibrating = (out.take(half), out.take(~half)) if len(out) >= MANY else (out, out)
    search, interrupted = Search(train, choosing, options, say), False
    found: Found | None = None
    try:
        search.along_ridges()
        found = Ranks(search, seen).exact()
    except KeyboardInterrupt:
        interrupted = True
    best = search.best
    calibration = calibrating.values - best.factors.at(calibrating.rows, calibrating.columns)
    exact = found is not None and found.exact
    factors, ridge = (found.factors, 0.0) if found is not None and exact else (best.factors, best.ridge)
    return Completion(
        factors,
        ridge,
        best.depth,
        search.path,
        exact,
        best.validation_error,
        calibration,
        interrupted,
        search.most,
        len(train),
    )


def refitted(seen: Observed, found: Completion) -> Completion:
    """The same model, fitted to all entries: the rank may fall, but nothing new comes in. An exact fit needs no other."""
    if found.exact or found.interrupted:
        return found
    factors, sweeps = found.factors, 2 if len(seen) > LARGE else 3
    more = (len(seen) / found.fitted) ** (1 / found.depth)  # as the fold of noise of the same size grows
    ridge = Ridge(found.ridge * more, found.depth)
    if factors.rank == 0 and np.isfinite(ridge.strength):
        factors = settled(seen, factors, ridge, found.most, sweeps)
    values = factors.at(seen.rows, seen.columns)
    # Sweeps converge slowly where cells are few, and the held-out cells that come in now matter most there.
    for _ in range((2 * sweeps if len(seen) > LARGE else REFITS) if factors.rank else 0):
        factors, _ = sweep(seen, factors, ridge)
        before, values = values, factors.at(seen.rows, seen.columns)
        if root_mean_square(values - before) < SETTLED * root_mean_square(seen.values):
            break
    return found._replace(factors=factors, ridge=ridge.strength, fitted=len(seen))
