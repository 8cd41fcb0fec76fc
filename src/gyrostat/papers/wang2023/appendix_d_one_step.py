"""Appendix D, step by step: what one step of SGD does to the norms, the balance and the approximate rank of the layers."""

import jax.numpy as jnp
import numpy as np

import gyrostat as gs
from gyrostat.experiments import Inequalities, claim, inequality
from gyrostat.figures.compose import dots, figure, panel
from gyrostat.figures.declarations import Marker
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import Reading
from gyrostat.measurements.base import EntryGradient
from gyrostat.papers.wang2023.layers import balanced, f, f_prime, imbalance, product, pulls, transposed

DEPTH, EXCESS = 3, 0.4
STEPS = (0.001, 0.01, 0.1)
RIDGES = (2.0, 1.0, 0.5, 0.2, 0.1)


class ProofSetting:
    """The constants of Theorem B.1 and what the proofs make of them."""

    def __init__(self, ridge, side, rank, largest):
        self.ridge, self.side, self.rank, self.largest = ridge, side, rank, largest
        self.region = gs.theory.wang2023.absorbing(ridge, DEPTH, side, rank=rank, largest=largest, excess=EXCESS).region
        self.C, self.alpha = self.region.bound, self.region.alpha
        self.K = 2 * (largest**2 + self.C**DEPTH)
        self.noise = self.K * self.C ** (DEPTH - 1) + ridge**2 * self.C
        self.spread = self.C ** ((DEPTH - 1) / 2) * DEPTH * self.region.balance**0.5
        # Theorem D.5 asks less of eta than Theorem B.1.
        self.step_size = min(
            ridge * self.alpha * EXCESS / (32 * side * (rank + 1) * self.noise), 2 * (rank + 1) / ridge
        )

    def squares(self, rng, low, high):
        """Squares of singular values in B_r: r large ones, others with an approximate rank of low to high times epsilon_2."""
        if self.alpha > self.C:  # the bound on the norm says more than that on the rank
            return self.C * rng.dirichlet(np.full(self.side, 0.2))
        parts = rng.dirichlet(np.ones(self.side - self.rank)) * EXCESS * rng.uniform(low, high)
        small = self.alpha * (1 - np.sqrt(1 - parts))
        large = self.alpha + (self.C - small.sum() - self.alpha) * rng.uniform(0, 1, self.rank) ** 0.3
        return np.concatenate([large, small])

    def at_the_limit_of_imbalance(self, rng, squares):
        """Layers that are epsilon_1 out of balance: each smaller than the one before, or larger, or moved at random."""
        W, epsilon = balanced(rng, squares, DEPTH), self.region.balance
        order = np.arange(DEPTH)[:, None, None]
        moves = (-order * W, order * W, rng.standard_normal(W.shape))[rng.integers(3)]
        scale = epsilon
        for _ in range(6):
            scale *= epsilon / np.linalg.norm(imbalance(W + scale * moves), 2, (1, 2)).max()
        W = W + scale * moves
        return W * min(1, (self.C / np.sum(W * W, (1, 2)).max()) ** 0.5)

    def slopes(self, W):
        """Singular values, f' of their squares, and f'(W^T W), of every layer."""
        _, s, V = np.linalg.svd(W)
        slopes = f_prime(s**2, self.alpha)
        return s, slopes, transposed(V) @ (slopes[..., None] * V)

    def drift(self, squares):
        """The growth 2 E + beta / eta and the decay 2 delta, with beta at the bound of Lemma D.6."""
        slopes = f_prime(squares, self.alpha)
        delta = np.sum(slopes * (self.ridge * squares - self.K**0.5 * squares ** (DEPTH / 2)))
        return (2 * self.K**0.5 * self.spread + 2 * self.step_size * self.noise) * slopes.sum(), 2 * delta


ONE = ProofSetting(ridge=0.5, side=3, rank=1, largest=1.0)
"""Constants of order one: C = C_1 / (2 lambda) = 1."""
SMALL = ProofSetting(ridge=0.1, side=2, rank=1, largest=0.089)
"""Small targets, so that C is below alpha, and epsilon_1 is 0.4 % of C: terms of order epsilon_1 are near their bounds."""
EQUAL = ProofSetting(ridge=0.005, side=2, rank=0, largest=0.00444)
"""Here the two bounds on eta in Theorem D.5 are equal to a percent, where Lemma D.8 is sharp."""


def gradient(W, setting=ONE, entry=(0, 0)):
    """The error at the entry that a step sees, and T_l for every layer."""
    A = product(W)
    G = np.zeros_like(A)
    G[entry] = A[entry] - setting.largest
    return G[entry], np.array(pulls(W, G))


def on_the_boundary(rng, count, side, C):
    """Layers with ||W||^2 = C: random ones, and two of rank one whose product is at one entry, of either sign."""
    random, aligned = rng.standard_normal((count, DEPTH, side, side)), np.zeros((2, DEPTH, side, side))
    aligned[:, :, 0, 0] = C**0.5
    aligned[1, -1] *= -1
    return np.concatenate([random / np.linalg.norm(random, axis=(2, 3), keepdims=True) * C**0.5, aligned])


def norm_multiple(rng, ridge):
    """D.2: the least step at which a layer on the boundary ||W||^2 = C leaves, over the bound of its proof."""
    C1, C = ONE.largest**2, ONE.largest**2 / (2 * ridge)
    bound = C1 / (4 * (2 * (C1 + C**DEPTH) * C ** (DEPTH - 1) + ridge**2 * C))
    W = on_the_boundary(rng, 20, ONE.side, C)
    D = np.array([gradient(layers)[1] for layers in W]) + ridge * W
    # ||W - eta D||^2 = C at eta = 2 <W, D> / ||D||^2
    return (2 * np.sum(W * D, (2, 3)) / np.sum(D * D, (2, 3))).min() / bound


def balance_multiple(rng, ridge, samples):
    """D.3: the least step at which an imbalance of epsilon grows, over its bound; and what steps of .9 and 1.1 of it do.

    After a step the imbalance is ``(1 - eta lambda)^2 D + eta^2 M`` with ``M = T_l T_l^T - T_(l+1)^T T_(l+1)`` (formula 7). An
    imbalance D of size epsilon along the largest eigenvalue mu of M grows from eta = 2 lambda epsilon / (|mu| + lambda^2
    epsilon) on.
    """
    C1, C = ONE.largest**2, ONE.largest**2 / (2 * ridge)
    epsilon = 1e-4 * C

    def mu(W):
        return np.abs(np.linalg.eigvalsh(imbalance(gradient(W)[1])[-1])).max()

    def after(W, eta):
        return np.linalg.norm(imbalance(W - eta * (gradient(W)[1] + ridge * W))[-1], 2)

    W = max((balanced(rng, C * rng.dirichlet(np.full(ONE.side, 0.5)), DEPTH) for _ in range(samples)), key=mu)
    W[-1] = out_of_balance(W, epsilon)
    least = 2 * ridge * epsilon / (mu(W) + ridge**2 * epsilon)
    bound = 2 * ridge * epsilon / (4 * (C1 + C**DEPTH) * C ** (DEPTH - 1) + ridge**2 * epsilon)
    return least / bound, after(W, 0.9 * least) / after(W, 0.0), after(W, 1.1 * least) / after(W, 0.0)


def out_of_balance(W, epsilon):
    """The last layer, out of balance by epsilon along the largest eigenvalue of the last M."""
    values, vectors = np.linalg.eigh(imbalance(gradient(W)[1])[-1])
    k = np.abs(values).argmax()
    U, _, Vt = np.linalg.svd(W[-1])
    squares, turn = np.linalg.eigh(
        W[-1].T @ W[-1] - np.sign(values[k]) * epsilon * np.outer(vectors[:, k], vectors[:, k])
    )
    return U @ Vt @ ((turn * np.sqrt(np.maximum(squares, 0))) @ turn.T)


def identity_gap(rng, single, eta=0.1):
    """Formula (7) for a step of the engine's update rule: its largest deviation, and the size of its second term.

    ``single`` takes the engine's way of single entries, which forms outer products; the other is that of whole matrices.
    """
    side, ridge = ONE.side, ONE.ridge
    model = gs.DeepLinear(DEPTH, side)
    before = np.array([rng.standard_normal(shape) / side**0.5 for shape in model.shapes((side, side))])
    error, T = gradient(before, entry=(1, 0))
    with double():
        entry = EntryGradient(*map(jnp.asarray, (1, 0, error, error + ONE.largest))) if single else None
        whole = jnp.zeros((side, side)).at[1, 0].set(error)
        reading = Reading(whole, jnp.asarray(error**2), jnp.asarray(ONE.largest), entry)
        step = gs.rules.RidgeStep("appendix")
        after = np.array(step(model, tuple(map(jnp.asarray, before)), reading, jnp.asarray(eta), jnp.asarray(ridge)))
    second = eta**2 * imbalance(T)
    return np.abs(imbalance(after) - (1 - eta * ridge) ** 2 * imbalance(before) - second).max(), np.abs(second).max()


class AppendixD(Inequalities):
    """One step of SGD on norms, balance and approximate rank

    Each bound is tested where double precision is enough: with constants of order one, and with small targets, where terms of
    order epsilon_1 and eta^2 come near to their bounds. Shown are the largest ratio of the left to the right side, and the
    least step size that leaves a set, relative to the one that the paper admits.
    """

    source = "Wang 2023, Lemma D.1, Propositions D.2 and D.3, Lemmas D.6 to D.8, formulas (5) to (18)"
    weight = 3

    def instances(self, rng, samples):
        """Layers at the limits of B_r, of imbalance too; layers of the largest norm; and squares of singular values near the
        limit of the rank and farther inside. The setting changes from one instance to the next."""
        for k in range(samples):
            setting, other = ((ONE, ONE), (SMALL, EQUAL))[k % 2]
            W = setting.at_the_limit_of_imbalance(rng, setting.squares(rng, 0.0, 1.0))
            edge = on_the_boundary(rng, 1, setting.side, setting.C)
            yield setting, W, edge, ONE.squares(rng, 0.5, 1.0), other, other.squares(rng, 0.0, 0.5)

    def compute(self, run, samples):
        ds = super().compute(run, samples)
        norms = [norm_multiple(run.rng, ridge) for ridge in RIDGES]
        balance = [balance_multiple(run.rng, ridge, samples) for ridge in RIDGES]
        columns = zip(("norm_multiple", "balance_multiple", "grown_below", "grown_above"), (norms, *zip(*balance)))
        gaps = np.array([[identity_gap(run.rng, single) for _ in range(5)] for single in (True, False)]).max(1)
        return ds.assign({name: ("ridge", list(x)) for name, x in columns}).assign(
            identity_gap=("path", gaps[:, 0]), second_term=("path", gaps[:, 1]), ridge=list(RIDGES)
        )

    def draw(self, ds):
        return figure(
            *super().draw(ds).panels,
            panel(
                "Least η that leaves, over the bound",
                "multiple of the bound",
                "ridge λ",
                dots(ds.norm_multiple, "norms (Proposition D.2)", colour=1),
                dots(ds.balance_multiple, "balance (Proposition D.3)", colour=2),
                Marker(1.0, "the bound on η", axis="x", role="bound"),
                xscale="log",
            ),
            title="The bounds of appendix D hold; their step sizes are a small part of those at which a set is left",
            note=f"{ds.sizes['sample']} samples, L = 3. Least η: found by search, so the truth may be smaller.",
        )

    @inequality(
        "largest ratio at most 1, and at least .5: the bound is attained at C^L = C_1",
        slug="lemmaD.1",
        items="Lemma D.1; Formula (5)",
        tight=0.5,
    )
    def residual(self, setting, W, edge, *_):
        """The squared error of an entry is at most 2 (C_1 + C^L) if all ||W_l||_F^2 <= C (Lemma D.1, formula 5)."""
        return np.array([gradient(layers, setting)[0] ** 2 for layers in edge]), setting.K

    @claim(
        "least step size found that leaves over the bound: at least 1 for five ridges, at most 1e6 at .1",
        slug="propD.2",
        items="Proposition D.2; Formula (6); Theorem D.4",
        names={"at_01": "least at a ridge of .1"},
        least=(1, np.inf),
        at_01=(1, 1e6),
    )
    def norms_stay(self, ds):
        """Layers of norm at most C keep such a norm, for the step size in the proof of Proposition D.2 (formula 6)."""
        return ds.norm_multiple.min(), ds.norm_multiple.sel(ridge=0.1)

    @claim(
        "least step size found that leaves over the bound: in [1, 100] for five ridges; .9 of it does not leave and 1.1 of "
        "it does",
        slug="propD.3",
        items="Proposition D.3; Formula (7); Theorem D.4",
        names={"grown_below": "growth by .9 of the least step", "grown_above": "growth by 1.1 of it"},
        least=(1, 100),
        grown_below=(0, 1),
        grown_above=(1, np.inf),
    )
    def imbalance_stays(self, ds):
        """An imbalance of at most epsilon stays at most epsilon, for the step size of Proposition D.3 (formula 7)."""
        return ds.balance_multiple.min(), ds.grown_below.max(), ds.grown_above.min()

    @claim(
        "largest deviation for steps of the engine's update rule at most 1e-13, where the second term is at least 1e-4",
        items="Formula (4); Formula (7)",
        largest_gap=(0, 1e-13),
        second_term=(1e-4, np.inf),
    )
    def layers_move_at_once(self, ds):
        """After a step the imbalance is (1 - eta lambda)^2 D + eta^2 (T_l T_l^T - T_(l+1)^T T_(l+1)): formula (7)."""
        return ds.identity_gap.max(), ds.second_term.min()

    @inequality(
        "largest ratio over layers at the limits of B_r, that of imbalance among them, at most 1 (and at least .1)",
        slug="formulas9-11",
        items="Formula (9); Formula (10); Formula (11)",
        tight=0.1,
    )
    def pull_on_the_rank(self, setting, W, *_):
        """The gradient of the fit changes the approximate rank by at most the bound of formulas (9) to (11)."""
        s, slopes, weights = setting.slopes(W)
        left = np.abs(np.trace(weights @ transposed(W) @ gradient(W, setting)[1], axis1=1, axis2=2))
        return left, setting.K**0.5 * (np.sum(slopes * s**DEPTH, 1) + setting.spread * slopes.sum(1))

    @inequality(
        "largest ratio over layers at the limits of B_r, that of imbalance among them, at most 1 (and at least .1)",
        slug="formula11",
        items="Formula (10); Formula (11)",
        tight=0.1,
    )
    def imbalance_in_the_pull(self, setting, W, *_):
        """Imbalance adds at most C^(L-1) (L^2 / 2) epsilon_1 (sum f')^2 to the squared norm of W_1^T ... f'(W_l^T W_l) ...
        W_L^T, beyond the sum of f'^2 s^(2 L) of balanced layers (formulas 10 and 11)."""
        s, slopes, weights = setting.slopes(W)
        eye = np.eye(setting.side)
        chains = [product([eye, *W[:k]]).T @ weights[k] @ product([eye, *W[k:]]).T for k in range(DEPTH)]
        left = np.sum(np.square(chains), (1, 2)) - np.sum(slopes**2 * s ** (2 * DEPTH), 1)
        return left, setting.C ** (DEPTH - 1) * DEPTH**2 / 2 * setting.region.balance * slopes.sum(1) ** 2

    @inequality(
        "largest ratio over layers at the limits of B_r, at eta = .001, .01 and .1, at most 1 (and at least .1)",
        slug="lemmaD.6",
        items="Lemma D.6; Formula (8); Formula (12); Formula (13)",
        tight=0.1,
    )
    def second_order(self, setting, W, *_):
        """The O(eta^2) part of the change is at most 2 eta^2 (2 (C_1 + C^L) C^(L-1) + lambda^2 C) sum f' (Lemma D.6)."""
        (s, slopes, weights), eta = setting.slopes(W), np.array(STEPS)[:, None]
        D = gradient(W, setting)[1] + setting.ridge * W
        first = np.trace(weights @ (transposed(W) @ D + transposed(D) @ W), axis1=1, axis2=2)
        after = np.linalg.svd(W - eta[..., None, None] * D, compute_uv=False) ** 2
        beta = f(after, setting.alpha).sum(2) - f(s**2, setting.alpha).sum(1) + eta * first
        return beta, 2 * eta**2 * setting.noise * slopes.sum(1)

    @inequality(
        "largest growth over decay, with the constants of Theorem D.5, at most 1 (and at least .1)",
        slug="lemmaD.7",
        items="Lemma D.7; Formula (14); Formula (15); Formula (16); Formula (17)",
        tight=0.1,
    )
    def decay_near_the_limit(self, setting, W, edge, near, *_):
        """Near the limit of the approximate rank, decay outweighs growth: 2 delta >= 2 E + beta / eta (Lemma D.7)."""
        return ONE.drift(near)

    @inequality(
        "largest change over epsilon_2 / 2, with the constants of Theorem D.5, at most 1 (and at least .5: where its two "
        "bounds on eta are equal)",
        slug="lemmaD.8",
        items="Lemma D.8; Formula (18)",
        tight=0.5,
    )
    def growth_inside(self, setting, W, edge, near, other, inside):
        """Farther inside, a step adds at most epsilon_2 / 2 to the approximate rank (Lemma D.8)."""
        growth, decay = other.drift(inside)
        return other.step_size * (growth - decay), EXCESS / 2
