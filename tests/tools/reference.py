"""Plain-NumPy twins, written straight from the equations of Xu 2024, Xiong 2024 and Wang 2023: no JAX, nothing of gyrostat."""

from __future__ import annotations

import numpy as np

Params = tuple[np.ndarray, ...]


# --- spaces ---------------------------------------------------------------------------------------


def svec(A: np.ndarray) -> np.ndarray:
    """The upper triangle row by row, off-diagonal entries times sqrt 2: svec(A) . svec(B) = <A, B>."""
    d = len(A)
    return np.array([A[i, j] * (1.0 if i == j else np.sqrt(2.0)) for i in range(d) for j in range(i, d)])


def smat(x: np.ndarray) -> np.ndarray:
    """The symmetric matrix with these coordinates."""
    d = round((np.sqrt(8 * len(x) + 1) - 1) / 2)
    A, at = np.zeros((d, d)), 0
    for i in range(d):
        for j in range(i, d):
            A[i, j] = A[j, i] = x[at] / (1.0 if i == j else np.sqrt(2.0))
            at += 1
    return A


def gaussian(rng: np.random.Generator, shape: tuple[int, ...], *lead: int) -> np.ndarray:
    """Standard Gaussian elements: vectors and rectangles of iid N(0, 1), or symmetrised squares of iid N(0, 1)."""
    Z = rng.standard_normal((*lead, *shape))
    return Z if len(shape) == 1 or shape[0] != shape[1] else (Z + np.swapaxes(Z, -1, -2)) / 2


# --- models ---------------------------------------------------------------------------------------


def product(model: str, params: Params) -> np.ndarray:
    """A(theta)."""
    if model == "Symmetric":
        return params[0] @ params[0].T
    if model == "SymmetricDifference":
        return params[0] @ params[0].T - params[1] @ params[1].T
    if model == "Asymmetric":
        return params[0] @ params[1].T
    if model == "DeepLinear":
        return chain(params[::-1])
    return params[0] ** 2 - params[1] ** 2


def chain(matrices: Params) -> np.ndarray:
    """The product in the order given."""
    out = matrices[0]
    for W in matrices[1:]:
        out = out @ W
    return out


def pullback(model: str, params: Params, G: np.ndarray) -> Params:
    """Eq. (3) and the end of section 3.1, factor 1: G U, (G U, -G V), and on the diagonal (g u, -g v).

    Eq. (2.2) of Xiong 2024 for two factors: (M G, M^T F), both at the old ones.
    """
    if model == "Symmetric":
        return (G @ params[0],)
    if model == "SymmetricDifference":
        return G @ params[0], -G @ params[1]
    if model == "Asymmetric":
        return G @ params[1], G.T @ params[0]
    if model == "DeepLinear":  # (W_L ... W_(k+1))^T G (W_(k-1) ... W_1)^T
        out = []
        for k in range(len(params)):
            D = G if k == len(params) - 1 else chain(params[:k:-1]).T @ G
            out.append(D if k == 0 else D @ chain(params[:k][::-1]).T)
        return tuple(out)
    return G * params[0], -G * params[1]


def start(model: str, d: int, scale: float, columns: int | None = None) -> Params:
    """U_0 = alpha I, or alpha 1 on the diagonal; for two factors alpha times the two parts of I that fit."""
    if model == "Asymmetric":
        n2 = d if columns is None else columns
        return scale * np.eye(d, min(d, n2)), scale * np.eye(n2, min(d, n2))
    if model == "DeepLinear":  # three layers, hidden ones as wide as the smaller side
        n2 = d if columns is None else columns
        k = min(d, n2)
        return scale * np.eye(k, n2), scale * np.eye(k), scale * np.eye(d, k)
    one = scale * (np.ones(d) if model == "Diagonal" else np.eye(d))
    return (one,) if model == "Symmetric" else (one, one)


# --- gradients ------------------------------------------------------------------------------------


def gradient(A: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """G = (1/m) sum_i (<X_i, A> - y_i) X_i."""
    G = np.zeros_like(A)
    for X_i, y_i in zip(X, y, strict=True):
        G += (np.sum(X_i * A) - y_i) * X_i
    return G / len(y)


def rank_one_gradient(A: np.ndarray, x: np.ndarray, y: np.ndarray, R: float) -> np.ndarray:
    """G = (1/m) sum_i (yhat_i - y_i) 1[yhat_i <= R] x_i x_i^T with yhat_i = x_i^T A x_i (Algorithm 4)."""
    G = np.zeros_like(A)
    for x_i, y_i in zip(x, y, strict=True):
        y_hat = x_i @ A @ x_i
        if y_hat <= R:
            G += (y_hat - y_i) * np.outer(x_i, x_i)
    return G / len(y)


# --- one step of each algorithm -------------------------------------------------------------------


def move(model: str, params: Params, G: np.ndarray, eta: float, ridge: float = 0.0) -> Params:
    """theta <- (1 - 2 eta lambda) theta - eta pullback(theta, G)."""
    return tuple((1 - 2 * eta * ridge) * p - eta * g for p, g in zip(params, pullback(model, params, G), strict=True))


def algorithm4_step(U: np.ndarray, x: np.ndarray, y: np.ndarray, eta: float, R: float) -> np.ndarray:
    """The gradient step, then the shrinkage by 1 / (1 - eta (||U_t||_F^2 - mean(y)))."""
    after = U - eta * rank_one_gradient(U @ U.T, x, y, R) @ U
    return after / (1 - eta * (np.sum(U**2) - np.mean(y)))


def preconditioned_step(model: str, params: Params, G: np.ndarray, eta: float, damping: float) -> Params:
    """ScaledGD and PrecGD: every gradient times the inverse of (P^T P + damping I), P the other factor (or itself)."""
    partners = params[::-1] if model == "Asymmetric" else params
    inverses = [np.linalg.inv(P.T @ P + damping * np.eye(P.shape[1])) for P in partners]
    return tuple(
        p - eta * g @ inverse for p, g, inverse in zip(params, pullback(model, params, G), inverses, strict=True)
    )


def remember(kind: str, memory: list | None, t: int, directions: Params, numbers: dict) -> tuple[Params, list]:
    """The step (to be multiplied by -eta) of update rules with memory at step t = 1, 2, ..., and the memory.

    Polyak 1964; Nesterov's momentum as Sutskever et al. 2013 write it, at the point looked ahead to; Kingma and Ba 2015,
    Algorithm 1, with the closed forms of the running means as weighted sums over all directions so far.
    """
    history = [*(memory or []), directions]
    steps = []
    for k in range(len(directions)):
        g = [d[k] for d in history]
        if kind == "Adam":
            b1, b2, eps = numbers["beta1"], numbers["beta2"], numbers["epsilon"]
            mean = sum((1 - b1) * b1 ** (t - 1 - i) * x for i, x in enumerate(g)) / (1 - b1**t)
            square = sum((1 - b2) * b2 ** (t - 1 - i) * x**2 for i, x in enumerate(g)) / (1 - b2**t)
            steps.append(mean / (np.sqrt(square) + eps))
        else:
            b = numbers["beta"]
            m = sum(b ** (t - 1 - i) * x for i, x in enumerate(g))
            steps.append(g[-1] + b * m if kind == "Nesterov" else m)
    return tuple(steps), history


def truncated(A: np.ndarray, k: int) -> np.ndarray:
    """The nearest matrix of rank k (Eckart and Young)."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U[:, :k] * s[:k]) @ Vt[:k]


def imbalance_step(F: np.ndarray, G: np.ndarray, beta: float) -> Params:
    """Eq. (5.1), keeping the product, through F^T F = V S^2 V^T (largest first) and not through the SVD; signs are free."""
    squares, V = np.linalg.eigh(F.T @ F)
    s, V = np.sqrt(squares[::-1]), V[:, ::-1]
    return F @ V * (beta / s), G @ V * (s / beta)


def population_run(model: str, params: Params, targets: list, order: list[int], eta: float) -> list[Params]:
    """HeteroSGD with infinitely many samples, environments in the given order: the whole path."""
    path = [params]
    for e in order:
        params = move(model, params, product(model, params) - targets[e], eta)
        path.append(params)
    return path


CONVENTIONS = {"main_text": (1 / 2, 2.0), "appendix": (1 / 2, 1.0), "weight_decay": (1.0, 1.0)}
"""Multipliers of eta grad (A*_ij - A_ij)^2 and of eta lambda theta: Wang 2023, section 2.3, section E, and torch's SGD."""


def completion_step(
    layers: Params, truth: np.ndarray, batch: list[tuple[int, int]], eta: float, ridge: float, convention: str
) -> Params:
    """One step on the mean of (A*_ij - A_ij)^2 over a batch of entries, every layer at the old ones."""
    a, b = CONVENTIONS[convention]
    A, G = product("DeepLinear", layers), np.zeros_like(truth)
    for i, j in batch:
        G[i, j] += 2 * (A[i, j] - truth[i, j]) / len(batch)
    return tuple(
        (1 - b * eta * ridge) * W - a * eta * g for W, g in zip(layers, pullback("DeepLinear", layers, G), strict=True)
    )


# --- brute-force sensing --------------------------------------------------------------------------


def sense(rng: np.random.Generator, M: np.ndarray, m: int, noise: float, count: int) -> np.ndarray:
    """``count`` independent values of (1/m) sum_i (<X_i, M> - noise eps_i) X_i."""
    return mixture(rng, np.broadcast_to(M, (count, m, *M.shape)), noise)


def mixture(rng: np.random.Generator, residuals: np.ndarray, noise: float) -> np.ndarray:
    """The same with a residual of its own for every sample: residuals (count, m, *shape)."""
    return readings(rng, residuals, noise)[0]


def readings(rng: np.random.Generator, residuals: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """The same, and beside each the mean square (1/m) sum_i (<X_i, M_i> - noise eps_i)^2 of the same samples."""
    count, m, *shape = residuals.shape
    axes = tuple(range(2, residuals.ndim))
    out, squares = np.empty((count, *shape)), np.empty(count)
    for at in range(0, count, 500):
        part = residuals[at : at + 500]
        X = gaussian(rng, tuple(shape), len(part), m)
        w = np.sum(X * part, axis=axes) - noise * rng.standard_normal((len(part), m))
        out[at : at + 500] = np.einsum("nm,nm...->n...", w, X) / m
        squares[at : at + 500] = np.mean(w**2, axis=1)
    return out, squares
