"""An audit of a training loop: which optimiser steps had gradients from several environments, and why."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch.optim.optimizer import register_optimizer_step_post_hook

import torch
from gyrostat import errors
from gyrostat.errors import GyrostatError
from torch import distributed

CAUSES = {
    "batch": "a batch held rows of several environments: give the loader batch_sampler=EnvironmentBatchSampler(...), for a "
    "Subset EnvironmentBatchSampler.for_dataset(...)",
    "accumulation": "batches of different environments were accumulated: use hold={most}, the batches per step",
    "processes": "processes used different environments in the same step: let nothing but EnvironmentBatchSampler divide "
    "batches over processes (prepare_loader for accelerate and Hugging Face's Trainer; for Lightning "
    "Trainer(use_distributed_sampler=False))",
}
"""Why a step mixed environments -> what to do."""


@contextmanager
def audit_environments(
    optimizer: torch.optim.Optimizer | None = None,
    *,
    module: torch.nn.Module | None = None,
    environment: Callable[..., Any] | None = None,
) -> Iterator[EnvironmentAudit]:
    """Watch a training loop and count the optimiser steps whose gradient came from several environments.

    It counts all steps of PyTorch's optimisers inside the ``with`` block, including those that a trainer makes. Call
    :meth:`EnvironmentAudit.batch` once for each batch, before its backward pass, to say which environments it holds; or give
    ``module`` and ``environment``, which finds them in the arguments of the module. :meth:`EnvironmentAudit.report` combines
    the counts of all processes.

    Parameters
    ----------
    optimizer : the optimiser whose steps count; None counts those of all optimisers, for trainers that make their own
    module : a module whose forward passes with gradients are batches, in place of calls of ``batch``
    environment : a function of the arguments of ``module`` that returns the label of the batch, or one label per row

    >>> weight = torch.nn.Parameter(torch.zeros(1))
    >>> optimizer = torch.optim.SGD([weight], lr=0.1)
    >>> with audit_environments(optimizer) as audit:
    ...     for environment in ["a", "b", "a", "a"]:  # a step after every second batch
    ...         audit.batch(environment)
    ...         weight.sum().backward()
    ...         if len(audit) == 2:
    ...             optimizer.step()
    ...             optimizer.zero_grad()
    >>> print(audit.report())
    1 of 2 optimiser steps (50.0%) mixed environments, on 1 process.
    1 by accumulation (first in step 0): batches of different environments were accumulated: use hold=2, the batches per step.
    """
    if (module is None) != (environment is None):
        raise GyrostatError(
            "module and environment belong together: give both, or call audit.batch(labels) in the loop."
        )
    audit = EnvironmentAudit()
    if optimizer is None:
        hooks = [register_optimizer_step_post_hook(audit._after_step)]
    else:
        hooks = [
            errors.instance("optimizer", optimizer, torch.optim.Optimizer).register_step_post_hook(audit._after_step)
        ]
        audit._watch(optimizer)
    if module is not None and environment is not None:
        found = environment

        def before(module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
            if torch.is_grad_enabled() and module.training:
                audit.batch(found(*args, **kwargs))

        hooks.append(module.register_forward_pre_hook(before, with_kwargs=True))
    try:
        yield audit
    finally:
        for hook in [*hooks, *audit._hooks]:
            hook.remove()


class EnvironmentAudit:
    """What each optimiser step of this process used. ``len`` is the number of batches since the last step."""

    def __init__(self) -> None:
        self.steps: list[list[frozenset]] = []
        self.rows: list[list[int]] = []
        self._batches: list[frozenset] = []
        self._rows: list[int] = []
        self._optimizers: weakref.WeakSet = weakref.WeakSet()
        self._hooks: list[Any] = []
        self._went_back = False

    def __len__(self) -> int:
        return len(self._batches)

    def batch(self, environments: Any, *, rows: Iterable[int] | None = None) -> None:
        """Note a batch, before its backward pass.

        Parameters
        ----------
        environments : the label of the batch, or one label per row
        rows : the numbers of its rows, to find processes that use the same ones
        """
        if self._batches and self._were_discarded():
            self._forget()
        self._batches.append(frozenset(_labels(environments)))
        self._rows += [] if rows is None else [int(row) for row in rows]

    def _were_discarded(self) -> bool:
        """Whether there were gradients and they are gone: a scaler skipped the step, or the loop did."""
        return self._went_back and all(p.grad is None for o in self._optimizers for p in _parameters(o))

    def _forget(self) -> None:
        self._batches, self._rows, self._went_back = [], [], False

    def _watch(self, optimizer: torch.optim.Optimizer) -> None:
        """Be told of gradients for an optimiser's parameters."""

        def arrived(_: torch.Tensor) -> None:
            self._went_back = True

        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            leaves = [p for p in _parameters(optimizer) if p.requires_grad]
            self._hooks += [p.register_post_accumulate_grad_hook(arrived) for p in leaves]

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._watch(optimizer)
        self.steps.append(self._batches)
        self.rows.append(self._rows)
        self._forget()

    def report(self) -> AuditReport:
        """The steps of all processes together. With a process group, all processes must call it."""
        mine = (self.steps, self.rows)
        everyone: list[Any] = [mine]
        if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
            everyone = [None] * distributed.get_world_size()
            distributed.all_gather_object(everyone, mine)
        return AuditReport.of(everyone)


@dataclass(frozen=True)
class AuditReport:
    """How many optimiser steps mixed environments, and where that comes from. ``str`` gives it as text.

    Parameters
    ----------
    steps : the optimiser steps
    mixed : those whose gradient came from several environments
    causes : the numbers of the mixed steps by cause: ``"batch"``, ``"accumulation"``, ``"processes"``; a step may have several
    unknown : steps of which some process noted no batch
    repeated : steps in which two processes used the same row, if rows were noted
    processes : the number of processes
    most : the most batches of one step of one process
    """

    steps: int
    mixed: int
    causes: dict[str, list[int]] = field(default_factory=dict)
    unknown: int = 0
    repeated: int = 0
    processes: int = 1
    most: int = 1

    @property
    def share(self) -> float:
        """The share of steps that mixed environments."""
        return self.mixed / self.steps

    @classmethod
    def of(cls, everyone: Sequence[tuple[list[list[frozenset]], list[list[int]]]]) -> AuditReport:
        """The report of what each process noted: the batches of each step, and their rows."""
        counts = [len(steps) for steps, _ in everyone]
        if not max(counts):
            raise GyrostatError("no optimiser step was taken: run the training loop inside the with block.")
        if not any(batches for steps, _ in everyone for batches in steps):
            raise GyrostatError(
                "no batch was recorded: call audit.batch(labels) for each batch, or give module and environment."
            )
        together = list(zip(*(steps for steps, _ in everyone), strict=False))
        causes: dict[str, list[int]] = {name: [] for name in CAUSES}
        for number, processes in enumerate(together):
            for name in _causes(processes):
                causes[name].append(number)
        rows = zip(*(rows for _, rows in everyone), strict=False)
        return cls(
            steps=len(together),
            mixed=len({number for steps in causes.values() for number in steps}),
            causes={name: steps for name, steps in causes.items() if steps},
            unknown=sum(not all(processes) for processes in together),
            repeated=sum(sum(map(len, step)) > len(set().union(*map(set, step))) for step in rows if len(step) > 1),
            processes=len(everyone),
            most=max(len(batches) for steps, _ in everyone for batches in steps),
        )

    def __str__(self) -> str:
        on = f"{self.processes} process" + ("es" if self.processes > 1 else "")
        lines = [f"{self.mixed} of {self.steps} optimiser steps ({self.share:.1%}) mixed environments, on {on}."]
        for name, steps in self.causes.items():
            advice = CAUSES[name].format(most=self.most)
            lines.append(f"{len(steps)} by {name} (first in step {steps[0]}): {advice}.")
        if self.unknown:
            lines.append(f"{self.unknown} steps had no recorded batch in some process: their environments are unknown.")
        if self.repeated:
            lines.append(f"In {self.repeated} steps processes used the same rows: give each its rank and num_replicas.")
        return "\n".join(lines)


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _causes(processes: Sequence[list[frozenset]]) -> list[str]:
    """Why a step mixed environments, given the environments of each batch of each process."""
    by_process = [frozenset().union(*batches) for batches in processes]
    found = {
        "batch": any(len(batch) > 1 for batches in processes for batch in batches),
        "accumulation": any(len(set(batches)) > 1 for batches in processes),
        "processes": len(set(filter(None, by_process))) > 1,
    }
    return [name for name, holds in found.items() if holds]


def _labels(environments: Any) -> list:
    """The labels of a batch as a list of plain values: of one label, or of one label per row."""
    if hasattr(environments, "tolist"):
        environments = environments.tolist()
    if isinstance(environments, str | bytes | tuple) or not isinstance(environments, Iterable):
        return [environments]
    found = [label.item() if isinstance(label, torch.Tensor | np.generic) else label for label in environments]
    if not found:
        raise GyrostatError("environments of a batch is empty: give its label, or one label per row.")
    return found
