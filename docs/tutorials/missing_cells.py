# %% [markdown]
# # Missing cells
#
# A table has missing cells. If a few patterns explain its columns, the observed cells determine the missing ones. You
# will fill a table, see how certain each filled cell is, and learn when not to use this method.
#
# ## A table whose rank nobody knows

# %%
import numpy as np

from gyrostat.estimators import LowRankImputer

rng = np.random.default_rng(0)
truth = rng.standard_normal((100, 5)) @ rng.standard_normal((5, 80))  # rank 5
holes = np.where(rng.random(truth.shape) < 0.7, np.nan, truth)  # 70 % of the cells are missing

imputer = LowRankImputer(random_state=0)
filled = imputer.fit_transform(holes)
print("rank", imputer.rank_, "exact", imputer.exact_)
print("every cell is right to six digits:", bool(np.abs(filled - truth).max() < 1e-6))

# %% [markdown]
# The imputer was not told the rank. `exact_` says that a matrix of this rank fits more cells than it has free parameters.
# The probability that this happens by chance is zero.
#
# ## With noise, and with units
#
# Real cells are noisy, and real columns have units. Columns with different units are scaled first.

# %%
units = 10.0 ** rng.integers(0, 4, 80)
noisy = (truth + 0.3 * rng.standard_normal(truth.shape)) * units
holes = np.where(rng.random(truth.shape) < 0.5, np.nan, noisy)
imputer = LowRankImputer(random_state=0).fit(holes)
filled = imputer.transform(holes)
missing = np.isnan(holes)
error = np.sqrt(np.mean(((filled - truth * units) / units)[missing] ** 2))
print("rank", imputer.rank_, "- error over that of column means:", round(float(imputer.relative_error_), 1))
print("error at missing cells, in units of the noise:", round(float(error / 0.3), 1))

# %% [markdown]
# `relative_error_` is the error at cells that the model has not seen, divided by the error of column means. If it is
# above one, column means are better, and the imputer warns you.
#
# ## A file
#
# `gyrostat impute` does the same for CSV and Parquet files, and also fills categories and dates. `--intervals` lists
# every filled cell with an interval.

# %%
import pandas as pd

table = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 8)) * units[:8]
table += 0.2 * units[:8] * rng.standard_normal(table.shape)
table[rng.random(table.shape) < 0.3] = np.nan
pd.DataFrame(table, columns=[f"sensor {i}" for i in range(8)]).to_csv("table.csv", index=False)

# %%
# !gyrostat impute table.csv --out filled.csv --intervals cells.csv

# %%
print(pd.read_csv("cells.csv").columns.tolist())

# %% [markdown]
# ## Next
#
# [Missing cells and few measurements](../completion.md) explains how the method works and when it fails; [the
# evidence](../completion-evidence.md) compares it with other methods.
