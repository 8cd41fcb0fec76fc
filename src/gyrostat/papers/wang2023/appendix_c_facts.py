"""Facts C.1 to C.4 and Lemmas C.1 and C.2: singular values of products, and derivatives of spectral functions."""

import numpy as np

from gyrostat.experiments import Inequalities, claim, inequality

SIZE, POWER = 4, 1.5
# Equality is attained for B = A^T up to rounding; .5 shows that the search came near.
ATTAINED = "largest left side over the right side at most 1 (and at least .5)"


def singular_values(A):
    return np.linalg.svd(A, compute_uv=False)


def derivatives(rng):
    """How far the formulas for f = sum of lambda^1.5 are from differences, relative to their size."""
    U = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0]
    x = np.sort(rng.uniform(0.5, 3, SIZE))[::-1]
    M, H = (U * x) @ U.T, rng.standard_normal((SIZE, SIZE))
    H, h = (H + H.T) / 2, 1e-3
    below, here, above = (np.sum(np.linalg.eigvalsh(M + t * H) ** POWER) for t in (-h, 0, h))
    first, second = POWER * x ** (POWER - 1), POWER * (POWER - 1) * x ** (POWER - 2)
    turned = U.T @ H @ U
    weights = (first[:, None] - first) / (x[:, None] - x + np.eye(SIZE)) * (1 - np.eye(SIZE))
    gradient = np.sum(((U * first) @ U.T) * H)
    curvature = np.sum(second * np.diag(turned) ** 2) + np.sum(weights * turned**2)
    slope, bend = (above - below) / (2 * h), (above - 2 * here + below) / h**2
    return abs(gradient / slope - 1), abs(curvature / bend - 1)


class AppendixC(Inequalities):
    """The facts of linear algebra behind the proofs

    Each inequality is tested on random matrices, some of which attain it, and each derivative is compared with finite
    differences.
    """

    source = "Wang 2023, appendix C (Lewis and Sendov for Lemmas C.1 and C.2)"
    sizes = {"samples": (200, 2000, 20_000)}

    def instances(self, rng, samples):
        # Singular values over many decades, where inequalities come near to equality; half of the pairs have B = A^T.
        shape = (samples, SIZE, SIZE)
        A, B = (
            rng.standard_normal(shape) @ (10.0 ** rng.uniform(-2, 0, (samples, 1, SIZE)) * np.eye(SIZE)) for _ in "AB"
        )
        B[: samples // 2] = A[: samples // 2].transpose(0, 2, 1)
        return zip(A, B)

    def compute(self, run, samples):
        ds = super().compute(run, samples)
        differences = [derivatives(run.rng) for _ in range(max(samples // 20, 4))]
        return ds.assign(difference=(("point", "lemma"), differences), lemma=["Lemma C.1", "Lemma C.2"])

    @inequality(ATTAINED, slug="factc.1", items="Fact C.1", tight=0.5)
    def norms(self, A, B):
        """Fact C.1: ||A B|| <= ||A|| ||B|| in the Frobenius norm and in the 2-norm."""
        product, a, b = (np.array([np.linalg.norm(M, p) for p in ("fro", 2)]) for M in (A @ B, A, B))
        return product, a * b

    @inequality(ATTAINED, slug="factc.2", items="Fact C.2", tight=0.5)
    def traces(self, A, B):
        """Fact C.2: |Tr(A B)| <= ||A||_F ||B||_F."""
        return abs(np.trace(A @ B)), np.linalg.norm(A) * np.linalg.norm(B)

    @inequality(ATTAINED, slug="factc.3", items="Fact C.3", tight=0.5)
    def products(self, A, B):
        """Fact C.3: sigma_i(A B) <= sigma_1(A) sigma_i(B) and <= sigma_i(A) sigma_1(B)."""
        a, b = singular_values(A), singular_values(B)
        return singular_values(A @ B), np.minimum(a[0] * b, a * b[0])

    @inequality(ATTAINED, slug="factc.4", items="Fact C.4", tight=0.5)
    def eigenvalues(self, A, B):
        """Fact C.4: sums of powers of the k largest eigenvalues are at most those of the singular values."""
        powers = np.array([[0.5], [1], [2]])
        eigenvalues = np.sort(np.abs(np.linalg.eigvals(A @ B)))[::-1]
        return np.cumsum(eigenvalues**powers, axis=1), np.cumsum(singular_values(A @ B) ** powers, axis=1)

    # Differences with h = 1e-3 are exact to h^2 times higher derivatives.
    @claim(
        "f = sum of lambda^1.5: largest relative difference from a difference quotient at most 1e-3",
        items="{name}",
        each={
            "lemmac.1": ("Lemma C.1", "the gradient of f of the eigenvalues is U Diag(grad f) U^T"),
            "lemmac.2": (
                "Lemma C.2",
                "the second derivative of f of the eigenvalues is that of f on the diagonal plus <A(lambda), H o H>",
            ),
        },
        largest=(0, 1e-3),
        points=(1, np.inf),
    )
    def derivative(self, ds, name, formula):
        """{name}: {formula}."""
        return ds.difference.sel(lemma=name).max(), ds.sizes["point"]
