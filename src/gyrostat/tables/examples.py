"""Tables to try things on: made ones with a known answer, and real ones from installed packages. ``example:NAME`` reads one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.benchmarks.invariance.real import DATA
from gyrostat.errors import GyrostatError

PREFIX = "example:"


def sites() -> pd.DataFrame:
    """Six sites: ``dose`` and ``age`` have one effect everywhere (1 and -0.5), ``protocol`` another in every site, ``sex``
    shifts the outcome by 0.6, ``noise`` has no effect.

    >>> sites().columns.tolist()
    ['dose', 'age', 'protocol', 'noise', 'sex', 'site', 'outcome']
    """
    rng, rows = np.random.default_rng(20240), 300
    strengths = {"Aarhus": 1.2, "Bergen": -0.6, "Cork": 0.9, "Delft": 0.1, "Espoo": -0.3, "Faro": 0.7}
    site = np.repeat(list(strengths), rows)
    x, sex = rng.standard_normal((len(site), 4)), rng.choice(["f", "m"], len(site))
    strength = np.array([strengths[s] for s in site])
    y = 3 + x[:, 0] - 0.5 * x[:, 1] + strength * x[:, 2] + 0.6 * (sex == "m") + 0.5 * rng.standard_normal(len(site))
    names = ["dose", "age", "protocol", "noise"]
    return pd.DataFrame(x, columns=names).assign(sex=sex, site=site, outcome=y)


def consequence() -> pd.DataFrame:
    """The example of Arjovsky and others 2019: ``outcome = cause + noise``, ``after = outcome + noise``, and only sizes differ
    between environments. Nothing here has a sign that changes: the method does not solve it, and the diagnostics say so.

    >>> consequence().site.unique().tolist()
    ['calm', 'usual', 'rough', 'wild']
    """
    rng, rows = np.random.default_rng(2019), 400
    scale = np.repeat([0.3, 1.0, 2.0, 3.0], rows)
    cause = scale * rng.standard_normal(len(scale))
    y = cause + scale * rng.standard_normal(len(scale))
    after = y + rng.standard_normal(len(scale))
    return pd.DataFrame(
        {"cause": cause, "after": after, "site": np.repeat(["calm", "usual", "rough", "wild"], rows), "outcome": y}
    )


MADE: dict[str, Callable[[], pd.DataFrame]] = {"sites": sites, "consequence": consequence}


def examples() -> list[str]:
    """The names of all tables, made and real; a real one may need a package that is not installed."""
    return [*MADE, *(data.name for data in DATA)]


def example(name: str) -> pd.DataFrame:
    """The table called ``name``; a package that it needs is told."""
    if errors.choice("example", name, examples()) in MADE:
        return MADE[name]()
    (real,) = (data for data in DATA if data.name == name)
    if real.missing:
        raise GyrostatError(real.missing)
    return real.read()
