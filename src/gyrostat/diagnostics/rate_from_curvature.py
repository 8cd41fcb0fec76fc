"""The late convergence rate of gradient descent on two factors, from the curvature at a zero of the loss."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gyrostat import errors
from gyrostat.errors import GyrostatError


class Speed(NamedTuple):
    """The late rate of gradient descent near a point: ``loss ~ exp(-rate * step)``.

    ``slowest`` is lambda_H, the smallest non-zero eigenvalue of the Gauss-Newton Hessian; ``steepest`` the largest.
    """

    slowest: float
    steepest: float
    rate: float

    @property
    def stable(self) -> bool:
        """Whether the step size is below 2 / steepest."""
        return self.rate > -math.inf

    def iterations(self, loss: float, tolerance: float) -> float:
        """The number of steps from ``loss`` to ``tolerance`` at this rate; infinite if the step size is not stable.

        >>> round(Speed(0.1, 2.0, 0.04).iterations(1.0, 1e-12))
        691
        """
        loss = float(errors.number("loss", loss, above=0))
        decay = math.log(loss / float(errors.number("tolerance", tolerance, above=0)))
        if decay <= 0:
            return 0.0
        return decay / self.rate if self.rate > 0 else math.inf


@errors.explains_keywords
def late_speed(factor: Any, cofactor: Any, step_size: float, rank: int, matrices: Any = None) -> Speed:
    """The speed of gradient descent on ``||A(F G^T) - y||^2 / 2`` near the zero-residual point (F, G).

    The Gauss-Newton Hessian is ``J^T J`` with ``J(dF, dG) = A(dF G^T + F dG^T)``. Directions along which the product does
    not change have curvature zero and are left out: with a target of rank r, F of full rank a = min(n1, k) and G of rank
    r, there are (n1 + n2) k - n2 a - (n1 - a) r of them. ``matrices`` (m x n1 n2, rows vec(A_i) / sqrt(m)) is the
    operator; None for factorisation.

    Parameters
    ----------
    factor
        F, of size n1 x k.
    cofactor
        G, of size n2 x k.
    step_size
        The step size eta.
    rank
        The rank r of the target.
    matrices
        The measurements as rows vec(A_i) / sqrt(m); None for factorisation.

    >>> F, G = np.eye(4, 2), np.zeros((4, 2)); G[0, 0] = 1.0
    >>> round(late_speed(F, G, 0.1, rank=1).slowest, 6)
    1.0
    """
    F, G = errors.array("factor", factor, ndim=2), errors.array("cofactor", cofactor, ndim=2)
    eta = float(errors.number("step_size", step_size, above=0))
    (n1, k), n2 = F.shape, G.shape[0]
    if G.shape[1] != k:
        raise GyrostatError(f"cofactor has {G.shape[1]} columns, factor has {k}: make them equal.")
    r = errors.integer("rank", rank, least=1)
    if k < r:
        raise GyrostatError(f"width {k} is below rank {r}: there is no zero of the loss to converge to; raise width.")
    J = np.hstack([np.kron(np.eye(n1), G), np.kron(F, np.eye(n2))])  # of vec(F G^T), row by row
    if matrices is not None:
        A = errors.array("matrices", matrices, ndim=2)
        if A.shape[1] != n1 * n2:
            raise GyrostatError(
                f"matrices must have {n1 * n2} columns, one per entry of the product; got {A.shape[1]}."
            )
        J = A @ J
    values = np.linalg.eigvalsh(J.T @ J)
    a = min(n1, k)
    flat = (n1 + n2) * k - n2 * a - (n1 - a) * r
    slowest, steepest = float(values[flat]), float(values[-1])
    worst = max(abs(1 - eta * slowest), abs(1 - eta * steepest))
    if eta * steepest >= 2:
        return Speed(slowest, steepest, -math.inf)
    return Speed(slowest, steepest, -2 * math.log(worst) if worst > 0 else math.inf)
