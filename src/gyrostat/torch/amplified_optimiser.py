"""An optimiser wrapper that makes more of what differs between environments: amplified heterogeneity for any network."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from torch.nn.parallel import DistributedDataParallel

import torch
from gyrostat import errors
from gyrostat.errors import GyrostatError
from gyrostat.sources.row_labels import grouped
from torch import nn

PATIENCE = 100
"""After this many steps per environment, one that was never seen is worth a warning."""


class AmplifiedHeterogeneity(torch.optim.Optimizer):
    """Steps with ``g + amplify (g - mean over environments of each one's last gradient)``, g being that of one environment.

    What all environments agree on is learnt as before, because the added part has mean zero over environments. What they
    disagree on is pushed back and forth, and directions that oscillate do not grow (Xu 2024, Section 5, for matrices). A step
    takes one backward pass: the gradients of the other environments are those of their last batches. Nothing is amplified
    until every environment has been seen.

    The weights oscillate, so what is deployed is their running average: see :meth:`averaged`. Visit the environments in turn
    (``order="cyclic"`` or ``"shuffled"`` of :class:`EnvironmentBatchSampler`), so that the steps of one undo those of another
    at once. In random order they do a random walk, which costs a rectified network half of the gain. The remembered
    gradients are as old as there are environments: with many of them, take smaller steps.

    It helps linear and rectified networks of a few features. On raw pixels it did not, for a rectified and for a convolutional
    network: ``docs/coloured-digits.md`` shows where it helps, and where batches of one environment alone do.

    Each environment costs the memory of one gradient. With several processes every one of them makes the same step, because
    DistributedDataParallel has averaged the gradients: all processes must then use the same environment, as
    :class:`EnvironmentBatchSampler` does. With ``torch.amp.GradScaler`` write ``scaler.step(optimizer, environment)``.
    Where a trainer calls ``optimizer.step()`` itself, set ``optimizer.environment = label`` before, for instance where the
    loss is computed.

    A gradient that is not finite is neither used nor remembered: the step is skipped and counted in ``skipped``.

    Parameters
    ----------
    optimizer
        The optimiser that makes the steps, preferably ``torch.optim.SGD`` without momentum. Momentum and Adam average
        gradients over environments, which undoes part of the amplification; they raise a warning.
    environments
        The labels of the environments: distinct ones, or one for each row of the data.
    amplify
        The factor kappa. 0 changes nothing; 10 is a good first choice.
    average
        The share of the running average of the weights that a step keeps, in [0, 1). The first ``1 / (1 - average)`` steps
        count equally.
    max_norm
        The largest norm of the amplified gradient; longer ones are shortened. Clipping before :meth:`step`, with
        ``torch.nn.utils.clip_grad_norm_``, limits the gradients that are compared instead.

    >>> weight = torch.zeros(2, requires_grad=True)
    >>> optimizer = AmplifiedHeterogeneity(torch.optim.SGD([weight], lr=0.1), ["a", "b"], amplify=10.0)
    >>> for environment, slope in (("a", -1.0), ("b", 1.0)):
    ...     optimizer.zero_grad()
    ...     loss = -weight[0] + slope * weight[1]
    ...     loss.backward()
    ...     optimizer.step(environment)
    >>> weight.tolist()  # the second entry: a plain step of 0.1, then one of 0.1 + 10 * 0.1 back
    [0.20000000298023224, -1.0]
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        environments: Any,
        amplify: float = 10.0,
        average: float = 0.98,
        *,
        max_norm: float | None = None,
    ):
        if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, AmplifiedHeterogeneity):
            raise GyrostatError(
                f"optimizer must be a PyTorch optimiser such as torch.optim.SGD(...); got {errors.shown(optimizer)}."
            )
        labels = grouped(environments)[0]
        if len(labels) < 2:
            raise GyrostatError(f"environments must hold at least two labels to compare; got only {labels[0]!r}.")
        share = float(errors.number("average", average, least=0))
        if share >= 1:
            raise GyrostatError(f"average must be below 1, or the start is never forgotten; got {average!r}.")
        own: dict[str, Any] = {
            "optimizer": optimizer,
            "environments": labels,
            "amplify": float(errors.number("amplify", amplify, least=0)),
            "average": share,
            "max_norm": None if max_norm is None else float(errors.number("max_norm", max_norm, above=0)),
            "environment": None,
            "steps": 0,
            "skipped": 0,
            "_seen": [False] * len(labels),
            "_last": {},
            "_averages": {},
        }
        # Not super().__init__, which would make parameter groups of its own: they are the wrapped optimiser's.
        super().__setstate__(own)
        _warn_of_memory(optimizer)

    optimizer: torch.optim.Optimizer
    environments: list
    amplify: float
    average: float
    max_norm: float | None
    environment: Any
    """The environment of the next step, for loops that call ``step()`` without one."""
    steps: int
    """Steps made."""
    skipped: int
    """Steps skipped because a gradient was not finite."""
    _seen: list[bool]
    _last: dict[torch.Tensor, torch.Tensor]
    _averages: dict[torch.Tensor, torch.Tensor]

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The parameter groups of the wrapped optimiser."""
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The state of the wrapped optimiser."""
        return self.optimizer.state

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        """The defaults of the wrapped optimiser."""
        return self.optimizer.defaults

    @property
    def unseen(self) -> list:
        """The environments without a step so far; nothing is amplified while there are any."""
        return [label for label, seen in zip(self.environments, self._seen, strict=True) if not seen]

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group to the wrapped optimiser. Nothing is amplified until every environment has been seen again."""
        self.optimizer.add_param_group(param_group)
        self._seen = [False] * len(self.environments)

    @torch.no_grad()
    def step(self, environment: Any = None, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Amplify the gradients of a batch of ``environment`` and let the wrapped optimiser make the step.

        ``closure``, if given, is called first to compute them, and what it returns is returned.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        at = self._position(self.environment if environment is None else environment)
        self.environment = None
        used = [p for p in self._parameters() if p.grad is not None]
        if not _all_finite([p.grad for p in used]):
            self._skip(self.environments[at])
            return loss
        self._remember(at)
        if all(self._seen):
            self._amplify(used, at)
        self.optimizer.step()
        self._average_weights()
        return loss

    def averaged(self, model: nn.Module) -> nn.Module:
        """A copy of ``model`` with the running averages of the weights: what to validate and to deploy.

        Buffers are copied as they are. Those of batch normalisation belong to the oscillating weights: recompute them with
        ``torch.optim.swa_utils.update_bn``.
        """
        if not self._averages:
            raise GyrostatError("averaged() needs at least one step: the average of no weights does not exist.")
        model = model.module if isinstance(model, DistributedDataParallel) else model
        found = copy.deepcopy(model)
        pairs = [(mine, self._averages.get(p)) for p, mine in zip(model.parameters(), found.parameters(), strict=True)]
        if all(mean is None for _, mean in pairs):
            raise GyrostatError("model shares no parameter with the optimiser: give the model that is being trained.")
        with torch.no_grad():
            for mine, mean in pairs:
                if mean is not None:
                    mine.copy_(mean)
        return found

    def state_dict(self) -> dict[str, Any]:
        """Everything that an exact continuation needs: of the wrapped optimiser, the last gradients, and the averages."""
        parameters = list(self._parameters())
        return {
            "optimizer": self.optimizer.state_dict(),
            "environments": list(self.environments),
            "seen": list(self._seen),
            "last": {i: self._last[p] for i, p in enumerate(parameters) if p in self._last},
            "averages": {i: self._averages[p] for i, p in enumerate(parameters) if p in self._averages},
            "steps": self.steps,
            "skipped": self.skipped,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from :meth:`state_dict`. ``amplify``, ``average`` and ``max_norm`` stay as they are."""
        if missing := {"optimizer", "environments", "seen", "last", "averages"} - set(state_dict):
            raise GyrostatError(
                f"state_dict is not one of AmplifiedHeterogeneity (it has no {min(missing)!r}): "
                "load that of a plain optimiser into .optimizer."
            )
        if list(state_dict["environments"]) != self.environments:
            raise GyrostatError(
                f"state_dict is of environments {errors.shown(state_dict['environments'])}, but this optimiser has "
                f"{errors.shown(self.environments)}: give both the same labels in the same order."
            )
        self.optimizer.load_state_dict(state_dict["optimizer"])
        parameters = list(self._parameters())
        self._last = {parameters[i]: x.detach().clone().to(parameters[i]) for i, x in state_dict["last"].items()}
        averages = state_dict["averages"].items()
        self._averages = {parameters[i]: x.detach().clone().to(parameters[i].device) for i, x in averages}
        self._seen = list(state_dict["seen"])
        self.steps, self.skipped = int(state_dict["steps"]), int(state_dict["skipped"])

    def _parameters(self) -> Iterator[torch.Tensor]:
        return (p for group in self.param_groups for p in group["params"])

    def _position(self, environment: Any) -> int:
        """The number of an environment."""
        label = environment.item() if getattr(environment, "ndim", None) == 0 else environment
        if label is None:
            raise GyrostatError(
                "step needs the environment of the batch: write optimizer.step(environment), or set "
                "optimizer.environment before a trainer calls step()."
            )
        try:
            return self.environments.index(label)
        except ValueError:
            raise GyrostatError(
                f"unknown environment {errors.shown(label)}: this optimiser was made for {errors.shown(self.environments)}."
            ) from None

    def _skip(self, label: Any) -> None:
        self.skipped += 1
        if self.skipped == 1:
            warnings.warn(
                f"a gradient of environment {label!r} is NaN or infinite: the step is skipped, as all such steps will be; "
                ".skipped counts them.",
                stacklevel=4,
            )

    def _remember(self, at: int) -> None:
        """Keep the gradients of this environment; a parameter without one has gradient zero there."""
        self._seen[at] = True
        self.steps += 1
        for p in self._parameters():
            if p.grad is None:
                if p in self._last:
                    self._last[p][at].zero_()
            else:
                if p not in self._last:
                    self._last[p] = torch.zeros(len(self.environments), *p.shape, dtype=p.dtype, device=p.device)
                self._last[p][at] = p.grad
        if self.steps == PATIENCE * len(self.environments) and self.unseen:
            warnings.warn(
                f"environment {self.unseen[0]!r} has not been seen in {self.steps} steps, so nothing has been amplified: "
                "check the order of batches, or leave it out of environments.",
                stacklevel=4,
            )

    def _amplify(self, used: list[torch.Tensor], at: int) -> None:
        changed = []
        for p in used:
            g = self._last[p].to(_wide(p.dtype))
            changed.append(g[at] + self.amplify * (g[at] - g.mean(dim=0)))
        if self.max_norm is not None:
            norm = torch.nn.utils.get_total_norm(changed)
            changed = [g * torch.clamp(self.max_norm / (norm + 1e-12), max=1.0) for g in changed]
        for p, g in zip(used, changed, strict=True):
            p.grad.copy_(g)  # type: ignore[union-attr]

    def _average_weights(self) -> None:
        new = max(1 - self.average, 1 / self.steps)
        for p in self._parameters():
            if p in self._averages:
                self._averages[p].lerp_(p.detach().to(self._averages[p].dtype), new)
            else:
                self._averages[p] = p.detach().to(_wide(p.dtype), copy=True)


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The type to compute in: half precision would round small differences and small steps of an average away."""
    return torch.promote_types(dtype, torch.float32)


def _all_finite(gradients: list[Any]) -> bool:
    return all(bool(torch.isfinite(g).all()) for g in gradients)


def _warn_of_memory(optimizer: torch.optim.Optimizer) -> None:
    """Say it if the optimiser averages gradients over steps, and so over environments."""
    averaging = [group for group in optimizer.param_groups if group.get("momentum") or "betas" in group]
    if averaging:
        warnings.warn(
            f"{type(optimizer).__name__} averages gradients over steps, and so over environments, which undoes part of the "
            "amplification: torch.optim.SGD without momentum gains the most.",
            stacklevel=3,
        )
