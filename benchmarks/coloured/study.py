"""The study: every method on every setting, all seeds and configurations at once; pieces are kept and a later run goes on.

A piece is one setting and one method. It is trained for every step size and every strength; the configuration is chosen
afterwards by the validation rows (:func:`chosen`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import torch
from benchmarks.coloured.methods import LOSSES, METHODS, Batch, MapMethod, Training
from benchmarks.coloured.networks import PARAMETRISATIONS, Parameters, started
from benchmarks.coloured.pictures import DATA_FOLDER, VIEWS, ColouredPictures, coloured
from gyrostat.parallel.whole_files import write_whole

PIECES = DATA_FOLDER.parent / "map-pieces"
BATCH, AVERAGE = 200, 0.98
SIGN_CHANGES, CANONICAL = (1.0, 0.2), (0.9, 0.8)
"""How often the colour agrees with the label in the two environments: with a change of sign, and as in coloured MNIST."""
STEP_SIZES = {
    "SGD": (0.03, 0.1, 0.3, 1.0),
    "momentum": (0.003, 0.01, 0.03, 0.1),
    "Adam": (0.001, 0.003, 0.01, 0.03),
}
"""The step sizes to choose from; those of momentum have the same effective sizes as those of SGD."""


@dataclass(frozen=True)
class MapSetting:
    """A data set, how often the colour agrees in its two environments, a network, a loss, an optimiser, and the order."""

    data: str
    network: str
    loss: str = "cross-entropy"
    optimiser: str = "SGD"
    agreements: tuple[float, float] = SIGN_CHANGES
    order: str = "cyclic"
    wrong: float = 0.0

    @property
    def name(self) -> str:
        """The setting in one line."""
        parts = [self.data, self.network, self.loss, self.optimiser, "{:g}-{:g}".format(*self.agreements)]
        parts += [self.order] if self.order != "cyclic" else []
        parts += [f"{self.wrong:.0%} wrong"] if self.wrong else []
        return ", ".join(parts)


@dataclass(frozen=True)
class MapSizes:
    """How much to run; the tests take less."""

    seeds: int = 10
    steps: int = 400


def configurations(setting: MapSetting, method: MapMethod) -> list[tuple[float, float]]:
    """Every pair of a step size and a strength: of the middle one only for a costly network."""
    kind = PARAMETRISATIONS[setting.network]
    strengths = method.strengths[len(method.strengths) // 2 :][:1] if kind.costly else method.strengths
    return [(step, strength) for strength in strengths for step in STEP_SIZES[setting.optimiser]]


def piece_file(setting: MapSetting, method: str, sizes: MapSizes, folder: Path = PIECES) -> Path:
    """The file of a piece."""
    return folder / f"{setting.name}, {method}, {sizes.seeds} seeds, {sizes.steps} steps.json"


def kept(setting: MapSetting, method: str, sizes: MapSizes, folder: Path = PIECES) -> dict[str, np.ndarray]:
    """The results of a piece: those of an earlier run, or new ones, which are kept in ``folder``."""
    path = piece_file(setting, method, sizes, folder)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        found = trained(setting, method, sizes)
        write_whole(path, json.dumps({key: values.tolist() for key, values in found.items()}))
    return {key: np.asarray(values) for key, values in json.loads(path.read_text()).items()}


def trained(setting: MapSetting, name: str, sizes: MapSizes) -> dict[str, np.ndarray]:
    """Accuracies of one method by view, (seeds, configurations), and by validation environment, for averaged weights.

    ``last`` is the reversed accuracy of the last weights instead of the averaged ones.
    """
    method, kind = METHODS[name], PARAMETRISATIONS[setting.network]
    data = coloured(setting.data, setting.agreements, sizes.seeds, as_pictures=kind.as_pictures, wrong=setting.wrong)
    pairs = torch.tensor(configurations(setting, method))
    run = Training(kind.answer, LOSSES[setting.loss], pairs[:, :1].T, pairs[:, 1:].T)
    parameters = started(setting.network, data.train.shape[-1], sizes.seeds, len(pairs))
    average = {key: value.clone() for key, value in parameters.items()}
    update = OPTIMISERS[setting.optimiser](run.step_size)
    draw = drawn_batches(data, method, setting.order)
    for t in range(sizes.steps):
        run.progress = t / sizes.steps
        for value in parameters.values():
            value.requires_grad_()
        g = method.gradient(run, parameters, draw(t))
        with torch.no_grad():
            parameters = update(parameters, g)
            for key, value in parameters.items():
                average[key].lerp_(value, max(1 - AVERAGE, 1 / (t + 1)))
    with torch.no_grad():
        return judged(run, average, parameters, data, method)


def drawn_batches(data: ColouredPictures, method: MapMethod, order: str) -> Callable[[int], Batch]:
    """A function that draws the batch of a step, with replacement; the same for all methods that see the same rows."""
    generator = torch.Generator().manual_seed(0)
    rows = data.grey_train if method.grey else data.train
    seeds, n = rows.shape[:2]
    seed = torch.arange(seeds)
    # A placebo: rows are dealt to two environments at random.
    shuffle = torch.stack(
        [torch.randperm(n, generator=generator) if method.permuted else torch.arange(n) for _ in seed]
    )

    coin = torch.zeros(seeds, dtype=torch.long)

    def draw(t: int) -> Batch:
        nonlocal coin
        within = torch.randint(n // 2, (seeds, BATCH), generator=generator)
        if order == "iid" or (order == "shuffled" and t % 2 == 0):
            coin = torch.randint(2, (seeds,), generator=generator)
            e = coin
        else:
            e = 1 - coin if order == "shuffled" else torch.full((seeds,), t % 2)
        half = e[:, None] if method.one_environment else (torch.arange(BATCH) >= BATCH // 2).long()
        picked = shuffle[seed[:, None], within + n // 2 * half]
        labels = data.train_labels[seed[:, None], picked]
        return Batch(rows[seed[:, None], picked], labels, e if method.one_environment else None)

    return draw


def judged(
    run: Training, average: Parameters, last: Parameters, data: ColouredPictures, method: MapMethod
) -> dict[str, np.ndarray]:
    """What is kept of a piece."""

    def accuracy(parameters: Parameters, rows: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
        right = run.answer(parameters, rows).sign() == labels.unsqueeze(1)
        return right.float().mean(dim=-1).numpy()

    rows = data.grey_validation if method.grey else data.validation
    halves = zip(rows.chunk(2, dim=1), data.validation_labels.chunk(2, dim=1), strict=True)
    found = {f"validation {e}": accuracy(average, *half) for e, half in enumerate(halves)}
    for view in VIEWS:
        rows, labels = data.tests["grey"] if method.grey and view != "published" else data.tests[view]
        found[view] = accuracy(average, rows, labels)
    if method.grey:
        found["published"] = accuracy(average, data.tests["grey"][0], data.tests["published"][1])
    found["last"] = accuracy(last, *data.tests["grey" if method.grey else "reversed"])
    return found


# --- optimisers of stacked networks ----------------------------------------------------------------------------------------

Update = Callable[[Parameters, Parameters], Parameters]


def _times(step_size: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return step_size.reshape(*step_size.shape, *(1,) * (value.ndim - 2)) * value


def _sgd(step_size: torch.Tensor) -> Update:
    return lambda parameters, g: {key: p - _times(step_size, g[key]) for key, p in parameters.items()}


def _momentum(step_size: torch.Tensor, beta: float = 0.9) -> Update:
    memory: Parameters = {}

    def update(parameters: Parameters, g: Parameters) -> Parameters:
        for key, value in g.items():
            memory[key] = beta * memory[key] + value if key in memory else value
        return {key: p - _times(step_size, memory[key]) for key, p in parameters.items()}

    return update


def _adam(step_size: torch.Tensor, beta1: float = 0.9, beta2: float = 0.999) -> Update:
    first: Parameters = {}
    second: Parameters = {}
    t = 0

    def update(parameters: Parameters, g: Parameters) -> Parameters:
        nonlocal t
        t += 1
        found = {}
        for key, p in parameters.items():
            first[key] = beta1 * first.get(key, torch.zeros_like(p)) + (1 - beta1) * g[key]
            second[key] = beta2 * second.get(key, torch.zeros_like(p)) + (1 - beta2) * g[key] ** 2
            mean, square = first[key] / (1 - beta1**t), second[key] / (1 - beta2**t)
            found[key] = p - _times(step_size, mean / (square.sqrt() + 1e-8))
        return found

    return update


OPTIMISERS: dict[str, Callable[[torch.Tensor], Update]] = {"SGD": _sgd, "momentum": _momentum, "Adam": _adam}


# --- what is read off ------------------------------------------------------------------------------------------------------


def chosen(piece: dict[str, np.ndarray], by: str = "worst") -> int:
    """The configuration with the best validation accuracy, in the worst environment or on average, over all seeds."""
    both = np.stack([piece["validation 0"], piece["validation 1"]])
    judge = both.min(axis=0) if by == "worst" else both.mean(axis=0)
    return int(judge.mean(axis=0).argmax())


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """The mean over seeds with the ends of its 95 % interval (Student): low, mean, high."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean()), float(values.mean() + half)


def row_of(
    setting: MapSetting, method: str, piece: dict[str, np.ndarray], pooled: dict[str, np.ndarray]
) -> dict[str, Any]:
    """A method in a setting as a row for JSON: accuracies by view, and the paired gain over pooled batches."""
    at, base = chosen(piece), chosen(pooled)
    step, strength = configurations(setting, METHODS[method])[at]
    found: dict[str, Any] = {
        "method": method,
        "step_size": step,
        "strength": strength if len(METHODS[method].strengths) > 1 else None,
        **{view: interval(piece[view][:, at]) for view in (*VIEWS, "last")},
        "gain": interval(piece["reversed"][:, at] - pooled["reversed"][:, base]),
        "by_mean": interval(piece["reversed"][:, chosen(piece, "mean")]),
        "useless": float((piece["validation 0"] + piece["validation 1"] < 0.2).mean()),
    }
    return found
