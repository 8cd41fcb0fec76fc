"""Two results folders side by side (``gyrostat compare``): verdicts, measured numbers, settings and versions.

Whether a number differs beyond chance is decided by a permutation test over runs. If the two folders differed by chance only,
the runs of one could as well be those of the other. Where both have the same seeds, the two runs of a seed are a pair, and
each pair is swapped with probability one half; elsewhere all runs are pooled and dealt again. The claim is measured on the
data that result, many times; p is the share of differences at least as large as the one found, counting that one.
All numbers of all claims are tested together at level .05 (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.reproduce.store import ClaimRecord, ResultsStore, natural

if TYPE_CHECKING:
    import xarray as xr

    from gyrostat.experiments.declarations import Claim

LEVEL = 0.05
LEAST_DRAWS, MOST_DRAWS = 999, 9999
ENOUGH = 20
"""Permuted differences as large as the one found after which a number is clearly within chance, and drawing stops."""

Judgement = Literal["same", "within chance", "beyond chance", "not tested"]


@dataclass
class ComparedNumber:
    """A measured number in both folders; ``test`` says how it was tested (``paired``, ``pooled``), or why it was not."""

    claim: str
    name: str
    first: float | None
    second: float | None
    judgement: Judgement = "not tested"
    p: float | None = None
    test: str = ""

    @property
    def difference(self) -> float | None:
        """The second minus the first."""
        return None if self.first is None or self.second is None else self.second - self.first


@dataclass
class Comparison:
    """What differs between two results folders; ``first`` and ``second`` everywhere.

    ``verdicts`` are the claims whose verdict changed, ``numbers`` the measured numbers of all claims that both have,
    ``runs`` the settings and versions that differ (experiment -> name -> the two values), ``only`` the experiments and claims
    that one folder has alone.
    """

    folders: tuple[str, str]
    claims: int = 0
    verdicts: list[dict[str, str]] = field(default_factory=list)
    numbers: list[ComparedNumber] = field(default_factory=list)
    runs: dict[str, dict[str, tuple[Any, Any]]] = field(default_factory=dict)
    only: dict[str, list[str]] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The exit status: 1 when a verdict changed."""
        return int(bool(self.verdicts))

    @property
    def plain(self) -> dict[str, Any]:
        """Everything as JSON has it."""
        numbers = [{**asdict(number), "difference": number.difference} for number in self.numbers]
        return {**asdict(self), "numbers": numbers, "level": LEVEL}


def compare_results(first: str | Path, second: str | Path, *, papers: Sequence[str] = (), seed: int = 0) -> Comparison:
    """Compare the results of two folders.

    ``papers`` are files or modules with papers that are not installed: their claims are needed to test their numbers. ``seed``
    is that of the random permutations.
    """
    for reference in papers:
        registry.add_paper(reference)
    stores = _opened(first), _opened(second)
    compared = Comparison((str(first), str(second)))
    finished = [set(store.finished()) for store in stores]
    claims = [{record["id"]: record for record in store.claims()} for store in stores]
    compared.only = {
        "experiments of the first": sorted(finished[0] - finished[1], key=natural),
        "experiments of the second": sorted(finished[1] - finished[0], key=natural),
        "claims of the first": _alone(claims[0], claims[1], finished[1]),
        "claims of the second": _alone(claims[1], claims[0], finished[0]),
    }
    both = [name for name in claims[0] if name in claims[1]]
    compared.claims = len(both)
    compared.verdicts = [
        {"claim": name, "first": claims[0][name]["verdict"], "second": claims[1][name]["verdict"]}
        for name in both
        if claims[0][name]["verdict"] != claims[1][name]["verdict"]
    ]
    compared.numbers = [number for name in both for number in _numbers(claims[0][name], claims[1][name])]
    for name in sorted(finished[0] & finished[1], key=natural):
        changes = differing(*(_conditions(store.run(name)) for store in stores))
        if changes:
            compared.runs[name] = changes
    _test_all(compared.numbers, stores, np.random.default_rng(seed))
    return compared


def _opened(folder: str | Path) -> ResultsStore:
    store = ResultsStore(folder)
    if not store.claims_file.is_file() and not store.data.is_dir():
        raise GyrostatError(f"{str(folder)!r} holds no claims.json: give the folder of a gyrostat reproduce --out DIR.")
    store.refuse_losses()
    return store


def _alone(mine: Mapping[str, ClaimRecord], theirs: Mapping[str, ClaimRecord], finished: set[str]) -> list[str]:
    """Claims that one folder has alone although both have the experiment: the declaration has changed."""
    return [name for name in mine if name not in theirs and name.rsplit("/", 1)[0] in finished]


def _numbers(first: ClaimRecord, second: ClaimRecord) -> list[ComparedNumber]:
    names = dict.fromkeys([*first["measured"], *second["measured"]])
    return [
        ComparedNumber(first["id"], name, first["measured"].get(name), second["measured"].get(name)) for name in names
    ]


def _conditions(run: Mapping[str, Any]) -> dict[str, Any]:
    """What a result depends on, by flat names such as ``settings.seeds`` and ``versions.jax``."""
    flat = {key: run.get(key) for key in ("size", "seed", "code", "machine")}
    flat |= {f"settings.{key}": value for key, value in run.get("settings", {}).items()}
    return flat | {f"versions.{key}": value for key, value in run.get("versions", {"gyrostat": run["version"]}).items()}


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The entries that differ, with both values; None where there is none.

    >>> differing({"seed": 0, "size": "smoke"}, {"seed": 1, "size": "smoke"})
    {'seed': (0, 1)}
    """
    names = dict.fromkeys([*first, *second])
    return {name: (first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)}


# ------------------------------------------------------------------------------------------------ beyond chance?

Pair = tuple["xr.Dataset", "xr.Dataset"]


class NotTested(Exception):
    """Why numbers cannot be tested."""


def _test_all(
    numbers: Sequence[ComparedNumber], stores: tuple[ResultsStore, ResultsStore], random: np.random.Generator
) -> None:
    """Judge every number: which ones differ, and which of those beyond chance."""
    by_experiment: dict[str, list[ComparedNumber]] = {}
    for number in numbers:
        if number.first == number.second:
            number.judgement = "same"
        elif number.difference is None:
            number.test = "not a finite number in both folders"
        else:
            by_experiment.setdefault(number.claim.rsplit("/", 1)[0], []).append(number)
    count = sum(map(len, by_experiment.values()))
    draws = min(max(math.ceil(2 * count / LEVEL), LEAST_DRAWS), MOST_DRAWS)
    for name, of_experiment in by_experiment.items():
        try:
            _test_experiment(name, of_experiment, stores, draws, random)
        except NotTested as reason:
            for number in of_experiment:
                number.test = number.test or str(reason)
    holm(numbers)


def _test_experiment(
    name: str,
    numbers: list[ComparedNumber],
    stores: tuple[ResultsStore, ResultsStore],
    draws: int,
    random: np.random.Generator,
) -> None:
    """Find the p-values of the numbers of one experiment; all claims are measured on the same permuted data."""
    pair = _comparable([store.load(name) for store in stores])
    paired = _is_paired(pair, [store.run(name) for store in stores])
    _check_enough_runs(pair, paired)
    claims = _declared_claims(name)

    def differences(data: Pair, wanted: Sequence[ComparedNumber]) -> list[float]:
        measured: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
        for claim in dict.fromkeys(number.claim for number in wanted):
            measured[claim] = _measured(claims.get(claim), data[0]), _measured(claims.get(claim), data[1])
        return [measured[n.claim][1].get(n.name, math.nan) - measured[n.claim][0].get(n.name, math.nan) for n in wanted]

    testable = []
    for number, found in zip(numbers, differences(pair, numbers), strict=True):
        # Ours and the recorded one differ by rounding at most, unless the claim is measured in another way today.
        if number.claim not in claims:
            number.test = "the claim is no longer declared"
        elif not math.isclose(found, number.difference or 0.0, rel_tol=1e-6, abs_tol=1e-12):
            number.test = "this version measures it differently"
        else:
            testable.append((number, found))
    deal = swapped if paired else dealt
    p_values = permutation_test(
        lambda open_ones: differences(deal(*pair, random), [testable[i][0] for i in open_ones]),
        [found for _, found in testable],
        draws,
    )
    for (number, _), p in zip(testable, p_values, strict=True):
        number.p = p
        number.test = "does not depend on the runs" if p is None else "paired by seed" if paired else "runs pooled"


def _declared_claims(name: str) -> dict[str, Claim]:
    """The claims of an experiment by their ids."""
    paper, experiment = name.split("/")
    try:
        declared = registry.experiments(paper)[experiment]
    except (GyrostatError, KeyError):
        raise NotTested("its paper is not known here: name it with --paper") from None
    return {f"{name}/{claim.slug}": claim for claim in declared.claims}


def _measured(claim: Claim | None, data: xr.Dataset) -> dict[str, float]:
    """The measured numbers of a claim; none if the data are refused, as permuted data may be."""
    if claim is None:
        return {}
    try:
        return {name: float(value) for name, value in claim.measure(data).measured.items()}
    except Exception:  # a claim may raise anything on data that it was not made for
        return {}


def _comparable(data: Sequence[xr.Dataset | None]) -> Pair:
    """The data of both folders, if their runs could be exchanged."""
    first, second = data
    if first is None or second is None:
        raise NotTested("the data of one folder are missing")
    if "seed" not in first.dims or "seed" not in second.dims:
        raise NotTested("the data have no dimension seed")
    shapes = [{name: {**x.sizes, "seed": 0} for name, x in ds.variables.items()} for ds in (first, second)]
    same_grid = all(
        first[d].equals(second[d]) for d in first.dims if d != "seed" and d in first.coords and d in second.coords
    )
    if shapes[0] != shapes[1] or not same_grid:
        raise NotTested("the data of the two folders have different shapes")
    return first, second


def _is_paired(pair: Pair, runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether run i of both folders has the same random numbers."""
    first, second = pair
    return runs[0].get("derived_seed") == runs[1].get("derived_seed") and first.seed.equals(second.seed)


def _check_enough_runs(pair: Pair, paired: bool) -> None:
    first, second = (ds.sizes["seed"] for ds in pair)
    ways = 2 ** (first - 1) if paired else math.comb(first + second, first)
    if ways * LEVEL < 1:
        raise NotTested("too few runs")


def swapped(first: xr.Dataset, second: xr.Dataset, random: np.random.Generator) -> Pair:
    """Both datasets after the two runs of each seed have changed places with probability one half."""
    n = first.sizes["seed"]
    ours, theirs = np.arange(n), np.arange(n) + n
    swap = random.random(n) < 0.5
    return _with_runs(first, second, np.where(swap, theirs, ours), np.where(swap, ours, theirs))


def dealt(first: xr.Dataset, second: xr.Dataset, random: np.random.Generator) -> Pair:
    """Both datasets after all runs have been pooled and dealt again, as many to each as before."""
    n = first.sizes["seed"]
    order = random.permutation(n + second.sizes["seed"])
    return _with_runs(first, second, order[:n], order[n:])


def _with_runs(first: xr.Dataset, second: xr.Dataset, mine: np.ndarray, theirs: np.ndarray) -> Pair:
    """Both datasets with other runs, by their places among the runs of both. What is not per run stays where it is."""
    moving = [name for name, x in first.data_vars.items() if "seed" in x.dims]
    changed: tuple[dict, dict] = {}, {}
    for name in moving:
        one = first[name].variable
        axis = one.get_axis_num("seed")
        pooled = np.concatenate([one.values, second[name].variable.transpose(*one.dims).values], axis)
        for index, data in zip((mine, theirs), changed, strict=True):
            data[name] = (one.dims, np.take(pooled, index, axis), one.attrs)
    return first.assign(changed[0]), second.assign(changed[1])


def permutation_test(
    permuted: Callable[[Sequence[int]], Sequence[float]], found: Sequence[float], draws: int
) -> list[float | None]:
    """The p-values of differences, two-sided; None for a number that no permutation changes.

    ``permuted`` permutes the data and returns the differences of the numbers with the given indices. A number is drawn until
    ``ENOUGH`` permuted differences were as large as the one found (Besag and Clifford 1991), at most ``draws`` times.
    """
    as_large, moved, drawn = [0] * len(found), [False] * len(found), [0] * len(found)
    for _ in range(draws):
        waiting = [i for i, hits in enumerate(as_large) if hits < ENOUGH]
        if not waiting:
            break
        for i, value in zip(waiting, permuted(waiting), strict=True):
            drawn[i] += 1
            moved[i] |= value != found[i]
            # Sums in another order differ in the last digits; a difference that is not a number speaks for chance.
            as_large[i] += not abs(value) < abs(found[i]) * (1 - 1e-9)
    p = [hits / n if hits >= ENOUGH else (hits + 1) / (n + 1) for hits, n in zip(as_large, drawn, strict=True)]
    return [value if has_moved else None for value, has_moved in zip(p, moved, strict=True)]


def holm(numbers: Sequence[ComparedNumber], level: float = LEVEL) -> None:
    """Judge the numbers that have a p-value, so that the chance of any wrong "beyond chance" is at most ``level`` (Holm 1979).

    >>> numbers = [ComparedNumber("c", str(p), 0.0, 1.0, p=p) for p in (0.001, 0.03, 0.04)]
    >>> holm(numbers)
    >>> [number.judgement for number in numbers]
    ['beyond chance', 'within chance', 'within chance']
    """
    tested = sorted((number for number in numbers if number.p is not None), key=lambda number: number.p or 0.0)
    beyond = True
    for i, number in enumerate(tested):
        beyond = beyond and (number.p or 0.0) <= level / (len(tested) - i)
        number.judgement = "beyond chance" if beyond else "within chance"
