"""What a diagnostic is: a named function of a snapshot of a run. The registry of names is here, too."""

from __future__ import annotations

import functools
import html
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from gyrostat import errors
from gyrostat.environments import Environments, RectangularEnvironments, TwoPoint, VectorEnvironments
from gyrostat.errors import GyrostatError
from gyrostat.jax_tools.frozen_randomness import check_no_frozen_numbers
from gyrostat.models import Asymmetric, DeepLinear, Diagonal, Model, Symmetric, SymmetricDifference
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


@errors.checks_fields
class Diagnostic(NamedTuple):
    """A named function of a :class:`Snapshot`; ``dims`` names the dimensions of its value and is empty for a number.

    ``rotates`` means that the value is the same in any orthonormal coordinates of the product, so a reduced run can be used
    as it is; for other diagnostics the parameters are first brought back to the stated coordinates. ``of_product`` means
    that the value depends on the product alone, in the stated coordinates, so hidden layers may stay reduced.

    Recorded variables carry ``description``, ``units`` and ``one_means`` (what a value of 1 means) as attributes.
    ``needs_truth`` means that the value compares with the invariant or the spurious part; it is NaN if they are unknown.

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
        True if the value is the same in any orthonormal coordinates.
    of_product
        True if the value depends on the product alone.
    units
        The unit of the value.
    one_means
        What a value of 1 means.
    needs_truth
        True if it compares with the truth; it is NaN where that is unknown.
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
        try:
            value = self.function(snapshot)
        except GyrostatError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split(". ")[0].split())[:120]
            raise GyrostatError(
                f"the diagnostic {self.name!r} cannot be computed for {type(snapshot.model).__name__} ({type(error).__name__}: "
                f"{reason}): its argument is a snapshot, with environments, model, params, shape and product."
            ) from error
        if np.ndim(value) != len(self.dims):
            raise GyrostatError(
                f"the diagnostic {self.name!r} gives an array of shape {np.shape(value)} for {type(snapshot.model).__name__}, "
                f"and its dims name {len(self.dims)} dimensions: record another one, or declare its dims."
            )
        return value

    @property
    def sees(self) -> str:
        """The kind of snapshot it needs: ``"small"`` (reduced), ``"product"`` or ``"stated"``."""
        return "small" if self.rotates else "product" if self.of_product else "stated"


DIAGNOSTICS: dict[str, Diagnostic] = {}
"""All registered diagnostics by name."""


@errors.explains_keywords
def diagnostic(
    *given: Any,
    name: str | None = None,
    dims: str | Sequence[str] | None = None,
    rotates: bool = False,
    of_product: bool = False,
    units: str = "1",
    one_means: str = "",
    needs_truth: bool = False,
) -> Any:
    """Register a function of a :class:`Snapshot`, so that ``record=[name]`` finds it.

    ``@diagnostic`` alone is for a function that gives a number. ``@diagnostic(name="top")`` registers it under another name,
    and ``@diagnostic(dims="layer")`` or ``@diagnostic(dims=["row", "column"])`` names the dimensions of an array.
    ``@diagnostic("row", "column")``, without keywords, also names dimensions; a single word is taken as the name if the
    function gives a number. The function is tried on small models, so most mistakes are reported here.

    Parameters
    ----------
    given
        The function, if the decorator is used without parentheses; otherwise names of dimensions, or a name.
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
    if not (dims is None or isinstance(dims, str | Sequence)):
        raise GyrostatError(f"dims must be a word or a list of words, such as 'layer'; got {errors.shown(dims)}.")
    about = (rotates, of_product, units, one_means, needs_truth)
    if len(given) == 1 and callable(given[0]):
        return _registered(given[0], name, dims, *about)
    words = [_word("dims", word) for word in given]
    if words and dims is not None:
        raise GyrostatError(
            f"diagnostic got dimensions twice, {words} and dims={dims!r}: leave one out, or write name={words[0]!r}."
        )

    def register(function: SnapshotFunction) -> SnapshotFunction:
        if (
            len(words) == 1
            and name is None
            and not _is_ours(function)
            and {ndim for ndim, _ in _tried(function)} == {0}
        ):
            return _registered(function, words[0], (), *about)
        return _registered(function, name, words or dims, *about)

    return register


RESERVED = ("seed", "step", "record", "diverged", "reached")
"""Names in every result that neither a diagnostic nor its dimensions may take."""


def _registered(function: Any, name: str | None, dims: str | Sequence[str] | None, *about: Any) -> SnapshotFunction:
    if not callable(function):
        raise GyrostatError(f"diagnostic decorates a function of a snapshot; got {errors.shown(function)}.")
    name = _word("name", function.__name__ if name is None else name)
    listed = (dims,) if isinstance(dims, str) else tuple(() if dims is None else dims)
    words = tuple(_word("dims", word) for word in listed)
    if len(set(words)) < len(words):
        raise GyrostatError(f"dims must be different words; got {list(words)}.")
    DIAGNOSTICS[name] = _checked(function, name, words, *about)
    return function


def _checked(function: Any, name: str, words: tuple[str, ...] = (), *about: Any) -> Diagnostic:
    """The diagnostic of a function, described by the first line of its docstring; an error for mistakes that a trial shows."""
    known = DIAGNOSTICS.get(_word("name", name))
    if known is not None and _is_ours(known.function) and not _is_ours(function):
        raise GyrostatError(f"the diagnostic {name!r} exists already ({known.description}): choose another name=.")
    _check_arguments(name, function)
    if not _is_ours(function):
        # A function that takes the parameters apart may be for other models than ours; the run checks its dimensions.
        found = [ndim for ndim, is_general in _tried(function) if is_general]
        if found and len(words) not in found:
            raise GyrostatError(
                f"the diagnostic {name!r} gives {_counted(found[0])} and dims names {len(words)}: write "
                f"{_suggested(found[0])}."
            )
    text = (function.__doc__ or "").strip().splitlines()
    return Diagnostic(name, function, words, text[0] if text else "", *about)


def _word(argument: str, value: Any) -> str:
    if not isinstance(value, str) or not value.isidentifier():
        raise GyrostatError(f"{argument} must be a word such as 'layer'; got {errors.shown(value)}.")
    if value in RESERVED:
        raise GyrostatError(f"{argument} cannot be {value!r}, which every result has already: choose another word.")
    return value


def _is_ours(function: Any) -> bool:
    return getattr(function, "__module__", "").startswith("gyrostat.")


def _check_arguments(name: str, function: Any) -> None:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise GyrostatError(
            f"the diagnostic {name!r} must take one argument, the snapshot; it takes {inspect.signature(function)}."
        ) from None


def _counted(ndim: int) -> str:
    return "a number" if ndim == 0 else f"an array with {ndim} dimension{'s' * (ndim > 1)}"


def _suggested(ndim: int) -> str:
    words = ["row", "column", "component", "layer"][:ndim]
    return f"dims={words!r} (or words of your own)" if ndim else "@diagnostic, or @diagnostic(name=...)"


class TrialSnapshot(Snapshot):
    """A snapshot that notes whether its parameters were looked at, other than through the product."""

    looked = False

    @property
    def params(self) -> Params:
        """The parameters."""
        self.looked = True
        return self[2]

    @property
    def product(self) -> Array:
        """A(theta)."""
        return self[1].product(self[2])


def _tried(function: Any) -> list[tuple[int, bool]]:
    """The number of dimensions of its value on every small model, and whether it did without the parameters.

    Raises an error for mistakes that are those of the function.
    """
    _check_arguments(getattr(function, "__name__", "of this function"), function)
    found = []
    for snapshot in _small_snapshots():
        seen: list[TrialSnapshot] = []
        made: list[Any] = []

        def on_trial(params: Params, snapshot: Snapshot = snapshot, seen: list = seen, made: list = made) -> Any:
            seen.append(TrialSnapshot(snapshot.environments, snapshot.model, params, snapshot.shape))
            made.append(function(seen[-1]))
            return made[-1]

        try:
            value = jax.eval_shape(on_trial, snapshot.params)
        except Exception as error:
            _raise_if_hopeless(function, error)
            value = made[-1] if made else seen
        if value is seen:
            continue
        if not isinstance(value, jax.ShapeDtypeStruct):
            raise GyrostatError(
                f"the diagnostic {function.__name__!r} must give a number or an array; got {errors.shown(value)}."
            )
        types = tuple(jax.ShapeDtypeStruct(p.shape, p.dtype) for p in snapshot.params)
        check_no_frozen_numbers(f"the diagnostic {function.__name__!r}", on_trial, types)
        found.append((len(value.shape), not seen[-1].looked))
    return found


def _raise_if_hopeless(function: Any, error: Exception) -> None:
    """Report a mistake that fails on every model.

    Others may be due to a model that the function is not for, or to a name that is defined further down in its file.
    """
    start = f"the diagnostic {function.__name__!r} cannot be computed ({type(error).__name__}"
    if isinstance(error, jax.errors.TracerArrayConversionError | jax.errors.ConcretizationTypeError):
        raise GyrostatError(
            f"{start}): use jax.numpy instead of numpy, and neither float() nor if on its values."
        ) from None
    if isinstance(error, AttributeError) and isinstance(error.obj, Snapshot):
        raise GyrostatError(
            f"{start}: {error}): a snapshot has environments, model, params, shape and product."
        ) from None


@functools.lru_cache(maxsize=1)
def _small_snapshots() -> tuple[Snapshot, ...]:
    """Snapshots of all models, for trying a diagnostic."""
    law, eye, tall = TwoPoint(spread=2.0), np.eye(4), np.eye(3)
    square = Environments(eye[:, :1], eye[:, 1:2], law)
    rectangle = RectangularEnvironments(eye[:, :1], tall[:, :1], eye[:, 1:2], tall[:, 1:2], law)
    vector = VectorEnvironments([1.0, 0.0, 0.0], [1], law)
    pairs: list[tuple[Environments, Model]] = [
        (square, Symmetric()),
        (square, SymmetricDifference()),
        (square, Asymmetric()),
        (rectangle, Asymmetric(2)),
        (rectangle, DeepLinear(3, 4)),
        (vector, Diagonal()),
    ]
    return tuple(
        Snapshot(environments, model, tuple(np.ones(s) for s in model.shapes(environments.shape)), environments.shape)
        for environments, model in pairs
    )


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

    def _repr_html_(self) -> str:
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self.rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><tr><th>name</th><th>dimensions</th><th>meaning</th></tr>{body}</table>"


def table() -> DiagnosticTable:
    """All registered diagnostics, yours included: :func:`gyrostat.diagnostics.list`.

    >>> import gyrostat as gs
    >>> found = gs.diagnostics.list()
    >>> [row for row in found.rows if row[0] == "distance"]
    [('distance', '', '||A - A_star||_F.')]
    """
    return DiagnosticTable(DIAGNOSTICS[name] for name in sorted(DIAGNOSTICS))


def resolve(names: Sequence[str | Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics with these names; a :class:`Diagnostic` or a function of a snapshot stands for itself."""
    if isinstance(names, str | Diagnostic) or not isinstance(names, Sequence | set | frozenset | np.ndarray):
        raise GyrostatError(
            f"record must be a list of names, functions or Diagnostic objects; got {errors.shown(names)}: put it in brackets."
        )
    chosen = []
    for name in names:
        if isinstance(name, Diagnostic):
            chosen.append(name)
        elif isinstance(name, str):
            chosen.append(DIAGNOSTICS[errors.choice("diagnostic", name, DIAGNOSTICS)])
        else:
            chosen.append(_of_function(name))
    for later, one in enumerate(chosen):
        if any(one.name == other.name and one.function is not other.function for other in chosen[:later]):
            raise GyrostatError(
                f"record holds two different diagnostics that are named {one.name!r}: rename one of them."
            )
    return tuple(chosen)


def _of_function(function: Any) -> Diagnostic:
    """The diagnostic that a function stands for; a plain one gives a number, which is recorded under its name."""
    for known in DIAGNOSTICS.values():
        if known.function is function:
            return known
    if not callable(function):
        raise GyrostatError(f"record must list names, functions or Diagnostic objects; got {errors.shown(function)}.")
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise GyrostatError(
            f"record got {errors.shown(function)}, which has no name: define it with def, or write gs.Diagnostic(name, it)."
        )
    return _checked(function, name)
