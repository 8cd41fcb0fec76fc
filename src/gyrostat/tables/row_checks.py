"""What is looked at in a table before a model is fitted to it: bad cells, constant columns, tiny environments, leakage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.families import FAMILIES, outcome_kind
from gyrostat.tables.table_files import NOTES, as_numbers

NEARLY = 0.999
"""The correlation within environments with the target from which a feature is suspected to be computed from it."""
SPARE_ROWS = 4
"""The rows beyond one per feature that an environment needs, if effects are adjusted for each other."""
PYTHON_WORDS = {
    "adjust=True": "a fit without --alone",
    "use adjust=False": "use --alone",
    "directions='principal'": "--principal",
    "directions='features'": "--by-feature",
    "allow more variation (tolerance)": "allow more variation (--tolerance)",
    "cluster must have": "--cluster must have",
}
"""Arguments in Python, and the options of the command that stand for them."""


def in_command_words(sentence: str) -> str:
    """A sentence of the estimators with the options of ``gyrostat fit`` in place of arguments in Python.

    >>> in_command_words("too few rows: use adjust=False, fewer features, or larger environments.")
    'too few rows: use --alone, fewer features, or larger environments.'
    """
    for python, option in PYTHON_WORDS.items():
        sentence = sentence.replace(python, option)
    return sentence


def checked_family(family: str | None, y: np.ndarray, target: str, notes: list[str]) -> str:
    """The family of a fit; without one, 0/1 and counts are refused with the options to choose from."""
    if family is not None:
        return errors.choice("--family", family, FAMILIES)
    kind = outcome_kind(y)
    if kind == "binary":
        raise GyrostatError(
            f"target {target!r} holds only 0 and 1: use --family binomial (effects on the log-odds, which do not follow base "
            "rates), or --family gaussian to take them as numbers."
        )
    if kind == "count":
        raise GyrostatError(
            f"target {target!r} looks like counts: use --family poisson (effects on the logarithm, which do not follow base "
            "rates), or --family gaussian to take them as numbers."
        )
    if kind == "skewed":
        notes.append(
            f"{target} is never below zero and has a long tail, as durations and amounts have: --family poisson estimates "
            "relative effects. Censored durations need survival analysis, which gyrostat does not offer."
        )
    return "gaussian"


def cluster_notes(frame: pd.DataFrame, names: Sequence[str], environment: str) -> list[str]:
    """A sentence for each column that looks like the number of a patient: its values repeat, each in one environment.

    >>> frame = pd.DataFrame({"patient": np.repeat(np.arange(40), 5), "site": np.repeat(["a", "b"], 100)})
    >>> cluster_notes(frame, ["patient"], "site")[0][-22:]
    'use --cluster patient.'
    """
    found = []
    for name in names:
        values = frame[name]
        count, numeric = values.nunique(), pd.api.types.is_numeric_dtype(values)
        repeats = len(values) / max(count, 1)
        if count < max(10, 2 * frame[environment].nunique()) or not 1.5 <= repeats <= len(values) / 10:
            continue
        if numeric and not (values.dropna() == values.dropna().round()).all():
            continue
        if frame.groupby(name, observed=True)[environment].nunique().max() == 1:
            found.append(
                f"{name} looks like an identifier, such as a patient number, with {repeats:.0f} rows each: if these depend "
                f"on each other, use --cluster {name}."
            )
    return found


def parsed_orders(texts: Sequence[str], columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The orders of categories that were given as ``COLUMN=low<medium<high``.

    >>> parsed_orders(["size=small<large"], ["size"])
    {'size': ('small', 'large')}
    """
    orders = {}
    for text in texts:
        name, sign, levels = text.partition("=")
        words = tuple(level.strip() for level in levels.split("<"))
        if not sign or len(words) < 2 or len(set(words)) < len(words) or not all(words):
            raise GyrostatError(
                f"--ordered {text!r} must name a column and its levels, such as size=small<medium<large."
            )
        orders[errors.choice("--ordered column", name.strip(), columns)] = words
    return orders


def clean_columns(frame: pd.DataFrame, names: Sequence[str], left_as_words: Sequence[str] = ()) -> pd.DataFrame:
    """The table with numbers in columns of numbers; bad cells are refused, words for missing ones become empty."""
    cleaned = {name: as_numbers(frame[name], f"--drop {name}") for name in names if name not in left_as_words}
    empty = {name: int(c.isna().sum() - frame[name].isna().sum()) for name, c in cleaned.items()}
    told = [f"{count} cells of {name} hold a word for a missing value" for name, count in empty.items() if count]
    result = frame.assign(**cleaned)
    result.attrs[NOTES] = [*frame.attrs.get(NOTES, []), *(f"{text}, and count as empty." for text in told)]
    return result


def without_constants(frame: pd.DataFrame, names: list[str], notes: list[str]) -> list[str]:
    """The columns with more than one value; the others are named in ``notes``."""
    constant = [name for name in names if frame[name].nunique(dropna=False) < 2]
    return without_named(names, constant, notes)


def without_named(names: Sequence[str], constant: Sequence[str], notes: list[str]) -> list[str]:
    """The names without those of constant columns, which are named in ``notes``."""
    if len(constant) == len(names):
        raise GyrostatError("every feature has only one value: there is nothing to compare.")
    if constant:
        verbs = ("has", "was") if len(constant) == 1 else ("have", "were")
        notes.append(f"{', '.join(constant)} {verbs[0]} only one value and {verbs[1]} left out.")
    return [name for name in names if name not in constant]


def least_rows(features: int, min_rows: int | None, *, adjust: bool) -> tuple[int, str]:
    """The fewest rows of an environment, and why there must be so many."""
    least, why = (features + SPARE_ROWS, f" (for {features} features)") if adjust else (3, "")
    if min_rows is None:
        return least, why
    return max(errors.integer("--min-rows", min_rows, least=1), least), why if min_rows < least else ""


def with_enough_rows(frame: pd.DataFrame, environment: str, least: int, why: str, notes: list[str]) -> pd.DataFrame:
    """The rows of environments with at least ``least`` rows; the other environments are named in ``notes``."""
    counts = frame[environment].value_counts(sort=False).to_dict()
    small = small_environments(counts, environment, least, why, notes)
    return frame[~frame[environment].isin(small)] if small else frame


def small_environments(counts: dict, environment: str, least: int, why: str, notes: list[str]) -> list:
    """The environments with fewer than ``least`` rows, which are named in ``notes``; two must remain."""
    small = [label for label, count in counts.items() if count < least]
    if len(counts) - len(small) < 2:
        raise GyrostatError(
            f"fewer than two values of {environment!r} have at least {least} rows{why}: use --min-rows, fewer features "
            "(--features, --drop), or --alone."
        )
    if small:
        names = ", ".join(map(str, small[:5])) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
        notes.append(
            f"{len(small)} of {len(counts)} environments have fewer than {least} rows{why} and were left out with their "
            f"{sum(counts[label] for label in small)} rows: {names} (change with --min-rows)."
        )
    return small


def refuse_few_environments(count: int, environment: str, least: int) -> None:
    """Refuse a table with fewer environments than a command needs."""
    if count < least:
        raise GyrostatError(
            f"environment {environment!r} has {count} values with enough rows, and {least} are needed: one is left out at a "
            "time, and methods compare those that remain. Use --min-rows or fewer features, or name another column."
        )


def refuse_constant_target(target: str, y: np.ndarray) -> None:
    """Refuse a target that has one value."""
    if len(y) and np.ptp(y) == 0:
        raise GyrostatError(f"target {target!r} is {y[0]:g} in every row: there is nothing to predict.")


def leakage_notes(X: pd.DataFrame, y: np.ndarray, labels: np.ndarray, target: str) -> list[str]:
    """A sentence for each feature that is nearly the target, within environments.

    >>> y = np.arange(6.0)
    >>> leakage_notes(pd.DataFrame({"copy": 2 * y, "x": [1.0, 5, 2, 8, 1, 3]}), y, np.repeat([0, 1], 3), "y")[0][:37]
    'copy is nearly y (correlation 1.0000)'
    """
    codes, _ = pd.factorize(np.asarray(labels))

    def centred(v: np.ndarray) -> np.ndarray:
        scaled = v / (np.abs(v).max() or 1.0)
        away = scaled - (np.bincount(codes, scaled) / np.bincount(codes))[codes]
        size = np.linalg.norm(away)
        return away / size if size > 1e-10 * np.linalg.norm(scaled) else 0 * away

    own = centred(y)
    return leakage_sentences({str(name): float(abs(own @ centred(X[name].to_numpy(np.float64)))) for name in X}, target)


def leakage_sentences(correlations: dict[str, float], target: str) -> list[str]:
    """A sentence for each feature whose correlation with the target, within environments, is nearly one."""
    return [
        f"{name} is nearly {target} (correlation {value:.4f}): if it is computed from it, or only known after it, leave it "
        f"out with --drop {name.partition('=')[0]}."
        for name, value in correlations.items()
        if value > NEARLY
    ]
