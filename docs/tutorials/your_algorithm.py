# %% [markdown]
# # Your own algorithm and model
#
# Every algorithm here is a combination of parts: a model, a start, batches, a schedule, an update rule. You will replace
# two of them with parts of your own, one at a time, and compare the results. The engine, the recording and the plots stay
# as they are.
#
# ## An update rule
#
# An update rule turns a gradient into new parameters. It has two methods: `init` creates its memory, and `update` makes a
# step. This rule divides the gradient by its norm, so every step has the same length.

# %%
import jax.numpy as jnp

import gyrostat as gs


class UnitLength(gs.rules.UpdateRule):
    """Steps of equal length: ``U - step_size * g / ||g||``."""

    def init(self, model, params):
        return ()

    def update(self, memory, model, params, reading, step_size, ridge):
        gradients = model.pullback(params, reading.gradient)
        norm = jnp.sqrt(sum((g**2).sum() for g in gradients)) + 1e-12
        return tuple(p - step_size * g / norm for p, g in zip(params, gradients, strict=True)), memory


problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(mean=1.0, spread=8.0)), gs.FreshGaussian(4000))
candidates = {
    "plain SGD": gs.HeteroSGD(0.05),
    "unit length": gs.HeteroSGD(0.05, rule=UnitLength()),
    "Adam": gs.HeteroSGD(0.005, rule=gs.rules.Adam()),
}
for name, algorithm in candidates.items():
    result = gs.run(algorithm, problem, num_steps=400, seeds=16)
    end = gs.summary(result).isel(step=-1).sel(quantile=0.5)
    print(f"{name:11}: invariant {end.signal:.1f}, spurious {end.spurious:.1f}, diverged {end.diverged_share:.0%}")

# %% [markdown]
# Steps of equal length forget the spurious part, as plain steps do. Adam scales each entry of the gradient by that
# entry's history, and keeps some of the spurious part.
#
# ## A model
#
# A model is a function from parameters to a matrix. Its derivative is taken for you. Here the matrix is a sum of two
# products, `U Uᵀ + a Vᵀ V`, with a number `a` that is learnt as well.

# %%
model = gs.Model.from_function(
    lambda U, V, a: U @ U.T + a * V.T @ V,
    lambda shape: [(shape[0], shape[0]), (shape[0], shape[0]), ()],
    symmetric=True,
)
algorithm = gs.HeteroSGD(0.05, model=model, start=gs.starts.ScaledGaussian(0.01))
result = gs.run(algorithm, problem, num_steps=400, seeds=16)
end = gs.summary(result).isel(step=-1).sel(quantile=0.5)
print(f"invariant {end.signal:.1f}, spurious {end.spurious:.1f}, diverged {end.diverged_share:.0%}")

# %% [markdown]
# ## Something of your own to record
#
# A diagnostic is a function of a snapshot of the run. Pass its name to `record`.


# %%
@gs.diagnostic
def weight(snapshot):
    """The learnt number ``a``."""
    return snapshot.params[2]


result = gs.run(algorithm, problem, num_steps=400, seeds=16, record=["spurious", "weight"])
print(result.weight.dims, result.weight.attrs["long_name"])

# %% [markdown]
# ## Mistakes, and the messages you get
#
# Parts that do not fit are refused before anything is compiled:

# %%
try:
    gs.run(gs.HeteroSGD(0.05, rule=UnitLength), problem, num_steps=10)
except gs.GyrostatError as error:
    print(error)

# %% [markdown]
# ## Next
#
# - [Adding an algorithm](../adding-an-algorithm.md) says what each part may assume, and how to test it.
# - [Your optimiser](../how-to-optimisers.md) and [your model](../how-to-models.md) say more about optax, schedules,
#   tensors and networks.
# - [Your own paper](your-paper.md) turns a study into figures and claims.
