"""Which runs can be made here, and the readings of their blocks of steps."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from gyrostat.algorithms.batches import OneEnvironment, Pooled
from gyrostat.algorithms.initialisation import ScaledIdentity
from gyrostat.algorithms.update_rules import GradientStep
from gyrostat.engine.compile import Cell
from gyrostat.engine.numpy_backend import draws
from gyrostat.engine.numpy_backend.looks import LOOKS
from gyrostat.engine.numpy_backend.noise import SHELF, Source
from gyrostat.engine.numpy_backend.readings import ContinuousSpan, FiniteSpan, Mixed, Population, Reading, Single
from gyrostat.engine.numpy_backend.truth import Truth
from gyrostat.environments import Finite, Gaussian, RandomEnvironments, Uniform
from gyrostat.jax_tools.float64 import double
from gyrostat.measurements import FreshGaussian, Identity
from gyrostat.models import Symmetric
from gyrostat.models.symmetric_coordinates import svec


def suits(cell: Cell, record: tuple[str, ...]) -> bool:
    """Whether a run is one of those that are made here.

    >>> import gyrostat as gs
    >>> problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(400))
    >>> suits((gs.HeteroSGD(0.05), problem), ("signal",)), suits((gs.HeteroSGD(0.05, model=gs.Asymmetric()), problem), ())
    (True, False)
    """
    algorithm, problem = cell
    model, recipe, batches = algorithm.model, problem.environments, algorithm.batches
    kinds = (type(model), type(algorithm.start), type(algorithm.rule), type(recipe))
    if kinds != (Symmetric, ScaledIdentity, GradientStep, RandomEnvironments) or algorithm.events:
        return False
    seen = type(problem.measurements) in (FreshGaussian, Identity) and isinstance(batches, OneEnvironment | Pooled)
    noisy = float(getattr(problem.measurements, "noise", 0.0)) > 0
    law: Any = recipe.law
    known = isinstance(law, Finite) or (isinstance(law, Uniform | Gaussian) and not law.independent)
    plain = model.width is None and recipe.placement == "orthogonal"  # type: ignore[attr-defined]
    return bool(seen and not noisy and known and plain and set(record) <= set(LOOKS))


def reader(cell: Cell, of: Truth, first: int, seeds: int, dtype: type) -> Callable[[int], Reading]:
    """What gives the readings of a block of steps."""
    algorithm, problem = cell
    kind = _mixed if algorithm.batches.mixes else _single
    if isinstance(problem.measurements, Identity):
        kind = _mean if algorithm.batches.mixes else _population
    return functools.partial(kind, cell, of, first, seeds, dtype)


def _mean(cell: Cell, of: Truth, first: int, seeds: int, dtype: type, block: int) -> Reading:
    return Population(of, np.broadcast_to(of.half(of.mean, of.values), (draws.STEPS, *of.frame.shape)))


def _population(cell: Cell, of: Truth, first: int, seeds: int, dtype: type, block: int) -> Reading:
    amplify = cell[0].batches.amplify  # type: ignore[attr-defined]
    _, sigmas = _drawn(cell, first, block, seeds)
    # The mean of such gradients is the gradient of the mean, so that amplified ones are those of an amplified Sigma.
    seen = sigmas if amplify is None else sigmas + float(amplify) * (sigmas - of.mean)
    return Population(of, of.half(seen, of.values))


def _drawn(cell: Cell, first: int, block: int, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """The number and the Sigma of the environment of every step. Neither centre nor spread move what is drawn."""
    order, law = cell[0].batches.order, cell[1].environments.law  # type: ignore[attr-defined]
    if law.is_finite:
        label = ("places", order, np.asarray(law.weights).tobytes(), first, block)
        found = SHELF.keep(label, lambda: _arrays(draws.places, block, first, OneEnvironment(order), _given(law))[0])
        return found[:, :seeds], np.asarray(law.values)[found[:, :seeds]]
    other = ("places", order, type(law).__name__, first, block)
    drawn = SHELF.keep(other, lambda: _arrays(draws.places, block, first, OneEnvironment(order), _standard(law))[1])
    scalars = float(law.centre) + float(law.spread) * drawn[:, :seeds, :1, :1]
    return np.full(scalars.shape[:2], -1), scalars * np.eye(law.rank)


def _standard(law: Any) -> Any:
    """A continuous law with centre 0 and spread 1."""
    return _given(eqx.tree_at(lambda w: (w.centre, w.spread), law, (np.zeros(()), np.ones(()))))


def _single(cell: Cell, of: Truth, first: int, seeds: int, dtype: type, block: int) -> Reading:
    batches, seen, law = cell[0].batches, cell[1].measurements, cell[1].environments.law
    way, amplify = ("drawn" if batches.order == "iid" else "ordered"), batches.amplify  # type: ignore[attr-defined]
    m = float(seen.num_samples)  # type: ignore[attr-defined]
    index, sigmas = _drawn(cell, first, block, seeds)
    sigmas, shares, voices = sigmas[:, None], np.ones((len(index), 1, seeds)), 0
    if amplify is not None:
        voices = law.count
        sigmas = np.broadcast_to(np.asarray(law.values)[:, None], (len(index), voices, seeds, law.rank, law.rank))
        mine = index[:, None] == np.arange(voices)[:, None]
        shares = (1 + amplify) * mine - amplify * np.asarray(law.weights)[:, None]
    drawn = SHELF.noise(Source(way, voices, first), block, 2, of.invariant.shape[1], dtype)
    label = ("squares", way, voices, first, block, m)
    squares = SHELF.keep(label, lambda: _arrays(draws.squares, block, first, jnp.asarray(m), way, voices)).swapaxes(
        1, 2
    )
    squares, matrices = (x[:, :, :seeds] for x in (squares, drawn.matrices))
    return Single(of, of.half(sigmas, of.values), shares, squares, matrices, m)


def _mixed(cell: Cell, of: Truth, first: int, seeds: int, dtype: type, block: int) -> Reading:
    seen, law = cell[1].measurements, cell[1].environments.law
    m = float(seen.num_samples)  # type: ignore[attr-defined]
    size = law.rank * (law.rank + 1) // 2 + 1
    extra = law.count * (size + 1) if law.is_finite else 0
    drawn = SHELF.noise(Source("mixed", 0, first), block, extra, of.invariant.shape[1], dtype)
    matrices = drawn.matrices[:, 0, :seeds]
    span: Any
    if law.is_finite:
        # The last normal of every environment is for label noise, of which there is none.
        normals = drawn.normals[:, 0, :seeds].reshape(draws.STEPS, seeds, law.count, size + 1)[..., :-1]
        span = _finite(law, m, normals, first, block)
    else:
        span = _continuous(law, m, size, first, block, seeds)
    return Mixed(of, span, matrices, of.inside(matrices), of.inside(of.invariant), m)


def _finite(law: Any, m: float, normals: np.ndarray, first: int, block: int) -> FiniteSpan:
    weights = np.asarray(law.weights)
    label = ("shared", first, block, m, weights.tobytes())
    squares = SHELF.keep(label, lambda: _arrays(draws.shared_squares, block, first, jnp.asarray(m), weights))
    places = svec(np.asarray(law.values))
    return FiniteSpan(np.pad(places, ((0, 0), (0, 1))), squares[:, : normals.shape[1]], normals)


def _continuous(law: Any, m: float, size: int, first: int, block: int, seeds: int) -> ContinuousSpan:
    label = ("moments", first, block, m, type(law).__name__, law.rank)
    moments = SHELF.keep(label, lambda: _arrays(draws.moments, block, first, jnp.asarray(m), _standard(law), size))
    return ContinuousSpan(moments[:, :seeds], float(law.centre), float(law.spread))


def _given(part: Any) -> Any:
    """NumPy's scalars would be part of a program; arrays are what it is given."""
    with double():
        return jax.tree.map(lambda x: jnp.asarray(x) if eqx.is_array_like(x) else x, part)


def _arrays(make: Callable[..., Any], block: int, first: int, *given: Any) -> Any:
    """What a program draws for a block of steps of some seeds."""
    with double():
        _, stepping = draws.run_keys(jnp.asarray(first))
        numbers = [jnp.asarray(x, dtype=float) if isinstance(x, jax.Array) else x for x in given]
        return jax.tree.map(np.asarray, make(stepping, jnp.asarray(block * draws.STEPS), *numbers))
