"""`load_results`: the data of reproduced figures, by name, as labelled datasets."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.reproduce.store import ClaimRecord, ResultsStore, experiment_of

if TYPE_CHECKING:
    import xarray as xr


class UnknownResult(GyrostatError, KeyError):
    """A name that a results folder does not hold; also a KeyError, as a mapping must raise."""

    def __str__(self) -> str:
        return str(self.args[0])  # that of KeyError would put the sentence in quotes


class ReproducedResults(Mapping[str, "xr.Dataset"]):
    """The finished experiments of a results folder: a mapping from ``paper/figure`` to its dataset.

    Names are read when they are asked for, so the mapping follows a folder that is still being written. A dataset is opened
    on access, and its numbers are read from disk where they are used.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._store = ResultsStore(self.folder)

    def __getitem__(self, name: str) -> xr.Dataset:
        dataset = self._store.open(name) if isinstance(name, str) and name.count("/") == 1 else None
        if dataset is None:
            try:
                errors.choice("result", name, self)
            except GyrostatError as error:
                raise UnknownResult(str(error)) from None
            raise UnknownResult(f"result {name!r} is not finished: run `gyrostat reproduce {name}` to its end.")
        return dataset

    def __iter__(self) -> Iterator[str]:
        return iter(self._store.finished())

    def __len__(self) -> int:
        return len(self._store.finished())

    def run(self, name: str) -> dict[str, Any]:
        """How an experiment was run: version, seed, size, settings, seconds, machine and time.

        Args:
            name: ``paper/figure``.
        """
        return self._store.run(errors.choice("result", name, self))

    def claims(self, name: str | None = None) -> list[ClaimRecord]:
        """The records of ``claims.json``: of one experiment, or of all.

        Args:
            name: ``paper/figure``; None for all.
        """
        self._store.refuse_lost_claims()
        return [record for record in self._store.claims() if name is None or experiment_of(record) == name]

    def __repr__(self) -> str:
        names = list(self)
        width = max(map(len, names), default=0)
        count = f"{len(names)} finished experiment{'s' if len(names) != 1 else ''}"
        return "\n".join(
            [f"Results in {str(self.folder)!r}: {count}", *(f"  {n:{width}}  {self._line(n)}" for n in names)]
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _line(self, name: str) -> str:
        run = self._store.run(name)
        return f"{run['size']}, seed {run['seed']}, {run['seconds']:.1f} s, {run['time'][:10]}"


def load_results(folder: str | Path = "results") -> ReproducedResults:
    """The datasets of the figures that ``gyrostat reproduce`` computed in a folder, by name.

    ``load_results("results")["xu2024/fig3"]`` is an xarray Dataset with named dimensions whose numbers are read when they
    are used; ``.load()`` reads them all. The mapping prints the names it holds, ``run(name)`` says how one was computed, and
    ``claims(name)`` lists its claims with their verdicts.

    Parameters
    ----------
    folder
        The folder that was given to ``gyrostat reproduce --out``.

    >>> import tempfile
    >>> import xarray as xr
    >>> folder, run = tempfile.mkdtemp(), {"size": "smoke", "seed": 0, "seconds": 0.1, "time": "2024-05-01"}
    >>> ResultsStore(folder).save("paper/fig1", xr.Dataset({"loss": ("step", [1.0, 0.5])}), "a1b2", run)
    >>> results = load_results(folder)
    >>> list(results), results["paper/fig1"].loss.values.tolist()
    (['paper/fig1'], [1.0, 0.5])
    """
    path = Path(folder)
    if not (path / "results.zarr").is_dir():
        why = "is not a folder" if not path.is_dir() else "holds no results.zarr"
        sweep = "it holds a sweep, so " if (path / "sweep.json").exists() else ""
        raise GyrostatError(
            f"folder {str(folder)!r} {why}: {sweep}give the folder that was the --out of `gyrostat reproduce`."
        )
    ResultsStore(path).refuse_lost_data()
    return ReproducedResults(path)
