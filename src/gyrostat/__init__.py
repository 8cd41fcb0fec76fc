"""Gyrostat: a laboratory and a toolkit for the implicit bias of gradient methods in matrix models.

A name is imported on first use, so ``import gyrostat`` is instant and changes nothing in JAX's configuration.
``__init__.pyi`` lists the public names and their homes.
"""

import gc
import sys
from typing import Any

import lazy_loader

_find, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["__version__", *_names]


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
        import difflib

        from gyrostat.errors.what_went import instead_of

        if sentence := instead_of(f"gyrostat.{name}"):
            # `from gyrostat import NAME` asks first whether the name is there, and would replace the sentence by its own.
            is_from_import = sys._getframe(1).f_code.co_name == "_handle_fromlist"
            raise (ImportError if is_from_import else AttributeError)(sentence, name=name) from None
        folded = {public.lower(): public for public in __all__}
        close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
        hint = f"did you mean gs.{folded[close[0]]}?" if close else "dir(gyrostat) lists the public names."
        raise AttributeError(f"gyrostat has no {name!r}: {hint}", name=name) from None
    finally:
        if collects:
            gc.enable()


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
