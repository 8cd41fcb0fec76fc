"""The arrays of a sweep's store: what each holds, and its dimensions beside the axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gyrostat.sweeps.record import QUANTILES

if TYPE_CHECKING:
    import xarray as xr

    from gyrostat.sweeps.spec import Spec

DONE, SUCCEEDED = "done", "succeeded"
SEED, RECORD, QUANTILE = "seed", "record", "quantile"


class Variable(NamedTuple):
    """An array over the axes and these dimensions; ``missing`` stands where no cell was computed."""

    dims: tuple[str, ...]
    dtype: str
    missing: Any

    def sizes(self, spec: Spec) -> tuple[int, ...]:
        """The lengths of the dimensions beside the axes."""
        known = {SEED: spec.seeds, RECORD: spec.record.points, QUANTILE: len(QUANTILES)}
        return tuple(known[dim] for dim in self.dims)


def variables(spec: Spec) -> dict[str, Variable]:
    """All arrays of data, by name: ``spurious``, ``spurious_path``, ``spurious_quantiles``, ``succeeded``, ..."""
    kept = spec.record
    found = {name: Variable((SEED,), "float64", np.nan) for name in kept.final}
    found |= {f"{name}_path": Variable((SEED, RECORD), "float64", np.nan) for name in kept.paths}
    found |= {f"{name}_quantiles": Variable((QUANTILE, RECORD), "float64", np.nan) for name in kept.quantiles}
    if kept.success:
        found[SUCCEEDED] = Variable((SEED,), "int8", -1)
    if spec.options["tolerance"] is not None:
        found["reached"] = Variable((SEED,), "int32", -2)
    found["diverged"] = Variable((SEED,), "int32", -2)
    found["steps"] = Variable((), "int32", -1)
    return found


def summarised(ds: xr.Dataset) -> xr.Dataset:
    """The data with the share of successes and its 95 % (Wilson) interval, from the seeds that are done in each cell."""
    from gyrostat.experiments.statistics import wilson

    if SUCCEEDED not in ds:
        return ds
    count = (ds.succeeded >= 0).sum(SEED)
    share = (ds.succeeded == 1).sum(SEED) / count.where(count > 0)
    low, high = wilson((share * count).values, count.where(count > 0).values)
    return ds.assign(success=share, success_low=(share.dims, low), success_high=(share.dims, high))
