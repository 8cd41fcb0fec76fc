"""Environment reports during training with Lightning and with the Trainer of Hugging Face."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from gyrostat import errors
from gyrostat.torch.environment_report import EnvironmentReport, Loss, environment_report
from torch import nn


class _Reports:
    """Makes a report after each ``every``-th step of the optimiser and keeps it; one that fails is a warning."""

    def __init__(
        self, loss: Loss, batches: Mapping[Any, Any], *, every: int, say: Callable[[str], Any], amplify: float
    ):
        self.loss, self.batches, self.amplify, self.say = loss, batches, amplify, say
        self.every = errors.integer("every", every, least=1)
        self.reports: dict[int, EnvironmentReport] = {}

    def look(self, model: nn.Module, step: int) -> None:
        if step % self.every or step in self.reports or step == 0:
            return
        try:
            self.reports[step] = environment_report(model, self.loss, self.batches, amplify=self.amplify)
            self.say(f"Step {step}:\n{self.reports[step].text}")
        except Exception as error:  # a training of days must not end for a report
            reason = (str(error).splitlines() or ["no message"])[0].rstrip(".")
            warnings.warn(
                f"the environment report of step {step} failed and is left out ({type(error).__name__}: {reason}); training "
                "goes on.",
                stacklevel=2,
            )


def lightning_report_callback(
    loss: Loss,
    batches: Mapping[Any, Any],
    *,
    every: int = 500,
    say: Callable[[str], Any] = print,
    amplify: float = 0.0,
) -> Any:
    """A callback for ``lightning.Trainer(callbacks=[...])`` that makes an :func:`environment_report` as training goes on.

    Parameters
    ----------
    loss, batches, amplify
        Those of :func:`environment_report`; the model is the ``LightningModule``.
    every
        The number of optimiser steps between two reports. Only the first process makes them. A report that fails is left out
        with a warning; training goes on.
    say
        A function that is called with the text of each report. The reports themselves are in ``.reports``, by step.
    """
    from lightning.pytorch import Callback, LightningModule, Trainer

    class LightningReports(Callback):
        def __init__(self) -> None:
            self._made = _Reports(loss, batches, every=every, say=say, amplify=amplify)
            self.reports = self._made.reports

        def on_train_batch_end(
            self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            if trainer.is_global_zero:
                self._made.look(pl_module, trainer.global_step)

    return LightningReports()


def trainer_report_callback(
    loss: Loss,
    batches: Mapping[Any, Any],
    *,
    every: int = 500,
    say: Callable[[str], Any] = print,
    amplify: float = 0.0,
) -> Any:
    """A callback for ``transformers.Trainer(callbacks=[...])`` that makes an :func:`environment_report` as training goes on.

    Parameters
    ----------
    loss, batches, amplify
        Those of :func:`environment_report`, for instance ``lambda model, batch: model(**batch).loss``.
    every
        The number of optimiser steps between two reports. Only the first process makes them. A report that fails is left out
        with a warning; training goes on.
    say
        A function that is called with the text of each report. The reports themselves are in ``.reports``, by step.
    """
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

    class TrainerReports(TrainerCallback):
        def __init__(self) -> None:
            self._made = _Reports(loss, batches, every=every, say=say, amplify=amplify)
            self.reports = self._made.reports

        def on_step_end(
            self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
        ) -> None:
            if state.is_world_process_zero:
                self._made.look(given["model"], state.global_step)

    return TrainerReports()
