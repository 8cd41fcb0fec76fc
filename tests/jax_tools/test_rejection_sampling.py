"""Chi-square, binomial and multinomial numbers against SciPy's laws, and the inequalities that the rejections rest on."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from gyrostat.jax_tools.float64 import double
from gyrostat.jax_tools.rejection_sampling import OFFSET, SLOPE, binomial, chi_square, multinomial

pytestmark = pytest.mark.usefixtures("optimised")

N = 100_000
CASES = [(1, 0.3), (3, 0.5), (10, 0.1), (10, 0.9), (80, 0.5), (5600, 0.5), (100_000, 0.3), (4_000_000, 1e-6)]
LEVEL = 1e-3 / (2 * len(CASES))
"""Bonferroni at a family level of 1e-3; keys are fixed, so the outcome is too."""


@functools.partial(jax.jit, static_argnums=0)
def _counts(draw, keys, *arguments):
    return jax.vmap(lambda key: draw(key, *arguments))(keys)


def counts(draw, seed, *arguments):
    """N counts; numbers of the same shapes share a program."""
    with double():
        keys = jax.random.split(jax.random.key(seed), N)
        return np.asarray(_counts(draw, keys, *(jnp.asarray(x, dtype=float) for x in arguments)))


def p_value(found, law):
    """Of Pearson's test, over values that are expected at least 20 times."""
    values = np.arange(found.min(), found.max() + 1)
    expected, seen = N * law.pmf(values), np.bincount((found - found.min()).astype(int))
    often = expected >= 20
    return stats.chi2.sf(((seen - expected)[often] ** 2 / expected[often]).sum(), often.sum() - 1)


@pytest.mark.parametrize("i", range(len(CASES)))
def test_binomial_law(i):
    n, p = CASES[i]
    found = counts(binomial, i, n, p)
    assert found.min() >= 0 and found.max() <= n
    assert p_value(found, stats.binom(n, p)) > LEVEL
    beside = p + 0.1 * np.sqrt(p * (1 - p) / n)
    assert p_value(found, stats.binom(n, beside)) < 1e-9


@pytest.mark.parametrize(("n", "p", "value"), [(0, 0.3, 0), (50, 0.0, 0), (50, 1.0, 50)])
def test_certain_counts(n, p, value):
    assert (counts(binomial, 1, n, p) == value).all()


def test_multinomial_law():
    weights = np.array([0.2, 0.5, 0.0, 0.3, 0.0])
    found = counts(multinomial, 3, 40, weights)
    assert (found.sum(axis=1) == 40).all() and (found[:, weights == 0] == 0).all()
    for j in (0, 1, 3):
        assert p_value(found[:, j], stats.binom(40, weights[j])) > LEVEL
    both = found[:, 0] + found[:, 1]
    assert p_value(both, stats.binom(40, 0.7)) > LEVEL


@pytest.mark.parametrize("n", [1e12, 1e18])
def test_huge_counts_are_gaussian(n):
    """Masses of this many trials written with factorials would be wrong in their first digit."""
    found = (counts(binomial, 6, n, 0.3) - 0.3 * n) / np.sqrt(0.21 * n)
    assert stats.kstest(found, "norm").pvalue > LEVEL
    assert stats.kstest(1.03 * found, "norm").pvalue < 1e-4


def test_one_class_takes_all():
    assert (counts(multinomial, 4, 7, [1.0]) == 7).all()


@pytest.mark.parametrize("n", [*range(30), 100, 1000, 10_000])
def test_the_masses_lie_under_the_hat(n):
    rare = [1e-9, 1e-6, 1e-4, 1e-3, 0.01]
    for p in [*rare, *np.linspace(0.02, 0.98, 49), *(1 - x for x in rare)]:
        k, mode = np.arange(n + 1), min(int((n + 1) * p), n)
        height = np.exp((stats.binom.logpmf(k, n, p) - stats.binom.logpmf(mode, n, p)) / 2)
        reach = np.maximum(abs(k - n * p - 0.5), abs(k + 0.5 - n * p))
        assert (reach * height).max() <= (SLOPE * np.sqrt(n * p * (1 - p) + 0.5) + OFFSET) / 2


@pytest.mark.parametrize("freedom", [1.0, 2.0, 3.0, 7.0, 40.0, 2000.0, 1e7])
def test_chi_square_law(freedom):
    with double():
        keys = jax.random.split(jax.random.key(int(freedom)), 100_000)
        found = np.asarray(jax.jit(jax.vmap(lambda key: chi_square(key, jnp.asarray(freedom))))(keys))
    # Seven tests at a family level of 1e-3; keys are fixed.
    assert stats.kstest(found, stats.chi2(freedom).cdf).pvalue > 1e-3 / 7
    assert stats.kstest(found, stats.chi2(freedom, scale=1 + 0.1 / freedom**0.5).cdf).pvalue < 1e-9


def test_chi_square_rests_on_an_inequality_for_all_degrees():
    y = np.geomspace(1e-6, 1e3, 100_001)
    assert (3 * np.log(y) <= y**3 - 1 - 4.5 * (y - 1) ** 2 + 1e-12).all()
