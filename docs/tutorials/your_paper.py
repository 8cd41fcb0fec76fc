# %% [markdown]
# # Your own paper, from skeleton to report
#
# A *paper* is a set of experiments. An experiment computes a labelled dataset, draws it, and judges *claims* about it. You
# will write one with a command, run it, change it, and compare the two runs. Everything that the built-in papers have
# works for yours: figures, a report, claims, seeds, sizes, presets for the laboratory.
#
# ## A skeleton that works

# %%
# !gyrostat new paper smith2026

# %%
# !gyrostat reproduce smith2026/smith2026.py --size smoke --jobs 1 --out first

# %% [markdown]
# The folder `first` holds `index.html` (open it in a browser), `claims.json`, the figures and the data. The claims again,
# from the command line:

# %%
# !gyrostat claims first

# %% [markdown]
# ## What is in the file
#
# The experiment is three functions and a declaration. `compute` returns a dataset, `draw` returns a figure as data, and a
# claim measures the dataset:

# %%
from pathlib import Path

source = Path("smith2026/smith2026.py").read_text()
print(source[source.index("def compute") : source.index("def draw")].rstrip())

# %% [markdown]
# ## Change it
#
# Say that you expect the same at a larger spread. Change one number in the file and run it into another folder:

# %%
_ = Path("smith2026/smith2026.py").write_text(source.replace("spread: float = 5.0", "spread: float = 6.0"))

# %%
# !gyrostat reproduce smith2026/smith2026.py --size smoke --jobs 1 --out second

# %% [markdown]
# `compare` says which verdicts and numbers differ, and whether by more than chance:

# %%
# !gyrostat compare first second --paper smith2026/smith2026.py

# %% [markdown]
# ## Next
#
# - [Your paper](../how-to-your-paper.md): install it by name, offer a predictor, hand the results to a referee as a crate.
# - [What a claim means](../claims.md): criteria that can fail, verdicts, surprises.
