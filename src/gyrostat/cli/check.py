"""``gyrostat check``: what the theory says about a setting of HeteroSGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gyrostat.cli.console import console

if TYPE_CHECKING:
    from rich.console import Console

    from gyrostat.environments import Law
    from gyrostat.theory import Assessment, Setting


def check(
    law: Annotated[
        str, typer.Option(help="Distribution of the spurious strengths: two-point, uniform or gaussian.")
    ] = "two-point",
    mean: Annotated[float, typer.Option(help="Mean of a spurious strength.")] = 1.0,
    spread: Annotated[float, typer.Option(help="Heterogeneity M around the mean.")] = 6.0,
    values: Annotated[str, typer.Option(help="A finite list of strengths instead of a law, such as -5,7.")] = "",
    weights: Annotated[str, typer.Option(help="The probability of each of the values, such as 0.25,0.75.")] = "",
    dimension: Annotated[int, typer.Option(help="Dimension d.")] = 100,
    rank: Annotated[int, typer.Option(help="Rank r1 of the invariant part.")] = 1,
    spurious_rank: Annotated[int, typer.Option(help="Rank r2 of the spurious part.")] = 1,
    overlap: Annotated[float, typer.Option(help="Overlap epsilon_1 of the two subspaces.")] = 0.0,
    step_size: Annotated[float, typer.Option(help="Step size eta.")] = 0.05,
    init_scale: Annotated[float, typer.Option(help="Initial scale alpha.")] = 1e-3,
    num_steps: Annotated[int, typer.Option(help="Number of steps T.")] = 200,
    num_samples: Annotated[int, typer.Option(help="Batch size m.")] = 8000,
    isometry: Annotated[
        bool, typer.Option("--isometry", help="Also estimate the isometry constant, which takes some seconds.")
    ] = False,
) -> None:
    """Check a HeteroSGD setting against the theory.

    Prints every assumption and condition of Xu 2024 with its value, bound and verdict, and the predicted outcome. The
    defaults are the setting of Figure 3 with M = 6.
    """
    from gyrostat.theory import Setting, assess

    chosen = build_law(law, mean=mean, spread=spread, rank=spurious_rank, values=values, weights=weights)
    setting = Setting(
        chosen,
        dimension=dimension,
        rank=rank,
        overlap=overlap,
        step_size=step_size,
        init_scale=init_scale,
        num_steps=num_steps,
        num_samples=num_samples,
    )
    out = console()
    show(setting, assess(setting, isometry_draws=3 if isometry else 0), out)
    if not isometry:
        out.print(
            "Isometry and overlap (Assumptions 3 and 1(d)) need the isometry constant: add --isometry.", markup=False
        )


def build_law(name: str, *, mean: float, spread: float, rank: int, values: str = "", weights: str = "") -> Law:
    """The law that the options describe; ``values`` (and ``weights``) describe a finite list instead.

    >>> build_law("two-point", mean=1.0, spread=6.0, rank=1).bound
    7.0
    """
    from gyrostat import errors
    from gyrostat.experiments.objects_from_dicts import LAWS, build, object_table

    if weights and not values:
        raise errors.GyrostatError("weights belong to a list of values: give --values too.")
    if values:
        probabilities = _numbers("weights", weights) if weights else None
        table = object_table("Finite", values=_numbers("values", values), weights=probabilities, rank=rank)
    else:
        table = object_table(LAWS[errors.choice("law", name, LAWS)], mean=mean, spread=spread, rank=rank)
    law = build(table, "law")
    if rank and law.bound == 0:
        options = f"--values {values}" if values else f"--mean {mean:g} and --spread {spread:g}"
        raise errors.GyrostatError(
            f"a spurious strength must differ from 0; got {options}: with 0 alone nothing is spurious."
        )
    return law


def _numbers(name: str, text: str) -> list[float]:
    from gyrostat.errors import GyrostatError

    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise GyrostatError(f"{name} must be numbers separated by commas, such as -5,7; got {text!r}.") from None


def show(setting: Setting, assessment: Assessment, console: Console) -> None:
    """Print the conditions as a table and the predicted outcome as sentences."""
    from rich.table import Table
    from rich.text import Text

    from gyrostat.theory.assessment import assessment_sentences
    from gyrostat.theory.condition import condition_text

    headings = ("condition", "source", "value", "", "bound", "verdict", "note")
    table = Table(*headings, title="Conditions of Xu 2024 for this setting")
    for condition in assessment.conditions:
        *start, verdict, note = map(Text, condition_text(condition))
        verdict.stylize("green" if condition.holds else "red")
        table.add_row(*start, verdict, note)
    console.print(table)
    for sentence in assessment_sentences(setting, assessment):
        console.print(sentence, markup=False)
