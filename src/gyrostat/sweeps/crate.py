"""A sweep as a Workflow Run RO-Crate: its description, store, figures, table and versions in one zip file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from gyrostat import __version__
from gyrostat.reproduce.crate import CrateAction, CrateContents, write_crate
from gyrostat.sweeps.store import SweepStore, load_sweep

FILES = {
    "sweep.json": "The settings and axes of the sweep, and the cells that are done",
    "theory.json": "What the theory predicts over the grid",
    "table.csv": "One row per cell",
    "diagram.png": "The phase diagram",
    "diagram.svg": "The phase diagram",
    "slices.png": "Slices with intervals",
    "slices.svg": "Slices with intervals",
}


def export_sweep(folder: str | Path, path: str | Path, *, author: str = "", licence: str = "") -> Path:
    """Write a sweep as a crate; ``author`` is who ran it, and ``licence`` the address of the licence of the results."""
    store = SweepStore(folder)
    ds, description = load_sweep(Path(folder)), store.description()
    assert description is not None
    files: dict[str, Path | str] = {name: store.folder / name for name in FILES if (store.folder / name).is_file()}
    made_by = description.get("made_by") or {}
    versions = {name: str(v) for name, v in made_by.items() if isinstance(v, str)} or {"gyrostat": __version__}
    ended = datetime.fromtimestamp((store.folder / "sweep.json").stat().st_mtime, UTC).isoformat(timespec="seconds")
    done = int((ds.done > 0).sum())
    action = CrateAction(
        key="sweep",
        name=f"{done} of {ds.done.size} cells of the sweep",
        description="gyrostat sweep",
        inputs={"axes": {name: axis["values"] for name, axis in description["axes"].items()}},
        outputs=["store.zarr/", *(name for name in files if name != "sweep.json")],
        ended=ended,
        of_workflow=True,
    )
    contents = CrateContents(
        name=description["title"] or "A sweep",
        description=f"{description['summary']} {done} cells with {ds.sizes['seed']} runs each.".strip(),
        workflow="sweep.json",
        workflow_name="The sweep: settings and axes",
        parameters={"axes": "PropertyValue"},
        language=("#gyrostat-sweep", "Settings of gyrostat sweep, as JSON"),
        files=files,
        descriptions=FILES,
        folders={"store.zarr": store.data},
        actions=[action],
        versions=versions,
    )
    return write_crate(path, contents, author=author, licence=licence)
