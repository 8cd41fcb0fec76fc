"""The version, in one place that imports nothing heavy."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("gyrostat")
except PackageNotFoundError:  # a source tree that was not installed
    __version__ = "0+unknown"
