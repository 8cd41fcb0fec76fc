"""The networks of the map, stacked: one set of parameters for every seed and every configuration, trained together.

Parameters have shape (seeds, configurations, ...) and rows (seeds, rows, features), so that all configurations of a seed
share a matrix product. A network answers with one number per row, (seeds, configurations, rows).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

Parameters = dict[str, torch.Tensor]
WIDTH = 40


def linear(parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
    """w . x"""
    return parameters["w"] @ rows.mT


def diagonal(parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
    """(u * u - v * v) . x"""
    return (parameters["u"] ** 2 - parameters["v"] ** 2) @ rows.mT


def _first_layer(weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """W x for weights (seeds, configurations, units, features): (seeds, configurations, units, rows)."""
    seeds, configurations, units, features = weights.shape
    found = weights.reshape(seeds, configurations * units, features) @ rows.mT
    return found.reshape(seeds, configurations, units, -1)


def quadratic(parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
    """The sum of (w_j . x)^2 over units with sign plus, minus that over units with sign minus."""
    plus, minus = (_first_layer(parameters["first"], rows) ** 2).chunk(2, dim=2)
    return plus.sum(dim=2) - minus.sum(dim=2)


def rectified(parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
    """a . relu(W x)"""
    hidden = _first_layer(parameters["first"], rows).relu()
    return (parameters["last"].unsqueeze(-2) @ hidden).squeeze(-2)


def convolutional(parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
    """Two layers of rectified 3 x 3 filters, every second pixel each, and a linear layer; written as products of patches."""
    first, second, last = parameters["first"], parameters["second"], parameters["last"]
    seeds, configurations = first.shape[:2]
    side = math.isqrt(rows.shape[-1] // 2)
    patches = _patches(rows.reshape(-1, 2, side, side))  # (seeds * rows, 18, places)
    places = patches.shape[-1]
    patches = patches.reshape(seeds, -1, 18, places).permute(0, 1, 3, 2).reshape(seeds, -1, 18)
    hidden = (patches @ first.reshape(seeds, -1, 18).mT).relu()  # (seeds, rows * places, configurations * filters)
    filters, inner = first.shape[2], math.isqrt(places)
    hidden = hidden.reshape(seeds, -1, places, configurations, filters).permute(0, 3, 1, 4, 2)
    again = _patches(hidden.reshape(-1, filters, inner, inner))
    after = again.shape[-1]
    again = again.reshape(seeds * configurations, -1, 9 * filters, after).permute(0, 1, 3, 2)
    again = again.reshape(seeds * configurations, -1, 9 * filters)
    maps = (again @ second.reshape(seeds * configurations, -1, 9 * filters).mT).relu()
    flat = maps.reshape(seeds * configurations, -1, after * second.shape[2])
    return (flat @ last.reshape(seeds * configurations, -1, 1)).reshape(seeds, configurations, -1)


def _patches(pictures: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.unfold(pictures, 3, padding=1, stride=2)


class Parametrisation(NamedTuple):
    """A network: its answer, the shapes of its parameters for so many features, and the scale of its start.

    Networks on pictures have more features. A costly one is trained with the middle strength of each method only.
    """

    answer: Callable[[Parameters, torch.Tensor], torch.Tensor]
    shapes: Callable[[int], dict[str, tuple[int, ...]]]
    scale: float
    as_pictures: bool = False
    costly: bool = False


PARAMETRISATIONS: dict[str, Parametrisation] = {
    "linear": Parametrisation(linear, lambda d: {"w": (d,)}, 0.1),
    "diagonal": Parametrisation(diagonal, lambda d: {"u": (d,), "v": (d,)}, 0.1),
    "quadratic": Parametrisation(quadratic, lambda d: {"first": (WIDTH, d)}, 0.1),
    "rectified": Parametrisation(rectified, lambda d: {"first": (WIDTH, d), "last": (WIDTH,)}, 0.1),
    "rectified on pictures": Parametrisation(rectified, lambda d: {"first": (WIDTH, d), "last": (WIDTH,)}, 1.0, True),
    "convolutional": Parametrisation(
        convolutional, lambda d: {"first": (8, 18), "second": (16, 72), "last": (16 * _places(d),)}, 1.0, True, True
    ),
}


def _places(features: int) -> int:
    """The number of places that two layers with every second pixel leave."""
    side = math.isqrt(features // 2)
    for _ in range(2):
        side = (side + 1) // 2
    return side**2


def started(name: str, features: int, seeds: int, configurations: int) -> Parameters:
    """The start of PyTorch's layers times the scale, one per seed, the same for all configurations.

    The diagonal network starts with u = v = scale, so that it answers zero.
    """
    kind = PARAMETRISATIONS[name]
    found = {}
    for key, shape in kind.shapes(features).items():
        if name == "diagonal":
            start = torch.full((seeds, 1, *shape), kind.scale)
        else:
            draws = [torch.rand(shape, generator=torch.Generator().manual_seed(seed)) for seed in range(seeds)]
            start = torch.stack(draws).unsqueeze(1) * 2 - 1
            start = start * kind.scale / math.sqrt(shape[-1])
        found[key] = start.expand(seeds, configurations, *shape).clone()
    return found
