"""What a diagnostic is: a named function of a snapshot of a run. The registry of names is here, too."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from gyrostat import errors
from gyrostat.environments import Environments
from gyrostat.errors import GyrostatError
from gyrostat.measurements.base import Measurements
from gyrostat.measurements.identity import Identity
from gyrostat.models import Model
from gyrostat.typing import Params


class Snapshot(NamedTuple):
    """What a diagnostic sees of a run at one step: environments, model, parameters, and the shape of the stated target.

    If the engine reduced the run to a subspace, diagnostics that rotate see the reduced environments and parameters.
    ``measurements`` are those of the run, and ``data`` their state.
    """

    environments: Environments
    model: Model
    params: Params
    shape: tuple[int, ...]
    measurements: Measurements = Identity()
    data: Any = ()

    @property
    def product(self) -> Array:
        """A(theta)."""
        return self.model.product(self.params)


SnapshotFunction = Callable[[Snapshot], Array]


@errors.checks_fields
class Diagnostic(NamedTuple):
    """A named function of a :class:`Snapshot`: what a run can record.

    The recorded variable carries ``description``, ``units`` and ``one_means`` as attributes.

    Parameters
    ----------
    name
        The name of the recorded variable.
    function
        A function of a snapshot that returns a number or an array.
    dims
        The names of the dimensions of its value; empty for a number.
    description
        What it means, in a sentence.
    rotates
        True if the value is the same in any orthonormal coordinates of the product: a reduced run can be used as it is. For
        other diagnostics the parameters are first brought back to the stated coordinates.
    of_product
        True if the value depends on the product alone, in the stated coordinates: hidden layers may stay reduced.
    units
        The unit of the value.
    one_means
        What a value of 1 means.
    needs_truth
        True if the value compares with the invariant or the spurious part: it is NaN where they are unknown.
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

    def value(self, snapshot: Snapshot) -> Array:
        """The value at a snapshot; an error if it cannot be computed, or if its dimensions are not those of ``dims``."""
        start = f"the diagnostic {self.name!r}"
        model = type(snapshot.model).__name__
        try:
            value = self.function(snapshot)
        except GyrostatError:
            raise
        except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
            raise GyrostatError(
                f"{start} cannot be compiled ({type(error).__name__}): use jax.numpy instead of numpy, and neither float() nor "
                "if on its values."
            ) from error
        except Exception as error:
            reason = " ".join(str(error).split(". ")[0].split())[:120]
            raise GyrostatError(
                f"{start} cannot be computed for {model} ({type(error).__name__}: {reason}): its argument is a snapshot, with "
                "environments, model, params, shape and product."
            ) from error
        if not isinstance(value, jax.Array | np.ndarray | np.generic | int | float):
            raise GyrostatError(
                f"{start} must give a number or an array; got {errors.shown(value)}: jnp.stack makes an array of a list."
            )
        if np.ndim(value) != len(self.dims):
            words = ["row", "column", "layer", "component"][: np.ndim(value)]
            gives, advice = f"an array of shape {np.shape(value)}", f"write dims={words}, or words of your own"
            if not words:
                gives, advice = "a number", f"leave them out; another name is name={self.dims[0]!r}"
            raise GyrostatError(f"{start} gives {gives} for {model}, and its dims are {list(self.dims)}: {advice}.")
        return value

    @property
    def sees(self) -> str:
        """The kind of snapshot it needs: ``"small"`` (reduced), ``"product"`` or ``"stated"``."""
        return "small" if self.rotates else "product" if self.of_product else "stated"


DIAGNOSTICS: dict[str, Diagnostic] = {}
"""All registered diagnostics by name."""


@errors.explains_keywords
def diagnostic(
    *function_or_dims: Any,
    name: str | None = None,
    dims: str | Sequence[str] | None = None,
    rotates: bool = False,
    of_product: bool = False,
    units: str = "1",
    one_means: str = "",
    needs_truth: bool = False,
) -> Any:
    """Register a function of a :class:`Snapshot`, so that ``record=[name]`` finds it.

    ``@diagnostic`` alone is for a function that gives a number; ``@diagnostic("row", "column")``, the same as
    ``@diagnostic(dims=["row", "column"])``, names the dimensions of an array. Mistakes in the function are reported when a run
    that records it begins, before anything is compiled.

    Parameters
    ----------
    function_or_dims
        The function, if the decorator is used without parentheses; otherwise names of dimensions.
    name
        The name under which it is recorded; by default the name of the function.
    dims
        The name of each dimension of the value.
    rotates
        Whether the value is the same in any orthonormal coordinates of the product (:class:`Diagnostic`).
    of_product
        Whether the value depends on the product alone (:class:`Diagnostic`).
    units, one_means
        The unit of the value and the meaning of a value of 1: attributes of the recorded variable, beside the first line of
        the docstring.
    needs_truth
        Whether the value compares with the truth: it is NaN where the truth is not known.

    >>> import jax.numpy as jnp
    >>> @diagnostic
    ... def example_trace(snapshot):
    ...     \"\"\"The trace of A.\"\"\"
    ...     return jnp.trace(snapshot.product)
    >>> DIAGNOSTICS["example_trace"].description
    'The trace of A.'
    """
    functions = [x for x in function_or_dims if callable(x)]
    words = [x for x in function_or_dims if not callable(x)]
    if words and dims is not None:
        raise GyrostatError(
            f"diagnostic got dimensions twice, {words} and dims={dims!r}: leave one out, or write name={words[0]!r}."
        )
    if not (dims is None or isinstance(dims, str | Sequence)):
        raise GyrostatError(f"dims must be a word or a list of words, such as 'layer'; got {errors.shown(dims)}.")
    names = tuple(_word("dims", word) for word in ([dims] if isinstance(dims, str) else dims or words))
    if len(set(names)) < len(names):
        raise GyrostatError(f"dims must be different words; got {list(names)}.")

    def register(function: SnapshotFunction) -> SnapshotFunction:
        made = _described(function, name)._replace(
            dims=names,
            rotates=rotates,
            of_product=of_product,
            units=units,
            one_means=one_means,
            needs_truth=needs_truth,
        )
        DIAGNOSTICS[made.name] = made
        return function

    return register(*functions) if functions else register


RESERVED = ("seed", "step", "record", "diverged", "reached")
"""Names in every result that neither a diagnostic nor its dimensions may take."""

RENAMED = {"loss": "full_loss"}
"""Old names of diagnostics, which can be recorded for one more version."""


def _described(function: Any, name: str | None = None) -> Diagnostic:
    """The diagnostic of a function, described by the first line of its docstring."""
    if not callable(function):
        raise GyrostatError(
            f"a diagnostic is a function of a snapshot; got {errors.shown(function)}: record= lists names, functions and "
            "Diagnostic objects."
        )
    name = getattr(function, "__name__", "") if name is None else name
    if name == "<lambda>":
        raise GyrostatError(
            "a lambda has no name to record it under: define it with def, or write gs.diagnostics.Diagnostic(name, it)."
        )
    known = DIAGNOSTICS.get(_word("name", name))
    if known is not None and _is_ours(known.function) and not _is_ours(function):
        raise GyrostatError(f"the diagnostic {name!r} exists already ({known.description}): choose another name=.")
    text = (function.__doc__ or "").strip().splitlines()
    return Diagnostic(name, function, description=text[0] if text else "")


def _word(argument: str, value: Any) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise GyrostatError(f"{argument} must be a word such as 'layer'; got {errors.shown(value)}.")
    if value in RESERVED:
        raise GyrostatError(f"{argument} cannot be {value!r}, which every result has already: choose another word.")
    return value


def _is_ours(function: Any) -> bool:
    return getattr(function, "__module__", "").startswith("gyrostat.")


class DiagnosticTable(tuple[Diagnostic, ...]):
    """Diagnostics in alphabetical order; printed, and in notebooks, as a table of names, dimensions and meanings.

    >>> DiagnosticTable([Diagnostic("norm", abs, ("layer",), "The norm of a layer.")])
    name  dimensions  meaning
    norm  layer       The norm of a layer.
    """

    __slots__ = ()

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The name, the dimensions and the meaning of each."""
        return [(d.name, ", ".join(d.dims), d.description) for d in self]

    def __repr__(self) -> str:
        rows = [("name", "dimensions", "meaning"), *self.rows]
        first, second = (max(len(row[k]) for row in rows) for k in (0, 1))
        return "\n".join(f"{a:{first}}  {b:{second}}  {c}".rstrip() for a, b, c in rows)


def table() -> DiagnosticTable:
    """All registered diagnostics, yours included: :func:`gyrostat.diagnostics.list`.

    >>> import gyrostat as gs
    >>> [row for row in gs.diagnostics.list().rows if row[0] == "distance"]
    [('distance', '', '||A - A_star||_F.')]
    """
    return DiagnosticTable(DIAGNOSTICS[name] for name in sorted(DIAGNOSTICS))


def named(name: str) -> Diagnostic:
    """The registered diagnostic with this name; an old name warns and stays that of the recorded variable.

    >>> named("signal").one_means
    'the invariant signal is learnt in full'
    """
    if name in RENAMED and name not in DIAGNOSTICS:
        now = DIAGNOSTICS[RENAMED[name]]
        warnings.warn(
            f"the diagnostic {name!r} is now {now.name!r}: {now.description}",
            DeprecationWarning,
            stacklevel=6,  # named, resolve, simulate, run and its decorator stand between the warning and the call
        )
        return now._replace(name=name)
    return DIAGNOSTICS[errors.choice("diagnostic", name, DIAGNOSTICS)]


def resolve(record: Sequence[str | Diagnostic | SnapshotFunction]) -> tuple[Diagnostic, ...]:
    """The diagnostics of names and functions; a plain function gives a number, which is recorded under its name."""
    if isinstance(record, str | Diagnostic) or not isinstance(record, Sequence | set | frozenset | np.ndarray):
        raise GyrostatError(
            f"record must be a list of names, functions or Diagnostic objects; got {errors.shown(record)}: put it in brackets."
        )
    diagnostics: list[Diagnostic] = []
    for entry in record:
        if isinstance(entry, Diagnostic):
            one = entry
        elif isinstance(entry, str):
            one = named(entry)
        else:
            one = next((d for d in DIAGNOSTICS.values() if d.function is entry), None) or _described(entry)
        if any(one.name == other.name and one.function is not other.function for other in diagnostics):
            raise GyrostatError(
                f"record holds two different diagnostics that are named {one.name!r}: rename one of them."
            )
        diagnostics.append(one)
    return tuple(diagnostics)
