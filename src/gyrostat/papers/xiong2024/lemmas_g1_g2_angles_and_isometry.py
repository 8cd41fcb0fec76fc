"""Lemmas G.1 and G.2: angles of Gaussian vectors, and what the restricted isometry property says in the operator norm."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import stats

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, within
from gyrostat.figures.declarations import Bars, Figure, Line, Marker, Panel
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Demand, Scene
from gyrostat.models.spaces import RectangularMatrices

LENGTHS = (3, 5, 10, 30, 100, 300)
DEVIATIONS = np.linspace(0.02, 1.5, 75)
SHAPE, K = (5, 6), 2
"""2 k + 1 = 5 is the largest rank of a 5 x 6 matrix, so the isometry constant of that order is a norm, known exactly."""
STARTS, STEPS = 40, 60
SIDE, SAMPLES, CLIMBS = 4, 200, 60
"""Of full order 4, the isometry constant of 4 x 4 matrices is the norm of (1/m) sum vec(A_i) vec(A_i)^T - I."""
OPERATORS = ("rows", "gram")


def lemmas_g_data(
    *, seed: int, progress: Any = None, pairs: int, designs: int, num_samples: list[int], constants: int
) -> xr.Dataset:
    """Exact and sampled probabilities of angles, with their bound; the largest ||(I - A*A)(X)|| found on Gaussian designs."""
    rng = np.random.default_rng(seed)
    n, m = np.array(LENGTHS, dtype=float)[:, None], DEVIATIONS[None]
    exact = stats.beta.logsf(np.sin(m) ** 2, 0.5, (n - 1) / 2)
    bound = np.log(3 * np.pi / (4 * math.sqrt(2)) * np.sqrt(n - 2)) + (n - 2) * np.log(np.cos(m))
    sampled = np.array([_sampled(rng, d, pairs) for d in LENGTHS])
    ratios = [[_largest_ratio(rng, count) for _ in range(designs)] for count in num_samples]
    searched = gs.isometry_constant(SIDE, SAMPLES, SIDE, symmetric=False, draws=constants, steps=CLIMBS, seed=seed)
    angles = ("length", "deviation")
    return xr.Dataset(
        {
            "exact": (angles, np.exp(exact)),
            "ratio": (angles, np.exp(exact - bound)),
            "sampled": (angles, sampled),
            "isometry_ratio": (("num_samples", "design"), ratios),
            "searched_constant": ("searched", searched.draws),
            "direct_constant": ("direct", [_constant(rng) for _ in range(20 * constants)]),
            "reading": ("operator", [_reading_ratio(rng, operator, seed) for operator in OPERATORS]),
        },
        {"length": list(LENGTHS), "deviation": DEVIATIONS, "num_samples": num_samples, "operator": list(OPERATORS)},
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


def _constant(rng: np.random.Generator) -> float:
    """The largest | (1/m) sum <A_i, X>^2 - 1 | over all X of norm 1, from the eigenvalues."""
    A = rng.standard_normal((SAMPLES, SIDE**2))
    return float(np.abs(np.linalg.eigvalsh(A.T @ A / SAMPLES) - 1).max())


def _reading_ratio(rng: np.random.Generator, operator: str, seed: int) -> float:
    """An entry of the gradient that a run reads over that of (1/m) sum <A_i, X - A_star> A_i: the one farthest from 1."""
    environments, space = gs.Environments.diagonal(SIDE), RectangularMatrices(SIDE, SIDE)
    design = gs.Dense(SAMPLES, design=seed, operator=operator)
    X = rng.standard_normal((SIDE, SIDE))
    A = np.asarray(design.rows(environments, space).matrices[0]).reshape(-1, SIDE, SIDE)
    expected = np.tensordot(np.tensordot(A, X - np.asarray(environments.invariant)), A, axes=1) / SAMPLES
    with double():
        key = jax.random.key(0)
        state = design.init(key, environments, space, Demand(queries=1, mixes=False))
        scene = Scene(environments, space, jnp.asarray(X))
        found = design.sense(state, key, scene, environments.law.at(jnp.asarray(0)))[0].gradient  # type: ignore[attr-defined]
    ratios = (np.asarray(found) / expected).ravel()
    return float(ratios[np.argmax(np.abs(ratios - 1))])


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
    ratio, constants = ds.isometry_ratio, (ds.searched_constant, ds.direct_constant)
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
            Panel(
                title="Definition 2.1: 4 x 4 matrices, m = 200",
                xlabel="",
                ylabel="isometry constant of order 4",
                series=[
                    Bars(
                        ("by search", "from eigenvalues"),
                        [x.mean() for x in constants],
                        "mean, least and largest",
                        low=[x.min() for x in constants],
                        high=[x.max() for x in constants],
                        colour=2,
                    ),
                ],
            ),
        ],
        note=(
            "Left: exact probabilities and the bound of (G.18). Middle: means over "
            f"{ds.sizes['design']} designs; whiskers: least and largest. Right: {ds.sizes['searched']} designs by "
            f"search, {ds.sizes['direct']} others from eigenvalues."
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


def _searched(ds: xr.Dataset) -> Outcome:
    # Constants of single designs scatter by an eighth, so the mean over 64 designs by 2 %.
    return within(0.93, 1.07, searched_over_direct=ds.searched_constant.mean() / ds.direct_constant.mean())


def _readings(ds: xr.Dataset) -> Outcome:
    return within(1 - 1e-9, 1 + 1e-9, **{name: ds.reading.sel(operator=name) for name in OPERATORS})


LEMMAS_G = Experiment(
    name="lemmasG",
    title="Angles and isometry",
    source="Xiong 2024, Lemmas G.1 and G.2 (Stoeger and Soltanolkotabi 2021), Definition 2.1 and (2.2)",
    summary=(
        "The squared cosine of two Gaussian vectors has a Beta law, so Lemma G.1 is judged by exact probabilities. Lemma G.2 "
        "is judged by a search on designs whose isometry constant is known exactly."
    ),
    sizes={
        "smoke": {"pairs": 4000, "designs": 2, "num_samples": [60, 600], "constants": 64},
        "standard": {"pairs": 40_000, "designs": 6, "num_samples": [60, 200, 1000], "constants": 200},
        "full": {"pairs": 400_000, "designs": 40, "num_samples": [60, 200, 1000, 5000], "constants": 1000},
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
        Claim(
            slug="isometry-constant",
            ours=True,
            statement=(
                "Definition 2.1: the constant that gyrostat.isometry_constant finds by search is, for matrices of full rank, "
                "the largest distance of an eigenvalue of (1/m) sum vec(A_i) vec(A_i)^T from 1."
            ),
            criterion="mean over designs by search over that from eigenvalues in [0.93, 1.07]",
            measure=_searched,
        ),
        Claim(
            slug="gradient",
            ours=True,
            statement=(
                "(2.2): a run reads A*A(X - A_star) = (1/m) sum <A_i, X - A_star> A_i, with the rows of a design or with "
                "its Gram matrix."
            ),
            criterion="every entry of the gradient over its theory in [1 - 1e-9, 1 + 1e-9], for both",
            measure=_readings,
        ),
    ],
    weight=6,
)
