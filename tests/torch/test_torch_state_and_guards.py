"""State, processes, weights, subsets and bad input of one-environment batches; the rules that trainers rely on."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

from torch.utils.data import (  # noqa: E402
    BatchSampler,
    ConcatDataset,
    DataLoader,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)

from gyrostat.errors import GyrostatError  # noqa: E402
from gyrostat.sources.grain_batches import GrainEnvironmentBatches  # noqa: E402
from gyrostat.torch import (  # noqa: E402
    EnvironmentBatchSampler,
    EnvironmentBatchStream,
    EnvironmentCollate,
    LabelledDataset,
    audit_environments,
    environment_of,
    prepare_loader,
)

ORDERS = ("iid", "cyclic", "shuffled", "proportional")
LABELS = np.random.default_rng(0).permutation(np.repeat(["a", "b", "c"], [12, 31, 8]))


def environments(batches, labels=LABELS) -> list:
    """The environment of every batch, after checking that it has one only."""
    found = [set(np.asarray(labels)[list(batch)]) for batch in batches]
    assert all(len(one) == 1 for one in found)
    return [one.pop() for one in found]


# --- state -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("hold", [1, 3])
def test_a_state_continues_with_the_same_batches(order, hold):
    sampler = EnvironmentBatchSampler(LABELS, 4, order=order, hold=hold, seed=9)
    assert isinstance(sampler, BatchSampler)
    whole = [list(sampler) for _ in range(3)]
    sampler.set_epoch(0)
    list(sampler)
    going = iter(sampler)
    first = [next(going) for _ in range(5)]
    assert first == whole[1][:5]
    state = json.loads(json.dumps(sampler.state_dict()))  # plain numbers and text
    assert (state["epoch"], state["start"], state["seed"]) == (1, 5, 9) and going.state_dict() == state
    resumed = EnvironmentBatchSampler(LABELS, 4, order=order, hold=hold)  # the seed comes with the state
    resumed.load_state_dict(state)
    assert list(resumed) == whole[1][5:] and list(resumed) == whole[2]
    other = iter(EnvironmentBatchSampler(LABELS, 4, order=order, hold=hold))
    other.load_state_dict(state)
    assert list(other) == whole[1][5:]


def test_a_state_counts_trained_batches_and_ends_with_the_epoch():
    sampler = EnvironmentBatchSampler(LABELS, 4)
    length, going = len(sampler), iter(sampler)
    assert sampler.state_dict()["start"] == 0
    for _ in range(8):
        next(going)
    trained = sampler.state_dict(start=5)  # workers have asked for eight
    assert (trained["epoch"], trained["start"]) == (0, 5)
    list(going)
    assert sampler.state_dict(start=length - 1)["epoch"] == 0  # all were asked for, not all trained on
    ended = sampler.state_dict(start=length)
    assert (ended["epoch"], ended["start"]) == (1, 0) and sampler.state_dict() == ended


def test_trainers_that_call_set_epoch_keep_the_start():
    sampler = EnvironmentBatchSampler(LABELS, 4)
    whole = [list(sampler) for _ in range(3)]
    sampler.set_epoch(1, start=10)
    sampler.set_epoch(1)  # accelerate, before each iteration
    assert list(sampler) == whole[1][10:]
    sampler.set_epoch(1)
    assert list(sampler) == whole[1]
    sampler.load_state_dict(sampler._state(1, 4))
    with pytest.raises(GyrostatError, match=r"set_epoch\(0\) contradicts the loaded state, .* batch 4 of epoch 1"):
        sampler.set_epoch(0)
    sampler.set_epoch(1)
    assert list(sampler) == whole[1][4:]
    with pytest.raises(GyrostatError, match=r"set_epoch\(0\) contradicts .* batch 0 of epoch 2"):
        sampler.set_epoch(0)
    sampler.set_epoch(1)
    with pytest.raises(GyrostatError, match=r"set_epoch\(1\) contradicts .* loader.set_epoch\(2\)"):
        list(sampler)  # it would silently repeat the epoch
    sampler.set_epoch(0, start=0)
    assert list(sampler) == whole[0]
    sampler.set_epoch(0, start=12)
    assert list(sampler) == [] and sampler.epoch == 1
    with pytest.raises(GyrostatError, match=r"start must be .* at most 12, the batches of an epoch; got 13"):
        sampler.set_epoch(0, start=13)


@pytest.mark.parametrize("fetched", [1, 6, 8])
def test_an_epoch_may_be_named_after_workers_have_fetched_of_it(fetched):
    """Lightning makes its loader's iterator, and workers fetch, before it calls set_epoch; 8 are all that remain."""
    sampler = EnvironmentBatchSampler(LABELS, 4)
    whole = [list(sampler) for _ in range(4)]
    sampler.load_state_dict(EnvironmentBatchSampler(LABELS, 4)._state(1, 4))
    going = iter(sampler)
    rows = [next(going) for _ in range(fetched)]
    sampler.set_epoch(1)
    rows += going
    assert rows == whole[1][4:]
    for epoch in (2, 3):
        sampler.set_epoch(epoch)
        assert list(sampler) == whole[epoch]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 5}, "batch_size is 5 there and 4 here"),
        ({"order": "cyclic"}, "order is 'cyclic' there and 'iid' here"),
        ({"environments": LABELS[::-1]}, "environments is '.*' there and '.*' here"),
        ({"environments": LABELS[1:]}, "rows is 50 there and 51 here"),
        ({"rank": 0, "num_replicas": 2}, "num_replicas is 2 there and 1 here"),
        ({"hold": 2}, "hold is 2 there and 1 here"),
    ],
)
def test_the_state_of_another_sampler_is_refused(options, message):
    other = EnvironmentBatchSampler(**{"environments": LABELS, "batch_size": 4, **options}).state_dict()
    with pytest.raises(GyrostatError, match=f"state_dict is of another sampler: {message}"):
        EnvironmentBatchSampler(LABELS, 4).load_state_dict(other)


def test_what_is_no_state_is_refused():
    with pytest.raises(
        GyrostatError, match=r"state_dict must come from state_dict\(\) of an EnvironmentBatchSampler; got {}"
    ):
        EnvironmentBatchSampler(LABELS, 4).load_state_dict({})


# --- processes -------------------------------------------------------------------------------------------------------------


def test_a_launcher_without_a_process_group_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(GyrostatError, match=r"WORLD_SIZE is 2 but .* has no process group"):
        iter(EnvironmentBatchSampler(LABELS, 4))
    assert list(EnvironmentBatchSampler(LABELS, 4, rank=0, num_replicas=2))


class Divides(BatchSampler):
    """Hands every second batch to this process, as accelerate does."""

    def __init__(self, batch_sampler, num_processes=2, split_batches=False, shuffle=False):
        self.batch_sampler, self.num_processes, self.split_batches = batch_sampler, num_processes, split_batches
        self.shuffle = shuffle

    def __len__(self):
        return len(self.batch_sampler) // self.num_processes

    def __iter__(self):
        for number, batch in enumerate(self.batch_sampler):
            if number % self.num_processes == 0:
                yield batch


def test_division_by_somebody_else_is_refused_unless_it_keeps_environments_together():
    for sampler in (
        EnvironmentBatchSampler(LABELS, 4),
        EnvironmentBatchSampler(LABELS, 4, rank=0, num_replicas=1, hold=3),
    ):
        with pytest.raises(
            GyrostatError, match="Divides divides the batches of EnvironmentBatchSampler over 2 processes"
        ):
            next(iter(DataLoader(TensorDataset(torch.arange(51)), batch_sampler=Divides(sampler))))
    left_to_it = EnvironmentBatchSampler(LABELS, 4, rank=0, num_replicas=1, hold=2)
    assert len(list(Divides(left_to_it))) == len(left_to_it) / 2
    assert list(Divides(EnvironmentBatchSampler(LABELS, 4), num_processes=1))


@pytest.mark.parametrize(
    ("options", "division", "message"),
    [
        ({"batch_size": 4, "drop_last": False}, {}, "some of them are short .* use drop_last=True and small='error'"),
        ({"batch_size": 10, "small": "short"}, {}, "some of them are short"),
        ({"batch_size": 10, "small": "short"}, {"split_batches": True}, "some of them are short"),
        ({"batch_size": 7}, {"split_batches": True}, "batch_size=7 is no multiple of 2"),
        ({"batch_size": 4}, {"shuffle": True}, r"over 2 processes, .*\(use_distributed_sampler=False\)\."),
    ],
)
def test_a_trainer_may_divide_full_batches_only(options, division, message):
    sampler = EnvironmentBatchSampler(LABELS, **options, rank=0, num_replicas=1, hold=2)
    with pytest.raises(GyrostatError, match=message):
        list(Divides(sampler, **division))


@pytest.mark.parametrize("options", [{"batch_size": 1, "drop_last": False}, {"batch_size": 10, "small": "wrap"}])
def test_a_trainer_may_divide_batches_that_happen_to_be_full(options):
    assert list(Divides(EnvironmentBatchSampler(LABELS, **options, rank=0, num_replicas=1, hold=2)))


def test_division_begins_with_whole_steps():
    sampler = EnvironmentBatchSampler(LABELS, 4, rank=0, num_replicas=1, hold=2)
    sampler.set_epoch(0, start=3)
    with pytest.raises(GyrostatError, match="start=3 is no multiple of the 2 batches of a step"):
        list(Divides(sampler))
    sampler.set_epoch(0, start=4)
    assert list(Divides(sampler))


TRAINERS = {
    "accelerate.data_loader": "gradient_state.num_steps",
    "transformers.trainer": "args.gradient_accumulation_steps",
    "lightning.pytorch.loops.fit_loop": "trainer.accumulate_grad_batches",
}
"""The modules whose loops ask for batches, and where the objects in them say how many a step takes."""


def loop_of(module, steps, loader, name="run"):
    """A trainer's loop over a loader, as the sampler meets it: a method in a module of the trainer."""
    owner, attribute = TRAINERS[module].split(".")
    names = {"__name__": module}
    exec(f"class Loop:\n    def {name}(self): return list(self.loader)", names)
    loop = names["Loop"]()
    loop.loader = loader
    setattr(loop, owner, SimpleNamespace(**{attribute: steps}))
    return getattr(loop, name)


@pytest.mark.parametrize("module", TRAINERS)
@pytest.mark.parametrize("hold", [1, 2, 6])
def test_accumulation_in_a_trainer_needs_hold(module, hold):
    sampler = EnvironmentBatchSampler(LABELS, 4, hold=hold)
    loader = DataLoader(TensorDataset(torch.arange(51)), batch_sampler=sampler)
    with pytest.raises(GyrostatError, match=rf"Loop puts 4 batches of .* hold={hold}, .* make it with hold=4"):
        loop_of(module, 4, loader)()
    with torch.no_grad():
        loop_of(module, 4, loader)()  # nothing is trained
    for steps in (1, hold):
        loop_of(module, steps, loader)()


def test_a_trainer_s_evaluation_and_a_loop_of_one_s_own_accumulate_nothing():
    loader = DataLoader(TensorDataset(torch.arange(51)), batch_sampler=EnvironmentBatchSampler(LABELS, 4))
    loop_of("transformers.trainer", 4, loader, "evaluation_loop")()
    callback = type("Mine", (), {"__iter__": lambda self: iter(list(loader))})()
    assert len(loop_of("transformers.trainer", 4, callback)()) == len(loader)


def test_batches_that_a_trainer_divides_and_accumulates_need_both_in_hold():
    for hold, message in ((2, r"make it with hold=4"), (4, None)):
        sampler = EnvironmentBatchSampler(LABELS, 4, rank=0, num_replicas=1, hold=hold)
        loop = loop_of("accelerate.data_loader", 2, DataLoader([0] * 51, batch_sampler=Divides(sampler)))
        with pytest.raises(GyrostatError, match=message) if message else contextlib.nullcontext():
            loop()


def test_a_stream_tells_the_same_trainers():
    samples = dict(enumerate(LABELS))
    stream = EnvironmentBatchStream(samples, samples.get, 4, hold=2, collate=list)
    with pytest.raises(GyrostatError, match="make it with hold=4"):
        loop_of("transformers.trainer", 4, DataLoader(stream, batch_size=None))()
    short = EnvironmentBatchStream(samples, samples.get, 4, hold=2, drop_last=False)
    divides = type("Shard", (IterableDataset,), {"num_processes": 2, "__iter__": lambda self: iter(list(short))})()
    with pytest.raises(GyrostatError, match=r"some of them are short .* use drop_last=True"):
        list(divides)


def test_a_trainer_that_rebuilds_the_sampler_hands_over_its_process_or_is_told_how():
    given = torch.utils.data.DistributedSampler(range(51), num_replicas=2, rank=1)
    sampler = EnvironmentBatchSampler(LABELS, 4, sampler=given)
    assert (sampler.rank, sampler.num_replicas) == (1, 2) and sampler.sampler is sampler
    with pytest.raises(GyrostatError, match=r"make EnvironmentBatchSampler inside train_dataloader\(\)"):
        EnvironmentBatchSampler(given, batch_size=4, drop_last=True)
    with pytest.raises(GyrostatError, match="sampler must be a DistributedSampler"):
        EnvironmentBatchSampler(LABELS, 4, sampler=[1, 2])


def test_what_accelerate_cannot_prepare_is_refused():
    sampler = EnvironmentBatchSampler(LABELS, 4)
    with pytest.raises(GyrostatError, match=r"loader has batch_size=None and sampler=.*: use batch_sampler="):
        prepare_loader(None, DataLoader(TensorDataset(torch.arange(51)), batch_size=None, sampler=sampler))
    with pytest.raises(GyrostatError, match="loader must be a DataLoader that has not been prepared; got 3"):
        prepare_loader(None, 3)


# --- what an epoch holds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_hold_keeps_the_environment_for_whole_steps(order):
    sampler = EnvironmentBatchSampler(LABELS, 4, order=order, hold=3)
    for _ in range(3):
        visits = np.reshape(environments(sampler), (-1, 3))  # the length is a multiple of three
        assert (visits == visits[:, :1]).all()


def test_weights_are_probabilities_or_exact_shares():
    weights = {"a": 1.0, "b": 2.0, "c": 0.0}
    drawn = Counter(environments(EnvironmentBatchSampler(LABELS, 4, weights=weights, num_batches=3000)))
    assert drawn["c"] == 0 and stats.binomtest(drawn["a"], 3000, 1 / 3).pvalue > 1e-3
    exact = EnvironmentBatchSampler(LABELS, 4, order="shuffled", weights=weights, num_batches=30)
    assert Counter(environments(exact)) == {"a": 10, "b": 20} and exact.skipped == ["c"]


def test_without_dropping_the_last_a_proportional_epoch_covers_every_row_once():
    sampler = EnvironmentBatchSampler(LABELS, 4, order="proportional", drop_last=False)
    for _ in range(3):
        batches = list(sampler)
        assert Counter(i for batch in batches for i in batch) == dict.fromkeys(range(51), 1)
        assert sorted(map(len, batches)) == [3] + [4] * 12 and environments(batches)
    parts = [
        list(EnvironmentBatchSampler(LABELS, 2, order="proportional", drop_last=False, rank=r, num_replicas=2))
        for r in (0, 1)
    ]
    assert [len(batch) for batch in parts[0]] == [len(batch) for batch in parts[1]]
    assert len({i for part in parts for batch in part for i in batch}) == 50  # one of 31 rows cannot be halved


def test_coverage_counts_what_an_epoch_sees():
    labels = np.repeat([0, 1, 2], [100_000, 64, 64])
    sampler = EnvironmentBatchSampler(labels, 32, order="shuffled")
    found = sampler.coverage()
    seen = Counter(i for batch in sampler for i in batch)
    assert (
        found.parts[0].rows_seen == sum(1 for i in seen if i < 100_000) and 0.33 < found.parts[0].rows_seen / 1e5 < 0.34
    )
    assert found.parts[1].most_often == max(n for i, n in seen.items() if 100_000 <= i < 100_064) > 500
    assert "0: 1043 batches, 33376 of 100000 rows (33.4%)" in str(found)
    assert EnvironmentBatchSampler(labels, 32, order="proportional").coverage().share > 0.999


# --- data sets -------------------------------------------------------------------------------------------------------------


def test_labels_are_found_under_subsets_and_splits():
    data = TensorDataset(torch.arange(51))
    part, rest = random_split(Subset(data, range(50, 5, -1)), [30, 15], generator=torch.Generator().manual_seed(0))
    both = ConcatDataset([rest, part, data])
    for dataset in (data, part, both):
        sampler = EnvironmentBatchSampler.for_dataset(dataset, LABELS, 2, small="skip")
        rows = [[int(dataset[i][0]) for i in batch] for batch in sampler]
        assert environments(rows) == [sampler.environment_of(batch) for batch in sampler_again(sampler)]


def sampler_again(sampler):
    sampler.set_epoch(0)
    return list(sampler)


@pytest.mark.parametrize(
    ("dataset", "labels", "message"),
    [
        (TensorDataset(torch.arange(4)), [0, 1, 0], "each of the 4 rows of the innermost data set; got 3"),
        (
            Subset(TensorDataset(torch.arange(4)), [0, 1]),
            [0, 1],
            r"4 rows .* \(dataset has 2 rows, which are part .*\); got 2",
        ),
        (
            Subset(TensorDataset(torch.arange(4)), [0, 9]),
            [0] * 4,
            "Subset with the row 9, but the data set inside has 4 rows",
        ),
        (iter([1]), [0], "dataset must have a length; .*EnvironmentBatchStream"),
        (TensorDataset(torch.arange(2)), [0, None], "1 missing labels"),
    ],
)
def test_labels_that_do_not_fit_the_data_set_are_refused(dataset, labels, message):
    with pytest.raises(GyrostatError, match=message):
        EnvironmentBatchSampler.for_dataset(dataset, labels, 1)


def test_a_batch_says_its_environment():
    labels = LABELS.tolist()
    sampler = EnvironmentBatchSampler(LABELS, 4)
    data = LabelledDataset(TensorDataset(torch.arange(51)), labels)
    for rows, environment in DataLoader(data, batch_sampler=sampler, collate_fn=EnvironmentCollate()):
        assert {environment} == {labels[i] for i in rows} and environment_of([rows, environment]) == environment
    named = EnvironmentCollate()([({"x": 1.0}, "a"), ({"x": 2.0}, "a")])
    assert environment_of(named) == "a" and named["x"].tolist() == [1.0, 2.0]
    with pytest.raises(
        GyrostatError, match=r"a batch holds rows of 3 environments .* batch_sampler=an EnvironmentBatchSampler"
    ):
        next(iter(DataLoader(data, batch_size=51, collate_fn=EnvironmentCollate())))
    with pytest.raises(GyrostatError, match="batch must hold rows of one environment; got 'b', 'a'"):
        sampler.environment_of([labels.index("a"), labels.index("b")])
    with pytest.raises(GyrostatError, match="batch must hold numbers of the 51 labelled rows; got 51"):
        sampler.environment_of([0, 51])
    with pytest.raises(GyrostatError, match="batch does not carry its environment"):
        environment_of(torch.zeros(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hold": 2, "num_batches": 5}, "num_batches=5 must be a multiple of hold=2"),
        ({"hold": 0}, "hold must be a whole number of at least 1"),
        ({"drop_last": "no"}, "drop_last must be True or False; got 'no'"),
        ({"weights": {"a": 1, "b": 1}}, "weights has no number for environment 'c'"),
        ({"weights": {"a": 1, "b": 1, "c": 1, "d": 1}}, "weights names 'd', which no row of environments has"),
        ({"weights": {"a": 1, "b": -1, "c": 1}}, r"weights\['b'\] must be a finite number of at least 0; got -1"),
        ({"weights": {"a": 0, "b": 0, "c": 0}}, "weights leave no environment to visit"),
        ({"weights": [1, 2, 3]}, r"weights must give each environment a number, .* got \[1, 2, 3\]"),
        ({"weights": {"a": 1}, "order": "cyclic"}, "weights work with order='iid' or 'shuffled'; got order='cyclic'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(GyrostatError, match=message):
        EnvironmentBatchSampler(LABELS, 4, **options)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32, bool])
def test_many_numbers_are_coded_as_a_loop_would(kind):
    rng = np.random.default_rng(0)
    labels = rng.integers(200, size=150_000).astype(kind)
    sampler = EnvironmentBatchSampler(labels, 1, small="wrap")
    assert sampler.labels == list(dict.fromkeys(labels.tolist()))
    rows = rng.integers(150_000, size=1000)
    assert sampler.environments_of(rows) == labels[rows].tolist()
    if kind is np.float32:
        labels[7] = np.nan
        with pytest.raises(GyrostatError, match="environments has 1 missing labels"):
            EnvironmentBatchSampler(labels, 1)


# --- Grain and the audit ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_grain_gets_the_sampler_s_batches_in_any_order_of_access(order):
    options = {"order": order, "seed": 3, "hold": 2, "rank": 1, "num_replicas": 2}
    sampler = EnvironmentBatchSampler(LABELS, 2, **options)
    whole = [batch for _ in range(8) for batch in sampler]
    batches = GrainEnvironmentBatches(np.arange(51), LABELS, 2, num_epochs=8, **options)
    assert len(batches) == len(whole)
    for i in np.random.default_rng(0).permutation(len(whole)):
        assert batches[int(i)].tolist() == whole[i]
    with pytest.raises(IndexError):
        batches[len(whole)]
    with pytest.raises(GyrostatError, match="one label for each of the 50 records; got 51"):
        GrainEnvironmentBatches(np.arange(50), LABELS, 2)


def test_the_audit_sees_mixed_batches_discarded_gradients_and_a_module_s_inputs():
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(2, 1)
    with audit_environments(module=model, environment=lambda x: found) as audit:
        for labels, steps in (("a", True), ("b", False), (["a", "a"], True), (["a", "b"], True)):
            found = labels
            model(x).sum().backward()
            if steps:
                optimizer.step()
            optimizer.zero_grad()  # the gradient of the second batch never counts
        with torch.no_grad():
            model(x)
    report = audit.report()
    assert (report.steps, report.mixed, report.causes) == (3, 1, {"batch": [2]}) and report.share == 1 / 3
    assert "batch_sampler=EnvironmentBatchSampler" in str(report)
    model(x).sum().backward()
    optimizer.step()
    assert audit.report().steps == 3  # the hooks are gone


def test_an_audit_without_evidence_is_refused():
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with audit_environments(optimizer) as audit:
        with pytest.raises(GyrostatError, match="no optimiser step was taken"):
            audit.report()
        optimizer.step()
        with pytest.raises(GyrostatError, match="no batch was recorded"):
            audit.report()
        audit.batch(3)
        optimizer.step()
    assert audit.report().unknown == 1 and "their environments are unknown" in str(audit.report())
    with (
        pytest.raises(GyrostatError, match="module and environment belong together"),
        audit_environments(module=weight),
    ):
        pass


# --- the page --------------------------------------------------------------------------------------------------------------


def test_the_page_prints_what_it_says():
    """Its blocks are one program; each text block is what the block before it prints."""
    page = (Path(__file__).parents[2] / "docs" / "one-environment-per-step.md").read_text()
    names, printed = {"__name__": "example"}, []
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, "page", "exec"), names)
        printed.append(out.getvalue())
    assert printed == re.findall(r"```text\n(.*?)```", page, re.DOTALL)
