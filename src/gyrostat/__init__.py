"""Gyrostat: a laboratory and a toolkit for the implicit bias of gradient methods in matrix models.

The names for a first run are here. The rest is in namespaces: ``gs.laws``, ``gs.environments``, ``gs.models``, ``gs.starts``,
``gs.schedules``, ``gs.rules``, ``gs.batches``, ``gs.events``, ``gs.measurements``, ``gs.diagnostics``, ``gs.theory``,
``gs.engine``, ``gs.errors``, ``gs.sources``; and the rooms ``gs.estimators``, ``gs.experiments``, ``gs.figures``,
``gs.sweeps``, ``gs.tables`` and ``gs.torch``.

A name is imported on first use, so ``import gyrostat`` is instant and changes nothing in JAX's configuration.
``__init__.pyi`` lists the public names and their homes.
"""

import functools
import gc
import operator
import sys
from typing import Any

import lazy_loader

_find, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["__version__", *_names]

NAMESPACES = (
    *("laws", "environments", "models", "starts", "schedules", "rules", "batches", "events", "measurements"),
    *("theory.xu2024", "theory.xiong2024", "theory.wang2023", "theory.ours"),
    *("diagnostics", "theory", "engine", "errors", "sources", "estimators", "experiments"),
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    # Importing makes no garbage to speak of, and Ctrl-C is lost in the callback of the garbage collector that JAX adds.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _find(name)
    except AttributeError:
        if name.startswith("_") or name in _names:
            raise
    finally:
        if collects:
            gc.enable()

    from gyrostat.what_went import MOVED, instead_of

    # `from gyrostat import NAME` asks first whether the name is there, and would replace the sentence by its own.
    is_from_import = sys._getframe(1).f_code.co_name == "_handle_fromlist"
    if place := MOVED.get(name):
        import warnings

        if not is_from_import:
            sentence = f"gs.{name} is gs.{place} now; the old name goes in the next version."
            warnings.warn(sentence, DeprecationWarning, stacklevel=2)
        return _at(place)
    if sentence := instead_of(f"gyrostat.{name}"):
        raise (ImportError if is_from_import else AttributeError)(sentence, name=name)
    if is_from_import:  # the name may be a module, which is imported after this
        raise AttributeError(name)
    import difflib
    import importlib.util

    if importlib.util.find_spec(f"gyrostat.{name}"):  # as if something had imported the module before
        return importlib.import_module(f"gyrostat.{name}")

    folded = {public.lower(): place for public, place in places().items()}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    hint = f"did you mean gs.{folded[close[0]]}?" if close else "dir(gyrostat) lists the public names."
    raise AttributeError(f"gyrostat has no {name!r}: {hint}", name=name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("gyrostat")
    except PackageNotFoundError:  # a source tree that was not installed
        found = "0+unknown"
    globals()["__version__"] = found
    return found


def __dir__() -> list[str]:
    return __all__


@functools.cache
def places() -> dict[str, str]:
    """Where each public name is: ``HeteroSGD`` at the top, ``starts.Orthogonal`` in a namespace. It imports the namespaces.

    >>> places()["HeteroSGD"], places()["Orthogonal"]
    ('HeteroSGD', 'starts.Orthogonal')
    """
    inside = {name: f"{space}.{name}" for space in reversed(NAMESPACES) for name in _at(space).__all__}
    return inside | {name: name for name in __all__}


def public(name: str) -> Any:
    """The public object of this name, at the top or in a namespace; None if there is none.

    >>> public("Orthogonal").__name__
    'Orthogonal'
    """
    return _at(places()[name]) if name in places() else None


def _at(place: str) -> Any:
    return operator.attrgetter(place)(sys.modules[__name__])
