"""What environments do to a network: where their gradients disagree, how sharp their losses are, which steps are stable."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import torch
from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.torch.permuted_environments import p_value_of_direction
from gyrostat.torch.sharpness import Loss, Sharpness, derivative, flat, value_of
from torch import nn

if TYPE_CHECKING:
    from gyrostat.figures.declarations import Figure

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""Layers whose second axis of weights is that of their inputs."""
LEVEL = 0.05
"""The share of permuted environments that may give a direction as strong as one that is named."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentReport:
    """The result of :func:`environment_report`."""

    environments: list
    """The labels, in the order of every list below."""
    losses: list[float]
    """The loss of each environment."""
    cosines: np.ndarray
    """The cosines of the angles between gradients of environments."""
    disagreement: float
    """Mean squared distance of the gradients from their mean, over the squared norm of the mean."""
    by_tensor: dict[str, float]
    """The share of the disagreement in each parameter tensor."""
    layer: str
    """The tensor whose inputs the following fields are about."""
    by_input: np.ndarray
    """The share of the disagreement in that tensor that each of its inputs has."""
    direction_shares: np.ndarray
    """The share of the disagreement along each of its principal directions: what oscillates when environments alternate."""
    direction_by_tensor: list[dict[str, float]]
    """The share of each principal direction in each tensor."""
    direction_p_value: float
    """The share of permuted environments whose first direction is as strong; NaN if rows were not permuted.

    Above 0.05, and for NaN, neither ``text`` nor ``figure()`` says what the first direction acts on.
    """
    input_directions: np.ndarray
    """For each principal direction, the unit vector of inputs of the layer that it acts on most: (directions, inputs)."""
    input_direction_shares: np.ndarray
    """The share of the direction's part in the layer that this vector accounts for."""
    input_mean: np.ndarray
    """The mean of each input of the layer over all batches."""
    sharpness: list[float]
    """The largest eigenvalue of the Hessian of each environment's loss."""
    pooled_sharpness: float
    """The same for the mean of the losses."""
    amplify: float
    """The amplification for which the step is judged."""
    largest_stable_step: float
    """Two over the largest eigenvalue that a step of one environment meets; infinite if none is positive.

    Above it, plain steps on that environment's batch alone overshoot along its sharpest direction. Steps of other
    environments, and losses that flatten, may still bring the network back: this is a cautious bound, not a threshold.
    """

    @property
    def _named(self) -> bool:
        return self.direction_p_value <= LEVEL

    @property
    def text(self) -> str:
        """The report in lines for a terminal."""
        width = max(len(str(label)) for label in self.environments)
        rows = zip(self.environments, self.losses, self.sharpness, self.cosines, strict=True)
        lines = [f"{'environment':<{max(width, 11)}}  loss      sharpness  cosines of gradients"]
        for label, loss, sharp, row in rows:
            cosines = " ".join(f"{c:+.2f}" for c in row)
            lines.append(f"{label!s:<{max(width, 11)}}  {loss:<8.4g}  {sharp:<9.4g}  {cosines}")
        tensors = sorted(self.by_tensor.items(), key=lambda item: -item[1])[:4]
        inputs = np.argsort(-self.by_input)[:6]
        first = ", ".join(f"{i}: {self.input_directions[0][i]:+.2f}" for i in _largest(self.input_directions[0], 6))
        step = f"{self.largest_stable_step:.3g}"
        if self._named:
            share = self.input_direction_shares[0]
            direction = f"the first direction acts on inputs {first} ({share:.0%} of its part there)"
        elif math.isnan(self.direction_p_value):
            direction = (
                "no direction is named: the rows of the batches were not permuted (less than 8 each, not in tensors of one "
                "length, a loss that is not finite on some, or permutations=0)"
            )
        else:
            share = self.direction_p_value
            direction = f"no direction is named: permuted environments give one as strong in {share:.0%} of cases"
        return "\n".join(
            [
                *lines,
                f"Disagreement: {self.disagreement:.3g} times the squared mean gradient; pooled sharpness "
                f"{self.pooled_sharpness:.4g}.",
                "  by tensor: " + ", ".join(f"{name} {share:.0%}" for name, share in tensors),
                f"  by input of {self.layer}: " + ", ".join(f"{i} {self.by_input[i]:.0%}" for i in inputs),
                "  by direction: " + ", ".join(f"{share:.0%}" for share in self.direction_shares),
                f"  {direction}",
                f"Largest stable step with amplify={self.amplify:g}: {step} (two over the largest sharpness of a step).",
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as lists and numbers; an infinite step and an unknown p-value are None."""
        found = {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}
        for name in ("largest_stable_step", "direction_p_value"):
            found[name] = found[name] if math.isfinite(found[name]) else None
        return found

    def to_json(self) -> str:
        """The report as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def figure(self) -> Figure:
        """Losses and sharpness by environment, the disagreement by tensor, by input and by direction, as a figure."""
        from gyrostat.figures.declarations import Bars, Figure, Marker, Panel

        labels = [str(label) for label in self.environments]
        tensors = sorted(self.by_tensor.items(), key=lambda item: -item[1])[:6]
        inputs = _largest(self.by_input, 8)
        numbers = [str(k + 1) for k in range(len(self.direction_shares))]

        def bars(title: str, xlabel: str, ylabel: str, names: Sequence[str], values: Any) -> Panel:
            return Panel(title=title, xlabel=xlabel, ylabel=ylabel, series=[Bars(names, np.asarray(values), ylabel)])

        sharp = bars("Sharpness", "environment", "largest eigenvalue of the Hessian", labels, self.sharpness)
        pooled = Marker(self.pooled_sharpness, "pooled")
        vector = [float(self.input_directions[0][i]) for i in inputs]
        panels = [
            bars("Loss", "environment", "loss", labels, self.losses),
            Panel(title=sharp.title, xlabel=sharp.xlabel, ylabel=sharp.ylabel, series=[*sharp.series, pooled]),
            bars("Directions", "direction", "share of the disagreement", numbers, self.direction_shares),
            bars("Tensors", "tensor", "share of the disagreement", *zip(*tensors, strict=True)),
            bars(
                "Inputs",
                f"input of {self.layer}",
                "share of the disagreement",
                [str(i) for i in inputs],
                self.by_input[inputs],
            ),
            bars(
                "First direction",
                f"input of {self.layer}",
                "entry of the unit vector",
                [str(i) for i in inputs],
                vector,
            ),
        ]
        if not self._named:
            panels.pop()
        note = (
            f"Gradients of {len(labels)} environments; their disagreement is {self.disagreement:.3g} times the squared norm "
            f"of the mean gradient. Largest stable step with amplify={self.amplify:g}: {self.largest_stable_step:.3g}."
        )
        return Figure(title="What the environments do to this network", panels=panels, note=note)

    def save(self, path: str | Path) -> list[Path]:
        """Draw :meth:`figure` to ``path.png`` and ``path.svg``."""
        from gyrostat.figures.matplotlib_renderer import render

        return render(self.figure(), Path(path))


def environment_report(
    model: nn.Module,
    loss: Loss,
    batches: Mapping[Any, Any],
    *,
    amplify: float = 0.0,
    layer: str | None = None,
    directions: int = 3,
    iterations: int = 100,
    permutations: int = 199,
    seed: int = 0,
) -> EnvironmentReport:
    """What do the environments do to this network? Gradients, their disagreement, sharpness and the step that is stable.

    The gradients g_e of K environments disagree by ``g_e - mean``. The principal directions of these are found from their
    K x K Gram matrix: the covariance, a square matrix as large as the network, is never formed. Eigenvalues of Hessians
    are found by power iteration in Lanczos's form, with Hessian-vector products. The model is looked at in evaluation mode
    and is not changed.

    The gradients of environments that do not differ disagree too, by chance. So the rows are permuted over the environments in
    8 parts of each batch, and a direction is named only if at most 5% of the permutations give one as strong.

    Parameters
    ----------
    model
        The network.
    loss
        A function of the model and a batch that returns the mean loss of the batch. It is also called on parts of the batches.
    batches
        One batch per environment, by its label. Gradients of few rows disagree by chance too: take as many as fit.
    amplify
        The kappa of :class:`AmplifiedHeterogeneity`, if it is used: ``largest_stable_step`` depends on it.
    layer
        The name of the tensor whose inputs are judged; the first one with at least two axes by default.
    directions
        The number of principal directions, at most one less than there are environments.
    iterations
        The largest number of Hessian-vector products per eigenvalue; it stops earlier once five digits no longer change.
    permutations
        How many permutations of the rows there are; 0 leaves them out, and no direction is named.
    seed
        The seed of the vector with which these products begin, and of the permutations.

    >>> _ = torch.manual_seed(0)
    >>> x = torch.randn(200, 3)
    >>> batches = {"a": (x, x[:, 0] + x[:, 2]), "b": (x, x[:, 0] - x[:, 2])}
    >>> def loss(model, batch):
    ...     return 0.5 * ((model(batch[0])[:, 0] - batch[1]) ** 2).mean()
    >>> report = environment_report(nn.Linear(3, 1), loss, batches)
    >>> report.by_input.argmax(), round(abs(report.input_directions[0][2]), 1)
    (np.int64(2), np.float32(1.0))
    """
    labels = list(batches) if isinstance(batches, Mapping) else []
    if len(labels) < 2:
        raise GyrostatError(
            "batches must map at least two environments to a batch each, as in {'a': batch, 'b': batch}; "
            f"got {errors.shown(batches)}."
        )
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    layer = _layer(parameters, layer)
    kappa = float(errors.number("amplify", amplify, least=0))
    count = errors.integer("directions", directions, least=1)
    with _evaluating(model):
        with _inputs_of(model, layer) as inputs:
            losses, gradients = _gradients(model, loss, batches, parameters)
        sharpness = Sharpness(model, loss, batches, parameters, iterations=iterations, seed=seed)
        own, pooled = [sharpness.of(label) for label in labels], sharpness.of(None)
        met = [sharpness.of(label, kappa) for label in labels] if kappa else own
        p_value = p_value_of_direction(model, loss, batches, parameters, permutations=permutations, seed=seed)
    norms = gradients.norm(dim=1).clamp(min=1e-30)
    centred = gradients - gradients.mean(dim=0)
    total = float((centred**2).sum())
    found, shares = _principal(centred, min(count, len(labels) - 1))
    matrices = [_by_input(_part(u, parameters, layer)) for u in found]
    vectors = [_top_vector(M) for M in matrices]
    columns = sum(_by_input(_part(g, parameters, layer)).square().sum(dim=0) for g in centred)
    assert isinstance(columns, torch.Tensor)
    return EnvironmentReport(
        environments=labels,
        losses=losses,
        cosines=((gradients @ gradients.T) / (norms[:, None] * norms)).numpy(),
        disagreement=total / len(labels) / max(float(gradients.mean(dim=0).square().sum()), 1e-30),
        by_tensor={n: float((_part(centred, parameters, n) ** 2).sum()) / max(total, 1e-30) for n in parameters},
        layer=layer,
        by_input=(columns / columns.sum().clamp(min=1e-30)).numpy(),
        direction_shares=shares,
        direction_by_tensor=[{n: float((_part(u, parameters, n) ** 2).sum()) for n in parameters} for u in found],
        direction_p_value=p_value,
        input_directions=np.stack([v.numpy() for v, _ in vectors]),
        input_direction_shares=np.array([share for _, share in vectors]),
        input_mean=torch.stack(inputs).mean(dim=0).numpy() if inputs else np.zeros(len(columns)),
        sharpness=own,
        pooled_sharpness=pooled,
        amplify=kappa,
        largest_stable_step=2 / max(met) if max(met) > 0 else math.inf,
    )


def project_out(model: nn.Module, report: EnvironmentReport, *, directions: int = 1) -> nn.Module:
    """A copy of ``model`` that does not see the inputs along the first directions of a report, without retraining.

    The inputs x of ``report.layer`` become ``x - V V^T (x - mean)``, V being the first rows of ``report.input_directions``
    and the mean that of the batches of the report. This is a change of the layer's weights and bias only. For a convolution
    the inputs are its channels.

    It helps where what varies is a direction of the inputs, such as the ink of a colour or the gain of a channel. It cannot
    help if what varies is a pattern, or can be seen only by several layers. It also removes what is useful along the same
    direction, and the layers above remain as they were trained. So compare on validation rows before you use it.

    Parameters
    ----------
    model
        The network of the report, whose ``report.layer`` is the weight of an ``nn.Linear`` or of a convolution.
    report
        The result of :func:`environment_report`.
    directions
        The number of directions to remove.

    >>> layer = nn.Linear(2, 1)
    >>> batches = {e: (torch.eye(2), torch.tensor([0.0, e])) for e in (-1.0, 1.0)}
    >>> report = environment_report(layer, lambda m, b: ((m(b[0])[:, 0] - b[1]) ** 2).mean(), batches)
    >>> project_out(layer, report).weight[0, 1].item()
    0.0
    """
    owner, _, kind = report.layer.rpartition(".")
    found = copy.deepcopy(model)
    layer = found.get_submodule(owner)
    if kind != "weight" or not isinstance(layer, LAYERS) or getattr(layer, "groups", 1) != 1:
        raise GyrostatError(
            f"project_out needs the weight of an nn.Linear or of a convolution without groups; the report is about "
            f"{report.layer!r}: name another layer in environment_report(layer=...)."
        )
    count = errors.integer("directions", directions, least=1, most=len(report.input_directions))
    with torch.no_grad():
        W = layer.weight.movedim(1, -1)  # (..., inputs)
        basis, _ = np.linalg.qr(np.asarray(report.input_directions[:count], dtype=np.float64).T)
        V, mean = (torch.as_tensor(x).to(layer.weight) for x in (basis, report.input_mean))
        part = W @ V @ V.T
        shift = (part @ mean).flatten(1).sum(dim=1) if W.ndim > 2 else part @ mean
        layer.weight.copy_((W - part).movedim(-1, 1))
        layer.bias = nn.Parameter(shift if layer.bias is None else layer.bias + shift)
    return found


# --- gradients -------------------------------------------------------------------------------------------------------------


def _layer(parameters: Mapping[str, torch.Tensor], name: str | None) -> str:
    if not parameters:
        raise GyrostatError("model has no parameters that require a gradient: there is nothing to report.")
    if name is not None:
        return errors.choice("layer", name, parameters)
    return next((n for n, p in parameters.items() if p.ndim >= 2), next(iter(parameters)))


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, without dropout and running statistics, and back."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def _inputs_of(model: nn.Module, layer: str) -> Iterator[list[torch.Tensor]]:
    """The mean of each input of a layer, one vector for each call of it."""
    means: list[torch.Tensor] = []
    module = model.get_submodule(layer.rpartition(".")[0])

    def keep(module: nn.Module, given: tuple) -> None:
        axis = -1 if isinstance(module, nn.Linear) else 1
        x = given[0].detach().movedim(axis, -1)
        means.append(x.reshape(-1, x.shape[-1]).double().mean(dim=0).cpu())

    handle = module.register_forward_pre_hook(keep) if isinstance(module, LAYERS) else None
    try:
        yield means
    finally:
        if handle is not None:
            handle.remove()


def _gradients(
    model: nn.Module, loss: Loss, batches: Mapping[Any, Any], parameters: Mapping[str, torch.Tensor]
) -> tuple[list[float], torch.Tensor]:
    """The loss of each environment, and its gradient as a row (environments, numbers in the network)."""
    losses, rows = [], []
    for label, batch in batches.items():
        value = value_of(model, loss, label, batch)
        losses.append(value.item())
        rows.append(flat(derivative(value, parameters)).detach().cpu())
    return losses, torch.stack(rows)


def _part(vector: torch.Tensor, parameters: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    """The entries of one tensor in a flat vector, or in several; a vector's have the shape of the tensor."""
    start = 0
    for key, p in parameters.items():
        if key == name:
            found = vector[..., start : start + p.numel()]
            return found.reshape(p.shape) if vector.ndim == 1 else found
        start += p.numel()
    raise KeyError(name)


def _by_input(weights: torch.Tensor) -> torch.Tensor:
    """A matrix with one column for each input of a layer."""
    return weights.movedim(1, -1).reshape(-1, weights.shape[1]) if weights.ndim >= 2 else weights.reshape(1, -1)


def _principal(centred: torch.Tensor, count: int) -> tuple[torch.Tensor, np.ndarray]:
    """The principal directions of rows, by their Gram matrix, and the share of the squared length along each."""
    values, vectors = torch.linalg.eigh((centred @ centred.T).double())
    values, vectors = values.flip(0).clamp(min=0), vectors.flip(1)
    found = vectors[:, :count].T.to(centred.dtype) @ centred
    found = found / found.norm(dim=1, keepdim=True).clamp(min=1e-30)
    return found, (values[:count] / values.sum().clamp(min=1e-30)).numpy()


def _top_vector(M: torch.Tensor) -> tuple[torch.Tensor, float]:
    """The first right singular vector, its largest entry positive, and its share of the squared entries."""
    values, vectors = torch.linalg.eigh((M.T @ M).double())
    v = vectors[:, -1]
    v = v * v[v.abs().argmax()].sign()
    return v.to(M.dtype), float(values[-1] / values.sum().clamp(min=1e-30))


# --- as text ---------------------------------------------------------------------------------------------------------------


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    return np.argsort(-np.abs(values), kind="stable")[:count]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [label if isinstance(label, str | int | float | bool | dict) else str(label) for label in value]
    return value
