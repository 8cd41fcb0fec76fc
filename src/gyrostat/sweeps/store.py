"""The folder of a sweep: ``store.zarr`` (one chunk per cell), ``sweep.json`` (spec, done, failed, left).

``sweep.json`` says which values the axes have, in the order in which they came; it is replaced whole, and the store follows
it. A cell's data are written first and its mark last: ``done`` holds the number of seeds that are finished. So whatever is
killed at whatever moment leaves cells that are done and cells that are not, and nothing between.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gyrostat import __version__
from gyrostat.errors import GyrostatError
from gyrostat.parallel.whole_files import plain, writable, write_whole
from gyrostat.sweeps.layout import DONE, QUANTILE, SEED, SUCCEEDED, Variable, summarised, variables
from gyrostat.sweeps.record import QUANTILES
from gyrostat.sweeps.resume import made_by
from gyrostat.sweeps.spec import Spec

if TYPE_CHECKING:
    import xarray as xr

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

Point = tuple[int, ...]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder that can be written to; a second sweep in it is refused. The hold ends with the process, in any case."""
    writable(folder, folder / "store.zarr")
    with (folder / ".lock").open("w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise GyrostatError(f"another sweep is writing to {str(folder)!r}: wait for it, or end it.") from None
        yield


class SweepStore:
    """The results of one sweep, in the order in which the values of its axes came."""

    root: Any
    marks: np.ndarray
    hits: np.ndarray

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.data, self.file = self.folder / "store.zarr", self.folder / "sweep.json"

    @property
    def stated(self) -> dict[str, Any] | None:
        """What ``sweep.json`` says; None when there is none yet."""
        try:
            return json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            raise GyrostatError(f"{str(self.file)!r} cannot be read ({error}): choose another --out.") from None

    def remove(self) -> None:
        """Forget everything: the file first, since the store means nothing without it."""
        self.file.unlink(missing_ok=True)
        shutil.rmtree(self.data, ignore_errors=True)

    def state(self, spec: Spec, report: Mapping[str, Any]) -> None:
        """Replace ``sweep.json``."""
        axes = {
            a.name: {"path": a.path, "values": list(a.values), "scale": a.scale, "label": a.label} for a in spec.axes
        }
        told = {"title": spec.title, "summary": spec.summary, "identity": spec.identity(), "axes": axes, **report}
        write_whole(self.file, json.dumps(plain(told), indent=1, allow_nan=False) + "\n")

    def follow(self, spec: Spec) -> None:
        """Make the store what the spec asks for: create what is missing, lengthen what is too short."""
        import zarr

        for left in self.data.rglob("*.partial"):  # of a write that was killed
            left.unlink()
        self.data.mkdir(parents=True, exist_ok=True)
        attributes = {"gyrostat": __version__, "title": spec.title, "success": spec.record.says}
        self.root = zarr.open_group(self.data, mode="a", zarr_format=3)
        self.root.attrs.update(attributes)
        dims = tuple(a.name for a in spec.axes)
        for name, variable in variables(spec).items():
            self._array(name, (*dims, *variable.dims), (*spec.shape, *variable.sizes(spec)), variable, len(dims))
        self._array(DONE, dims, spec.shape, Variable((), "int32", 0), 0)
        for a in spec.axes:
            self._coordinate(a.name, list(a.values))
        self._coordinate(SEED, list(range(spec.seeds)))
        if spec.record.quantiles:
            self._coordinate(QUANTILE, list(QUANTILES))
        self.marks = np.asarray(self.root[DONE][...])
        self.hits = np.zeros(spec.shape, dtype=int)
        if spec.record.success and self.marks.any():
            self.hits = np.sum(self.root[SUCCEEDED][...] == 1, axis=-1)

    def begin(self, spec: Spec) -> None:
        """State the spec, then make the store follow it; both can be done again after a kill."""
        self.state(spec, {"made_by": made_by()})
        self.follow(spec)

    def shares(self, seeds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The share of successes and its interval over the axes as stored, NaN where not computed."""
        from gyrostat.experiments.statistics import wilson

        there = self.marks >= seeds
        return tuple(np.where(there, x, np.nan) for x in (self.hits / seeds, *wilson(self.hits, seeds)))  # type: ignore

    def _array(self, name: str, dims: tuple[str, ...], shape: tuple[int, ...], like: Variable, cells: int) -> None:
        """An array of the store; its chunks are one long in the first ``cells`` dimensions."""
        if name in self.root:
            if self.root[name].shape != shape:
                self.root[name].resize(shape)
            return
        chunks = (*(1 for _ in range(cells)), *shape[cells:])
        self.root.create_array(
            name,
            shape=shape,
            chunks=tuple(max(1, n) for n in chunks),
            dtype=like.dtype,
            fill_value=like.missing,
            dimension_names=dims,
        )

    def _coordinate(self, name: str, values: list[Any]) -> None:
        if name in self.root and self.root[name].shape == (len(values),):
            return
        numbers = all(isinstance(v, int | float) for v in values)
        array = np.array(values if numbers else [words(v) for v in values], dtype=None if numbers else object)
        made = self.root.create_array(
            name,
            shape=array.shape,
            chunks=array.shape,
            dtype=array.dtype if numbers else "string",
            dimension_names=(name,),
            overwrite=True,
        )
        made[...] = array

    def left(self, points: Sequence[Point], seeds: int) -> list[tuple[Point, int]]:
        """The cells that are not finished, each with the first seed that is missing."""
        return [(p, int(self.marks[p])) for p in points if self.marks[p] < seeds]

    def put(self, points: Sequence[Point], first: int, data: Mapping[str, np.ndarray], seeds: int) -> None:
        """Write the data of cells, from seed ``first`` on, then their marks."""
        for name, values in data.items():
            array = self.root[name]
            part = (slice(first, seeds),) if SEED in array.metadata.dimension_names else ()
            for point, value in zip(points, values, strict=True):
                array[(*point, *part)] = value
        for i, point in enumerate(points):
            self.marks[point] = seeds
            if SUCCEEDED in data:
                self.hits[point] = (self.hits[point] if first else 0) + np.sum(data[SUCCEEDED][i] == 1)
        self.root[DONE][...] = self.marks

    def load(self) -> xr.Dataset:
        """All data, the values of every numeric axis in increasing order, with the share of successes."""
        import xarray as xr

        found = xr.open_zarr(self.data, consolidated=False, chunks=None, decode_times=False).load()
        found.close()
        stated = self.stated
        assert stated is not None
        for name, told in stated["axes"].items():
            if found[name].dtype.kind in "OUT":
                found = found.assign_coords({name: np.array([str(v) for v in found[name].values])})
            else:
                found = found.sortby(name)
            found[name].attrs.update(label=told["label"], scale=told["scale"])
        return summarised(found)


def words(value: Any) -> str:
    """A value of an axis as text; a table by its kind and its settings.

    >>> words({"kind": "TwoPoint", "spread": 6.0}), words("cyclic")
    ('TwoPoint(spread=6.0)', 'cyclic')
    """
    if isinstance(value, Mapping) and "kind" in value:
        inside = ", ".join(f"{name}={words(x)}" for name, x in value.items() if name != "kind")
        return f"{value['kind']}({inside})" if inside else str(value["kind"])
    return str(value)


def in_order(spec: Spec, stated: Mapping[str, Any] | None) -> Spec:
    """The spec with the values of its axes as they stand in a store: those that are there first, new ones after them."""
    if stated is None:
        return spec
    axes = []
    for a in spec.axes:
        there = stated["axes"][a.name]["values"]
        axes.append(dataclasses.replace(a, values=(*there, *(v for v in a.values if v not in there))))
    return dataclasses.replace(spec, axes=tuple(axes))
