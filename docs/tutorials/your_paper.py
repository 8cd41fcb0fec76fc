# %% [markdown]
# # Your own paper, from skeleton to report
#
# A *paper* is a set of experiments. An experiment computes a labelled dataset, draws it, and judges *claims* about it.
# You will create a paper with one command, run it, change it, and compare the two runs. Your paper gets everything that
# the built-in ones have: figures, a report, claims, seeds, sizes and presets for the laboratory.
#
# ## A skeleton that works

# %%
# !gyrostat new paper smith2026

# %%
# !gyrostat reproduce smith2026/smith2026.py --size smoke --jobs 1 --out first

# %% [markdown]
# The folder `first` holds `index.html` (open it in a browser), `claims.json`, the figures and the data. To see the claims
# again on the command line:

# %%
# !gyrostat claims first

# %% [markdown]
# ## What is in the file
#
# The experiment is a class. Its method `compute` returns a dataset, `draw` turns it into a figure, and a claim measures
# something in it, in the interval that its decorator names. This is a claim:

# %%
from pathlib import Path

source = Path("smith2026/smith2026.py").read_text()
print(source[source.index('    @claim("median') : source.index("    # A statement")].rstrip())

# %% [markdown]
# ## Change it
#
# Suppose you expect the same result at a larger spread. Change one number in the file and write the new run to another
# folder:

# %%
_ = Path("smith2026/smith2026.py").write_text(source.replace('"spread": 5.0', '"spread": 6.0'))

# %%
# !gyrostat reproduce smith2026/smith2026.py --size smoke --jobs 1 --out second

# %% [markdown]
# `compare` lists the verdicts, numbers, settings and versions that differ:

# %%
# !gyrostat compare first second

# %% [markdown]
# ## Next
#
# - [Your paper](../how-to-your-paper.md): install it under its own name, add a predictor, hand the results to a referee.
# - [What a claim means](../claims.md): criteria that can fail, verdicts, surprises.
