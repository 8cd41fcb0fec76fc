"""The least error in the worst environment: near the least possible one, wherever losses lie."""

import numpy as np
import pytest
from scipy import optimize

from gyrostat.estimators import squared_losses
from gyrostat.estimators.squared_losses import LeastLargestWarning, Risks


def lower_bound(risks: Risks, w: np.ndarray) -> float:
    """What no weights can be below: ``min_w sum q_e R_e(w)``, with the q whose mixture of gradients at w is nearest to zero."""
    values, slopes = risks.values(w), risks.gradients(w)
    largest = values >= values.max() * (1 - 1e-4)  # any q is a bound: one too many does no harm
    size = np.linalg.norm(slopes[largest], axis=1).max()
    equations = np.vstack([slopes[largest].T / max(size, 1e-300), np.ones(int(largest.sum()))])
    q = np.zeros(len(values))
    q[largest] = optimize.nnls(equations, np.append(np.zeros(len(w)), 1.0))[0]
    return float(q @ risks.values(risks.least(q / q.sum())) / q.sum())


def uneven(seed: int) -> Risks:
    """Environments whose responses differ by factors of up to a million."""
    rng = np.random.default_rng(seed)
    E, d, n = rng.integers(2, 12), rng.integers(1, 8), int(rng.integers(10, 60))
    environments = []
    for size in 10.0 ** rng.uniform(-3, 3, E):
        X = rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 10.0], d)
        environments.append((X, size * (X @ rng.standard_normal(d) + rng.standard_normal(n))))
    return Risks.of(environments)


@pytest.mark.parametrize("seed", range(40))
def test_no_weights_are_better_in_the_worst_environment(seed):
    risks = uneven(seed)
    w = risks.least_worst()
    assert risks.values(w).max() <= lower_bound(risks, w) * (1 + 1e-5)  # q is known less well than w


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(10))
def test_many_environments_of_very_different_kinds(seed):
    """With heavy tails, the descent has far to go: at most 60 steps for each sharpness were too few in half of such draws."""
    rng = np.random.default_rng(seed)
    environments = []
    for _ in range(200):
        X = rng.standard_cauchy(3) + 0.1 * rng.standard_cauchy((7, 3))
        environments.append((X, rng.standard_cauchy() + X @ rng.standard_cauchy(3)))
    risks = Risks.of(environments)
    w = risks.least_worst()
    assert risks.values(w).max() <= lower_bound(risks, w) * (1 + 1e-5)


def test_the_bound_sees_a_point_that_is_not_the_minimum():
    risks = uneven(0)
    w = risks.least_worst() * 1.01
    assert risks.values(w).max() > lower_bound(risks, w) * (1 + 1e-5)


def test_columns_that_repeat_each_other_or_have_large_units_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 50, 2))
    y = [x @ b + rng.standard_normal(50) for x, b in zip(X, [(1.0, 2.0), (1.0, -1.0), (2.0, 0.0)], strict=True)]
    plain = Risks.of(list(zip(X, y, strict=True)))
    odd = Risks.of([(np.column_stack([x * [1, 1e6], x[:, 0], 0 * x[:, 0]]), z) for x, z in zip(X, y, strict=True)])
    least = plain.values(plain.least_worst()).max()
    assert odd.values(odd.least_worst()).max() == pytest.approx(least, rel=1e-6)


def test_environments_without_noise_and_without_responses():
    X = np.random.default_rng(0).standard_normal((3, 20, 2))
    same = Risks.of([(x, 3 + x @ [1.0, 2.0]) for x in X])
    np.testing.assert_allclose(same.least_worst(), [3, 1, 2], atol=1e-6)
    assert not Risks.of([(x, np.zeros(20)) for x in X]).least_worst().any()


def test_a_search_that_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(squared_losses, "MOST_STEPS", 1)
    with pytest.warns(LeastLargestWarning, match="worst environment"):
        uneven(1).least_worst()
