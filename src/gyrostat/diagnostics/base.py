"""What a diagnostic is: a named function of a snapshot of a run. The registry of names is here, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxtyping import Array

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.models import Model
from gyrostat.typing import Params


class Snapshot(NamedTuple):
    """What a diagnostic sees of a run at one step: environments, model, parameters, and the shape of the stated target.

    If the engine reduced the run to a subspace, diagnostics that rotate see the reduced environments and parameters.
    """

    environments: Environments
    model: Model
    params: Params
    shape: tuple[int, ...]

    @property
    def product(self) -> Array:
        """A(theta)."""
        return self.model.product(self.params)


SnapshotFunction = Callable[[Snapshot], Array]


class Diagnostic(NamedTuple):
    """A named function of a :class:`Snapshot`; ``dims`` names the dimensions of its value and is empty for a number.

    ``rotates`` means that the value is the same in any orthonormal coordinates of the product, so a reduced run can be used
    as it is; for other diagnostics the parameters are first brought back to the stated coordinates. ``of_product`` means
    that the value depends on the product alone, in the stated coordinates, so hidden layers may stay reduced.

    Recorded variables carry ``description``, ``units`` and ``one_means`` (what a value of 1 means) as attributes.
    ``needs_truth`` means that the value compares with the invariant or the spurious part; it is NaN if they are unknown.
    """

    name: str
    function: SnapshotFunction
    dims: tuple[str, ...] = ()
    description: str = ""
    rotates: bool = False
    of_product: bool = False
    units: str = "1"
    one_means: str = ""
    needs_truth: bool = False

    @property
    def sees(self) -> str:
        """The kind of snapshot it needs: ``"small"`` (reduced), ``"product"`` or ``"stated"``."""
        return "small" if self.rotates else "product" if self.of_product else "stated"


DIAGNOSTICS: dict[str, Diagnostic] = {}
"""All registered diagnostics by name."""


def diagnostic(
    *dims: str,
    rotates: bool = False,
    of_product: bool = False,
    units: str = "1",
    one_means: str = "",
    needs_truth: bool = False,
) -> Callable[[SnapshotFunction], SnapshotFunction]:
    """Register a function of a :class:`Snapshot` under its name, so that ``record=[name]`` finds it.

    The first line of its docstring, ``units`` and ``one_means`` become attributes of the recorded variable.
    """

    def register(function: SnapshotFunction) -> SnapshotFunction:
        text = (function.__doc__ or "").strip().splitlines()
        name = function.__name__
        about = (text[0] if text else "", rotates, of_product, units, one_means, needs_truth)
        DIAGNOSTICS[name] = Diagnostic(name, function, dims, *about)
        return function

    return register


def resolve(names: Sequence[str | Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics with these names; a :class:`Diagnostic` stands for itself."""
    if isinstance(names, str | Diagnostic):
        raise GyrostatError(f"record must be a list of names or Diagnostic objects; got {names!r}: put it in brackets.")
    chosen = []
    for name in names:
        if isinstance(name, Diagnostic):
            chosen.append(name)
        elif isinstance(name, str):
            chosen.append(DIAGNOSTICS[errors.choice("diagnostic", name, DIAGNOSTICS)])
        else:
            raise GyrostatError(f"diagnostics must be names or Diagnostic objects; got {name!r}.")
    return tuple(chosen)
