"""The methods of the map: which rows a step sees, and the gradient that it makes of them.

All work on stacked networks. ``Batch`` holds the same number of rows for every method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from benchmarks.coloured.networks import Parameters

Answer = Callable[[Parameters, torch.Tensor], torch.Tensor]


def squared(answers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Half of the squared error."""
    return 0.5 * (answers - labels) ** 2


def cross_entropy(answers: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The logistic loss of labels 1 and -1."""
    return torch.nn.functional.softplus(-labels * answers)


LOSSES = {"squared": squared, "cross-entropy": cross_entropy}


class Batch(NamedTuple):
    """Rows (seeds, rows, features), labels (seeds, rows), and the environment of each seed's rows, if they are of one.

    Without one, the first half of the rows is of the first environment.
    """

    rows: torch.Tensor
    labels: torch.Tensor
    environment: torch.Tensor | None


@dataclass
class Training:
    """What a method needs of a run: the network, the loss, the configurations (1, configurations), the share of steps done."""

    answer: Answer
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    step_size: torch.Tensor
    strength: torch.Tensor
    progress: float = 0.0
    memory: dict[str, Any] = field(default_factory=dict)

    def losses(self, parameters: Parameters, batch: Batch) -> torch.Tensor:
        """The mean loss of each environment in the batch: (environments, seeds, configurations)."""
        each = self.loss(self.answer(parameters, batch.rows), batch.labels.unsqueeze(1))
        return torch.stack([part.mean(dim=-1) for part in self._parts(each, batch)])

    def penalties(self, parameters: Parameters, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """The losses, and the squared derivative of each by a factor of the answers, at 1 (IRMv1)."""
        answers, labels = self.answer(parameters, batch.rows), batch.labels.unsqueeze(1)
        slopes = answers - labels if self.loss is squared else -labels * torch.sigmoid(-labels * answers)
        each = self.loss(answers, labels)
        losses = torch.stack([part.mean(dim=-1) for part in self._parts(each, batch)])
        derivatives = torch.stack([part.mean(dim=-1) for part in self._parts(slopes * answers, batch)])
        return losses, derivatives**2

    @staticmethod
    def _parts(each: torch.Tensor, batch: Batch) -> tuple[torch.Tensor, ...]:
        return (each,) if batch.environment is not None else each.chunk(2, dim=-1)


def gradient(total: torch.Tensor, parameters: Parameters) -> Parameters:
    """The gradient of a sum over networks, which is that of each network."""
    found = torch.autograd.grad(total.sum(), list(parameters.values()))
    return dict(zip(parameters, found, strict=True))


def plain(run: Training, parameters: Parameters, batch: Batch) -> Parameters:
    """The gradient of the mean loss of the batch."""
    return gradient(run.losses(parameters, batch).mean(dim=0), parameters)


def amplified(run: Training, parameters: Parameters, batch: Batch) -> Parameters:
    """g + kappa (g - mean of the last gradients), as in :class:`gyrostat.torch.AmplifiedHeterogeneity`."""
    g, e = plain(run, parameters, batch), batch.environment
    assert e is not None
    seeds = torch.arange(len(e))
    memory = run.memory
    if not memory:
        memory["last"] = {key: torch.zeros(len(e), 2, *value.shape[1:]) for key, value in g.items()}
        memory["seen"] = torch.zeros(len(e), 2, dtype=torch.bool)
    memory["seen"][seeds, e] = True
    strength = run.strength * memory["seen"].all(dim=1, keepdim=True)  # (seeds, configurations)
    found = {}
    for key, value in g.items():
        last = memory["last"][key]
        last[seeds, e] = value
        found[key] = value + _wide(strength, value) * (value - last.mean(dim=1))
    return found


def vrex(run: Training, parameters: Parameters, batch: Batch) -> Parameters:
    """Mean loss plus strength times the variance of losses over environments (Krueger 2021)."""
    losses = run.losses(parameters, batch)
    weight = _annealed(run)
    return gradient((losses.mean(dim=0) + weight * losses.var(dim=0, unbiased=False)) / weight.clamp(min=1), parameters)


def irm(run: Training, parameters: Parameters, batch: Batch) -> Parameters:
    """Mean loss plus strength times the mean squared derivative by a factor of the answers (Arjovsky 2019, IRMv1)."""
    losses, penalties = run.penalties(parameters, batch)
    weight = _annealed(run)
    return gradient((losses + weight * penalties).mean(dim=0) / weight.clamp(min=1), parameters)


def group_dro(run: Training, parameters: Parameters, batch: Batch) -> Parameters:
    """Losses weighted by weights that grow like exp(strength * loss) (Sagawa 2020)."""
    losses = run.losses(parameters, batch)
    logits = run.memory.get("logits", torch.zeros_like(losses)) + run.strength * losses.detach()
    run.memory["logits"] = logits
    return gradient((logits.softmax(dim=0) * losses).sum(dim=0), parameters)


def fish(run: Training, parameters: Parameters, batch: Batch) -> Parameters:
    """One plain step in each environment, then a share ``strength`` of the way there (Shi 2022), as a gradient."""
    inner = {key: value.detach().clone().requires_grad_() for key, value in parameters.items()}
    halves = list(zip(batch.rows.chunk(2, dim=1), batch.labels.chunk(2, dim=1), strict=True))
    first = int(torch.randint(2, (), generator=run.memory.setdefault("coin", torch.Generator().manual_seed(0))))
    for rows, labels in (halves[first], halves[1 - first]):
        g = plain(run, inner, Batch(rows, labels, torch.zeros(0)))
        with torch.no_grad():
            for key, value in inner.items():
                value -= _wide(run.step_size, value) * g[key]
    back = {key: (parameters[key] - inner[key]).detach() for key in inner}
    return {key: value * _wide(run.strength / run.step_size, value) for key, value in back.items()}


def _annealed(run: Training) -> torch.Tensor:
    """The weight of a penalty: 1 in the first quarter of the run, as in the published code, then the strength."""
    return run.strength if run.progress >= 0.25 else torch.ones_like(run.strength)


def _wide(factor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A number per network, in a shape that multiplies its parameters."""
    return factor.reshape(*factor.shape, *(1,) * (like.ndim - factor.ndim))


class MapMethod(NamedTuple):
    """A method: the gradient of a step, the strengths to choose from, and the rows that a step sees."""

    gradient: Callable[[Training, Parameters, Batch], Parameters]
    strengths: tuple[float, ...] = (1.0,)
    one_environment: bool = False
    grey: bool = False
    permuted: bool = False


METHODS: dict[str, MapMethod] = {
    "pooled": MapMethod(plain),
    "one environment": MapMethod(plain, one_environment=True),
    "amplified": MapMethod(amplified, (3.0, 10.0, 30.0), one_environment=True),
    "V-REx": MapMethod(vrex, (1.0, 10.0, 100.0)),
    "IRMv1": MapMethod(irm, (1.0, 10.0, 100.0)),
    "GroupDRO": MapMethod(group_dro, (0.01, 0.1, 1.0)),
    "Fish": MapMethod(fish, (0.1, 0.3, 1.0)),
    "no colour": MapMethod(plain, grey=True),
    "placebo": MapMethod(amplified, (3.0, 10.0, 30.0), one_environment=True, permuted=True),
}
"""``no colour`` is the oracle that never sees the colour; ``placebo`` is ``amplified`` with environments permuted at random."""
