"""Facts C.1 to C.4 and Lemmas C.1 and C.2: singular values of products, and derivatives of spectral functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.figures.declarations import Bars, Dots, Figure, Marker, Panel

SIZE, POWER = 4, 1.5
FACTS = ("Fact C.1", "Fact C.2", "Fact C.3", "Fact C.4")
LEMMAS = ("Lemma C.1", "Lemma C.2")


def facts_data(*, seed: int, progress: Any = None, samples: int) -> xr.Dataset:
    """The left side of each fact over its right side on random 4 x 4 matrices; derivatives against differences."""
    rng = np.random.default_rng(seed)
    # Half of the matrices have singular values over many decades, where inequalities come near to equality.
    shape = (samples, SIZE, SIZE)
    A, B = (
        rng.standard_normal(shape) @ (10.0 ** rng.uniform(-2, 0, (samples, 1, SIZE)) * np.eye(SIZE)) for _ in range(2)
    )
    B[: samples // 2] = A[: samples // 2].transpose(0, 2, 1)
    ratios = np.stack([_norms(A, B), _traces(A, B), _products(A, B), _eigenvalues(A, B)])
    derivatives = np.array([_derivatives(rng) for _ in range(max(samples // 20, 4))])
    return xr.Dataset(
        {"ratio": (("fact", "sample"), ratios), "difference": (("point", "lemma"), derivatives)},
        {"fact": list(FACTS), "lemma": list(LEMMAS)},
    )


def _singular_values(A: np.ndarray) -> np.ndarray:
    return np.linalg.svd(A, compute_uv=False)


def _norms(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """||A B|| over ||A|| ||B||, in the Frobenius and in the 2-norm."""
    both = [
        np.linalg.norm(A @ B, p, (1, 2)) / (np.linalg.norm(A, p, (1, 2)) * np.linalg.norm(B, p, (1, 2)))
        for p in ("fro", 2)
    ]
    return np.max(both, axis=0)


def _traces(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    sizes = np.linalg.norm(A, axis=(1, 2)) * np.linalg.norm(B, axis=(1, 2))
    return np.abs(np.trace(A @ B, axis1=1, axis2=2)) / sizes


def _products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    a, b, product = map(_singular_values, (A, B, A @ B))
    return np.max([product / (a[:, :1] * b), product / (a * b[:, :1])], axis=(0, 2))


def _eigenvalues(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Weyl: sums of powers of the largest eigenvalues of A B against those of its singular values, for p = 1/2, 1 and 2."""
    values = -np.sort(-np.abs(np.linalg.eigvals(A @ B)), axis=1)
    sums = [np.cumsum(values**p, axis=1) / np.cumsum(_singular_values(A @ B) ** p, axis=1) for p in (0.5, 1, 2)]
    return np.max(sums, axis=(0, 2))


def _derivatives(rng: np.random.Generator) -> list[float]:
    """How far the formulas for f = sum of lambda^1.5 are from differences, relative to their size."""
    Q = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0]
    values = np.sort(rng.uniform(0.5, 3, SIZE))[::-1]
    M, H = (Q * values) @ Q.T, rng.standard_normal((SIZE, SIZE))
    H, h = (H + H.T) / 2, 1e-3

    def function(t: float) -> float:
        return float(np.sum(np.linalg.eigvalsh(M + t * H) ** POWER))

    first, second = POWER * values ** (POWER - 1), POWER * (POWER - 1) * values ** (POWER - 2)
    turned = Q.T @ H @ Q
    gaps = values[:, None] - values + np.eye(SIZE)
    weights = (first[:, None] - first) / gaps * (1 - np.eye(SIZE))
    gradient = np.sum(((Q * first) @ Q.T) * H)
    curvature = np.sum(second * np.diag(turned) ** 2) + np.sum(weights * turned**2)
    slope = (function(h) - function(-h)) / (2 * h)
    bend = (function(h) - 2 * function(0) + function(-h)) / h**2
    return [abs(gradient / slope - 1), abs(curvature / bend - 1)]


def draw_facts(ds: xr.Dataset) -> Figure:
    largest, median = ds.ratio.max("sample").values, ds.ratio.median("sample").values
    bars: list[Any] = [
        Bars(FACTS, largest, "largest", colour=0),
        Bars(FACTS, median, "median", colour=1),
        Marker(1.0, "the bound", role="bound"),
    ]
    found = ds.difference.max("point").values
    differences = [Dots(LEMMAS, found, "largest relative difference", low=found, high=found, colour=2)]
    return Figure(
        title="The facts of linear algebra that the proofs use hold, and are attained",
        panels=[
            Panel(title="Facts C.1 to C.4", xlabel="", ylabel="left side over right side", series=bars, ylim=(0, 1.15)),
            Panel(
                title="Derivatives of Σ λᵢ√λᵢ",
                xlabel="formula against differences",
                ylabel="",
                series=[*differences, Marker(1e-3, "threshold", axis="x", role="bound")],
                xscale="log",
                xlim=(1e-9, 1e-2),
            ),
        ],
        note=(
            f"{ds.sizes['sample']} pairs of random 4 × 4 matrices, B = Aᵀ in half of them; derivatives at "
            f"{ds.sizes['point']} matrices."
        ),
    )


def _fact(name: str) -> Any:
    def measure(ds: xr.Dataset) -> Outcome:
        # Equality is attained for B = A^T up to rounding; .5 shows that the search came near.
        return within(0.5, 1 + 1e-9, largest=ds.ratio.sel(fact=name).max())

    return measure


def _lemma(name: str) -> Any:
    def measure(ds: xr.Dataset) -> Outcome:
        # Differences with h = 1e-3 are exact to h^2 times higher derivatives.
        return together(
            within(0, 1e-3, largest=ds.difference.sel(lemma=name).max()), within(1, points=ds.sizes["point"])
        )

    return measure


STATEMENTS = {
    "Fact C.1": "||A B|| <= ||A|| ||B|| in the Frobenius norm and in the 2-norm",
    "Fact C.2": "|Tr(A B)| <= ||A||_F ||B||_F",
    "Fact C.3": "sigma_i(A B) <= sigma_1(A) sigma_i(B) and <= sigma_i(A) sigma_1(B)",
    "Fact C.4": "sums of powers of the k largest eigenvalues are at most those of the singular values",
    "Lemma C.1": "the gradient of f of the eigenvalues is U Diag(grad f) U^T",
    "Lemma C.2": "the second derivative of f of the eigenvalues is that of f on the diagonal plus <A(lambda), H o H>",
}

FACTS_OF_ALGEBRA = Experiment(
    name="appendixC",
    title="The facts of linear algebra behind the proofs",
    source="Wang 2023, appendix C (Lewis and Sendov for Lemmas C.1 and C.2)",
    summary=(
        "Each inequality is tested on random matrices, some of which attain it, and each derivative is compared "
        "with finite differences."
    ),
    sizes={"smoke": {"samples": 200}, "standard": {"samples": 2000}, "full": {"samples": 20_000}},
    compute=facts_data,
    draw=draw_facts,
    claims=[
        *(
            Claim(
                slug=name.replace(" ", "").lower(),
                statement=f"{name}: {STATEMENTS[name]}.",
                criterion="largest left side over the right side at most 1 (and at least .5)",
                measure=_fact(name),
            )
            for name in FACTS
        ),
        *(
            Claim(
                slug=name.replace(" ", "").lower(),
                statement=f"{name}: {STATEMENTS[name]}.",
                criterion="f = sum of lambda^1.5: largest relative difference from a difference quotient at most 1e-3",
                measure=_lemma(name),
            )
            for name in LEMMAS
        ),
    ],
)
