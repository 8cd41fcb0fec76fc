"""Propositions A.6 and A.7 and Lemma A.1: what the Polyak-Lojasiewicz (PL) inequality says of descent with a small ridge."""

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, claim
from gyrostat.experiments.statistics import slope
from gyrostat.papers.wang2023.layers import product, pulls
from gyrostat.papers.wang2023.settings import singular_values

WIDTH, LARGE, MODERATE = 4, 3.0, 1.5
"""w = d_in + d_out, as Proposition A.7 asks, and the singular values of W_1 and W_2 at two starts."""
SMALL_RIDGES = tuple(10.0**-k for k in (4, 5, 6, 7, 8))
RIDGES = (0.001, 0.003, 0.01, 0.2)
DISTANCES = (0.3, 0.1, 0.03)
OBSERVED, EVERYWHERE = np.array([[1.0, 0.0], [1.0, 1.0]]), np.ones((2, 2))
"""Masks of the observed entries."""
RANK_ONE = np.array([[1.0, 4.0], [0.25, 1.0]])

# All networks have depth 3, and layers of many networks have them along the first axis.


def loss_and_gradient(layers, truth, mask):
    """C(A) of each network, and its gradient."""
    errors, N = mask * (product(layers) - truth), mask.sum()
    return np.sum(errors**2, axis=(1, 2)) / (2 * N), pulls(layers, errors / N)


def norm(layers):
    return np.sqrt(sum(np.sum(W * W, axis=(1, 2)) for W in layers))


def start(rng, size, count):
    """W_1 and W_2 with all singular values equal, and W_3 = 0: the lazy (NTK) regime if they are large."""
    first, middle = (size * np.linalg.qr(rng.standard_normal((count, WIDTH, n)))[0] for n in (2, WIDTH))
    return [first, middle, np.zeros((count, 2, WIDTH))]


def ball(size, loss, norm):
    """beta and R: on the ball of radius R the loss is beta-PL, with lambda_0 the largest ridge.

    beta = sigma^2 / N bounds ``||grad||^2 / (2 C)`` where W_2 W_1 has singular values of at least sigma (proof of A.7), and in
    the ball sigma is at least ``(size - R)^2``. R depends on beta, so both are found by iteration.
    """
    R = 0.0
    for _ in range(100):
        beta = (size - R) ** 4 / OBSERVED.sum()
        R = np.sqrt((loss + SMALL_RIDGES[0] * norm**2) / beta)
    return beta, R


def flow(rng):
    """Gradient flow with small ridges in the ball of Lemma A.1: times until the loss is lambda k_0, and what the lemma says."""
    truth, lam, dt = np.array([[1.0, 0.0], [0.25, 1.0]]), np.array(SMALL_RIDGES), 2e-3
    origin = layers = [np.repeat(W, len(lam), axis=0) for W in start(rng, LARGE, 1)]
    loss, size = loss_and_gradient(layers, truth, OBSERVED)[0][0], norm(layers)[0]
    beta, R = ball(LARGE, loss, size)
    far = size + R
    k0 = 2 / beta * (2 * np.sqrt(2 * beta * loss) * far + beta * far**2)
    times, quotient, distance = np.full(len(lam), np.nan), np.inf, 0.0
    for step in range(600):
        loss, gradient = loss_and_gradient(layers, truth, OBSERVED)
        reached = loss + lam * norm(layers) ** 2 <= lam * k0
        times = np.where(np.isnan(times) & reached, step * dt, times)
        if not np.isnan(times).any():
            break
        # Near the end C is rounding error, and so is the quotient.
        fine = loss > 1e-20
        quotient = min(quotient, np.min((norm(gradient) ** 2 / (2 * loss))[fine], initial=np.inf))
        distance = max(distance, norm([W - V for W, V in zip(layers, origin)]).max())
        layers = [W - dt * (T + 2 * lam[:, None, None] * W) for W, T in zip(layers, gradient)]
    return times, {"beta": beta, "radius": R, "quotient": quotient, "distance": distance}


def end_ratios(rng, starts, num_steps):
    """s2 / s1 where descent ends on [[1, *], [0, 1]], which no matrix of rank 1 fits, for each ridge and start (A.6)."""
    layers = [np.tile(W, (len(RIDGES), 1, 1)) for W in start(rng, MODERATE, starts)]
    lam = np.repeat(RIDGES, starts)[:, None, None]
    for _ in range(num_steps):
        _, gradient = loss_and_gradient(layers, np.eye(2), OBSERVED)
        layers = [W - 0.2 * (T + 2 * lam * W) for W, T in zip(layers, gradient)]
    s = singular_values(product(layers))
    return np.where(s[:, 0] < 1e-3, 0, s[:, 1] / np.maximum(s[:, 0], 1e-300)).reshape(len(RIDGES), starts)


def moved_minimum(rng, distance, samples):
    """A global minimum at this distance from a balanced one of rank 1: its loss, the least PL quotient nearby, its bound (A.7).

    All entries are observed. W_1 and W_2 are moved orthogonally to the image of W_3^T, as in the proof.
    """
    U, s, Vt = np.linalg.svd(RANK_ONE)
    h = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0].T
    root, move = s[0] ** (1 / 3), distance / 2**0.5
    first = root * np.outer(h[0], Vt[0]) + move * np.outer(h[2], Vt[1])
    middle = root * np.outer(h[1], h[0]) + move * np.outer(h[3], h[2])
    last = root * np.outer(U[:, 0], h[1])
    layers = [W[None] for W in (first, middle, last)]
    loss = loss_and_gradient(layers, RANK_ONE, EVERYWHERE)[0][0]
    radius = np.linalg.svd(middle @ first, compute_uv=False)[1] / (8 * root)
    # Random directions miss the worst one, in which the residual is that of the second singular pair.
    worst = [first, middle, last + radius * np.outer(U[:, 1], h[3])]
    near = [
        np.concatenate([W + directions(rng, W.shape[1:], samples) * radius / 3**0.5, V[None]])
        for W, V in zip(layers, worst)
    ]
    sigma = np.linalg.svd(near[1] @ near[0], compute_uv=False)[:, 1].min()
    value, gradient = loss_and_gradient(near, RANK_ONE, EVERYWHERE)
    return loss, (norm(gradient) ** 2 / (2 * value)).min(), sigma**2 / EVERYWHERE.sum()


def directions(rng, shape, count):
    D = rng.standard_normal((count, *shape))
    return D / np.linalg.norm(D, axis=(1, 2), keepdims=True)


def balanced_quotient(distance):
    """The PL quotient near the balanced minimum itself, in the direction of its second singular pair."""
    U, s, Vt = np.linalg.svd(RANK_ONE)
    S = np.diag([s[0] ** (1 / 3), distance / 3**0.5])
    loss, gradient = loss_and_gradient([W[None] for W in (S @ Vt, S, U @ S)], RANK_ONE, EVERYWHERE)
    return norm(gradient)[0] ** 2 / (2 * loss[0])


class LemmaA1(Experiment):
    """Descent with a small ridge and the PL inequality

    Where the loss satisfies the PL inequality, gradient flow reaches a loss of order lambda in a time of order log(1 / lambda).
    It then keeps the smallest rank of an exact fit. A small move makes nearly every global minimum satisfy the PL inequality.
    """

    name, source = "lemmaA.1", "Wang 2023, Propositions A.6 and A.7, Lemma A.1"
    items = "Lemma A.1"
    sizes = {"starts": (3, 8, 40), "num_steps": (3000, 10_000, 30_000), "samples": (200, 2000, 20_000)}

    def compute(self, run, starts, num_steps, samples):
        """L = 3, w = 4: flow with small ridges, descent on a problem without a fit of rank 1, and minima that satisfy PL."""
        times, lemma = flow(run.rng)
        ends = end_ratios(run.rng, starts, num_steps)
        loss, quotient, bound = zip(*(moved_minimum(run.rng, d, samples) for d in DISTANCES))
        moved = {"moved_loss": loss, "moved_quotient": quotient, "moved_bound": bound}
        moved["balanced_quotient"] = tuple(balanced_quotient(d) for d in DISTANCES)
        return xr.Dataset(
            {"time": ("small_ridge", times), "end_ratio": (("ridge", "start"), ends)}
            | lemma
            | {name: ("distance_from_minimum", list(x)) for name, x in moved.items()},
            {"small_ridge": list(SMALL_RIDGES), "ridge": list(RIDGES), "distance_from_minimum": list(DISTANCES)},
        )

    @claim(
        "slope of that time in log(1 / lambda) over 2/beta at most 1 (and at least .05); PL quotient at least beta along the "
        "path",
        slug="lemmaA.1",
        slope_over_bound=(0, 1),
        pl_quotient_over_beta=(1, np.inf),
        least_slope=(0.05, np.inf),
    )
    def time(self, ds):
        """Where the loss is beta-PL, gradient flow with ridge lambda reaches a loss of lambda k_0 by the time T_0 - (2/beta)
        log lambda."""
        rate = slope(1 / ds.small_ridge.values, np.exp(ds.time.values))  # d time / d log(1 / lambda)
        return rate * ds.beta / 2, ds.quotient / ds.beta, rate * ds.beta / 2

    @claim(
        "largest distance from the start at most R",
        slug="lemmaA.1-ball",
        fails="false as printed",
        distance_over_radius=(0, 1),
    )
    def stays_in_the_ball(self, ds):
        """Until that time the flow stays in the ball of radius R = sqrt(L_lambda / beta), as the proof of Lemma A.1 says.

        The integral of (L - tau)^(-1/2) is 2 sqrt(L), and the proof drops the 2: on the parabola beta x^2 / 2 the path has
        length sqrt(2) R. With a ball of twice the radius the proof goes through.
        """
        return ds.distance / ds.radius

    @claim(
        "largest distance from the start at most 2 R, with a PL quotient of at least beta along the path",
        slug="lemmaA.1-double-ball",
        ours=True,
        items="Lemma A.1",
        names={"pl": "PL quotient over beta"},
        distance_over_radius=(0, 2),
        pl=(1, np.inf),
    )
    def stays_in_the_double_ball(self, ds):
        """The flow stays in the ball of radius 2 R (ours)."""
        return ds.distance / ds.radius, ds.quotient / ds.beta

    @claim(
        "[[1, *], [0, 1]]: s2 / s1 at least .05 from all starts for lambda <= .01; below .01 for lambda = .2",
        slug="propA.6",
        items="Proposition A.6",
        least_ratio=(0.05, 1),
        ratio_at_large_ridge=(0, 0.01),
    )
    def keeps_the_rank(self, ds):
        """From a start with a PL limit, descent with a small ridge ends at no smaller rank than that of an exact fit, even
        where matrices of smaller rank come arbitrarily close to a fit."""
        return ds.end_ratio.sel(ridge=slice(0.01)).min(), ds.end_ratio.isel(ridge=-1).max()

    @claim(
        "moved minima at distance .3, .1, .03 have C <= 1e-20, and the least PL quotient around them is at least their beta "
        "> 0; near the balanced minimum itself it falls below 1e-3",
        slug="propA.7",
        items="Proposition A.7",
        names={
            "least_over_bound": "least PL quotient over its bound",
            "balanced": "PL quotient near the balanced minimum",
        },
        largest_loss=(0, 1e-20),
        least_over_bound=(1, np.inf),
        balanced=(0, 1e-3),
        least_bound=(0, np.inf),
    )
    def nearly_every_minimum(self, ds):
        """Near every global minimum there is one with the PL inequality around it, with beta = sigma^2 / N."""
        least = (ds.moved_quotient / ds.moved_bound).min()
        return ds.moved_loss.max(), least, ds.balanced_quotient[-1], ds.moved_bound.min() - 1e-12
