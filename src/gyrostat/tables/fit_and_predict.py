"""``gyrostat fit`` and ``gyrostat predict``: from a table to a model and its diagnostics, and from a model to predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor, InvariantQuadraticRegressor
from gyrostat.estimators.comparison.leave_one_out import deployment_sentences
from gyrostat.estimators.invariant.diagnosis import HeterogeneityReport, heterogeneity, heterogeneity_of_parts
from gyrostat.estimators.invariant.labelled_effects import with_coefficients
from gyrostat.estimators.invariant.outcomes_and_weights import environment_means
from gyrostat.estimators.invariant.purposes import EVERYWHERE, LEAST_SQUARES
from gyrostat.estimators.invariant.rows_in_parts import RowsInParts
from gyrostat.tables.column_values import NOTES, is_text, shown_order, stripped
from gyrostat.tables.dates import date_notes
from gyrostat.tables.forest_plot import draw_forest
from gyrostat.tables.row_checks import (
    checked_family,
    clean_columns,
    cluster_notes,
    in_command_words,
    leakage_notes,
    leakage_sentences,
    least_rows,
    missing_code_notes,
    parsed_orders,
    refuse_constant_target,
    refuse_few_environments,
    repeated_row_notes,
    row_number_notes,
    small_environments,
    spelling_notes,
    with_enough_rows,
    without_constant_responses,
    without_constants,
    without_named,
    without_row_numbers,
)
from gyrostat.tables.rows_on_disk import RowsOnDisk, files_of_parts, part_notes
from gyrostat.tables.saved_model import KINDS, Column, SavedModel, column, feature_matrix, model_columns
from gyrostat.tables.summary_page import compared, findings, write_summary
from gyrostat.tables.table_files import cannot_be_written, read_table
from gyrostat.tables.table_parts import column_names, is_large, table_parts
from gyrostat.tables.text_files import FileFormat

MODEL = "model.json"
WORDS = {EVERYWHERE: "what holds everywhere", LEAST_SQUARES: "least squares"}


@dataclass(frozen=True)
class ModelRows:
    """The rows of a table as input of a model: features, responses and labels, and the columns that they come from.

    Of rows in ``parts``, X has no rows, y is a sample, and there is one label for each environment.
    """

    X: pd.DataFrame
    y: np.ndarray
    labels: np.ndarray
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    files: RowsOnDisk | None = None
    parts: RowsInParts | None = None
    clusters: np.ndarray | None = None
    family: str = "gaussian"
    row_numbers: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y) if self.parts is None else sum(found.count for found in self.parts.sums.values())

    def response_means(self) -> np.ndarray:
        """The mean response of each environment."""
        return environment_means(self.y, self.labels) if self.parts is None else self.parts.response_means()


def fit(
    data: Path,
    *,
    target: str,
    environment: str,
    out: Path,
    console: Console,
    features: str = "",
    drop: str = "",
    kind: str = "linear",
    tolerance: float = 0.5,
    level: float = 0.01,
    adjust: bool = True,
    missing: str = "error",
    family: str | None = None,
    cluster: str | None = None,
    directions: str = "auto",
    seed: int = 0,
    text_format: FileFormat = FileFormat(),  # noqa: B008  (immutable)
    ordered: Sequence[str] = (),
    min_rows: int | None = None,
    in_parts: bool = False,
) -> tuple[SavedModel, HeterogeneityReport]:
    """Fit the table in ``data``; write the model, ``heterogeneity.csv``, a forest plot and ``summary.html`` into ``out``."""
    errors.choice("kind", kind, KINDS)
    with writing(out):  # an unwritable folder is refused before anything is computed
        out.mkdir(parents=True, exist_ok=True)
    checks: dict[str, Any] = {"ordered": ordered, "min_rows": min_rows, "adjust": adjust}
    if in_parts or is_large(data):
        if cluster is not None:
            raise GyrostatError(
                "--cluster needs the whole table in memory: leave out --in-parts, or take fewer columns."
            )
        if text_format.empty:
            raise GyrostatError(
                "--empty needs the whole table in memory: leave out --in-parts, or empty those cells in the file."
            )
        # Least squares read rows a few times; other models read them many times, from files.
        on_disk = kind != "linear" or family not in (None, "gaussian")
        rows = rows_of_large_table(data, target, environment, features, drop, missing, on_disk=on_disk, **checks)
    else:
        labels = (environment,) if cluster is None else (environment, cluster)
        frame = read_table(data, replace(text_format, labels=labels))
        rows = rows_of_table(frame, target, environment, features, drop, missing, cluster=cluster, **checks)
    rows = _with_family(rows, family, target)
    for note in rows.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    options: dict[str, Any] = {"tolerance": tolerance, "level": level, "adjust": adjust, "family": rows.family}
    if rows.parts is not None:
        report = heterogeneity_of_parts(rows.parts, feature_names=list(rows.X), **options)
    else:
        report = heterogeneity(
            rows.X, rows.y, rows.labels, cluster=rows.clusters, row_numbers=rows.row_numbers, **options
        )
    if kind == "linear":
        fitted, report = _linear(rows, {**options, "directions": directions, "random_state": seed}, report)
    else:
        fitted = _quadratic(rows, {"tolerance": tolerance, "random_state": seed})
    about = {
        "gyrostat": __version__,
        "data": data.name,
        "rows": len(rows),
        "environments": len(pd.unique(rows.labels)),
        "out": str(out / MODEL),
        "adjust": adjust,
        "directions": directions,
        "seed": seed,
        "cluster": cluster,
        "tolerance": tolerance,
        "level": level,
        **fitted.pop("about"),
    }
    model = SavedModel(kind, target, environment, rows.columns, about=about, **fitted)
    uses: tuple[str, ...] = (_prediction_sentence(model),) if kind == "linear" else ()
    if kind == "linear" and rows.family == "gaussian" and adjust and rows.files is None and rows.parts is None:
        uses += deployment_sentences(rows.X, rows.y, rows.labels, tolerance=tolerance, directions=directions, seed=seed)
    with writing(out):
        model.write(out / MODEL)
        report.table().to_csv(out / "heterogeneity.csv")
        draw_forest(report, out / "forest")
        write_summary(out / "summary.html", report, model, out / "forest.svg", notes=rows.notes, uses=uses)
    _print_report(console, report, model, out)
    for sentence in uses:
        console.print(sentence, highlight=False, soft_wrap=True)
    if rows.files is not None:
        rows.files.close()
    return model, report


def predict(
    model: Path,
    data: Path,
    out: Path,
    console: Console,
    text_format: FileFormat = FileFormat(),  # noqa: B008  (immutable)
    purpose: str = "best",
) -> np.ndarray:
    """Predict each row of ``data`` for a ``purpose``, and write the column ``prediction`` of a CSV file."""
    saved = SavedModel.read(model / MODEL if model.is_dir() else model)
    frame = read_table(data, text_format)
    for note in frame.attrs[NOTES]:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    values = saved.predict(frame, purpose)
    if purpose == "best" and saved.kind == "linear":
        console.print(f"Predictions use {WORDS[saved.best_purpose]} (--purpose {saved.best_purpose}).", highlight=False)
    if purpose == "worst-case" and saved.family != "gaussian":
        console.print(
            f"A {saved.family} model has no other predictions for worst-case than for everywhere.", highlight=False
        )
    with writing(out):
        pd.DataFrame({"row": np.arange(1, len(frame) + 1), "prediction": values}).to_csv(out, index=False)
    empty = int(np.isnan(values).sum())
    console.print(f"{len(values) - empty} predictions of {saved.target} in {out}", highlight=False)
    if empty:
        console.print(f"{empty} rows have missing values and therefore no prediction.", highlight=False)
    if saved.target in frame:
        y = pd.to_numeric(frame[saved.target], errors="coerce").to_numpy(np.float64)
        both = np.isfinite(y) & np.isfinite(values)
        if both.sum() > 1:
            error, spread = float(np.sqrt(np.mean((y[both] - values[both]) ** 2))), float(y[both].std())
            worse = " The mean of these rows would be a better prediction." if error > spread else ""
            console.print(
                f"Root mean square error {error:.4g}; standard deviation of {saved.target} {spread:.4g}.{worse}",
                highlight=False,
                soft_wrap=True,
            )
    return values


def rows_of_table(
    frame: pd.DataFrame,
    target: str,
    environment: str,
    features: str,
    drop: str,
    missing: str,
    *,
    ordered: Sequence[str] = (),
    min_rows: int | None = None,
    adjust: bool = True,
    cluster: str | None = None,
    least_environments: int = 2,
) -> ModelRows:
    """The chosen columns of a table, checked, as input of a model, and notes on what was left out or looks wrong."""
    column(frame, "--target", target), column(frame, "--environment", environment)
    if cluster is not None:
        column(frame, "--cluster", cluster)
    names = [n for n in _chosen_features(frame, target, environment, features, drop) if n != cluster]
    orders = parsed_orders(ordered, list(frame.columns))
    frame = clean_columns(frame, [*names, target], left_as_words=list(orders))
    notes = [*frame.attrs[NOTES], *repeated_row_notes(frame)]
    names = without_row_numbers(frame, names, notes) if not features else names
    notes += row_number_notes(frame, names)
    frame = frame.set_axis(np.arange(1, len(frame) + 1), axis=0)  # rows keep the number they have in the file
    frame[environment] = stripped(frame[environment])
    frame = _complete_rows(
        frame, [*names, target, environment, *([cluster] if cluster else [])], missing, target, notes
    )
    notes += [*missing_code_notes(frame, [*names, target]), *spelling_notes(frame, [environment, *names])]
    if cluster is None:
        notes += cluster_notes(frame, names, environment)
    _refuse_one_environment(frame[environment], environment)
    columns = model_columns(frame, without_constants(frame, names, notes), orders)
    notes += [f"{c.name} has an order: {shown_order(c.levels or ())}." for c in columns if c.kind == "ordered"]
    for c in (c for c in columns if c.kind == "date"):
        notes.append(" ".join([f"{c.name} holds dates and counts as days.", *date_notes(frame[c.name])]))
    least, why = least_rows(sum(len(c.features) for c in columns), min_rows, adjust=adjust)
    frame = with_enough_rows(frame, environment, least, why, notes)
    frame = without_constant_responses(frame, target, environment, least_environments, notes)
    refuse_few_environments(frame[environment].nunique(), environment, least_environments)
    response, labels = _response_column(frame, target), frame[environment].to_numpy()
    y = _response(frame, response, notes)
    numbers = frame.index.to_numpy()
    X = pd.DataFrame(feature_matrix(frame, columns, numbers), columns=[name for c in columns for name in c.features])
    refuse_constant_target(target, y)
    clusters = None if cluster is None else frame[cluster].astype(str).to_numpy()
    notes += leakage_notes(X, y, labels, target)
    return ModelRows(X, y, labels, tuple(columns), tuple(notes), clusters=clusters, row_numbers=numbers)


def _response_column(frame: pd.DataFrame, target: str) -> Column:
    words = frame[target].dropna().unique() if is_text(frame[target]) else ()
    if len(words) > 2:
        raise GyrostatError(
            f"target {target!r} must hold numbers, or two words; it holds {len(words)} different words such as "
            f"{errors.shown(words[0])}: if these have an order, write them as numbers."
        )
    return model_columns(frame, [target])[0]


def _response(frame: pd.DataFrame, response: Column, notes: list[str]) -> np.ndarray:
    """The responses as numbers; of two words, the second in the alphabet is 1."""
    if response.kind in ("category", "ordered"):
        levels = response.levels or ()
        if len(levels) != 2:
            raise GyrostatError(f"target {response.name!r} must hold numbers; it holds words such as {levels[0]!r}.")
        notes.append(f"{response.name}: {levels[1]} counts as 1, and {levels[0]} as 0.")
    return feature_matrix(frame, [response])[:, 0]


def _with_family(rows: ModelRows, family: str | None, target: str) -> ModelRows:
    notes = list(rows.notes)
    family = checked_family(family, rows.y, rows.response_means, target, notes)
    return replace(rows, family=family, notes=tuple(notes))


def rows_of_large_table(
    data: Path,
    target: str,
    environment: str,
    features: str,
    drop: str,
    missing: str,
    *,
    on_disk: bool,
    ordered: Sequence[str] = (),
    min_rows: int | None = None,
    adjust: bool = True,
) -> ModelRows:
    """As :func:`rows_of_table`, with rows in files on disk, or (nothing is written) in row groups that are read one at a time.

    With files, memory is needed for the largest environment only.
    """
    names = pd.DataFrame(columns=column_names(data))
    column(names, "--target", target), column(names, "--environment", environment)
    parts = table_parts(
        data,
        target=target,
        environment=environment,
        features=_chosen_features(names, target, environment, features, drop),
        ordered=ordered,
        missing=missing,
    )
    rows = RowsInParts(parts)
    refuse_constant_target(target, rows.responses)
    notes, constant = part_notes(parts), np.array(parts.feature_names)[rows.constant_features()]
    flat = [c.name for c in parts.columns if np.isin(c.features, constant).all()]
    kept = without_named([c.name for c in parts.columns], flat, notes)
    columns = tuple(c for c in parts.columns if c.name in kept)
    rows.use(np.concatenate([np.full(len(c.features), c.name in kept) for c in parts.columns]))
    least, why = least_rows(rows.num_features, min_rows, adjust=adjust)
    counts = {label: found.count for label, found in rows.sums.items()}
    rows.leave_out(small_environments(counts, environment, least, why, notes))
    X = pd.DataFrame(columns=[name for c in columns for name in c.features], dtype=np.float64)
    notes += leakage_sentences(dict(zip(X, np.abs(rows.correlations()), strict=True)), target)
    if on_disk:
        parts.columns = columns
        return _in_files(files_of_parts(parts, {label: counts[label] for label in rows.environments}, notes))
    return ModelRows(X, rows.responses, np.array(rows.environments, dtype=object), columns, tuple(notes), parts=rows)


def _in_files(rows: RowsOnDisk) -> ModelRows:
    return ModelRows(rows.X, rows.y, rows.labels, rows.columns, rows.notes, files=rows, row_numbers=rows.row_numbers)


def _refuse_one_environment(labels: pd.Series, environment: str) -> None:
    if labels.nunique() < 2:
        raise GyrostatError(
            f"environment {environment!r} has only one value, {errors.shown(labels.iloc[0])}: name a column with several."
        )


def _chosen_features(frame: pd.DataFrame, target: str, environment: str, features: str, drop: str) -> list[str]:
    def listed(option: str, text: str) -> list[str]:
        return [errors.choice(option, name.strip(), frame.columns) for name in text.split(",") if name.strip()]

    left_out = [target, environment, *listed("--drop", drop)]
    names = [name for name in (listed("--features", features) or frame.columns) if name not in left_out]
    if not names:
        raise GyrostatError(
            f"no feature is left in addition to target {target!r} and environment {environment!r}: name some with --features."
        )
    return names


def _complete_rows(
    frame: pd.DataFrame, names: Sequence[str], missing: str, target: str, notes: list[str]
) -> pd.DataFrame:
    """The rows without missing values in the columns ``names``, with a note; with ``missing="error"`` they must be all."""
    errors.choice("missing", missing, ("error", "drop"))
    holes = frame[list(names)].isna()
    if not holes.any(axis=None):
        return frame
    if missing == "error":
        worst, others = holes.sum().idxmax(), holes.drop(columns=target).any(axis=None)
        fill = f", or fill columns other than {target!r} with gyrostat impute" if others else ""
        raise GyrostatError(
            f"{int(holes.any(axis=1).sum())} of {len(frame)} rows have missing values, most in column {worst!r} "
            f"({int(holes[worst].sum())}): use --missing drop to leave those rows out{fill}."
        )
    complete = frame[~holes.any(axis=1)]
    if complete.empty:
        raise GyrostatError("every row has a missing value: leave out the columns that have most with --drop.")
    notes.append(f"{len(frame) - len(complete)} of {len(frame)} rows have missing values and were left out.")
    return complete


def _linear(
    rows: ModelRows, options: dict[str, Any], report: HeterogeneityReport
) -> tuple[dict[str, Any], HeterogeneityReport]:
    """The parts of a saved model, and the report with its coefficients."""
    model = InvariantLinearRegressor(**options)
    if rows.parts is not None:
        model.fit_parts(rows.parts)
    else:
        model.fit(rows.X, rows.y, environments=rows.labels, cluster=rows.clusters)
    worst_coef, worst_intercept = model.coefficients("worst-case")
    features = with_coefficients(report.features, model, report.features.attrs["confidence"])
    parts = {
        "centre": np.zeros(rows.X.shape[1]),
        "scale": np.ones(rows.X.shape[1]),
        "coefficients": model.coef_,
        "standard_errors": [None if np.isnan(x) else float(x) for x in model.coef_se_],
        "family": rows.family,
        "intercept": model.intercept_,
        "best_purpose": model.best_purpose_,
        "least_squares": None,
        "same_kind": {"intercept": model.same_kind_intercept_, "coefficients": model.same_kind_coef_},
        "worst_case": {"intercept": worst_intercept, "coefficients": worst_coef},
        "about": {
            "status": model.status_,
            "combined": model.combined_,
            "left_out_errors": model.left_out_errors_,
        },
    }
    if rows.family == "gaussian":
        coefficients, intercept = model.coefficients(LEAST_SQUARES)
        parts["least_squares"] = {"intercept": intercept, "coefficients": coefficients}
    return parts, replace(report, features=features)


def _quadratic(rows: ModelRows, options: dict[str, Any]) -> dict[str, Any]:
    centre, scale = rows.X.mean().to_numpy(), rows.X.std(ddof=0).replace(0, 1).to_numpy()
    model = InvariantQuadraticRegressor(**options).fit(
        (rows.X.to_numpy() - centre) / scale, rows.y, environments=rows.labels
    )
    directions = {name: getattr(model, name + "_").T for name in ("invariant_directions", "spurious_directions")}
    return {
        "centre": centre,
        "scale": scale,
        "matrix": model.matrix_,
        "intercept": model.intercept_,
        "about": {"status": model.status_, **directions},
    }


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Turn an error of the file system into one that names ``--out``."""
    try:
        yield
    except OSError as error:
        raise cannot_be_written("--out", out, error) from None


def _prediction_sentence(model: SavedModel) -> str:
    """What predictions use by default, and the errors that say so."""
    known = model.about["left_out_errors"]
    if not known:
        return (
            "Predictions use what holds everywhere. Errors in environments left out are not known: they need three "
            "environments and the family gaussian."
        )
    (other,) = WORDS.keys() - {model.best_purpose}
    return (
        f"Error in environments left out: {known[EVERYWHERE]:.4g} by what holds everywhere, {known[LEAST_SQUARES]:.4g} by "
        f"least squares. Predictions use {WORDS[model.best_purpose]}; --purpose {other} asks for {WORDS[other]}."
    )


def _print_report(console: Console, report: HeterogeneityReport, model: SavedModel, out: Path) -> None:
    table = Table(title=f"{model.target} by {model.environment}", title_justify="left", pad_edge=False)
    interval = f"mean effect ({report.features.attrs['confidence']:.0%} interval)"
    for heading in ("feature", interval, "variation", "p (same effect)", "verdict", "reason"):
        table.add_column(heading, overflow="fold")
    for data, dim in ((report.features, "feature"), (report.directions, "direction")):
        for j in range(data.sizes[dim]):
            row = data.isel({dim: j})
            table.add_row(
                str(row[dim].item()),
                *compared(row),
                str(row.verdict.item()),
                str(row.reason.item()),
            )
    console.print(table)
    for sentence in findings(report, model):
        console.print(in_command_words(sentence), highlight=False)
    console.print(f"Model, table, forest plot and summary.html are in {out}", highlight=False)
