"""Which rows make each batch when all rows of a batch come from one environment. No JAX and no PyTorch is imported.

Everything follows from the labels, the rules and the numbers ``seed``, ``epoch`` and ``start``. PyTorch's sampler and Grain's
adapter deal out the batches of this file, so both have the same orders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sources.row_labels import coded, rows_of_codes

ORDERS = ("iid", "cyclic", "shuffled", "proportional")
SMALL = ("error", "wrap", "short", "skip")


class RowsByEnvironment:
    """The labels of a data set's rows: the distinct ``labels``, the ``codes`` of all rows and the ``rows`` of each label."""

    def __init__(self, environments: Any):
        self.labels, codes = coded(environments)
        self.codes = codes.astype(np.int32)
        self.rows = rows_of_codes(codes, len(self.labels))
        self._digest = ""

    @property
    def digest(self) -> str:
        """A short text that differs for another division of the rows into environments."""
        self._digest = self._digest or hashlib.blake2b(self.codes.tobytes(), digest_size=8).hexdigest()
        return self._digest

    def codes_of(self, rows: Any) -> np.ndarray:
        """The code of each of some rows; numbers that are not rows are refused."""
        numbers = np.asarray(rows, dtype=np.intp)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < self.codes.size:
            wrong = numbers[(numbers < 0) | (numbers >= self.codes.size)][0]
            raise GyrostatError(f"batch must hold numbers of the {self.codes.size} labelled rows; got {wrong}.")
        return self.codes[numbers]

    def environment_of(self, rows: Any) -> Any:
        """The label that all ``rows`` have in common; rows of several environments, and no rows, are refused."""
        found = np.unique(self.codes_of(rows))
        if found.size != 1:
            which = ", ".join(repr(self.labels[code]) for code in found[:3]) or "no rows"
            raise GyrostatError(f"batch must hold rows of one environment; got {which}.")
        return self.labels[int(found[0])]


@dataclass(frozen=True)
class BatchRules:
    """How batches are made of labelled rows; see :class:`gyrostat.torch.EnvironmentBatchSampler` for each field."""

    batch_size: int
    order: str = "iid"
    small: str = "error"
    drop_last: bool = True
    hold: int = 1
    num_batches: int | None = None
    weights: Mapping[Any, float] | None = None

    def __post_init__(self) -> None:
        errors.choice("order", self.order, ORDERS)
        errors.choice("small", self.small, SMALL)
        for name, value in {"batch_size": self.batch_size, "hold": self.hold}.items():
            object.__setattr__(self, name, errors.integer(name, value, least=1))
        if not isinstance(self.drop_last, bool | np.bool_):
            raise GyrostatError(f"drop_last must be True or False; got {errors.shown(self.drop_last)}.")
        if self.num_batches is not None:
            object.__setattr__(self, "num_batches", errors.integer("num_batches", self.num_batches, least=1))
            if self.num_batches % self.hold:
                raise GyrostatError(
                    f"num_batches={self.num_batches} must be a multiple of hold={self.hold}: an optimiser step takes "
                    f"{self.hold} batches."
                )
        if self.weights is not None:
            self._check_weights()

    def _check_weights(self) -> None:
        if not isinstance(self.weights, Mapping):
            raise GyrostatError(
                f"weights must give each environment a number, as in {{'site 1': 2.0}}; got {errors.shown(self.weights)}."
            )
        if self.order not in ("iid", "shuffled"):
            raise GyrostatError(
                f"weights work with order='iid' or 'shuffled'; got order={self.order!r}: choose one of them."
            )
        for label, weight in self.weights.items():
            errors.number(f"weights[{label!r}]", weight, least=0)

    def described(self) -> dict[str, Any]:
        """The rules as plain values, for the state of a sampler."""
        weights = None if self.weights is None else [float(weight) for weight in self.weights.values()]
        return {**asdict(self), "weights": weights}


class EpochPart(NamedTuple):
    """What an epoch covers of one environment."""

    rows: int
    batches: int
    rows_seen: int
    most_often: int


@dataclass(frozen=True)
class EpochCoverage:
    """What one epoch covers of each environment, over all processes together. ``str`` gives it as text.

    Parameters
    ----------
    epoch : the number of the epoch
    batches : the batches of the epoch
    parts : for each label the rows of the environment, its batches, how many of its rows occur and how often one row at most
    skipped : labels of environments that are never visited
    """

    epoch: int
    batches: int
    parts: dict[Any, EpochPart]
    skipped: list

    @property
    def share(self) -> float:
        """The share of all rows, also those of skipped environments, that occur in the epoch."""
        return sum(part.rows_seen for part in self.parts.values()) / max(
            1, sum(part.rows for part in self.parts.values())
        )

    def __str__(self) -> str:
        lines = [f"Epoch {self.epoch} has {self.batches} batches and sees {self.share:.1%} of the rows."]
        for label, part in list(self.parts.items())[:20]:
            often = "" if part.most_often <= 1 else f", some {part.most_often} times"
            lines.append(
                f"{label!r}: {part.batches} batches, {part.rows_seen} of {part.rows} rows "
                f"({part.rows_seen / part.rows:.1%}){often}"
            )
        if len(self.parts) > 20:
            lines.append(f"and {len(self.parts) - 20} more environments")
        if self.skipped:
            lines.append(f"never visited: {', '.join(map(repr, self.skipped[:20]))}")
        return "\n".join(lines)


class BatchPlan:
    """The batches of every epoch for a given number of processes, which share each step's rows."""

    def __init__(self, labelled: RowsByEnvironment, rules: BatchRules, num_replicas: int):
        self.labelled, self.rules, self.num_replicas = labelled, rules, num_replicas
        self.step_rows = rules.batch_size * num_replicas  # of all processes together
        self._refuse_small()
        weights = self._checked_weights()
        self.used = [
            code
            for code, mine in enumerate(labelled.rows)
            if weights[code] > 0 and (rules.small != "skip" or mine.size >= self.step_rows)
        ]
        if not self.used:
            raise GyrostatError("weights leave no environment to visit: give at least one of them a number above 0.")
        kept = np.array([weights[code] for code in self.used], dtype=float)
        self.shares = kept / kept.sum()
        self.rows = [labelled.rows[code] for code in self.used]
        self.holds = [-(-self._batches_of_a_pass(mine.size) // rules.hold) for mine in self.rows]
        self.length = self._default_length() if rules.num_batches is None else rules.num_batches

    @property
    def labels(self) -> list:
        """The labels of the environments that are visited."""
        return [self.labelled.labels[code] for code in self.used]

    @property
    def skipped(self) -> list:
        """The labels of the environments that are never visited."""
        used = set(self.used)
        return [label for code, label in enumerate(self.labelled.labels) if code not in used]

    @property
    def full(self) -> bool:
        """Whether every batch has ``batch_size`` rows."""
        last, small = self.rules.drop_last, self.rules.small
        sizes = (rows.size for rows in self.rows)
        return all(last or n % self.step_rows == 0 if n >= self.step_rows else small != "short" for n in sizes)

    def batches(self, seed: int, epoch: int, start: int = 0) -> Iterator[np.ndarray]:
        """The rows of each step of all processes together, from batch ``start`` on; process r takes every n-th from r on."""
        rng = np.random.default_rng([seed, epoch])
        decks: dict[int, np.ndarray] = {}
        for number, e in enumerate(self.visits(rng, epoch)):
            rows, decks[e] = self._deal(rng, self.rows[e], decks.get(e))
            if number >= start:
                yield rows

    def visits(self, rng: np.random.Generator, epoch: int) -> list[int]:
        """The environment of each batch of an epoch, by its place in ``labels``."""
        hold, count = self.rules.hold, len(self.rows)
        steps = self.length // hold
        if self.rules.order == "iid":
            found = self._drawn(rng, steps)
        elif self.rules.order == "cyclic":
            found = (epoch * steps + np.arange(steps)) % count
        elif self.rules.weights is not None:
            found = rng.permutation(np.repeat(np.arange(count), apportioned(self.shares, steps)))
        else:
            one = np.repeat(np.arange(count), self.holds if self.rules.order == "proportional" else 1)
            found = np.concatenate([rng.permutation(one) for _ in range(-(-steps // one.size))])[:steps]
        return (found if hold == 1 else np.repeat(found, hold)).tolist()

    def coverage(self, seed: int, epoch: int) -> EpochCoverage:
        """Which rows the epoch covers, counted batch by batch."""
        seen = np.zeros(self.labelled.codes.size, dtype=np.int64)
        visits = np.zeros(len(self.labelled.labels), dtype=np.int64)
        for rows in self.batches(seed, epoch):
            np.add.at(seen, rows, 1)
            visits[self.labelled.codes[rows[0]]] += 1
        parts = {
            label: EpochPart(mine.size, int(visits[code]), int((seen[mine] > 0).sum()), int(seen[mine].max()))
            for code, (label, mine) in enumerate(zip(self.labelled.labels, self.labelled.rows, strict=True))
        }
        return EpochCoverage(epoch, self.length, parts, self.skipped)

    def _drawn(self, rng: np.random.Generator, steps: int) -> np.ndarray:
        if self.rules.weights is None:
            return rng.integers(len(self.rows), size=steps)
        return rng.choice(len(self.rows), size=steps, p=self.shares)

    def _deal(
        self, rng: np.random.Generator, rows: np.ndarray, deck: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of one step of all processes together, and the remaining rows of the environment in their order."""
        wanted = self.step_rows
        if rows.size >= wanted:
            if deck is None or deck.size < wanted:
                last = 0 if deck is None or self.rules.drop_last else deck.size - deck.size % self.num_replicas
                if deck is not None and last:
                    return deck[:last], deck[:0]
                deck = rng.permutation(rows)
            return deck[:wanted], deck[wanted:]
        shuffled = rng.permutation(rows)
        if self.rules.small == "short":  # the same number for each process; a random rest is left out
            return shuffled[: rows.size - rows.size % self.num_replicas], shuffled[:0]
        return np.resize(shuffled, wanted), shuffled[:0]

    def _batches_of_a_pass(self, size: int) -> int:
        """The batches that deal out each row of an environment at most once."""
        whole, rest = divmod(size, self.step_rows)
        last = not self.rules.drop_last and whole > 0 and rest >= self.num_replicas
        return max(1, whole + last)

    def _default_length(self) -> int:
        total, count = sum(self.holds), len(self.rows)
        in_rounds = self.rules.order == "cyclic" or (self.rules.order == "shuffled" and self.rules.weights is None)
        return (-(-total // count) * count if in_rounds else total) * self.rules.hold

    def _checked_weights(self) -> list[float]:
        labels, weights = self.labelled.labels, self.rules.weights
        if weights is None:
            return [1.0] * len(labels)
        if unknown := [label for label in weights if label not in set(labels)]:
            raise GyrostatError(f"weights names {unknown[0]!r}, which no row of environments has: remove it.")
        if without := [label for label in labels if label not in weights]:
            raise GyrostatError(f"weights has no number for environment {without[0]!r}: give every environment one.")
        return [float(weights[label]) for label in labels]

    def _refuse_small(self) -> None:
        sizes = [mine.size for mine in self.labelled.rows]
        least, small, size = int(np.argmin(sizes)), self.rules.small, self.rules.batch_size
        step = f"a step takes {self.step_rows} (batch_size={size} for each of num_replicas={self.num_replicas})"
        got = f"environment {self.labelled.labels[least]!r} has {sizes[least]} rows and {step}"
        if small == "error" and sizes[least] < self.step_rows:
            raise GyrostatError(f"{got}: choose small='wrap' (repeat rows), 'short' or 'skip', or lower batch_size.")
        if small == "short" and sizes[least] < self.num_replicas:
            raise GyrostatError(f"{got}: with small='short' a process would get no rows; use small='wrap' or 'skip'.")
        if small == "skip" and max(sizes) < self.step_rows:
            raise GyrostatError(
                f"small='skip' skips every environment: the largest has {max(sizes)} rows and {step}; lower batch_size."
            )


def apportioned(shares: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers that add up to ``total`` and are nearest to ``shares * total`` (largest remainders).

    >>> apportioned(np.array([0.5, 0.3, 0.2]), 7).tolist()
    [4, 2, 1]
    """
    exact = shares * total
    counts = np.floor(exact).astype(int)
    first = np.argsort(counts - exact, kind="stable")[: total - counts.sum()]
    counts[first] += 1
    return counts
