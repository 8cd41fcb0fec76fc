"""After a sweep: the predictions, the pictures, the tables, and a few lines that say what it came to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyrostat.errors import GyrostatError
from gyrostat.parallel.progress import clock
from gyrostat.sweeps.store import SweepStore
from gyrostat.sweeps.theory import predict, predictions

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Console

    from gyrostat.sweeps.session import Summary


def conclude(summary: Summary, folder: Path, console: Console) -> None:
    """Predict, draw and tell; what was interrupted is only told."""

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    if summary.stopped:
        why = "Interrupted" if summary.stopped == "interrupted" else f"Stopped, {summary.stopped}"
        say(
            f"{why}: {summary.done} of {summary.cells} cells are done and kept in {folder}; run the same command to go on."
        )
        return
    if summary.done:
        predict(summary.spec, folder)
        plot(folder, console)
    for point, line in summary.failures.items():
        name = "-".join(map(str, point))
        say(f"cell {point} failed: {line} (details in {folder / 'errors' / f'cell-{name}.txt'})")
    rate = summary.computed / summary.seconds if summary.seconds else 0.0
    say(
        f"{summary.done} of {summary.cells} cells done ({summary.kept} kept from before, {summary.computed} computed in "
        f"{clock(summary.seconds)}, {rate:.3g} cells/s, {summary.runs} runs), {len(summary.failures)} failed."
    )
    if summary.refined:
        whole = summary.saved + summary.cells * summary.spec.seeds
        say(
            f"Refined: {summary.cells * summary.spec.seeds} runs instead of the {whole} of the whole grid "
            f"({summary.saved / whole:.0%} saved); the boundary it followed is known to one step of the grid all the same."
        )


def loaded(folder: Path) -> xr.Dataset:
    """The data of a folder that holds a sweep of which something is done."""
    store = SweepStore(folder)
    if store.stated is None or not store.data.exists():
        raise GyrostatError(f"{str(folder)!r} holds no sweep: name the folder given to gyrostat sweep --out.")
    ds = store.load()
    if not bool((ds.done > 0).any()):
        raise GyrostatError(f"no cell of {str(folder)!r} is done yet: there is nothing to show.")
    return ds


def plot(folder: Path, console: Console) -> list[Path]:
    """Draw the pictures and write the tables of a sweep from its store; the files that were written."""
    from gyrostat.figures.matplotlib_renderer import render
    from gyrostat.parallel.whole_files import write_whole
    from gyrostat.sweeps import pictures, tables

    ds, predicted = loaded(folder), predictions(folder)
    stated: Any = SweepStore(folder).stated
    files = render(pictures.diagram(ds, stated["title"], stated["summary"], predicted), folder / "diagram")
    along = pictures.slices(ds, stated["title"])
    if along is not None:
        files += render(along, folder / "slices")
    write_whole(folder / "table.csv", tables.cells(ds).to_csv(index=False))
    if (table := tables.boundary_table(ds, predicted)) is not None:
        console.print(table)
    for path in (*files, folder / "table.csv"):
        console.print(f"  {path}", markup=False, highlight=False, soft_wrap=True)
    return files
