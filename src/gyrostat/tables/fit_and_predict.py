"""``gyrostat fit`` and ``gyrostat predict``: from a table to a model and its diagnostics, and from a model to predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators import InvariantLinearRegressor, InvariantQuadraticRegressor
from gyrostat.estimators.invariant.diagnosis import HeterogeneityReport, heterogeneity, shown_p
from gyrostat.tables.forest_plot import draw_forest
from gyrostat.tables.row_checks import (
    SPARE_ROWS,
    clean_columns,
    in_command_words,
    leakage_notes,
    parsed_orders,
    refuse_constant_target,
    with_enough_rows,
    without_constants,
)
from gyrostat.tables.rows_on_disk import RowsOnDisk, column_names, is_large, rows_on_disk
from gyrostat.tables.saved_model import KINDS, Column, SavedModel, column, feature_matrix, model_columns
from gyrostat.tables.summary_page import findings, percent, write_summary
from gyrostat.tables.table_files import NOTES, FileFormat, cannot_be_written, read_table

MODEL = "model.json"


@dataclass(frozen=True)
class ModelRows:
    """The rows of a table as input of a model: features, responses and labels, and the columns that they come from."""

    X: pd.DataFrame
    y: np.ndarray
    labels: np.ndarray
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    files: RowsOnDisk | None = None


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
    directions: str = "features",
    seed: int = 0,
    text_format: FileFormat = FileFormat(),  # noqa: B008  (immutable)
    ordered: Sequence[str] = (),
    min_rows: int | None = None,
    on_disk: bool = False,
) -> tuple[SavedModel, HeterogeneityReport]:
    """Fit the table in ``data``; write the model, ``heterogeneity.csv``, a forest plot and ``summary.html`` into ``out``."""
    errors.choice("kind", kind, KINDS)
    with _writing(out):  # an unwritable folder is refused before anything is computed
        out.mkdir(parents=True, exist_ok=True)
    checks: dict[str, Any] = {"ordered": ordered, "min_rows": min_rows, "adjust": adjust}
    if on_disk or is_large(data):
        rows = large_rows(data, target, environment, features, drop, missing, **checks)
    else:
        rows = rows_of_table(read_table(data, text_format), target, environment, features, drop, missing, **checks)
    for note in rows.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    report = heterogeneity(rows.X, rows.y, rows.labels, adjust=adjust, tolerance=tolerance, level=level)
    if kind == "linear":
        options = {"tolerance": tolerance, "level": level, "adjust": adjust, "directions": directions}
        fitted = _linear(rows, {**options, "random_state": seed})
    else:
        fitted = _quadratic(rows, {"tolerance": tolerance, "random_state": seed})
    about = {
        "gyrostat": __version__,
        "data": data.name,
        "rows": len(rows.y),
        "environments": len(pd.unique(rows.labels)),
        "out": str(out / MODEL),
        "adjust": adjust,
        "directions": directions,
        "seed": seed,
        "tolerance": tolerance,
        "level": level,
        **fitted.pop("about"),
    }
    model = SavedModel(kind, target, environment, rows.columns, about=about, **fitted)
    with _writing(out):
        model.write(out / MODEL)
        report.table().to_csv(out / "heterogeneity.csv")
        draw_forest(report, out / "forest")
        write_summary(out / "summary.html", report, model, out / "forest.svg")
    _print_report(console, report, model, out)
    if rows.files is not None:
        rows.files.close()
    return model, report


def predict(
    model: Path,
    data: Path,
    out: Path,
    console: Console,
    text_format: FileFormat = FileFormat(),  # noqa: B008  (immutable)
) -> np.ndarray:
    """Predict each row of ``data``, and write the column ``prediction`` of a CSV file."""
    saved = SavedModel.read(model / MODEL if model.is_dir() else model)
    frame = read_table(data, text_format)
    for note in frame.attrs[NOTES]:
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    values = saved.predict(frame)
    with _writing(out):
        pd.DataFrame({"row": np.arange(1, len(frame) + 1), "prediction": values}).to_csv(out, index=False)
    empty = int(np.isnan(values).sum())
    console.print(f"{len(values) - empty} predictions of {saved.target} in {out}", highlight=False)
    if empty:
        console.print(f"{empty} rows have missing values and therefore no prediction.", highlight=False)
    if saved.target in frame:
        y = pd.to_numeric(frame[saved.target], errors="coerce").to_numpy(np.float64)
        both = np.isfinite(y) & np.isfinite(values)
        if both.sum() > 1:
            error = float(np.sqrt(np.mean((y[both] - values[both]) ** 2)))
            console.print(
                f"Root mean square error {error:.4g}; standard deviation of {saved.target} {y[both].std():.4g}."
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
) -> ModelRows:
    """The chosen columns of a table, checked, as input of a model, and notes on what was left out or looks wrong."""
    column(frame, "--target", target), column(frame, "--environment", environment)
    names = _chosen_features(frame, target, environment, features, drop)
    orders = parsed_orders(ordered, list(frame.columns))
    frame = clean_columns(frame, [*names, target], left_as_words=list(orders))
    notes = list(frame.attrs[NOTES])
    frame = _complete_rows(frame, [*names, target, environment], missing)
    _refuse_one_environment(frame[environment], environment)
    columns = model_columns(frame, without_constants(frame, names, notes), orders)
    notes += [f"{c.name} has an order: {' < '.join(c.levels or ())}." for c in columns if c.kind == "ordered"]
    notes += [f"{c.name} holds dates and counts as days." for c in columns if c.kind == "date"]
    count = sum(len(c.features) for c in columns)
    least, why = (count + SPARE_ROWS, f" (for {count} features)") if adjust else (3, "")
    if min_rows is not None:
        least, why = max(errors.integer("--min-rows", min_rows, least=1), least), why if min_rows < least else ""
    frame = with_enough_rows(frame, environment, least, why, notes)
    (response,), labels = model_columns(frame, [target]), frame[environment].to_numpy()
    if response.kind in ("category", "ordered"):
        raise GyrostatError(
            f"target {target!r} must hold numbers; it holds words such as {(response.levels or '')[0]!r}."
        )
    X = pd.DataFrame(feature_matrix(frame, columns), columns=[name for c in columns for name in c.features])
    y = feature_matrix(frame, [response])[:, 0]
    refuse_constant_target(target, y)
    return ModelRows(X, y, labels, tuple(columns), (*notes, *leakage_notes(X, y, labels, target)))


def large_rows(
    data: Path,
    target: str,
    environment: str,
    features: str,
    drop: str,
    missing: str,
    *,
    ordered: Sequence[str] = (),
    min_rows: int | None = None,
    adjust: bool = True,
) -> ModelRows:
    """As :func:`rows_of_table`, with rows in files on disk: memory is needed for the largest environment only."""
    names = pd.DataFrame(columns=column_names(data))
    column(names, "--target", target), column(names, "--environment", environment)
    rows = rows_on_disk(
        data,
        target=target,
        environment=environment,
        features=_chosen_features(names, target, environment, features, drop),
        ordered=ordered,
        missing=missing,
        spare_rows=SPARE_ROWS if adjust else None,
        min_rows=3 if min_rows is None else errors.integer("--min-rows", min_rows, least=1),
    )
    refuse_constant_target(target, rows.y)
    notes = (*rows.notes, *leakage_notes(rows.X, rows.y, rows.labels, target))
    return ModelRows(rows.X, rows.y, rows.labels, rows.columns, notes, rows)


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


def _complete_rows(frame: pd.DataFrame, names: Sequence[str], missing: str) -> pd.DataFrame:
    """The rows without missing values in the columns ``names``; with ``missing="error"`` all rows must be complete."""
    errors.choice("missing", missing, ("error", "drop"))
    holes = frame[list(names)].isna()
    if not holes.any(axis=None):
        return frame
    if missing == "error":
        worst = holes.sum().idxmax()
        raise GyrostatError(
            f"{int(holes.any(axis=1).sum())} of {len(frame)} rows have missing values, most in column {worst!r} "
            f"({int(holes[worst].sum())}): use --missing drop to leave those rows out, or fill them with gyrostat impute."
        )
    complete = frame[~holes.any(axis=1)]
    if complete.empty:
        raise GyrostatError("every row has a missing value: leave out the columns that have most with --drop.")
    return complete


def _linear(rows: ModelRows, options: dict[str, Any]) -> dict[str, Any]:
    model, d = InvariantLinearRegressor(**options).fit(rows.X, rows.y, environments=rows.labels), rows.X.shape[1]
    return {
        "centre": np.zeros(d),
        "scale": np.ones(d),
        "coefficients": model.coef_,
        "intercept": model.intercept_,
        "about": {"status": model.status_},
    }


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
def _writing(out: Path) -> Iterator[None]:
    """Turn an error of the file system into one that names ``--out``."""
    try:
        yield
    except OSError as error:
        raise cannot_be_written("--out", out, error) from None


def _print_report(console: Console, report: HeterogeneityReport, model: SavedModel, out: Path) -> None:
    table = Table(title=f"{model.target} by {model.environment}", title_justify="left", pad_edge=False)
    for heading in ("feature", "mean effect", "variation", "p, all the same", "verdict", "reason"):
        table.add_column(heading, overflow="fold")
    for data, dim in ((report.features, "feature"), (report.directions, "direction")):
        for j in range(data.sizes[dim]):
            row = data.isel({dim: j})
            table.add_row(
                str(row[dim].item()),
                f"{row['mean'].item():.3g}",
                percent(row.variation.item()),
                shown_p(row.differ_p.item()),
                str(row.verdict.item()),
                str(row.reason.item()),
            )
    console.print(table)
    for sentence in findings(report, model):
        console.print(in_command_words(sentence), highlight=False)
    console.print(f"Model, table, forest plot and summary.html are in {out}", highlight=False)
