"""The measurements that are exact in law against brute force, by two-sample tests.

Every comparison is a Kolmogorov-Smirnov test of one functional of the answer; the p-values of the whole file are collected and
judged together (Bonferroni at a family level of 1e-3), and must be uniform. Keys are fixed, so the file is deterministic. Wrong
laws, each with one deliberate mistake, must be rejected by the same tests.
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
from gyrostat.measurements import fixed_gaussian as fixed
from gyrostat.measurements import fresh_gaussian
from gyrostat.measurements.base import Scene
from gyrostat.models.spaces import SymmetricMatrices, space_of

N = 2000
LEVEL = 1e-3
REFUTED = 1e-9
P: dict[str, dict[str, float]] = {}
"""All p-values of the right laws: comparison -> functional -> p."""


def functionals(G: np.ndarray, squares: np.ndarray, M: np.ndarray, noise: float = 0.0) -> dict[str, np.ndarray]:
    """Numbers that tell joint laws of gradients (n, ...) and mean square residuals (n,) apart; M is the residual."""
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


# --- fresh batches --------------------------------------------------------------------------------


@eqx.filter_jit
def _read(measurements, environments, space, product, keys, environment=None):
    scene = Scene(environments, space, product)
    if environment is None:
        return jax.vmap(lambda k: measurements.mix(None, k, scene)[0][:2])(keys)
    return jax.vmap(lambda k: measurements.sense(None, k, scene, environment)[0][:2])(keys)


def read(measurements, environments, product, seed, index=None) -> tuple[np.ndarray, np.ndarray]:
    """N independent gradients with their mean square residuals, of environment ``index`` or of the mixture."""
    with double():
        is_square = product.ndim == 2 and product.shape[0] == product.shape[1]
        space = SymmetricMatrices(len(product)) if is_square else space_of(product.shape)
        environment = None if index is None else jax.tree.map(jnp.asarray, environments.law.at(index))
        # Arrays, so that other numbers in the same shapes do not compile again.
        measurements, environments = jax.tree.map(jnp.asarray, (measurements, environments))
        keys = jax.random.split(jax.random.key(seed), N)
        gradients, squares = _read(measurements, environments, space, jnp.asarray(product), keys, environment)
        return np.asarray(gradients), np.asarray(squares)


def brute_force(environments, A, m, noise, seed, index=None, draw=None, count=N) -> tuple[np.ndarray, np.ndarray]:
    """The same by measurements written out; in a mixture every Sigma is drawn by NumPy."""
    rng = np.random.default_rng(seed)
    law, V, Z = environments.law, environments.spurious_basis, environments.right_spurious_basis
    if index is not None:
        sigmas = np.broadcast_to(law.values[index], (count, m, law.rank, law.rank))
    else:
        sigmas = (
            law.values[rng.choice(law.count, size=(count, m), p=law.weights)] if draw is None else draw(rng, (count, m))
        )
    spurious = np.diagonal(sigmas, axis1=2, axis2=3) @ V.T if A.ndim == 1 else V @ sigmas @ Z.T
    return reference.readings(rng, np.asarray(A - environments.invariant) - spurious, noise)


def matrix_environments(d: int, law: gs.environments.Law, seed: int = 1) -> gs.Environments:
    basis = orthonormal(seed, d, 1 + law.rank)
    tilted = basis[:, 1:].copy()
    tilted[:, 0] = 0.3 * basis[:, 0] + np.sqrt(1 - 0.09) * basis[:, 1]  # the two subspaces overlap
    return gs.Environments(basis[:, :1], tilted, law, values=[1.5])


def rectangular(law: gs.environments.Law) -> gs.RectangularEnvironments:
    left, right = orthonormal(3, 4, 1 + law.rank), orthonormal(4, 3, 1 + law.rank)
    return gs.RectangularEnvironments(left[:, :1], right[:, :1], left[:, 1:], right[:, 1:], law, values=[1.5])


def vector_environments(law: gs.environments.Law) -> gs.Environments:
    return gs.VectorEnvironments([1.0, -0.5, 0, 0, 0], list(range(3, 3 + law.rank)), law)


def product_like(environments: gs.Environments, seed: int = 2) -> np.ndarray:
    return 0.5 * reference.gaussian(np.random.default_rng(seed), environments.shape)


def uniform(centre, spread, rank):
    def draw(rng, lead):
        return (centre + spread * rng.uniform(-1, 1, (*lead, rank)))[..., None] * np.eye(rank)

    return draw


FRESH, REDRAWN = gs.FreshGaussian, functools.partial(gs.Dense, redraw=True)
TWO = gs.Finite([-1.0, 2.5], [0.3, 0.7])
OFF = np.array([[1.0, 0.8], [0.8, -0.5]])
THREE = gs.Finite([OFF, -2 * OFF, 3 * np.eye(2)], [0.5, 0.2, 0.3])
VECTORS = gs.Finite([[1.0, 2.0], [-3.0, 0.5], [0.0, 4.0]], [0.5, 0.2, 0.3])
CONTINUOUS = gs.Uniform(mean=0.5, spread=3.0)
PLANE = gs.Uniform(mean=0.5, spread=3.0, rank=2, independent=True)
SQUARE, RECTANGLE = matrix_environments(4, TWO), rectangular(TWO)
CASES = {
    "one matrix": (FRESH, SQUARE, 1, None, [(1, 0.0), (2, 0.7), (6, 0.0), (40, 0.7)]),
    "one vector": (FRESH, vector_environments(TWO), 1, None, [(1, 0.0), (2, 0.7), (6, 0.7)]),
    "one rectangle": (FRESH, RECTANGLE, 1, None, [(1, 0.0), (2, 0.7), (6, 0.7)]),
    "one matrix, written out": (REDRAWN, SQUARE, 0, None, [(6, 0.7)]),
    "mixture, written out": (REDRAWN, SQUARE, None, None, [(6, 0.7)]),
    "mixture of two": (FRESH, SQUARE, None, None, [(1, 0.0), (2, 0.5), (6, 0.0), (40, 0.5)]),
    "mixture of three": (FRESH, matrix_environments(4, THREE), None, None, [(2, 0.0), (6, 0.5), (40, 0.0)]),
    "mixture of vectors": (FRESH, vector_environments(VECTORS), None, None, [(3, 0.5), (20, 0.0)]),
    "mixture of rectangles": (FRESH, RECTANGLE, None, None, [(2, 0.5), (6, 0.0)]),
    "continuous": (FRESH, matrix_environments(4, CONTINUOUS), None, uniform(0.5, 3.0, 1), [(2, 0.0), (6, 0.5)]),
    "continuous vectors": (FRESH, vector_environments(PLANE), None, uniform(0.5, 3.0, 2), [(6, 0.0)]),
}


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("name", CASES)
def test_a_batch_has_the_law_of_measurements_written_out(name):
    make, environments, index, draw, sizes = CASES[name]
    A = product_like(environments)
    M = np.asarray(A - (environments.mean_target if index is None else environments.target(TWO.values[index])))
    for j, (m, noise) in enumerate(sizes):
        seed = 100 + 10 * list(CASES).index(name) + j
        G, squares = read(make(m, noise=noise), environments, A, seed, index)
        brute = functionals(*brute_force(environments, A, m, noise, seed, index, draw), M, noise)
        holds(f"{name} {m} {noise}", functionals(G, squares, M, noise), brute)
    refuted(functionals(G, np.roll(squares, 1), M, noise), brute)  # the residuals of other batches


def test_single_precision_still_works_after_a_program_in_double():
    """JAX remembers constants by identity: arrays that both precisions shared failed after a mixture of rank two."""
    environments = matrix_environments(4, THREE)
    read(gs.FreshGaussian(2), environments, product_like(environments), 280)
    np.testing.assert_allclose(SymmetricMatrices(2).coordinates(OFF), reference.svec(OFF), rtol=1e-6)


def test_mixture_in_blocks(monkeypatch):
    """A continuous law goes block by block; a batch that ends inside a block has the right law too."""
    monkeypatch.setattr(fresh_gaussian, "BLOCK", 4)
    environments = matrix_environments(3, CONTINUOUS)
    A = product_like(environments)
    M = np.asarray(A - environments.mean_target)
    ours = functionals(*read(gs.FreshGaussian(6), environments, A, 290), M)
    holds("blocks", ours, functionals(*brute_force(environments, A, 6, 0.0, 291, draw=uniform(0.5, 3.0, 1)), M))


def test_wrong_laws_are_refuted():
    """Each has one mistake: as many samples of each environment as its weight says, one Sigma for all samples, wide rows."""
    environments, count = matrix_environments(4, gs.Finite([-6.0, 6.0])), 4 * N
    A, V = product_like(environments), environments.spurious_basis
    halves = [brute_force(environments, A, 2, 0.0, 5 + e, e, count=count) for e in (0, 1)]
    counted = functionals(*(sum(pair) / 2 for pair in zip(*halves, strict=True)), V @ V.T)
    refuted(counted, functionals(*brute_force(environments, A, 4, 0.0, 7, count=count), V @ V.T))

    environments = matrix_environments(4, CONTINUOUS)
    shared = np.repeat(uniform(0.5, 3.0, 1)(np.random.default_rng(7), (N, 1)), 40, axis=1)
    one = functionals(*brute_force(environments, A, 40, 0.0, 8, draw=lambda rng, lead: shared), V @ V.T)
    refuted(one, functionals(*read(gs.FreshGaussian(40), environments, A, 295), V @ V.T))

    A = product_like(RECTANGLE)
    M = np.asarray(A - RECTANGLE.target(TWO.values[1]))
    Z = np.random.default_rng(510).standard_normal((N, 6, *M.shape)) * np.array([1.0, 2.0, 2.0, 2.0])[:, None]
    w = np.tensordot(Z, M, axes=2)
    wide = functionals(np.einsum("nm,nm...->n...", w, Z) / 6, np.mean(w**2, axis=1), M)
    refuted(wide, functionals(*read(gs.FreshGaussian(6), RECTANGLE, A, 500, index=1), M))


# --- rank-one samples -----------------------------------------------------------------------------


@pytest.mark.parametrize("index", [1, None])
def test_truncated_rank_one_batch(index):
    """Algorithm 4, one environment and a mixture: large predictions are left out of the gradient, not of the mean response."""
    environments, samples = matrix_environments(4, TWO), gs.RankOne(6, truncation=4.0, noise=0.7)
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


# --- fixed designs --------------------------------------------------------------------------------


def following(b, y, m):
    """The next question, made of the last one and its answer: adaptive, as gradient descent is."""
    b = 0.7 * b + y / m - 0.4 * (b * y).sum(-1, keepdims=True) / m * b[..., ::-1]
    return b / (b**2).sum(-1, keepdims=True) ** 0.5


def engine(design, key, b, m):
    return fixed.gram_product(design, key, jnp.zeros((), dtype=jnp.int32), b, m)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _answers(keys, m, D, steps):
    def one(key):
        def step(carry, t):
            design, b = carry
            y, design = engine(design, jax.random.fold_in(key, t), b, m)
            return (design, following(b, y, m)), y

        return jax.lax.scan(step, (fixed.nothing_revealed(1, D, D), jnp.ones(D) / jnp.sqrt(D)), jnp.arange(steps))[1]

    return jax.vmap(one)(keys)


def fixed_answers(kind: str, D: int, m: int, steps: int) -> dict[str, np.ndarray]:
    """Functionals of the answers of N designs to a sequence of questions."""
    if kind == "brute":
        X = np.random.default_rng(m + D).standard_normal((N, m, D))
        b, Y = np.ones((N, D)) / np.sqrt(D), []
        for _ in range(steps):
            Y.append(np.einsum("nij,nik,nk->nj", X, X, b, optimize=True))
            b = following(b, Y[-1], m)
        Y = np.stack(Y, axis=1)
    else:
        with double():
            keys = jax.random.split(jax.random.key(31 * m + D), N)
            Y = np.asarray(_answers(keys, jnp.asarray(float(m)), D, steps))
    first, middle, last = Y[:, 0], Y[:, steps // 2], Y[:, -1]
    return {
        "first": np.sum(first**2, axis=1),
        "middle": middle[:, 0],
        "last": last.max(axis=1),
        "cross": np.sum(first * last, axis=1),
        "spread": np.linalg.norm(last, axis=1),
        "sum": np.linalg.norm(Y.sum(axis=1), axis=1),
    }


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("m", [1, 3, 5, 12])
def test_fixed_design_answers_adaptive_questions(m):
    """m = 1, m < D, m = D and m > D; seven questions in five dimensions, so the span fills up."""
    holds(f"fixed {m}", fixed_answers("engine", 5, m, 7), fixed_answers("brute", 5, m, 7))


@pytest.mark.usefixtures("optimised")
def test_revealed_gram_matrix_is_a_wishart_sample():
    D, m = 4, 7
    with double():

        def gram(key):
            def ask(design, ik):
                y, design = engine(design, ik[1], ik[0], jnp.asarray(float(m)))
                return design, y

            questions = jnp.concatenate([jnp.ones((1, D)), jnp.eye(D)])  # D + 1: the last is in the span
            design, _ = jax.lax.scan(ask, fixed.nothing_revealed(1, D, D), (questions, jax.random.split(key, D + 1)))
            return jax.lax.scan(ask, design, (jnp.eye(D), jax.random.split(key, D)))[1]

        found = np.asarray(jax.jit(jax.vmap(gram))(jax.random.split(jax.random.key(5), N)))
    np.testing.assert_allclose(found, np.swapaxes(found, 1, 2), atol=1e-11)  # rounding of numbers of about 30
    X = np.random.default_rng(6).standard_normal((N, m, D))
    sets = [np.linalg.eigvalsh(G) for G in (found, np.swapaxes(X, 1, 2) @ X)]
    ours, brute = ({"smallest": v[:, 0], "largest": v[:, -1], "trace": v.sum(axis=1)} for v in sets)
    holds("wishart", ours, brute)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("m", [40.0, 1000.0])
def test_fixed_design_is_one_matrix(m):
    """300 questions in 400 dimensions: directions stay orthonormal, answers repeat and are symmetric."""
    D, questions = 400, 300
    with double():
        rng = np.random.default_rng(7)
        # Questions that nearly repeat, the hard case of Gram-Schmidt: all within 1e-3 of a ten-dimensional space.
        B = rng.standard_normal((questions, 10)) @ rng.standard_normal((10, D))
        B = B + 1e-3 * rng.standard_normal((questions, D))

        def ask(design, bk):
            y, design = engine(design, bk[1], bk[0], jnp.asarray(m))
            return design, y

        keys = jax.random.split(jax.random.key(8), questions)
        scan = jax.jit(lambda design, B, keys: jax.lax.scan(ask, design, (B, keys)))
        design, Y = scan(fixed.nothing_revealed(1, D, D), jnp.asarray(B), keys)
        known = int(design.known[0])
        assert known == min(m, questions)
        pages = np.asarray(design.table[0, : -(-known // design.directions.shape[1])])
        Q = np.asarray(design.directions)[pages].reshape(-1, D)[:known]
        np.testing.assert_allclose(Q @ Q.T, np.eye(known), atol=1e-12)
        other = jax.random.split(jax.random.key(9), questions)
        after, again = scan(design, jnp.asarray(B), other)
    assert int(after.known[0]) == known
    Y, again = np.asarray(Y), np.asarray(again)
    size = np.abs(Y).max()
    # Once the span holds a question its answer is fixed, whatever the key. The first answer to it came before
    # later rows existed; those rows are orthogonal to it up to rounding.
    np.testing.assert_allclose(again, Y, atol=1e-11 * size)
    C = B @ again.T
    np.testing.assert_allclose(C, C.T, atol=1e-11 * np.abs(C).max())


# --- whole trajectories ---------------------------------------------------------------------------

TRAJECTORY_LAW = gs.Finite([-0.5, 1.5], [0.5, 0.5])


class ManyAtOnce(gs.measurements.Measurements):
    """Small designs fit in the caches together: two thousand runs in a few calls. Such a call does not say its demand."""

    @property
    def vectorises(self) -> bool:
        return True

    def init(self, key, environments, space, demand):
        return super().init(key, environments, space, demand._replace(queries=28))


class FixedGaussians(ManyAtOnce, gs.FixedGaussian):
    """Exact in law."""


class Designs(ManyAtOnce, gs.Dense):
    """Written out."""


def trajectories(algorithm, measurements, steps, seed, environments=None) -> dict[str, np.ndarray]:
    """Final and half-way values of N runs."""
    problem = gs.Problem(matrix_environments(3, TRAJECTORY_LAW) if environments is None else environments, measurements)
    record, at = ["signal", "spurious", "error", "distance", "singular_values"], [steps // 2, steps]
    paths = gs.run(
        algorithm, problem, num_steps=steps, seeds=N, seed=seed, record=record, record_at=at, reduction="never"
    )
    assert np.isinf(paths.diverged).all()
    values = {f"{name} {t}": paths[name].sel(step=t).values for name in record[:-1] for t in at}
    return values | {"top": paths.singular_values.isel(step=-1, singular_value=0).values}


# T = 14 steps of up to two questions in D = 6 (+1 for the noise) dimensions: T > D, and T > m for m = 4.
@pytest.mark.parametrize("name", ["HeteroSGD", "PooledGD"])
def test_trajectories_on_fixed_data(name):
    algorithm = getattr(gs, name)(0.08, init_scale=0.5)
    for j, (m, noise) in enumerate([(4, 0.0), (4, 0.5)] + [(15, 0.5)] * (name == "HeteroSGD")):
        ours = trajectories(algorithm, FixedGaussians(m, noise=noise), 14, 300 + j)
        holds(f"{name} fixed {m} {noise}", ours, trajectories(algorithm, Designs(m, noise=noise), 14, 350 + j))
        if j == 0:  # the test can fail: data drawn again at every step have another law
            refuted(ours, trajectories(algorithm, gs.FreshGaussian(4), 14, 380))


@pytest.mark.parametrize("name", ["HeteroSGD", "PooledSGD"])
def test_trajectories_on_fresh_data(name):
    algorithm = getattr(gs, name)(0.08, init_scale=0.5)
    ours = trajectories(algorithm, gs.FreshGaussian(4, noise=0.5), 14, 400)
    holds(f"{name} fresh", ours, trajectories(algorithm, gs.Dense(4, redraw=True, noise=0.5), 14, 401))


def test_trajectories_on_a_rectangle():
    """PrecGD uses the gradient and the residual in every step; F and G start at the same values in every run."""
    start = gs.starts.Given(0.6 * np.eye(4, 2), 0.4 * np.eye(3, 2))
    algorithm, environments = gs.PrecGD(0.15, width=2, start=start), rectangular(TRAJECTORY_LAW)
    ours = trajectories(algorithm, FixedGaussians(9, noise=0.3), 8, 600, environments)
    holds("rectangle fixed", ours, trajectories(algorithm, Designs(9, noise=0.3), 8, 601, environments))
    refuted(ours, trajectories(algorithm, gs.FreshGaussian(9, noise=0.3), 8, 602, environments))


# --- the family -----------------------------------------------------------------------------------


def test_family_of_comparisons():
    """All p-values together: none below the Bonferroni level, and uniform over comparisons."""
    if len(P) < 30:
        pytest.skip("needs the other tests of this file")
    everything = [p for group in P.values() for p in group.values()]
    assert min(everything) > LEVEL / len(everything)
    # Functionals of one sample are dependent, comparisons are not: one p-value per comparison, of a different functional
    # each time.
    one_each = [list(group.values())[i % len(group)] for i, group in enumerate(P.values())]
    assert stats.kstest(one_each, "uniform").pvalue > LEVEL
    # The test can fail: a comparison of a sample with a copy of most of itself would give large p-values only.
    assert stats.kstest(np.asarray(one_each) ** 0.2, "uniform").pvalue < LEVEL
