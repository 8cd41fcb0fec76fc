"""The sentence that the command line prints for an error: what failed, and what to do."""

from __future__ import annotations

import errno
import os

TRACEBACK = "GYROSTAT_TRACEBACK"
"""The environment variable that shows tracebacks instead of sentences, for developers."""

REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space and run the same command again; finished results are kept",
    errno.EDQUOT: "the disk quota is used up: free some space and run the same command again; finished results are kept",
    errno.EACCES: "choose a place that you may read and write, or change its permissions",
    errno.EPERM: "choose a place that you may read and write, or change its permissions",
    errno.EROFS: "it cannot be written to: choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "a part of the path is a file: choose another place",
    errno.EISDIR: "it is a folder: give a file",
    errno.EEXIST: "choose another name",
    errno.EMFILE: "too many files are open: raise the limit with ulimit -n, or use fewer --jobs",
    errno.ENOMEM: "close other programs, use fewer --jobs, or take a smaller setting",
}


def explained(error: BaseException) -> str:
    """The sentence for an error; an error that nobody foresaw is called a fault of gyrostat.

    >>> explained(FileNotFoundError(2, "No such file or directory", "data.csv"))
    "'data.csv' cannot be used (No such file or directory): check the path."
    >>> explained(MemoryError())
    'the memory of this machine is not enough: take a smaller setting, fewer --jobs or fewer seeds.'
    """
    from gyrostat.errors import GyrostatError

    if isinstance(error, GyrostatError):
        return str(error)
    if isinstance(error, OSError):
        return _of_the_system(error)
    if isinstance(error, UnicodeError):
        return f"a text cannot be read or written ({_line(error)}): save the file in UTF-8, and use plain names."
    if isinstance(error, MemoryError):
        return "the memory of this machine is not enough: take a smaller setting, fewer --jobs or fewer seeds."
    if isinstance(error, RecursionError):
        return "the input is nested too deeply: write it flatter."
    if isinstance(error, OverflowError):
        return f"a number is too large ({_line(error)}): take smaller ones."
    if type(error).__module__.partition(".")[0] in ("zarr", "numcodecs"):
        return f"stored results cannot be read ({_line(error)}): they are damaged; compute them again with --fresh."
    text = f"{type(error).__name__}: {_line(error)}".rstrip(": ")
    return f"an unexpected error ({text}): this is a fault of gyrostat; please report it with what {TRACEBACK}=1 shows."


def _of_the_system(error: OSError) -> str:
    reason = error.strerror or _line(error) or type(error).__name__
    remedy = REMEDIES.get(error.errno or 0, "check the path and the disk, and try again")
    named = [os.fspath(name) for name in (error.filename, error.filename2) if isinstance(name, str | os.PathLike)]
    if not named:
        return f"a file or a connection cannot be used ({reason}): {remedy}."
    shown = named[0] if len(named[0]) <= 120 else named[0][:117] + "..."
    return f"{shown!r} cannot be used ({reason}): {remedy}."


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 160 else text[:157] + "..."
