"""What is looked at in a table before a model is fitted to it: bad cells, constant columns, tiny environments, leakage."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.invariant.families import FAMILIES, outcome_kind
from gyrostat.estimators.invariant.outcomes_and_weights import unequal_shares
from gyrostat.tables.column_values import NOTES, as_numbers

NEARLY = 0.999
"""The correlation within environments with the target from which a feature is suspected to be computed from it."""
EXACTLY = 1e-5
"""The residual, as a share of the target, below which a target is computed from features."""
SPARE_ROWS = 4
"""The rows beyond one per feature that an environment needs, if effects are adjusted for each other."""
PYTHON_WORDS = {
    "adjust=True": "a fit without --alone",
    "use adjust=False": "use --alone",
    "directions='principal'": "--principal",
    "directions='features'": "--by-feature",
    "llow more variation (tolerance)": "llow more variation (--tolerance)",
    "predict with purpose='same-kind'": "use gyrostat predict --purpose same-kind",
    "cluster must have": "--cluster must have",
    "use family='poisson'": "use --family poisson",
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


def checked_family(
    family: str | None, y: np.ndarray, means: Callable[[], np.ndarray], target: str, notes: list[str]
) -> str:
    """The family of a fit; without one, 0/1 and counts are refused with the options to choose from.

    ``means`` gives the mean response of each environment; ``notes`` tell of amounts, and of shares of unequal levels.
    """
    if family == "binomial" and ((y < 0) | (y > 1)).any():
        raise GyrostatError(
            f"--family binomial needs a target from 0 to 1 (0/1 or shares); {target!r} goes from {y.min():g} to {y.max():g}: "
            "recode it, divide percentages by 100, or use another family."
        )
    if family is not None:
        return errors.choice("--family", family, FAMILIES)
    kind = outcome_kind(y)
    if kind == "binary":
        raise GyrostatError(
            f"target {target!r} holds only two values: use --family binomial (effects on the log-odds, which do not follow "
            "base rates), or --family gaussian to take them as the numbers 0 and 1."
        )
    if kind == "two values":
        raise GyrostatError(
            f"target {target!r} holds only {y.min():g} and {y.max():g}: write them as 0 and 1 and use --family binomial "
            "(effects on the log-odds, which do not follow base rates), or use --family gaussian to take them as numbers."
        )
    if kind == "count":
        raise GyrostatError(
            f"target {target!r} looks like counts: use --family poisson (effects on the logarithm, which do not follow base "
            "rates), or --family gaussian to take them as numbers."
        )
    shares = unequal_shares(y, means)
    if shares:
        notes.append(shares.sentence(target, "--family {}"))
    if kind == "skewed" and (shares is None or shares.top > 1):
        notes.append(
            f"{target} is never below zero and has a long tail, as durations and amounts have: --family poisson estimates "
            "relative effects. Censored durations need survival analysis, which gyrostat does not offer."
        )
    return "gaussian"


CODES = tuple(sign * (10**digits - 1) for digits in (2, 3, 4, 5) for sign in (1, -1))
"""Numbers that stand for missing values in many tables."""


BELOW_ZERO = (-1.0, -7.0, -8.0, -9.0)
"""The same in surveys, in columns that are otherwise never below zero."""


def missing_code_notes(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """A sentence for each column of numbers that holds such a code, several times and far from its other values.

    >>> missing_code_notes(pd.DataFrame({"dose": [1.0, 2, 3, 4, 999, 999]}), ["dose"])[0][:54]
    'dose is 999 in 2 rows, and from 1 to 4 in all others: '
    """
    found = []
    for name in names:
        if not pd.api.types.is_numeric_dtype(frame[name]) or pd.api.types.is_bool_dtype(frame[name]):
            continue
        values = frame[name].dropna()
        for code in (float(values.min()), float(values.max())) if len(values) else ():
            others, count = values[values != code], int((values == code).sum())
            if code not in (*CODES, *BELOW_ZERO) or count < 2 or others.nunique() < 3:
                continue
            low, high = float(others.min()), float(others.max())
            below = code in BELOW_ZERO and low >= 0 and others.nunique() > 10
            if below or (code in CODES and min(abs(code - low), abs(code - high)) > high - low):
                found.append(
                    f"{name} is {code:g} in {count} rows, and from {low:g} to {high:g} in all others: if {code:g} stands for a "
                    f"missing value, use --empty {name}={code:g}."
                )
    return found


def repeated_row_notes(frame: pd.DataFrame) -> list[str]:
    """A sentence if rows are copies of others, in a table in which this is no chance: one with a column of many values.

    >>> frame = pd.DataFrame({"x": [0.1, 0.2, 0.3, 0.1], "y": [1, 2, 3, 1]})
    >>> repeated_row_notes(frame)
    ['1 row is an exact copy of another one (first: row 4): delete copies that were made by mistake.']
    """
    many = any(frame[name].nunique() > 0.5 * len(frame) for name in frame if frame[name].dtype.kind == "f")
    copies = np.flatnonzero(frame.duplicated().to_numpy()) if many else np.zeros(0)
    if not copies.size:
        return []
    counted = (
        "1 row is an exact copy of another one"
        if copies.size == 1
        else f"{copies.size} rows are exact copies of others"
    )
    return [f"{counted} (first: row {int(copies[0]) + 1}): delete copies that were made by mistake."]


def without_row_numbers(frame: pd.DataFrame, names: list[str], notes: list[str]) -> list[str]:
    """The columns without those that count the rows of the file one by one, which are named in ``notes``.

    >>> notes = []
    >>> without_row_numbers(pd.DataFrame({"id": np.arange(20) + 1, "x": 0.0}), ["id", "x"], notes), notes[0][:40]
    (['x'], 'id counts the rows of the file and was l')
    """

    def counts_rows(values: pd.Series) -> bool:
        return values.dtype.kind in "iu" and len(values) > 10 and bool((np.diff(values.to_numpy()) == 1).all())

    found = [name for name in names if counts_rows(frame[name])]
    if not found or len(found) == len(names):
        return names
    notes.extend(f"{name} counts the rows of the file and was left out (--features keeps it)." for name in found)
    return [name for name in names if name not in found]


def row_number_notes(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """A sentence for each column that only numbers the rows.

    >>> row_number_notes(pd.DataFrame({"id": np.arange(20, 0, -1)}), ["id"])
    ['id only numbers the rows: leave it out with --drop id.']
    """
    found = []
    for name in names:
        values = frame[name]
        if values.dtype.kind in "iu" and len(values) > 10 and values.is_unique and np.ptp(values) == len(values) - 1:
            found.append(f"{name} only numbers the rows: leave it out with --drop {name}.")
    return found


def spelling_notes(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """A sentence for each column in which one word is spelt in several ways (capitals, blanks), or yes and no are.

    >>> spelling_notes(pd.DataFrame({"site": ["Oslo", "OSLO", "Bern"]}), ["site"])[0][:49]
    "site: 'OSLO' and 'Oslo' differ only in capitals a"
    """
    found = []
    for name in names:
        words = sorted({word for word in frame[name].dropna().unique() if isinstance(word, str)})
        alike: dict[str, list[str]] = {}
        for word in words:
            alike.setdefault(" ".join(unicodedata.normalize("NFKC", word).casefold().split()), []).append(word)
        found += _yes_and_no_notes(name, list(alike))
        if twice := next((group for group in alike.values() if len(group) > 1), None):
            found.append(
                f"{name}: {twice[0]!r} and {twice[1]!r} differ only in {_difference(*twice[:2])} and count as different: "
                f"{len(words)} values would be {len(alike)}. Write them alike if they are the same."
            )
    return found


YES, NO = ("yes", "y", "true", "t", "1", "1.0"), ("no", "n", "false", "f", "0", "0.0")


def _yes_and_no_notes(name: str, words: list[str]) -> list[str]:
    """A sentence if a column says yes, or no, in several ways."""
    if not set(words) <= {*YES, *NO}:
        return []
    for same in (YES, NO):
        if len(ways := [word for word in same if word in words]) > 1:
            return [f"{name}: {ways[0]!r} and {ways[1]!r} count as different: write them alike if they mean the same."]
    return []


def _difference(first: str, second: str) -> str:
    return "capitals" if first.casefold() == second.casefold() else "blanks or accents"


def without_constant_responses(
    frame: pd.DataFrame, target: str, environment: str, least: int, notes: list[str]
) -> pd.DataFrame:
    """The rows of environments in which the target varies; the other environments, which show no effect, are named."""
    values = frame.groupby(environment, observed=True)[target].nunique()
    flat = [label for label, count in values.items() if count < 2]
    if not flat or len(values) - len(flat) < least:
        return frame
    shown = ", ".join(map(str, flat[:5])) + (f" and {len(flat) - 5} more" if len(flat) > 5 else "")
    notes.append(
        f"{target} is the same in all rows of {_counted(len(flat), 'environment')}, which cannot show an effect and "
        f"{_was(len(flat))} left out: {shown}."
    )
    return frame[~frame[environment].isin(flat)]


def _counted(count: int, noun: str) -> str:
    """A number and a noun.

    >>> _counted(1, "row"), _counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


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
    told = [
        f"{_counted(count, 'cell')} of {name} {'holds' if count == 1 else 'hold'} a word for a missing value"
        for name, count in empty.items()
        if count
    ]
    result = frame.assign(**cleaned)
    result.attrs[NOTES] = [
        *frame.attrs.get(NOTES, []),
        *(f"{text} and {'counts' if text.startswith('1 ') else 'count'} as empty." for text in told),
    ]
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
    least, why = (features + SPARE_ROWS, f" (for {_counted(features, 'feature')})") if adjust else (3, "")
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
        fewer = (
            "use fewer features (--features, --drop), or gyrostat fit --alone" if why else "use a smaller --min-rows"
        )
        raise GyrostatError(f"fewer than two values of {environment!r} have at least {least} rows{why}: {fewer}.")
    if small:
        names = ", ".join(map(str, small[:5])) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
        rows = _counted(sum(counts[label] for label in small), "row")
        remedy = "fewer features need fewer rows" if why else "change with --min-rows"
        notes.append(
            f"{len(small)} of {len(counts)} environments {'has' if len(small) == 1 else 'have'} fewer than {least} rows{why} "
            f"and {_was(len(small))} left out with {rows}: {names} ({remedy})."
        )
    return small


def refuse_few_environments(count: int, environment: str, least: int) -> None:
    """Refuse a table with fewer environments than a command needs."""
    if count < least:
        raise GyrostatError(
            f"environment {environment!r} has {count} values with enough rows, and {least} are needed: one is left out at a "
            "time, and methods compare those that remain. Use fewer features or a smaller --min-rows, or name another column."
        )


def refuse_constant_target(target: str, y: np.ndarray) -> None:
    """Refuse a target that has one value."""
    if len(y) and np.ptp(y) == 0:
        raise GyrostatError(f"target {target!r} is {y[0]:g} in every row: there is nothing to predict.")


def leakage_notes(X: pd.DataFrame, y: np.ndarray, labels: np.ndarray, target: str) -> list[str]:
    """A sentence for each feature that is nearly the target, within environments, or for features that together are.

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

    own, others = centred(y), np.stack([centred(X[name].to_numpy(np.float64)) for name in X], axis=1)
    single = dict(zip(map(str, X), np.abs(own @ others).tolist(), strict=True))
    return leakage_sentences(single, target) or _joint_leakage(own, others, list(single), target)


def _joint_leakage(own: np.ndarray, others: np.ndarray, names: list[str], target: str) -> list[str]:
    """A sentence if the target is computed from several features: nothing remains of it beside them."""
    weights = np.linalg.lstsq(others, own, rcond=None)[0]
    if np.linalg.norm(own) == 0 or np.linalg.norm(own - others @ weights) > EXACTLY:
        return []
    parts = [name for name, weight in zip(names, weights, strict=True) if abs(weight) > 100 * EXACTLY]
    return [
        f"{target} is computed from {', '.join(parts[:5])}{' and others' if len(parts) > 5 else ''} without any error: if "
        "these are its parts, or only known after it, leave them out with --drop."
    ]


def leakage_sentences(correlations: dict[str, float], target: str) -> list[str]:
    """A sentence for each feature whose correlation with the target, within environments, is nearly one."""
    return [
        f"{name} is nearly {target} (correlation {value:.4f}): if it is computed from it, or only known after it, leave it "
        f"out with --drop {name.partition('=')[0]}."
        for name, value in correlations.items()
        if value > NEARLY
    ]
