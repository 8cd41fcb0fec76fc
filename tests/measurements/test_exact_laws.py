"""The measurements that are exact in law against brute force, by two-sample tests.

Every comparison is a Kolmogorov-Smirnov test of one functional of the answer; the p-values of the whole
file are collected and judged together (Bonferroni at a family level of 1e-3), and must be uniform. Keys
are fixed, so the file is deterministic. Wrong laws, each with one deliberate mistake, must be rejected by
the same tests.
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
from gyrostat.engine.one_run import RunPart, RunPlan, continue_run, start_run
from gyrostat.engine.reduction.choose import Reduction
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import fixed_gaussian as fixed
from gyrostat.measurements import fresh_gaussian
from gyrostat.measurements.base import Demand, Scene
from gyrostat.models.spaces import RectangularMatrices, SymmetricMatrices, Vectors

N = 2000
LEVEL = 1e-3
REFUTED = 1e-9
P: dict[str, dict[str, float]] = {}
"""All p-values of the right laws: comparison -> functional -> p."""


def functionals(G: np.ndarray, M: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers that tell laws of matrices (n, d, d) or (n, n1, n2), or of vectors (n, d), apart; M is the residual."""
    n = len(G)
    flat, unit = G.reshape(n, -1), M.ravel() / np.linalg.norm(M)
    along = flat @ unit
    rest = np.linalg.norm(flat - along[:, None] * unit, axis=1)
    a = np.random.default_rng(99).standard_normal(G.shape[-1])
    found = {"along": along, "rest": rest, "ratio": rest**2 / along}
    if G.ndim == 3 and G.shape[1] != G.shape[2]:
        values = np.linalg.svd(G, compute_uv=False)
        found |= {"largest": values[:, 0], "smallest": values[:, -1], "sum": G.sum(axis=(1, 2))}
        b = np.random.default_rng(98).standard_normal(G.shape[1])
        found |= {"form": np.einsum("nij,i,j->n", G, b, a), "entry": G[:, 0, -1], "cube": (G**3).sum(axis=(1, 2))}
    elif G.ndim == 3:
        values = np.linalg.eigvalsh(G)
        found |= {"largest": values[:, -1], "smallest": values[:, 0], "trace": values.sum(axis=1)}
        found |= {
            "form": np.einsum("nij,i,j->n", G, a, a),
            "entry": G[:, 0, -1],
            "cube": (values**3).sum(axis=1),
        }
    else:
        found |= {"largest": G.max(axis=1), "smallest": G.min(axis=1), "trace": G.sum(axis=1)}
        found |= {"form": (G @ a) ** 2, "entry": G[:, -1], "cube": (G**3).sum(axis=1)}
    return found


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
def _ask(measurements, environments, space, product, keys, environment=None):
    scene = Scene(environments, space, product)
    if environment is None:
        return jax.vmap(lambda k: measurements.mix(None, k, scene)[0][:2])(keys)
    return jax.vmap(lambda k: measurements.sense(None, k, scene, environment)[0][:2])(keys)


def ask(measurements, environments, product, seed, index=None) -> np.ndarray:
    """N independent gradients, of environment ``index`` or of the mixture."""
    return ask_both(measurements, environments, product, seed, index)[0]


def ask_both(measurements, environments, product, seed, index=None) -> tuple[np.ndarray, np.ndarray]:
    """N independent gradients, each with the mean square residual of its batch."""
    with double():
        if product.ndim == 1:
            space = Vectors(len(product))
        else:
            square = product.shape[0] == product.shape[1]
            space = SymmetricMatrices(len(product)) if square else RectangularMatrices(*product.shape)
        environment = None if index is None else jax.tree.map(jnp.asarray, environments.law.at(index))
        # Arrays, so that other numbers in the same shapes do not compile again.
        measurements, environments = jax.tree.map(jnp.asarray, (measurements, environments))
        keys = jax.random.split(jax.random.key(seed), N)
        gradients, squares = _ask(measurements, environments, space, jnp.asarray(product), keys, environment)
        return np.asarray(gradients), np.asarray(squares)


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


TWO = gs.Finite([-1.0, 2.5], [0.3, 0.7])
OFF = np.array([[1.0, 0.8], [0.8, -0.5]])
THREE = gs.Finite([OFF, -2 * OFF, 3 * np.eye(2)], [0.5, 0.2, 0.3])
SENSE = [
    (environments, m, noise)
    for environments in (matrix_environments(4, TWO), vector_environments(TWO))
    for m, noise in [(1, 0.0), (2, 0.0), (2, 0.7), (6, 0.0), (6, 0.7), (40, 0.7)]
]


@pytest.mark.parametrize("i", range(len(SENSE)))
def test_fresh_batch_of_one_environment(i):
    environments, m, noise = SENSE[i]
    A = product_like(environments)
    M = np.asarray(A - environments.target(TWO.values[1]))
    ours = ask(gs.FreshGaussian(m, noise=noise), environments, A, 100 + i, index=1)
    brute = reference.sense(np.random.default_rng(i), M, m, noise, N)
    holds(f"sense {i}", functionals(ours, M), functionals(brute, M))


def test_dense_redrawn_is_the_brute_force():
    environments = matrix_environments(4, TWO)
    A = product_like(environments)
    M = np.asarray(A - environments.target(TWO.values[0]))
    ours = ask(gs.Dense(6, redraw=True, noise=0.7), environments, A, 150, index=0)
    holds(
        "dense",
        functionals(ours, M),
        functionals(reference.sense(np.random.default_rng(50), M, 6, 0.7, N), M),
    )
    ours = ask(gs.Dense(6, redraw=True, noise=0.7), environments, A, 151)
    holds("dense mix", functionals(ours, M), functionals(mixed(environments, A, 6, 0.7, 51), M))


def mixed(environments, A, m, noise, seed, draw=None, count=N) -> np.ndarray:
    """A mixed batch by brute force: every Sigma is drawn by NumPy."""
    return mixed_both(environments, A, m, noise, seed, draw, count)[0]


def mixed_both(environments, A, m, noise, seed, draw=None, count=N) -> tuple[np.ndarray, np.ndarray]:
    """The same, with mean square residuals."""
    rng = np.random.default_rng(seed)
    law, V, Z = environments.law, environments.spurious_basis, environments.right_spurious_basis
    if draw is None:  # a finite law
        draw = lambda rng, lead: law.values[rng.choice(law.count, size=lead, p=law.weights)]  # noqa: E731
    sigmas = draw(rng, (count, m))
    spurious = np.diagonal(sigmas, axis1=2, axis2=3) @ V.T if A.ndim == 1 else V @ sigmas @ Z.T
    return reference.readings(rng, np.asarray(A - environments.invariant) - spurious, noise)


def _uniform(centre, spread, rank):
    def draw(rng, lead):
        return (centre + spread * rng.uniform(-1, 1, (*lead, rank)))[..., None] * np.eye(rank)

    return draw


CONTINUOUS = gs.Uniform(mean=0.5, spread=3.0)
PLANE = gs.Uniform(mean=0.5, spread=3.0, rank=2, independent=True)
MIX = [
    (matrix_environments(4, TWO), None, [(1, 0.0), (2, 0.5), (6, 0.0), (40, 0.5)]),
    (matrix_environments(4, THREE), None, [(2, 0.0), (6, 0.5), (40, 0.0)]),
    (
        vector_environments(gs.Finite([[1.0, 2.0], [-3.0, 0.5], [0.0, 4.0]], [0.5, 0.2, 0.3])),
        None,
        [(3, 0.5), (20, 0.0)],
    ),
    (matrix_environments(4, CONTINUOUS), _uniform(0.5, 3.0, 1), [(2, 0.0), (6, 0.5)]),
    (vector_environments(PLANE), _uniform(0.5, 3.0, 2), [(6, 0.0)]),
]


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("i", range(len(MIX)))
def test_fresh_mixture(i):
    environments, draw, sizes = MIX[i]
    A = product_like(environments)
    M = np.asarray(A - environments.mean_target)
    for j, (m, noise) in enumerate(sizes):
        ours = ask(gs.FreshGaussian(m, noise=noise), environments, A, 200 + 10 * i + j)
        brute = mixed(environments, A, m, noise, 200 + 10 * i + j, draw)
        holds(f"mix {i} {j}", functionals(ours, M), functionals(brute, M))


def test_single_precision_still_works_after_a_program_in_double():
    """JAX remembers constants by identity: arrays that both precisions shared failed after a mixture of rank two."""
    environments = matrix_environments(4, THREE)
    ask(gs.FreshGaussian(2), environments, product_like(environments), 280)
    np.testing.assert_allclose(SymmetricMatrices(2).coordinates(OFF), reference.svec(OFF), rtol=1e-6)


def test_mixture_in_blocks(monkeypatch):
    """A continuous law goes block by block; a batch that ends inside a block has the right law too."""
    monkeypatch.setattr(fresh_gaussian, "BLOCK", 4)
    environments = matrix_environments(3, CONTINUOUS)
    A = product_like(environments)
    M = np.asarray(A - environments.mean_target)
    ours = ask(gs.FreshGaussian(6), environments, A, 290)
    brute = mixed(environments, A, 6, 0.0, 291, _uniform(0.5, 3.0, 1))
    holds("mix blocks", functionals(ours, M), functionals(brute, M))


def test_mixture_without_multinomial_counts_is_refuted():
    """A fixed number of samples of each environment, by its weight, instead of a random number."""
    law = gs.Finite([-6.0, 6.0])
    environments = matrix_environments(4, law)
    A, V = product_like(environments), environments.spurious_basis
    rng, count = np.random.default_rng(5), 4 * N
    halves = [reference.sense(rng, np.asarray(A - environments.target(s)), 2, 0.0, count) for s in law.values]
    brute = functionals(mixed(environments, A, 4, 0.0, 6, count=count), V @ V.T)
    refuted(functionals((halves[0] + halves[1]) / 2, V @ V.T), brute)


def test_one_environment_per_batch_is_not_a_mixture():
    environments = matrix_environments(4, CONTINUOUS)
    A, V = product_like(environments), environments.spurious_basis
    shared = np.repeat(_uniform(0.5, 3.0, 1)(np.random.default_rng(7), (N, 1)), 40, axis=1)
    one = mixed(environments, A, 40, 0.0, 8, lambda rng, lead: shared)
    refuted(functionals(one, V @ V.T), functionals(ask(gs.FreshGaussian(40), environments, A, 295), V @ V.T))


# --- rectangular targets, and the residual beside the gradient ------------------------------------

RECTANGLE = rectangular(TWO)


@pytest.mark.parametrize("i", range(3))
def test_fresh_batch_on_a_rectangle(i):
    m, noise = [(1, 0.0), (2, 0.7), (6, 0.7)][i]
    A = product_like(RECTANGLE)
    M = np.asarray(A - RECTANGLE.target(TWO.values[1]))
    ours = functionals(ask(gs.FreshGaussian(m, noise=noise), RECTANGLE, A, 500 + i, index=1), M)
    holds(f"rectangle {i}", ours, functionals(reference.sense(np.random.default_rng(500 + i), M, m, noise, N), M))
    # The test can fail: a Gaussian with the same first coordinate whose other rows are twice as wide.
    Z = np.random.default_rng(510 + i).standard_normal((N, m, *M.shape)) * np.array([1.0, 2.0, 2.0, 2.0])[:, None]
    w = np.tensordot(Z, M, axes=2) - noise * np.random.default_rng(520 + i).standard_normal((N, m))
    refuted(ours, functionals(np.einsum("nm,nm...->n...", w, Z) / m, M))


def test_fresh_mixture_on_a_rectangle():
    A = product_like(RECTANGLE)
    M = np.asarray(A - RECTANGLE.mean_target)
    for j, (m, noise) in enumerate([(2, 0.5), (6, 0.0)]):
        ours = functionals(ask(gs.FreshGaussian(m, noise=noise), RECTANGLE, A, 530 + j), M)
        holds(f"rectangle mix {j}", ours, functionals(mixed(RECTANGLE, A, m, noise, 530 + j), M))


def joint(G: np.ndarray, square: np.ndarray, M: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers that tell joint laws of a gradient and of the mean square residual apart."""
    flat = G.reshape(len(G), -1)
    along, entry = flat @ (M.ravel() / np.linalg.norm(M)), flat[:, -1]
    size = np.linalg.norm(flat, axis=1)
    return {
        "square": square,
        "square against along": square - along * np.linalg.norm(M),
        "square times entry": square * entry,
        "size over root": size / np.sqrt(square),
    }


@pytest.mark.parametrize("i", range(5))
def test_residual_belongs_to_its_gradient(i):
    """The same programs as above with other keys: (gradient, residual) together, for one environment and for mixtures."""
    environments, index, draw, kind = [
        (matrix_environments(4, TWO), 1, None, gs.FreshGaussian),
        (matrix_environments(4, TWO), None, None, gs.FreshGaussian),
        (matrix_environments(4, CONTINUOUS), None, _uniform(0.5, 3.0, 1), gs.FreshGaussian),
        (matrix_environments(4, TWO), None, None, functools.partial(gs.Dense, redraw=True)),
        (RECTANGLE, 0, None, gs.FreshGaussian),
    ][i]
    A, m, noise = product_like(environments), 6, 0.7
    M = np.asarray(A - (environments.mean_target if index is None else environments.target(TWO.values[index])))
    G, square = ask_both(kind(m, noise=noise), environments, A, 540 + i, index)
    if index is None:
        brute = mixed_both(environments, A, m, noise, 540 + i, draw)
    else:
        brute = reference.readings(np.random.default_rng(540 + i), np.broadcast_to(M, (N, m, *M.shape)), noise)
    holds(f"joint {i}", joint(G, square, M), joint(*brute, M))
    refuted(joint(G, np.roll(square, 1), M), joint(*brute, M))  # the residual of another batch


# --- rank-one samples -----------------------------------------------------------------------------


@pytest.mark.parametrize("index", [1, None])
def test_truncated_rank_one_batch(index):
    """Algorithm 4, one environment and a mixture: large predictions are left out of the gradient, not of the mean response."""
    environments, samples = matrix_environments(4, TWO), gs.RankOne(6, truncation=4.0, noise=0.7)
    A = product_like(environments)
    A = 2 * A @ A.T / np.trace(A @ A.T)  # one sample in eight has a prediction above 4

    def read(key):
        scene = Scene(environments, SymmetricMatrices(4), jnp.asarray(A))
        reading = samples.mix((), key, scene) if index is None else samples.sense((), key, scene, TWO.at(index))
        return reading[0].gradient, reading[0].response_mean

    with double():
        G, response = map(np.asarray, jax.jit(jax.vmap(read))(jax.random.split(jax.random.key(560), N)))
    rng = np.random.default_rng(561)
    x, noise = rng.standard_normal((N, 6, 4)), 0.7 * rng.standard_normal((N, 6))
    chosen = rng.choice(2, p=TWO.weights, size=(N, 6)) if index is None else np.full((N, 6), index)
    targets = np.stack([np.asarray(environments.target(sigma)) for sigma in TWO.values])
    y = np.einsum("nmi,nmij,nmj->nm", x, targets[chosen], x) + noise

    def brute(truncation, responses):
        G = np.stack([reference.rank_one_gradient(A, *sample, truncation) for sample in zip(x, y, strict=True)])
        return functionals(G, A) | {"response": responses, "response times entry": responses * G[:, 0, -1]}

    ours = functionals(G, A) | {"response": response, "response times entry": response * G[:, 0, -1]}
    holds(f"rank one {index}", ours, brute(4.0, y.mean(axis=1)))
    refuted(ours, brute(np.inf, y.mean(axis=1)))  # nothing is left out
    refuted(ours, brute(4.0, np.einsum("nmi,ij,nmj->nm", x, A, x).mean(axis=1)))  # the mean prediction


# --- fixed designs --------------------------------------------------------------------------------


def empty_design(D: int, K: int = 1) -> fixed.RevealedDesign:
    rows = fixed.page_rows(D)
    pages = K * -(-D // rows) + 1
    zeros = jnp.zeros((pages, rows, D))
    table = jnp.zeros((K, pages + 1), dtype=jnp.int32)
    return fixed.RevealedDesign(zeros, zeros, table, jnp.zeros(K, dtype=jnp.int32), jnp.zeros((), dtype=jnp.int32))


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

        return jax.lax.scan(step, (empty_design(D), jnp.ones(D) / jnp.sqrt(D)), jnp.arange(steps))[1]

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
            design, _ = jax.lax.scan(ask, empty_design(D), (questions, jax.random.split(key, D + 1)))
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
        # Questions that nearly repeat, the hard case of Gram-Schmidt: all within 1e-3 of a ten-dimensional
        # space.
        B = rng.standard_normal((questions, 10)) @ rng.standard_normal((10, D)) + 1e-3 * rng.standard_normal(
            (questions, D)
        )

        def ask(design, bk):
            y, design = engine(design, bk[1], bk[0], jnp.asarray(m))
            return design, y

        keys = jax.random.split(jax.random.key(8), questions)
        scan = jax.jit(lambda design, B, keys: jax.lax.scan(ask, design, (B, keys)))
        design, Y = scan(empty_design(D), jnp.asarray(B), keys)
        known = int(design.known[0])
        assert known == min(m, questions)
        pages = np.asarray(design.table[0, : -(-known // fixed.page_rows(D))])
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
DIAGNOSTICS = ("signal", "spurious", "error", "distance", "singular_values")


@eqx.filter_jit
def _lanes(algorithm, problem, keys, grid, plan):
    def one(key):
        start = start_run(algorithm, problem, key, plan, grid.dtype)
        whole = RunPart(0, grid[-1], 0, grid.size)
        _, values, ends = continue_run(algorithm, problem, key, grid, jnp.zeros(()), plan, start, whole)
        return values | ends

    return jax.vmap(one)(keys)


def trajectories(algorithm, measurements, steps, seed, environments=None) -> dict[str, np.ndarray]:
    """Final and half-way values of N runs of the loop itself."""
    from gyrostat.diagnostics.base import resolve

    problem = gs.Problem(matrix_environments(3, TRAJECTORY_LAW) if environments is None else environments, measurements)
    demand = Demand(steps * algorithm.batches.queries(problem.environments.law), algorithm.batches.mixes)
    plan = RunPlan(resolve(DIAGNOSTICS), demand, reduction=Reduction(), has_tolerance=False)
    with double():
        keys = jax.random.split(jax.random.key(seed), N)
        grid = jnp.asarray([steps // 2, steps])
        arrays, static = eqx.partition((algorithm, problem), eqx.is_array_like)
        algorithm, problem = eqx.combine(jax.tree.map(jnp.asarray, arrays), static)
        values = _lanes(algorithm, problem, keys, grid, plan)
    assert (np.asarray(values.pop("diverged")) == -1).all()
    found = {f"{n} {at}": np.asarray(values[n][:, at]) for n in DIAGNOSTICS[:-1] for at in (0, 1)}
    return found | {"top": np.asarray(values["singular_values"][:, 1, 0])}


# T = 14 steps of up to two questions in D = 6 (+1 for the noise) dimensions: T > D, and T > m for m = 4.
@pytest.mark.parametrize("name", ["HeteroSGD", "PooledGD"])
def test_trajectories_on_fixed_data(name):
    algorithm = getattr(gs, name)(0.08, init_scale=0.5)
    sizes = [(4, 0.0), (4, 0.5)] + [(15, 0.5)] * (name == "HeteroSGD")
    for j, (m, noise) in enumerate(sizes):
        ours = trajectories(algorithm, gs.FixedGaussian(m, noise=noise), 14, 300 + j)
        brute = trajectories(algorithm, gs.Dense(m, noise=noise), 14, 350 + j)
        holds(f"{name} fixed {m} {noise}", ours, brute)
        if j == 0:
            last = ours
    # The test can fail: data drawn again at every step have another law.
    refuted(last, trajectories(algorithm, gs.FreshGaussian(4), 14, 380))


@pytest.mark.parametrize("name", ["HeteroSGD", "PooledSGD"])
def test_trajectories_on_fresh_data(name):
    algorithm = getattr(gs, name)(0.08, init_scale=0.5)
    ours = trajectories(algorithm, gs.FreshGaussian(4, noise=0.5), 14, 400)
    brute = trajectories(algorithm, gs.Dense(4, redraw=True, noise=0.5), 14, 401)
    holds(f"{name} fresh", ours, brute)


def test_trajectories_on_a_rectangle():
    """PrecGD uses the gradient and the residual in every step; F and G start at the same values in every run."""
    start = gs.Given(0.6 * np.eye(4, 2), 0.4 * np.eye(3, 2))
    algorithm, environments = gs.PrecGD(0.15, width=2, start=start), rectangular(TRAJECTORY_LAW)
    ours = trajectories(algorithm, gs.FixedGaussian(9, noise=0.3), 8, 600, environments)
    holds("rectangle fixed", ours, trajectories(algorithm, gs.Dense(9, noise=0.3), 8, 601, environments))
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
