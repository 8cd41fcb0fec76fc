"""Lemmas G.1 and G.2: angles of Gaussian vectors, and what the restricted isometry property says in the operator norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.figures.declarations import Bars, Figure, Line, Marker, Panel

LENGTHS = (3, 5, 10, 30, 100, 300)
DEVIATIONS = np.linspace(0.02, 1.5, 75)
SHAPE, K = (5, 6), 2
"""2 k + 1 = 5 is the largest rank of a 5 x 6 matrix, so the isometry constant of that order is a norm, known exactly."""
STARTS, STEPS = 40, 60


def lemmas_g_data(*, seed: int, progress: Any = None, pairs: int, designs: int, num_samples: list[int]) -> xr.Dataset:
    """Exact and sampled probabilities of angles, with their bound; the largest ||(I - A*A)(X)|| found on Gaussian designs."""
    rng = np.random.default_rng(seed)
    n, m = np.array(LENGTHS, dtype=float)[:, None], DEVIATIONS[None]
    exact = stats.beta.logsf(np.sin(m) ** 2, 0.5, (n - 1) / 2)
    bound = np.log(3 * np.pi / (4 * math.sqrt(2)) * np.sqrt(n - 2)) + (n - 2) * np.log(np.cos(m))
    sampled = np.array([_sampled(rng, d, pairs) for d in LENGTHS])
    ratios = [[_largest_ratio(rng, count) for _ in range(designs)] for count in num_samples]
    angles = (("length", "deviation"), ("length", "deviation"), ("length", "deviation"), ("num_samples", "design"))
    values = {"exact": np.exp(exact), "ratio": np.exp(exact - bound), "sampled": sampled, "isometry_ratio": ratios}
    return xr.Dataset(
        {name: (dims, x) for dims, (name, x) in zip(angles, values.items(), strict=True)},
        {"length": list(LENGTHS), "deviation": DEVIATIONS, "num_samples": num_samples},
        {"pairs": pairs},
    )


def _sampled(rng: np.random.Generator, length: int, pairs: int) -> np.ndarray:
    """The share of pairs of Gaussian vectors whose angle is further than each deviation from a right angle."""
    x, y = rng.standard_normal((2, pairs, length))
    cosine = np.sum(x * y, axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    away = np.abs(np.arccos(cosine) - np.pi / 2)
    return (away[:, None] > DEVIATIONS).mean(axis=0)


def _largest_ratio(rng: np.random.Generator, m: int) -> float:
    """The largest ||(I - A*A)(X)|| / (sqrt(2k) delta) over X of norm 1 and rank at most 2k, by alternating maximisation."""
    size = math.prod(SHAPE)
    A = rng.standard_normal((m, size)) / math.sqrt(m)
    E = np.eye(size) - A.T @ A
    delta = np.linalg.norm(E, 2)
    X = _flat_spectrum(rng.standard_normal((STARTS, *SHAPE)))
    for _ in range(STEPS):
        u, _, vt = np.linalg.svd(_applied(E, X))
        X = _flat_spectrum(_applied(E, u[:, :, :1] @ vt[:, :1]))
    largest = np.linalg.norm(_applied(E, X), 2, axis=(1, 2)).max()
    return float(largest / (math.sqrt(2 * K) * delta))


def _applied(E: np.ndarray, X: np.ndarray) -> np.ndarray:
    return (X.reshape(len(X), -1) @ E).reshape(X.shape)


def _flat_spectrum(Y: np.ndarray) -> np.ndarray:
    """The X of operator norm 1 and rank at most 2k with the largest product with Y."""
    u, _, vt = np.linalg.svd(Y, full_matrices=False)
    return u[:, :, : 2 * K] @ vt[:, : 2 * K]


def draw_lemmas_g(ds: xr.Dataset) -> Figure:
    lines: list[Any] = []
    for i, n in enumerate((3, 30, 300)):
        one = ds.sel(length=n)
        lines.append(Line(DEVIATIONS, one.exact, f"n = {n}", colour=i))
        lines.append(Line(DEVIATIONS, one.exact / one.ratio, f"bound, n = {n}", role="bound", colour=i))
    ratio = ds.isometry_ratio
    names = [f"m = {int(m)}" for m in ds.num_samples.values]
    return Figure(
        title="Gaussian vectors are nearly orthogonal, and Gaussian designs nearly isometric",
        panels=[
            Panel(
                title="Lemma G.1: an angle further than m from a right angle",
                xlabel="m",
                ylabel="probability",
                series=[*lines, Marker(1.0, "1: no statement above", role="theory")],
                yscale="log",
                ylim=(1e-8, 60),
            ),
            Panel(
                title="Lemma G.2: 5 x 6 matrices, k = 2",
                xlabel="",
                ylabel="largest left side over right side",
                series=[
                    Bars(names, ratio.mean("design"), "found", low=ratio.min("design"), high=ratio.max("design")),
                    Marker(1.0, "the bound", role="bound"),
                ],
                ylim=(0, 1.1),
            ),
        ],
        note=(
            "Left: exact probabilities and the bound of (G.18). Right: means over "
            f"{ds.sizes['design']} designs; whiskers: least and largest."
        ),
    )


def _angle_law(ds: xr.Dataset) -> Outcome:
    error = np.sqrt(ds.exact * (1 - ds.exact) / ds.attrs["pairs"])
    # Where fewer than ten pairs are expected the normal approximation is poor.
    enough = np.minimum(ds.exact, 1 - ds.exact) * ds.attrs["pairs"] >= 10
    return within(0, 5, largest_standard_errors=(abs(ds.sampled - ds.exact) / error).where(enough).max())


def _angle_bound(ds: xr.Dataset) -> Outcome:
    tight = ds.ratio.where(ds.exact / ds.ratio < 1)
    return within(0, 1, largest_ratio=ds.ratio.max(), largest_where_bound_below_1=tight.max())


def _isometry(ds: xr.Dataset) -> Outcome:
    # A maximum that is found by search is a lower bound; 1/4 shows that the search found something.
    return within(0.25, 1 + 1e-9, least=ds.isometry_ratio.min(), largest=ds.isometry_ratio.max())


LEMMAS_G = Experiment(
    name="lemmasG",
    title="Angles and isometry",
    source="Xiong 2024, Lemmas G.1 and G.2 (Stoeger and Soltanolkotabi 2021)",
    summary=(
        "The squared cosine of two Gaussian vectors has a Beta law, so Lemma G.1 is judged by exact probabilities. Lemma G.2 "
        "is judged by a search on designs whose isometry constant is known exactly."
    ),
    sizes={
        "smoke": {"pairs": 4000, "designs": 2, "num_samples": [60, 600]},
        "standard": {"pairs": 40_000, "designs": 6, "num_samples": [60, 200, 1000]},
        "full": {"pairs": 400_000, "designs": 40, "num_samples": [60, 200, 1000, 5000]},
    },
    compute=lemmas_g_data,
    draw=draw_lemmas_g,
    claims=[
        Claim(
            slug="G.1-law",
            statement="The squared cosine of the angle of two Gaussian vectors is Beta(1/2, (n - 1)/2), the law behind (G.13).",
            criterion="sampled shares within 5 standard errors of the exact ones, where 10 pairs or more are expected",
            measure=_angle_law,
        ),
        Claim(
            slug="G.1-bound",
            statement=(
                "Lemma G.1: P(|theta - pi/2| > m) <= (3 pi / (4 sqrt(2))) sqrt(n - 2) sin(pi/2 - m)^(n - 2), with the constant "
                "of (G.18)."
            ),
            criterion="exact probability over the bound at most 1 for n from 3 to 300 and m from 0.02 to 1.5",
            measure=_angle_bound,
        ),
        Claim(
            slug="G.2",
            statement="Lemma G.2: ||(I - A*A)(X)|| <= sqrt(2k) delta ||X|| for X of rank at most 2k, delta of order 2k + 1.",
            criterion="the largest left side over the right side, in every design, at most 1 (and at least 1/4)",
            measure=_isometry,
        ),
    ],
)
