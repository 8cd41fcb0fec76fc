"""``gyrostat predict``: predictions of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gyrostat.cli.console import console
from gyrostat.cli.file_options import Decimal, Empty, Encoding, Separator, Thousands


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model.json, or the folder of gyrostat fit.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table with the columns of the model.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for the predictions (CSV).")] = Path(
        "predictions.csv"
    ),
    purpose: Annotated[
        str,
        typer.Option(
            help="best: use whichever of the next two had less error in environments left out of the fit. everywhere: use "
            "effects that hold in every environment. least-squares: use a regression on all rows. same-kind: use partially "
            "pooled effects, for new environments of the same kind. worst-case: use weights with the least error in the worst "
            "environment, for environments that may be unlike those of the fit."
        ),
    ] = "best",
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    encoding: Encoding = None,
    empty: Empty = None,
) -> None:
    """Predict the rows of a table with a saved model."""
    from gyrostat.tables import fit_and_predict
    from gyrostat.tables.text_files import FileFormat

    text_format = FileFormat(separator, decimal, thousands, encoding, tuple(empty or ()))
    fit_and_predict.predict(model, data, out, console(), text_format, purpose)
