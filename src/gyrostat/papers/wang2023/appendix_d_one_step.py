"""Appendix D, step by step: what one step of SGD does to the norms, the balance and the approximate rank of the layers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.figures.declarations import Dots, Figure, Marker, Panel
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import Reading
from gyrostat.measurements.base import EntryGradient
from gyrostat.papers.wang2023.settings import ticker

SIDE, DEPTH, RIDGE, RANK, EXCESS = 3, 3, 0.5, 1, 0.4
"""Square layers, and constants of Theorem B.1 that are of order one: C = C_1 / (2 lambda) = 1."""
LARGEST = 1.0
STEPS = (0.001, 0.01, 0.1)
BOUNDS = ("Lemma D.1", "(9)-(11)", "Lemma D.6", "Lemma D.7", "Lemma D.8")
REGION, STEP_SIZE = gs.absorbing(RIDGE, DEPTH, SIDE, rank=RANK, largest=LARGEST, excess=EXCESS)
K = 2 * (LARGEST**2 + REGION.bound**DEPTH)
NOISE = K * REGION.bound ** (DEPTH - 1) + RIDGE**2 * REGION.bound

Layers = list[np.ndarray]


class Step(NamedTuple):
    """Layers, the entry that a step sees, its response, and T_l for every layer."""

    layers: Layers
    error: float
    T: Layers


def _step(layers: Layers, entry: tuple[int, int], response: float) -> Step:
    """T_l = W_(l+1)^T ... W_L^T G W_1^T ... W_(l-1)^T."""
    ahead = list(itertools.accumulate(layers, lambda A, W: W @ A, initial=np.eye(SIDE)))
    G = np.zeros((SIDE, SIDE))
    G[entry] = ahead[-1][entry] - response
    T, back = [], G
    for W, before in zip(layers[::-1], ahead[-2::-1], strict=True):
        T.append(back @ before.T)
        back = W.T @ back
    return Step(layers, float(G[entry]), T[::-1])


def _balanced(rng: np.random.Generator, squares: np.ndarray) -> Layers:
    """Balanced layers with these squares of singular values."""
    turns = [np.linalg.qr(rng.standard_normal((SIDE, SIDE)))[0] for _ in range(DEPTH + 1)]
    return [(b * np.sqrt(squares)) @ a.T for a, b in itertools.pairwise(turns)]


def _aligned(size: float, sign: float) -> Layers:
    """Rank-one layers of norm ``size`` whose product is at one entry only."""
    layers = [np.zeros((SIDE, SIDE)) for _ in range(DEPTH)]
    for W in layers:
        W[0, 0] = size
    layers[-1] = sign * layers[-1]
    return layers


def _f(x: np.ndarray) -> np.ndarray:
    share = np.clip(x / REGION.alpha, 0, 1)
    return share * (2 - share)


def _f_prime(x: np.ndarray) -> np.ndarray:
    return 2 / REGION.alpha * (1 - np.clip(x / REGION.alpha, 0, 1))


def _squares(rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    """Squares of singular values in B_r: one large, others with an approximate rank of low to high times epsilon_2."""
    parts = rng.dirichlet(np.ones(SIDE - RANK)) * EXCESS * rng.uniform(low, high)
    small = REGION.alpha * (1 - np.sqrt(1 - parts))
    large = REGION.alpha + (REGION.bound - small.sum() - REGION.alpha) * rng.uniform(0, 1, RANK) ** 0.3
    return np.concatenate([large, small])


# --- bounds ------------------------------------------------------------------------------------------------------------------


def _residual_ratio(rng: np.random.Generator) -> float:
    """Lemma D.1: the squared error over 2 (C_1 + C^L), on layers of norm C^(1/2); aligned ones of either sign are the worst."""
    random = [W / np.linalg.norm(W) * REGION.bound**0.5 for W in rng.standard_normal((DEPTH, SIDE, SIDE))]
    candidates = [random, _aligned(REGION.bound**0.5, 1.0), _aligned(REGION.bound**0.5, -1.0)]
    return max(_step(layers, (0, 0), LARGEST).error ** 2 for layers in candidates) / K


def _trace_ratio(step: Step) -> float:
    """(9)-(11): |Tr(V f' V^T W_l^T T_l)| over sqrt(K) (sum f' s^L + C^((L-1)/2) L sqrt(epsilon_1) sum f'); worst layer."""
    worst = 0.0
    for W, T in zip(step.layers, step.T, strict=True):
        s, V = _right(W)
        slopes = _f_prime(s**2)
        left = abs(np.trace(V.T @ (slopes[:, None] * V) @ W.T @ T))
        spread = REGION.bound ** ((DEPTH - 1) / 2) * DEPTH * REGION.balance**0.5
        worst = max(worst, left / (K**0.5 * (np.sum(slopes * s**DEPTH) + spread * slopes.sum())))
    return worst


def _right(W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    _, s, Vt = np.linalg.svd(W)
    return s, Vt


def _second_order_ratio(step: Step, eta: float) -> float:
    """Lemma D.6: the part of the change of approximate rank beyond first order, over its bound, for the worst layer."""
    worst = -np.inf
    for W, T in zip(step.layers, step.T, strict=True):
        s, V = _right(W)
        slopes = _f_prime(s**2)
        after = W - eta * (T + RIDGE * W)
        first_order = np.trace(V.T @ (slopes[:, None] * V) @ (W.T @ T + T.T @ W + 2 * RIDGE * W.T @ W))
        change = _f(np.linalg.svd(after, compute_uv=False) ** 2).sum() - _f(s**2).sum()
        beta = change + eta * first_order
        worst = max(worst, beta / (2 * eta**2 * NOISE * slopes.sum()))
    return float(worst)


def _drift(squares: np.ndarray) -> tuple[float, float]:
    """(the growth 2 E + beta / eta, the decay 2 delta) with the constants and the step size of the theorem."""
    slopes = _f_prime(squares)
    delta = np.sum(slopes * (RIDGE * squares - K**0.5 * squares ** (DEPTH / 2)))
    spread = K**0.5 * REGION.bound ** ((DEPTH - 1) / 2) * DEPTH * REGION.balance**0.5 * slopes.sum()
    return float(2 * spread + 2 * STEP_SIZE * NOISE * slopes.sum()), float(2 * delta)


# --- the step sizes of Propositions D.2 and D.3 ------------------------------------------------------------------------------


def _norm_multiple(rng: np.random.Generator, ridge: float) -> float:
    """D.2: the least step at which a layer on the boundary ||W||^2 = C leaves, over the bound of its proof."""
    C1, C = LARGEST**2, LARGEST**2 / (2 * ridge)
    bound = C1 / (4 * (2 * (C1 + C**DEPTH) * C ** (DEPTH - 1) + ridge**2 * C))
    random = [[W / np.linalg.norm(W) * C**0.5 for W in rng.standard_normal((DEPTH, SIDE, SIDE))] for _ in range(20)]
    least = np.inf
    for layers in [*random, _aligned(C**0.5, 1.0), _aligned(C**0.5, -1.0)]:
        step = _step(layers, (0, 0), LARGEST)
        for W, T in zip(layers, step.T, strict=True):
            D = T + ridge * W  # ||W - eta D||^2 = C at eta = 2 <W, D> / ||D||^2
            least = min(least, 2 * np.sum(W * D) / np.sum(D * D))
    return float(least / bound)


def _balance_multiple(rng: np.random.Generator, ridge: float, samples: int) -> tuple[float, float, float]:
    """D.3: the least step at which an imbalance of epsilon grows, over its bound; and what steps of .9 and 1.1 of it do.

    After a step the imbalance is ``(1 - eta lambda)^2 D + eta^2 M`` with ``M = T_l T_l^T - T_(l+1)^T T_(l+1)`` (formula 7). An
    imbalance D of size epsilon along the largest eigenvalue mu of M grows from eta = 2 lambda epsilon / (|mu| + lambda^2
    epsilon) on.
    """
    C1, C = LARGEST**2, LARGEST**2 / (2 * ridge)
    best: tuple[float, Step] | None = None
    for _ in range(samples):
        squares = C * rng.dirichlet(np.full(SIDE, 0.5))
        step = _step(_balanced(rng, squares), (0, 0), LARGEST)
        mu = np.abs(np.linalg.eigvalsh(_source(step))).max()
        best = (mu, step) if best is None or mu > best[0] else best
    assert best is not None
    epsilon = 1e-4 * C
    layers = _unbalanced(best[1], epsilon)
    step = _step(layers, (0, 0), LARGEST)
    mu = np.abs(np.linalg.eigvalsh(_source(step))).max()
    least = 2 * ridge * epsilon / (mu + ridge**2 * epsilon)
    bound = 2 * ridge * epsilon / (4 * (C1 + C**DEPTH) * C ** (DEPTH - 1) + ridge**2 * epsilon)
    grown = [_imbalance_after(step, share * least, ridge) / _imbalance_after(step, 0.0, ridge) for share in (0.9, 1.1)]
    return float(least / bound), grown[0], grown[1]


def _source(step: Step) -> np.ndarray:
    """M of the last two layers."""
    return step.T[-2] @ step.T[-2].T - step.T[-1].T @ step.T[-1]


def _unbalanced(step: Step, epsilon: float) -> Layers:
    """The layers with a last one that is out of balance by epsilon along the largest eigenvalue of M."""
    values, vectors = np.linalg.eigh(_source(step))
    k = int(np.abs(values).argmax())
    *rest, last = step.layers
    U, _, Vt = np.linalg.svd(last)
    gram = last.T @ last - np.sign(values[k]) * epsilon * np.outer(vectors[:, k], vectors[:, k])
    squares, turn = np.linalg.eigh(gram)
    root = (turn * np.sqrt(np.maximum(squares, 0))) @ turn.T
    return [*rest, U @ Vt @ root]


def _imbalance_after(step: Step, eta: float, ridge: float) -> float:
    a, b = (W - eta * (T + ridge * W) for W, T in zip(step.layers[-2:], step.T[-2:], strict=True))
    return float(np.linalg.norm(a @ a.T - b.T @ b, 2))


# --- formula (7), with the engine's update rule ------------------------------------------------------------------------------

ETA = 0.1


def _identity_gap(rng: np.random.Generator, single: bool) -> tuple[float, float]:
    """Formula (7) for a step of the engine's update rule: its largest deviation, and the size of its second term.

    ``single`` takes the engine's way of single entries, which forms outer products; the other is that of whole matrices.
    """
    model = gs.DeepLinear(DEPTH, SIDE)
    before = [rng.standard_normal(shape) / SIDE**0.5 for shape in model.shapes((SIDE, SIDE))]
    step = _step(before, (1, 0), LARGEST)
    with double():
        value = jnp.asarray(step.error + LARGEST)
        gradient = jnp.zeros((SIDE, SIDE)).at[1, 0].set(step.error)
        entry = EntryGradient(jnp.asarray(1), jnp.asarray(0), jnp.asarray(step.error), value) if single else None
        reading = Reading(gradient, jnp.asarray(step.error**2), jnp.asarray(LARGEST), entry)
        eta, ridge = jnp.asarray(ETA), jnp.asarray(RIDGE)
        after = [
            np.asarray(W) for W in gs.RidgeStep("appendix")(model, tuple(map(jnp.asarray, before)), reading, eta, ridge)
        ]
    gap = size = 0.0
    for k in range(DEPTH - 1):
        M = step.T[k] @ step.T[k].T - step.T[k + 1].T @ step.T[k + 1]
        D, new = (W[k] @ W[k].T - W[k + 1].T @ W[k + 1] for W in (before, after))
        gap = max(gap, float(np.abs(new - (1 - ETA * RIDGE) ** 2 * D - ETA**2 * M).max()))
        size = max(size, float(np.abs(ETA**2 * M).max()))
    return gap, size


# --- the experiment ----------------------------------------------------------------------------------------------------------

RIDGES = (2.0, 1.0, 0.5, 0.2, 0.1)
PATHS = ("single entries", "whole matrices")


def one_step_data(*, seed: int, progress: Any = None, samples: int) -> xr.Dataset:
    """3 x 3 layers, L = 3: left over right sides of appendix D, the step sizes at which sets are left, and formula (7)."""
    rng, tick = np.random.default_rng(seed), ticker(progress, 3)
    ratios = np.array([_ratios(rng) for _ in range(samples)])
    tick()
    norms = [_norm_multiple(rng, ridge) for ridge in RIDGES]
    balance = np.array([_balance_multiple(rng, ridge, samples) for ridge in RIDGES])
    tick()
    gaps = np.array([np.max([_identity_gap(rng, single) for _ in range(5)], axis=0) for single in (True, False)])
    tick()
    return xr.Dataset(
        {
            "ratio": (("sample", "bound"), ratios),
            "norm_multiple": ("ridge", norms),
            "balance_multiple": ("ridge", balance[:, 0]),
            "grown_below": ("ridge", balance[:, 1]),
            "grown_above": ("ridge", balance[:, 2]),
            "identity_gap": ("path", gaps[:, 0]),
            "second_term": ("path", gaps[:, 1]),
        },
        {"bound": list(BOUNDS), "ridge": list(RIDGES), "path": list(PATHS)},
        {"settings": f"L = {DEPTH}, {SIDE} x {SIDE}, lambda = {RIDGE:g}, C = {REGION.bound:g}, r = {RANK}"},
    )


def _ratios(rng: np.random.Generator) -> list[float]:
    """The five ratios on one sample."""
    step = _step(_balanced(rng, _squares(rng, 0.0, 1.0)), (0, 0), LARGEST)
    near_limit, inside = _drift(_squares(rng, 0.5, 1.0)), _drift(_squares(rng, 0.0, 0.5))
    return [
        _residual_ratio(rng),
        _trace_ratio(step),
        max(_second_order_ratio(step, eta) for eta in STEPS),
        near_limit[0] / near_limit[1],
        STEP_SIZE * (inside[0] - inside[1]) / (EXCESS / 2),
    ]


def _dots(names: Sequence[str], values: np.ndarray, label: str, colour: int) -> Dots:
    return Dots(names, values, label, low=values, high=values, colour=colour)


def draw_one_step(ds: xr.Dataset) -> Figure:
    largest = ds.ratio.max("sample").values
    bars: list[Any] = [
        _dots(BOUNDS, np.maximum(largest, 1e-12), "largest left side over right side", 0),
        Marker(1.0, "the bound", axis="x", role="bound"),
    ]
    names = [f"{r:g}" for r in ds.ridge.values]
    multiples: list[Any] = [
        _dots(names, ds.norm_multiple.values, "norms (Proposition D.2)", 1),
        _dots(names, ds.balance_multiple.values, "balance (Proposition D.3)", 2),
        Marker(1.0, "the bound on η", axis="x", role="bound"),
    ]
    gaps = [
        _dots(PATHS, ds.second_term.values, "η² (T Tᵀ - Tᵀ T)", 3),
        _dots(PATHS, ds.identity_gap.values, "deviation from formula (7)", 4),
    ]
    return Figure(
        title="The bounds of appendix D hold; their step sizes are a small part of those at which a set is left",
        panels=[
            Panel(title=f"λ = {RIDGE:g}, C = {REGION.bound:g}", xlabel="ratio", ylabel="", series=bars, xscale="log"),
            Panel(
                title="Least η that leaves, over the bound",
                xlabel="multiple of the bound",
                ylabel="ridge λ",
                series=multiples,
                xscale="log",
            ),
            Panel(title="Layers move at once", xlabel="size", ylabel="", series=gaps, xscale="log"),
        ],
        note=(
            f"{ds.sizes['sample']} samples of 3 × 3 layers, L = 3, constants of Theorem B.1 with C₁ = 1. "
            "Middle: found by search, so the truth may be smaller. "
            "Right: steps of the engine; with layers that move one after the other the deviation would be of order η."
        ),
    )


def _ratio(name: str, low: float = 0.0) -> Any:
    def measure(ds: xr.Dataset) -> Outcome:
        ratio = ds.ratio.sel(bound=name)
        return within(low, 1 + 1e-9, largest=ratio.max())

    return measure


def _never_more(name: str) -> Any:
    def measure(ds: xr.Dataset) -> Outcome:
        return within(-1e9, 1, largest=ds.ratio.sel(bound=name).max())

    return measure


def _norms(ds: xr.Dataset) -> Outcome:
    multiple = ds.norm_multiple
    return together(within(1, least=multiple.min()), within(1, 1e6, at_01=multiple.sel(ridge=0.1)))


def _balance(ds: xr.Dataset) -> Outcome:
    return together(
        within(1, 100, least=ds.balance_multiple.min()),
        within(0, 1, grown_below=ds.grown_below.max()),
        within(1, grown_above=ds.grown_above.min()),
    )


def _simultaneous(ds: xr.Dataset) -> Outcome:
    return together(within(0, 1e-13, largest_gap=ds.identity_gap.max()), within(1e-4, second_term=ds.second_term.min()))


ONE_STEP = Experiment(
    name="appendixD",
    title="One step of SGD on norms, balance and approximate rank",
    source="Wang 2023, Lemma D.1, Propositions D.2 and D.3, Lemmas D.6 to D.8, formulas (5) to (18)",
    summary=(
        "Each bound is tested with constants of order one, where double precision is enough. Shown are the "
        "largest ratio of the left to the right side, and the least step size that leaves a set, relative to the "
        "one that the paper admits."
    ),
    sizes={"smoke": {"samples": 100}, "standard": {"samples": 1000}, "full": {"samples": 10_000}},
    compute=one_step_data,
    draw=draw_one_step,
    claims=[
        Claim(
            slug="lemmaD.1",
            statement="The squared error of an entry is at most 2 (C_1 + C^L) if all ||W_l||_F^2 <= C (Lemma D.1, formula 5).",
            criterion="largest ratio at most 1, and at least .5: the bound is attained at C^L = C_1",
            measure=_ratio("Lemma D.1", 0.5),
        ),
        Claim(
            slug="propD.2",
            statement=(
                "Layers of norm at most C keep such a norm, for the step size in the proof of Proposition D.2 "
                "(formula 6)."
            ),
            criterion="least step size found that leaves over the bound: at least 1 for five ridges, at most 1e6 at .1",
            measure=_norms,
        ),
        Claim(
            slug="propD.3",
            statement=(
                "An imbalance of at most epsilon stays at most epsilon, for the step size of Proposition D.3 "
                "(formula 7)."
            ),
            criterion=(
                "least step size found that leaves over the bound: in [1, 100] for five ridges; .9 of it does "
                "not leave and 1.1 of "
                "it does"
            ),
            measure=_balance,
        ),
        Claim(
            slug="layers-move-at-once",
            statement=(
                "After a step the imbalance is (1 - eta lambda)^2 D + eta^2 (T_l T_l^T - T_(l+1)^T T_(l+1)): "
                "formula (7)."
            ),
            criterion=(
                "largest deviation for steps of the engine's update rule at most 1e-13, where the second term is "
                "at least 1e-4"
            ),
            measure=_simultaneous,
        ),
        Claim(
            slug="formulas9-11",
            statement="The gradient of the fit changes the approximate rank by at most the bound of formulas (9) to (11).",
            criterion="largest ratio over layers in B_r at most 1 (and at least .01)",
            measure=_ratio("(9)-(11)", 0.01),
        ),
        Claim(
            slug="lemmaD.6",
            statement=(
                "The O(eta^2) part of the change is at most 2 eta^2 (2 (C_1 + C^L) C^(L-1) + lambda^2 C) sum f' "
                "(Lemma D.6)."
            ),
            criterion="largest ratio over layers in B_r, at eta = .001, .01 and .1, at most 1",
            measure=_never_more("Lemma D.6"),
        ),
        Claim(
            slug="lemmaD.7",
            statement=(
                "Near the limit of the approximate rank, decay outweighs growth: 2 delta >= 2 E + beta / eta "
                "(Lemma D.7)."
            ),
            criterion="largest growth over decay, with the constants of Theorem B.1, at most 1 (and at least .01)",
            measure=_ratio("Lemma D.7", 0.01),
        ),
        Claim(
            slug="lemmaD.8",
            statement="Farther inside, a step adds at most epsilon_2 / 2 to the approximate rank (Lemma D.8).",
            criterion="largest change over epsilon_2 / 2, with the constants of Theorem B.1, at most 1",
            measure=_never_more("Lemma D.8"),
        ),
    ],
    weight=2,
)
