"""The absorbing sets B_r of Wang 2023: their constants (Theorem B.1), and whether parameters lie in one of them."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from gyrostat import errors
from gyrostat.diagnostics.base import Diagnostic, Snapshot
from gyrostat.diagnostics.layers import gaps, layer_rank, layers
from gyrostat.errors import GyrostatError
from gyrostat.typing import Params


@errors.checks_fields
class Region(NamedTuple):
    """The set B_r: balanced to ``balance``, of approximate rank ``rank`` + ``excess``, with layers of at most ``bound``.

    ``||W_l W_l^T - W_(l+1)^T W_(l+1)||_2 <= balance`` (epsilon_1), ``sum_i f_alpha(s_i(W_l^T W_l)) <= rank + excess``
    (epsilon_2) and ``||W_l||_F^2 <= bound`` (C), for every layer. (The main text has a squared Frobenius norm in the first
    condition; the theorem is proved with the spectral norm, which is used here.)

    Parameters
    ----------
    rank
        The rank r.
    alpha
        The scale of the smooth rank.
    balance
        The largest imbalance, epsilon_1.
    excess
        How far the smooth rank may exceed r, epsilon_2.
    bound
        The largest squared norm of a layer, C.

    >>> Region(rank=1, alpha=0.1, balance=1e-3, excess=0.4, bound=5.0).rank
    1
    """

    rank: int
    alpha: float
    balance: float
    excess: float
    bound: float


class AbsorbingSet(NamedTuple):
    """A set B_r that SGD cannot leave, by Theorem B.1.

    Parameters
    ----------
    region
        The set.
    step_size
        The largest step size at which SGD cannot leave it.
    """

    region: Region
    step_size: float


@errors.explains_keywords
def absorbing(
    ridge: float, depth: int, size: int, *, rank: int = 1, largest: float = 1.0, excess: float = 0.4
) -> AbsorbingSet:
    """The largest constants that Theorem B.1 admits, for the appendix's update (``RidgeStep("appendix")``).

    ``size`` is the largest side n of any layer and ``largest`` is max |A*_ij|. With C_1 = largest^2, C = C_1 / (2 lambda),
    K = 2 (C_1 + C^L): ``alpha = (lambda^2 / K)^(1 / (L - 2))``, ``sqrt(epsilon_1) = lambda alpha epsilon_2 /
    (32 n L (r + 1) C^((L - 1) / 2) sqrt(K))`` and eta the least of four bounds. (The text's epsilon_2 ~ 1 / lambda contradicts
    the theorem's epsilon_2 < 1/2.)

    Parameters
    ----------
    ridge
        The strength lambda of the ridge.
    depth
        The number L of layers.
    size
        The largest side n of any layer.
    rank
        The rank r of the set.
    largest
        The largest entry of the target, in absolute value.
    excess
        epsilon_2, below one half.

    >>> absorbing(0.1, 3, 2).step_size < 1e-25
    True
    """
    lam = float(errors.number("ridge", ridge, above=0, most=1e9))
    C1 = float(errors.number("largest", largest, above=0, most=1e9)) ** 2
    L, n, r = (
        errors.integer("depth", depth, least=3),
        errors.integer("size", size, least=1),
        errors.integer("rank", rank),
    )
    e2 = float(errors.number("excess", excess, above=0))
    if e2 >= 0.5:
        raise GyrostatError(f"excess must be below 1/2 (Theorem B.1); got {e2:g}.")
    C = C1 / (2 * lam)
    K = 2 * (C1 + C**L)
    alpha = (lam**2 / K) ** (1 / (L - 2))
    e1 = (lam * alpha * e2 / (32 * n * L * (r + 1) * C ** ((L - 1) / 2) * K**0.5)) ** 2
    noise = K * C ** (L - 1) + lam**2 * C
    eta = min(
        C1 / (4 * noise),
        2 * lam * e1 / (2 * K * C ** (L - 1) + lam**2 * e1),
        lam * alpha * e2 / (32 * n * (r + 1) * noise),
        2 * (r + 1) / lam,
    )
    return AbsorbingSet(Region(r, alpha, e1, e2, C), eta)


def margins(weights: Params, region: Region) -> Float[Array, " 3"]:
    """How far inside B_r the layers are (negative outside): in balance, in approximate rank, in size.

    Parameters
    ----------
    weights
        The layers W_1, W_2, ....
    region
        The set B_r.

    >>> import numpy as np
    >>> [round(float(m), 3) for m in margins((np.eye(2), np.eye(2)), Region(2, 0.5, 0.1, 0.4, 3.0))]
    [0.1, 0.4, 1.0]
    """
    errors.instance("region", region, Region)
    W = [jnp.asarray(w) for w in weights]
    if len(W) < 2:
        raise GyrostatError(f"weights must list at least two layers W_1, W_2, ...; got {len(W)}.")
    imbalances = jnp.stack([jnp.linalg.norm(x, 2) for x in gaps(tuple(W))])
    ranks = jnp.stack([layer_rank(w, region.alpha) for w in W])
    sizes = jnp.stack([jnp.sum(w * w) for w in W])
    return jnp.stack(
        [region.balance - imbalances.max(), region.rank + region.excess - ranks.max(), region.bound - sizes.max()]
    )


def contains(region: Region, weights: Params) -> Bool[Array, ""]:
    """Whether the layers lie in B_r.

    Parameters
    ----------
    region
        The set B_r.
    weights
        The layers W_1, W_2, ....

    >>> import numpy as np
    >>> bool(contains(Region(1, 0.5, 0.1, 0.4, 3.0), (np.eye(2), np.eye(2))))
    False
    """
    return jnp.all(margins(weights, region) >= 0)


@errors.explains_keywords
def membership(region: Region) -> Diagnostic:
    """A diagnostic: the margins by which a run lies inside B_r, negative outside.

    Parameters
    ----------
    region
        The set B_r.

    >>> membership(Region(1, 0.1, 1e-3, 0.4, 5.0)).dims
    ('condition',)
    """
    return _membership(region)


@functools.lru_cache(maxsize=64)  # a diagnostic is identified by its function: one region, one program
def _membership(region: Region) -> Diagnostic:
    def function(snapshot: Snapshot) -> Array:
        return margins(layers(snapshot), region)

    about = "margins of B_r: balance, approximate rank, size"
    return Diagnostic("membership", function, ("condition",), about, one_means="inside by 1 (negative: outside)")
