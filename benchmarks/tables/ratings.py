"""The suite ``tables-ratings``: ten million simulated ratings, filled by ``LowRankImputer`` and by cmfrec in one run.

It takes minutes and gigabytes, and runs only when it is named. The suite ``tables`` compares them on a smaller table with as
many ratings per user and item.
"""

from __future__ import annotations

import importlib.util
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.records import BenchmarkRecord, GroupResult, Report, run_groups

CMFREC = {"nthreads": 1, "verbose": False}
"""cmfrec's options: its defaults (rank 40, ridge 10), on one thread. Ours are the defaults too, which choose rank and ridge."""


class RatingsSizes(NamedTuple):
    """Users, items, ratings, the rank of tastes, the share of the ratings that is hidden, and how often each side fits."""

    users: int = 100_000
    items: int = 20_000
    ratings: int = 10_000_000
    rank: int = 8
    hidden: float = 0.05
    turns: int = 1


class Ratings(NamedTuple):
    """Users, items and ratings from 1 to 5 in halves."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray


def simulated(sizes: RatingsSizes, seed: int = 0) -> tuple[Ratings, Ratings]:
    """Ratings shown and hidden: 3.5 plus levels of users and items, tastes of low rank and noise, rounded to halves.

    As in collections of ratings of films, a few items have most of the ratings, and a few users gave most of them.
    """
    rng = np.random.default_rng(seed)
    n, m, count, rank = sizes[:4]
    i, j = np.divmod(_rated_pairs(n, m, count, rng), m)
    tastes = np.einsum("ek,ek->e", *(rng.standard_normal((s, rank))[x] for s, x in ((n, i), (m, j)))) / np.sqrt(rank)
    level = 3.5 + 0.4 * rng.standard_normal(n)[i] + 0.5 * rng.standard_normal(m)[j]
    raw = level + 0.5 * tastes + 0.8 * rng.standard_normal(len(i))
    values = np.clip(np.round(2 * raw) / 2, 1, 5)
    hidden = rng.random(len(i)) < sizes.hidden
    return tuple(Ratings(i[mask], j[mask], values[mask]) for mask in (~hidden, hidden))  # type: ignore[return-value]


def _rated_pairs(n: int, m: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Different pairs, as user times m plus item, drawn by the activity of users and the popularity of items."""
    activity, popularity = rng.lognormal(0.0, 0.9, n), rng.pareto(1.5, m) + 0.3
    users, items = (rng.choice(len(p), int(count * 1.5), p=p / p.sum()) for p in (activity, popularity))
    return rng.permutation(np.unique(users * np.int64(m) + items))[:count]


def by_us(shown: Ratings, at: Ratings, sizes: RatingsSizes) -> np.ndarray:
    """Predictions of ``LowRankImputer`` with its defaults."""
    from scipy import sparse

    from gyrostat.estimators import LowRankImputer

    X = sparse.csr_matrix((shown.values, (shown.users, shown.items)), shape=(sizes.users, sizes.items))
    return LowRankImputer(random_state=0).fit(X).predict(at.users, at.items)


def by_cmfrec(shown: Ratings, at: Ratings, sizes: RatingsSizes) -> np.ndarray:
    """Predictions of cmfrec's ALS with biases of users and items."""
    from cmfrec import CMF
    from scipy import sparse

    X = sparse.coo_matrix((shown.values, (shown.users, shown.items)), shape=(sizes.users, sizes.items))
    return np.asarray(CMF(**CMFREC).fit(X).predict(at.users, at.items))


def run(say: Callable[[str], Any], sizes: RatingsSizes = RatingsSizes()) -> Report:  # noqa: B008  (immutable)
    """Every record of the suite."""
    return run_groups([(f"{sizes.ratings:,} ratings", compared)], sizes, say)


def compared(sizes: RatingsSizes) -> GroupResult:
    """Seconds (the least over turns) and errors of both, which take turns on the same ratings in one process."""
    shown, hidden = simulated(sizes)
    methods = {"ours": by_us, **({"cmfrec": by_cmfrec} if importlib.util.find_spec("cmfrec") else {})}
    seconds, errors = dict.fromkeys(methods, np.inf), {}
    for _, (name, method) in itertools.product(range(sizes.turns), methods.items()):
        start = time.process_time()
        predicted = method(shown, hidden, sizes)
        seconds[name] = min(seconds[name], time.process_time() - start)
        errors[name] = float(np.sqrt(np.mean((predicted - hidden.values) ** 2)))
    notes = [] if "cmfrec" in methods else ["tables/ratings has no peer: pip install 'gyrostat[bench]'."]
    peer = "cmfrec" if "cmfrec" in methods else None
    times = BenchmarkRecord(
        "tables/ratings-seconds",
        seconds["ours"],
        "CPU seconds",
        seconds.get("cmfrec"),
        peer,
        0.5 if peer else None,
        {**sizes._asdict(), "cmfrec": CMFREC},
    )
    unit = "root mean square error at hidden ratings"
    wrong = BenchmarkRecord(
        "tables/ratings-error", errors["ours"], unit, errors.get("cmfrec"), peer, 1.0 if peer else None
    )
    return [times, wrong], notes
