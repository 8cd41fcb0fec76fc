# %% [markdown]
# # A phase diagram, from laptop to cluster
#
# Where does HeteroSGD forget the spurious part, and where does it keep it? You will answer with a map over two settings, on
# your own machine first, and then see what changes on a cluster: one option.
#
# ## A spec
#
# A sweep is described by a *spec*, a TOML file. Any setting of any part may be an axis. Text that begins with `=` is a
# formula.

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
"""
_ = Path("spec.toml").write_text(spec)

# %%
# !gyrostat sweep spec.toml --out diagram --jobs 1

# %% [markdown]
# Success is the share of runs that end with less than 0.1 of the spurious part. The boundary, where half of the runs
# succeed, stands beside what the theory predicts. So it does in the picture:

# %%
import shutil

_ = shutil.copy("diagram/diagram.png", "diagram.png")

# %% [markdown]
# ## Nothing is lost
#
# Interrupt it at any time: the same command continues where it stopped, and the finished store equals that of an undisturbed
# run, byte for byte. A finer grid keeps what is done. From Python the spec may also be a dictionary, and the data come back
# as an xarray dataset:

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
# `gyrostat verify` checks that every cell is there and undamaged:

# %%
# !gyrostat verify diagram

# %% [markdown]
# ## On all cores, and on a cluster
#
# `--jobs` is the number of worker processes; without it there is one per core. On a
# [Dask](https://distributed.dask.org) cluster the same command takes the address of its scheduler. Your machine writes the folder,
# workers only compute, and they may come, go and be killed.
#
# ```sh
# gyrostat sweep spec.toml --out diagram --scheduler tcp://127.0.0.1:8786
# ```
#
# [Sweeps](../sweeps.md) has the rest: TLS, Slurm, Kubernetes, refinement that computes only the cells near the boundary.
