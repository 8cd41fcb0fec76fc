"""`gyrostat check`: what the theory says of a setting, as a table and one sentence."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from gyrostat import errors
from gyrostat.environments import Finite, Gaussian, Law, TwoPoint, Uniform
from gyrostat.errors import GyrostatError
from gyrostat.theory import Assessment, Condition, Setting

LAWS = {"two-point": TwoPoint, "uniform": Uniform, "gaussian": Gaussian}


def law_of(name: str, *, mean: float, spread: float, rank: int, values: str = "", weights: str = "") -> Law:
    """The law that the command line names; ``values`` (and ``weights``) make a finite list instead.

    >>> law_of("two-point", mean=1.0, spread=6.0, rank=1).bound
    7.0
    """
    if values:
        return Finite(_numbers("values", values), _numbers("weights", weights) if weights else None, rank=rank)
    if weights:
        raise GyrostatError("weights belong to a list of values: give --values too.")
    return LAWS[errors.choice("law", name, LAWS)](mean=mean, spread=spread, rank=rank)


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise GyrostatError(f"{name} must be numbers separated by commas, such as -5,7; got {text!r}.") from None


def show(setting: Setting, found: Assessment, console: Console) -> None:
    """Print every condition with value, bound and verdict, then the predicted outcome."""
    table = Table(
        "condition", "source", "value", "", "bound", "verdict", "note", title="What Xu 2024 asks of this setting"
    )
    for condition in found.conditions:
        verdict = "[green]holds[/]" if condition.holds else "[red]fails[/]"
        bound = _bound(condition)
        table.add_row(
            condition.name,
            condition.source,
            f"{condition.value:.4g}",
            condition.relation,
            bound,
            verdict,
            condition.note,
        )
    console.print(table)
    delta = found.isometry
    console.print(
        f"Isometry constant (rank {min(4 * (setting.rank + setting.law.rank), setting.dimension)}): at least "
        f"{delta.value:.3g} [{delta.low:.3g}, {delta.high:.3g}], found by search on {len(delta.draws)} designs."
    )
    for sentence in sentences(setting, found):
        console.print(sentence)


def _bound(condition: Condition) -> str:
    if isinstance(condition.bound, tuple):
        low, high = condition.bound
        return f"({low:.3g}, {high:.3g})" if low < high else f"({low:.3g}, {high:.3g}), empty"
    return f"{condition.bound:.4g}"


def sentences(setting: Setting, found: Assessment) -> list[str]:
    """The predicted outcome in words."""
    prediction = found.prediction
    fate = "eliminated" if prediction.lyapunov else "learnt"
    lines = [
        f"Predicted: the spurious signal is {fate} in a typical run; {prediction.eliminated:.0%} of runs end without it "
        f"(surrogate)."
    ]
    if prediction.critical_spread is not None:
        lines.append(
            f"Predicted transition: M* = {prediction.critical_spread:.3g} at this step size, start and horizon."
        )
    if prediction.eliminated > 0.05:
        lines.append(f"Where it is eliminated, the error ||UU^T - A_star||_F is about {prediction.error:.3g}.")
    if prediction.pooled_gap is not None:
        lines.append(f"Pooled training never comes closer to A_star than {prediction.pooled_gap:.3g}.")
    return lines
