"""The measurements that are exact in law against brute force, by two-sample tests.

Every comparison is a Kolmogorov-Smirnov test of one functional of the answer. There are 20 comparisons of 6 to 14 functionals,
one for each law of each engine; their p-values are collected and judged together (Bonferroni at a family level of 1e-3), and
must be uniform. Keys are fixed, so the file is deterministic. Wrong laws must be rejected by the same tests.
"""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import gyrostat as gs
import reference
from conftest import orthonormal
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import Demand, fresh_gaussian
from gyrostat.measurements.base import Scene
from gyrostat.measurements.fixed_gaussian import gram_product, nothing_revealed
from gyrostat.models.spaces import SymmetricMatrices, space_of

N = 2000
LEVEL = 1e-3
REFUTED = 1e-9
P: dict[str, dict[str, float]] = {}
"""All p-values of the right laws: comparison -> functional -> p."""


def functionals(G: np.ndarray, squares: np.ndarray, M: np.ndarray, noise: float = 0.0) -> dict[str, np.ndarray]:
    """Numbers that tell joint laws of gradients (n, ...) and mean square residuals (n,) apart; M is a direction."""
    flat, unit = G.reshape(len(G), -1), M.ravel() / np.linalg.norm(M)
    along = flat @ unit
    across = np.linalg.norm(flat - along[:, None] * unit, axis=1)
    a, b = (np.random.default_rng(seed).standard_normal(side) for seed, side in ((99, G.shape[-1]), (98, G.shape[1])))
    values = G if G.ndim == 2 else np.linalg.svd(G, compute_uv=False)
    if G.ndim == 3 and G.shape[1] == G.shape[2]:
        a, values = b, np.linalg.eigvalsh(G)
    numbers = {
        "along": along,
        "rest": across,
        "ratio": across**2 / along,
        "largest": values.max(axis=1),
        "smallest": values.min(axis=1),
        "sum": values.sum(axis=1),
        "cube": (values**3).sum(axis=1),
        "form": (G @ a) ** 2 if G.ndim == 2 else np.einsum("nij,i,j->n", G, b, a),
        "entry": flat[:, G.shape[-1] - 1],
        "square": squares,
        "square times entry": squares * flat[:, -1],
        "size over root": np.linalg.norm(flat, axis=1) / np.sqrt(squares),
    }
    # The part of the residual that the gradient does not show is that of the noise: zero, but for rounding, without it.
    return numbers | ({"square against along": squares - along * np.linalg.norm(M)} if noise else {})


def compare(ours: dict[str, np.ndarray], brute: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: stats.ks_2samp(ours[name], brute[name], method="asymp").pvalue for name in ours}


def holds(name: str, ours: dict[str, np.ndarray], brute: dict[str, np.ndarray]) -> None:
    """Record the p-values; each comparison must also pass alone, at a level far below that of the family."""
    P[name] = compare(ours, brute)
    assert min(P[name].values()) > 1e-6, P[name]


def refuted(ours: dict[str, np.ndarray], brute: dict[str, np.ndarray]) -> None:
    assert min(compare(ours, brute).values()) < REFUTED


# --- fresh batches -----------------------------------------------------------------------------------------------------------


def space_like(A: np.ndarray):
    is_square = A.ndim == 2 and A.shape[0] == A.shape[1]
    return SymmetricMatrices(len(A)) if is_square else space_of(A.shape)


def read(measurements, environments, A, seed, index=None) -> tuple[np.ndarray, np.ndarray]:
    """N independent gradients with their mean square residuals, of environment ``index`` or of the mixture."""

    @eqx.filter_jit
    def readings(measurements, environments, A, keys):
        scene = Scene(environments, space_like(A), A)
        if index is None:
            return jax.vmap(lambda key: measurements.mix(None, key, scene)[0][:2])(keys)
        return jax.vmap(lambda key: measurements.sense(None, key, scene, environments.law.at(index))[0][:2])(keys)

    with double():
        keys = jax.random.split(jax.random.key(seed), N)
        return tuple(map(np.asarray, readings(measurements, environments, jnp.asarray(A), keys)))


def brute_force(environments, A, m, noise, seed, index=None, draw=None) -> tuple[np.ndarray, np.ndarray]:
    """The same by measurements written out; in a mixture every Sigma is drawn by NumPy."""
    rng = np.random.default_rng(seed)
    law, V, Z = environments.law, environments.spurious_basis, environments.right_spurious_basis
    if draw is not None:
        sigmas = draw(rng, (N, m))
    elif index is None:
        sigmas = law.values[rng.choice(law.count, size=(N, m), p=law.weights)]
    else:
        sigmas = np.broadcast_to(law.values[index], (N, m, law.rank, law.rank))
    spurious = np.diagonal(sigmas, axis1=2, axis2=3) @ V.T if A.ndim == 1 else V @ sigmas @ Z.T
    return reference.readings(rng, np.asarray(A - environments.invariant) - spurious, noise)


def matrices(law: gs.environments.Law, d: int = 4) -> gs.Environments:
    basis = orthonormal(1, d, 1 + law.rank)
    tilted = basis[:, 1:].copy()
    tilted[:, 0] = 0.3 * basis[:, 0] + np.sqrt(1 - 0.09) * basis[:, 1]  # the two subspaces overlap
    return gs.Environments(basis[:, :1], tilted, law, values=[1.5])


def rectangles(law: gs.environments.Law) -> gs.RectangularEnvironments:
    left, right = orthonormal(3, 4, 1 + law.rank), orthonormal(4, 3, 1 + law.rank)
    return gs.RectangularEnvironments(left[:, :1], right[:, :1], left[:, 1:], right[:, 1:], law, values=[1.5])


def vectors(law: gs.environments.Law) -> gs.Environments:
    return gs.VectorEnvironments([1.0, -0.5, 0, 0, 0], list(range(3, 3 + law.rank)), law)


def product_like(environments: gs.Environments) -> np.ndarray:
    return 0.5 * reference.gaussian(np.random.default_rng(2), environments.shape)


def uniform(rank: int, same: bool = False):
    """The draws of CONTINUOUS and of PLANE: a Sigma for every sample, or the same for all samples of a batch."""

    def draw(rng, lead):
        draws = 0.5 + 3 * rng.uniform(-1, 1, (lead[0], 1 if same else lead[1], rank))
        return np.broadcast_to(draws[..., None] * np.eye(rank), (*lead, rank, rank))

    return draw


FRESH, REDRAWN = gs.FreshGaussian, functools.partial(gs.Dense, redraw=True)
TWO = gs.Finite([-1.0, 2.5], [0.3, 0.7])
OFF = np.array([[1.0, 0.8], [0.8, -0.5]])
THREE = gs.Finite([OFF, -2 * OFF, 3 * np.eye(2)], [0.5, 0.2, 0.3])
VECTORS = gs.Finite([[1.0, 2.0], [-3.0, 0.5], [0.0, 4.0]], [0.5, 0.2, 0.3])
CONTINUOUS = gs.Uniform(mean=0.5, spread=3.0)
PLANE = gs.Uniform(mean=0.5, spread=3.0, rank=2, independent=True)
CASES = {
    "one matrix, one sample": (FRESH, matrices(TWO), 1, None, 1, 0.0),
    "one matrix": (FRESH, matrices(TWO), 1, None, 6, 0.7),
    "one vector": (FRESH, vectors(TWO), 0, None, 2, 0.7),
    "one rectangle": (FRESH, rectangles(TWO), 1, None, 40, 0.7),
    "one matrix, written out": (REDRAWN, matrices(TWO), 0, None, 6, 0.7),
    "mixture, written out": (REDRAWN, matrices(TWO), None, None, 6, 0.7),
    "mixture of two": (FRESH, matrices(TWO), None, None, 40, 0.5),
    "mixture far apart": (FRESH, matrices(gs.Finite([-20.0, 20.0])), None, None, 2, 0.0),
    "mixture of three": (FRESH, matrices(THREE), None, None, 6, 0.5),
    "mixture of vectors": (FRESH, vectors(VECTORS), None, None, 3, 0.5),
    "mixture of rectangles": (FRESH, rectangles(TWO), None, None, 6, 0.0),
    "continuous": (FRESH, matrices(CONTINUOUS), None, uniform(1), 6, 0.5),
    "continuous vectors": (FRESH, vectors(PLANE), None, uniform(2), 6, 0.0),
}


def compared(name: str, wrong_draw=None) -> tuple[dict, ...]:
    """The functionals of the engine and of the brute force, which may be told to draw wrongly."""
    make, environments, index, draw, m, noise = CASES[name]
    A, seed = product_like(environments), 100 + 10 * list(CASES).index(name)
    # The direction of the residual; that in which they differ, if each sample has its own.
    M = (
        environments.spurious(np.eye(environments.law.rank))
        if index is None
        else A - environments.target(TWO.values[index])
    )
    M = np.asarray(M)
    ours = read(make(m, noise=noise), environments, A, seed, index)
    brute = brute_force(environments, A, m, noise, seed, index, wrong_draw or draw)
    sides = []
    for G, squares in (ours, brute):
        numbers = functionals(G, squares, M, noise)
        # Without noise this is a constant for samples of one environment.
        sides.append(numbers | ({"along over square": numbers["along"] / squares} if index is None else {}))
    return tuple(sides)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("name", CASES)
def test_a_batch_has_the_law_of_measurements_written_out(name, monkeypatch):
    monkeypatch.setattr(fresh_gaussian, "BLOCK", 4)  # a batch over a continuous law may end inside a block
    holds(name, *compared(name))
    # JAX remembers constants by identity: one that both precisions shared failed here, after a mixture of rank two.
    np.testing.assert_allclose(SymmetricMatrices(2).coordinates(OFF), reference.svec(OFF), rtol=1e-6)


def one_of_each(rng, lead):
    return np.broadcast_to(np.array([-20.0, 20.0])[:, None, None], (*lead, 1, 1))


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(("name", "draw"), [("mixture far apart", one_of_each), ("continuous", uniform(1, same=True))])
def test_wrong_mixtures_are_refuted(name, draw):
    """As many samples of each environment in every batch, and one Sigma for all samples of a batch."""
    refuted(*compared(name, draw))


@pytest.mark.usefixtures("optimised")
def test_a_wrong_law_of_rows_is_refuted(monkeypatch):
    """An engine with the mean square of the coordinate along the residual where its law belongs."""
    monkeypatch.setattr(fresh_gaussian, "chi_square", lambda key, m: m)
    refuted(*compared("one matrix"))


# --- rank-one samples -----------------------------------------------------------------------------


@pytest.mark.parametrize("index", [1, None])
def test_truncated_rank_one_batch(index):
    """Algorithm 4, one environment and a mixture: large predictions are left out of the gradient, not of the mean response."""
    environments, samples = matrices(TWO), gs.RankOne(6, truncation=4.0, noise=0.7)
    A = product_like(environments)
    A = 2 * A @ A.T / np.trace(A @ A.T)  # one sample in eight has a prediction above 4

    def one(key):
        scene = Scene(environments, SymmetricMatrices(4), jnp.asarray(A))
        reading = samples.mix((), key, scene) if index is None else samples.sense((), key, scene, TWO.at(index))
        return reading[0].gradient, reading[0].residual_square, reading[0].response_mean

    with double():
        G, squares, response = map(np.asarray, jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(560), N)))
    rng = np.random.default_rng(561)
    x, noise = rng.standard_normal((N, 6, 4)), 0.7 * rng.standard_normal((N, 6))
    e = rng.choice(2, p=TWO.weights, size=(N, 6)) if index is None else np.full((N, 6), index)
    targets = np.stack([np.asarray(environments.target(sigma)) for sigma in TWO.values])
    y = np.einsum("nmi,nmij,nmj->nm", x, targets[e], x) + noise
    predicted = np.einsum("nmi,ij,nmj->nm", x, A, x)

    def with_response(G, squares, response):
        return functionals(G, squares, A) | {"response": response, "response times entry": response * G[:, 0, -1]}

    def brute(truncation, response):
        G = np.stack([reference.rank_one_gradient(A, *sample, truncation) for sample in zip(x, y, strict=True)])
        return with_response(G, np.mean((predicted - y) ** 2, axis=1), response)

    ours = with_response(G, squares, response)
    holds(f"rank one {index}", ours, brute(4.0, y.mean(axis=1)))
    refuted(ours, brute(np.inf, y.mean(axis=1)))  # nothing is left out
    refuted(ours, brute(4.0, predicted.mean(axis=1)))  # the mean prediction


# --- fixed designs -----------------------------------------------------------------------------------------------------------


def following(b, y, m):
    """The next question, made of the last one and its answer: adaptive, as gradient descent is."""
    b = 0.7 * b + y / m - 0.4 * (b * y).sum(-1, keepdims=True) / m * b[..., ::-1]
    return b / (b**2).sum(-1, keepdims=True) ** 0.5


def ask(design, question, key, m):
    answer, design = gram_product(design, key, jnp.zeros((), dtype=jnp.int32), question, jnp.asarray(float(m)))
    return design, answer


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("m", [1, 3, 12])
def test_fixed_design_answers_adaptive_questions(m):
    """m = 1, m < D and m > D; seven questions in five dimensions, so the span fills up."""
    D, steps = 5, 7

    def answers(key):
        def step(carry, t):
            design, b = carry
            design, y = ask(design, b, jax.random.fold_in(key, t), m)
            return (design, following(b, y, m)), y

        return jax.lax.scan(step, (nothing_revealed(1, D, D), jnp.ones(D) / jnp.sqrt(D)), jnp.arange(steps))[1]

    with double():
        ours = np.asarray(jax.jit(jax.vmap(answers))(jax.random.split(jax.random.key(31 * m + D), N)))
    X, b, brute = np.random.default_rng(m + D).standard_normal((N, m, D)), np.ones((N, D)) / np.sqrt(D), []
    for _ in range(steps):
        brute.append(np.einsum("nij,nik,nk->nj", X, X, b, optimize=True))
        b = following(b, brute[-1], m)

    def functionals_of(Y):
        first, middle, last = Y[:, 0], Y[:, steps // 2], Y[:, -1]
        return {
            "first": np.sum(first**2, axis=1),
            "middle": middle[:, 0],
            "last": last.max(axis=1),
            "cross": np.sum(first * last, axis=1),
            "spread": np.linalg.norm(last, axis=1),
            "sum": np.linalg.norm(Y.sum(axis=1), axis=1),
        }

    holds(f"fixed {m}", functionals_of(ours), functionals_of(np.stack(brute, axis=1)))


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("m", [40, 1000])
def test_fixed_design_is_one_matrix(m):
    """300 questions in 400 dimensions: directions stay orthonormal, answers repeat and are symmetric."""
    D, questions = 400, 300
    rng = np.random.default_rng(7)
    # Questions that nearly repeat, the hard case of Gram-Schmidt: all within 1e-3 of a ten-dimensional space.
    B = rng.standard_normal((questions, 10)) @ rng.standard_normal((10, D))
    B = B + 1e-3 * rng.standard_normal((questions, D))
    with double():
        scan = jax.jit(lambda design, B, keys: jax.lax.scan(lambda d, bk: ask(d, *bk, m), design, (B, keys)))
        first, other = (jax.random.split(jax.random.key(seed), questions) for seed in (8, 9))
        design, Y = scan(nothing_revealed(1, D, D), jnp.asarray(B), first)
        after, again = scan(design, jnp.asarray(B), other)
    known = min(m, questions)
    assert int(design.known[0]) == int(after.known[0]) == known
    pages = np.asarray(design.table[0, : -(-known // design.directions.shape[1])])
    Q = np.asarray(design.directions)[pages].reshape(-1, D)[:known]
    np.testing.assert_allclose(Q @ Q.T, np.eye(known), atol=1e-12)
    # Once the span holds a question its answer is fixed, whatever the key. The first answer to it came before
    # later rows existed; those rows are orthogonal to it up to rounding.
    np.testing.assert_allclose(again, Y, atol=1e-11 * np.abs(Y).max())
    C = B @ np.asarray(again).T
    np.testing.assert_allclose(C, C.T, atol=1e-11 * np.abs(C).max())


# --- whole trajectories ------------------------------------------------------------------------------------------------------


class ManyAtOnce(gs.measurements.Measurements):
    """Small designs fit in the caches together: two thousand runs in a few calls. Such a call does not say its demand."""

    vectorises = True

    def init(self, key, environments, space, demand):
        return super().init(key, environments, space, Demand(28, demand.mixes))


class FixedGaussians(ManyAtOnce, gs.FixedGaussian):
    """Exact in law."""


class Designs(ManyAtOnce, gs.Dense):
    """Written out."""


def trajectories(algorithm, measurements, seed) -> dict[str, np.ndarray]:
    """Half-way and final values of N runs."""
    problem = gs.Problem(matrices(gs.Finite([-0.5, 1.5]), 3), measurements)
    record, options = ["signal", "spurious", "error", "distance", "singular_values"], {"reduction": "never"}
    paths = gs.run(algorithm, problem, num_steps=14, seeds=N, seed=seed, record=record, record_at=[7, 14], **options)
    assert np.isinf(paths.diverged).all()
    values = {f"{name} {t}": paths[name].sel(step=t).values for name in record[:-1] for t in (7, 14)}
    return values | {"top": paths.singular_values.isel(step=-1, singular_value=0).values}


# T = 14 steps of up to two questions in D = 6 (+1 for the noise) dimensions: T > D, and T > m for m = 4.
@pytest.mark.parametrize(("name", "m"), [("HeteroSGD", 15), ("PooledGD", 4)])
def test_trajectories_on_fixed_data(name, m):
    algorithm = getattr(gs, name)(0.08, init_scale=0.5)
    ours = trajectories(algorithm, FixedGaussians(m, noise=0.5), 300)
    holds(f"{name} fixed", ours, trajectories(algorithm, Designs(m, noise=0.5), 350))
    if m == 4:  # the test can fail: data drawn again at every step have another law
        refuted(ours, trajectories(algorithm, gs.FreshGaussian(4, noise=0.5), 380))


# --- the family --------------------------------------------------------------------------------------------------------------


def test_family_of_comparisons():
    """All p-values together: none below the Bonferroni level, and uniform over comparisons."""
    if len(P) < 20:
        pytest.skip("needs the other tests of this file")
    everything = [p for group in P.values() for p in group.values()]
    assert min(everything) > LEVEL / len(everything)
    # Functionals of one sample are dependent, comparisons are not: one p-value per comparison, of a different functional
    # each time.
    one_each = [list(group.values())[i % len(group)] for i, group in enumerate(P.values())]
    assert stats.kstest(one_each, "uniform").pvalue > LEVEL
    # The test can fail: a comparison of a sample with a copy of most of itself would give large p-values only.
    assert stats.kstest(np.asarray(one_each) ** 0.1, "uniform").pvalue < LEVEL
