# %% [markdown]
# # A first run of HeteroSGD
#
# SGD can keep the part of a signal that is the same in every environment and forget the part that is not. In this
# tutorial you watch it do so, and predict how different the environments must be. It takes ten minutes and needs no data.
#
# ## The problem
#
# A matrix is measured in several environments. In environment e the target is A_e = A* + S_e. The part A* is the same
# everywhere; the *spurious* part S_e changes. Here the spurious part is one direction. Its strength is 1 - 6 or 1 + 6
# with equal probability, so its mean is 1, as large as the invariant part.

# %%
import gyrostat as gs

environments = gs.RandomEnvironments(60, rank=1, law=gs.TwoPoint(mean=1.0, spread=6.0))
problem = gs.Problem(environments, gs.FreshGaussian(8000))  # 8000 new measurements in every step
print(problem)

# %% [markdown]
# ## Two algorithms
#
# `HeteroSGD` takes every batch from one environment. `PooledSGD` mixes the environments in every batch. Nothing else
# differs: both start from the same small matrix and use the same step size. `seeds=50` asks for 50 independent runs.

# %%
hetero = gs.run(gs.HeteroSGD(0.05), problem, num_steps=200, seeds=50)
pooled = gs.run(gs.PooledSGD(0.05), problem, num_steps=200, seeds=50)
print(hetero.signal.dims, sorted(hetero.data_vars))

# %% [markdown]
# The result is an [xarray](https://xarray.dev) dataset. `signal` is the share of A* that has been learnt, and `spurious`
# is the share of the mean spurious part. `gs.summary` gives quantiles over seeds. It counts a run that diverged as
# infinite, so that the run is not silently left out of a median.

# %%
for name, result in {"hetero": hetero, "pooled": pooled}.items():
    end = gs.summary(result).isel(step=-1).sel(quantile=0.5)
    print(f"{name}: invariant {end.signal:.2f}, spurious {end.spurious:.2f}, diverged {end.diverged_share:.0%}")

# %% [markdown]
# Both learn the invariant part. Only pooled training learns the spurious part. `gs.plot` draws the curves, and the
# predictions of the theory over them.

# %%
gs.plot(hetero, path="hetero.png")

# %% [markdown]
# ## Why, and at which spread
#
# While the factor of the spurious part is small, a step multiplies it by 1 + η ξ, where ξ is the strength in the
# environment of the batch: 1 - 6 or 1 + 6. The *mean* of these factors is above one. But a typical run follows the mean
# of their *logarithms*, which is below zero if the environments differ enough. So there is a critical spread. It depends
# on the step size, and slightly on the start and on the number of steps (here 10 / η):

# %%
for step_size in (0.02, 0.05, 0.1):
    print(
        step_size, round(gs.theory.ours.critical_spread(step_size, init_scale=1e-3, num_steps=round(10 / step_size)), 2)
    )

# %% [markdown]
# Runs over a grid of spreads show whether the prediction is right. `gs.run_grid` compiles one program for the whole grid.


# %%
def build(spread):
    environments = gs.RandomEnvironments(60, rank=1, law=gs.TwoPoint(mean=1.0, spread=spread))
    return gs.HeteroSGD(0.05), gs.Problem(environments, gs.FreshGaussian(8000))


grid = gs.run_grid(build, {"spread": [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]}, num_steps=200, seeds=20)
for spread, kept in gs.summary(grid).spurious.isel(step=-1).sel(quantile=0.5).to_series().items():
    print(f"spread {spread:4.1f}: {max(kept, 0):.2f} of the spurious part is kept")

# %% [markdown]
# ## Next
#
# - `gyrostat check --spread 6 --step-size 0.05` prints what each theorem of the paper says about a setting.
# - `gyrostat reproduce xu2024/fig3` draws the transition with 300 runs per point.
# - [Your own algorithm and model](your-algorithm.md), or a [phase diagram](phase-diagram.md).
