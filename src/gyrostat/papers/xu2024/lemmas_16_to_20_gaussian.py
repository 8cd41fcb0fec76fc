"""Lemmas 16 to 20 of Xu 2024: nets of the sphere, Gaussian matrices and products, and truncated measurements of rank one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from scipy import integrate, optimize, stats

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Points
from gyrostat.theory import truncation_radius

# ---------------------------------------------------------------------------------------- Lemmas 16 and 18

EPSILONS = [0.2, 0.25, 0.3, 0.4]


def nets_data(*, seed: int, progress: Any = None, dimensions: list[int], candidates: int, matrices: int) -> xr.Dataset:
    """Sizes of nets of the sphere beside the bound (97), and norms of matrices beside those seen on the nets (99)."""
    rng = np.random.default_rng(seed)
    cells = [[_net_cell(rng, n, epsilon, candidates, matrices) for epsilon in EPSILONS] for n in dimensions]
    size, covered, lower, upper = np.moveaxis(np.array(cells), -1, 0)
    dims = ("dimension", "epsilon")
    return xr.Dataset(
        {"size": (dims, size), "covered": (dims, covered), "lower": (dims, lower), "upper": (dims, upper)},
        coords={"dimension": dimensions, "epsilon": EPSILONS},
    )


def _net_cell(rng: np.random.Generator, n: int, epsilon: float, candidates: int, matrices: int) -> list[float]:
    """The size of a net; the share of points it covers; the least ||A|| / sup and the largest (1 - 2 epsilon) ||A|| / sup."""
    net = _greedy_net(_unit(rng, candidates, n), epsilon)
    probes = _unit(rng, 20_000, n)
    covered = (np.sqrt(np.maximum(2 - 2 * (probes @ net.T).max(1), 0)) <= epsilon).mean()
    A = rng.standard_normal((matrices, n, n))
    seen = np.einsum("xi,aij,yj->axy", net, A, net).max((1, 2))
    ratio = np.linalg.norm(A, ord=2, axis=(1, 2)) / seen
    return [len(net), float(covered), float(ratio.min()), float((1 - 2 * epsilon) * ratio.max())]


def _unit(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    x = rng.standard_normal((count, n))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _greedy_net(points: np.ndarray, epsilon: float) -> np.ndarray:
    """Points that are more than 0.85 epsilon apart, taken until none is left: every point is then that near to one of them.

    The rest of epsilon is for the points of the sphere between the given ones.
    """
    net = []
    while len(points):
        net.append(points[0])
        points = points[np.linalg.norm(points - points[0], axis=1) > 0.85 * epsilon]
    return np.array(net)


def covering_bound(n: Any, epsilon: Any) -> Any:
    """(97): ``(2 / epsilon + 1)^n``."""
    return (2 / epsilon + 1) ** n


def draw_nets(ds: xr.Dataset) -> Figure:
    sizes, norms = [], []
    for i, n in enumerate(ds.dimension.values):
        cell = ds.sel(dimension=n)
        sizes += [
            Points(EPSILONS, cell.size.values, f"n = {n}", colour=i),
            Line(EPSILONS, covering_bound(n, np.array(EPSILONS)), "", role="bound", colour=i),
        ]
        norms += [Line(EPSILONS, cell.upper.values, f"n = {n}", colour=i)]
    return Figure(
        title="Nets of the sphere are smaller than the bound, and norms are seen on them",
        panels=[
            Panel(
                title="Size of a net (dotted: the bound)",
                xlabel="epsilon",
                ylabel="points",
                series=sizes,
                yscale="log",
            ),
            Panel(
                title="Largest (1 - 2 epsilon) ||A|| / sup on the net",
                xlabel="epsilon",
                ylabel="ratio",
                series=[*norms, Marker(1.0, "the bound", role="bound")],
                ylim=(0, 1.1),
            ),
        ],
        note="Greedy nets from random points; random square matrices.",
    )


def _norms_on_nets(ds: xr.Dataset) -> Outcome:
    return together(
        within(1 - 1e-9, math.inf, least_norm_over_sup=ds.lower.min()),
        within(0, 1, largest_with_factor=ds.upper.max()),
        _covers(ds),
    )


def _covers(ds: xr.Dataset) -> Outcome:
    """A net that is made from finitely many points may miss a little of the sphere."""
    return within(0.999, 1, covered=ds.covered.min())


NETS = Experiment(
    name="lemmas16-18",
    title="Nets of the sphere",
    source="Xu 2024, Lemmas 16 and 18 (Vershynin)",
    summary="Greedy nets of the sphere, their sizes, and the norms of random matrices as seen on the points of the nets.",
    sizes={
        "smoke": {"dimensions": [2, 3], "candidates": 20_000, "matrices": 50},
        "standard": {"dimensions": [2, 3], "candidates": 60_000, "matrices": 200},
        "full": {"dimensions": [2, 3, 4], "candidates": 400_000, "matrices": 1000},
    },
    compute=nets_data,
    draw=draw_nets,
    claims=[
        Claim(
            slug="covering-number",
            statement="Lemma 16: the sphere of R^n has a net of at most (2/epsilon + 1)^n points.",
            criterion="size of a greedy net over the bound <= 1 in every cell, and the net covers 99.9 % of fresh points",
            measure=lambda ds: together(
                within(0, 1, largest=(ds.size / covering_bound(ds.dimension, ds.epsilon)).max()),
                _covers(ds),
            ),
        ),
        Claim(
            slug="norm-on-nets",
            statement="Lemma 18: sup over the nets <= ||A|| <= sup over the nets / (1 - 2 epsilon).",
            criterion="both inequalities for every matrix, on nets that cover 99.9 % of fresh points",
            measure=_norms_on_nets,
        ),
    ],
)

# ------------------------------------------------------------------------------------------------ Lemma 17

SHAPES = [(20, 1), (20, 10), (20, 20), (100, 5), (100, 50), (400, 20)]
TIMES = [0.0, 0.5, 1.0, 1.5, 2.0]


def matrices_data(*, seed: int, progress: Any = None, draws: int) -> xr.Dataset:
    """How often the singular values of Gaussian matrices leave (98), for C = sqrt(2), and the C that would be enough."""
    rng = np.random.default_rng(seed)
    need = np.array([_needed_constants(rng, d, r, draws) for d, r in SHAPES])  # shape, time, draw
    return xr.Dataset(
        {
            "leaves": (("shape", "time"), (need > math.sqrt(2)).mean(-1)),
            "needed": (("shape", "time"), [[_quantile(x, t) for x, t in zip(row, TIMES, strict=True)] for row in need]),
        },
        coords={"shape": [f"{d} x {r}" for d, r in SHAPES], "time": TIMES},
        attrs={"draws": draws},
    )


def _needed_constants(rng: np.random.Generator, d: int, r: int, draws: int) -> np.ndarray:
    """The C with which (98) just holds, for every t and draw."""
    values = np.array([np.linalg.svd(rng.standard_normal((d, r)), compute_uv=False)[[0, -1]] for _ in range(draws)])
    off = np.maximum(values[:, 0] - math.sqrt(d), math.sqrt(d) - values[:, 1])
    return np.array([off / (math.sqrt(r) + t) for t in TIMES])


def _quantile(needed: np.ndarray, t: float) -> float:
    """The C that holds in a share 1 - 2 exp(-t^2) of the draws."""
    return float(np.quantile(needed, min(max(1 - 2 * math.exp(-(t**2)), 0), 1)))


def draw_matrices(ds: xr.Dataset) -> Figure:
    curves = [Line(TIMES, ds.needed.sel(shape=s).values, str(s), colour=i) for i, s in enumerate(ds["shape"].values)]
    panel = Panel(
        title="Smallest C at each t",
        xlabel="t",
        ylabel="C",
        series=[*curves, Marker(math.sqrt(2), "sqrt(2), enough for all", role="theory")],
        ylim=(0, 1.6),
    )
    return Figure(
        title="One constant bounds the singular values of Gaussian matrices",
        panels=[panel],
        note=f"Quantiles over {ds.attrs['draws']} matrices of each shape. Below t = 0.83 the lemma promises nothing.",
    )


def _stays(ds: xr.Dataset) -> Outcome:
    allowed = np.minimum(2 * np.exp(-(ds.time**2)), 1)
    noise = np.sqrt(allowed * (1 - allowed) / ds.attrs["draws"])
    return within(-math.inf, 0, largest_excess=(ds.leaves - allowed - 4 * noise).max())


MATRICES = Experiment(
    name="lemma17",
    title="Singular values of Gaussian matrices",
    source="Xu 2024, Lemma 17 (Vershynin)",
    summary="The extreme singular values of d x r Gaussian matrices lie within C (sqrt(r) + t) of sqrt(d).",
    sizes={"smoke": {"draws": 300}, "standard": {"draws": 2000}, "full": {"draws": 20_000}},
    compute=matrices_data,
    draw=draw_matrices,
    claims=[
        Claim(
            slug="one-constant",
            statement="Lemma 17: (98) fails with probability at most 2 exp(-t^2), with C = sqrt(2).",
            criterion="observed share minus the promised one at most 4 standard errors, for every shape and t",
            measure=_stays,
        ),
        Claim(
            slug="constant-needed",
            ours=True,
            statement="These shapes need a C of about 0.9 (ours).",
            criterion="largest C needed in [0.8, 1]",
            measure=lambda ds: within(0.8, 1, needed=ds.needed.max()),
        ),
    ],
)

# ------------------------------------------------------------------------------------------------ Lemma 19

LEVELS = np.geomspace(0.02, 20, 31)


def products_data(*, seed: int, progress: Any = None, counts: list[int]) -> xr.Dataset:
    """The largest c with which (101) holds at each m and t: probabilities by quadrature, and the limit of large m."""
    c = np.array([[_constant(m, t) for t in LEVELS] for m in counts])
    limit = [cramer_rate(t) / min(t, t * t) for t in LEVELS]
    return xr.Dataset(
        {"constant": (("count", "level"), c), "limit": ("level", limit)}, coords={"count": counts, "level": LEVELS}
    )


def _constant(m: int, t: float) -> float:
    """``-log(P / 2) / (min(t^2, t) m)``; NaN where P is below what quadrature resolves."""
    tail = _tail(m, t)
    return -math.log(tail / 2) / (min(t, t * t) * m) if tail > 1e-250 else math.nan


def _tail(m: int, t: float) -> float:
    """``P(|sum X_i Y_i| > m t)``: the sum is the difference of two independent Gamma(m/2, 1) variables, as in (102).

    The substitution g = u^2 removes the pole of the density at 0 for m = 1.
    """
    u = np.linspace(0, math.sqrt(m / 2 + 10 * math.sqrt(m) + 10), 4001)[1:]
    gamma = stats.gamma(m / 2)
    return 2 * float(np.sum(2 * u * gamma.pdf(u**2) * gamma.sf(u**2 + m * t)) * u[0])


def cramer_rate(t: float) -> float:
    """The rate of ``P(mean of X_i Y_i > t)``: ``sup_s (s t + log(1 - s^2) / 2)``, attained where ``t (1 - s^2) = s``."""
    s = 2 * t / (1 + math.sqrt(1 + 4 * t * t))
    return s * t + math.log(1 - s * s) / 2


def draw_products(ds: xr.Dataset) -> Figure:
    curves = [
        Line(LEVELS, ds.constant.sel(count=m).values, f"m = {m}", colour=i) for i, m in enumerate(ds["count"].values)
    ]
    panel = Panel(
        title="Largest c at each t",
        xlabel="t",
        ylabel="c",
        series=[
            *curves,
            Line(LEVELS, ds.limit.values, "m to infinity", role="theory"),
            Marker(cramer_rate(1.0), f"{cramer_rate(1.0):.3f}, enough for all", role="bound"),
        ],
        xscale="log",
        ylim=(0, 3),
    )
    return Figure(
        title="One constant bounds the mean of products of Gaussian variables",
        panels=[panel],
        note="Probabilities by quadrature. The smallest value of the limit, at t = 1, is the best constant.",
    )


PRODUCTS = Experiment(
    name="lemma19",
    title="Means of products of Gaussian variables",
    source="Xu 2024, Lemma 19 (Bernstein)",
    summary="The mean of m products of standard normal variables exceeds t with probability 2 exp(-c min(t^2, t) m).",
    sizes={
        "smoke": {"counts": [1, 10, 1000]},
        "standard": {"counts": [1, 3, 10, 30, 100, 1000]},
        "full": {"counts": [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 1000]},
    },
    compute=products_data,
    draw=draw_products,
    claims=[
        Claim(
            slug="one-constant",
            statement=(
                "Lemma 19: one constant c > 0 is enough for all m and t; 0.377, the value of log(1 - s^2)/2 + s "
                "at t = 1, is enough (ours)."
            ),
            criterion="largest admissible c >= 0.3773 at every m and t",
            measure=lambda ds: within(0.3773, least=ds.constant.min()),
        ),
        Claim(
            slug="constant-is-sharp",
            ours=True,
            statement="No larger constant would do: 0.377 is approached at t = 1 as m grows (ours).",
            criterion="least admissible c at the largest m <= 0.39",
            measure=lambda ds: within(0, 0.39, least=ds.constant.isel(count=-1).min()),
        ),
    ],
)

# ------------------------------------------------------------------------------------------------ Lemma 20

DELTAS = [1e-2, 1e-3, 1e-4, 1e-6, 1e-8]


def truncation_data(*, seed: int, progress: Any = None, deltas: list[float]) -> xr.Dataset:
    """The bias along v of the truncated mean (121) for A = v v^T, with the printed radius and with ours, by quadrature.

    Along v the measurement is z^2 with z standard normal, so the mean must be 3 and the truncated one is ``E z^4 1(z^2 <= R)``.
    """
    printed = [math.log(1 / delta) for delta in deltas]
    ours = [truncation_radius(delta) for delta in deltas]
    smallest = [_smallest_radius(delta) for delta in deltas]
    values = {
        "printed_radius": printed,
        "our_radius": ours,
        "smallest_radius": smallest,
        "printed_bias": [_bias(R) for R in printed],
        "our_bias": [_bias(R) for R in ours],
    }
    return xr.Dataset({name: ("delta", value) for name, value in values.items()}, coords={"delta": deltas})


def _bias(R: float) -> float:
    """``E z^4 1(z^2 > R)``."""
    density = lambda z: z**4 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    return 2 * integrate.quad(density, math.sqrt(R), math.sqrt(R) + 12, epsabs=0, epsrel=1e-10)[0]


def _smallest_radius(delta: float) -> float:
    return float(optimize.brentq(lambda R: math.log(_bias(R) / delta), 1.0, 100.0, xtol=1e-10))


def draw_truncation(ds: xr.Dataset) -> Figure:
    return Figure(
        title="Truncation at R = log(1/delta) cuts too much",
        panels=[
            Panel(
                title="Bias along v for A = v v^T",
                xlabel="delta",
                ylabel="bias",
                series=[
                    Points(ds.delta.values, ds.printed_bias.values, "R = log(1/delta), as printed", colour=0),
                    Points(ds.delta.values, ds.our_bias.values, "R as needed (ours)", colour=1),
                    Line(ds.delta.values, ds.delta.values, "allowed: delta", role="bound"),
                ],
                xscale="log",
                yscale="log",
            ),
            Panel(
                title="Radius over log(1/delta)",
                xlabel="delta",
                ylabel="R / log(1/delta)",
                series=[
                    Points(ds.delta.values, (ds.smallest_radius / ds.printed_radius).values, "needed", colour=1),
                    Marker(1.0, "as printed", role="paper"),
                ],
                xscale="log",
                ylim=(0, 4.5),
            ),
        ],
        note="Expectations by quadrature: no number of samples helps against a bias.",
    )


TRUNCATION = Experiment(
    name="lemma20",
    title="Truncated measurements of rank one",
    source="Xu 2024, Lemma 20 (Lemma 5.1 of Li and others 2018)",
    summary=(
        "Measurements x x^T are truncated where |<X, A>| > R. The truncated mean must be within delta of 2 A + tr(A) I for "
        "matrices A of norm one; for A = v v^T the bias along v is E z^4 1(z^2 > R)."
    ),
    sizes={"smoke": {"deltas": DELTAS[:3]}, "standard": {"deltas": DELTAS}, "full": {"deltas": DELTAS}},
    compute=truncation_data,
    draw=draw_truncation,
    claims=[
        Claim(
            slug="printed-radius",
            statement="(122) with R = log(1/delta): the truncated mean is within delta for A = v v^T.",
            criterion="bias along v over delta <= 1 at every delta, for infinitely many samples",
            measure=lambda ds: within(
                0, 1, largest=(ds.printed_bias / ds.delta).max(), at_one_percent=ds.printed_bias[0] / 0.01
            ),
            expected="fails",
            kind="false as printed",
            reason=(
                "At delta = 0.01 the radius is 4.6 and the bias 1.40. A radius of about 3 log(1/delta) is needed; "
                "the statement is right if R is a constant times log(1/delta)."
            ),
        ),
        Claim(
            slug="radius-needed",
            ours=True,
            statement="The smallest radius is R = the upper delta/3 quantile of chi-square with 5 degrees of freedom (ours).",
            criterion="theory.truncation_radius over the radius found by quadrature within 1e-6 of 1 at every delta",
            measure=lambda ds: within(
                1 - 1e-6,
                1 + 1e-6,
                least=(ds.our_radius / ds.smallest_radius).min(),
                most=(ds.our_radius / ds.smallest_radius).max(),
            ),
        ),
        Claim(
            slug="logarithmic",
            ours=True,
            statement="A constant times log(1/delta) is enough: between 2 and 4 times (ours).",
            criterion="smallest radius over log(1/delta) in [2, 4] at every delta",
            measure=lambda ds: within(
                2,
                4,
                least=(ds.smallest_radius / ds.printed_radius).min(),
                most=(ds.smallest_radius / ds.printed_radius).max(),
            ),
        ),
    ],
)
