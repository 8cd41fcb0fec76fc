"""What a mixed batch reads: (4) and (118) of Xu 2024.

The engine draws the law of a batch and never the batch, so its readings are compared with moments in closed form.
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.algorithms.batches import Full, Pooled
from gyrostat.experiments import Experiment, claim
from gyrostat.figures.compose import dots, figure, panel
from gyrostat.figures.declarations import Line, Marker
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Scene
from gyrostat.models.spaces import SymmetricMatrices

DIMENSION, SPREAD, BATCH = 6, 5.0, 20.0
NOISE = {"dimension": [6, 24], "num_samples": [100.0, 6400.0], "probability": [0.5, 0.1, 0.01]}
"""Where the tail of the operator norm is read."""
STRENGTHS, WEIGHTS = (-4.0, 1.0, 6.0), (0.5, 0.3, 0.2)
"""Environments in batches of infinitely many samples."""


def scene(A, law):
    """A_star = e1 e1^T and spurious direction v = e2."""
    axes = np.eye(len(A))
    return Scene(gs.Environments(axes[:, :1], axes[:, 1:2], law), SymmetricMatrices(len(A)), jnp.asarray(A))


def pooled(dimension):
    """A_star plus the mean spurious part, where the residuals of a mixed batch are those of (118): +-M <X_i, v v^T>."""
    return np.diag([1.0, 1.0] + [0.0] * (dimension - 2))


def whole_reading(batches):
    """G of infinitely many samples over A - sum_e w_e A_e: the ratio of two entries that is farthest from 1."""
    U = np.cos(np.arange(DIMENSION**2)).reshape(DIMENSION, DIMENSION)
    A = 0.5 * U @ U.T
    M = A - np.diag([1.0, np.dot(STRENGTHS, WEIGHTS)] + [0.0] * (DIMENSION - 2))
    key, at = jax.random.key(0), scene(A, gs.Finite(STRENGTHS, WEIGHTS))
    reading, _ = batches.read(gs.Identity(), (), jnp.asarray(0), key, key, at)
    ratios = (np.asarray(reading.gradient) / M).ravel()
    return ratios[np.argmax(abs(ratios - 1))]


class Laws(Experiment):
    """The law of mixed batches

    The engine never draws a batch, only what a step reads from it; what it reads of mixed batches is compared with moments of
    the data in closed form.
    """

    source, weight, ours = "Xu 2024, (4), (118) and Theorem 6", 4, True
    sizes = {"draws": (4096, 16_384, 131_072)}

    def compute(self, run, draws):
        """Every measured moment over its theory, and tails of the operator norm over (117)."""
        law = gs.TwoPoint(spread=SPREAD)
        with double():
            at, half, whole = scene(pooled(DIMENSION), law), gs.FreshGaussian(BATCH / 2), gs.FreshGaussian(BATCH)

            @jax.jit
            def of_one(keys, e):
                return jax.vmap(lambda key: half.sense((), key, at, law.at(e))[0].gradient[1, 1])(keys)

            @jax.jit
            def mixed(keys):
                return jax.vmap(lambda key: whole.mix((), key, at)[0].gradient[1, 1])(keys)

            key = jax.random.key(run.seed)
            # The first key is that of a check which is a test now.
            _, *keys = jax.random.split(jax.random.fold_in(key, 0), 3)
            equal = sum(np.asarray(of_one(jax.random.split(k, draws), e)) for e, k in enumerate(keys)) / 2
            drawn = np.asarray(mixed(jax.random.split(jax.random.fold_in(key, 1), draws)))
            moments = {
                "mixed: equal counts": np.mean(equal**2) / (2 * SPREAD**2 / BATCH),
                "mixed: drawn counts": np.mean(drawn**2) / (3 * SPREAD**2 / BATCH),
                "whole: full batch": whole_reading(Full()),
                "whole: mixed batch": whole_reading(Pooled()),
            }
            tails = [
                self.constants(jax.random.fold_in(key, 2 + i), draws, *at)
                for i, at in enumerate(product(NOISE["dimension"], NOISE["num_samples"]))
            ]
        constant = np.reshape(tails, [len(values) for values in NOISE.values()])
        ds = xr.Dataset({"moment": ("law", list(moments.values())), "constant": ((*NOISE,), constant)}, NOISE)
        return ds.assign_coords(law=list(moments)).assign_attrs(draws=draws)

    def constants(self, key, draws, dimension, num_samples):
        """The C with which (117) is an equality at each probability p = 2 9^d exp(-t); M1 = 1 + M and r1 + r2 = 2."""
        at, batch = scene(pooled(dimension), gs.TwoPoint(spread=SPREAD)), gs.FreshGaussian(num_samples)

        @jax.jit
        def norms(keys):
            return jax.vmap(lambda key: jnp.linalg.norm(batch.mix((), key, at)[0].gradient, 2))(keys)

        p = np.array(NOISE["probability"])
        t = dimension * np.log(9) + np.log(2 / p)
        size = (1 + SPREAD) * 2 * (np.sqrt(t / num_samples) + t / num_samples)
        return np.quantile(norms(jax.random.split(key, draws)), 1 - p) / size

    def draw(self, ds):
        series = dots(ds.moment, "measured"), Marker(1.0, "1", axis="x")
        m, tails = ds.num_samples.values, []
        for (d, p), constants in ds.constant.stack(at=("dimension", "probability")).groupby("at"):
            tails.append(Line(m, constants.values.ravel(), f"d = {d}, probability {p:g}", colour=len(tails)))
        return figure(
            panel("Measured moments over theory", "ratio", "moment", *series, xlim=(0.8, 1.2)),
            panel("Tail of the operator norm", "batch size m", "C in (117)", *tails, xscale="log", ylim=(0, 1)),
            title="A mixed batch has the law of samples that each draw their environment",
            note=f"{ds.attrs['draws']} batches of {BATCH:.0f} samples; whole: infinitely many samples.",
        )

    @claim(
        "variance over 3 M^2/m, and over 2 M^2/m with equal counts, in [0.87, 1.13]",
        equal_counts=(0.87, 1.13),
        drawn_counts=(0.87, 1.13),
        items="Algorithm 1; (4)",
    )
    def mixed_batch(self, ds):
        """In a mixed batch every sample draws its environment, so the variance along v v^T is 3/2 of that with equal
        counts."""
        return (*ds.moment.values[:2],)

    @claim(
        "C at probabilities 1/2, 1/10 and 1/100, d = 6 and 24, m = 100 and 6400: largest in [.1, 1], least above a tenth of it",
        largest=(0.1, 1),
        least_over_largest=(0.1, 1),
        ours=False,
        items="(118)",
    )
    def operator_norm_tail(self, ds):
        """(117) and (118): the noise of a mixed batch has operator norm at most C M1 (r1 + r2) (sqrt(t/m) + t/m) with
        probability 1 - 2 9^d exp(-t), with one constant C for all d, m and t."""
        return ds.constant.max(), ds.constant.min() / ds.constant.max()

    @claim(
        "every entry of both readings over its theory in [1 - 1e-9, 1 + 1e-9], for weights 0.5, 0.3 and 0.2",
        full_batch=(1 - 1e-9, 1 + 1e-9),
        mixed_batch=(1 - 1e-9, 1 + 1e-9),
        items="(4); Theorem 6",
    )
    def whole_population(self, ds):
        """With infinitely many samples, a mixed batch (4) and a full batch (Theorem 6) read A - sum_e w_e A_e, with the
        weights of the environments."""
        return (*ds.moment.values[2:],)
