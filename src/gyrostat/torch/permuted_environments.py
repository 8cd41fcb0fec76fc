"""How often rows that are dealt out to environments at random disagree as strongly along one direction."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np

import torch
from gyrostat import errors
from gyrostat.torch.sharpness import Loss, derivative, flat
from torch import nn

PARTS = 8
"""Parts of each batch whose gradients change places; with two environments they can be dealt out in 6435 ways."""
WIDTH = 4096
"""The most numbers that are kept of a gradient: sums with random signs, which keep products of gradients to about 1/64."""


def p_value_of_direction(
    model: nn.Module,
    loss: Loss,
    batches: Mapping[Any, Any],
    parameters: Mapping[str, torch.Tensor],
    *,
    permutations: int,
    seed: int,
) -> float:
    """The p-value of the first principal direction of disagreement; NaN where rows cannot be permuted.

    Random parts of the batches, all of the same size, are dealt out to environments anew. If rows of all environments are
    alike, a value of at most p has a probability of at most p. This costs one more gradient of the rows.
    """
    count = errors.integer("permutations", permutations)
    lengths = [number_of_rows(batch) for batch in batches.values()]
    size = min(lengths) // PARTS
    if not count or not size:
        return math.nan
    rng = np.random.default_rng(seed)
    total = sum(p.numel() for p in parameters.values())
    width = min(total, WIDTH)
    signs = torch.randint(0, 2, (total,), generator=torch.Generator().manual_seed(seed), dtype=torch.int8) * 2 - 1
    sketches = []
    for batch, length in zip(batches.values(), lengths, strict=True):
        for rows in rng.permutation(length)[: PARTS * size].reshape(PARTS, size):
            try:
                value = loss(model, some_rows(batch, torch.as_tensor(rows)))
            except Exception as error:
                error.add_note(f"The loss was called on {size} of {length} rows; permutations=0 leaves this check out.")
                raise
            signed = flat(derivative(value, parameters)).detach().cpu() * signs
            sketch = nn.functional.pad(signed, (0, -total % width)).reshape(-1, width).sum(dim=0)
            sketches.append(sketch.double() if torch.isfinite(value) else torch.full_like(sketch, math.nan).double())
    S = torch.stack(sketches)
    G, codes, one_hot = (S @ S.T).numpy(), np.repeat(np.arange(len(batches)), PARTS), np.eye(len(batches))
    if not np.isfinite(G).all():  # such as the loss of a language model on rows without a masked word
        return math.nan

    def strength(codes: np.ndarray) -> float:
        A = one_hot[codes] / PARTS - 1 / len(codes)  # from parts to the gradients of environments less their mean
        return float(np.linalg.eigvalsh(A.T @ G @ A)[-1])

    least = strength(codes) * (1 - 1e-9)  # the same division in another order differs by rounding
    return (1 + sum(strength(rng.permutation(codes)) >= least for _ in range(count))) / (1 + count)


def number_of_rows(batch: Any) -> int:
    """The length that all tensors of a batch have in common; 0 if they have none, or if there is something else in it."""
    lengths = _lengths(batch)
    return lengths.pop() if len(lengths) == 1 else 0


def _lengths(batch: Any) -> set[int]:
    if isinstance(batch, torch.Tensor):
        return {len(batch)} if batch.ndim else set()
    if isinstance(batch, MutableMapping):
        return set().union(*map(_lengths, batch.values()))
    if isinstance(batch, tuple | list):
        return set().union(*map(_lengths, batch)) or {0}
    return set() if batch is None or isinstance(batch, str | int | float) else {0}


def some_rows(batch: Any, rows: torch.Tensor) -> Any:
    """A batch of some rows, of the same kind."""
    if isinstance(batch, torch.Tensor):
        return batch[rows.to(batch.device)] if batch.ndim else batch
    if isinstance(batch, MutableMapping):
        part = copy.copy(batch)
        part.update({name: some_rows(value, rows) for name, value in batch.items()})
        return part
    if isinstance(batch, tuple | list):
        parts = [some_rows(value, rows) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
