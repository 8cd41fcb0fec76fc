"""The linear unit tests for invariance of Aubin, Slowik, Arjovsky, Bottou, Lopez-Paz 2021: Examples 1, 2, 3 and 1s, 2s, 3s.

Written from their description, with numbers checked against the authors' published code (the text of the paper was not at
hand): 5 invariant and 5 spurious features, three environments; in Example 1 .1, 1.5 and 2 are standard deviations. Tests are
rows of the same environments whose spurious features were shuffled among rows. In the scrambled versions the features are
rotated. Labels are 1 and -1 here, and linear methods regress on them. The authors draw 10000 rows per environment, we 2000:
noise of estimation is small against what is wrong in either.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gyrostat.benchmarks.invariance.declare import Draw, Environment, Simulation, random_rotation

SIDE = 5
"""Invariant features, and as many spurious ones."""
SCALES = (0.1, 1.5, 2.0)
COWS = ((0.95, 0.3), (0.97, 0.5), (0.99, 0.7))
"""The share of animals before their usual background, and of cows, in each environment."""

Sample = Callable[[int], Environment]


def example_1(rng: np.random.Generator) -> tuple[list[Sample], np.ndarray]:
    """Causes x of a response, and its effects z; the noise of x and of the response grows from place to place."""
    to_y, to_z = rng.standard_normal((2, SIDE, SIDE)) / SIDE

    def sample(scale: float, rows: int) -> Environment:
        x = scale * rng.standard_normal((rows, SIDE))
        y = x @ to_y + scale * rng.standard_normal((rows, SIDE))
        z = y @ to_z + rng.standard_normal((rows, SIDE))
        return np.hstack([x, z]), y.sum(axis=1)

    return [partial(sample, scale) for scale in SCALES], np.append(to_y.sum(axis=1), np.zeros(SIDE))


def example_2(rng: np.random.Generator) -> tuple[list[Sample], np.ndarray]:
    """Cows and camels, seen faintly, before grass or sand, seen clearly, which mostly but not always goes with the animal."""

    def sample(usual: float, cows: float, rows: int) -> Environment:
        animal = np.where(rng.random(rows) < cows, 1.0, -1.0)
        background = np.where(rng.random(rows) < usual, animal, -animal)
        means = np.repeat(np.stack([animal, background], axis=1), SIDE, axis=1)
        X = means + rng.standard_normal(means.shape) / np.sqrt(10)
        X[:, :SIDE] /= 100
        return X, np.where(X[:, :SIDE].sum(axis=1) > 0, 1.0, -1.0)

    return [partial(sample, *place) for place in COWS], np.append(np.ones(SIDE), np.zeros(SIDE))


def example_3(rng: np.random.Generator) -> tuple[list[Sample], np.ndarray]:
    """Two classes with a small margin along invariant features, and a large one along directions that differ by place."""

    def sample(shortcut: np.ndarray, rows: int) -> Environment:
        y = np.repeat([1.0, -1.0], [rows // 2, rows - rows // 2])
        means = np.multiply.outer(y, np.append(np.full(SIDE, 0.1), shortcut))
        return means + 0.1 * rng.standard_normal(means.shape), y

    shortcuts = rng.standard_normal((3, SIDE))
    return [partial(sample, shortcut) for shortcut in shortcuts], np.append(np.ones(SIDE), np.zeros(SIDE))


def draw(
    example: Callable[[np.random.Generator], tuple[list[Sample], np.ndarray]],
    scrambled: bool,
    rng: np.random.Generator,
    rows: int,
) -> Draw:
    """Fresh rows of every environment to learn from and to be tested on, spurious features shuffled in the latter."""
    samples, truth = example(rng)
    train, tests = ([sample(rows) for sample in samples] for _ in range(2))
    for X, _ in tests:
        X[:, SIDE:] = rng.permutation(X[:, SIDE:])
    scramble = random_rotation(rng, 2 * SIDE) if scrambled else np.eye(2 * SIDE)
    train, tests = ([(X @ scramble, y) for X, y in places] for places in (train, tests))
    return Draw(train, tests, truth, scramble)


_MIXED = " Scrambled, every coordinate mixes the two, and a method that keeps or drops coordinates has nothing to keep."
_EXAMPLES = {
    "example-1": (
        example_1,
        "unseen environments",
        False,
        "Causes x and effects z of a response, noise of another size in every place. Right: x alone.",
        "No effect of a cause or of a consequence changes its sign; only variances do. As in IRM's example, effects beside "
        "the other features vary for causes and consequences alike.",
    ),
    "example-2": (
        example_2,
        "wrong labels",
        False,
        "Cows and camels before grass and sand. Right: the animal, not the background.",
        "The effect of the background hardly varies and has one sign, so nothing oscillates. But there is nothing to gain "
        "either: the labels follow from the animal without error, and least squares in standard units, minimised to the "
        "end, sees that. The example is hard for gradient steps, to which the background looks a hundred times larger.",
    ),
    "example-3": (
        example_3,
        "wrong labels",
        True,
        "A small margin that is the same everywhere, a large one in a direction of its own in each place. Right: the "
        "small one.",
        "Shortcuts change their sign between places. But within a place they explain the labels almost without error, so that "
        "beside them the invariant features have next to no effect left to be found; and with three places only, some "
        "coordinate of the shortcut has the same sign in all of them in three draws of four.",
    ),
}


def _declared(name: str, *, scrambled: bool) -> Simulation:
    example, measure, solvable, text, why = _EXAMPLES[name]
    return Simulation(
        name + "s" * scrambled,
        f"Aubin and others 2021, {name.replace('-', ' ').capitalize()}{'s' * scrambled}",
        text + " The features are rotated at random." * scrambled,
        partial(draw, example, scrambled),
        2000,
        (measure,),
        solvable and not scrambled,
        why + _MIXED * scrambled,
    )


UNIT_TESTS = tuple(_declared(name, scrambled=scrambled) for scrambled in (False, True) for name in _EXAMPLES)
