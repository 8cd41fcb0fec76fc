# %% [markdown]
# # A phase diagram, from laptop to cluster
#
# Where does HeteroSGD forget the spurious part, and where does it keep it? You will answer this with a map over two
# settings. You compute it on your own machine first. On a cluster only one option changes.
#
# ## A spec
#
# A sweep is described by a *spec*, a TOML file. Any setting can be an axis. Text that begins with `=` is a formula.

# %%
from pathlib import Path

spec = """
title = "Step size and heterogeneity"
num_steps = "= 10 / step_size"
seeds = 32

[algorithm]
kind = "HeteroSGD"
step_size = 0.05

[environments]
kind = "RandomEnvironments"
dimension = 10
law = { kind = "TwoPoint", spread = 6.0 }

[measurements]
kind = "FreshGaussian"
num_samples = "= 100 * dimension"

[axes]
step_size = { log = [0.02, 0.1], points = 5 }
spread = { linear = [1, 11], points = 6 }

[success]
spurious = { below = 0.1 }
signal = { above = 0.5 }
"""
_ = Path("spec.toml").write_text(spec)

# %%
# !gyrostat sweep spec.toml --out diagram --jobs 1

# %% [markdown]
# `success` is the share of runs that end with less than 0.1 of the spurious part and have learnt more than half of the
# signal. The output lists the boundary, where half of the runs succeed, beside the prediction of the theory. The picture
# shows both:

# %%
import shutil

_ = shutil.copy("diagram/diagram.png", "diagram.png")

# %% [markdown]
# ## Nothing is lost
#
# You can interrupt a sweep at any time. The same command continues where it stopped, and the finished store is byte for
# byte the same as after an uninterrupted run. A finer grid reuses the cells that are done. In Python the spec can also be
# a dictionary, and the data come back as an xarray dataset:

# %%
import tomllib

import gyrostat as gs

finer = tomllib.loads(spec)
finer["axes"]["spread"]["points"] = 11
result = gs.sweep(finer, out="diagram", jobs=0, extend=True)
print(dict(result.success.sizes), "runs that diverged:", int((result.diverged < float("inf")).sum()))

# %% [markdown]
# A run that diverges is never dropped: it counts as a failure in `success`, and a warning says how many there are.
#
# ## On all cores, and on a cluster
#
# `--jobs` is the number of worker processes; the default is one per core. On a [Dask](https://distributed.dask.org)
# cluster, give the same command the address of the scheduler. Your machine writes the folder. Workers only compute, and
# they may join, leave or be killed at any time.
#
# ```sh
# gyrostat sweep spec.toml --out diagram --scheduler tcp://127.0.0.1:8786
# ```
#
# [Sweeps](../sweeps.md) covers the rest: TLS, Slurm, Kubernetes, and refinement, which computes only the cells near the
# boundary.
