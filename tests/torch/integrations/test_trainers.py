"""One environment per step inside other people's trainers, in real processes: ``make test-integrations``."""

from __future__ import annotations

import itertools
import os

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

import one_environment_loops as loops  # noqa: E402
import trainer_loops as trainers  # noqa: E402
from gyrostat.errors import GyrostatError  # noqa: E402
from gyrostat.torch import EnvironmentBatchSampler, prepare_loader  # noqa: E402
from integration_table import HEAVY, TRAINERS  # noqa: E402
from one_environment_loops import Evidence, launch  # noqa: E402

if "GYROSTAT_INTEGRATIONS" in os.environ:
    loops.PRELOADED += TRAINERS

pytestmark = pytest.mark.skipif("GYROSTAT_INTEGRATIONS" not in os.environ, reason="make test-integrations runs them")


@pytest.mark.parametrize("row", HEAVY, ids=lambda row: row.name)
def test_no_step_mixes_and_a_killed_run_goes_on_with_the_same_batches(row, tmp_path):
    pytest.importorskip(row.needs, reason="make test-integrations installs it")
    found = row.measure(tmp_path)
    assert found.mixed == 0 and found.exact and found.rows == found.expected_rows


@pytest.mark.parametrize(
    ("loop", "fault", "needs", "message"),
    [
        (trainers.accelerated, "prepare", "accelerate", r"BatchSamplerShard divides the batches .*prepare_loader"),
        (
            trainers.accelerated_stream,
            "prepare",
            "accelerate",
            r"divides the batches of EnvironmentBatchStream .*prepare_loader",
        ),
        (trainers.hugging_face, "prepare", "transformers", r"BatchSamplerShard divides the batches .*prepare_loader"),
        (trainers.lightning, "outside", "lightning", r"make EnvironmentBatchSampler inside train_dataloader\(\)"),
    ],
    ids=["accelerate", "accelerate with a stream", "Hugging Face", "Lightning"],
)
def test_batches_divided_twice_are_refused_with_the_fix(tmp_path, loop, fault, needs, message):
    pytest.importorskip(needs, reason="make test-integrations installs it")
    with pytest.raises(RuntimeError, match=message):
        launch(loop, tmp_path, world=2, fault=fault)


@pytest.mark.parametrize(
    ("division", "accumulate"),
    [("", 1), ("split", 1), ("dispatch", 1), ("", 2)],
    ids=lambda value: str(value) or "batches",
)
def test_accelerate_may_divide_the_batches_of_a_sampler_that_holds_environments(tmp_path, division, accumulate):
    pytest.importorskip("accelerate", reason="make test-integrations installs it")
    launch(trainers.left_to_accelerate, tmp_path, world=2, fault=division, accumulate=accumulate)
    found = Evidence(tmp_path, 2)
    assert found.audit()["mixed"] == found.mixed_steps() == 0 and found.audit()["steps"] > 10
    assert accumulate > 1 or found.audit()["repeated"] == 0  # two passes over an environment may meet in a long step


@pytest.mark.parametrize("fault", ["drop_last", "small"])
def test_short_batches_are_refused_since_accelerate_fills_the_last_ones_with_rows_of_the_first(tmp_path, fault):
    pytest.importorskip("accelerate", reason="make test-integrations installs it")
    with pytest.raises(RuntimeError, match=r"BatchSamplerShard divides the batches .* some of them are short"):
        launch(trainers.left_to_accelerate, tmp_path, world=2, fault=fault)


@pytest.mark.parametrize(
    ("loop", "needs"),
    [(trainers.accelerated, "accelerate"), (trainers.hugging_face, "transformers"), (trainers.lightning, "lightning")],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_accumulation_without_hold_is_refused_with_the_fix(tmp_path, loop, needs, workers):
    pytest.importorskip(needs, reason="make test-integrations installs it")
    with pytest.raises(RuntimeError, match=r"puts 4 batches of EnvironmentBatchSampler into a step, .* hold=4"):
        launch(loop, tmp_path, accumulate=4, fault="unheld", workers=workers)


def test_hugging_face_may_evaluate_on_batches_that_are_not_held(tmp_path):
    transformers = pytest.importorskip("transformers", reason="make test-integrations installs it")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = loops.network()

        def forward(self, x, labels):
            return {"loss": loops.loss_of(self.net, x, labels)}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self, hold=2):
            sampler = EnvironmentBatchSampler(loops.LABELS, 8, hold=hold)
            loader = DataLoader(loops.data(), batch_sampler=sampler, collate_fn=self.data_collator)
            return prepare_loader(self.accelerator, loader)

        def get_eval_dataloader(self, eval_dataset=None):
            return self.get_train_dataloader(hold=1)

    options = {"gradient_accumulation_steps": 2, "max_steps": 2, "use_cpu": True, "report_to": [], "disable_tqdm": True}
    arguments = transformers.TrainingArguments(str(tmp_path), eval_strategy="steps", eval_steps=1, **options)

    def collate(samples):
        return {"x": torch.stack([x for x, _, _ in samples]), "labels": torch.stack([y for _, y, _ in samples])}

    trainer = Trainer(Model(), arguments, collate, loops.data(), loops.data())
    trainer.train()
    assert sum("eval_loss" in entry for entry in trainer.state.log_history) == 2


@pytest.mark.parametrize("kind", ["Bert", "GPT2", "ViT"])
def test_a_default_network_of_transformers_is_reported_on_while_its_trainer_trains_it(tmp_path, kind):
    transformers = pytest.importorskip("transformers", reason="make test-integrations installs it")
    from gyrostat.torch import trainer_report_callback

    torch.manual_seed(0)
    sizes = {
        "num_hidden_layers": 1,
        "hidden_size": 8,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "num_labels": 2,
    }
    if kind == "Bert":
        model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=30, **sizes))
    elif kind == "GPT2":
        config = transformers.GPT2Config(vocab_size=30, n_layer=1, n_head=2, n_embd=8, n_positions=8)
        model = transformers.GPT2LMHeadModel(config)
    else:
        model = transformers.ViTForImageClassification(transformers.ViTConfig(image_size=4, patch_size=2, **sizes))

    def batch(count):
        words = torch.randint(30, (count, 6))
        labels = words if kind == "GPT2" else torch.randint(2, (count,))
        inputs = {"pixel_values": torch.randn(count, 3, 4, 4)} if kind == "ViT" else {"input_ids": words}
        return transformers.BatchEncoding({**inputs, "labels": labels})

    said, whole = [], batch(16)
    batches = {"Leeds": batch(16), "York": batch(16)}
    callback = trainer_report_callback(lambda m, b: m(**b).loss, batches, every=2, say=said.append)
    rows = [{name: values[i] for name, values in whole.items()} for i in range(16)]
    options = {"max_steps": 4, "use_cpu": True, "report_to": [], "disable_tqdm": True, "save_strategy": "no"}
    arguments = transformers.TrainingArguments(str(tmp_path), per_device_train_batch_size=4, **options)
    transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[callback]).train()
    assert list(callback.reports) == [2, 4] and "Leeds" in said[1]
    assert callback.reports[4].direction_p_value > 0  # a number: rows of the batches were permuted


@pytest.mark.parametrize("kill_at", [4, 52], ids=["first epoch", "three batches before the end"])
def test_lightning_with_workers_resumes_wherever_it_was_killed(tmp_path, kill_at):
    pytest.importorskip("lightning", reason="make test-integrations installs it")
    assert loops.killed_and_resumed(trainers.lightning, tmp_path, kill_at=kill_at, workers=2).exact()


def test_lightning_s_wrapper_of_samplers_is_refused():
    distributed = pytest.importorskip(
        "lightning.fabric.utilities.distributed", reason="make test-integrations installs it"
    )
    sampler = EnvironmentBatchSampler([0] * 8, 2, rank=0, num_replicas=2)
    with pytest.raises(GyrostatError, match="DistributedSamplerWrapper divides the batches"):
        list(distributed.DistributedSamplerWrapper(sampler, num_replicas=2, rank=0))
    held = EnvironmentBatchSampler([0] * 8 + [1] * 8, 2, rank=0, num_replicas=1, hold=2)
    with pytest.raises(GyrostatError, match="DistributedSamplerWrapper divides the batches"):
        list(distributed.DistributedSamplerWrapper(held, num_replicas=2, rank=0))  # it shuffles the batches
    assert list(distributed.DistributedSamplerWrapper(held, num_replicas=2, rank=0, shuffle=False))


def rows_of(batches) -> list[list[int]]:
    return [numbers.tolist() for _, _, numbers in batches]


def test_a_stateful_loader_resumes_a_stream():
    torchdata = pytest.importorskip("torchdata.stateful_dataloader", reason="make test-integrations installs it")
    loader = torchdata.StatefulDataLoader(loops.batch_stream(8), batch_size=None)
    whole = [rows_of(loader) for _ in range(3)]
    first = torchdata.StatefulDataLoader(loops.batch_stream(8), batch_size=None)
    list(first)
    assert rows_of(itertools.islice(first, 7)) == whole[1][:7]
    second = torchdata.StatefulDataLoader(loops.batch_stream(8), batch_size=None)
    second.load_state_dict(first.state_dict())
    assert rows_of(second) == whole[1][7:] and rows_of(second) == whole[2]


@pytest.mark.parametrize("stateful", [False, True])
def test_accelerate_s_own_ways_to_resume(stateful):
    accelerate = pytest.importorskip("accelerate", reason="make test-integrations installs it")
    options = accelerate.utils.DataLoaderConfiguration(use_stateful_dataloader=stateful)
    accelerator = accelerate.Accelerator(cpu=True, dataloader_config=options)

    def loader():
        sampler = EnvironmentBatchSampler(loops.LABELS, 8, order="shuffled")
        return prepare_loader(accelerator, DataLoader(loops.data(), batch_sampler=sampler))

    first = loader()
    whole = [rows_of(first) for _ in range(3)]
    resumed = loader()
    resumed.set_epoch(1)
    if not stateful:
        assert rows_of(accelerate.skip_first_batches(resumed, 7)) == whole[1][7:]
        return
    first.set_epoch(1)
    assert rows_of(itertools.islice(first, 7)) == whole[1][:7]
    state = first.state_dict()
    resumed.load_state_dict(state)
    assert rows_of(resumed) == whole[1][7:] and rows_of(resumed) == whole[2]
    forgotten = loader()
    forgotten.load_state_dict(state)
    assert rows_of(forgotten) == whole[1][7:]
    with pytest.raises(GyrostatError, match=r"set_epoch\(1\) contradicts the loaded state"):
        rows_of(forgotten)  # accelerate counts from zero and would repeat the epoch
