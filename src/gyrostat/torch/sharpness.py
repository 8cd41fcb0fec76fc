"""Largest eigenvalues of the Hessians of a network's losses, by products with vectors only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scipy.linalg import eigvalsh_tridiagonal
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch
from gyrostat import errors
from gyrostat.errors import GyrostatError
from torch import nn

Loss = Callable[[nn.Module, Any], torch.Tensor]
Product = Callable[[torch.Tensor], torch.Tensor]


class Sharpness:
    """The largest eigenvalues of the Hessians of losses of environments; no Hessian is ever formed."""

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        batches: Mapping[Any, Any],
        parameters: Mapping[str, torch.Tensor],
        *,
        iterations: int,
        seed: int,
    ):
        self.parameters = parameters
        self.iterations = errors.integer("iterations", iterations, least=1)
        self.seed = errors.integer("seed", seed)
        with sdpa_kernel(SDPBackend.MATH):  # fused attention, the default of transformers, has no second derivative
            values = {label: value_of(model, loss, label, batch) for label, batch in batches.items()}
        self.slopes = {label: flat(derivative(value, parameters, again=True)) for label, value in values.items()}

    def of(self, label: Any, amplify: float = 0.0) -> float:
        """Of one environment, amplified; of the mean loss for None."""
        slopes = list(self.slopes.values())
        if label is None:
            return self._largest(lambda v: self._product(slopes, v) / len(slopes))
        own = [self.slopes[label]]
        if not amplify:
            return self._largest(lambda v: self._product(own, v))
        return self._largest(
            lambda v: (1 + amplify) * self._product(own, v) - amplify * self._product(slopes, v) / len(slopes)
        )

    def _product(self, slopes: Sequence[torch.Tensor], v: torch.Tensor) -> torch.Tensor:
        total = torch.stack([slope @ v for slope in slopes]).sum()
        return flat(derivative(total, self.parameters)).detach() if total.requires_grad else torch.zeros_like(v)

    def _largest(self, product: Product) -> float:
        """The largest eigenvalue in the span of v, Hv, HHv, ... (Lanczos), which power iteration approaches from within.

        A power iteration alone finds the eigenvalue of largest size, which may be negative, and finds it slowly. Three
        vectors are kept; vectors that are orthogonal only to their neighbours repeat the largest eigenvalue, never exceed it.
        """
        some = next(iter(self.slopes.values())).detach()
        v = torch.randn(some.numel(), generator=torch.Generator().manual_seed(self.seed)).to(some)
        v, before, side = v / v.norm(), torch.zeros_like(v), 0.0
        diagonal: list[float] = []
        sides: list[float] = []
        value = -math.inf
        for _ in range(self.iterations):
            image = product(v) - side * before
            diagonal.append(float(v @ image))
            image -= diagonal[-1] * v
            last, value = value, float(eigvalsh_tridiagonal(diagonal, sides)[-1])
            side = float(image.norm())
            if side <= 1e-7 * max(map(abs, diagonal), default=0.0) or abs(value - last) <= 1e-5 * abs(value):
                break
            sides.append(side)
            before, v = v, image / side
        return value


def value_of(model: nn.Module, loss: Loss, label: Any, batch: Any) -> torch.Tensor:
    """The loss of a batch, or a sentence."""
    found = loss(model, batch)
    if not isinstance(found, torch.Tensor) or found.numel() != 1:
        raise GyrostatError(f"loss(model, batch) must return one number, the mean loss; got {errors.shown(found)}.")
    if not torch.isfinite(found):
        raise GyrostatError(
            f"the loss of environment {label!r} is {found.item()}: its rows, or the network, are not finite."
        )
    return found.reshape(())


def derivative(
    value: torch.Tensor, parameters: Mapping[str, torch.Tensor], *, again: bool = False
) -> list[torch.Tensor]:
    """The derivative by each parameter; zero for one that has no part in the value."""
    leaves = list(parameters.values())
    if not value.requires_grad:
        return [torch.zeros_like(p) for p in leaves]
    found = torch.autograd.grad(value, leaves, create_graph=again, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, leaves, strict=True)]


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The entries of all tensors in one vector."""
    return torch.cat([x.reshape(-1).to(torch.promote_types(x.dtype, torch.float32)) for x in tensors])
