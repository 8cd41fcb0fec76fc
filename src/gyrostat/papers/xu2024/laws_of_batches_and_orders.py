"""The laws of what HeteroSGD reads: batches, fixed designs, truncated samples, features, and the order of environments.

Section 3.1 of Xu 2024 and Algorithms 3 and 4 say how data are drawn. Our engine draws the law of a batch and never the batch,
so its readings are compared here with moments that are known in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy import special, stats

import gyrostat as gs
from gyrostat.algorithms.batches import Full, OneEnvironment, Pooled
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.figures.declarations import Dots, Figure, Line, Marker, Panel, Points
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements.base import Demand, Reading, Scene
from gyrostat.models.spaces import SymmetricMatrices

DIMENSION, SPREAD = 6, 5.0
BATCH = 20.0
"""Samples in a batch: few, so that a wrong number of degrees of freedom is seen."""
LEVEL, RADII = 1.5, (2.0, 4.0, 8.0, 16.0, math.inf)
"""The product is LEVEL v v^T where truncation is tested."""
DESIGN_SIDE, FEW, MANY = 3, 4.0, 9.0
"""Fixed designs of matrices of side 3, which have 6 unknowns, with fewer and with more samples than unknowns."""
POOLED = np.diag([1.0, 1.0] + [0.0] * (DIMENSION - 2))
"""A_star plus the mean spurious part."""
COUNT = 3
"""Environments in the orders."""
UNEQUAL = ((-4.0, 1.0, 6.0), (0.5, 0.3, 0.2))
"""Strengths and weights of the environments in batches of infinitely many samples."""
FEATURE_SIDE, FEATURES, STRENGTH = 12, 2, 2.0
"""Example 1: d, the number of invariant features, and the strength of the spurious one."""
NETWORK_STEPS, NETWORK_ETA, NETWORK_START = 20, 0.05, 0.5
NETWORK_STRENGTHS = (-1.0, 3.0)
"""Algorithm 4 in the limit of infinitely many samples."""


def laws_data(*, seed: int, progress: Any = None, draws: int, designs: int, passes: int) -> xr.Dataset:
    """Every measured moment over its theory, and the environments that each order visits."""
    with double():
        key = jax.random.key(seed)
        keys = [jax.random.fold_in(key, i) for i in range(6)]
        truncated, response = _truncated(keys[3], max(draws // 64, 1))
        moments = {
            **_batch_moments(keys[0], draws),
            **_mixed_moments(keys[1], draws),
            **_design_moments(keys[2], designs),
            **_feature_moments(keys[5], draws),
            **_whole_readings(),
            "Algorithm 4: mean response": response,
            "Algorithm 4: 20 steps": _network_ratio(),
        }
        shares = _order_shares(keys[4], passes)
    return xr.Dataset(
        {
            "moment": ("law", list(moments.values())),
            "truncated": ("radius", truncated),
            "truncated_theory": ("radius", [_truncated_theory(R) for R in RADII]),
            "order": (("kind", "visit"), shares),
        },
        coords={"law": list(moments), "radius": list(RADII), "kind": list(KINDS), "visit": list(VISITS)},
        attrs={"draws": draws, "designs": designs, "passes": passes},
    )


def _scene(product: np.ndarray, law: gs.Finite) -> Scene:
    """A_star = e1 e1^T and spurious direction e2."""
    axes = np.eye(len(product))
    return Scene(gs.Environments(axes[:, :1], axes[:, 1:2], law), SymmetricMatrices(len(product)), jnp.asarray(product))


def _drawn(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """``function(key, ...)`` for many keys, compiled once for all its other arguments."""
    many = jax.jit(lambda keys, arguments: jax.vmap(lambda key: function(key, *arguments))(keys))

    def draw(key: Any, count: int, *arguments: Any) -> np.ndarray:
        return np.asarray(many(jax.random.split(key, count), arguments))

    return draw


def _product(side: int) -> np.ndarray:
    """A fixed symmetric matrix without structure."""
    U = np.cos(np.arange(side * side)).reshape(side, side)
    return 0.5 * U @ U.T


def _batch_moments(key: Any, draws: int) -> dict[str, float]:
    """Variances of G = (1/m) sum <X_i, M> X_i: (|M|^2 v_ij + M_ij^2)/m, with v = 1 on the diagonal and 1/2 off it.

    At the pooled solution w_i = +-M <X_i, v v^T>, and the variance of v^T G v is 2 M^2/m if the environments have equal counts.
    """
    law = gs.TwoPoint(spread=SPREAD)
    draw = _drawn(lambda k, batch, scene, e: batch.sense((), k, scene, law.at(e))[0].gradient)
    keys = jax.random.split(key, 3)
    scene = _scene(_product(DIMENSION), law)
    M = np.asarray(scene.product - scene.environments.target(law.at(jnp.asarray(1)).sigma))
    G = draw(keys[0], draws, gs.FreshGaussian(BATCH), scene, jnp.asarray(1))
    half, pooled = gs.FreshGaussian(BATCH / 2), _scene(POOLED, law)
    equal = sum(draw(keys[1 + e], draws, half, pooled, jnp.asarray(e))[:, 1, 1] for e in (0, 1)) / 2
    norm2, diagonal = np.sum(M**2), np.eye(DIMENSION, dtype=bool)
    variances = (norm2 * np.where(diagonal, 1.0, 0.5) + M**2) / BATCH
    seen, along = np.mean((G - M) ** 2, axis=0), np.sum(G * M, axis=(1, 2))
    return {
        "fresh: mean along M": float(np.mean(along) / norm2),
        "fresh: variance along M": float(np.var(along) / (2 * norm2**2 / BATCH)),
        "fresh: diagonal": float(seen[diagonal].sum() / variances[diagonal].sum()),
        "fresh: off the diagonal": float(seen[~diagonal].sum() / variances[~diagonal].sum()),
        "mixed: equal counts": float(np.mean(equal**2) / (2 * SPREAD**2 / BATCH)),
    }


def _mixed_moments(key: Any, draws: int) -> dict[str, float]:
    """If every sample draws its environment, the variance of v^T G v at the pooled solution is 3 M^2/m."""
    scene = _scene(POOLED, gs.TwoPoint(spread=SPREAD))
    G = _drawn(lambda k, batch: batch.mix((), k, scene)[0].gradient[1, 1])(key, draws, gs.FreshGaussian(BATCH))
    return {"mixed: drawn counts": float(np.mean(G**2) / (3 * SPREAD**2 / BATCH))}


def _design_moments(key: Any, designs: int) -> dict[str, float]:
    """X^T X of a fixed design, revealed query by query: a Wishart matrix, whatever the number of samples."""
    D = DESIGN_SIDE * (DESIGN_SIDE + 1) // 2
    draw, (one, other) = _drawn(_gram), jax.random.split(key)
    many, few = draw(one, designs, gs.FixedGaussian(MANY)), draw(other, designs, gs.FixedGaussian(FEW))
    volume = sum(special.digamma((MANY - k) / 2) + math.log(2) for k in range(D))
    square = FEW * D * (FEW + D + 1)
    values = np.linalg.eigvalsh(few)
    return {
        "fixed: geometric mean volume": math.exp((np.linalg.slogdet(many)[1].mean() - volume) / D),
        "fixed: trace of the square": float(np.sum(few**2, axis=(1, 2)).mean() / square),
        "fixed: rank over samples": float((values > 1e-9 * values.max()).sum(1).mean() / FEW),
    }


def _gram(key: Any, design: gs.FixedGaussian) -> Any:
    """X^T X in coordinates, column by column, as a run would ask for it."""
    space, law = SymmetricMatrices(DESIGN_SIDE), gs.Finite([0.0])
    environment = law.at(jnp.asarray(0))
    scene = _scene(np.zeros((DESIGN_SIDE, DESIGN_SIDE)), law)
    truth = scene.environments.target(environment.sigma)

    def query(state: Any, item: Any) -> Any:
        coordinates, key = item
        reading, state = design.sense(
            state, key, scene._replace(product=truth + space.element(coordinates)), environment
        )
        return state, space.coordinates(reading.gradient) * design.num_samples

    state = design.init(key, scene.environments, space, Demand(queries=space.size, mixes=False))
    return jax.lax.scan(query, state, (jnp.eye(space.size), jax.random.split(key, space.size)))[1]


def _feature_moments(key: Any, draws: int) -> dict[str, float]:
    """Example 1, a_j and b ~ N(0, I/d): E |a_j|^2 = E |b|^2 = 1 and E (a_j^T b)^2 = 1/d."""
    recipe = gs.FeatureEnvironments(FEATURE_SIDE, FEATURES, gs.Finite([STRENGTH]))

    def parts(key: Any) -> Any:
        environments = recipe.draw(key)
        common = environments.invariant
        rest = environments.target(environments.law.at(jnp.asarray(0)).sigma) - common  # type: ignore[attr-defined]
        return jnp.stack([jnp.trace(common), jnp.trace(rest), jnp.sum(common * rest)])

    common, rest, product = _drawn(parts)(key, draws).mean(0)
    return {
        "features: invariant": float(common / FEATURES),
        "features: spurious": float(rest / STRENGTH),
        "features: overlap": float(product / (FEATURES * STRENGTH / FEATURE_SIDE)),
    }


def _whole_readings() -> dict[str, float]:
    """G of a full batch and of a mixed batch of infinitely many samples over A - sum_e w_e A_e, entry by entry."""
    strengths, weights = UNEQUAL
    scene = _scene(_product(DIMENSION), gs.Finite(strengths, weights))
    M = _product(DIMENSION) - np.diag([1.0, np.dot(strengths, weights)] + [0.0] * (DIMENSION - 2))
    key, step = jax.random.key(0), jnp.asarray(0)
    read = {"full batch": Full(), "mixed batch": Pooled()}
    return {
        f"whole: {name}": _farthest(batch.read(gs.Identity(), (), step, key, key, scene)[0].gradient, M)
        for name, batch in read.items()
    }


def _farthest(found: Any, expected: np.ndarray) -> float:
    """The ratio of two entries that is farthest from 1."""
    ratios = (np.asarray(found) / expected).ravel()
    return float(ratios[np.argmax(np.abs(ratios - 1))])


class ManyRankOne(gs.Measurements):
    """Infinitely many samples x x^T: G = 2 M + trace(M) I, and the mean response is the trace of the target."""

    @property
    def gives_response_mean(self) -> bool:
        return True

    def sense(self, state: Any, key: Any, scene: Scene, environment: Any) -> tuple[Reading, Any]:
        return self._reading(scene, scene.environments.target(environment.sigma)), state

    def mix(self, state: Any, key: Any, scene: Scene) -> tuple[Reading, Any]:
        return self._reading(scene, scene.environments.mean_target), state

    def _reading(self, scene: Scene, target: Any) -> Reading:
        M = scene.product - target
        G = 2 * M + jnp.trace(M) * jnp.eye(len(M))
        return Reading(G, jnp.sum(M * G), jnp.trace(target))


def _network_ratio() -> float:
    """U U^T after 20 steps of Algorithm 4 over the same steps written out, entry by entry on the diagonal."""
    axes = np.eye(DIMENSION)
    environments = gs.Environments(axes[:, :1], axes[:, 1:2], gs.Finite(NETWORK_STRENGTHS))
    network = gs.QuadraticNetwork(NETWORK_ETA, init_scale=NETWORK_START, order="cyclic")
    ds = gs.run(network, gs.Problem(environments, ManyRankOne()), num_steps=NETWORK_STEPS, record=("product",))
    U = NETWORK_START * axes
    for t in range(NETWORK_STEPS):
        target = np.diag([1.0, NETWORK_STRENGTHS[t % 2]] + [0.0] * (DIMENSION - 2))
        M = U @ U.T - target
        moved = U - NETWORK_ETA * (2 * M + np.trace(M) * axes) @ U
        U = moved / (1 - NETWORK_ETA * (np.sum(U * U) - np.trace(target)))
    found = ds["product"].isel(step=-1).values.reshape(DIMENSION, DIMENSION)
    return _farthest(np.diag(found), np.diag(U @ U.T))


def _truncated(key: Any, batches: int) -> tuple[np.ndarray, float]:
    """v^T G v of rank-one samples with predictions up to R at the product LEVEL v v^T; the mean response over its theory."""
    law = gs.Finite([0.0])
    scene, environment = _scene(np.diag([0.0, LEVEL, 0.0]), law), law.at(jnp.asarray(0))

    def parts(key: Any, samples: gs.RankOne) -> Any:
        reading = samples.sense((), key, scene, environment)[0]
        return jnp.stack([reading.gradient[1, 1], jnp.asarray(reading.response_mean)])

    draw, keys = _drawn(parts), jax.random.split(key, len(RADII))
    found = np.array(
        [draw(k, batches, gs.RankOne(4096, truncation=R)).mean(0) for k, R in zip(keys, RADII, strict=True)]
    )
    return found[:, 0], float(found[:, 1].mean())


def _truncated_theory(radius: float) -> float:
    """E (a z^2 - y) z^2 1(a z^2 <= R) = 3 a P(chi^2_5 <= R/a) - P(chi^2_3 <= R/a), with y of mean 1 and independent of z."""
    return float(3 * LEVEL * stats.chi2.cdf(radius / LEVEL, 5) - stats.chi2.cdf(radius / LEVEL, 3))


KINDS = ("iid", "cyclic", "shuffled")
VISITS = ("all in a pass", "same order again", "same environment again")
EXPECTED = {
    "iid": (math.factorial(COUNT) / COUNT**COUNT, 1 / COUNT**COUNT, 1 / COUNT),
    "cyclic": (1.0, 1.0, 0.0),
    "shuffled": (1.0, 1 / math.factorial(COUNT), 1 / COUNT**2),
}
"""Shares of passes that visit all environments, passes in the order of the one before, and steps on the environment before."""


def _order_shares(key: Any, passes: int) -> np.ndarray:
    """The shares of ``VISITS`` for each order, over runs of 16 passes."""
    visits = _drawn(_visits)(key, passes // 16)
    return np.array([_visit_shares(np.rint(visits[:, i]).astype(int)) for i in range(len(KINDS))])


def _visits(run_key: Any) -> Any:
    """The environment of each step of a run in each order, told from the exact gradient: (orders, 16, COUNT)."""
    law = gs.Finite([float(e) for e in range(COUNT)])
    scene = _scene(np.zeros((2, 2)), law)

    def environment(order: str, step: Any) -> Any:
        reading, _ = OneEnvironment(order).read(
            gs.Identity(), (), step, run_key, jax.random.fold_in(run_key, step), scene
        )
        return -reading.gradient[1, 1]

    steps = jnp.arange(16 * COUNT).reshape(16, COUNT)
    return jnp.stack([jax.vmap(jax.vmap(lambda t, order=order: environment(order, t)))(steps) for order in KINDS])


def _visit_shares(visits: np.ndarray) -> list[float]:
    whole = (np.sort(visits, axis=2) == np.arange(COUNT)).all(2).mean()
    again = (visits[:, 1:] == visits[:, :-1]).all(2).mean()
    flat = visits.reshape(len(visits), -1)
    return [float(whole), float(again), float((flat[:, 1:] == flat[:, :-1]).mean())]


def draw_laws(ds: xr.Dataset) -> Figure:
    moment = ds.moment.values
    R = np.where(np.isinf(ds.radius.values), 32.0, ds.radius.values)
    names = [f"{kind}: {visit}" for kind in KINDS for visit in VISITS]
    shares, expected = ds.order.values.ravel(), np.ravel([EXPECTED[kind] for kind in KINDS])
    return Figure(
        title="What a step reads has the law of the data that it stands for",
        panels=[
            Panel(
                title="Measured moments over theory",
                xlabel="ratio",
                ylabel="moment",
                series=[
                    Dots(ds.law.values.tolist(), moment, "measured", low=moment, high=moment),
                    Marker(1.0, "1", axis="x"),
                ],
                xlim=(0.8, 1.2),
            ),
            Panel(
                title="Truncated samples x xᵀ",
                xlabel="radius R (32: none)",
                ylabel="vᵀGv at the product 1.5 vvᵀ",
                series=[
                    Points(R, ds.truncated.values, "measured", colour=0),
                    Line(R, ds.truncated_theory.values, "theory", role="theory"),
                ],
                xscale="log",
            ),
            Panel(
                title="Orders of three environments",
                xlabel="share",
                ylabel="event",
                series=[
                    Dots(names, shares, "measured", low=shares, high=shares, colour=0),
                    Dots(names, expected, "theory", low=expected, high=expected, colour=1),
                ],
            ),
        ],
        note=(
            f"{ds.attrs['draws']} batches of {BATCH:.0f} samples, {ds.attrs['designs']} fixed designs of 4 and 9 "
            f"samples for 6 unknowns, {ds.attrs['passes']} passes, {ds.attrs['draws']} draws of the features of Example 1."
        ),
        columns=2,
    )


def _moments(prefix: str, low: float, high: float) -> Callable[[xr.Dataset], Outcome]:
    """All moments whose name starts so lie in [low, high]."""

    def measure(ds: xr.Dataset) -> Outcome:
        names = [name for name in ds.law.values.tolist() if name.startswith(prefix)]
        found = {name.partition(": ")[2].replace(" ", "_"): float(ds.moment.sel(law=name)) for name in names}
        return within(low, high, **found)

    return measure


def _truncation(ds: xr.Dataset) -> Outcome:
    whole = float(ds.truncated_theory.isel(radius=-1))
    gaps = abs(ds.truncated - ds.truncated_theory) / whole
    return together(
        within(0, 0.04, largest_gap=gaps.max()),
        within(-0.1, 0.4, smallest_radius_over_none=ds.truncated.isel(radius=0) / whole),
    )


def _orders(ds: xr.Dataset) -> Outcome:
    gaps = np.abs(ds.order.values - np.array([EXPECTED[kind] for kind in KINDS]))
    return within(0, 0.05, **dict(zip(KINDS, gaps.max(1).tolist(), strict=True)))


LAWS = Experiment(
    name="laws",
    title="The laws of batches and orders",
    source="Xu 2024, section 3.1, Example 1, Theorem 6, Algorithms 3 and 4; ours",
    summary=(
        "The engine never draws a batch, only what a step reads from it; these readings are compared with moments "
        "of the data in closed form."
    ),
    sizes={
        "smoke": {"draws": 4096, "designs": 2048, "passes": 4096},
        "standard": {"draws": 16_384, "designs": 8192, "passes": 16_384},
        "full": {"draws": 131_072, "designs": 65_536, "passes": 65_536},
    },
    compute=laws_data,
    draw=draw_laws,
    claims=[
        Claim(
            slug="fresh-batch",
            ours=True,
            statement=(
                "With a fresh batch, G has mean M and variances (|M|^2 v_ij + M_ij^2)/m, where v is 1 on the "
                "diagonal and 1/2 off it."
            ),
            criterion="mean along M, variance along M, on and off the diagonal: each over its theory in [0.9, 1.1]",
            measure=_moments("fresh", 0.9, 1.1),
        ),
        Claim(
            slug="mixed-batch",
            ours=True,
            statement=(
                "In a mixed batch every sample draws its environment, so the variance along v v^T is 3/2 of that "
                "with equal counts."
            ),
            criterion="variance over 3 M^2/m, and over 2 M^2/m with equal counts, in [0.87, 1.13]",
            measure=_moments("mixed", 0.87, 1.13),
        ),
        Claim(
            slug="fixed-design",
            ours=True,
            statement=(
                "With a fixed design of few samples, X^T X is a Wishart matrix with as many degrees of freedom as "
                "samples."
            ),
            criterion=(
                "volume (9 samples, 6 unknowns), trace of the square and rank (4 samples): each over its theory in "
                "[0.93, 1.07]"
            ),
            measure=_moments("fixed", 0.93, 1.07),
        ),
        Claim(
            slug="truncation",
            ours=True,
            statement=(
                "Algorithm 4 leaves out samples with predictions above R; the gradient shrinks by the amount that "
                "the tails of chi-square laws predict."
            ),
            criterion=(
                "v^T G v within 0.04 of theory for every R, in units of that without truncation; at R = 2 at most "
                "0.4 of it"
            ),
            measure=_truncation,
        ),
        Claim(
            slug="orders",
            ours=True,
            statement=(
                "The order iid draws environments independently, cyclic repeats one order, and shuffled takes a "
                "new order for every pass."
            ),
            criterion=(
                "shares of whole passes, of passes in the order before and of steps on the environment before, "
                "within 0.05 of theory"
            ),
            measure=_orders,
        ),
        Claim(
            slug="features",
            ours=True,
            statement=(
                "Example 1: features a_j and b_k are N(0, I/d), so |a_j|^2 and |b_k|^2 are 1 and (a_j^T b_k)^2 is 1/d on "
                "average."
            ),
            criterion="means of both squares and of the overlap, each over its theory, in [0.9, 1.1]",
            measure=_moments("features", 0.9, 1.1),
        ),
        Claim(
            slug="whole-population",
            ours=True,
            statement=(
                "With infinitely many samples, a mixed batch (4) and a full batch (Theorem 6) read A - sum_e w_e A_e, with the "
                "weights of the environments."
            ),
            criterion="every entry of both readings over its theory in [1 - 1e-9, 1 + 1e-9], for weights 0.5, 0.3 and 0.2",
            measure=_moments("whole", 1 - 1e-9, 1 + 1e-9),
        ),
        Claim(
            slug="mean-response",
            ours=True,
            statement=(
                "The moment estimate of tau_t (Remark 1) is the mean response, which has the mean trace(A_star + A_e), "
                "whatever the prediction."
            ),
            criterion="mean response over the trace of the target in [0.98, 1.02]; the prediction has 1.5 times that trace",
            measure=lambda ds: within(0.98, 1.02, ratio=ds.moment.sel(law="Algorithm 4: mean response")),
        ),
        Claim(
            slug="algorithm-4",
            ours=True,
            statement=(
                "Algorithm 4 shrinks the updated U by 1 - eta (||U_t||_F^2 - tau_t), with U_t before the update."
            ),
            criterion=(
                "after 20 steps on infinitely many samples, every diagonal entry of U U^T over that of the printed steps in "
                "[1 - 1e-9, 1 + 1e-9]"
            ),
            measure=lambda ds: within(1 - 1e-9, 1 + 1e-9, ratio=ds.moment.sel(law="Algorithm 4: 20 steps")),
        ),
    ],
    weight=6,
)
