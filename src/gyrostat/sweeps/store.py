"""The folder of a sweep: its lock, ``sweep.json`` (spec and counts of cells) and ``store.zarr`` (one chunk per cell).

``sweep.json`` holds the values of the axes in the order in which they were added. It is always replaced as a whole, and the
arrays of the store follow it. The data of a cell are written first and its mark last: ``done`` holds the number of finished
seeds of every cell. A kill at any moment therefore leaves cells that are done and cells that are not, and nothing between.

Every file has a checksum. A sweep that goes on computes cells again of which something is missing or damaged; everything
else that reads a store refuses it then.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from filelock import FileLock, Timeout

from gyrostat import __version__, errors
from gyrostat.errors import GyrostatError
from gyrostat.parallel.checked_files import (
    CHECKSUM,
    KINDS,
    METADATA,
    DamagedStore,
    array_metadata,
    chunk_fault,
    chunk_files,
    chunk_shape,
    digest,
    read_json,
    read_metadata,
    sealed,
    unsealed,
    write_metadata,
)
from gyrostat.parallel.whole_files import plain, writable, write_whole
from gyrostat.stores.fingerprint import differences
from gyrostat.sweeps.damage import DONE, SEED, damage, damaged_chunks, missing_chunks
from gyrostat.sweeps.spec import QUANTILES, RUN_OUTCOMES, Point, Spec, as_data, data_text

if TYPE_CHECKING:
    import xarray as xr

# xarray, and the statistics that need it, are imported inside functions: workers import this module, too, and xarray alone
# takes most of a second.

SUCCEEDED = "succeeded"
RECORD, QUANTILE = "record", "quantile"
SWEEP = "sweep"
"""An attribute of the store: a digest of the spec that it belongs to."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder that can be written to, so that a second sweep in it is refused. A killed process holds no lock."""
    writable(folder, folder / "store.zarr")
    try:
        held = FileLock(folder / ".lock").acquire(timeout=0)
    except Timeout:
        raise GyrostatError(f"another sweep is writing to {str(folder)!r}: wait for it, or end it.") from None
    with held:
        yield


def open_store(spec: Spec, folder: str | Path, *, extend: bool, fresh: bool) -> tuple[SweepStore, Spec]:
    """The store of a folder, prepared for a spec, and the spec with the values of its axes in the order of the store.

    A spec that differs from the one in the folder is refused; ``extend`` allows it to add values to axes and seeds, and
    ``fresh`` removes what is in the folder.
    """
    store = SweepStore(folder)
    if fresh:
        store.remove()
    written = store.description() if not store.is_of(spec) else None
    if written is not None:
        _check_same_sweep(spec, written, extend=extend)
        spec = _in_stored_order(spec, written)
    store.write_description(spec)
    store.prepare_arrays(spec)
    return store, spec


def _sweep_digest(spec: Spec) -> str:
    """A digest of what makes a store belong to a spec: settings, values of axes in their order, code."""
    return digest([spec.identity(), [as_data(a.values) for a in spec.axes], spec.code])


def _coordinate(values: list[Any]) -> np.ndarray:
    numbers = all(isinstance(v, int | float) for v in values)
    return np.array(values if numbers else [value_text(v) for v in values], dtype=None if numbers else object)


def _has_quantiles(description: Mapping[str, Any]) -> bool:
    return any(name.endswith("_quantiles") for name in description["arrays"])


# The arrays


class StoredArray(NamedTuple):
    """An array over the axes and the dimensions ``dims``; ``missing`` is its value in cells that are not computed."""

    dims: tuple[str, ...]
    dtype: str
    missing: Any

    def sizes(self, spec: Spec) -> tuple[int, ...]:
        """The lengths of ``dims``."""
        known = {SEED: spec.seeds, RECORD: spec.record.points, QUANTILE: len(QUANTILES)}
        return tuple(known[dim] for dim in self.dims)


def stored_arrays(spec: Spec) -> dict[str, StoredArray]:
    """All arrays of data by name: ``spurious``, ``spurious_path``, ``spurious_quantiles``, ``succeeded`` and so on."""
    record = spec.record
    arrays = {name: StoredArray((SEED,), "float64", np.nan) for name in record.final}
    arrays |= {f"{name}_path": StoredArray((SEED, RECORD), "float64", np.nan) for name in record.paths}
    arrays |= {f"{name}_quantiles": StoredArray((QUANTILE, RECORD), "float64", np.nan) for name in record.quantiles}
    if record.success:
        arrays[SUCCEEDED] = StoredArray((SEED,), "int8", -1)
    if spec.options["tolerance"] is not None:
        arrays["reached"] = StoredArray((SEED,), "int32", -2)
    arrays["diverged"] = StoredArray((SEED,), "int32", -2)
    arrays["steps"] = StoredArray((), "int32", -1)
    return arrays


class SweepStore:
    """The results of one sweep. The values of an axis are stored in the order in which they were added.

    ``repaired`` says what :meth:`prepare_arrays` found to be missing or damaged; the cells concerned are no longer done.
    """

    root: Any
    seeds_done: np.ndarray
    num_successes: np.ndarray

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.data, self.file = self.folder / "store.zarr", self.folder / "sweep.json"
        self.repaired: list[str] = []

    def description(self) -> dict[str, Any] | None:
        """The content of ``sweep.json``, or None when there is no such file."""
        try:
            content = unsealed(read_json(self.file), self.file)
        except FileNotFoundError:
            return None
        except DamagedStore as error:
            raise DamagedStore(error.fault, "choose another --out, or --fresh to compute anew") from None
        if not all(isinstance(content.get(name), dict) for name in ("identity", "axes", "made_by")):
            raise DamagedStore(f"{str(self.file)!r} does not describe a sweep", "choose another folder")
        return content

    def is_of(self, spec: Spec) -> bool:
        """Whether ``sweep.json`` is lost or damaged, but the arrays are known to be those of exactly this spec."""
        try:
            unsealed(read_json(self.file), self.file)
            return False
        except FileNotFoundError:
            if not any(self.data.glob("*")):
                return False  # a new sweep
        except DamagedStore:
            pass
        with contextlib.suppress(FileNotFoundError, DamagedStore):
            if read_metadata(self.data)["attributes"].get(SWEEP) == _sweep_digest(spec):
                self.repaired.append("sweep.json, written again")
                return True
        if self.file.exists():
            return False  # and :meth:`description` says what is wrong with it
        raise DamagedStore(
            f"{str(self.file)!r} is missing, and {str(self.data)!r} may belong to another spec",
            "choose another --out, or --fresh to compute anew",
        )

    def write_description(self, spec: Spec, report: Mapping[str, Any] | None = None) -> None:
        """Replace ``sweep.json``; ``report`` says how far the sweep is."""
        axes = {
            a.name: {"path": a.path, "values": as_data(a.values), "scale": a.scale, "label": a.label} for a in spec.axes
        }
        content = {
            "title": spec.title,
            "summary": spec.summary,
            "identity": spec.identity(),
            "axes": axes,
            "arrays": list(stored_arrays(spec)),
            "made_by": spec.code,
            **(report or {}),
        }
        write_whole(self.file, json.dumps(sealed(plain(content)), indent=1, allow_nan=False) + "\n")

    def remove(self) -> None:
        """Remove everything: ``sweep.json`` first, because the arrays mean nothing without it."""
        self.file.unlink(missing_ok=True)
        shutil.rmtree(self.data, ignore_errors=True)

    def prepare_arrays(self, spec: Spec) -> None:
        """Create what the spec needs, lengthen what is too short, and check what is there.

        A cell whose data are missing or damaged is no longer done, and its bad files are deleted; :attr:`repaired` says so.
        """
        import zarr

        for left in (*self.data.rglob("*.partial"), *self.data.rglob(".*.part")):  # by a write that was killed
            left.unlink()
        self.data.mkdir(parents=True, exist_ok=True)
        attributes = {
            "gyrostat": __version__,
            "title": spec.title,
            "success": spec.record.success_text,
            SWEEP: _sweep_digest(spec),
        }
        write_metadata(self.data, {"attributes": attributes, "zarr_format": 3, "node_type": "group"})
        self._write_arrays(spec)
        # Opened once, and so that a chunk that holds nothing but the fill value (diverged runs) is a file, too.
        with zarr.config.set({"array.write_empty_chunks": True}):
            self.root = zarr.open_group(self.data, mode="r+", zarr_format=3, use_consolidated=False)
            self.arrays = {name: self.root[name] for name in (*stored_arrays(spec), DONE, *self._coordinates(spec))}
        for name, values in self._coordinates(spec).items():
            if any(map(chunk_fault, chunk_files(self.data / name, read_metadata(self.data / name)))):
                self.arrays[name][...] = values
        self._take_stock(spec)

    def _write_arrays(self, spec: Spec) -> None:
        """The metadata of all arrays. Chunks stay as long as the first call made them when seeds or values are added."""
        dims, arrays = tuple(a.name for a in spec.axes), stored_arrays(spec)
        found = {name: self._metadata_or_none(name) for name in (*arrays, DONE, *self._coordinates(spec))}
        chunks = {name: chunk_shape(document) for name, document in found.items() if document is not None}
        seeds = next((chunks[n][len(dims)] for n, a in arrays.items() if n in chunks and SEED in a.dims), spec.seeds)
        for name, array in arrays.items():
            sizes = array.sizes(spec)
            inside = [seeds if dim == SEED else n for dim, n in zip(array.dims, sizes, strict=True)]
            own = (*(1 for _ in dims), *(max(1, n) for n in inside))
            document = array_metadata((*spec.shape, *sizes), own, array.dtype, (*dims, *array.dims), array.missing)
            write_metadata(self.data / name, document)
        write_metadata(self.data / DONE, array_metadata(spec.shape, chunks.get(DONE, spec.shape), "int32", dims, 0))
        for name, values in self._coordinates(spec).items():
            if chunks.get(name) != values.shape:
                shutil.rmtree(self.data / name, ignore_errors=True)  # with its values, which are written after this
            dtype = "string" if values.dtype == object else values.dtype
            write_metadata(self.data / name, array_metadata(values.shape, values.shape, dtype, (name,)))

    def _metadata_or_none(self, name: str) -> dict[str, Any] | None:
        """The metadata of an array; None if there are none yet, or if they are damaged."""
        try:
            return read_metadata(self.data / name)
        except FileNotFoundError:
            return None
        except DamagedStore:
            self.repaired.append(f"{METADATA} of {name}")
            return None

    def _coordinates(self, spec: Spec) -> dict[str, np.ndarray]:
        coordinates = {a.name: _coordinate(list(a.values)) for a in spec.axes} | {SEED: np.arange(spec.seeds)}
        return coordinates | ({QUANTILE: np.array(QUANTILES)} if spec.record.quantiles else {})

    def _take_stock(self, spec: Spec) -> None:
        """Find out which cells are done, with all of their data; delete chunks that are damaged."""
        names = list(stored_arrays(spec))
        damaged_marks = damaged_chunks(self.data, [DONE])
        for path in (*damaged_chunks(self.data, names), *damaged_marks):
            path.unlink()
        if damaged_marks:
            self.repaired.append("the marks of the cells that are done, computed again")
        self.seeds_done = np.asarray(self.arrays[DONE][...])
        lost = missing_chunks(self.data, {name: read_metadata(self.data / name) for name in names}, self.seeds_done)
        for point in lost:
            self.seeds_done[point] = 0
        if lost:
            self.repaired.append(f"data of {len(lost)} {'cell' if len(lost) == 1 else 'cells'}, computed again")
        self._write_marks()
        self.num_successes = np.zeros(spec.shape, dtype=int)
        if spec.record.success and self.seeds_done.any():
            self.num_successes = np.sum(self.arrays[SUCCEEDED][...] == 1, axis=-1)

    def unfinished(self, points: Sequence[Point], seeds: int) -> list[tuple[Point, int]]:
        """The cells that are not finished, each with its first missing seed."""
        return [(p, int(self.seeds_done[p])) for p in points if self.seeds_done[p] < seeds]

    def write_cells(self, points: Sequence[Point], first_seed: int, data: Mapping[str, np.ndarray], seeds: int) -> None:
        """Write the data of cells from seed ``first_seed`` on, then their marks."""
        for i, point in enumerate(points):
            self._write_cell(point, first_seed, {name: values[i] for name, values in data.items()}, seeds)
        self._write_marks()

    def _write_cell(self, point: Point, first_seed: int, data: Mapping[str, np.ndarray], seeds: int) -> None:
        for name, values in data.items():
            array = self.arrays[name]
            part = (slice(first_seed, seeds),) if SEED in array.metadata.dimension_names else ()
            array[(*point, *part)] = values
        self.seeds_done[point] = seeds
        if SUCCEEDED in data:
            before = self.num_successes[point] if first_seed else 0
            self.num_successes[point] = before + np.sum(data[SUCCEEDED] == 1)

    def _write_marks(self) -> None:
        self.arrays[DONE][...] = self.seeds_done

    def damage(self) -> list[str]:
        """Sentences about what is missing or damaged; none for a good store."""
        try:
            description = self.description()
        except DamagedStore as error:
            return [error.fault]
        if description is None:
            return [f"{str(self.file)!r} is missing"]
        names = ("", *description["axes"], SEED, *((QUANTILE,) if _has_quantiles(description) else ()))
        return damage(self.data, description["arrays"], names[1:])

    def success_shares(self, seeds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The share of successes and the ends of its interval, in the order of the store; NaN where not computed."""
        from gyrostat.experiments.statistics import wilson

        finished = self.seeds_done >= seeds
        low, high = wilson(self.num_successes, seeds)
        share, low, high = (np.where(finished, x, np.nan) for x in (self.num_successes / seeds, low, high))
        return share, low, high

    def load(self) -> xr.Dataset:
        """All data, with the share of successes; the values of numeric axes are in increasing order."""
        import xarray as xr

        if found := self.damage():
            raise DamagedStore(
                found[0] + (f" (and {len(found) - 1} more)" if len(found) > 1 else ""),
                "run the same sweep again to compute what is lost",
            )
        ds = xr.open_zarr(self.data, consolidated=False, chunks=None, decode_times=False).load()
        ds.close()
        for attributes in (ds.attrs, *(x.attrs for x in ds.variables.values())):
            for name in (CHECKSUM, KINDS, SWEEP):
                attributes.pop(name, None)
        for name, axis in (self.description() or {})["axes"].items():
            if ds[name].dtype.kind in "OUT":
                ds = ds.assign_coords({name: np.array([str(v) for v in ds[name].values])})
            else:
                ds = ds.sortby(name)
            ds[name].attrs.update(label=axis["label"], scale=axis["scale"])
        return with_meanings(with_success(with_times(ds)))


def with_times(ds: xr.Dataset) -> xr.Dataset:
    """The data with steps at which something happened to a run as times: infinite for never, NaN for not computed.

    The store holds whole numbers: -1 for never, -2 for not computed.
    """
    names = [name for name in RUN_OUTCOMES if name in ds and ds[name].dtype.kind == "i"]
    times = {name: ds[name].astype(float).where(ds[name] != -1, np.inf).where(ds[name] != -2) for name in names}
    return ds.assign(times)


def with_meanings(ds: xr.Dataset) -> xr.Dataset:
    """The data with what every variable and coordinate is as attributes, and a note on diverged runs as the first one."""
    from gyrostat.diagnostics import DIAGNOSTICS
    from gyrostat.engine.results import SEED_MEANING, meaning_of, meaning_of_outcome, meaning_of_setting
    from gyrostat.engine.summary import with_note

    def about(name: str) -> dict[str, str]:
        if name in MEANINGS:
            return dict(zip(("long_name", "units", "one_means"), MEANINGS[name], strict=True))
        for ending, words in (("_path", ""), ("_quantiles", ", quantiles over seeds"), ("", ", last value")):
            if name.endswith(ending) and (diagnostic := DIAGNOSTICS.get(name.removesuffix(ending))):
                found = meaning_of(diagnostic)
                return {**found, "long_name": found["long_name"] + words}
        return meaning_of_outcome(name)

    for name in ds.variables:
        axis = {"long_name": ds[name].attrs["label"]} if "label" in ds[name].attrs else {}
        is_axis = name in ds.coords and name not in MEANINGS
        found = SEED_MEANING if name == SEED else meaning_of_setting(str(name)) if is_axis else about(str(name))
        ds[name].attrs.update({**found, **axis})
    return with_note(ds)


MEANINGS = {
    "done": ("number of seeds that are computed", "runs", "one run"),
    "steps": ("number of steps of a run", "steps", "a run of one step"),
    "succeeded": ("whether the run is a success (-1: not computed)", "1", "a success"),
    "success": ("share of the runs that are successes", "1", "every run is a success"),
    "success_low": ("lower end of the 95 % interval of the share of successes", "1", "every run is a success"),
    "success_high": ("upper end of the 95 % interval of the share of successes", "1", "every run is a success"),
    "quantile": ("quantile over seeds", "1", "the largest of the runs"),
    "record": ("number of the recording", "1", "the second recording"),
}


def with_success(ds: xr.Dataset) -> xr.Dataset:
    """The data with the share of successes and its 95 % (Wilson) interval, from the finished seeds of each cell."""
    from gyrostat.experiments.statistics import wilson

    if SUCCEEDED not in ds:
        return ds
    count = (ds.succeeded >= 0).sum(SEED)
    share = (ds.succeeded == 1).sum(SEED) / count.where(count > 0)
    low, high = wilson((share * count).values, count.where(count > 0).values)
    return ds.assign(success=share, success_low=(share.dims, low), success_high=(share.dims, high))


def load_sweep(folder: Path) -> xr.Dataset:
    """The data of a folder that holds a sweep with at least one finished cell."""
    store = SweepStore(folder)
    if not store.file.exists() and not store.data.exists():
        raise GyrostatError(f"{str(folder)!r} holds no sweep: name the folder given to gyrostat sweep --out.")
    ds = store.load()
    if not bool((ds.done > 0).any()):
        raise GyrostatError(f"no cell of {str(folder)!r} is done yet: there is nothing to show.")
    return ds


def value_text(value: Any) -> str:
    """A value of an axis as text; a table by its kind and its settings.

    >>> value_text({"kind": "TwoPoint", "spread": 6.0}), value_text("cyclic")
    ('TwoPoint(spread=6.0)', 'cyclic')
    """
    if isinstance(value, Mapping) and "kind" in value:
        inside = ", ".join(f"{name}={value_text(x)}" for name, x in value.items() if name != "kind")
        return f"{value['kind']}({inside})" if inside else str(value["kind"])
    return str(as_data(value))


# Whether a spec may continue a store


def _check_same_sweep(spec: Spec, written: Mapping[str, Any], *, extend: bool) -> None:
    """Refuse a spec that differs from the one of the store, and name the differences; ``extend`` allows additions."""
    changed: list[str] = []
    added: list[str] = []
    before, now = written["identity"], spec.identity()
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if data_text(_regardless_of_order(name, old)) != data_text(_regardless_of_order(name, new)):
            text = f"{name}: {_shown(name, old)} -> {_shown(name, new)}"
            (added if _is_addition(name, old, new) else changed).append(text)
    # Values that are added to an axis may be functions, with code of their own.
    known = spec.code.keys() & written["made_by"].keys() if added and extend else spec.code.keys()
    changed += differences(written["made_by"], {name: spec.code[name] for name in known})
    if changed:
        raise GyrostatError(
            f"the folder holds another sweep ({'; '.join(changed)}): choose another --out, or --fresh to compute anew."
        )
    if added and not extend:
        raise GyrostatError(f"the spec has other points than the folder ({'; '.join(added)}): add them with --extend.")


def _regardless_of_order(name: str, value: Any) -> Any:
    """The values of an axis in a fixed order: the store has them in the order in which they were added."""
    return [value[0], sorted(value[1], key=repr)] if name.startswith("axes.") and value is not None else value


def _is_addition(name: str, old: Any, new: Any) -> bool:
    """Whether a difference concerns the values of an axis or the number of seeds, which may grow."""
    if name == "seeds":
        return old < new
    return name.startswith("axes.") and old is not None and new is not None and old[0] == new[0]


def _shown(name: str, value: Any) -> str:
    if name.startswith("axes.") and value is not None:
        return f"{len(value[1])} values {errors.shown(value[1])}"
    return "absent" if value is None else errors.shown(value)


def _in_stored_order(spec: Spec, written: Mapping[str, Any]) -> Spec:
    """The spec with the values of its axes in the order of the store: stored ones first, new ones after them."""
    axes = []
    for a in spec.axes:
        # As the spec has them: a function is stored by its name.
        values = {data_text(value): value for value in (*written["axes"][a.name]["values"], *a.values)}
        axes.append(dataclasses.replace(a, values=tuple(values.values())))
    return dataclasses.replace(spec, axes=tuple(axes))
