"""Gyrostat: a laboratory and a toolkit for the implicit bias of gradient methods in matrix models.

A name is imported on first use, so ``import gyrostat`` is instant and changes nothing in JAX's configuration.
``__init__.pyi`` lists the public names and their homes.
"""

from importlib.metadata import PackageNotFoundError, version

import lazy_loader

try:
    __version__ = version("gyrostat")
except PackageNotFoundError:  # a source tree that was not installed
    __version__ = "0+unknown"

__getattr__, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = ["__version__", *_names]


def __dir__() -> list[str]:
    return __all__
