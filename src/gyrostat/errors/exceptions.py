"""`GyrostatError`, the exception of the library, and `DivergenceWarning`."""

from __future__ import annotations

PUBLIC = "gyrostat.errors"
"""Where these classes are imported from, and the name under which tracebacks and pickles know them."""


class GyrostatError(ValueError):
    """Bad input. The message names the argument, the value it got and what to do."""

    __module__ = PUBLIC


class UnknownArgument(GyrostatError, TypeError):
    """A keyword argument that does not exist; the message names the one that was probably meant."""

    __module__ = PUBLIC


class DivergenceWarning(UserWarning):
    """Some runs of a result diverged, and a statistic that skips NaN would silently leave them out.

    The message says how many. :func:`gyrostat.summary` counts them as infinite. Python's warning filters apply:

    >>> import warnings, gyrostat as gs
    >>> problem = gs.Problem(gs.Environments.diagonal(4), gs.Identity())
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DivergenceWarning)
    ...     result = gs.run(gs.GradientDescent(9.0), problem, num_steps=50, seeds=2)
    >>> result.attrs["diverged"].split(":")[0]
    '2 of 2 runs (100 %) diverged'
    """

    __module__ = PUBLIC
