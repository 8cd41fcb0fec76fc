"""The results folder: ``results.zarr`` (a group per experiment), ``claims.json``, figures, ``index.html``, ``pages``.

An experiment is finished when its group has the mark ``done``, which is written after all of its data. A group without the
mark, as a killed process leaves it, counts as absent. Every chunk has a checksum, the mark comes with digests of the metadata
of all arrays, and each record of ``claims.json`` has a checksum of its own; what does not match is refused.
"""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat.parallel.checked_files import (
    CHECKSUM,
    KINDS,
    METADATA,
    DamagedStore,
    chunk_fault,
    chunk_files,
    compressors,
    digest,
    read_json,
    read_metadata,
    write_metadata,
)
from gyrostat.parallel.whole_files import plain, writable, write_whole

if TYPE_CHECKING:
    import xarray as xr

ClaimRecord = dict[str, Any]
"""A claim with its verdict, as ``claims.json`` has it; ``claims.judge`` makes it."""

DONE, RUN, ARRAYS = "done", "run", "arrays"
"""Attributes of the group of an experiment: its fingerprint, how it was run, and the digests of its arrays."""

CLAIMS = "claims"
"""An entry of how an experiment was run: the slugs of its claims, which ``claims.json`` must therefore have."""


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
        group = self.data / name
        (group / "zarr.json").unlink(missing_ok=True)
        shutil.rmtree(group, ignore_errors=True)
        # Strings as objects: zarr has no specification for strings of a fixed length, and warns each time.
        stored = _with_strings(dataset, object)
        codecs = {name: {"compressors": compressors()} for name in stored.variables}
        try:
            stored.to_zarr(
                self.data,
                group=name,
                mode="w",
                consolidated=False,
                zarr_format=3,
                encoding=codecs,
                write_empty_chunks=True,
            )
        except OSError:
            shutil.rmtree(group, ignore_errors=True)  # a part is of no use, and takes room on a full disk
            raise
        arrays = {str(key): digest(read_json(group / str(key) / METADATA)) for key in stored.variables}
        document = read_json(group / METADATA)
        marks = {RUN: json.dumps(plain(run)), DONE: fingerprint, ARRAYS: arrays}
        write_metadata(group, {**document, "attributes": {**document["attributes"], **marks}})

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
        if found := self.damage(name):
            raise DamagedStore(found[0], f"run gyrostat reproduce {name} again to compute it anew")
        # Times are not decoded: an attribute `units = "seconds"` must not turn numbers into dates.
        dataset = xr.open_dataset(self.data, engine="zarr", group=name, consolidated=False, decode_times=False)
        ours = (DONE, RUN, ARRAYS, CHECKSUM, KINDS)
        dataset.attrs = {key: value for key, value in dataset.attrs.items() if key not in ours}
        return _with_strings(dataset, str)

    def damage(self, name: str) -> list[str]:
        """Sentences about what is missing or damaged of an experiment; none if it is good, absent, or not finished."""
        try:
            attributes = self._attributes(name)
        except DamagedStore as error:
            return [error.fault]
        found = []
        for key, expected in attributes.get(ARRAYS, {}).items():
            folder = self.data / name / key
            try:
                document = read_json(folder / METADATA)
                faults = ((path, chunk_fault(path)) for path in chunk_files(folder, document))
                found += [f"{str(path)!r} is {fault}" for path, fault in faults if fault]
                if digest(document) != expected:
                    found.append(f"{str(folder / METADATA)!r} does not match its checksum")
            except FileNotFoundError:
                found.append(f"{str(folder / METADATA)!r} is missing")
            except (DamagedStore, KeyError, TypeError, ValueError) as error:
                found.append(error.fault if isinstance(error, DamagedStore) else f"{str(folder)!r} is damaged")
        return found

    def lost_data(self) -> dict[str, str]:
        """Experiments that have claims, or arrays without a description, but no finished data; each with a sentence."""
        judged = dict.fromkeys(experiment_of(record) for record in self.claims())
        left = (path for path in self.data.glob("*/*") if _lost_its_mark(path))
        found = {}
        for name in (*judged, *(f"{path.parent.name}/{path.name}" for path in left)):
            try:
                if DONE not in self._attributes(name):
                    found[name] = f"{str(self.data / name / METADATA)!r} is missing, or its experiment is not finished"
            except DamagedStore as error:
                found[name] = error.fault
        return found

    def lost_claims(self) -> dict[str, str]:
        """Finished experiments of which ``claims.json`` lacks claims, each with a sentence."""
        exists, recorded = self.claims_file.exists(), {record["id"] for record in self.claims()}
        found = {}
        for name in self.finished():
            lost = [slug for slug in self.run(name).get(CLAIMS, ()) if f"{name}/{slug}" not in recorded]
            if not exists:
                found[name] = f"{str(self.claims_file)!r} is missing"
            elif lost and not self.error(name).is_file():
                found[name] = f"{str(self.claims_file)!r} lacks the claim {name}/{lost[0]}"
        return found

    def refuse_losses(self) -> None:
        """Refuse a folder of which the data of an experiment, or claims of a finished one, are lost."""
        self.refuse_lost_data()
        self.refuse_lost_claims()

    def refuse_lost_data(self) -> None:
        """Refuse a folder of which the data of an experiment are lost as a whole: readers would leave it out silently."""
        self._refuse(self.lost_data())

    def refuse_lost_claims(self) -> None:
        """Refuse a folder whose ``claims.json`` is missing or lacks claims of a finished experiment."""
        self._refuse(self.lost_claims())

    def _refuse(self, lost: Mapping[str, str]) -> None:
        if lost:
            fault = next(iter(lost.values()))
            again = " ".join(dict.fromkeys(name.split("/")[0] for name in lost) if len(lost) > 3 else lost)
            raise DamagedStore(fault, f"run gyrostat reproduce {again} --out {self.folder} to make it anew")

    def run(self, name: str) -> dict[str, Any]:
        """How a finished experiment was run: version, seed, size, settings, seconds, machine and time."""
        return json.loads(self._attributes(name)[RUN])

    def finished(self) -> list[str]:
        """The names ``paper/experiment`` of all finished experiments, in natural order."""
        names = (f"{path.parent.name}/{path.name}" for path in self.data.glob("*/*") if (path / METADATA).exists())
        return sorted((name for name in names if self._is_finished(name)), key=natural)

    def _is_finished(self, name: str) -> bool:
        try:
            return DONE in self._attributes(name)
        except DamagedStore as error:  # the others can be read all the same
            warnings.warn(str(error), stacklevel=3)
            return False

    def _attributes(self, name: str) -> dict[str, Any]:
        try:
            document = read_json(self.data / name / METADATA)
        except FileNotFoundError:
            return {}
        attributes = document.get("attributes") if isinstance(document, dict) else None
        # The group of an experiment that is not finished has no checksum yet.
        if not isinstance(attributes, dict) or attributes.keys() & {DONE, CHECKSUM, KINDS}:
            attributes = read_metadata(self.data / name)["attributes"]
        return attributes

    def claims(self) -> list[ClaimRecord]:
        """The records of ``claims.json``; an empty list when there is none yet."""
        where = str(self.claims_file)
        try:
            records = read_json(self.claims_file)
        except FileNotFoundError:
            return []
        except DamagedStore:
            records = None
        if not isinstance(records, list) or not all(
            isinstance(r, dict) and isinstance(r.get("id"), str) for r in records
        ):
            raise DamagedStore(f"{where!r} is not a list of claims", "delete it, and gyrostat reproduce makes it anew")
        checked = [r.get(CHECKSUM) == digest({k: v for k, v in r.items() if k != CHECKSUM}) for r in records]
        if not all(checked):
            bad = records[checked.index(False)]["id"]
            raise DamagedStore(
                f"{where!r} does not match its checksum at {bad!r}", "delete it, and gyrostat reproduce makes it anew"
            )
        return [{key: value for key, value in r.items() if key != CHECKSUM} for r in records]

    def put_claims(self, name: str, records: Sequence[ClaimRecord]) -> None:
        """Replace the records of one experiment and keep those of the others."""
        kept = [r for r in self.claims() if experiment_of(r) != name]
        ordered = sorted([*kept, *records], key=lambda r: natural(experiment_of(r)))
        checked = [{**record, CHECKSUM: digest(record)} for record in plain(ordered)]
        write_whole(self.claims_file, json.dumps(checked, indent=1, allow_nan=False) + "\n")


def _lost_its_mark(group: Path) -> bool:
    """Whether a folder holds data of an experiment without their description, as after a kill or a deletion."""
    return group.is_dir() and not (group / METADATA).exists() and any(path.is_dir() for path in group.iterdir())


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
