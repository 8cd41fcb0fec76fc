"""Theorem 3.1 and Proposition A.2 on 3 x 3 problems, and why depth 2 has no bad minima (section 2.2)."""

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, claim
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Marker, Points
from gyrostat.theory.wang2023 import critical_points

SIDE, DEPTHS, RIDGE, SIZE = 3, (2, 3), 0.01, 3.0
OBSERVED = [(k, (k + o) % SIDE) for k in range(SIDE) for o in (0, 1)]
"""Two observed entries in every row and column, in a ring."""
ROWS, COLUMNS = map(list, zip(*OBSERVED))
FLAT = 1e-7
"""Curvatures below this in size count as zero."""


def formula1_gap(A, rank, truth, depth):
    """How far ``U^T grad C(A) V S^((L - 2) / L)`` is from ``-2 lambda I``, relative to it: formula (1). Zero at rank 0."""
    if rank == 0:
        return 0.0
    G = np.zeros_like(A)
    G[ROWS, COLUMNS] = (A - truth)[ROWS, COLUMNS] / len(ROWS)
    U, s, Vt = np.linalg.svd(A)
    scaled = U[:, :rank].T @ G @ Vt[:rank].T * s[:rank] ** ((depth - 2) / depth)
    return np.abs(scaled / (2 * RIDGE) + np.eye(rank)).max()


def least_curvature(A, rank, truth, depth):
    """The least eigenvalue of the Hessian of C_lambda on matrices of this rank, in units of its singular values.

    By differences of C_lambda over A = X Y^T, without any layers: independent of the Hessian that it is compared with. (In
    directions that raise the rank C_lambda rises infinitely steeply if L > 2.) At rank 0 there is no direction: infinite.
    """
    if rank == 0:
        return np.inf
    U, s, Vt = np.linalg.svd(A)
    X, Y = U[:, :rank] * s[:rank] ** 0.5, Vt[:rank].T * s[:rank] ** 0.5
    units = np.concatenate([np.tile(s[:rank] ** 0.5, (SIDE, 1)).ravel()] * 2)
    size, h = units.size, 1e-3

    def cost(moves):
        dX, dY = ((m * units[: size // 2]).reshape(-1, SIDE, rank) for m in np.split(moves, 2, axis=1))
        B = (X + dX) @ (Y + dY).transpose(0, 2, 1)
        values = np.linalg.svd(B, compute_uv=False)[:, :rank]
        errors = (B - truth)[:, ROWS, COLUMNS]
        return np.sum(errors**2, axis=1) / (2 * len(ROWS)) + RIDGE * depth * np.sum(values ** (2 / depth), axis=1)

    first, second = (h * np.eye(size)[index.ravel()] for index in np.indices((size, size)))
    corners = [cost(a * first + b * second).reshape(size, size) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
    return np.linalg.eigvalsh((corners[0] - corners[1] - corners[2] + corners[3]) / (4 * h * h))[0]


def nuclear_norm_optimum(truth):
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
    errors = (A - truth)[ROWS, COLUMNS]
    return errors @ errors / (2 * N) + 2 * RIDGE * np.linalg.svd(A, compute_uv=False).sum()


class LargerLandscape(Experiment):
    """Critical points of 3 x 3 problems

    The landscape beyond 2 x 2: critical points of random completion problems at depth 2 and 3, with their Hessians over all
    layers and, independently, over matrices of the same rank.
    """

    name, weight = "landscape3x3", 15
    source = "Wang 2023, Theorem 3.1, Propositions A.1 to A.3, section 2.2"
    sizes = {"problems": (2, 4, 24), "tries": (30, 90, 1000)}

    def compute(self, run, problems, tries):
        """Random 3 x 3 matrices of rank 1 with six observed entries: critical points at L = 2 and L = 3."""
        truths, rows = np.exp(run.rng.uniform(-1, 1, (problems, 2, SIDE))), []
        truths = truths[:, 0, :, None] * truths[:, 1, None, :]
        truths *= SIZE / np.linalg.norm(truths, axis=(1, 2), keepdims=True)
        for k, truth in enumerate(run.over(truths)):
            for depth in DEPTHS:
                for p in critical_points(truth, OBSERVED, depth, RIDGE, tries=tries, seed=run.seed + k):
                    curvature = least_curvature(p.matrix, p.rank, truth, depth)
                    formula1 = formula1_gap(p.matrix, p.rank, truth, depth)
                    rows.append([depth, k, p.rank, p.loss, p.signature[0], curvature, p.imbalance, formula1])
        names = ("depth", "problem", "rank", "loss", "negative", "curvature", "imbalance", "formula1")
        columns = {name: ("point", np.array(x, dtype=float)) for name, x in zip(names, zip(*rows))}
        convex = [nuclear_norm_optimum(truth) for truth in truths]
        return xr.Dataset(columns | {"convex": ("each_problem", convex)})

    def at(self, ds, depth):
        """The points at a depth, and which of them are minima."""
        points = ds.isel(point=np.flatnonzero(ds.depth == depth))
        return points, points.negative == 0

    def draw(self, ds):
        panels = []
        for depth in DEPTHS:
            points, minimum = self.at(ds, depth)
            series = [
                Points(points["rank"].values[at], points.loss.values[at], word, colour=i)
                for i, (word, at) in enumerate((("minimum", minimum), ("strict saddle", ~minimum)))
            ]
            if depth == 2:
                optimum = "optimum of the nuclear norm, per problem"
                series += [Marker(float(x), optimum, colour=6) for x in ds.convex.values]
            title, xlim = f"Critical points at L = {depth}", (-0.5, SIDE + 0.5)
            panels.append(panel(title, "rank", "loss", *series, yscale="log", xlim=xlim))
        return figure(
            *panels,
            title="Depth 2 has only the convex minimum; depth 3 has minima of several ranks",
            note=f"3 × 3 matrices of rank 1 and norm 3, six observed entries, λ = {RIDGE:g} in main-text units. "
            "Found from many starts; a strict saddle has a negative eigenvalue of the Hessian over all layers.",
        )

    @claim(
        "every critical point without a negative eigenvalue has the loss of the convex nuclear-norm problem to 1e-6; one is "
        "found for every problem, and other points too",
        items="Section 2.2, representation cost",
        least=(-1e-6, 1e-6),
        largest=(-1e-6, 1e-6),
        without_minimum=(0, 0),
        other_points=(1, np.inf),
    )
    def no_bad_minima_at_2(self, ds):
        """At L = 2 there are only global minima and strict saddles (section 2.2)."""
        points, minimum = self.at(ds, 2)
        above = (points.loss / ds.convex.values[points.problem.astype(int) % ds.sizes["each_problem"]] - 1)[minimum]
        solved = len(set(points.problem.values[minimum]))
        return above.min(), above.max(), ds.sizes["each_problem"] - solved, (~minimum).sum()

    @claim(
        "every point from which C_lambda falls over matrices has a negative eigenvalue over layers; at least one such point "
        "per problem",
        items="Theorem 3.1; Proposition A.3",
        without_negative_eigenvalue=(0, 0),
        strict_saddles_per_problem=(1, np.inf),
    )
    def strict_saddles(self, ds):
        """At L = 3 all critical points but the local minima are strict saddles (Theorem 3.1, Proposition A.3)."""
        points, minimum = self.at(ds, 3)
        return (minimum & (points.curvature < -FLAT)).sum(), (~minimum).sum() / ds.sizes["each_problem"]

    @claim(
        "in every problem minima of at least two ranks, and one of rank 0",
        items="Section 2.2, representation cost",
        ranks_of_minima=(2, np.inf),
        origin=(1, np.inf),
    )
    def several_ranks(self, ds):
        """At L = 3 there are minima of several ranks, and the origin is one of them (section 2.2)."""
        points, minimum = self.at(ds, 3)
        ranks = points["rank"][minimum].groupby(points.problem[minimum])
        return min(len(np.unique(x)) for _, x in ranks), (points["rank"][minimum] == 0).sum() / ds.sizes["each_problem"]

    @claim(
        "the signs of the least curvature over layers and over matrices agree at every point; both kinds are found",
        slug="propA.2",
        items="Theorem 3.1; Proposition A.2",
        agree=(1, 1),
        minima=(1, np.inf),
        strict_saddles=(1, np.inf),
    )
    def proposition_A2(self, ds):
        """A critical point is a local minimum (a strict saddle) exactly if its matrix is one of C_lambda (Prop. A.2)."""
        points, minimum = self.at(ds, 3)
        return ((points.curvature < -1e-5) == ~minimum).mean(), minimum.sum(), (~minimum).sum()

    @claim("imbalance at most 1e-8 at every point, at both depths", items="Proposition A.1", imbalance=(0, 1e-8))
    def balanced(self, ds):
        """Critical points are balanced (Proposition A.1)."""
        return {f"imbalance_{depth}": self.at(ds, depth)[0].imbalance.max() for depth in DEPTHS}

    @claim(
        "largest relative deviation of an entry at most 1e-6, at both depths",
        items="Formula (1)",
        largest=(0, 1e-6),
        points=(1, np.inf),
    )
    def formula1(self, ds):
        """At a critical point U_L^T grad C(A) U_0 = -2 lambda S^(-(L - 2) / L) (formula 1)."""
        largest = {f"largest_{depth}": self.at(ds, depth)[0].formula1.max() for depth in DEPTHS}
        return largest, (self.at(ds, 3)[0]["rank"] > 0).sum()
