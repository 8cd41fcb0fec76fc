"""Theorem 3.1 and Proposition A.2 on 3 x 3 problems, and why depth 2 has no bad minima (section 2.2)."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.figures.declarations import Figure, Marker, Panel, Points
from gyrostat.papers.wang2023.settings import ticker

SIDE, DEPTHS, RIDGE, SIZE = 3, (2, 3), 0.01, 3.0
ROWS, COLUMNS = (np.array(x) for x in zip(*((k, (k + o) % SIDE) for k in range(SIDE) for o in (0, 1)), strict=True))
"""Two observed entries in every row and column, in a ring."""
FLAT = 1e-7
"""Eigenvalues of a Hessian below this in size count as zero. Gradients are zero to 1e-11."""
ITERATIONS, DESCENTS = 50, 6


class Point(NamedTuple):
    """A critical point: problem, loss, rank, the least eigenvalues of the Hessians in layers and in matrices, and checks."""

    problem: int
    loss: float
    rank: int
    in_layers: float
    in_matrices: float
    imbalance: float
    formula1: float


def larger_data(*, seed: int, progress: Any = None, problems: int, tries: int) -> xr.Dataset:
    """Random 3 x 3 matrices of rank 1 with six observed entries: critical points at L = 2 and L = 3, from many starts."""
    rng, tick = np.random.default_rng(seed), ticker(progress, problems)
    found: dict[int, list[Point]] = {depth: [] for depth in DEPTHS}
    convex = []
    for k in range(problems):
        truth = np.outer(*np.exp(rng.uniform(-1, 1, (2, SIDE))))
        truth *= SIZE / np.linalg.norm(truth)
        for depth in DEPTHS:
            found[depth] += _points(k, truth, depth, _starts(rng, depth, tries))
        convex.append(nuclear_norm_optimum(truth))
        tick()
    tables = {}
    for depth, points in found.items():
        for name, values in zip(Point._fields, zip(*points, strict=True), strict=True):
            tables[f"{name}_{depth}"] = (f"point_{depth}", np.array(values, dtype=float))
    return xr.Dataset({**tables, "convex": ("problem", convex)})


def _starts(rng: np.random.Generator, depth: int, tries: int) -> np.ndarray:
    """Zero; then in turn balanced layers of rank 1, 2 and 3, with singular values over four decades."""
    starts = [np.zeros(depth * SIDE * SIDE)]
    for k in range(tries - 1):
        s = np.sort(np.exp(rng.uniform(np.log(1e-3), np.log(5.0), SIDE)))[::-1] * (np.arange(SIDE) <= k % SIDE)
        turns = [np.linalg.qr(rng.standard_normal((SIDE, SIDE)))[0] for _ in range(depth + 1)]
        layers = [(b * s ** (1 / depth)) @ a.T for a, b in itertools.pairwise(turns)]
        starts.append(np.concatenate([W.ravel() for W in layers]))
    return np.array(starts)


def _layers(thetas: np.ndarray, depth: int) -> list[np.ndarray]:
    return [thetas[:, k * SIDE**2 : (k + 1) * SIDE**2].reshape(-1, SIDE, SIDE) for k in range(depth)]


def _errors(thetas: np.ndarray, truth: np.ndarray, depth: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The errors at the observed entries as matrices, and the products W_1, W_2 W_1, ... that begin with the identity."""
    ahead = [np.broadcast_to(np.eye(SIDE), (len(thetas), SIDE, SIDE))]
    for W in _layers(thetas, depth):
        ahead.append(W @ ahead[-1])
    E = np.zeros_like(ahead[-1])
    E[:, ROWS, COLUMNS] = (ahead[-1] - truth)[:, ROWS, COLUMNS]
    return E, ahead


def _loss(thetas: np.ndarray, truth: np.ndarray, depth: int) -> np.ndarray:
    E, _ = _errors(thetas, truth, depth)
    return np.sum(E**2, axis=(1, 2)) / (2 * len(ROWS)) + RIDGE * np.sum(thetas**2, axis=1)


def _gradient(thetas: np.ndarray, truth: np.ndarray, depth: int) -> np.ndarray:
    """The gradient of the loss over all layers, for many networks."""
    E, ahead = _errors(thetas, truth, depth)
    back, found = E / len(ROWS), []
    for W, before in zip(_layers(thetas, depth)[::-1], ahead[-2::-1], strict=True):
        found.append(back @ before.transpose(0, 2, 1))
        back = W.transpose(0, 2, 1) @ back
    return np.concatenate([g.reshape(len(thetas), -1) for g in found[::-1]], axis=1) + 2 * RIDGE * thetas


def _hessian(thetas: np.ndarray, truth: np.ndarray, depth: int, h: float = 1e-5) -> np.ndarray:
    """By differences of the gradient, right to about h^2."""
    count, size = thetas.shape
    moves = h * np.concatenate([np.eye(size), -np.eye(size)])
    g = _gradient((thetas[:, None] + moves).reshape(-1, size), truth, depth).reshape(count, 2, size, size)
    H = (g[:, 0] - g[:, 1]) / (2 * h)
    return (H + H.transpose(0, 2, 1)) / 2


def _points(problem: int, truth: np.ndarray, depth: int, starts: np.ndarray) -> list[Point]:
    """The distinct critical points that are found from the starts, by their matrices."""
    # Some descend first, because a zero of the gradient that is near a random start is mostly a saddle.
    lowest = [_descended(truth, depth, start) for start in starts[1 : 1 + DESCENTS]]
    thetas = _zeros_of_gradient(truth, depth, np.concatenate([starts, lowest]))
    thetas = thetas[np.abs(_gradient(thetas, truth, depth)).max(axis=1) < 1e-11]
    _, ahead = _errors(thetas, truth, depth)
    keys = [tuple(np.round(A.ravel(), 4) + 0.0) for A in ahead[-1]]
    first = [keys.index(key) for key in dict.fromkeys(keys)]
    least = np.linalg.eigvalsh(_hessian(thetas[first], truth, depth))[:, 0]
    losses = _loss(thetas[first], truth, depth)
    found = []
    for theta, A, loss, curvature in zip(thetas[first], ahead[-1][first], losses, least, strict=True):
        rank = int((np.linalg.svd(A, compute_uv=False) > 1e-6).sum())
        found.append(
            Point(
                problem,
                float(loss),
                rank,
                float(curvature),
                least_curvature(A, rank, truth, depth),
                _imbalance(theta.reshape(depth, SIDE, SIDE)),
                _formula1(A, rank, truth, depth),
            )
        )
    return found


def _descended(truth: np.ndarray, depth: int, start: np.ndarray) -> np.ndarray:
    from scipy.optimize import minimize

    def both(theta: np.ndarray) -> tuple[float, np.ndarray]:
        return float(_loss(theta[None], truth, depth)[0]), _gradient(theta[None], truth, depth)[0]

    return minimize(both, start, jac=True, method="L-BFGS-B").x


def _zeros_of_gradient(truth: np.ndarray, depth: int, thetas: np.ndarray) -> np.ndarray:
    """Levenberg-Marquardt on the gradient, with a damping of its own for every start."""
    damping, eye = np.full(len(thetas), 1e-2), np.eye(thetas.shape[1])
    g = _gradient(thetas, truth, depth)
    for _ in range(ITERATIONS):
        H = _hessian(thetas, truth, depth)
        moves = np.linalg.solve(H @ H + damping[:, None, None] * eye, -(H @ g[..., None]))[..., 0]
        new_g = _gradient(thetas + moves, truth, depth)
        better = np.linalg.norm(new_g, axis=1) < np.linalg.norm(g, axis=1)
        thetas, g = np.where(better[:, None], thetas + moves, thetas), np.where(better[:, None], new_g, g)
        damping = np.clip(np.where(better, damping / 5, damping * 4), 1e-18, 1e6)
    return thetas


def _imbalance(layers: np.ndarray) -> float:
    return max(float(np.abs(a @ a.T - b.T @ b).max()) for a, b in itertools.pairwise(layers))


def _formula1(A: np.ndarray, rank: int, truth: np.ndarray, depth: int) -> float:
    """How far ``U^T grad C(A) V S^((L - 2) / L)`` is from ``-2 lambda I``, relative to it: formula (1). Zero at rank 0."""
    if rank == 0:
        return 0.0
    G = np.zeros_like(A)
    G[ROWS, COLUMNS] = (A - truth)[ROWS, COLUMNS] / len(ROWS)
    U, s, Vt = np.linalg.svd(A)
    pulled = U[:, :rank].T @ G @ Vt[:rank].T * s[:rank] ** ((depth - 2) / depth)
    return float(np.abs(pulled / (2 * RIDGE) + np.eye(rank)).max())


def least_curvature(A: np.ndarray, rank: int, truth: np.ndarray, depth: int) -> float:
    """The least eigenvalue of the Hessian of C_lambda on matrices of this rank, in units of its singular values.

    By differences of C_lambda over A = X Y^T, without any layers: independent of the Hessian that it is compared with. (In
    directions that raise the rank C_lambda rises infinitely steeply if L > 2.) At rank 0 there is no direction: infinite.
    """
    if rank == 0:
        return float("inf")
    U, s, Vt = np.linalg.svd(A)
    X, Y = U[:, :rank] * s[:rank] ** 0.5, Vt[:rank].T * s[:rank] ** 0.5
    units = np.concatenate([np.tile(s[:rank] ** 0.5, (SIDE, 1)).ravel()] * 2)
    size, h = units.size, 1e-3

    def cost(moves: np.ndarray) -> np.ndarray:
        dX, dY = ((m * units[: size // 2]).reshape(-1, SIDE, rank) for m in np.split(moves, 2, axis=1))
        B = (X + dX) @ (Y + dY).transpose(0, 2, 1)
        values = np.linalg.svd(B, compute_uv=False)[:, :rank]
        errors = B[:, ROWS, COLUMNS] - truth[ROWS, COLUMNS]
        return np.sum(errors**2, axis=1) / (2 * len(ROWS)) + RIDGE * depth * np.sum(values ** (2 / depth), axis=1)

    first, second = (x.ravel() for x in np.meshgrid(np.arange(size), np.arange(size), indexing="ij"))
    e = h * np.eye(size)
    corners = cost(np.concatenate([a * e[first] + b * e[second] for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]))
    pp, pm, mp, mm = corners.reshape(4, size, size)
    return float(np.linalg.eigvalsh((pp - pm - mp + mm) / (4 * h * h))[0])


def nuclear_norm_optimum(truth: np.ndarray) -> float:
    """The least value of C(A) + 2 lambda ||A||_*, a convex problem, by proximal gradient steps.

    >>> bool(nuclear_norm_optimum(np.zeros((SIDE, SIDE))) == 0)
    True
    """
    A, N = np.zeros((SIDE, SIDE)), len(ROWS)
    for _ in range(3000):
        step = A.copy()
        step[ROWS, COLUMNS] = truth[ROWS, COLUMNS]  # A - N grad C
        U, s, Vt = np.linalg.svd(step)
        A = (U * np.maximum(s - 2 * RIDGE * N, 0)) @ Vt
    errors = A[ROWS, COLUMNS] - truth[ROWS, COLUMNS]
    return float(errors @ errors / (2 * N) + 2 * RIDGE * np.linalg.svd(A, compute_uv=False).sum())


# --- the figure --------------------------------------------------------------------------------------------------------------


def draw_larger(ds: xr.Dataset) -> Figure:
    panels = []
    for depth in DEPTHS:
        minimum = _minima(ds, depth)
        series: list[Any] = []
        for i, (word, at) in enumerate((("minimum", minimum), ("strict saddle", ~minimum))):
            series.append(Points(ds[f"rank_{depth}"].values[at], ds[f"loss_{depth}"].values[at], word, colour=i))
        if depth == 2:
            series += [Marker(float(x), "optimum of the nuclear norm, per problem", colour=6) for x in ds.convex.values]
        panels.append(
            Panel(
                title=f"Critical points at L = {depth}",
                xlabel="rank",
                ylabel="loss",
                series=series,
                yscale="log",
                xlim=(-0.5, SIDE + 0.5),
            )
        )
    return Figure(
        title="Depth 2 has only the convex minimum; depth 3 has minima of several ranks",
        panels=panels,
        note=(
            f"3 × 3 matrices of rank 1 and norm 3, six observed entries, λ = {RIDGE:g} in main-text units. "
            f"Found from many starts; a strict "
            "saddle has a negative eigenvalue of the Hessian over all layers."
        ),
    )


# --- the claims --------------------------------------------------------------------------------------------------------------


def _minima(ds: xr.Dataset, depth: int) -> np.ndarray:
    return ds[f"in_layers_{depth}"].values > -FLAT


def _no_bad_minima(ds: xr.Dataset) -> Outcome:
    at = _minima(ds, 2)
    problem, loss = ds.problem_2.values[at].astype(int), ds.loss_2.values[at]
    above = loss / ds.convex.values[np.clip(problem, 0, ds.sizes["problem"] - 1)] - 1
    return together(
        within(-1e-6, 1e-6, least=above.min(initial=np.inf), largest=above.max(initial=-np.inf)),
        within(0, 0, without_minimum=ds.sizes["problem"] - len(set(problem))),
        within(1, other_points=(~at).sum()),
    )


def _strict_saddles(ds: xr.Dataset) -> Outcome:
    least = ds.in_layers_3.values
    doubtful = (np.abs(least) <= FLAT) & (ds.in_matrices_3.values < -FLAT)
    return together(
        within(0, 0, without_negative_eigenvalue=doubtful.sum()),
        within(ds.sizes["problem"], strict_saddles=(least < -FLAT).sum()),
    )


def _several_minima(ds: xr.Dataset) -> Outcome:
    at = _minima(ds, 3)
    problem, rank = ds.problem_3.values[at], ds.rank_3.values[at]
    kinds = [len(set(rank[problem == k])) for k in range(ds.sizes["problem"])]
    return together(within(2, ranks_of_minima=min(kinds)), within(1, origin=(rank == 0).sum() / ds.sizes["problem"]))


def _equivalent(ds: xr.Dataset) -> Outcome:
    layers, matrices = ds.in_layers_3.values < -FLAT, ds.in_matrices_3.values < -1e-5
    return together(
        within(1, 1, agree=(layers == matrices).mean()),
        within(1, minima=(~layers).sum(), strict_saddles=layers.sum()),
    )


def _balanced(ds: xr.Dataset) -> Outcome:
    return within(0, 1e-8, **{f"imbalance_{d}": ds[f"imbalance_{d}"].max() for d in DEPTHS})


def _formula(ds: xr.Dataset) -> Outcome:
    return together(
        within(0, 1e-6, **{f"largest_{d}": ds[f"formula1_{d}"].max() for d in DEPTHS}),
        within(1, points=(ds.rank_3 > 0).sum()),
    )


LARGER = Experiment(
    name="landscape3x3",
    title="Critical points of 3 x 3 problems",
    source="Wang 2023, Theorem 3.1, Propositions A.1 to A.3, section 2.2",
    summary=(
        "The landscape beyond 2 x 2: critical points of random completion problems at depth 2 and 3, with their Hessians over "
        "all layers and, independently, over matrices of the same rank."
    ),
    sizes={
        "smoke": {"problems": 2, "tries": 30},
        "standard": {"problems": 4, "tries": 90},
        "full": {"problems": 24, "tries": 1000},
    },
    compute=larger_data,
    draw=draw_larger,
    claims=[
        Claim(
            slug="no-bad-minima-at-2",
            statement="At L = 2 there are only global minima and strict saddles (section 2.2).",
            criterion=(
                "every critical point without a negative eigenvalue has the loss of the convex nuclear-norm "
                "problem to 1e-6; one "
                "is found for every problem, and other points too"
            ),
            measure=_no_bad_minima,
        ),
        Claim(
            slug="strict-saddles",
            statement="At L = 3 all critical points but the local minima are strict saddles (Theorem 3.1, Proposition A.3).",
            criterion=(
                "every point from which C_lambda falls over matrices has a negative eigenvalue over layers; at least one such "
                "point per problem"
            ),
            measure=_strict_saddles,
        ),
        Claim(
            slug="several-ranks",
            statement="At L = 3 there are minima of several ranks, and the origin is one of them (section 2.2).",
            criterion="in every problem minima of at least two ranks, and one of rank 0",
            measure=_several_minima,
        ),
        Claim(
            slug="propA.2",
            statement=(
                "A critical point is a local minimum (a strict saddle) exactly if its matrix is one of C_lambda "
                "(Prop. A.2)."
            ),
            criterion=(
                "the signs of the least curvature over layers and over matrices agree at every point; both kinds "
                "are found"
            ),
            measure=_equivalent,
        ),
        Claim(
            slug="balanced",
            statement="Critical points are balanced (Proposition A.1).",
            criterion="imbalance at most 1e-8 at every point, at both depths",
            measure=_balanced,
        ),
        Claim(
            slug="formula1",
            statement="At a critical point U_L^T grad C(A) U_0 = -2 lambda S^(-(L - 2) / L) (formula 1).",
            criterion="largest relative deviation of an entry at most 1e-6, at both depths",
            measure=_formula,
        ),
    ],
    weight=2,
)
