"""The entry of the engine: checks arguments, then runs every cell (an algorithm on a problem) for every seed."""

from __future__ import annotations

import functools
import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from gyrostat import errors
from gyrostat.algorithms.algorithm import Algorithm
from gyrostat.diagnostics.base import Diagnostic, SnapshotFunction, resolve
from gyrostat.engine.program import Cell, Program, RunIndex, group_cells
from gyrostat.engine.progress import Progress, progress_shown
from gyrostat.engine.reduction import LEAK_LIMITS, Reduction, choose_reduction, rank_of
from gyrostat.engine.results import Trajectories, Values, gather, recording_grids
from gyrostat.errors import GyrostatError
from gyrostat.measurements.problem import Problem

DEFAULT_RECORD = ("signal", "spurious", "error", "distance")


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """No search for cyclic garbage, which takes a sixth of the time of tracing, and in whose callback of JAX Ctrl-C is lost."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def simulate(
    cells: Sequence[Cell],
    *,
    num_steps: int | Sequence[int],
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    record: Sequence[str | Diagnostic | SnapshotFunction] = DEFAULT_RECORD,
    record_at: int | Sequence[int] | np.ndarray = 101,
    record_from: Sequence[int] | None = None,
    tolerance: float | None = None,
    reduction: str = "auto",
    reproducible_bits: bool = False,
    progress: Progress | bool | None = None,
) -> Trajectories:
    """Run every cell for every seed and record diagnostics. The options are those of :func:`gyrostat.run`, and three more.

    ``num_steps`` may differ from cell to cell. ``record_from`` is the first step that is recorded of each cell: a list
    ``record_at`` counts from there. ``reproducible_bits`` makes every bit of a run independent of the other cells and seeds
    of the call. All calls then use the same compiled program, so a call with few runs is padded to full size and takes as
    long as a full one. Cells that share their static structure run in one compiled program.
    """
    cells = list(cells)
    if not cells:
        raise GyrostatError("cells is empty: give at least one (algorithm, problem) pair.")
    horizons = _horizons(num_steps, len(cells))
    seed_numbers = _seed_numbers(seeds)
    for algorithm, problem in cells:
        check(algorithm, problem)
    if record is DEFAULT_RECORD and not all(algorithm.model.has_factor for algorithm, _ in cells):
        record = [name for name in DEFAULT_RECORD if name != "error"]
    diagnostics = resolve(record)
    _warn_of_unknown_truth(diagnostics, cells)
    seed = errors.integer("seed", seed, most=errors.LARGEST_SEED)
    grids = recording_grids(record_at, horizons, [0] * len(cells) if record_from is None else list(record_from))
    level = _tolerance(tolerance, cells)
    reductions = [choose_reduction(reduction, *cell) for cell in cells]
    values: list[Values] = [{} for _ in cells]
    with no_garbage_collection(), progress_shown(progress, len(cells) * len(seed_numbers)) as report:
        for group in group_cells(cells, horizons, reproducible_bits=reproducible_bits):
            own_cells = [cells[i] for i in group]
            program_for = functools.partial(Program, own_cells, diagnostics, grids[group[0]], seed, level)
            program = program_for(reductions[group[0]], reproducible_bits=reproducible_bits)
            runs = [(position, number) for position in range(len(group)) for number in seed_numbers]
            outcomes = []
            for part, outcome in program.calls(runs, report):
                outcomes.append(_without_leaks(outcome, runs[part], diagnostics, reduction, program_for))
            for name in outcomes[0]:
                together = np.concatenate([outcome[name] for outcome in outcomes])
                for i, of_cell in zip(group, np.split(together, len(group)), strict=True):
                    values[i][name] = of_cell
    events = {type(event): event for algorithm, _ in cells for event in algorithm.events}
    return gather(values, diagnostics, list(events.values()), grids, seed_numbers)


def _warn_of_unknown_truth(diagnostics: Sequence[Diagnostic], cells: Sequence[Cell]) -> None:
    if all(getattr(problem.environments, "knows_truth", True) for _, problem in cells):
        return
    if names := [d.name for d in diagnostics if d.needs_truth]:
        warnings.warn(
            f"{', '.join(names)} will be NaN: {'it compares' if len(names) == 1 else 'they compare'} with the truth, which "
            "Observed environments do not know. Record something else, such as record=['product'].",
            stacklevel=6,
        )


def _without_leaks(
    outcome: Values,
    runs: list[RunIndex],
    diagnostics: Sequence[Diagnostic],
    mode: str,
    program_for: Callable[[Reduction], Program],
) -> Values:
    """The outcome of a call, in which runs that leaked out of the reduced space are computed again without reduction."""
    if "leak" not in outcome:
        return outcome
    limit = LEAK_LIMITS["layers" if any(d.sees == "stated" for d in diagnostics) else "product"]
    (leaked,) = np.nonzero(outcome.pop("leak") > limit)
    if leaked.size == 0:
        return outcome
    if mode == "always":
        raise GyrostatError(
            f"reduction='always' is not exact here: {leaked.size} of {len(runs)} runs left the Krylov spaces of the hidden "
            "layers; use reduction='auto' or 'never'."
        )
    repaired = {name: x.copy() for name, x in outcome.items()}
    for part, exact in program_for(Reduction()).calls([runs[i] for i in leaked]):
        for name, x in exact.items():
            repaired[name][leaked[part]] = x
    return repaired


def check(algorithm: Algorithm, problem: Problem) -> None:
    """Refuse parts that do not fit together, before anything is compiled."""
    errors.instance("algorithm", algorithm, Algorithm, "HeteroSGD, PooledSGD, ... or an Algorithm")
    errors.instance("problem", problem, Problem, "a Problem(environments, measurements)")
    space = algorithm.model.space(problem.shape)
    algorithm.model.shapes(problem.shape)
    algorithm.start.check(algorithm.model, problem.shape)
    algorithm.rule.check(algorithm.model, problem.shape)
    algorithm.batches.check(problem.environments.law)
    problem.measurements.check(problem.environments, space, algorithm.batches.mixes)
    for event in algorithm.events:
        event.check(algorithm, problem)


def _tolerance(tolerance: float | None, cells: Sequence[Cell]) -> float | None:
    """The tolerance as a number, refused where the model cannot reach the truth."""
    if tolerance is None:
        return None
    for algorithm, problem in cells:
        limit, rank = algorithm.model.rank_limit(problem.shape), rank_of(problem.environments)
        if rank == 0:
            raise GyrostatError(
                "tolerance needs the distance to the truth, which is unknown for Observed environments: leave it out."
            )
        if rank is not None and limit < rank:
            raise GyrostatError(
                f"tolerance needs exact recovery, but {type(algorithm.model).__name__} makes rank {limit} at most and the "
                f"truth has rank {rank}: raise width to at least {rank}, or leave tolerance out."
            )
    return float(errors.number("tolerance", tolerance, above=0))


def _horizons(num_steps: int | Sequence[int], count: int) -> list[int]:
    if not isinstance(num_steps, Sequence | np.ndarray):
        num_steps = [num_steps] * count
    if len(num_steps) != count:
        raise GyrostatError(f"num_steps lists {len(num_steps)} numbers for {count} settings: give one each.")
    return [errors.integer("num_steps", T, least=1, most=errors.MOST_STEPS) for T in num_steps]


def _seed_numbers(seeds: int | Sequence[int]) -> list[int]:
    if not isinstance(seeds, Sequence | np.ndarray):
        return list(range(errors.integer("seeds", seeds, least=1, most=errors.LARGEST_RUN)))
    if len(seeds) == 0:
        raise GyrostatError("seeds is empty: give a number of seeds or at least one seed.")
    numbers = [errors.integer("seeds", s, most=errors.LARGEST_RUN) for s in seeds]
    if len(set(numbers)) < len(numbers):
        twice = next(s for s in numbers if numbers.count(s) > 1)
        raise GyrostatError(
            f"seeds lists {twice} more than once, which would be the same run again: list each seed once."
        )
    return numbers
