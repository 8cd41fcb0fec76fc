"""Lemmas 1 to 4 of Xu 2024: what the restricted isometry property says of products of matrices of low rank."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim
from gyrostat.models.symmetric_coordinates import smat, svec
from gyrostat.papers.xu2024.settings import on_grid

RANK, DIMENSION = 3, 6
SIZE = DIMENSION * (DIMENSION + 1) // 2
STARTS, STEPS = 40, 60
SCALING = {"dimension": [16, 32], "samples_per_row": [200, 800]}
"""d and m/d of the measurements whose isometry constant is compared, for matrices of rank 4 (r1 + r2) = 8."""

# In the coordinates of svec, the Frobenius product of symmetric d x d matrices is the dot product. The error operator
# E o (M) = (1/m) sum <X_i, M> X_i - M is then a symmetric matrix, and delta for matrices of any rank is its norm. With
# 2 RANK = DIMENSION, that is the isometry constant of rank 2 r, exactly.


def truncated(coordinates, rank):
    """The symmetric matrices of at most this rank and Frobenius norm 1 with the largest products with given ones."""
    values, vectors = np.linalg.eigh(smat(coordinates))
    least = np.sort(np.abs(values), axis=-1)[:, -rank, None]
    values = np.where(np.abs(values) >= least, values, 0)
    return svec((vectors * values[:, None]) @ vectors.swapaxes(1, 2)) / np.linalg.norm(values, axis=-1)[:, None]


def largest_product(E, rng, rank_x, rank_y):
    """The largest <E o (X), Y> found by alternating between the best X and the best Y, from many random starts."""
    y = truncated(rng.standard_normal((STARTS, len(E))), rank_y)
    for _ in range(STEPS):
        x = truncated(y @ E, rank_x)
        y = truncated(x @ E, rank_y)
    return np.einsum("si,ij,sj->s", x, E, y).max()


def printed_reading():
    """Two symmetric measurements of 2 x 2 matrices: their isometry constant of rank 1, and <E o (e1 e1^T), e2 e2^T>.

    They see ``||M||_F^2 - 2 det M``, and the determinant vanishes on matrices of rank one, symmetric or not.
    """
    X = 2**0.5 * np.array([[[1.0, 0.0], [0.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    angles = np.linspace(0, 2 * np.pi, 201)
    units = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    seen = np.einsum("ui,kij,vj->kuv", units, X, units)
    return np.abs(np.mean(seen**2, axis=0) - 1).max(), np.mean(X[:, 0, 0] * X[:, 1, 1])


class Isometry(Experiment):
    """Products under the restricted isometry property

    The largest left-hand side of each lemma is searched on Gaussian designs whose isometry constant is known exactly (2r = d,
    so that no rank restricts it). The matrices are symmetric, as in section A.1: over all matrices of rank 2, which is how
    Definition 1 is printed, no symmetric measurements have a constant below 1, since they do not see antisymmetric ones.
    """

    name, source, weight = "lemmas1-4", "Xu 2024, Lemmas 1 to 4 (Candes; Li and others)", 5
    sizes = {"designs": (2, 6, 40), "num_samples": ([60, 600], [40, 200, 1000], [40, 100, 200, 1000, 5000])}

    def compute(self, run, designs, num_samples):
        def ratios(m):
            """Left over right sides of the four lemmas on one Gaussian design."""
            x = run.rng.standard_normal((m, SIZE))
            E = x.T @ x / m - np.eye(SIZE)
            delta = np.abs(np.linalg.eigvalsh(E)).max()
            # Lemma 2 is about ||E o (X)||, as Z = I is the worst; in Lemmas 3 and 4 matrices of rank one are the corners of
            # the nuclear ball.
            ranks = (RANK, RANK), (RANK, 1), (1, RANK), (1, 1)
            return [largest_product(E, run.rng, *pair) / delta for pair in ranks]

        def scaling(d, per_row):
            search = gs.diagnostics.isometry_constant(d, per_row * d, rank=8, draws=6, steps=30, seed=run.seed)
            return [search.value / (8 * d / (per_row * d)) ** 0.5]

        delta, product = printed_reading()
        ratio = [[ratios(m) for _ in range(designs)] for m in num_samples]
        ds = xr.Dataset(
            {"ratio": (("num_samples", "design", "lemma"), ratio), "printed_delta": delta, "printed_product": product},
            {"num_samples": num_samples, "lemma": [f"Lemma {i}" for i in (1, 2, 3, 4)]},
        )
        return ds.merge(on_grid(scaling, SCALING, ("delta_over_root",)))

    # A maximum that is found by search is a lower bound; 1/4 shows that the search found something.
    @claim(
        "the largest left side over the right side, in every design, at most 1 (and at least 1/4)",
        each={
            "lemma-1": (
                "Lemma 1",
                "Lemma 1; Definition 1",
                "|<E o (X), Y>| <= delta ||X||_F ||Y||_F for X, Y of rank at most r",
            ),
            "lemma-2": ("Lemma 2", "Lemma 2", "||E o (X) Z|| <= delta ||X||_F ||Z|| for X of rank at most r"),
            "lemma-3": ("Lemma 3", "Lemma 3", "|<E o (X), Y>| <= delta ||X||_* ||Y||_F for Y of rank at most r"),
            "lemma-4": ("Lemma 4", "Lemma 4", "||E o (X) Z|| <= delta ||X||_* ||Z||"),
        },
        items="{items}",
        least=(0.25, 1 + 1e-9),
        largest=(0.25, 1 + 1e-9),
    )
    def bounded_products(self, ds, lemma, items, inequality):
        """{lemma}: {inequality}, with delta of rank 2r."""
        ratio = ds.ratio.sel(lemma=lemma)
        return ratio.min(), ratio.max()

    @claim(
        "two measurements that see ||M||^2 - 2 det M (2 x 2, r = 1): |<E o (X), Y>| - delta at most 0",
        items="Lemma 1",
        fails="false as printed",
        names={"excess": "product minus isometry constant"},
        isometry_constant=None,
        product=None,
        excess=(-np.inf, 1e-9),
    )
    def lemma_1_as_printed(self, ds):
        """Lemma 1 with delta of rank r, as printed.

        The measurements sqrt(2) diag(1, -1) and sqrt(2) (e1 e2^T + e2 e1^T) are symmetric. The determinant vanishes on all
        matrices of rank one, symmetric or not, so delta is 0, and <E o (e1 e1^T), e2 e2^T> is -1. The lemma needs delta of
        rank 2r. Assumption 3 asks for rank 4 (r1 + r2), so the proofs are not affected.
        """
        product = abs(ds.printed_product)
        return ds.printed_delta, product, product - ds.printed_delta

    @claim(
        "delta of rank 8 over sqrt(8 d/m), for d = 16 and 32, m = 200 d and 800 d: every one in [1/3, 3], largest over "
        "smallest at most 1.25 (if delta grew as d, or did not grow with d: 1.41)",
        items="Assumption 3; (10)",
        least=(1 / 3, 3),
        largest=(1 / 3, 3),
        largest_over_least=(1, 1.25),
    )
    def isometry_scaling(self, ds):
        """Symmetric Gaussian measurements have an isometry constant delta of order sqrt(d/m) (Candes and Plan 2011, as used
        after Assumption 3 and before (10))."""
        least, largest = ds.delta_over_root.min(), ds.delta_over_root.max()
        return least, largest, largest / least
