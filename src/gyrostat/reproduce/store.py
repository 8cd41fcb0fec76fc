"""The results folder: ``results.zarr`` (a group per experiment), ``claims.json``, figures, ``index.html``.

An experiment is finished when its group has the mark ``done``, which is written after all of its data. A group without the
mark, as a killed process leaves it, counts as absent.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat.errors import GyrostatError
from gyrostat.parallel.whole_files import plain, writable, write_whole

if TYPE_CHECKING:
    import xarray as xr

ClaimRecord = dict[str, Any]
"""A claim with its verdict, as ``claims.json`` has it; ``claims.judge`` makes it."""

DONE, RUN = "done", "run"


class ResultsStore:
    """The results of many experiments in one folder.

    >>> import tempfile
    >>> import xarray as xr
    >>> store = ResultsStore(tempfile.mkdtemp())
    >>> store.save("paper/fig1", xr.Dataset({"loss": ("step", [1.0, 0.5])}), "a1b2", {"seconds": 0.1})
    >>> store.load("paper/fig1", "a1b2").loss.values.tolist(), store.load("paper/fig1", "other")
    ([1.0, 0.5], None)
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.data = self.folder / "results.zarr"
        self.claims_file = self.folder / "claims.json"

    def prepare(self) -> None:
        """Create the folder and read its claims, so that a bad folder is refused before any computation."""
        writable(self.folder, self.data, self.folder / "figures")
        self.claims()

    def figure(self, name: str) -> Path:
        """The path of the figure of an experiment, without the suffix."""
        return self.folder / "figures" / name

    def error(self, name: str) -> Path:
        """The path of the traceback of a failed experiment."""
        return self.folder / "errors" / f"{name.replace('/', '-')}.txt"

    def papers_with_errors(self, papers: Iterable[str]) -> list[str]:
        """Those of the papers of which an experiment failed, or seems to have: names may begin alike."""
        files = [path.name for path in (self.folder / "errors").glob("*.txt")]
        return [paper for paper in papers if any(name.startswith(f"{paper}-") for name in files)]

    def save(self, name: str, dataset: xr.Dataset, fingerprint: str, run: Mapping[str, Any]) -> None:
        """Write the data of an experiment, then the mark; older data lose their mark first."""
        import zarr

        group = self.data / name
        (group / "zarr.json").unlink(missing_ok=True)
        shutil.rmtree(group, ignore_errors=True)
        # Strings as objects: zarr has no specification for strings of a fixed length, and warns each time.
        _with_strings(dataset, object).to_zarr(self.data, group=name, mode="w", consolidated=False, zarr_format=3)
        marks = {RUN: json.dumps(plain(run)), DONE: fingerprint}
        zarr.open_group(self.data, path=name, mode="r+", zarr_format=3, use_consolidated=False).attrs.update(marks)

    def load(self, name: str, fingerprint: str | None = None) -> xr.Dataset | None:
        """The data of a finished experiment; None if it is not finished or has another fingerprint."""
        dataset = self.open(name, fingerprint)
        if dataset is None:
            return None
        loaded = dataset.load()
        dataset.close()
        return loaded

    def open(self, name: str, fingerprint: str | None = None) -> xr.Dataset | None:
        """The same as :meth:`load`, with numbers that are read from disk when they are used."""
        import xarray as xr

        mark = self._attributes(name).get(DONE)
        if mark is None or fingerprint not in (None, mark):
            return None
        # Times are not decoded: an attribute `units = "seconds"` must not turn numbers into dates.
        dataset = xr.open_dataset(self.data, engine="zarr", group=name, consolidated=False, decode_times=False)
        dataset.attrs = {key: value for key, value in dataset.attrs.items() if key not in (DONE, RUN)}
        return _with_strings(dataset, str)

    def run(self, name: str) -> dict[str, Any]:
        """How a finished experiment was run: version, seed, size, settings, seconds, machine and time."""
        return json.loads(self._attributes(name)[RUN])

    def finished(self) -> list[str]:
        """The names ``paper/experiment`` of all finished experiments, in natural order."""
        names = (f"{path.parent.parent.name}/{path.parent.name}" for path in self.data.glob("*/*/zarr.json"))
        return sorted((name for name in names if DONE in self._attributes(name)), key=natural)

    def _attributes(self, name: str) -> dict[str, Any]:
        try:
            return json.loads((self.data / name / "zarr.json").read_text())["attributes"]
        except FileNotFoundError:
            return {}

    def claims(self) -> list[ClaimRecord]:
        """The records of ``claims.json``; an empty list when there is none yet."""
        try:
            records = json.loads(self.claims_file.read_text())
        except FileNotFoundError:
            return []
        except ValueError:
            records = None
        if not isinstance(records, list) or not all(isinstance(r, dict) and "id" in r for r in records):
            where = str(self.claims_file)
            raise GyrostatError(f"{where!r} is not a list of claims: delete it or choose another --out.")
        return records

    def put_claims(self, name: str, records: Sequence[ClaimRecord]) -> None:
        """Replace the records of one experiment and keep those of the others."""
        kept = [r for r in self.claims() if experiment_of(r) != name]
        ordered = sorted([*kept, *records], key=lambda r: natural(experiment_of(r)))
        write_whole(self.claims_file, json.dumps(plain(ordered), indent=1, allow_nan=False) + "\n")


def _with_strings(dataset: xr.Dataset, dtype: type) -> xr.Dataset:
    """The dataset with its variables of strings converted to ``dtype``."""
    strings: dict[Any, Any] = {
        name: (x.dims, np.array(x.values.tolist(), dtype=dtype), x.attrs)
        for name, x in dataset.variables.items()
        if x.dtype.kind in "UTO"
    }
    return dataset.assign({name: x for name, x in strings.items() if name in dataset.data_vars}).assign_coords(
        {name: x for name, x in strings.items() if name in dataset.coords}
    )


def experiment_of(record: ClaimRecord) -> str:
    """``paper/experiment`` of a record whose id is ``paper/experiment/slug``."""
    return record["id"].rsplit("/", 1)[0]


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts ``fig2`` before ``fig10``."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
