"""Simulations with a known answer: the declaration, the measures of a fit's error, our own settings and published ones.

Settings of other papers are written from their descriptions, with numbers checked against code that the authors published;
the text of the papers was not at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from gyrostat.estimators.linear_predictor import LinearPredictor
from gyrostat.estimators.squared_losses import Environment


class Draw(NamedTuple):
    """One repetition: training environments, test environments, the answer.

    Features are ``Z @ scramble``; ``truth`` holds the coefficients of Z that are the same in all environments (for a
    classifier: their direction), and zero for spurious features.
    """

    train: list[Environment]
    tests: list[Environment]
    truth: np.ndarray
    scramble: np.ndarray


@dataclass(frozen=True)
class Simulation:
    """A setting with a known answer.

    ``solvable`` says beforehand whether our method is expected to find the answer; ``docs/invariance.md`` says why.
    """

    name: str
    source: str
    text: str
    draw: Callable[[np.random.Generator, int], Draw]
    rows: int
    measures: tuple[str, ...]
    solvable: bool


# --- measures of the error of a fit ----------------------------------------------------------------------------------------


def distance(fit: LinearPredictor, draw: Draw) -> float:
    """``|beta - truth|^2``."""
    return float(np.sum((draw.scramble @ fit.coef - draw.truth) ** 2))


def causal(fit: LinearPredictor, draw: Draw) -> float:
    """The mean squared error of the weights whose true value is not zero, in the coordinates before scrambling."""
    return float(np.mean((draw.scramble @ fit.coef - draw.truth)[draw.truth != 0] ** 2))


def non_causal(fit: LinearPredictor, draw: Draw) -> float:
    """The mean square of the weights whose true value is zero, in the coordinates before scrambling."""
    return float(np.mean((draw.scramble @ fit.coef)[draw.truth == 0] ** 2))


def unseen(fit: LinearPredictor, draw: Draw) -> float:
    """The squared error of predictions in the test environments, each with the same weight."""
    return float(np.mean([np.mean((y - fit(X)) ** 2) for X, y in draw.tests]))


def wrong_class(fit: LinearPredictor, draw: Draw) -> float:
    """The share of test rows whose label, 1 or -1, has another sign than the prediction."""
    return float(np.mean([np.mean((fit(X) > 0) != (y > 0)) for X, y in draw.tests]))


MEASURES: dict[str, Callable[[LinearPredictor, Draw], float]] = {
    "coefficients": distance,
    "causal weights": causal,
    "non-causal weights": non_causal,
    "unseen environments": unseen,
    "wrong labels": wrong_class,
}
"""Name of an error -> its function."""


# --- our own: the diagonal model of Xu 2024, and effects that change their sign or do not ----------------------------------

NUM_TRAIN, NUM_TEST = 8, 4
FLIP_SHARE = 0.25
"""The probability that an effect is negative in an environment."""


def diagonal(rng: np.random.Generator, rows: int, tests: int = NUM_TEST) -> Draw:
    """20 isotropic features: effects 1, -1, 0.7 everywhere, and two that are 1 - 6 or 1 + 6 with equal probability."""
    truth = np.zeros(20)
    truth[:3] = 1.0, -1.0, 0.7
    effects = 1 + 6 * rng.choice([-1.0, 1.0], size=(NUM_TRAIN + tests, 2))
    return _split(_environments(rng, rows, truth, effects, np.eye(20), noise=1.0), truth)


def flips(rng: np.random.Generator, rows: int, tests: int = NUM_TEST) -> Draw:
    """10 correlated features: three invariant effects, two of size 0.5 to 1.5 that are negative in a quarter of environments.

    Among the training environments each varying effect has both signs: if it had only one, no method could see it vary.
    """
    truth = np.zeros(10)
    truth[:3] = 1.0, -1.0, 0.5
    signs = np.where(rng.random((NUM_TRAIN + tests, 2)) < FLIP_SHARE, -1.0, 1.0)
    for j in (0, 1):
        if abs(signs[:NUM_TRAIN, j].sum()) == NUM_TRAIN:
            signs[rng.integers(NUM_TRAIN), j] *= -1
    effects = signs * rng.uniform(0.5, 1.5, signs.shape)
    return _split(_environments(rng, rows, truth, effects, _chain(10), noise=0.5), truth)


def one_sign(rng: np.random.Generator, rows: int, tests: int = NUM_TEST) -> Draw:
    """As :func:`flips`, but the two effects are between 0.5 and 1.5 in every environment."""
    truth = np.zeros(10)
    truth[:3] = 1.0, -1.0, 0.5
    effects = rng.uniform(0.5, 1.5, (NUM_TRAIN + tests, 2))
    return _split(_environments(rng, rows, truth, effects, _chain(10), noise=0.5), truth)


def _chain(d: int) -> np.ndarray:
    """Correlations ``.5^|i - j|``."""
    return 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def _environments(
    rng: np.random.Generator, rows: int, truth: np.ndarray, effects: np.ndarray, covariance: np.ndarray, *, noise: float
) -> list[Environment]:
    """One environment per row of ``effects``, which are the varying effects of features 3 and 4."""
    root, environments = np.linalg.cholesky(covariance), []
    for effect in effects:
        X = rng.standard_normal((rows, len(truth))) @ root.T
        environments.append((X, X @ truth + X[:, 3:5] @ effect + noise * rng.standard_normal(rows)))
    return environments


def _split(environments: Sequence[Environment], truth: np.ndarray) -> Draw:
    return Draw(list(environments[:NUM_TRAIN]), list(environments[NUM_TRAIN:]), truth, np.eye(len(truth)))


OUR_SIMULATIONS = (
    Simulation(
        "diagonal",
        "Xu, Gu, Fang 2024, the linear case",
        "Isotropic features; two of the effects are -5 or 7, at random in each environment. Right: the three effects that "
        "are the same everywhere.",
        diagonal,
        500,
        ("coefficients", "unseen environments"),
        True,
    ),
    Simulation(
        "flips",
        "ours",
        "Correlated features; two of the effects change their sign in about a quarter of the environments. Right: the three "
        "effects that do not vary.",
        flips,
        500,
        ("coefficients", "unseen environments"),
        True,
    ),
    Simulation(
        "one-sign",
        "ours",
        "As flips, but the varying effects are between 0.5 and 1.5. Right (by definition): the three effects that do not "
        "vary.",
        one_sign,
        500,
        ("coefficients", "unseen environments"),
        False,
    ),
)


# --- linear unit tests: Aubin, Slowik, Arjovsky, Bottou, Lopez-Paz 2021, Examples 1, 2, 3 and 1s, 2s, 3s -------------------
#
# 5 invariant and 5 spurious features, three environments; in Example 1 .1, 1.5 and 2 are standard deviations. Tests are rows of
# the same environments whose spurious features were shuffled among rows. In the scrambled versions (1s, 2s, 3s) the features
# are rotated. Labels are 1 and -1 here, and linear methods regress on them. The authors draw 10000 rows per environment, we
# draw 2000: the noise of estimation is small against the systematic error with either number.

SIDE = 5
"""Invariant features (or causes), and the same number of spurious ones (or consequences)."""
UNIT_TEST_SCALES = (0.1, 1.5, 2.0)
COWS = ((0.95, 0.3), (0.97, 0.5), (0.99, 0.7))
"""The share of animals in front of their usual background, and the share of cows, in each environment."""

Sample = Callable[[int], Environment]


def example_1(rng: np.random.Generator) -> tuple[list[Sample], np.ndarray]:
    """Causes x of a response, and its effects z; the noise of x and of the response grows from environment to environment."""
    to_y, to_z = rng.standard_normal((2, SIDE, SIDE)) / SIDE

    def sample(scale: float, rows: int) -> Environment:
        x = scale * rng.standard_normal((rows, SIDE))
        y = x @ to_y + scale * rng.standard_normal((rows, SIDE))
        z = y @ to_z + rng.standard_normal((rows, SIDE))
        return np.hstack([x, z]), y.sum(axis=1)

    return [partial(sample, scale) for scale in UNIT_TEST_SCALES], np.append(to_y.sum(axis=1), np.zeros(SIDE))


def example_2(rng: np.random.Generator) -> tuple[list[Sample], np.ndarray]:
    """Cows and camels, faint, in front of grass or sand, clear; the background usually but not always goes with the animal."""

    def sample(usual: float, cows: float, rows: int) -> Environment:
        animal = np.where(rng.random(rows) < cows, 1.0, -1.0)
        background = np.where(rng.random(rows) < usual, animal, -animal)
        means = np.repeat(np.stack([animal, background], axis=1), SIDE, axis=1)
        X = means + rng.standard_normal(means.shape) / np.sqrt(10)
        X[:, :SIDE] /= 100
        return X, np.where(X[:, :SIDE].sum(axis=1) > 0, 1.0, -1.0)

    return [partial(sample, *shares) for shares in COWS], np.append(np.ones(SIDE), np.zeros(SIDE))


def example_3(rng: np.random.Generator, environments: int = 3) -> tuple[list[Sample], np.ndarray]:
    """Two classes: a small margin along invariant features, a large one along a direction that differs by environment."""

    def sample(shortcut: np.ndarray, rows: int) -> Environment:
        y = np.repeat([1.0, -1.0], [rows // 2, rows - rows // 2])
        means = np.multiply.outer(y, np.append(np.full(SIDE, 0.1), shortcut))
        return means + 0.1 * rng.standard_normal(means.shape), y

    shortcuts = rng.standard_normal((environments, SIDE))
    return [partial(sample, shortcut) for shortcut in shortcuts], np.append(np.ones(SIDE), np.zeros(SIDE))


def draw_unit_test(
    example: Callable[[np.random.Generator], tuple[list[Sample], np.ndarray]],
    scrambled: bool,
    rng: np.random.Generator,
    rows: int,
) -> Draw:
    """Fresh rows of every environment for training and for tests, with spurious features shuffled in the tests."""
    samples, truth = example(rng)
    train, tests = ([sample(rows) for sample in samples] for _ in range(2))
    for X, _ in tests:
        X[:, SIDE:] = rng.permutation(X[:, SIDE:])
    scramble = random_rotation(rng, 2 * SIDE) if scrambled else np.eye(2 * SIDE)
    train, tests = ([(X @ scramble, y) for X, y in environments] for environments in (train, tests))
    return Draw(train, tests, truth, scramble)


def random_rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    """An orthogonal matrix from Haar's measure: QR with the signs of R taken out.

    >>> Q = random_rotation(np.random.default_rng(0), 3)
    >>> bool(np.allclose(Q @ Q.T, np.eye(3)))
    True
    """
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.sign(np.diagonal(R))


_EXAMPLES = {
    "example-1": (
        example_1,
        "unseen environments",
        False,
        "Causes x and effects z of a response, with noise of a different size in every environment. Right: x alone.",
    ),
    "example-2": (
        example_2,
        "wrong labels",
        False,
        "Cows and camels in front of grass and sand. Right: the animal, not the background.",
    ),
    "example-3": (
        example_3,
        "wrong labels",
        True,
        "A small margin that is the same everywhere, and a large one in a direction that is different in each environment. "
        "Right: the small one.",
    ),
}


def _declared_unit_test(name: str, *, scrambled: bool) -> Simulation:
    example, measure, solvable, text = _EXAMPLES[name]
    return Simulation(
        name + "s" * scrambled,
        f"Aubin and others 2021, {name.replace('-', ' ').capitalize()}{'s' * scrambled}",
        text + " The features are rotated at random." * scrambled,
        partial(draw_unit_test, example, scrambled),
        2000,
        (measure,),
        solvable and not scrambled,
    )


UNIT_TESTS = tuple(_declared_unit_test(name, scrambled=scrambled) for scrambled in (False, True) for name in _EXAMPLES)


# --- structural equations in which a consequence of the response is among the features --------------------------------------
#
# Section 5.1 of Arjovsky, Bottou, Gulrajani, Lopez-Paz 2019 (IRM) and section 5 of Fan, Fang, Gu, Zhang 2023 (EILLS). In
# IRM's code the weights from causes to responses and on to consequences are one, and with nothing hidden the variable h still
# adds to x; so here. Its errors of scrambled weights are not unscrambled; ours are.

IRM_SCALES = (0.2, 2.0, 5.0)
"""The e of IRM's environments: a standard deviation."""
EILLS_TRUTH = np.array([3.0, 2.0, -0.5, *[0.0] * 9])


def irm(observed: bool, homoskedastic: bool, scrambled: bool, rng: np.random.Generator, rows: int) -> Draw:
    """``x = h A + e N, y = x + h B + s N, z = y + h C + t N``; the response is the sum of y, the features are x and z.

    The noise of the response s and of the consequences t is 1 and e (homoskedastic) or e and 1. If everything is observed, A is
    the identity and B = C = 0; otherwise all three are Gaussian with entries of variance 1/100.
    """
    if observed:
        A, B, C = np.eye(SIDE), np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    else:
        A, B, C = rng.standard_normal((3, SIDE, SIDE)) / (2 * SIDE)
    scramble = random_rotation(rng, 2 * SIDE) if scrambled else np.eye(2 * SIDE)

    def environment(e: float) -> Environment:
        s, t = (1.0, e) if homoskedastic else (e, 1.0)
        h, of_x, of_y, of_z = rng.standard_normal((4, rows, SIDE))
        x = e * h @ A + e * of_x
        y = x + e * h @ B + s * of_y
        z = y + e * h @ C + t * of_z
        return np.hstack([x, z]) @ scramble, y.sum(axis=1)

    train = [environment(e) for e in IRM_SCALES]
    return Draw(train, [], np.append(np.ones(SIDE), np.zeros(SIDE)), scramble)


def eills(rng: np.random.Generator, rows: int) -> Draw:
    """Twelve features and a response with three causes, in two environments that differ in x4 and in x7."""
    train = [_eills_environment(rng, rows, second) for second in (False, True)]
    return Draw(train, [], EILLS_TRUTH, np.eye(12))


def _eills_environment(rng: np.random.Generator, rows: int, second: bool) -> Environment:
    u = rng.standard_normal((13, rows))
    x4 = u[4] ** 2 - 1 if second else u[4]
    x1, x2, x3 = u[1], np.sin(x4) + u[2], np.cos(x4) + u[3]
    x5 = np.sin(x3 + u[5])
    x10 = 2.5 * x1 + 1.5 * x2 + u[10]
    y = 3 * x1 + 2 * x2 - 0.5 * x3 + u[0]
    x6 = 0.8 * y * u[6]
    x7 = (4 * x3 + np.tanh(y) if second else 0.5 * x3 + y) + u[7]
    x8 = 0.5 * x7 - y + x10 + u[8]
    x9 = np.tanh(x7) + 0.1 * np.cos(x8) + u[9]
    x11 = 0.4 * (x7 + x8) * u[11]
    return np.stack([x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, u[12]], axis=1), y


def _declared_irm(observed: bool, homoskedastic: bool, scrambled: bool) -> Simulation:
    letters = ("f" if observed else "p") + ("o" if homoskedastic else "e") + ("s" if scrambled else "u")
    words = (
        "all causes observed" if observed else "a hidden common cause",
        "the noise of the consequences" if homoskedastic else "the noise of the response",
    )
    return Simulation(
        f"irm-{letters}",
        f"Arjovsky and others 2019, section 5.1, {letters.upper()}",
        f"Five causes and five consequences of a response, {words[0]}; {words[1]} differs between environments"
        f"{'; rotated at random' if scrambled else ''}. Right: weight 1 on causes, 0 on consequences.",
        partial(irm, observed, homoskedastic, scrambled),
        1000,
        ("causal weights", "non-causal weights"),
        False,
    )


STRUCTURAL = (
    *(_declared_irm(o, h, s) for o in (True, False) for h in (True, False) for s in (False, True)),
    Simulation(
        "eills",
        "Fan, Fang, Gu, Zhang 2023, section 5",
        "Twelve features, three causes, consequences of the response among the rest, two environments. Right: 3, 2, -0.5 "
        "and zeros.",
        eills,
        1000,
        ("coefficients",),
        False,
    ),
)

SIMULATIONS = (*OUR_SIMULATIONS, *UNIT_TESTS, *STRUCTURAL)
"""Every setting with a known answer."""
