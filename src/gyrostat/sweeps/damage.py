"""What is missing or damaged in the store of a sweep: chunks of cells that are marked as done, marks, and metadata."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gyrostat.parallel.checked_files import (
    DamagedStore,
    chunk_fault,
    chunk_files,
    chunk_shape,
    has_good_checksum,
    read_metadata,
)

DONE, SEED = "done", "seed"
Documents = Mapping[str, Mapping[str, Any]]
"""The content of ``zarr.json`` of arrays by name."""


def damaged_chunks(data: Path, names: Iterable[str]) -> list[Path]:
    """The chunks of arrays with a wrong checksum, whether their cells are done or not."""
    found = (path for name in names for path in sorted((data / name / "c").rglob("*")) if path.is_file())
    return [path for path in found if not has_good_checksum(path)]


def cell_files(folder: Path, document: Mapping[str, Any], point: Sequence[int], seeds: int) -> Iterator[Path]:
    """The files of one array that a cell with this many finished seeds must have."""
    sizes = zip(document["shape"], document["dimension_names"], chunk_shape(document), strict=True)
    inside = list(sizes)[len(point) :]
    counts = [math.ceil((seeds if dim == SEED else length) / chunk) for length, dim, chunk in inside]
    for index in itertools.product(*(range(n) for n in counts)):
        yield folder.joinpath("c", *(str(i) for i in (*point, *index)))


def missing_chunks(data: Path, documents: Documents, seeds_done: np.ndarray) -> dict[tuple[int, ...], list[Path]]:
    """The files that are missing, by cell, of cells that are marked as done."""
    found = {}
    for point in (tuple(int(i) for i in p) for p in np.argwhere(seeds_done > 0)):
        needed = (f for name, d in documents.items() for f in cell_files(data / name, d, point, int(seeds_done[point])))
        if missing := [path for path in needed if not path.is_file()]:
            found[point] = missing
    return found


def damage(data: Path, arrays: Iterable[str], coordinates: Iterable[str]) -> list[str]:
    """Sentences about what is missing or damaged in a store with these arrays of data; none for a good one."""
    names = {"arrays": list(arrays), "whole": [DONE, *coordinates]}
    found, documents = [], {}
    for name in ("", *names["arrays"], *names["whole"]):
        try:
            documents[name] = read_metadata(data / name)
        except FileNotFoundError:
            found.append(f"{str(data / name / 'zarr.json')!r} is missing")
        except DamagedStore as error:
            found.append(error.fault)
    found += [f"{str(path)!r} does not match its checksum" for path in damaged_chunks(data, names["arrays"])]
    for name in set(names["whole"]) & set(documents):
        for path in chunk_files(data / name, documents[name]):
            if fault := chunk_fault(path):
                found.append(f"{str(path)!r} is {fault}")
    if not found:
        kept = {name: documents[name] for name in names["arrays"]}
        for point, files in missing_chunks(data, kept, read_marks(data)).items():
            found.append(f"{str(files[0])!r} of cell {point} is missing")
    return found


def read_marks(data: Path) -> np.ndarray:
    """The number of finished seeds of every cell, as marked."""
    import zarr

    return np.asarray(zarr.open_array(data, path=DONE, mode="r", zarr_format=3)[...])
