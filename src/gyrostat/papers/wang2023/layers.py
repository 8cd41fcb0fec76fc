"""Layers of deep linear networks in NumPy, as the proofs have them and apart from the engine that is judged.

The layers W_1, ..., W_L are an array (L, ..., n, n), or a list if their shapes differ; axes between are many networks at once.
"""

import functools
import itertools

import numpy as np


def transposed(x):
    return x.swapaxes(-1, -2)


def product(layers):
    """A = W_L ... W_1."""
    return functools.reduce(lambda A, W: W @ A, layers)


def pulls(layers, G):
    """T_l = W_(l+1)^T ... W_L^T G W_1^T ... W_(l-1)^T for every layer: its gradient, where G is that of the product."""
    ahead, T = list(itertools.accumulate(layers, lambda A, W: W @ A)), []
    for W, before in zip(layers[:0:-1], ahead[-2::-1]):
        T.append(G @ transposed(before))
        G = transposed(W) @ G
    return [*T, G][::-1]


def imbalance(W):
    """``W_l W_l^T - W_(l+1)^T W_(l+1)`` for all neighbours."""
    return W[:-1] @ transposed(W[:-1]) - transposed(W[1:]) @ W[1:]


def balanced(rng, squares, depth):
    """Balanced layers with these squares of singular values."""
    turns = [np.linalg.qr(rng.standard_normal((len(squares),) * 2))[0] for _ in range(depth + 1)]
    return np.array([(b * np.sqrt(squares)) @ a.T for a, b in itertools.pairwise(turns)])


def f(x, alpha):
    """f_alpha: x (2 alpha - x) / alpha^2 up to alpha, and 1 beyond."""
    share = np.clip(x / alpha, 0, 1)
    return share * (2 - share)


def f_prime(x, alpha):
    return 2 / alpha * (1 - np.clip(x / alpha, 0, 1))
