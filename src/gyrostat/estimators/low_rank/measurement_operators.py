"""Linear measurements ``<X_i, F G^T>`` with given X_i, in NumPy: as matrices, as pairs of vectors, or as single entries.

They differ from ``gyrostat.measurements``, whose classes draw random measurements in JAX. Here the X_i are the user's arrays,
the product is never written out for pairs of vectors, fits also need the Jacobian, and JAX is not imported.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.estimators.representable_squares import squarable

ROUNDING = 1e-12
"""X that are symmetric up to this share of their largest entry are symmetric."""
KINDS = ("dense", "rank-one", "entries")
MOST_SHARED, OUTLYING = 6, 2.0
"""The most directions that are looked at for shared components, and how much larger than usual they must be."""


class DenseOperator(NamedTuple):
    """Measurements with matrices X_i that are written out, (m, n1, n2)."""

    matrices: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the measured matrix."""
        return self.matrices.shape[1:]

    def __len__(self) -> int:
        return len(self.matrices)

    def measure(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """``<X_i, F G^T>``."""
        return self.matrices.reshape(len(self.matrices), -1) @ (F @ G.T).ravel()

    def gradient(self, e: np.ndarray) -> np.ndarray:
        """``sum_i e_i X_i``."""
        return (e @ self.matrices.reshape(len(self.matrices), -1)).reshape(self.shape)

    def jacobian(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """The derivative of ``measure`` in F and G."""
        left, right = self.matrices @ G, np.swapaxes(self.matrices, 1, 2) @ F
        return np.hstack([left.reshape(len(left), -1), right.reshape(len(right), -1)])

    def mean_square(self) -> float:
        """The mean square of the entries of all X_i."""
        return float(np.mean(self.matrices**2))

    def take(self, chosen: np.ndarray) -> DenseOperator:
        """Some of the measurements."""
        return DenseOperator(self.matrices[chosen])


class RankOneOperator(NamedTuple):
    """Measurements with ``X_i = u_i v_i^T``.

    The u and v are rows of arrays or, for single entries, of sparse matrices with one 1 in each row.
    """

    left: Any
    right: Any

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the measured matrix."""
        return self.left.shape[1], self.right.shape[1]

    def __len__(self) -> int:
        return self.left.shape[0]

    def measure(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """``u_i^T F G^T v_i``."""
        return np.sum((self.left @ F) * (self.right @ G), axis=1)

    def gradient(self, e: np.ndarray) -> OuterSum:
        """``sum_i e_i u_i v_i^T``."""
        return OuterSum(self.left, self.right, e)

    def jacobian(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """The derivative of ``measure`` in F and G."""
        u, v = (x.toarray() if sparse.issparse(x) else x for x in self)
        a, b = v @ G, u @ F
        return np.hstack([(x[:, :, None] * y[:, None, :]).reshape(len(x), -1) for x, y in ((u, a), (v, b))])

    def mean_square(self) -> float:
        """The mean square of the entries of all X_i."""
        squares = [
            np.asarray(x.multiply(x).sum(axis=1)).ravel() if sparse.issparse(x) else np.sum(x**2, axis=1) for x in self
        ]
        return float(np.mean(squares[0] * squares[1]) / (self.shape[0] * self.shape[1]))

    def take(self, chosen: np.ndarray) -> RankOneOperator:
        """Some of the measurements."""
        return RankOneOperator(self.left[chosen], self.right[chosen])


class OuterSum(NamedTuple):
    """The matrix ``sum_i e_i u_i v_i^T``, multiplied without being written out.

    >>> M = OuterSum(np.array([[1.0, 2.0]]), np.array([[3.0, 0.0]]), np.array([2.0]))
    >>> (M @ np.eye(2)).tolist(), (M.mT @ np.eye(2)).tolist()
    ([[6.0, 0.0], [12.0, 0.0]], [[6.0, 12.0], [0.0, 0.0]])
    """

    left: Any
    right: Any
    weights: np.ndarray

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        return self.left.T @ (self.weights[:, None] * (self.right @ other))

    @property
    def mT(self) -> OuterSum:
        """The transposed matrix, under NumPy's name."""
        return OuterSum(self.right, self.left, self.weights)


class ScaledOperator(NamedTuple):
    """Another operator times a number."""

    inner: Any
    scale: float

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the measured matrix."""
        return self.inner.shape

    def measure(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """The measurements of the other operator times the number."""
        return self.scale * self.inner.measure(F, G)

    def gradient(self, e: np.ndarray) -> Any:
        """The gradient of the other operator times the number."""
        return self.inner.gradient(self.scale * e)

    def jacobian(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """The Jacobian of the other operator times the number."""
        return self.scale * self.inner.jacobian(F, G)

    def mean_square(self) -> float:
        """The mean square of the other operator times that of the number."""
        return self.scale**2 * self.inner.mean_square()

    def take(self, chosen: np.ndarray) -> ScaledOperator:
        """Some of the measurements."""
        return ScaledOperator(self.inner.take(chosen), self.scale)


class SharedComponents(NamedTuple):
    """Directions in which all measurements vary together: orthonormal columns over measurements, and a factor for each.

    Multiplied by its factor, a direction has the size of the others. ``size`` is that of an entry of X without them.
    """

    basis: np.ndarray
    factors: np.ndarray
    size: float

    def evened(self, r: np.ndarray) -> np.ndarray:
        """Weighted residuals, or columns of them, with the shared directions made smaller."""
        return r - (self.basis * (1 - self.factors)) @ (self.basis.T @ r)


class Responses(NamedTuple):
    """An operator, its responses, and the number of the group (environment) of each response.

    All groups have the same weight. Each has its own intercept, unless ``centred`` is False. Residuals along ``shared``
    directions count less, so that steps that are stable there are not too short elsewhere.
    """

    operator: Any
    y: np.ndarray
    groups: np.ndarray
    centred: bool
    shared: SharedComponents | None = None

    def residual(self, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """``<X_i, F G^T> - y_i`` minus the mean of its group."""
        return self.centre(self.operator.measure(F, G) - self.y)

    def centre(self, e: np.ndarray) -> np.ndarray:
        """``e`` minus the mean of each group, or ``e`` itself if there are no intercepts."""
        if not self.centred:
            return e
        counts = np.bincount(self.groups)
        return e - (np.bincount(self.groups, e) / np.maximum(counts, 1))[self.groups]

    def loss(self, e: np.ndarray) -> float:
        """The loss of a residual."""
        if self.shared is None:
            return float(self.weights @ e**2)
        return float(np.sum(self.shared.evened(np.sqrt(self.weights) * e) ** 2))

    def gradient(self, e: np.ndarray) -> Any:
        """The matrix ``sum_i w_i e_i X_i`` of a residual."""
        if self.shared is None:
            return self.operator.gradient(self.weights * e)
        root = np.sqrt(self.weights)
        return self.operator.gradient(root * self.shared.evened(self.shared.evened(root * e)))

    def with_shared_components(self) -> Responses:
        """The same responses, with the directions found in which the measurements are far larger than in all others.

        The entries of X are taken for independent: their largest singular value is then about
        ``sqrt(count) + sqrt(entries of a matrix)`` times the size of an entry.
        """
        (n1, n2), m = self.operator.shape, len(self.y)
        count = min(MOST_SHARED, m - 2, n1 * n2 - 2)
        if (
            count < 1
            or not self.mean_square() > ROUNDING * self.operator.mean_square()
            or sparse.issparse(getattr(self.operator.inner, "left", None))
        ):
            return self._replace(shared=None)
        U, s = self._largest_directions(count)
        # The mean square of an entry that is left after the k largest directions, for k = 0, 1, ...
        left = np.maximum(self.mean_square() - np.cumsum(np.append(0.0, s**2)) / (n1 * n2), 0.0)
        usual = np.sqrt(left[1:]) * (1 + np.sqrt(n1 * n2 / m))
        number = int(np.cumprod(s > OUTLYING * usual).sum())
        if number == 0:
            return self._replace(shared=None)
        factors = usual[number - 1] / s[:number]
        return self._replace(shared=SharedComponents(U[:, :number], factors, float(np.sqrt(left[number]))))

    def mean_square(self) -> float:
        """The mean square of the entries of all X_i, minus the means of their groups if residuals are centred."""
        (n1, n2), total = self.operator.shape, self.operator.mean_square()
        if not self.centred:
            return total
        means = [self.operator.gradient((self.groups == g) / np.sum(self.groups == g)) for g in np.unique(self.groups)]
        return total - float(np.mean([np.sum((M @ np.eye(n2)) ** 2) for M in means])) / (n1 * n2)

    def _largest_directions(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Left singular vectors and singular values of the centred and weighted measurements as rows of a matrix."""
        n1, n2 = self.operator.shape
        right, root = np.eye(n2), np.sqrt(self.weights)

        def times(a: np.ndarray) -> np.ndarray:
            return root * self.centre(self.operator.measure(a.reshape(n1, n2), right))

        def back(e: np.ndarray) -> np.ndarray:
            return (self.operator.gradient(root * self.centre(np.ravel(e))) @ right).ravel()

        rows = LinearOperator((len(root), n1 * n2), matvec=times, rmatvec=back, dtype=float)
        start = np.random.RandomState(0).standard_normal(min(rows.shape))
        U, s, _ = svds(rows, k=count, v0=start, tol=1e-3)
        return U[:, ::-1], s[::-1]

    @property
    def weights(self) -> np.ndarray:
        """The weight of each response. Weights sum to one, and those of each group to the same number."""
        counts = np.bincount(self.groups)
        return 1 / (counts[self.groups] * np.count_nonzero(counts))

    def take(self, chosen: np.ndarray) -> Responses:
        """Some of the measurements."""
        return Responses(self.operator.take(chosen), self.y[chosen], self.groups[chosen], self.centred)


def sees_symmetric_part(operator: Any) -> bool:
    """Whether all X_i are symmetric, so that the measurements say nothing about the antisymmetric part of the matrix.

    >>> sees_symmetric_part(DenseOperator(np.ones((3, 2, 2)))), sees_symmetric_part(DenseOperator(np.ones((3, 2, 4))))
    (True, False)
    """
    if operator.shape[0] != operator.shape[1]:
        return False
    if isinstance(operator, DenseOperator):
        X = operator.matrices
        return bool(np.abs(X - X.mT).max() <= ROUNDING * np.abs(X).max())
    u, v = operator
    return bool(abs(u - v).max() == 0)


def measurement_operator(X: Any, kind: str, shape: Any, symmetric: bool) -> DenseOperator | RankOneOperator:
    """Measurements from the arrays that a user gives; see ``MatrixSensingRegressor``.

    >>> operator = measurement_operator(np.array([[0, 1], [2, 0]]), "entries", (3, 2), False)
    >>> operator.measure(np.ones((3, 1)), np.array([[1.0], [5.0]])).tolist()
    [5.0, 1.0]
    """
    errors.choice("measurements", kind, KINDS)
    operator = _dense(X, shape) if kind == "dense" else _rank_one(X) if kind == "rank-one" else _entries(X, shape)
    if not symmetric:
        return operator
    if operator.shape[0] != operator.shape[1]:
        raise GyrostatError(f"symmetric=True needs square matrices; got {operator.shape[0]} x {operator.shape[1]}.")
    if isinstance(operator, DenseOperator):
        return DenseOperator((operator.matrices + np.swapaxes(operator.matrices, 1, 2)) / 2)
    return operator


def _dense(X: Any, shape: Any) -> DenseOperator:
    X = errors.array("X", X, ndim=(2, 3))
    if X.ndim == 2:
        n1, n2 = _shape(shape, "X is flattened")
        if X.shape[1] != n1 * n2:
            raise GyrostatError(f"X has {X.shape[1]} columns, shape asks for {n1} x {n2} = {n1 * n2}: make them equal.")
        X = X.reshape(len(X), n1, n2)
    squarable("X", X.reshape(-1))
    return DenseOperator(X)


def _rank_one(X: Any) -> RankOneOperator:
    if isinstance(X, tuple | list) and len(X) == 2 and np.ndim(X[0]) == 2:
        u, v = (errors.array(name, x, ndim=2) for name, x in zip(("X[0]", "X[1]"), X, strict=True))
    else:
        u = v = errors.array("X", X, ndim=2)
    if len(u) != len(v):
        raise GyrostatError(f"X holds {len(u)} left and {len(v)} right vectors: give one pair for each response.")
    for x in (u, v):
        squarable("X", x.reshape(-1), power=2)
    return RankOneOperator(u, v)


def _entries(X: Any, shape: Any) -> RankOneOperator:
    n1, n2 = _shape(shape, "X holds (row, column) pairs")
    pairs = np.asarray(X)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer) or not len(pairs):
        raise GyrostatError(f"X must list (row, column) pairs of whole numbers; got {errors.shown(X)}.")
    if pairs.min() < 0 or (pairs.max(axis=0) >= (n1, n2)).any():
        raise GyrostatError(f"X must hold pairs inside the {n1} x {n2} matrix, counted from zero.")
    ones, m = np.ones(len(pairs)), np.arange(len(pairs))
    return RankOneOperator(
        *(sparse.csr_matrix((ones, (m, pairs[:, i])), shape=(len(pairs), n)) for i, n in enumerate((n1, n2)))
    )


def _shape(shape: Any, because: str) -> tuple[int, int]:
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise GyrostatError(f"shape must be (rows, columns) of the matrix, as {because}; got {errors.shown(shape)}.")
    return errors.integer("shape[0]", shape[0], least=1), errors.integer("shape[1]", shape[1], least=1)
