# %% [markdown]
# # Data from several sites
#
# Rows come from several hospitals, schools or seasons. Which effects hold everywhere, and what predicts best at a new
# site? These are different questions and have different answers. You will get both, first without writing Python.
#
# ## A table
#
# `example:sites` is a table with a known answer. It has five features and six sites, and the effect of one feature
# differs between sites.

# %%
# !gyrostat fit example:sites --target outcome --environment site --out fit

# %% [markdown]
# `fit/summary.html` shows the same as a page that you can send to others. This is its picture, the effect of every
# feature at every site:

# %%
import shutil

_ = shutil.copy("fit/forest.png", "forest.png")

# %% [markdown]
# ## The same in Python
#
# The estimators follow the conventions of scikit-learn. Environment labels can be of any type.

# %%
import numpy as np

import gyrostat as gs
from gyrostat.estimators import InvariantLinearRegressor

rng = np.random.default_rng(0)
site = np.repeat(["Aarhus", "Bergen", "Cork", "Delft"], 250)
X = rng.standard_normal((1000, 3))
varying = np.repeat([1.2, -0.4, 0.9, 0.1], 250)  # the effect of the third feature, site by site
y = X[:, 0] - 0.5 * X[:, 1] + varying * X[:, 2] + 0.5 * rng.standard_normal(1000)

model = InvariantLinearRegressor(random_state=0).fit(X, y, environments=site)
print("coefficients", model.coef_.round(1), "removed features", model.spurious_features_)

# %% [markdown]
# The third feature is removed, because its effect changes from site to site. It still has a mean effect.
#
# ## What the data can and cannot show
#
# `gs.heterogeneity` gives the evidence behind every verdict: the effects in each environment, intervals and tests. The
# interval of a mean effect includes the variation of the effect between sites:

# %%
evidence = gs.heterogeneity(X, y, site)
print(evidence.features[["mean", "mean_low", "mean_high", "verdict"]].to_dataframe().round(2))

# %% [markdown]
# ## What to use at a new site
#
# The coefficients describe what holds *everywhere*. If the new site is of the same kind as these, a feature whose effect
# varies still helps a little, because its mean effect is known. The fit leaves out one site at a time and compares what
# holds everywhere with least squares on all rows. By default, `predict` uses the one with less error:

# %%
print(model.left_out_errors_)
print(model.best_purpose_)

# %% [markdown]
# Or tell `predict` the purpose:

# %%
new = rng.standard_normal((200, 3))
for purpose in ("everywhere", "least-squares", "same-kind"):
    slope = np.linalg.lstsq(new, model.predict(new, purpose=purpose), rcond=None)[0]
    print(f"{purpose:13}: the prediction changes by {abs(slope[2]):.1f} per unit of the third feature")

# %% [markdown]
# `gyrostat compare-methods` leaves out one site at a time and compares fifteen models, including ours, on your own table.
# It recommends one for new sites of the same kind, and one for sites that may be unlike these.
#
# ## Next
#
# - [Data from several environments](../several-environments.md): 0/1 outcomes and counts, clusters of rows, large tables, and what
#   the method cannot do.
# - [Comparing methods](../compare-methods.md) on your own table.
# - [Evidence](../invariance.md): where it does better than other methods, and where it does not.
