"""Mixed batches: what they read, (4) and (118), and Figure 5 without replacement; HeteroSGD on fixed data beside it."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.algorithms.batches import Full, Pooled
from gyrostat.experiments import Experiment, claim, last, median, slope
from gyrostat.figures.compose import figure, panel, spread
from gyrostat.figures.declarations import Line, band
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Scene
from gyrostat.models.spaces import SymmetricMatrices
from gyrostat.papers.xu2024.settings import ALPHA, FIGURE5
from gyrostat.theory.ours import error_law

DIMENSION, SPREAD, BATCH = 6, 5.0, 20.0
NOISE = {"dimension": [6, 24], "num_samples": [100.0, 6400.0], "probability": [0.5, 0.1, 0.01]}
"""Where the tail of the operator norm is read."""
STRENGTHS, WEIGHTS = (-4.0, 1.0, 6.0), (0.5, 0.3, 0.2)
"""Environments in batches of infinitely many samples."""

ALL, EQUAL = "all 5600 samples at every step", "2800 fresh samples of each environment"
WITHOUT = {ALL: gs.FixedGaussian(FIGURE5.num_samples), EQUAL: gs.FreshGaussian(FIGURE5.num_samples)}
"""Two readings of 'without replacement': both environments have 2800 samples, the batch of HeteroSGD, and 5600 are drawn."""
DATA = {
    "fresh": ("fresh batch at every step", gs.FreshGaussian),
    "fixed": ("the same m samples at every step", gs.FixedGaussian),
}


def scene(law, dimension, A=None):
    """A_star = e1 e1^T, v = e2, and U U^T = A.

    If A is left out it is A_star plus the mean spurious part, where the residuals of a mixed batch are those of (118),
    +-M <X_i, v v^T>.
    """
    axes = np.eye(dimension)
    A = axes[:, :2] @ axes[:, :2].T if A is None else A
    return Scene(gs.Environments(axes[:, :1], axes[:, 1:2], law), SymmetricMatrices(dimension), jnp.asarray(A))


def sampled(number, read, key, draws):
    """A number of the gradient that each of ``draws`` batches reads."""
    return np.asarray(jax.jit(jax.vmap(lambda key: number(read(key)[0].gradient)))(jax.random.split(key, draws)))


def whole_reading(batches):
    """G of infinitely many samples over A - sum_e w_e A_e: the ratio of two entries that is farthest from 1."""
    U = np.cos(np.arange(DIMENSION**2)).reshape(DIMENSION, DIMENSION)
    A = 0.5 * U @ U.T
    key, at = jax.random.key(0), scene(gs.Finite(STRENGTHS, WEIGHTS), DIMENSION, A)
    reading, _ = batches.read(gs.Identity(), (), jnp.asarray(0), key, key, at)
    pooled = np.diag([1.0, np.dot(STRENGTHS, WEIGHTS)] + [0.0] * (DIMENSION - 2))
    ratios = (np.asarray(reading.gradient) / (A - pooled)).ravel()
    return ratios[np.argmax(abs(ratios - 1))]


class Laws(Experiment):
    """The law of mixed batches

    The engine never draws a batch, only what a step reads from it; what it reads of mixed batches is compared with moments of
    the data in closed form, over batches of 20 samples and of infinitely many.
    """

    source, weight, ours = "Xu 2024, (4), (118) and Theorem 6", 4, True
    sizes = {"draws": (4096, 16_384, 131_072)}

    def compute(self, run, draws):
        """Measured moments over theory, and the C with which (117) is an equality at each probability p = 2 9^d exp(-t)."""
        law, key = gs.TwoPoint(spread=SPREAD), jax.random.key(run.seed)
        p = np.array(NOISE["probability"])

        def along_v(gradient):
            return gradient[1, 1]

        def tail_constants(i, d, m):
            at = scene(law, d)
            norms = sampled(
                lambda gradient: jnp.linalg.norm(gradient, 2),
                lambda key: gs.FreshGaussian(m).mix((), key, at),
                jax.random.fold_in(key, 2 + i),
                draws,
            )
            t, M1, ranks = d * np.log(9) + np.log(2 / p), 1 + SPREAD, 2
            return np.quantile(norms, 1 - p) / (M1 * ranks * (np.sqrt(t / m) + t / m))

        with double():
            at, half, whole = scene(law, DIMENSION), gs.FreshGaussian(BATCH / 2), gs.FreshGaussian(BATCH)
            # The first key is that of a check which is a test now.
            _, *keys = jax.random.split(jax.random.fold_in(key, 0), 3)
            equal = [
                sampled(along_v, lambda k, e=e: half.sense((), k, at, law.at(e)), k, draws) for e, k in enumerate(keys)
            ]
            drawn = sampled(along_v, lambda k: whole.mix((), k, at), jax.random.fold_in(key, 1), draws)
            grid = [(d, m) for d in NOISE["dimension"] for m in NOISE["num_samples"]]
            constant = [tail_constants(i, d, m) for i, (d, m) in enumerate(grid)]
            return xr.Dataset(
                {
                    "equal_counts": np.mean((sum(equal) / 2) ** 2) / (2 * SPREAD**2 / BATCH),
                    "drawn_counts": np.mean(drawn**2) / (3 * SPREAD**2 / BATCH),
                    "full_batch": whole_reading(Full()),
                    "mixed_batch": whole_reading(Pooled()),
                    "constant": ((*NOISE,), np.reshape(constant, [len(values) for values in NOISE.values()])),
                },
                NOISE,
                {"draws": draws},
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
        return ds.equal_counts, ds.drawn_counts

    @claim(
        "C at probabilities 1/2, 1/10 and 1/100, d = 6 and 24, m = 100 and 6400: largest in [.1, 1], least above a third of it",
        largest=(0.1, 1),
        least_over_largest=(1 / 3, 1),
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
        return ds.full_batch, ds.mixed_batch


class WithoutReplacement(Experiment):
    """Pooled batches without replacement, and fixed data

    Figure 5 draws 5600 samples without replacement for PooledSGD. Read as all samples of both environments at every step, and
    as fresh batches with equal counts: the spurious signal is learnt either way. The theory draws new samples at every step;
    for HeteroSGD with finite data, the same noise returns whenever an environment is visited.
    """

    name, source, weight = "fig5-replacement", "Xu 2024, section 5 and Figure 5; section 3.1 (fresh batches)", 13
    sizes = {
        "seeds": (5, 20, 100),
        "hetero_runs": (4, 12, 50),
        "dimension": (20, 100, 100),
        "batches": ((2400.0, 9600.0, 38400.0), (8e3, 32e3, 128e3, 512e3), (8e3, 32e3, 128e3, 512e3, 2048e3)),
    }

    def compute(self, run, hetero_runs, dimension, batches):
        """Pooled descent for both batches, and HeteroSGD with M = 6, eta = .05, T = 200 on fresh and on fixed data."""

        def pooled(batch):
            return gs.PooledGD(FIGURE5.step_size, init_scale=ALPHA), gs.Problem(FIGURE5.environments, WITHOUT[batch])

        def hetero(data, num_samples):
            _, samples = DATA[data]
            environments = gs.RandomEnvironments(dimension, law=gs.TwoPoint(mean=1.0, spread=6.0))
            return gs.HeteroSGD(0.05, init_scale=ALPHA, order="shuffled"), gs.Problem(
                environments, samples(num_samples)
            )

        steps, names = FIGURE5.num_steps, ("signal", "spurious", "error")
        ds = run.grid(pooled, {"batch": list(WITHOUT)}, num_steps=steps, record=names, record_at=steps + 1)
        axes = {"data": list(DATA), "num_samples": list(batches)}
        runs = run.grid(hetero, axes, num_steps=200, seeds=hetero_runs, record=("distance",), record_at=2)
        distance = last(runs.distance).drop_vars("step").rename(seed="seed_hetero")
        return xr.Dataset({**ds[list(names)], "distance": distance}, attrs={"dimension": dimension})

    def draw(self, ds):
        shares, outside = [], []
        for i, name in enumerate(WITHOUT):
            one = ds.sel(batch=name)
            paths = band(one.signal, "invariant", colour=0), band(one.spurious, "spurious", colour=1)
            shares.append(panel(name[0].upper() + name[1:], "step", "share of the signal", *paths, ylim=(-0.05, 1.6)))
            outside.append(band(one.error, name, colour=i))
        errors = [
            spread(ds.distance.sel(data=data), label, over="seed_hetero", within=(0.25, 0.75), colour=i)
            for i, (data, (label, _)) in enumerate(DATA.items())
        ]
        m, setting = ds.num_samples.values, {"dimension": ds.attrs["dimension"], "rank": 1, "step_size": 0.05}
        law = [error_law(gs.TwoPoint(spread=6.0), **setting, num_samples=x) for x in m]
        errors.append(Line(m, law, "error law for fresh batches (ours)", role="theory"))
        samples = "samples per batch / per environment m"
        return figure(
            *shares,
            panel("Outside both signals", "step", "Frobenius norm of E", *outside),
            panel("HeteroSGD at the end", samples, "||UU^T - A_star||_F", *errors, xscale="log", yscale="log"),
            title="Pooled descent without replacement learns both signals, and on fixed data the noise as well",
            note="Pooled: d = 40, ranks (3, 2), s = 0.5 − 4 or 0.5 + 4, η = 0.1; medians and quartiles of "
            f"{ds.sizes['seed']} runs. The figure of the paper does not say whether its 5600 samples are drawn once. "
            f"HeteroSGD: M = 6, η = 0.05, T = 200, environments in shuffled order; {ds.sizes['seed_hetero']} runs.",
        )

    @claim(
        "medians at the end: invariant share in [0.85, 1.25], spurious share at least 0.6",
        each={
            "all-data": ("Without replacement, all 5600 samples at every step", ALL),
            "equal-counts": ("Fresh batches with 2800 samples of each environment", EQUAL),
        },
        invariant=(0.85, 1.25),
        spurious=(0.6, np.inf),
        items="Figure 5",
    )
    def learns_both(self, ds, what, batch):
        """{what}: pooled descent learns the spurious signal too."""
        end = last(ds.sel(batch=batch))
        return median(end.signal), median(end.spurious)

    @claim(
        "median ||E||_F at the end at least twice that with fresh batches",
        ratio=(2, np.inf),
        ours=True,
        items="Figure 5",
    )
    def fixed_data_noise(self, ds):
        """Ours: on the same samples at every step the noise does not average out, so much more is left outside both
        signals."""
        fixed, fresh = median(last(ds.error))
        return fixed / fresh

    @claim("ratio of median errors >= 1.5 for every m", least_ratio=(1.5, np.inf), ours=True, items="Theorem 2")
    def fixed_costs_more(self, ds):
        """With fixed data the error is at least 1.5 times that with fresh batches of the same size."""
        error = median(ds.distance, "seed_hetero")
        return (error.sel(data="fixed") / error.sel(data="fresh")).min()

    @claim("fitted slope in [-.75, -.4]", slope=(-0.75, -0.4), ours=True, items="Theorem 2")
    def fixed_still_falls(self, ds):
        """With fixed data, too, the error falls as about m^-1/2."""
        return slope(ds.num_samples.values, median(ds.distance.sel(data="fixed"), "seed_hetero").values)
