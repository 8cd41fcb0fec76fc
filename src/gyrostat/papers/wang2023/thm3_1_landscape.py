"""Theorem 3.1 and Propositions 3.1-3.3: critical points of the 2 x 2 problem, and minima as the ridge goes to zero."""

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, claim
from gyrostat.experiments.statistics import slope
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Bars, Line, Points
from gyrostat.jax_tools.float64 import double
from gyrostat.papers.wang2023.layers import f, product, pulls
from gyrostat.papers.wang2023.settings import OBSERVED, STARTS, annealed, completion, follow, network
from gyrostat.theory.wang2023 import Region, contains, critical_points

EPSILON, DEPTH, RIDGE = 0.25, 3, 0.005
KINDS = ("minimum", "strict saddle", "degenerate")
SMALL = tuple(10.0**k for k in (-3.0, -3.5, -4.0, -4.5, -5.0, -5.5, -6.0))
WEIGHTS = (0.001, 0.01, 0.1, 1.0)
ALPHAS, EXCESS, LARGEST_IMBALANCE = (0.1, 0.3, 1.0, 3.0, 10.0), 0.4, 1e-4
"""Proposition 3.3: scales of the approximate rank, from far below the singular values of layers to far above, and epsilon_2."""
TRUTH = np.array([[1.0, 1 / EPSILON], [EPSILON, 1.0]])


def rank_one_loss(ridge):
    """C(A) at the rank-1 minimum of ``C(A) + lambda L s^(2/L)``, by descent over u v^T from the exact completion.

    >>> bool(0 < rank_one_loss(1e-4) < 1e-5)
    True
    """
    from scipy.optimize import minimize

    def errors(x):
        A = np.outer(x[:2], x[2:])
        return np.array([A[0, 0] - 1, A[1, 0] - EPSILON, A[1, 1] - 1])

    def cost(x):
        s = np.linalg.norm(x[:2]) * np.linalg.norm(x[2:])
        return errors(x) @ errors(x) / 6 + ridge * DEPTH * s ** (2 / DEPTH)

    U, s, Vt = np.linalg.svd(TRUTH)
    x = np.concatenate([U[:, 0], Vt[0]]) * s[0] ** 0.5
    x = minimize(cost, x, method="BFGS", options={"gtol": 1e-11, "maxiter": 4000}).x
    x = minimize(cost, x, method="Nelder-Mead", options={"xatol": 1e-12, "fatol": 1e-18, "maxiter": 4000}).x
    return errors(x) @ errors(x) / 6


def minimum_near(A, rng):
    """Layers at a minimum of the loss, by descent over all of them from near balanced layers with the product A."""
    from scipy.optimize import minimize

    shape, (i, j) = (DEPTH, 2, 2), np.transpose(OBSERVED)

    def loss(x):
        W = x.reshape(shape)
        errors = np.zeros((2, 2))
        errors[i, j] = (product(W) - TRUTH)[i, j]
        return np.sum(errors**2) / 6 + RIDGE * x @ x, np.ravel(pulls(W, errors / 3)) + 2 * RIDGE * x

    U, s, Vt = np.linalg.svd(A)
    S = np.diag(s ** (1 / DEPTH))
    start = np.ravel([S @ Vt, S, U @ S]) + 0.05 * rng.standard_normal(np.prod(shape))
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0, "gtol": 1e-10}
    return minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x.reshape(shape)


def ranks_at(W, alpha):
    """The approximate rank of A^(2/L) at layers W, the largest of a layer, and the least r such that they lie in B_r."""
    product_rank = f(np.linalg.svd(product(W), compute_uv=False) ** (2 / DEPTH), alpha).sum()
    bound = 1 / (2 * RIDGE)  # C = C_1 / (2 lambda)
    regions = (Region(r, alpha, LARGEST_IMBALANCE, EXCESS, bound) for r in (0, 1, 2))
    with double():
        r = next((region.rank for region in regions if contains(region, W)), np.nan)
    return product_rank, f(np.linalg.svd(W, compute_uv=False) ** 2, alpha).sum(1).max(), r


class Landscape(Experiment):
    """The landscape of the 2 x 2 problem

    Every critical point found from many starts, with the signs of its Hessian; the rank-1 minimum as the ridge goes to zero;
    where descent ends for small and large ridges.
    """

    name, source, weight = "thm3.1", "Wang 2023, Theorem 3.1, Propositions 3.1-3.3, section 4", 7
    sizes = {"tries": (1600, 2400, 6000), "num_steps": (4000, 20_000, 40_000)}

    def compute(self, run, tries, num_steps):
        """L = 3, epsilon = .25: critical points at lambda = .005; rank-1 minima as lambda falls; ranks that GD ends at."""
        points = critical_points(TRUTH, OBSERVED, DEPTH, RIDGE, tries=tries, seed=run.seed)
        ends = [
            follow(
                network(annealed((0.1, ridge)), DEPTH),
                completion(EPSILON, "all"),
                num_steps=num_steps,
                seeds=STARTS,
                seed=run.seed,
            )
            for ridge in run.over(WEIGHTS)
        ]
        layers = [minimum_near(p.matrix, run.rng) for p in points if p.kind == "minimum"]
        ranks = np.array([[ranks_at(W, alpha) for alpha in ALPHAS] for W in layers])
        numbers = {name: [float(getattr(p, name)) for p in points] for name in ("rank", "loss", "imbalance", "gap")}
        numbers["kind"] = [float(KINDS.index(p.kind)) for p in points]
        numbers["negative"] = [float(p.signature[0]) for p in points]
        return xr.Dataset(
            {name: ("point", x) for name, x in numbers.items()}
            | {
                "minima": ("order", [sum(p.kind == "minimum" and p.rank == r for p in points) for r in (0, 1, 2)]),
                "product_rank": (("minimum", "alpha"), ranks[..., 0]),
                "layer_rank": (("minimum", "alpha"), ranks[..., 1]),
                "r": (("minimum", "alpha"), ranks[..., 2]),
                "fit": ("ridge", [rank_one_loss(lam) for lam in SMALL]),
                "gd_rank": (("weight", "start"), [paths.ranks[:, -1].astype(float) for paths in ends]),
            },
            {"ridge": list(SMALL), "weight": list(WEIGHTS), "order": [0, 1, 2]},
            {"settings": ends[-1].settings},
        )

    def draw(self, ds):
        shown, order = [], np.argsort(np.argsort(ds.loss.values)) + 1
        for k, kind in enumerate(KINDS[:2]):
            for rank in (0, 1, 2):
                at = (ds.kind.values == k) & (ds["rank"].values == rank)
                if at.any():
                    label = f"{kind}, rank {rank} ({at.sum()})"
                    shown.append(Points(order[at], ds.loss.values[at], label, colour=3 * k + rank))
        lam, fit = ds.ridge.values, ds.fit.values
        path = Points(lam, fit, "rank-1 minimum", colour=0)
        square = Line(lam, fit[-1] * (lam / lam[-1]) ** 2, "slope 2", role="theory")
        names = [f"{w:g}" for w in ds.weight.values]
        ends = [
            Bars(names, (ds.gd_rank == r).mean("start").values, f"rank {r}", colour=i) for i, r in enumerate((2, 1, 0))
        ]
        log = {"xscale": "log", "yscale": "log"}
        where = "Proposition 3.2: where descent ends"
        return figure(
            panel("Critical points", "number, by loss", "loss", *shown),
            panel("Proposition 3.1", "ridge lambda", "C(A) at the minimum", path, square, **log),
            panel(where, "ridge (weight decay)", "share of starts", *ends, ylim=(0, 1.05)),
            title="Thirteen critical points: four minima, not three, and nine strict saddles",
            printed={"local minima at a small ridge": ("3 (of rank 0, 1 and 2)", int((ds.kind == 0).sum()))},
            note="L = 3, epsilon = 0.25. Left: lambda = 0.005 in main-text units; the fourth minimum has rank 1 and a "
            "missing entry of the wrong sign. Middle: the rank-1 minimum fits better and better as the ridge falls. "
            f"Right: {ds.sizes['start']} starts.",
        )

    @claim(
        "a negative eigenvalue at every other point found, none at a minimum",
        items="Theorem 3.1; Proposition A.3",
        negative_at_others=(1, np.inf),
        degenerate=(0, 0),
        negative_at_minima=(0, 0),
    )
    def strict_saddles(self, ds):
        """For a small ridge all critical points but the local minima are strict saddles (Thm 3.1)."""
        others, minima = ds.negative.where(ds.kind > 0), ds.negative.where(ds.kind == 0)
        return others.min(), (ds.kind == 2).sum(), minima.max()

    @claim(
        "exactly 4 and 9 found",
        items="Theorem 3.1",
        ours=True,
        names={"minima": "minima found", "saddles": "strict saddles found"},
        minima=(4, 4),
        saddles=(9, 9),
    )
    def count(self, ds):
        """There are thirteen critical points: four minima and nine strict saddles (ours)."""
        return (ds.kind == 0).sum(), (ds.kind == 1).sum()

    @claim(
        "exactly one minimum of each rank found",
        items="Section 4, local minima",
        fails="false as printed",
        of_rank=(1, 1),
    )
    def three_minima(self, ds):
        """There are three local minima: of rank 0, 1 and 2 (section 4).

        There are two minima of rank 1: the second has a negative missing entry.
        """
        return ds.minima

    @claim("imbalance and gap <= 1e-9 at all of them", items="Proposition A.1", imbalance=(0, 1e-9), gap=(0, 1e-9))
    def balanced(self, ds):
        """Critical points are balanced, and their loss is C_lambda(A) (Prop. A.1, section 2.2)."""
        return ds.imbalance.max(), abs(ds.gap).max()

    @claim(
        "exponent in [1.9, 2.1] over lambda from 1e-4 to 1e-6, C < 1e-8 at the end",
        slug="prop3.1",
        items="Proposition 3.1; Proposition A.4",
        exponent=(1.9, 2.1),
        smallest=(0, 1e-8),
    )
    def fit_of_rank_one(self, ds):
        """Along a path of rank-1 minima C goes to 0 with the ridge, as lambda^2 (the exponent is ours)."""
        return slope(ds.ridge.values[2:], ds.fit.values[2:]), ds.fit.min()

    @claim(
        "rank >= 1 from all starts for ridges up to .1 (weight decay), and rank 0 at 1",
        slug="prop3.2",
        items="Proposition 3.2; Proposition A.5",
        least_rank=(1, 2),
        rank_at_large_ridge=(0, 0),
    )
    def keeps_the_rank(self, ds):
        """For a small ridge descent ends at a minimum of at least the smallest fitting rank."""
        return ds.gd_rank.sel(weight=slice(0.1)).min(), ds.gd_rank.sel(weight=1.0).max()

    @claim(
        "alpha from .1 to 10, epsilon_2 = .4, the least r such that the layers lie in B_r: largest approximate rank of "
        "A^(2/L) over r + epsilon_2 at most 1 (and at least .5); within 1e-6 of that of the layers, as the proof says",
        slug="prop3.3",
        items="Proposition 3.3",
        largest_over_bound=(0.5, 1),
        largest_gap_to_the_layers=(0, 1e-6),
    )
    def rank_of_product(self, ds):
        """A minimum in B_r has a product of approximate rank at most r + epsilon_2."""
        over_bound = ds.product_rank / (ds.r + EXCESS)
        return over_bound.max(skipna=False), abs(ds.product_rank - ds.layer_rank).max()
