"""xarray without the dask that it imports for its first Dataset, where dask is installed.

For each array, xarray asks whether it is one of dask's, and imports ``dask`` and ``dask.array`` to ask. That takes .4 s of the
first result of a process that has nothing to do with dask. But nothing can be an array of a library that nobody has imported.
No argument of xarray turns the question off: it is asked whenever a coordinate is indexed, as in ``result.isel(step=-1)``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def import_xarray() -> ModuleType:
    """Import xarray, and let it answer what it asks of dask without importing it, until somebody else has.

    The two names that are replaced are private. A version of xarray that lacks one of them is left as it is.
    """
    import xarray
    from xarray.namedarray import pycompat, utils

    kept: Any = getattr(pycompat, "_cached_duck_array_modules", None)
    asked: Any = getattr(utils, "is_dask_collection", None)
    if "dask" in sys.modules or kept is None or "dask" in kept or asked is None:
        return xarray

    class Dask:
        """Stands for what xarray keeps about dask, and gives its place to that as soon as dask is imported."""

        def __getattr__(self, name: str) -> Any:
            if name == "type" and "dask.array" not in sys.modules:
                return ()
            kept["dask"] = pycompat.DuckArrayModule("dask")
            return getattr(kept["dask"], name)

    kept["dask"] = Dask()
    utils.is_dask_collection = lambda x: "dask" in sys.modules and asked(x)  # type: ignore[assignment]
    return xarray
