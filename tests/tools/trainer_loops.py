"""The loops of ``one_environment_loops.py`` in trainers that are heavy to install."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

import torch
from gyrostat.torch import EnvironmentBatchSampler, audit_environments, prepare_loader
from one_environment_loops import (
    BATCH,
    EPOCHS,
    EVERY,
    LABELS,
    SEED,
    Run,
    batch_stream,
    data,
    join_group,
    loss_of,
    network,
    sampler_of,
    train,
)


class Noting:
    """Notes the rows of each optimiser step, whoever takes it."""

    def __init__(self, run: Run, step: int = 0):
        self.run, self.step, self.rows = run, step, []

    def batch(self, audit: Any, numbers: torch.Tensor) -> None:
        self.rows.append(numbers.tolist())
        audit.batch(LABELS[self.rows[-1]], rows=self.rows[-1])

    def stepped(self) -> None:
        rows, self.rows, step = self.rows, [], self.step
        self.step += 1
        self.run.note(step, rows)


# --- torchdata -------------------------------------------------------------------------------------------------------------


def stateful(run: Run) -> None:
    """torchdata's StatefulDataLoader, whose own state is all that is saved of the data."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = StatefulDataLoader(data(), batch_sampler=sampler_of(run), **run.options())
    noting, epoch = Noting(run), 0
    if run.checkpoint.exists():
        saved = torch.load(run.checkpoint, weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        noting.step, epoch = saved["step"], saved["epoch"]
    with audit_environments(optimizer) as audit:
        for now in range(epoch, EPOCHS):
            for X, y, numbers in loader:
                noting.batch(audit, numbers)
                loss_of(model, X, y).backward()
                optimizer.step()
                optimizer.zero_grad()
                noting.stepped()
                if noting.step % EVERY == 0:
                    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                    run.save({**state, "loader": loader.state_dict(), "step": noting.step, "epoch": now})
        run.finish(model, audit.report())


# --- accelerate ------------------------------------------------------------------------------------------------------------


def launcher_environment(run: Run) -> None:
    """What torchrun sets; the process group is there before the trainers look for it, so they open no port."""
    os.environ.update({"ACCELERATE_USE_CPU": "true", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"})
    if run.world > 1:
        ranks = dict.fromkeys(("RANK", "LOCAL_RANK"), str(run.rank))
        worlds = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(run.world))
        os.environ.update({**ranks, **worlds, "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "test"})


def accelerated(run: Run) -> None:
    """accelerate: set_epoch by the loader, state by the sampler; the fault is ``accelerator.prepare`` for the loader."""
    from accelerate import Accelerator

    launcher_environment(run)
    sampler = sampler_of(run)
    join_group(run)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=run.accumulate)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader: Any = DataLoader(data(), batch_sampler=sampler, **run.options())
    loader = accelerator.prepare(loader) if run.fault == "prepare" else prepare_loader(accelerator, loader)
    noting, epoch, batch = Noting(run), 0, 0
    if run.checkpoint.exists():
        saved = torch.load(run.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        epoch, batch, noting.step = saved["epoch"], saved["batch"], saved["step"]
        loader.set_epoch(epoch)
        sampler.set_epoch(epoch, start=batch)
    wrapped, prepared = accelerator.prepare(model, optimizer)
    with audit_environments(optimizer) as audit:
        for now in range(epoch, EPOCHS):
            for X, y, numbers in loader:
                batch += 1
                noting.batch(audit, numbers)
                accelerator.backward(loss_of(wrapped, X, y))
                prepared.step()
                prepared.zero_grad()
                noting.stepped()
                if noting.step % EVERY == 0:
                    plain = accelerator.unwrap_model(wrapped)
                    state = {"model": plain.state_dict(), "optimizer": optimizer.state_dict()}
                    run.save({**state, "epoch": now, "batch": batch, "step": noting.step})
            batch = 0
        run.finish(accelerator.unwrap_model(wrapped), audit.report())


def left_to_accelerate(run: Run) -> None:
    """accelerate divides the batches of a sampler that counts one process and keeps an environment for both.

    It may split each batch, or hand out the batches of the first process. The fault is a rule that makes short batches.
    """
    from accelerate import Accelerator, DataLoaderConfiguration

    launcher_environment(run)
    join_group(run)
    short = {"drop_last": {"drop_last": False}, "small": {"small": "short"}}
    config = DataLoaderConfiguration(split_batches=run.fault == "split", dispatch_batches=run.fault == "dispatch")
    accelerator = Accelerator(cpu=True, dataloader_config=config, gradient_accumulation_steps=run.accumulate)
    size = 60 if run.fault == "small" else BATCH
    hold = run.world * run.accumulate
    sampler = EnvironmentBatchSampler(
        LABELS, size, order="shuffled", rank=0, num_replicas=1, hold=hold, **short.get(run.fault, {})
    )
    train(run, sampler, accelerator.prepare(DataLoader(data(), batch_sampler=sampler)))


def accelerated_stream(run: Run) -> None:
    """A stream under accelerate; the fault is ``accelerator.prepare`` for the loader."""
    from accelerate import Accelerator

    launcher_environment(run)
    join_group(run)
    accelerator, stream = Accelerator(cpu=True), batch_stream(BATCH)
    loader: Any = DataLoader(stream, batch_size=None)
    loader = accelerator.prepare(loader) if run.fault == "prepare" else prepare_loader(accelerator, loader)
    train(run, stream, loader)


# --- Lightning -------------------------------------------------------------------------------------------------------------


def lightning(run: Run) -> None:
    """Lightning with a StatefulDataLoader and its own checkpoints; by default the sampler is made in ``train_dataloader``.

    The fault "outside" makes it before, which Lightning cannot take over to several processes.
    """
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    launcher_environment(run)
    join_group(run)
    saved = run.folder / "lightning" / "last.ckpt"
    module, trainer = lightning_module(run), lightning_trainer(run, saved)
    with audit_environments() as module.audit:
        trainer.fit(module, ckpt_path=str(saved) if saved.exists() else None, weights_only=False)
        run.finish(module.net, module.audit.report())


def lightning_module(run: Run) -> Any:
    import lightning as L
    from torchdata.stateful_dataloader import StatefulDataLoader

    def loader() -> StatefulDataLoader:
        return StatefulDataLoader(data(), batch_sampler=sampler_of(run), **run.options())

    outside = loader() if run.fault == "outside" else None

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.noting, self.audit = network(), Noting(run), None

        def train_dataloader(self) -> Any:
            return outside or loader()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

        def training_step(self, batch: Any, number: int) -> torch.Tensor:
            X, y, numbers = batch
            self.noting.batch(self.audit, numbers)
            return loss_of(self.net, X, y)

        def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
            checkpoint["noted"] = self.noting.step

        def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
            self.noting.step = checkpoint["noted"]

    return Module()


def lightning_trainer(run: Run, saved: Path) -> Any:
    import lightning as L
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.strategies import DDPStrategy

    class Steps(L.Callback):  # before the callback that saves
        def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
            if trainer.global_step > module.noting.step:
                module.noting.stepped()

    keep = ModelCheckpoint(
        saved.parent, filename="last", every_n_train_steps=EVERY, save_top_k=1, enable_version_counter=False
    )
    return L.Trainer(
        accelerator="cpu",
        devices=run.world,
        strategy=DDPStrategy(process_group_backend="gloo") if run.world > 1 else "auto",
        max_epochs=EPOCHS,
        accumulate_grad_batches=run.accumulate,
        callbacks=[Steps(), keep],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(run.folder),
    )


# --- Hugging Face ----------------------------------------------------------------------------------------------------------


def hugging_face(run: Run) -> None:
    """Hugging Face's Trainer with its own checkpoints; the fault is to leave the loader to ``accelerator.prepare``."""
    launcher_environment(run)
    join_group(run)
    with audit_environments() as audit:
        trainer = hugging_face_trainer(run, audit)
        last = (
            trainer_utils().get_last_checkpoint(trainer.args.output_dir)
            if Path(trainer.args.output_dir).exists()
            else None
        )
        trainer.train(resume_from_checkpoint=last)
        run.finish(trainer.model.net, audit.report())


def trainer_utils() -> Any:
    from transformers import trainer_utils

    return trainer_utils


def hugging_face_trainer(run: Run, audit: Any) -> Any:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    sampler, noting = sampler_of(run), Noting(run)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, x: torch.Tensor, labels: torch.Tensor, rows: torch.Tensor) -> dict[str, torch.Tensor]:
            noting.batch(audit, rows)
            return {"loss": loss_of(self.net, x, labels)}

    def collate(samples: list) -> dict[str, torch.Tensor]:
        return dict(zip(("x", "labels", "rows"), map(torch.stack, zip(*samples, strict=True)), strict=True))

    class OneEnvironmentTrainer(Trainer):
        def get_train_dataloader(self) -> Any:
            loader = DataLoader(self.train_dataset, batch_sampler=sampler, collate_fn=collate, **run.options())
            if run.fault == "prepare":
                return self.accelerator.prepare(loader)
            return prepare_loader(self.accelerator, loader)

    class Steps(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            noting.step = state.global_step - 1
            noting.stepped()

    arguments = TrainingArguments(
        output_dir=str(run.folder / "hugging_face"),
        num_train_epochs=EPOCHS,
        save_strategy="steps",
        save_steps=EVERY,
        gradient_accumulation_steps=run.accumulate,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        learning_rate=0.01,
        ddp_backend="gloo" if run.world > 1 else None,
        remove_unused_columns=False,
    )
    return OneEnvironmentTrainer(model=Model(), args=arguments, train_dataset=data(), callbacks=[Steps()])


# --- Grain -----------------------------------------------------------------------------------------------------------------


def grain(run: Run) -> None:
    """Grain feeds the loop; the state of its iterator is all that is saved of the data."""
    import grain as library

    from gyrostat.sources.grain_batches import GrainEnvironmentBatches

    whole = data()
    records = [tuple(part.numpy() for part in whole[i]) for i in range(len(whole))]
    batches = GrainEnvironmentBatches(
        records, LABELS, BATCH, order="shuffled", seed=SEED, num_epochs=EPOCHS, rank=run.rank, num_replicas=run.world
    )
    dataset = library.MapDataset.source(batches).to_iter_dataset()
    if run.workers:
        from absl import flags

        flags.FLAGS.mark_as_parsed()  # Grain's workers read options of the command line
        dataset = dataset.mp_prefetch(library.MultiprocessingOptions(num_workers=run.workers))
    iterator, model = iter(dataset), network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    noting = Noting(run)
    if run.checkpoint.exists():
        saved = torch.load(run.checkpoint, weights_only=False)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        iterator.set_state(saved["iterator"])
        noting.step = saved["step"]
    with audit_environments(optimizer) as audit:
        for X, y, numbers in iterator:
            noting.batch(audit, numbers)
            loss_of(model, torch.as_tensor(np.asarray(X)), torch.as_tensor(np.asarray(y))).backward()
            optimizer.step()
            optimizer.zero_grad()
            noting.stepped()
            if noting.step % EVERY == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                run.save({**state, "iterator": iterator.get_state(), "step": noting.step})
        run.finish(model, audit.report())
