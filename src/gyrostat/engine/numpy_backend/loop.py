"""The loop of the NumPy backend, without JAX: states of a descent one after the other, for the caller to record or stop.

It takes the same parts as the compiled engine: a model, an update rule, a schedule, and a function that senses the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from gyrostat.engine.numpy_backend.models import NumpyModel, NumpyParams
from gyrostat.engine.numpy_backend.update_rules import NumpyReading, NumpyUpdateRule


class DescentState:
    """The descent before step number ``step``, or after the last one.

    ``product`` and ``reading`` are computed when they are first asked for. Arrays are reused by later steps: copy what is
    to be kept. ``spare`` holds scratch arrays of the shapes of the parameters. ``diverged`` is the step at which each run
    diverged (-1 for not yet), if the loop was given a limit.
    """

    def __init__(self, model: NumpyModel, params: NumpyParams, sense: Callable[[DescentState], NumpyReading]):
        self.model, self.sense, self.step = model, sense, 0
        self.params = tuple(np.array(p, order="C") for p in params)
        self.spare = tuple(np.empty_like(p) for p in self.params)
        self.diverged = np.full(len(self.params[0]), -1)
        self._product: np.ndarray | None = None
        self._has_product = False
        self._reading: NumpyReading | None = None

    @property
    def product(self) -> np.ndarray:
        """``A(theta)``. Sensing may overwrite it with the gradient."""
        if not self._has_product:
            self._product = self.model.product(self.params, self._product, self.spare)
            self._has_product = True
        return self._product  # type: ignore[return-value]

    @property
    def reading(self) -> NumpyReading:
        """What the next step sees."""
        if self._reading is None:
            self._reading = self.sense(self)
        return self._reading

    def advance(self, params: NumpyParams) -> None:
        """Go on to the next step with these parameters."""
        self.params, self.spare = params, self.params
        self.step, self._has_product, self._reading = self.step + 1, False, None

    def note_divergence(self, limit: float) -> None:
        """Note the runs whose parameters have a norm above the limit, or are not finite."""
        total = self.model.squared_norm(self.params, self.product)
        self.diverged[(self.diverged < 0) & ~(total < limit**2)] = self.step


def descend(
    model: NumpyModel,
    params: NumpyParams,
    sense: Callable[[DescentState], NumpyReading],
    rule: NumpyUpdateRule,
    schedule: Callable[[int], tuple[float, float]],
    num_steps: int,
    limit: float | None = None,
) -> Iterator[DescentState]:
    """The state before every step and after the last: ``theta <- rule(theta, sense(theta))``.

    ``schedule`` gives the step size and the ridge of a step. With a ``limit`` divergence is noted, as in the compiled engine.

    >>> from gyrostat.engine.numpy_backend.models import NumpyDiagonal
    >>> from gyrostat.engine.numpy_backend.update_rules import NumpyGradientStep
    >>> target, start = np.array([[1.0]]), (np.array([[0.1]]), np.array([[0.1]]))
    >>> sense = lambda state: NumpyReading(state.product - target)
    >>> states = descend(NumpyDiagonal(), start, sense, NumpyGradientStep(), constant(0.1), 100)
    >>> [round(float(state.product[0, 0]), 3) for state in states if state.step % 50 == 0]
    [0.0, 0.997, 1.0]
    """
    state = DescentState(model, params, sense)
    memory = rule.init(state.params)
    for t in range(num_steps + 1):
        if limit is not None:
            state.note_divergence(limit)
        yield state
        if t < num_steps:
            step_size, ridge = schedule(t)
            after, memory = rule.update(memory, model, state.params, state.reading, step_size, ridge, state.spare)
            state.advance(after)


def constant(step_size: float) -> Callable[[int], tuple[float, float]]:
    """The schedule with the same step size at every step, and no ridge."""
    return lambda step: (step_size, 0.0)


class Recorder:
    """Calls ``look`` on the states at the steps of a grid (increasing, repetitions allowed) and keeps its values."""

    def __init__(self, grid: Sequence[int] | np.ndarray, look: Callable[[DescentState], Any]):
        self.grid, self.look = [int(step) for step in grid], look
        self.values: list[Any] = []

    def __call__(self, state: DescentState) -> None:
        while len(self.values) < len(self.grid) and self.grid[len(self.values)] == state.step:
            self.values.append(self.look(state))


def path_and_late_mean(
    states: Iterable[DescentState], num_steps: int, points: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Recorded steps, the mean product over the runs at each, and every run's mean over the second half of the steps.

    A descent that diverges is not stopped: its means are infinite or NaN, without warnings.
    """
    grid = np.linspace(0, num_steps, min(points, num_steps) + 1).round().astype(int)
    path = Recorder(grid, lambda state: state.product.mean(axis=0))
    middle = num_steps // 2
    late: Any = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for state in states:
            path(state)
            if state.step > middle:
                late = late + state.product / (num_steps - middle)
    return grid, np.array(path.values), np.asarray(late)
