"""Lemmas 16 to 20 of Xu 2024: nets of the sphere, Gaussian matrices and products, and truncated measurements of rank one."""

import math

import numpy as np
import xarray as xr
from scipy import integrate, optimize, stats

from gyrostat.experiments import Experiment, claim
from gyrostat.theory.xu2024 import truncation_radius

EPSILONS = [0.2, 0.25, 0.3, 0.4]
SHAPES = [(20, 1), (20, 10), (20, 20), (100, 5), (100, 50), (400, 20)]
TIMES = [0.0, 0.5, 1.0, 1.5, 2.0]
LEVELS = np.geomspace(0.02, 20, 31)
DELTAS = [1e-2, 1e-3, 1e-4, 1e-6, 1e-8]
SCALES = [1.0, 10.0, 100.0]


def on_sphere(rng, count, n):
    x = rng.standard_normal((count, n))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def greedy_net(points, epsilon):
    """Points that are more than 0.85 epsilon apart, taken until none is left: every point is then that near to one of them.

    The rest of epsilon is for the points of the sphere between the given ones.
    """
    net = []
    while len(points):
        net.append(points[0])
        points = points[np.linalg.norm(points - points[0], axis=1) > 0.85 * epsilon]
    return np.array(net)


class Nets(Experiment):
    """Nets of the sphere

    Greedy nets of the sphere, their sizes, and the norms of random matrices as seen on the points of the nets.
    """

    name, source = "lemmas16-18", "Xu 2024, Lemmas 16 and 18 (Vershynin)"
    sizes = {
        "dimensions": ([2, 3], [2, 3], [2, 3, 4]),
        "candidates": (20_000, 60_000, 400_000),
        "matrices": (50, 200, 1000),
    }

    def compute(self, run, dimensions, candidates, matrices):
        def cell(n, epsilon):
            net, probes = greedy_net(on_sphere(run.rng, candidates, n), epsilon), on_sphere(run.rng, 20_000, n)
            covered = (np.sqrt(np.maximum(2 - 2 * (probes @ net.T).max(1), 0)) <= epsilon).mean()
            A = run.rng.standard_normal((matrices, n, n))
            norm, products = np.linalg.norm(A, ord=2, axis=(1, 2)), np.einsum("xi,aij,yj->axy", net, A, net)
            ratio, squared = norm / products.max((1, 2)), (1 - 2 * epsilon - epsilon**2) * norm
            diagonal = (products.diagonal(axis1=1, axis2=2).max(1) / norm).max()
            upper = (1 - 2 * epsilon) * ratio.max()
            return len(net), covered, ratio.min(), upper, diagonal, (squared / abs(products).max((1, 2))).max()

        cells = np.array([[cell(n, epsilon) for epsilon in EPSILONS] for n in dimensions], dtype=float)
        names, axes = ("size", "covered", "lower", "upper", "diagonal", "square_upper"), ("dimension", "epsilon")
        columns = {name: (axes, x) for name, x in zip(names, np.moveaxis(cells, -1, 0))}
        return xr.Dataset(columns, coords={"dimension": dimensions, "epsilon": EPSILONS})

    # A net that is made from finitely many points may miss a little of the sphere.
    @claim(
        "size of a greedy net over the bound <= 1 in every cell, and the net covers 99.9 % of fresh points",
        items="Lemma 16; Definition 6",
        largest=(0, 1),
        covered=(0.999, 1),
    )
    def covering_number(self, ds):
        """Lemma 16: the sphere of R^n has a net of at most (2/epsilon + 1)^n points."""
        return (ds["size"] / (2 / ds.epsilon + 1) ** ds.dimension).max(), ds.covered.min()

    @claim(
        "both inequalities for every matrix, on nets that cover 99.9 % of fresh points",
        items="Lemma 18",
        least_norm_over_sup=(1 - 1e-9, np.inf),
        largest_with_factor=(0, 1),
        covered=(0.999, 1),
    )
    def norm_on_nets(self, ds):
        """Lemma 18: sup over the nets <= ||A|| <= sup over the nets / (1 - 2 epsilon)."""
        return ds.lower.min(), ds.upper.max(), ds.covered.min()

    @claim(
        "largest sup of <A x, x> over ||A||, and ||A|| over the right side, in [0.1, 1] for every matrix",
        items="Lemma 18; (100)",
        diagonal_over_norm=(0.1, 1),
        norm_over_right_side=(0.1, 1),
        covered=(0.999, 1),
    )
    def square_matrices(self, ds):
        """Lemma 18, (100): for m = n, sup <A x, x> over one net <= ||A|| <= sup |<A x, y>| over both / (1 - 2 epsilon -
        epsilon^2), for epsilon below sqrt(2) - 1 (from there to 1/2 the divisor is negative)."""
        return ds.diagonal.max(), ds.square_upper.max(), ds.covered.min()


class Lemma17(Experiment):
    """Singular values of Gaussian matrices

    The extreme singular values of d x r Gaussian matrices lie within C (sqrt(r) + t) of sqrt(d).
    """

    source, items = "Xu 2024, Lemma 17 (Vershynin)", "Lemma 17"
    sizes = {"draws": (300, 2000, 20_000)}

    def compute(self, run, draws):
        def needed(d, r):
            """The C with which (98) just holds, for every t and draw."""
            values = [np.linalg.svd(run.rng.standard_normal((d, r)), compute_uv=False)[[0, -1]] for _ in range(draws)]
            most, least = np.transpose(values)
            off = np.maximum(most - math.sqrt(d), math.sqrt(d) - least)
            return [off / (math.sqrt(r) + t) for t in TIMES]

        need = np.array([needed(d, r) for d, r in SHAPES])
        # In a share 1 - 2 exp(-t^2) of the draws, this C is enough.
        shares = [min(max(1 - 2 * math.exp(-(t**2)), 0), 1) for t in TIMES]
        enough = [[np.quantile(x, share) for x, share in zip(row, shares)] for row in need]
        columns = {"leaves": (("shape", "time"), (need > math.sqrt(2)).mean(-1)), "needed": (("shape", "time"), enough)}
        return xr.Dataset(columns, {"shape": [f"{d} x {r}" for d, r in SHAPES], "time": TIMES}, {"draws": draws})

    @claim(
        "observed share minus the promised one at most 4 standard errors, for every shape and t",
        largest_excess=(-np.inf, 0),
    )
    def one_constant(self, ds):
        """Lemma 17: (98) fails with probability at most 2 exp(-t^2), with C = sqrt(2)."""
        allowed = np.minimum(2 * np.exp(-(ds.time**2)), 1)
        return (ds.leaves - allowed - 4 * np.sqrt(allowed * (1 - allowed) / ds.attrs["draws"])).max()

    @claim("largest C needed in [0.8, 1]", ours=True, items="Lemma 17", needed=(0.8, 1))
    def constant_needed(self, ds):
        """These shapes need a C of about 0.9 (ours)."""
        return ds.needed.max()


def cramer_rate(t):
    """The rate of ``P(mean of X_i Y_i > t)``: ``sup_s (s t + log(1 - s^2) / 2)``, attained where ``t (1 - s^2) = s``."""
    s = 2 * t / (1 + math.sqrt(1 + 4 * t * t))
    return s * t + math.log(1 - s * s) / 2


def largest_constant(m, t):
    """``-log(P / 2) / (min(t^2, t) m)`` with ``P = P(|sum X_i Y_i| > m t)``; NaN where P is below what quadrature resolves.

    The sum is the difference of two independent Gamma(m/2, 1) variables, as in (102). The substitution g = u^2 removes the pole
    of the density at 0 for m = 1.
    """
    u = np.linspace(0, math.sqrt(m / 2 + 10 * math.sqrt(m) + 10), 4001)[1:]
    gamma = stats.gamma(m / 2)
    tail = 2 * np.sum(2 * u * gamma.pdf(u**2) * gamma.sf(u**2 + m * t)) * u[0]
    return -math.log(tail / 2) / (min(t, t * t) * m) if tail > 1e-250 else math.nan


class Lemma19(Experiment):
    """Means of products of Gaussian variables

    The mean of m products of standard normal variables exceeds t with probability 2 exp(-c min(t^2, t) m).
    """

    source, items = "Xu 2024, Lemma 19 (Bernstein)", "Lemma 19"
    sizes = {"counts": ([1, 10, 1000], [1, 3, 10, 30, 100, 1000], [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 1000])}

    def compute(self, run, counts):
        constants = [[largest_constant(m, t) for t in LEVELS] for m in counts]
        limit = [cramer_rate(t) / min(t, t * t) for t in LEVELS]
        columns = {"constant": (("count", "level"), constants), "limit": ("level", limit)}
        return xr.Dataset(columns, coords={"count": counts, "level": LEVELS})

    @claim("largest admissible c >= 0.3773 at every m and t", least=(0.3773, np.inf))
    def one_constant(self, ds):
        """Lemma 19: one constant c > 0 is enough for all m and t; 0.377, the value of log(1 - s^2)/2 + s at t = 1, is enough
        (ours)."""
        return ds.constant.min()

    @claim("least admissible c at the largest m <= 0.39", ours=True, items="Lemma 19", least=(0, 0.39))
    def constant_is_sharp(self, ds):
        """No larger constant would do: 0.377 is approached at t = 1 as m grows (ours)."""
        return ds.constant.isel(count=-1).min()


def bias(R):
    """``E z^4 1(z^2 > R)``, by quadrature."""

    def density(z):
        return z**4 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    return 2 * integrate.quad(density, math.sqrt(R), math.sqrt(R) + 12, epsabs=0, epsrel=1e-10)[0]


class Lemma20(Experiment):
    """Truncated measurements of rank one

    Measurements x x^T are truncated where |<X, A>| > R. The truncated mean must be within delta of 2 A + tr(A) I for matrices A
    of norm one; for A = v v^T the bias along v is E z^4 1(z^2 > R).
    """

    source, items = "Xu 2024, Lemma 20 (Lemma 5.1 of Li and others 2018)", "Lemma 20"
    sizes = {"deltas": (DELTAS[:3], DELTAS, DELTAS)}

    def compute(self, run, deltas):
        def smallest(delta):
            return optimize.brentq(lambda R: math.log(bias(R) / delta), 1.0, 100.0, xtol=1e-10)

        printed, ours = [math.log(1 / delta) for delta in deltas], [truncation_radius(delta) for delta in deltas]
        columns = {
            "printed_radius": printed,
            "our_radius": ours,
            "smallest_radius": [smallest(delta) for delta in deltas],
            "printed_bias": [bias(R) for R in printed],
            "our_bias": [bias(R) for R in ours],
        }
        scaled = [[bias(R / scale) for scale in SCALES] for R in ours]
        return xr.Dataset(
            {**{name: ("delta", x) for name, x in columns.items()}, "scaled_bias": (("delta", "scale"), scaled)},
            {"delta": deltas, "scale": SCALES},
        )

    @claim(
        "bias along v over delta <= 1 at every delta, for infinitely many samples",
        fails="false as printed",
        largest=(0, 1),
        at_one_percent=(0, 1),
    )
    def printed_radius(self, ds):
        """(122) with R = log(1/delta): the truncated mean is within delta for A = v v^T.

        At delta = 0.01 the radius is 4.6 and the bias 1.40. A radius of about 3 log(1/delta) is needed; the statement is
        right if R is a constant times log(1/delta).
        """
        return (ds.printed_bias / ds.delta).max(), ds.printed_bias[0] / 0.01

    @claim(
        "bias along v over delta ||A||_* at most 1 for A = v v^T, 10 v v^T and 100 v v^T, with the radius that v v^T needs",
        fails="false as printed",
        largest_over_allowed=(0, 1 + 1e-6),
    )
    def every_matrix(self, ds):
        """(121) for every symmetric matrix A: the truncated mean is within delta ||A||_*.

        R does not depend on A, so that a larger A loses more measurements: along v the bias of c v v^T is c E z^4 1(z^2 > R/c),
        which comes near 3 c for large c. The statement needs a bound on the norm of A, as (122) has it.
        """
        return (ds.scaled_bias / ds.delta).max("delta")

    @claim(
        "theory.truncation_radius over the radius found by quadrature within 1e-6 of 1 at every delta",
        ours=True,
        items="Lemma 20",
        least=(1 - 1e-6, 1 + 1e-6),
        most=(1 - 1e-6, 1 + 1e-6),
    )
    def radius_needed(self, ds):
        """The smallest radius is R = the upper delta/3 quantile of chi-square with 5 degrees of freedom (ours)."""
        ratio = ds.our_radius / ds.smallest_radius
        return ratio.min(), ratio.max()

    @claim(
        "smallest radius over log(1/delta) in [2, 4] at every delta",
        ours=True,
        items="Lemma 20",
        least=(2, 4),
        most=(2, 4),
    )
    def logarithmic(self, ds):
        """A constant times log(1/delta) is enough: between 2 and 4 times (ours)."""
        ratio = ds.smallest_radius / ds.printed_radius
        return ratio.min(), ratio.max()
