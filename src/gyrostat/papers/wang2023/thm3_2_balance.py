"""Theorem 3.2 and section 2.2: layers become balanced and as small as they can be, and a streak in one column forces a jump."""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.diagnostics import jump_times
from gyrostat.experiments import Experiment, claim
from gyrostat.figures.compose import figure, lines, panel
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Demand, Scene
from gyrostat.models.spaces import RectangularMatrices
from gyrostat.papers.wang2023.layers import product, pulls
from gyrostat.papers.wang2023.settings import (
    HIGH,
    OBSERVED,
    RATIO,
    annealed,
    completion,
    follow,
    network,
    singular_values,
)

EPSILON, DEPTH = 0.25, 3
TRUTH = np.array([1.0, EPSILON, 1.0])

COST_DEPTHS = (2, 3, 4, 5)
FLOW, RIDGE, WIDTH = 0.005, 0.05, 10
"""A step size near gradient flow, the ridge in main-text units, the width of the hidden layers."""

COLUMNS = {"first": ((0, 1), 2 / 3), "second": ((2,), 1 / 3)}
"""The observed entries of each column, and the probability of drawing one of them."""
NUM_STEPS, SETTLE = 20_000, 3000
EXPECTED_PASSES = {"with replacement": (6 / 27, 1 / 27), "without replacement": (1.0, 1 / 6)}
"""Shares of passes over the three entries that visit all of them, and that have the order of the pass before."""


def least_norm(A, depth, rng, starts=2):
    """The least ``||W_1||^2 + ... + ||W_L||^2`` with W_L ... W_1 = A, found by descent: the last layer is A (W_(L-1)...W_1)^-1.

    >>> round(float(least_norm(np.diag([8.0, 1.0]), 3, np.random.default_rng(0))), 4)
    15.0
    """
    from scipy.optimize import minimize

    shape = (depth - 1, *A.shape)

    def norm(x):
        layers = x.reshape(shape)
        inverse = np.linalg.inv(product(layers))
        last = A @ inverse
        G = -2 * last.T @ last @ inverse.T  # the gradient in the product of the other layers
        return x @ x + np.sum(last**2), 2 * x + np.ravel(pulls(layers, G))

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-11}
    near_identity = [np.ravel(np.eye(len(A)) + 0.3 * rng.standard_normal(shape)) for _ in range(starts)]
    return min(minimize(norm, x, jac=True, method="L-BFGS-B", options=options).fun for x in near_identity)


def costs(rng, matrices, sides):
    """Random Gaussian matrices: the least norm by descent over the layers over the formula, for each depth."""
    rows = []
    for depth in COST_DEPTHS:
        for A in [rng.standard_normal((n, n)) for n in sides for _ in range(matrices)]:
            with double():
                rows.append(least_norm(A, depth, rng) / float(gs.diagnostics.representation_cost(A, depth)))
    return np.reshape(rows, (len(COST_DEPTHS), -1))


def towards_balance(run, starts, num_steps):
    """GD with tiny steps under the main text's update from unbalanced layers: decay rates over lambda, and the excess norm."""
    model, start = gs.DeepLinear(DEPTH, WIDTH), gs.starts.FanInGaussian()
    ds = gs.run(
        gs.RidgeDescent(FLOW, RIDGE, model=model, start=start, convention="main_text"),
        completion(EPSILON, "all"),
        num_steps=num_steps,
        seeds=starts,
        seed=run.seed,
        record=("imbalances_frobenius", "layer_norms", "product"),
        record_at=101,
        progress=run.progress,
    )
    t, y = FLOW * ds.step.values, np.log(ds.imbalances_frobenius.transpose("seed", "joint", "step").values)
    rates = [[-np.polyfit(t, path, 1)[0] / RIDGE for path in paths] for paths in y]
    s = np.linalg.svd(ds["product"].values, compute_uv=False)
    return rates, ds.layer_norms.sum("layer").values - DEPTH * np.sum(s ** (2 / DEPTH), axis=-1)


def moved(layers, weights, ridge=HIGH[1]):
    """One step of many runs (leading axis): ``weights`` (runs, 3) says how much each observed entry counts."""
    eta, A, (i, j) = HIGH[0], product(layers), np.transpose(OBSERVED)
    G = np.zeros_like(A)
    G[:, i, j] = weights * (A[:, i, j] - TRUTH)
    return [(1 - eta * ridge) * W - 2 * eta * T for W, T in zip(layers, pulls(layers, G))]


def after_streaks(rest, entries, lengths, runs, rng):
    """s2 / s1 when descent has settled after a streak of each length."""
    with double():
        layers = [np.asarray(W) for W in gs.DeepLinear(DEPTH, 2).factorise(jnp.asarray(rest))]
    count, ends = len(lengths) * runs, np.repeat(lengths, runs)
    layers = [np.repeat(W[None], count, axis=0) for W in layers]
    for t in range(max(lengths)):
        drawn = np.eye(3)[rng.choice(entries, count)]
        busy = (t < ends)[:, None, None]
        layers = [np.where(busy, new, old) for new, old in zip(moved(layers, drawn), layers)]
    for _ in range(SETTLE):
        layers = moved(layers, np.full((count, 3), 1 / 3))
    s = singular_values(product(layers))
    return (s[:, 1] / s[:, 0]).reshape(len(lengths), runs)


def passes(seed, runs):
    """Among pairs of passes over the three observed entries, as the engine draws them: the shares of EXPECTED_PASSES."""
    shares = []
    with double():
        keys = jax.random.split(jax.random.key(seed), runs)
        for sampling in ("one", "shuffled"):
            entries = np.asarray(jax.jit(jax.vmap(lambda key, s=sampling: drawn_entries(key, s)))(keys))
            entries = entries.reshape(runs, 2, 3)
            whole = (np.sort(entries, axis=2) == np.arange(3)).all(2).mean()
            shares.append([whole, (entries[:, 0] == entries[:, 1]).all(1).mean()])
    return shares


def drawn_entries(key, sampling):
    """The observed entries (0, 1, 2) that six steps of a run see, told from the gradient at a product of 0."""
    problem, space = completion(EPSILON, sampling), RectangularMatrices(2, 2)
    environments, measurements = problem.environments, problem.measurements
    scene, environment = Scene(environments, space, jnp.zeros((2, 2))), environments.law.at(jnp.asarray(0))
    rows, columns = np.array(OBSERVED).T

    def step(state, key):
        reading, state = measurements.sense(state, key, scene, environment)
        return state, jnp.argmax(jnp.abs(reading.gradient[rows, columns]))

    state = measurements.init(key, environments, space, Demand(queries=6, mixes=False))
    return jax.lax.scan(step, state, jax.random.split(key, 6))[1]


def lasting(rng, paths):
    """Whether ``jump_times`` of random paths is the first record after which s2 / s1 stays low; whether it was low before."""
    records = 12
    low = rng.random((paths, records)) < np.linspace(0, 1, records)
    values = np.stack([np.ones(low.shape), np.where(low, RATIO / 10, 0.5)], axis=-1)
    jumped = jump_times(values, np.arange(records), ratio=RATIO)
    first = np.array([next((k for k in range(records) if path[k:].all()), np.inf) for path in low])
    return (jumped == first).astype(float), (np.argmax(low, axis=1) < first).astype(float)


class Balance(Experiment):
    """Imbalance decays with the ridge, and streaks in one column force jumps

    The gradient of the fit does not change W_l W_l^T - W_(l+1)^T W_(l+1); the ridge makes it decay. On C + lambda ||theta||^2
    each layer decays at 2 lambda, and a square of layers at 4 lambda. Balanced layers have the norm R(A; L) = L
    ||A||_(2/L)^(2/L), checked by an optimisation that does not use singular values. The proof of Theorem 3.2 lets SGD draw from
    one column until the other is forgotten. That works, but such streaks are far rarer than jumps: what happens is a walk out
    of a shallow minimum just below the fold.
    """

    source, weight = "Wang 2023, sections 2.2 and 3.2 (proof of Theorem 3.2)", 12
    sizes = {
        "seeds": (64, 240, 1000),
        "starts": (4, 8, 40),
        "num_steps": (10_000, 14_000, 20_000),
        "matrices": (3, 6, 20),
        "sides": ([2, 3], [2, 3, 4], [2, 3, 4, 6]),
        "lengths": ([0, *range(16, 37, 2), 80], [0, *range(12, 41), 60, 120], [0, *range(10, 61), 80, 120]),
        "runs": (24, 40, 400),
    }

    def compute(self, run, starts, num_steps, matrices, sides, lengths, runs):
        """L = 3, epsilon = .25: GD from unbalanced layers; from the rank-2 minimum, a streak in one column, then GD; and the
        hazard of plain SGD."""
        rates, excess = towards_balance(run, starts, num_steps)
        cost = costs(run.rng, matrices, sides)
        rest = follow(network(annealed()), completion(EPSILON, "all"), num_steps=6000, seeds=8, seed=run.seed)
        ratio = [
            after_streaks(rest.matrices[0, -1], entries, lengths, runs, run.rng) for entries, _ in COLUMNS.values()
        ]
        free = follow(network(annealed()), completion(EPSILON), num_steps=NUM_STEPS, seeds=run.seeds, seed=run.seed)
        agree, dips = lasting(run.rng, 40 * runs)
        at_risk = np.minimum(free.jumped, NUM_STEPS) - 500
        return xr.Dataset(
            {
                "rate": (("start", "joint"), rates),
                "excess": (("start", "step"), excess),
                "cost": (("depth", "matrix"), cost),
                "ratio": (("column", "length", "run"), ratio),
                "passes": (("sampling", "event"), passes(run.seed, 64 * runs)),
                "agree": ("path", agree),
                "dips": ("path", dips),
                "hazard": np.isfinite(free.jumped).sum() / at_risk.sum(),
            },
            {"column": list(COLUMNS), "length": lengths, "sampling": list(EXPECTED_PASSES)},
            {"settings": free.settings, "runs": run.seeds},
        )

    def draw(self, ds):
        streaks = lines(self.falls(ds), "column", "{} column")
        return figure(
            *super().draw(ds).panels,
            panel("After a streak, descent", "length of the streak", "share that falls to rank 1", *streaks),
            title="Layers become balanced at four times the printed rate; streaks that force a jump are too rare",
            note="L = 3, epsilon = 0.25. Balance: w = 10, lambda = 0.05, eta = 0.005. Streaks: eta = 0.2, lambda = 0.1, from "
            "the rank-2 minimum, entries of one column only, then 3000 steps of gradient descent; "
            f"{ds.sizes['run']} runs for each length.",
        )

    def falls(self, ds):
        """The share of runs that fall, by column and length of the streak."""
        return (ds.ratio < RATIO).mean("run")

    @claim("all rates over lambda in [3.9, 4.1]", items="Theorem 3.2", ours=True, least=(3.9, 4.1), most=(3.9, 4.1))
    def rate(self, ds):
        """Under gradient flow imbalance decays at 4 lambda (ours)."""
        return ds.rate.min(), ds.rate.max()

    @claim(
        "all rates over lambda in [.9, 1.1]",
        items="Theorem 3.2",
        fails="depends on the reading",
        least=(0.9, 1.1),
        most=(0.9, 1.1),
    )
    def printed_rate(self, ds):
        """Under gradient flow imbalance decays at lambda (as printed).

        The gradient of lambda ||theta||^2 is 2 lambda theta, so products of two layers decay at 4 lambda.
        """
        return ds.rate.min(), ds.rate.max()

    @claim(
        "excess at the end over that at the start <= 1e-3",
        items="Section 2.2, representation cost",
        left_over=(0, 1e-3),
    )
    def least_norm(self, ds):
        """Balanced layers have the least norm: the excess over R(A; L) vanishes."""
        return (ds.excess.isel(step=-1) / ds.excess.isel(step=0)).max()

    @claim(
        "relative difference within 1e-6 for L = 2, ..., 5",
        items="Section 2.2, representation cost",
        largest=(-1e-6, 1e-6),
        least=(-1e-6, 1e-6),
    )
    def formula(self, ds):
        """The least norm of layers that make A is L sum s_i^(2/L)."""
        return ds.cost.max() - 1, ds.cost.min() - 1

    @claim(
        "first column: all runs fall after the longest streak, none without one",
        items="Theorem 3.2",
        names={
            "longest": "share that falls after the longest streak",
            "none": "share that falls without a streak",
            "needed": "streak needed [steps]",
        },
        longest=(1, 1),
        none=(0, 0),
        needed=None,
    )
    def forces(self, ds):
        """Entries from one column for long enough force a jump."""
        falls = self.falls(ds).sel(column="first")
        return falls[-1], falls[0], falls.length.where(falls >= 0.5).fillna(np.inf).min()

    @claim(
        "rate of such streaks at most a tenth of the observed hazard",
        items="Theorem 3.2",
        ours=True,
        names={
            "by_streaks": "jumps by streaks [per step]",
            "observed": "jumps observed [per step]",
            "quotient": "their quotient",
        },
        by_streaks=None,
        observed=None,
        quotient=(0, 0.1),
    )
    def not_the_mechanism(self, ds):
        """Such streaks, which the proof uses, are too rare to explain the jumps of SGD here (ours)."""
        # Jumps per step that streaks force: a draw from another column, a streak from this one, and the share that then falls.
        falls, rate = self.falls(ds), 0.0
        for column, (_, p) in COLUMNS.items():
            newly = np.diff(falls.sel(column=column).values, prepend=0.0)
            rate += (1 - p) * np.sum(newly * p**ds.length.values)
        return rate, ds.hazard, rate / ds.hazard

    @claim("hazard in [1e-4, 3e-4]", ours=True, names={"hazard": "jumps [per step]"}, hazard=(1e-4, 3e-4))
    def hazard(self, ds):
        """Jumps occur at a rate of about 1.8e-4 per step (ours)."""
        return ds.hazard

    @claim(
        "shares of passes over the three entries that visit all of them, and of passes in the order of the one before, "
        "within 0.06 of theory (6/27 and 1/27; 1 and 1/6)",
        items="Section 2.3, update",
        ours=True,
        gap=(0, 0.06),
    )
    def entries(self, ds):
        """Section 2.1: SGD draws every entry from all observed ones; without replacement, every pass visits all entries in a
        new random order."""
        gaps = abs(ds.passes - np.array(list(EXPECTED_PASSES.values()))).max("event")
        return {str(name).replace(" ", "_"): gap for name, gap in zip(gaps.sampling.values, gaps)}

    @claim(
        "the step of a jump is the first after which s2 / s1 stays low, in all random paths; at least 0.2 of them dip before "
        "it",
        items="Figure 1",
        ours=True,
        share_right=(1, 1),
        share_that_dips_before=(0.2, 1),
    )
    def lasting(self, ds):
        """A jump is lasting: a run that falls to rank 1 and comes back has not jumped (ours)."""
        return ds.agree.mean(), ds.dips.mean()
