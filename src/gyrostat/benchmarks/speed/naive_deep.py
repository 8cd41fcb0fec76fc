"""SGD on a deep linear network as one would write it in PyTorch from Wang 2023: the peer of the deep suite."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Network(NamedTuple):
    """Complete [[1, *], [eps, 1]] with layers of one width, by the schedule of Figure 1."""

    depth: int = 3
    width: int = 100
    eps: float = 0.25
    ridge: float = 0.1
    step_size: float = 0.2
    warm_up: int = 500
    warm_step_size: float = 0.03
    observed: tuple[tuple[int, int], ...] = ((0, 0), (1, 0), (1, 1))

    def target(self) -> np.ndarray:
        """The truth, of rank one."""
        return np.array([[1.0, 1 / self.eps], [self.eps, 1.0]])

    def shapes(self) -> list[tuple[int, int]]:
        """The shape of every layer."""
        widths = [2, *[self.width] * (self.depth - 1), 2]
        return list(zip(widths[1:], widths[:-1], strict=True))

    def layers(self) -> list[np.ndarray]:
        """Uniform between -+ 1 / sqrt(fan_in), as ``torch.nn.Linear`` draws them."""
        rng = np.random.default_rng(0)
        return [rng.uniform(-1, 1, shape) / shape[1] ** 0.5 for shape in self.shapes()]


def torch_sgd(setting: Network, steps: int, precision: str = "float32") -> Any:
    """One observed entry per step, chosen with replacement; the product in the end. PyTorch's own precision is single."""
    import torch

    dtype = getattr(torch, precision)
    linear = [torch.nn.Linear(n, m, bias=False, dtype=dtype) for m, n in setting.shapes()]
    network = torch.nn.Sequential(*linear)
    with torch.no_grad():
        for layer, W in zip(linear, setting.layers(), strict=True):
            layer.weight.copy_(torch.from_numpy(W))
    optimiser = torch.optim.SGD(network.parameters(), lr=setting.warm_step_size, weight_decay=setting.ridge)
    inputs, target = torch.eye(2, dtype=dtype), torch.from_numpy(setting.target()).to(dtype)
    chosen = np.random.default_rng(1).integers(len(setting.observed), size=steps).tolist()
    for t in range(steps):
        if t == setting.warm_up:
            optimiser.param_groups[0]["lr"] = setting.step_size
        i, j = setting.observed[chosen[t]]
        optimiser.zero_grad()
        loss = (network(inputs[j])[i] - target[i, j]) ** 2
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return network(inputs).T
