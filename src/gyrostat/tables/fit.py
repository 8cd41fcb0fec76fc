"""``gyrostat fit`` and ``gyrostat predict``: from a table to a model with its diagnostics, and from both to predictions."""

from __future__ import annotations

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
from gyrostat.tables.forest_plot import draw
from gyrostat.tables.model_files import KINDS, SavedModel
from gyrostat.tables.reading import Column, column, columns_of, complete, matrix, read_table
from gyrostat.tables.summary_page import said, write_summary

MODEL = "model.json"


@dataclass(frozen=True)
class Rows:
    """The rows of a table as a model sees them: features, responses and labels, and the columns that they come from."""

    X: pd.DataFrame
    y: np.ndarray
    labels: np.ndarray
    columns: tuple[Column, ...]


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
) -> tuple[SavedModel, HeterogeneityReport]:
    """Fit the table in ``data``; the model, ``heterogeneity.csv``, the forest plot and ``summary.html`` go into ``out``."""
    errors.choice("kind", kind, KINDS)
    _written(lambda: out.mkdir(parents=True, exist_ok=True), out)  # before anything is computed
    rows = rows_of_table(read_table(data), target, environment, features, drop, missing)
    found = heterogeneity(rows.X, rows.y, rows.labels, adjust=adjust, tolerance=tolerance, level=level)
    if kind == "linear":
        options = {"tolerance": tolerance, "level": level, "adjust": adjust, "directions": directions}
        made = _linear(rows, {**options, "random_state": seed})
    else:
        made = _quadratic(rows, {"tolerance": tolerance, "random_state": seed})
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
        **made.pop("about"),
    }
    model = SavedModel(kind, target, environment, rows.columns, about=about, **made)
    _write(out, model, found)
    _show(console, found, model, out)
    return model, found


def predict(model: Path, data: Path, out: Path, console: Console) -> np.ndarray:
    """Predictions for every row of ``data``, as a column ``prediction`` of a CSV file."""
    saved = SavedModel.read(model / MODEL if model.is_dir() else model)
    frame = read_table(data)
    values = saved.predict(frame)
    _written(
        lambda: pd.DataFrame({"row": np.arange(1, len(frame) + 1), "prediction": values}).to_csv(out, index=False), out
    )
    empty = int(np.isnan(values).sum())
    console.print(f"{len(values) - empty} predictions of {saved.target} in {out}", highlight=False)
    if empty:
        console.print(f"{empty} rows have missing values, and no prediction.", highlight=False)
    if saved.target in frame:
        y = pd.to_numeric(frame[saved.target], errors="coerce").to_numpy(np.float64)
        both = np.isfinite(y) & np.isfinite(values)
        if both.sum() > 1:
            error = float(np.sqrt(np.mean((y[both] - values[both]) ** 2)))
            console.print(
                f"Root mean square error {error:.4g}; standard deviation of {saved.target} {y[both].std():.4g}."
            )
    return values


def rows_of_table(frame: pd.DataFrame, target: str, environment: str, features: str, drop: str, missing: str) -> Rows:
    """What is asked for of the table, checked."""
    column(frame, "target", target), column(frame, "environment", environment)
    names = _chosen(frame, target, environment, features, drop)
    frame = complete(frame, [*names, target, environment], missing)
    columns, labels, (y,) = columns_of(frame, names), frame[environment].to_numpy(), columns_of(frame, [target])
    if len(pd.unique(labels)) < 2:
        raise GyrostatError(
            f"environment {environment!r} has one value only, {errors.shown(labels[0])}: name a column that tells places apart."
        )
    if y.levels is not None:
        raise GyrostatError(f"target {target!r} must hold numbers; it holds words such as {y.levels[0]!r}.")
    X = pd.DataFrame(matrix(frame, columns), columns=[name for c in columns for name in c.features])
    return Rows(X, matrix(frame, [y])[:, 0], labels, tuple(columns))


def _chosen(frame: pd.DataFrame, target: str, environment: str, features: str, drop: str) -> list[str]:
    def listed(option: str, text: str) -> list[str]:
        return [errors.choice(option, name.strip(), frame.columns) for name in text.split(",") if name.strip()]

    left = [target, environment, *listed("drop", drop)]
    names = [name for name in (listed("features", features) or frame.columns) if name not in left]
    if not names:
        raise GyrostatError(
            f"no feature is left beside target {target!r} and environment {environment!r}: name some with --features."
        )
    return names


def _linear(rows: Rows, options: dict[str, Any]) -> dict[str, Any]:
    model, d = InvariantLinearRegressor(**options).fit(rows.X, rows.y, environments=rows.labels), rows.X.shape[1]
    return {
        "centre": np.zeros(d),
        "scale": np.ones(d),
        "coefficients": model.coef_,
        "intercept": model.intercept_,
        "about": {"status": model.status_},
    }


def _quadratic(rows: Rows, options: dict[str, Any]) -> dict[str, Any]:
    centre, scale = rows.X.mean().to_numpy(), rows.X.std(ddof=0).replace(0, 1).to_numpy()
    model = InvariantQuadraticRegressor(**options).fit(
        (rows.X.to_numpy() - centre) / scale, rows.y, environments=rows.labels
    )
    found = {name: getattr(model, name + "_").T for name in ("invariant_directions", "spurious_directions")}
    return {
        "centre": centre,
        "scale": scale,
        "matrix": model.matrix_,
        "intercept": model.intercept_,
        "about": {"status": model.status_, **found},
    }


def _write(out: Path, model: SavedModel, found: HeterogeneityReport) -> None:
    def everything() -> None:
        model.write(out / MODEL)
        found.table().to_csv(out / "heterogeneity.csv")
        draw(found, out / "forest")
        write_summary(out / "summary.html", found, model, out / "forest.svg")

    _written(everything, out)


def _written(write: Any, out: Path) -> None:
    try:
        write()
    except OSError as error:
        raise GyrostatError(f"--out {str(out)!r} cannot be written ({error.strerror}): choose another place.") from None


def _show(console: Console, found: HeterogeneityReport, model: SavedModel, out: Path) -> None:
    table = Table(title=f"{model.target} by {model.environment}", title_justify="left", pad_edge=False)
    heads = ["feature", "mean effect", "variation", "p, all the same", "verdict", "reason"]
    for name in heads:
        table.add_column(name, overflow="fold")
    for data, dim in ((found.features, "feature"), (found.directions, "direction")):
        for j in range(data.sizes[dim]):
            row = data.isel({dim: j})
            share = row.variation.item()
            table.add_row(
                str(row[dim].item()),
                f"{row['mean'].item():.3g}",
                f"{share:.0%}" if share < 10 else "> 1000%",
                shown_p(row.differ_p.item()),
                str(row.verdict.item()),
                str(row.reason.item()),
            )
    console.print(table)
    for sentence in said(found, model):
        console.print(sentence, highlight=False)
    console.print(f"Model, table, forest plot and summary.html are in {out}", highlight=False)
