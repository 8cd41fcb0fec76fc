"""Who divides batches over processes: this process's number, trainers that divide again, and the way around them."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any, NamedTuple

from torch.utils.data import DataLoader, IterableDataset, Sampler

import torch
from gyrostat import errors
from gyrostat.errors import GyrostatError
from torch import distributed

NEAR = 16
"""Frames to look at above an ``__iter__``; Lightning's loop is at most thirteen away, accelerate's loaders seven."""
LOADERS = ("torch.", "torchdata.", "accelerate.", "transformers.", "lightning.", "pytorch_lightning.")
"""Modules between a trainer's loop and the ``__iter__`` of what it loads; behind any other, a loop is not theirs."""
INSTEAD = (
    "with accelerate and Hugging Face's Trainer pass the loader to gyrostat.torch.prepare_loader(accelerator, loader) "
    "instead of accelerator.prepare, with Lightning use Trainer(use_distributed_sampler=False)"
)


class Process(NamedTuple):
    """The number of a process and the count of processes that share each step's rows."""

    rank: int
    num_replicas: int


def this_process(rank: int | None, num_replicas: int | None) -> Process:
    """The number of this process and the count of processes: as given, else from the process group, else one."""
    if distributed.is_available() and distributed.is_initialized():
        rank = distributed.get_rank() if rank is None else rank
        num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
    check_pair(rank, num_replicas)
    return Process(rank or 0, num_replicas or 1)


def check_pair(rank: int | None, num_replicas: int | None) -> None:
    """Refuse a rank without the count of processes, or outside of it."""
    grouped = distributed.is_available() and distributed.is_initialized()
    if (rank is None) != (num_replicas is None) and not grouped:
        raise GyrostatError(
            f"rank and num_replicas belong together; got rank={rank} and num_replicas={num_replicas}: "
            "give both, or start torch.distributed first and give none."
        )
    if num_replicas is not None:
        errors.integer("num_replicas", num_replicas, least=1)
        errors.integer("rank", rank or 0, most=num_replicas - 1, most_because=", num_replicas - 1")


def refuse_missing_group(rank: int | None) -> None:
    """Refuse to hand the same rows to each process of a launcher that has not started torch.distributed."""
    processes = os.environ.get("WORLD_SIZE", "1")
    started = distributed.is_available() and distributed.is_initialized()
    if rank is None and not started and processes.isdigit() and int(processes) > 1:
        raise GyrostatError(
            f"WORLD_SIZE is {processes} but torch.distributed has no process group, so every process would get the same rows: "
            "call init_process_group before the loop, or give rank and num_replicas."
        )


def refuse_mixing_trainer(
    name: str, *, num_replicas: int, batch_size: int, hold: int, start: int, full: bool, fill: str
) -> None:
    """Refuse to be iterated by something that puts batches of different environments into one step.

    What a trainer does with the batches is not told to what makes them, so the callers are looked at: one may divide the
    batches over processes again, one may accumulate the gradients of several. Full batches in rows of ``hold`` may be divided
    and accumulated by numbers whose product divides ``hold``, if this sampler itself counts one process.
    """
    frame: FrameType | None = sys._getframe(2)
    step = 1
    loading = torch.is_grad_enabled()  # whether a trainer's own loop asks for batches to train on
    for _ in range(NEAR):
        if frame is None:
            return
        caller = frame.f_locals.get("self")
        kind, shares = type(caller).__name__, _shares(caller)
        if shares > 1:
            split, shuffles = getattr(caller, "split_batches", False), getattr(caller, "shuffle", False)
            step = 1 if split else shares
            if num_replicas > 1 or hold % step or shuffles:
                alone = f", or leave it to {kind} by rank=0, num_replicas=1, hold={shares} and full batches"
                raise GyrostatError(
                    f"{kind} divides the batches of {name} over {shares} processes, which {name} does itself, so steps would "
                    f"mix environments: {INSTEAD}{'' if shuffles else alone}."
                )
            if not full:
                raise GyrostatError(
                    f"{kind} divides the batches of {name} over {shares} processes, but some of them are short and would be "
                    f"filled with rows of other environments: use {fill}; or {INSTEAD}."
                )
            if split and batch_size % shares:
                raise GyrostatError(
                    f"{kind} splits each batch of {name} over {shares} processes, but batch_size={batch_size} is no multiple "
                    f"of {shares}: choose another batch_size."
                )
            if start % step:
                raise GyrostatError(
                    f"start={start} is no multiple of the {step} batches of a step that {kind} divides over processes: count "
                    "the batches of all processes."
                )
        module = frame.f_globals.get("__name__", "")
        loading = loading and (shares > 1 or module.startswith(LOADERS)) and frame.f_code.co_name != "evaluation_loop"
        accumulated = step * _accumulated(caller) if loading else 1
        if hold % accumulated:
            raise GyrostatError(
                f"{kind} puts {accumulated} batches of {name} into a step, but hold={hold}, so steps would mix environments: "
                f"make it with hold={accumulated} (to evaluate, iterate under torch.no_grad())."
            )
        frame = frame.f_back


def _shares(caller: Any) -> int:
    """Over how many processes a caller divides what it iterates over; 1 for anything that is not such a wrapper."""
    kind = type(caller)
    if kind.__name__ == "DataLoaderDispatcher" and kind.__module__.startswith("accelerate"):
        return int(caller.state.num_processes)
    # IterableDatasetShard, BatchSamplerShard (accelerate), DistributedSamplerWrapper (Lightning, Catalyst)
    wraps = isinstance(caller, Sampler | IterableDataset) and not kind.__module__.startswith("gyrostat.")
    if not wraps:
        return 1
    found = getattr(caller, "num_processes", None) or getattr(caller, "num_replicas", None)
    return found if isinstance(found, int) else 1


def _accumulated(caller: Any) -> int:
    """How many batches a step takes, from accelerate's loaders, Hugging Face's Trainer and Lightning's loops; else 1."""
    told = (
        ("gradient_state", "num_steps"),
        ("args", "gradient_accumulation_steps"),
        ("trainer", "accumulate_grad_batches"),
    )
    return max(getattr(getattr(caller, owner, None), name, 1) for owner, name in told)


def prepare_loader(accelerator: Any, loader: DataLoader) -> Any:
    """A loader for accelerate whose batches are not divided over processes a second time.

    Use it in place of ``accelerator.prepare`` for loaders of :class:`EnvironmentBatchSampler` and
    :class:`EnvironmentBatchStream`; model and optimiser still go through ``accelerator.prepare``. In a subclass of Hugging
    Face's ``Trainer``, return ``prepare_loader(self.accelerator, loader)`` from ``get_train_dataloader``. Batches are moved to
    the accelerator's device, and ``set_epoch``, ``skip_first_batches`` and ``save_state`` work.

    Parameters
    ----------
    accelerator
        An ``accelerate.Accelerator``.
    loader
        A ``DataLoader`` with one of our samplers or streams.

    Notes
    -----
    With accelerate installed::

        accelerator = Accelerator()
        model, optimizer = accelerator.prepare(model, optimizer)
        loader = prepare_loader(accelerator, DataLoader(data, batch_sampler=sampler))
    """
    errors.instance("loader", loader, DataLoader, "a DataLoader that has not been prepared")
    if loader.batch_sampler is None and not isinstance(loader.dataset, IterableDataset):
        raise GyrostatError(
            "loader has batch_size=None and sampler=..., which accelerate cannot prepare: use batch_sampler=... instead."
        )
    from accelerate.data_loader import prepare_data_loader

    prepared = prepare_data_loader(
        loader,
        device=accelerator.device,
        num_processes=1,
        process_index=0,
        put_on_device=True,
        dispatch_batches=False,
        use_stateful_dataloader=accelerator.use_stateful_dataloader,
    )
    prepared._is_accelerate_prepared = True  # accelerate's own mark: prepare then only registers it
    return accelerator.prepare(prepared)
