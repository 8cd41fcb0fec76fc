"""Completion of a matrix of unknown rank: ridge paths, then a search for an exact fit, then a last fit to all entries.

:func:`complete` does all three. Each model on the way is judged by its error at held-out entries and recorded in
:class:`Trials`, which keeps the best one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.low_rank.solver.exact_fit import (
    FitAttempt,
    certified_fit,
    fit_of_rank,
    repaired_fit,
    residual_is_concentrated,
)
from gyrostat.estimators.low_rank.solver.observed_entries import (
    Factors,
    ObservedEntries,
    balanced,
    entries_svd,
    held_out_mask,
    root_mean_square,
)
from gyrostat.estimators.low_rank.solver.ridge_path import (
    LARGE,
    Ridge,
    RidgeStage,
    fixed_rank_stages,
    grow_and_sweep,
    neighbouring_stages,
    path_stages,
    ridges_towards,
    stage_of,
    sweep,
)

SEPARATE_CALIBRATION = 1000
"""With at least this many held-out entries, one half chooses the model and the other half is kept for intervals."""
DEPTHS, WEAK, WEAK_LARGE = (3.0, 2.0), 0.8, 0.97
"""The depths that "auto" tries. The second is tried where the first leaves more than the share ``WEAK`` of the error of the
zero matrix (``WEAK_LARGE`` for large tables): a nuclear norm keeps a part of components that barely stand out of the noise,
where a deeper ridge keeps all or nothing of them."""
EXACT_WORK = 1e7
"""The largest total, over the ranks tried, of entries times rank that "auto" spends on an exact fit."""
CLOSE, CLOSE_ATTEMPTS = 0.02, 3
"""The validation error, as a share of the data, below which a stage of a path is tried as the start of an exact fit, and the
most such trials."""
CERTIFICATE = 1.05
"""Entries over degrees of freedom that make an exact fit a certificate."""
ROOMY = 1.6
"""Entries over degrees of freedom above which a search does not need the entries held out."""
NOISE_FREEDOM, NOISE_PER_ROW = 1.25, 20
"""Entries over degrees of freedom, and entries per row, above which the residual of a model tells noise from wrong rows. With
fewer (n = 100, rank 3, 1.5 times the degrees of freedom) a matrix that could be found was given up."""
GOOD = 0.5
"""The validation error, as a share of the data, below which a model has found something."""
NOISE_EDGE = 1.2
"""A residual holds more than noise if its largest singular value exceeds that of noise of the same size by this factor."""
REPAIR_WORK = 1e5
"""The most entries times rank for which a fit that is nearly right is repaired, which takes seconds."""
WORSE_RANKS = 3
"""A search over ranks ends after this many ranks in a row without a lower validation error."""
REFIT_SWEEPS, REFIT_CHANGE = 30, 1e-4
"""The last fit ends after this many sweeps, or when the fitted values change by less than this share of the data."""

Report = Callable[[str, RidgeStage], None]
"""Called with the name of the phase and the model, each time one was computed."""


class Options(NamedTuple):
    """Settings of a completion. ``depth`` and ``ridge`` None: chosen on held-out entries. ``exact``: "auto", True, False."""

    depth: float | None = None
    ridge: float | None = None
    max_rank: int | None = None
    exact: str | bool = "auto"

    @property
    def depths(self) -> tuple[float, ...]:
        """The depths to try, in this order."""
        if self.depth is not None:
            return (self.depth,)
        return DEPTHS if self.ridge is None else DEPTHS[:1]


class Completion(NamedTuple):
    """The chosen factors, how they were chosen, and their errors at the entries that judged them and at untouched ones.

    ``judged`` and ``calibration`` hold the errors of the best model that was not fitted to these entries. ``path`` lists
    ridge, depth, rank and validation error of all models; ``num_fitted`` counts the entries fitted so far; ``max_rank`` is
    the most components that were allowed.
    """

    factors: Factors
    ridge: float
    depth: float
    path: list[tuple[float, float, int, float]]
    exact: bool
    validation_error: float
    judged: ObservedEntries
    calibration: ObservedEntries
    interrupted: bool
    max_rank: int
    num_fitted: int


def complete(
    entries: ObservedEntries,
    options: Options,
    random: np.random.RandomState,
    *,
    held: np.ndarray | None = None,
    report: Report | None = None,
) -> Completion:
    """Search for the best model and fit it to all entries; ``held`` marks the held-out entries, by default a tenth.

    >>> rng = np.random.RandomState(0)
    >>> A = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
    >>> rows, columns = np.nonzero(rng.random_sample(A.shape) < 0.6)
    >>> found = complete(ObservedEntries(A.shape, rows, columns, A[rows, columns]), Options(), rng)
    >>> found.exact, found.factors.rank, bool(np.abs(found.factors.left @ found.factors.right.T - A).max() < 1e-6)
    (True, 2, True)
    """
    held = held_out_mask(entries, 0.1, random) if held is None else held
    return refitted(entries, searched(entries, held, options, random, report))


def searched(
    entries: ObservedEntries,
    held: np.ndarray,
    options: Options,
    random: np.random.RandomState,
    report: Report | None = None,
) -> Completion:
    """The best model of the entries that are not held out, or an exact fit of all. Ctrl-C keeps the best model so far.

    If many entries are held out, one half chooses the model and the other half is only used afterwards, for intervals. If
    they are few, all of them do both: the intervals are a little too narrow, but the choice depends less on chance.
    """
    out = entries.take(held)
    half = random.random_sample(len(out)) < 0.5
    choosing, calibrating = (out.take(half), out.take(~half)) if len(out) >= SEPARATE_CALIBRATION else (out, out)
    task = CompletionTask(entries, entries.take(~held), choosing, options, report)
    trials, exact, interrupted = Trials(task), None, False
    try:
        follow_ridges(task, trials)
        exact = find_exact_fit(task, trials)
    except KeyboardInterrupt:
        interrupted = True
    best = trials.best
    factors, ridge = (best.factors, best.ridge) if exact is None else (exact, 0.0)
    return Completion(
        factors=factors,
        ridge=ridge,
        depth=best.depth,
        path=trials.path,
        exact=exact is not None,
        validation_error=best.validation_error,
        judged=choosing.with_values(choosing.residual(best.factors)),
        calibration=calibrating.with_values(calibrating.residual(best.factors)),
        interrupted=interrupted,
        max_rank=task.max_rank,
        num_fitted=len(task.train),
    )


def refitted(entries: ObservedEntries, found: Completion) -> Completion:
    """The same model fitted to all entries. The rank may fall, but no component is added. An exact fit stays as it is."""
    if found.exact or found.interrupted:
        return found
    factors, sweeps = found.factors, 2 if len(entries) > LARGE else 3
    # The fold of noise of the same size grows with the number of entries, and the ridge with it.
    growth = (len(entries) / found.num_fitted) ** (1 / found.depth)
    ridge = Ridge(found.ridge * growth, found.depth)
    if factors.rank == 0 and np.isfinite(ridge.strength):
        factors = grow_and_sweep(entries, factors, ridge, found.max_rank, sweeps)
    values = factors.at(entries.rows, entries.columns)
    # Sweeps converge slowly where entries are few, and there the held-out entries that are added now matter most.
    for _ in range((2 * sweeps if len(entries) > LARGE else REFIT_SWEEPS) if factors.rank else 0):
        factors, _ = sweep(entries, factors, ridge)
        before, values = values, factors.at(entries.rows, entries.columns)
        if root_mean_square(values - before) < REFIT_CHANGE * root_mean_square(entries.values):
            break
    return found._replace(factors=factors, ridge=ridge.strength, num_fitted=len(entries))


def values_repeat(entries: ObservedEntries) -> bool:
    """Whether many values repeat, as rounded ones do. Those of a low-rank matrix do not, so that no exact fit exists.

    >>> values_repeat(ObservedEntries((2, 2), np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1.0, 1.0, 2.0])))
    False
    """
    return len(np.unique(entries.values)) <= 0.5 * len(entries)


# --- what is searched, and what was tried ---------------------------------------------------------


@dataclass(frozen=True)
class CompletionTask:
    """All entries, those to fit and those to judge by, and the settings."""

    entries: ObservedEntries
    train: ObservedEntries
    held: ObservedEntries
    options: Options
    report: Report | None = None

    @cached_property
    def max_rank(self) -> int:
        """The most components at any time."""
        return self.options.max_rank or min(2 * self.train.largest_rank, *self.train.shape)

    @cached_property
    def sweeps(self) -> int:
        """Sweeps per ridge."""
        return 2 if len(self.train) > LARGE else 3

    @cached_property
    def size(self) -> float:
        """The root mean square of the entries to fit."""
        return root_mean_square(self.train.values)

    def affordable(self, factors: Factors) -> bool:
        """Whether an exact fit may be started from these factors."""
        return self.options.exact is True or len(self.train) * factors.rank <= EXACT_WORK

    def certifiable_rank(self, entries: ObservedEntries) -> int:
        """The largest rank at which an exact fit of these entries would be a certificate."""
        rank = min(self.max_rank, entries.largest_rank, min(entries.shape) - 1)
        while rank > 0 and len(entries) < CERTIFICATE * entries.degrees_of_freedom(rank):
            rank -= 1
        return rank

    def roomy(self, rank: int) -> bool:
        """Whether the entries to fit are enough for this rank without those held out."""
        return ROOMY * self.entries.degrees_of_freedom(rank) < len(self.train)


class Trials:
    """The models tried so far and the best of them; :meth:`add` is the only place where the best one changes."""

    def __init__(self, task: CompletionTask):
        self._task = task
        self.path: list[tuple[float, float, int, float]] = []
        zero = Factors.zero(task.train.shape)
        self.best = stage_of(task.held, zero, Ridge(np.inf, task.options.depths[0]))

    @property
    def good(self) -> bool:
        """Whether the best model has found something."""
        return self.best.validation_error < GOOD * self._task.size

    def add(self, stage: RidgeStage) -> None:
        """Record a model. It becomes the best one if its error is lower, or in any case if the user has set the ridge."""
        self.path.append((stage.ridge, stage.depth, stage.rank, stage.validation_error))
        if self._task.options.ridge is not None or not stage.validation_error >= self.best.validation_error:
            self.best = stage
        if self._task.report:
            self._task.report("ridge path", stage)

    def add_all(self, stages: Iterable[RidgeStage]) -> float:
        """Record all of these models and return the lowest of their validation errors."""
        lowest = np.inf
        for stage in stages:
            self.add(stage)
            lowest = min(lowest, stage.validation_error)
        return lowest

    def plateau(self, max_rank: int) -> int | None:
        """The rank, up to ``max_rank``, that most models have.

        Components of the matrix enter at large ridges and those of noise at small ones, so a path stays at the true rank.
        """
        ranks = Counter(rank for _, _, rank, _ in self.path if 0 < rank <= max_rank)
        return max(ranks, key=lambda rank: (ranks[rank], rank)) if ranks else None


# --- along ridges ---------------------------------------------------------------------------------


def follow_ridges(task: CompletionTask, trials: Trials) -> None:
    """Try the path of the first depth, and those of other depths as long as little has been found."""
    weak = (WEAK_LARGE if len(task.train) > LARGE else WEAK) * trials.best.validation_error
    for depth in task.options.depths:
        if depth != task.options.depths[0] and not trials.best.validation_error > weak:
            return
        if _follow_path(task, trials, depth):
            return
    if task.options.ridge is None and np.isfinite(trials.best.ridge):
        trials.add_all(neighbouring_stages(task.train, task.held, trials.best, task.max_rank, task.sweeps))


def _follow_path(task: CompletionTask, trials: Trials, depth: float) -> bool:
    """Try one path; True if it led to an exact fit of the entries to fit."""
    last = task.options.ridge
    ridges = None if last is None else ridges_towards(task.train, depth, last)
    close, attempts = CLOSE * task.size, 0
    for stage in path_stages(task.train, task.held, depth, ridges, task.max_rank, task.sweeps):
        trials.add(stage)
        near = stage.validation_error < close and attempts < CLOSE_ATTEMPTS
        if ridges is None and task.options.exact is not False and near and task.affordable(stage.factors):
            attempts, close = attempts + 1, stage.validation_error / 4
            if _add_exact(task, trials, stage.factors, stage.depth):
                return True
    return False


def _add_exact(task: CompletionTask, trials: Trials, factors: Factors, depth: float) -> bool:
    """Record the exact fit of the entries to fit that these factors lead to, if they lead to one."""
    attempt = certified_fit(task.train, factors)
    if attempt.exact:
        trials.add(stage_of(task.held, attempt.factors, Ridge(0.0, depth)))
    return attempt.exact


# --- rank by rank ---------------------------------------------------------------------------------


def find_exact_fit(task: CompletionTask, trials: Trials) -> Factors | None:
    """A matrix that fits all entries exactly, or None. Models on the way are recorded: the best one may change."""
    options = task.options
    if options.ridge is not None:
        return None
    plateau = trials.plateau(task.certifiable_rank(task.entries))
    if options.exact is False or (options.exact is not True and values_repeat(task.entries)):
        _try_narrow_models(task, trials, plateau)
        return None
    best = trials.best.factors
    if task.affordable(best) and (attempt := certified_fit(task.entries, best)).exact:
        return attempt.factors
    if plateau and trials.good and task.roomy(plateau):
        _try_narrow_models(task, trials, plateau)
        if _leaves_only_noise(task, trials.best.factors):
            return None
    last = _RankSearch(task, trials).run(plateau)
    return last.factors if last is not None and last.exact else None


@dataclass
class _RankSearch:
    """Attempts at an exact fit of one rank after another, within a budget. Each rank is tried once on the entries to fit
    ("judged": held-out entries can confirm it) and once on all entries."""

    task: CompletionTask
    trials: Trials
    work: float = 0.0
    tried: set[tuple[int, bool]] = field(default_factory=set)

    def run(self, plateau: int | None) -> FitAttempt | None:
        """Try the ranks near the plateau first, then all ranks, then those that need the held-out entries too."""
        task, trials = self.task, self.trials
        attempt = self._near(plateau) if plateau else None
        if attempt is None and not trials.good:
            attempt = self.judged(range(1, task.certifiable_rank(task.train) + 1))
        # A model with entries to spare that predicts well is kept from being exact by noise.
        if attempt is not None or (trials.good and task.roomy(max(trials.best.rank, 1))):
            return attempt
        if self._plainly_noise():
            return None
        # Near the limit the held-out entries are needed too. The search above would have found any lower rank.
        ranks = [rank for rank in range(1, task.certifiable_rank(task.entries) + 1) if not task.roomy(rank)]
        if trials.good:
            likely = [rank for rank in (plateau, trials.best.rank) if rank]
            ranks = [rank for rank in ranks if any(abs(rank - other) <= 1 for other in likely)]
        return self.on_all_entries(ranks)

    def _near(self, plateau: int) -> FitAttempt | None:
        """Try the plateau, judged and on all entries, then its neighbours while each is better than the last."""
        task, trials = self.task, self.trials
        attempt = self.judged([plateau])
        if attempt is None and not self._plainly_noise():
            attempt = self.on_all_entries([plateau], repair=len(task.entries) * plateau < REPAIR_WORK)
        for step in (1, -1) if attempt is None and trials.good else ():
            rank, most = plateau, task.certifiable_rank(task.train)
            while attempt is None and trials.best.rank == rank and 1 <= rank + step <= most:
                rank += step
                attempt = self.judged([rank])
        return attempt

    def judged(self, ranks: Iterable[int]) -> FitAttempt | None:
        """Exact fits of the entries to fit, confirmed on all entries. Other fits are recorded as models of noisy data."""
        task, trials = self.task, self.trials
        worse, lowest = 0, np.inf
        for rank in ranks:
            attempt = self._attempt(task.train, rank, judged=True)
            if attempt is None:
                continue
            if attempt.exact:
                _add_exact(task, trials, attempt.factors, trials.best.depth)
                return certified_fit(task.entries, trials.best.factors)
            # Ranks are compared with each other only: the path may be ahead of all low ranks.
            error = self._try_shrunken(attempt.factors)
            worse = 0 if error < lowest else worse + 1
            lowest = min(lowest, error)
            # Below the true rank errors go up and down, so the search goes on until something has been found.
            if worse >= WORSE_RANKS and lowest < GOOD * task.size:
                break
        return None

    def on_all_entries(self, ranks: Iterable[int], *, repair: bool = False) -> FitAttempt | None:
        """Exact fits of all entries. Other fits are dropped, as no entries are left to judge them by."""
        task, best = self.task, self.trials.best
        for rank in ranks:
            attempt = self._attempt(task.entries, rank, judged=False)
            if attempt is None:
                continue
            if repair and not attempt.exact:
                attempt = repaired_fit(task.entries, attempt, max(task.options.depths))
            if task.report:
                task.report("exact fit", RidgeStage(0.0, best.depth, best.validation_error, attempt.factors))
            if attempt.exact:
                return certified_fit(task.entries, attempt.factors)
        return None

    def _attempt(self, entries: ObservedEntries, rank: int, *, judged: bool) -> FitAttempt | None:
        """None if this rank was tried before, could not be certified, or would exceed the budget."""
        cost = len(entries) * rank
        too_dear = self.work + cost > EXACT_WORK and self.task.options.exact == "auto"
        if (rank, judged) in self.tried or rank > self.task.certifiable_rank(entries) or too_dear:
            return None
        self.work += cost
        self.tried.add((rank, judged))
        return fit_of_rank(entries, rank, max(self.task.options.depths))

    def _try_shrunken(self, factors: Factors) -> float:
        """Record the fit as a model of noisy data, with ridges, and return its lowest validation error."""
        task, ridge = self.task, Ridge(self.trials.best.ridge, self.trials.best.depth)
        if not np.isfinite(ridge.strength):
            return np.inf
        return self.trials.add_all(fixed_rank_stages(task.train, task.held, factors, ridge, 2 * task.sweeps))

    def _plainly_noise(self) -> bool:
        """Whether noise, rather than a few wrong rows, keeps a good model from being exact."""
        train, best = self.task.train, self.trials.best.factors
        freedom = NOISE_FREEDOM * train.degrees_of_freedom(best.rank)
        enough = best.rank > 0 and freedom < len(train) >= NOISE_PER_ROW * max(train.shape)
        noisy = enough and self.trials.good and not residual_is_concentrated(train, best)
        return noisy and _leaves_only_noise(self.task, best)


def _try_narrow_models(task: CompletionTask, trials: Trials, plateau: int | None) -> None:
    """Record models whose rank is that of the plateau, or next to it, made of the largest components of the best model."""
    if not plateau:
        return
    best, large = trials.best, len(task.entries) > LARGE
    (left, right), _ = balanced(best.factors)
    for rank in ((plateau,) if large else (plateau, plateau + 1, plateau - 1)) if trials.good else ():
        if 0 < rank <= best.rank:
            start, ridge = Factors(left[:, :rank], right[:, :rank]), Ridge(best.ridge, best.depth)
            stages = fixed_rank_stages(task.train, task.held, start, ridge, 2 * task.sweeps)
            trials.add_all(islice(stages, 3) if large else stages)


def _leaves_only_noise(task: CompletionTask, factors: Factors) -> bool:
    """Whether nothing stands out of the residual: then no low-rank matrix fits better, and none fits exactly."""
    train = task.train
    residual = train.residual(factors)
    longest = [np.sqrt(np.bincount(index).max()) for index in (train.rows, train.columns)]
    edge = root_mean_square(residual) * sum(longest)
    return bool(entries_svd(train, residual, 1)[1][0] < NOISE_EDGE * edge)
