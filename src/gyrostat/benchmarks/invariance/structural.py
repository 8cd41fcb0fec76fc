"""Structural equations of two papers in which a consequence of the response is among the features.

Section 5.1 of Arjovsky, Bottou, Gulrajani, Lopez-Paz 2019 (IRM) and section 5 of Fan, Fang, Gu, Zhang 2023 (EILLS), from
their descriptions; all numbers were checked against code that authors published (the text of the papers was not at hand).
In IRM's code weights from causes to responses and on to consequences are one, and with nothing hidden the variable h
still adds to x; so here. Its errors of scrambled weights are not unscrambled; ours are.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gyrostat.benchmarks.invariance.declare import Draw, Environment, Simulation, random_rotation

SCALES = (0.2, 2.0, 5.0)
"""The e of IRM's environments: a standard deviation."""
SIDE = 5
"""Causes in IRM's equations, and as many consequences."""
EILLS_TRUTH = np.array([3.0, 2.0, -0.5, *[0.0] * 9])


def irm(observed: bool, homoskedastic: bool, scrambled: bool, rng: np.random.Generator, rows: int) -> Draw:
    """``x = h A + e N, y = x + h B + s N, z = y + h C + t N``; the response is the sum of y, the features are x and z.

    The noise of the response s and of the consequences t is 1 and e (homoskedastic) or e and 1. If all is observed, A is the
    identity and B = C = 0; else all three are Gaussian with entries of variance 1/100.
    """
    if observed:
        A, B, C = np.eye(SIDE), np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    else:
        A, B, C = rng.standard_normal((3, SIDE, SIDE)) / (2 * SIDE)
    scramble = random_rotation(rng, 2 * SIDE) if scrambled else np.eye(2 * SIDE)

    def place(e: float) -> Environment:
        s, t = (1.0, e) if homoskedastic else (e, 1.0)
        h, of_x, of_y, of_z = rng.standard_normal((4, rows, SIDE))
        x = e * h @ A + e * of_x
        y = x + e * h @ B + s * of_y
        z = y + e * h @ C + t * of_z
        return np.hstack([x, z]) @ scramble, y.sum(axis=1)

    train = [place(e) for e in SCALES]
    return Draw(train, [], np.append(np.ones(SIDE), np.zeros(SIDE)), scramble)


def eills(rng: np.random.Generator, rows: int) -> Draw:
    """Twelve features and a response with three causes, in two environments that differ in x4 and in x7."""
    train = [_eills_place(rng, rows, second) for second in (False, True)]
    return Draw(train, [], EILLS_TRUTH, np.eye(12))


def _eills_place(rng: np.random.Generator, rows: int, second: bool) -> Environment:
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
        "all causes observed" if observed else "a hidden cause of all",
        "the noise of consequences" if homoskedastic else "the noise of the response",
    )
    return Simulation(
        f"irm-{letters}",
        f"Arjovsky and others 2019, section 5.1, {letters.upper()}",
        f"Five causes and five consequences of a response, {words[0]}, {words[1]} differs between places"
        f"{', rotated at random' if scrambled else ''}. Right: weight 1 on causes, 0 on consequences.",
        partial(irm, observed, homoskedastic, scrambled),
        1000,
        ("causal weights", "non-causal weights"),
        False,
        "Only variances change: beside the consequences the effects of causes vary between places as much as those of "
        "consequences, so that both kinds look spurious or both look invariant. (Who drops everything has no error in "
        "non-causal weights, and all of it in causal ones.)",
    )


STRUCTURAL = (
    *(_declared_irm(o, h, s) for o in (True, False) for h in (True, False) for s in (False, True)),
    Simulation(
        "eills",
        "Fan, Fang, Gu, Zhang 2023, section 5",
        "Twelve features, three causes, consequences of the response among the rest, two environments. Right: 3, 2, -.5 "
        "and zeros.",
        eills,
        1000,
        ("coefficients",),
        False,
        "With two environments little can oscillate; and the consequence x8 has the same equation in both, so its effect "
        "looks as invariant as that of a cause.",
    ),
)
