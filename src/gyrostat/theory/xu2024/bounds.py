"""Assumptions, step windows and error bounds of Xu 2024, with the literal constants where the paper gives them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gyrostat import errors
from gyrostat.theory.condition import Condition
from gyrostat.theory.xu2024.oscillation import moment_growth

if TYPE_CHECKING:
    from gyrostat.environments import Law

CONSTANT = "absolute constant left open, taken as 1"


class Constants(NamedTuple):
    """M1 and M2 of Assumption 2.

    Parameters
    ----------
    bound
        M1, the supremum of ``|Sigma_ii|``.
    ratio
        M2, the least variance of an entry over one plus its absolute mean.
    """

    bound: float
    ratio: float


@errors.explains_formula
def constants(law: Law) -> Constants:
    """``M1 = sup |Sigma_ii|`` and ``M2 = min_i Var Sigma_ii / (1 + |E Sigma_ii|)`` (eq. 6).

    Parameters
    ----------
    law
        The law of the spurious part over environments.

    >>> from gyrostat import TwoPoint
    >>> constants(TwoPoint(mean=1.0, spread=6.0))
    Constants(bound=7.0, ratio=18.0)
    """
    mean = law.expectation(lambda xi: xi)
    return Constants(law.bound, float((law.variance / (1 + np.abs(mean))).min()))


@errors.explains_formula
def step_window(law: Law) -> tuple[float, float]:
    """Theorem 2's window for the step size, with its literal constants: ``(24/M2, 1/(64 M1))``.

    It is empty unless M2 > 1536 M1; for a two-point law of mean 1 that needs a spread above 3073.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    """
    M1, M2 = constants(law)
    return 24 / M2 if M2 > 0 else math.inf, 1 / (64 * M1) if M1 > 0 else math.inf


@errors.explains_formula
def step_conditions(law: Law, step_size: float) -> list[Condition]:
    """Theorem 2's step window and the supermartingale condition that Lemma 7 derives from it.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    step_size
        The step size eta.
    """
    M1, M2 = constants(law)
    low, high = step_window(law)
    growth = moment_growth(law, step_size, 2 / 3, shift=2.0)
    return [
        Condition("step window is not empty", "Theorem 2", M2, ">", 1536 * M1, "M2 > 1536 M1"),
        Condition("step size in its window", "Theorem 2", step_size, "in", (low, high), "(24/M2, 1/(64 M1))"),
        Condition("supermartingale", "Lemma 7", growth, "<=", 1.0, "E (1 + eta xi + 2 eta)^(2/3)"),
    ]


@errors.explains_formula
def isometry_bound(law: Law, *, dimension: int, rank: int) -> float:
    """Assumption 3's bound on delta with its constant taken as 1.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    """
    _, M2 = constants(law)
    r2 = law.rank
    return 1 / ((M2 * math.log(dimension)) ** 1.5 * r2**2.5 * math.sqrt(rank + r2))


@errors.explains_formula
def assumptions(
    law: Law, *, dimension: int, rank: int, overlap: float, delta: float | None, init_scale: float
) -> list[Condition]:
    """Assumptions 1-3 and Theorem 2's conditions on overlap and start, for an isometry constant ``delta``.

    Without it (None), the two conditions that need it are left out.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    overlap
        The largest principal cosine between the two subspaces.
    delta
        The restricted isometry constant; None leaves out the conditions that need it.
    init_scale
        The scale alpha of the start.
    """
    M1, M2 = constants(law)
    r2, log = law.rank, math.log(dimension)
    dominance = r2**2 * law.off_diagonal
    conditions = [
        Condition("ranks large enough", "Assumption 1(a)", float(min(rank, r2)), ">=", log**4, CONSTANT),
        Condition("ranks small enough", "Assumption 1(a)", float(dimension), ">=", float(rank + r2), CONSTANT),
        Condition("heterogeneity against bound", "Assumption 2", M1, "<", M2, f"M1 < C0 M2; {CONSTANT}"),
        Condition(
            "diagonal dominance", "Assumption 2, (7)", dominance, "<=", M2**-1.5 if M2 > 0 else math.inf, CONSTANT
        ),
        Condition("start", "Theorem 2", init_scale, "in", (dimension**-4.0, dimension**-2.0), "(d^-4, d^-2)"),
    ]
    if delta is not None:
        bound = isometry_bound(law, dimension=dimension, rank=rank)
        conditions.insert(
            2, Condition("overlap of the subspaces", "Assumption 1(d)", overlap, "<", delta / 2, "epsilon_1 < delta/2")
        )
        conditions.insert(5, Condition("isometry", "Assumption 3", delta, "<=", bound, CONSTANT))
    return conditions


@errors.explains_formula
def theorem2_bound(law: Law, *, dimension: int, rank: int, delta: float) -> float:
    """The right side of (9) with its constants taken as 1.

    ``delta_star = (M2 log d)^1.5 delta r2^2 sqrt(r1 + r2)``; bound ``max(delta_star^2 sqrt(r1) M1^2, delta_star M1) log^2 d``.

    Parameters
    ----------
    law
        The law of the spurious part over environments.
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    delta
        The restricted isometry constant.
    """
    M1, M2 = constants(law)
    log, r2 = math.log(dimension), law.rank
    star = (M2 * log) ** 1.5 * delta * r2**2 * math.sqrt(rank + r2)
    return max(star**2 * math.sqrt(rank) * M1**2, star * M1) * log**2


@errors.explains_formula
def pooled_gap(rank: int, spurious_rank: int) -> float:
    """The least distance of pooled training from A_star, ``sqrt(r1 r2/(r1 + r2))``: Theorems 3 and 6 with a sharp constant.

    Both signals grow together as ``x``, so the squared distance is ``(1 - x)^2 r1 + x^2 r2``, least at x = r1/(r1 + r2).

    Parameters
    ----------
    rank
        The rank r1 of the invariant part.
    spurious_rank
        The rank r2 of the spurious part.

    >>> pooled_gap(1, 1) == 0.5**0.5
    True
    """
    r1, r2 = errors.integer("rank", rank, least=1), errors.integer("spurious_rank", spurious_rank, least=1)
    return math.sqrt(r1 * r2 / (r1 + r2))


@errors.explains_formula
def overlap_constant(overlaps: np.ndarray, *, dimension: int, rank: int, spurious_rank: int) -> float:
    """The smallest C1 for which Proposition 1 is true of sampled overlaps ``||U1^T U2||``, at every t.

    Prop. 1 claims ``P(overlap > t sqrt((r1 + r2)/d)) <= 4 exp(-d/C1) + 2 exp(-(r1 + r2) t^2/C1)`` for a universal C1.

    Parameters
    ----------
    overlaps
        Sampled overlaps ``||U1^T U2||``.
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    spurious_rank
        The rank r2 of the spurious part.
    """
    n, ranks = len(overlaps), rank + spurious_rank
    t = np.sort(overlaps) * math.sqrt(dimension / ranks)
    t, above = t[: max(1, int(0.98 * n))], 1 - np.arange(max(1, int(0.98 * n))) / n

    def enough(C: float) -> bool:
        return bool((above <= 4 * math.exp(-dimension / C) + 2 * np.exp(-ranks * t**2 / C)).all())

    low, high = 1e-2, 1e6
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@errors.explains_formula
def edge_overlap(dimension: int, rank: int, spurious_rank: int) -> float:
    """The overlap of two random subspaces of large dimension: the edge of the Jacobi ensemble.

    Parameters
    ----------
    dimension
        The side d of the matrix (n in Xiong 2024).
    rank
        The rank r1 of the invariant part.
    spurious_rank
        The rank r2 of the spurious part.
    """
    p, q = rank / dimension, spurious_rank / dimension
    return math.sqrt(p * (1 - q)) + math.sqrt(q * (1 - p))


def truncation_radius(delta: float) -> float:
    """The radius at which truncated measurements of rank one are within delta of their mean (Xu 2024, Lemma 20).

    For A = v v^T the truncation takes ``E z^4 1(z^2 > R) = 3 P(chi^2_5 > R)`` from the mean along v, so R is the upper delta/3
    quantile of the chi-square law with 5 degrees of freedom. The printed ``R = log(1/delta)`` is three to four times too small.

    Parameters
    ----------
    delta
        The error that is allowed, relative to the norm of A; between 0 and 1.

    >>> round(truncation_radius(0.01), 1)
    17.7
    """
    from scipy import stats

    return float(stats.chi2.isf(float(errors.number("delta", delta, above=0, most=1)) / 3, 5))
