"""Batches of one environment from a stream: the contract, the bounded buffers, workers and processes."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from gyrostat.errors import GyrostatError  # noqa: E402
from gyrostat.torch import EnvironmentBatchStream  # noqa: E402
from gyrostat.torch import stream as stream_file  # noqa: E402

LABELS = np.random.default_rng(0).choice(3, size=400, p=[0.6, 0.3, 0.1])
ORDERS = ("arrival", "iid", "cyclic", "shuffled")


def label(row: int) -> int:
    return int(LABELS[row])


def make(order: str = "arrival", batch_size: int = 4, **options) -> EnvironmentBatchStream:
    known = {} if order == "arrival" else {"environments": [0, 1, 2]}
    settings = {"buffer_size": 24, "order": order, "collate": list, "seed": 1, **known, **options}
    return EnvironmentBatchStream(range(400), label, batch_size, **settings)


@pytest.mark.parametrize("order", ORDERS)
def test_every_batch_is_full_of_distinct_samples_of_one_environment(order):
    stream = make(order)
    epochs = [list(DataLoader(stream, batch_size=None, collate_fn=list)) for _ in range(2)]
    for batches in epochs:
        assert all(len(batch) == 4 and len(set(LABELS[batch])) == 1 for batch in batches)
        assert max(Counter(i for batch in batches for i in batch).values()) == 1
    assert epochs[0] != epochs[1] and epochs[0] == list(make(order))
    used = Counter(LABELS[i] for batch in epochs[1] for i in batch)
    assert {name: part["used"] for name, part in stream.counts.items()} == used
    assert all(part["read"] == part["used"] + part["lost"] for part in stream.counts.values())


def test_by_arrival_little_is_lost_and_with_short_batches_nothing():
    stream = make()
    list(stream)
    assert sum(part["lost"] for part in stream.counts.values()) <= 3 * 3
    whole = make(drop_last=False)
    assert sorted(i for batch in whole for i in batch) == list(range(400))


def test_chosen_orders_visit_environments_alike():
    rounds = [label(batch[0]) for batch in make("cyclic")]
    assert rounds == [t % 3 for t in range(len(rounds))] and len(rounds) > 20
    shuffled = [label(batch[0]) for batch in make("shuffled")]
    whole = np.reshape(shuffled[: len(shuffled) // 3 * 3], (-1, 3))
    assert all(set(one) == {0, 1, 2} for one in whole.tolist())
    lossy = make("cyclic")
    list(lossy)
    assert lossy.counts[0]["lost"] > 100  # the price of equal visits to unequal environments, and it is counted


def test_no_buffer_holds_more_than_its_size(monkeypatch):
    most = 0
    add = stream_file.StreamBuffers.add

    def watched(self, sample, label):
        nonlocal most
        waiting = add(self, sample, label)
        most = max(most, waiting)
        return waiting

    monkeypatch.setattr(stream_file.StreamBuffers, "add", watched)
    for order in ORDERS:
        list(make(order))
    assert most == 24


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("workers", [2, 3])
def test_workers_take_turns_at_the_same_batches(order, workers, monkeypatch):
    alone = list(make(order))
    turns = []
    for worker in range(workers):
        info = SimpleNamespace(id=worker, num_workers=workers, seed=70 + worker)
        monkeypatch.setattr(stream_file, "get_worker_info", lambda info=info: info)
        turns.append(list(make(order)))
    assert [turns[n % workers][n // workers] for n in range(len(alone))] == alone


@pytest.mark.parametrize("order", ORDERS)
def test_processes_share_each_step_and_hold_keeps_the_environment(order):
    ranks = [list(make(order, hold=2, rank=r, num_replicas=2)) for r in range(2)]
    both = [a + b for a, b in zip(*ranks, strict=True)]
    assert len(both) > 8 and all(len(set(rows)) == 8 and len(set(LABELS[rows])) == 1 for rows in both)
    visits = np.reshape([label(rows[0]) for rows in both], (-1, 2))
    assert (visits[:, 0] == visits[:, 1]).all()


@pytest.mark.parametrize("order", ORDERS)
def test_a_state_continues_with_the_same_batches(order):
    stream = make(order)
    whole = [list(stream) for _ in range(3)]
    stream.set_epoch(1)
    going = iter(stream)
    assert [next(going) for _ in range(5)] == whole[1][:5]
    for state in (stream.state_dict(), going.state_dict()):
        resumed = make(order)
        resumed.load_state_dict(state)
        assert list(resumed) == whole[1][5:] and list(resumed) == whole[2]
        other = iter(make(order))
        other.load_state_dict(state)
        assert list(other) == whole[1][5:]
    list(going)
    assert stream.state_dict()["epoch"] == 2
    with pytest.raises(GyrostatError, match="state_dict is of another stream: batch_size is 4 there and 5 here"):
        make(order, batch_size=5).load_state_dict(stream.state_dict())


def test_a_second_iteration_of_an_epoch_in_workers_is_refused(monkeypatch):
    stream = make()
    for seed in (1, 2):
        monkeypatch.setattr(
            stream_file, "get_worker_info", lambda seed=seed: SimpleNamespace(id=0, num_workers=1, seed=seed)
        )
        if seed == 2:
            with pytest.raises(GyrostatError, match=r"epoch 0 begins a second time: .*stream\.set_epoch"):
                list(stream)
            stream.set_epoch(1)
        list(stream)


def test_a_source_may_depend_on_the_epoch():
    stream = EnvironmentBatchStream(lambda epoch: range(10 * epoch, 10 * epoch + 4), lambda i: 0, 4, collate=sorted)
    assert list(stream) == [[0, 1, 2, 3]] and list(stream) == [[10, 11, 12, 13]]


@pytest.mark.parametrize(
    ("order", "options", "message"),
    [
        ("arrival", {"buffer_size": 3}, "buffer_size=3 cannot hold the 4 samples of a step"),
        ("cyclic", {"environments": [0, 1]}, "environments does not list 2"),
        ("cyclic", {"environments": [0, 1, 2, 3]}, "environments lists 3, but no sample of epoch 0 is from it"),
        ("arrival", {"environments": [0, 1]}, "order='arrival' takes no environments"),
        ("iid", {"environments": None}, "order='iid' needs environments, the labels of all; got environments=None"),
        ("proportional", {"environments": [0, 1, 2]}, "unknown order 'proportional'"),
    ],
)
def test_bad_streams_are_refused(order, options, message):
    with pytest.raises(GyrostatError, match=message):
        list(make(order, **options))
    with pytest.raises(GyrostatError, match="environment gave a missing label"):
        list(EnvironmentBatchStream([1.0], lambda sample: None, 1))
