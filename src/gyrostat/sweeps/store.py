"""The folder of a sweep: its lock, ``sweep.json`` (spec and counts of cells) and ``store.zarr`` (one chunk per cell).

``sweep.json`` holds the values of the axes in the order in which they were added. It is always replaced as a whole, and the
arrays of the store follow it. The data of a cell are written first and its mark last: ``done`` holds the number of finished
seeds of every cell. A kill at any moment therefore leaves cells that are done and cells that are not, and nothing between.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
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
from gyrostat.parallel.whole_files import plain, writable, write_whole
from gyrostat.sweeps.plan import sweep_digest
from gyrostat.sweeps.spec import QUANTILES, RUN_OUTCOMES, Point, Spec

if TYPE_CHECKING:
    import xarray as xr

# xarray, and the statistics that need it, are imported inside functions: workers import this module, too, and xarray alone
# takes most of a second.

DONE, SUCCEEDED = "done", "succeeded"
SEED, RECORD, QUANTILE = "seed", "record", "quantile"


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
    written = store.description()
    if written is not None:
        _check_same_sweep(spec, written, extend=extend)
        spec = _in_stored_order(spec, written)
    store.write_description(spec)
    store.prepare_arrays(spec)
    return store, spec


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
    """The results of one sweep. The values of an axis are stored in the order in which they were added."""

    root: Any
    seeds_done: np.ndarray
    num_successes: np.ndarray

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.data, self.file = self.folder / "store.zarr", self.folder / "sweep.json"

    def description(self) -> dict[str, Any] | None:
        """The content of ``sweep.json``, or None when there is no such file."""
        try:
            return json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            raise GyrostatError(f"{str(self.file)!r} cannot be read ({error}): choose another --out.") from None

    def write_description(self, spec: Spec, report: Mapping[str, Any] | None = None) -> None:
        """Replace ``sweep.json``; ``report`` says how far the sweep is."""
        axes = {
            a.name: {"path": a.path, "values": list(a.values), "scale": a.scale, "label": a.label} for a in spec.axes
        }
        content = {
            "title": spec.title,
            "summary": spec.summary,
            "identity": spec.identity(),
            "axes": axes,
            "made_by": _made_by(),
            **(report or {}),
        }
        write_whole(self.file, json.dumps(plain(content), indent=1, allow_nan=False) + "\n")

    def remove(self) -> None:
        """Remove everything: ``sweep.json`` first, because the arrays mean nothing without it."""
        self.file.unlink(missing_ok=True)
        shutil.rmtree(self.data, ignore_errors=True)

    def prepare_arrays(self, spec: Spec) -> None:
        """Create the arrays that the spec needs and are missing, and lengthen those that are too short."""
        import zarr

        for partial in self.data.rglob("*.partial"):  # left by a write that was killed
            partial.unlink()
        self.data.mkdir(parents=True, exist_ok=True)
        self.root = zarr.open_group(self.data, mode="a", zarr_format=3)
        self.root.attrs.update({"gyrostat": __version__, "title": spec.title, "success": spec.record.success_text})
        dims = tuple(a.name for a in spec.axes)
        for name, array in stored_arrays(spec).items():
            shape = (*spec.shape, *array.sizes(spec))
            self._prepare_array(name, (*dims, *array.dims), shape, array, cell_dims=len(dims))
        self._prepare_array(DONE, dims, spec.shape, StoredArray((), "int32", 0), cell_dims=0)
        for a in spec.axes:
            self._prepare_coordinate(a.name, list(a.values))
        self._prepare_coordinate(SEED, list(range(spec.seeds)))
        if spec.record.quantiles:
            self._prepare_coordinate(QUANTILE, list(QUANTILES))
        self.seeds_done = np.asarray(self.root[DONE][...])
        self.num_successes = np.zeros(spec.shape, dtype=int)
        if spec.record.success and self.seeds_done.any():
            self.num_successes = np.sum(self.root[SUCCEEDED][...] == 1, axis=-1)

    def _prepare_array(
        self, name: str, dims: tuple[str, ...], shape: tuple[int, ...], like: StoredArray, *, cell_dims: int
    ) -> None:
        """Create or lengthen an array, whose chunks have length 1 along the first ``cell_dims`` dimensions."""
        if name in self.root:
            if self.root[name].shape != shape:
                self.root[name].resize(shape)
            return
        chunks = (*(1 for _ in range(cell_dims)), *shape[cell_dims:])
        self.root.create_array(
            name,
            shape=shape,
            chunks=tuple(max(1, n) for n in chunks),
            dtype=like.dtype,
            fill_value=like.missing,
            dimension_names=dims,
        )

    def _prepare_coordinate(self, name: str, values: list[Any]) -> None:
        if name in self.root and self.root[name].shape == (len(values),):
            return
        numbers = all(isinstance(v, int | float) for v in values)
        array = np.array(values if numbers else [value_text(v) for v in values], dtype=None if numbers else object)
        coordinate = self.root.create_array(
            name,
            shape=array.shape,
            chunks=array.shape,
            dtype=array.dtype if numbers else "string",
            dimension_names=(name,),
            overwrite=True,
        )
        coordinate[...] = array

    def unfinished(self, points: Sequence[Point], seeds: int) -> list[tuple[Point, int]]:
        """The cells that are not finished, each with its first missing seed."""
        return [(p, int(self.seeds_done[p])) for p in points if self.seeds_done[p] < seeds]

    def write_cells(self, points: Sequence[Point], first_seed: int, data: Mapping[str, np.ndarray], seeds: int) -> None:
        """Write the data of cells from seed ``first_seed`` on, then their marks."""
        for name, values in data.items():
            array = self.root[name]
            part = (slice(first_seed, seeds),) if SEED in array.metadata.dimension_names else ()
            for point, value in zip(points, values, strict=True):
                array[(*point, *part)] = value
        for i, point in enumerate(points):
            self.seeds_done[point] = seeds
            if SUCCEEDED in data:
                before = self.num_successes[point] if first_seed else 0
                self.num_successes[point] = before + np.sum(data[SUCCEEDED][i] == 1)
        self.root[DONE][...] = self.seeds_done

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

        ds = xr.open_zarr(self.data, consolidated=False, chunks=None, decode_times=False).load()
        ds.close()
        description = self.description()
        assert description is not None
        for name, axis in description["axes"].items():
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
    if store.description() is None or not store.data.exists():
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
    return str(value)


# Whether a spec may continue a store


def _made_by() -> dict[str, str]:
    """The versions of the code that decide the bits of a result."""
    return {"gyrostat": f"{__version__}+{sweep_digest()}", "jax": importlib.metadata.version("jax")}


def _check_same_sweep(spec: Spec, written: Mapping[str, Any], *, extend: bool) -> None:
    """Refuse a spec that differs from the one of the store, and name the differences; ``extend`` allows additions."""
    changed: list[str] = []
    added: list[str] = []
    before = {**written["identity"], **written["made_by"]}
    now = plain({**spec.identity(), **_made_by()})
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if _regardless_of_order(name, old) != _regardless_of_order(name, new):
            text = f"{name}: {_shown(name, old)} -> {_shown(name, new)}"
            (added if _is_addition(name, old, new) else changed).append(text)
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
        stored = written["axes"][a.name]["values"]
        axes.append(dataclasses.replace(a, values=(*stored, *(v for v in a.values if v not in stored))))
    return dataclasses.replace(spec, axes=tuple(axes))
