"""Two results folders side by side (``gyrostat compare``): verdicts, measured numbers, settings and versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gyrostat.errors import GyrostatError
from gyrostat.reproduce.store import ClaimRecord, ResultsStore, natural


@dataclass
class ComparedNumber:
    """A measured number in both folders."""

    claim: str
    name: str
    first: float | None
    second: float | None

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
        return {**asdict(self), "numbers": numbers}


def compare_results(first: str | Path, second: str | Path) -> Comparison:
    """Compare the results of two folders."""
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
    return flat | {f"versions.{key}": value for key, value in run["versions"].items()}


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The entries that differ, with both values; None where there is none.

    >>> differing({"seed": 0, "size": "smoke"}, {"seed": 1, "size": "smoke"})
    {'seed': (0, 1)}
    """
    names = dict.fromkeys([*first, *second])
    return {name: (first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)}
