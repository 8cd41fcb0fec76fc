"""The contract of one-environment batches for PyTorch, and of the recorder."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from gyrostat.errors import GyrostatError  # noqa: E402
from gyrostat.torch import EnvironmentBatchSampler, TrajectoryRecorder  # noqa: E402

ORDERS = ("iid", "cyclic", "shuffled", "proportional")
SIZES = {"a": 12, "b": 31, "c": 8}
LABELS = np.random.default_rng(0).permutation([name for name, n in SIZES.items() for _ in range(n)])


def visits(batches: list[list[int]], labels=LABELS) -> list:
    """The environment of every batch, after checking that it has one only."""
    found = [{labels[i] for i in batch} for batch in batches]
    assert all(len(one) == 1 for one in found)
    return [one.pop() for one in found]


@pytest.mark.parametrize("order", ORDERS)
def test_every_batch_is_full_of_distinct_rows_of_one_environment(order):
    sampler = EnvironmentBatchSampler(LABELS, 4, order=order)
    for _ in range(5):
        batches = list(sampler)
        assert len(batches) == len(sampler)
        assert all(len(set(batch)) == 4 for batch in batches)
        assert all(type(i) is int for batch in batches for i in batch)
        visits(batches)


def test_an_epoch_is_about_one_pass():
    # 12, 31 and 8 rows make 3, 7 and 2 whole batches of 4; three environments visited alike need 4 rounds of 3.
    lengths = {order: len(EnvironmentBatchSampler(LABELS, 4, order=order)) for order in ORDERS}
    assert lengths == {"iid": 12, "cyclic": 12, "shuffled": 12, "proportional": 12}
    lengths = {order: len(EnvironmentBatchSampler(LABELS, 8, order=order)) for order in ORDERS}
    assert lengths == {"iid": 5, "cyclic": 6, "shuffled": 6, "proportional": 5}
    assert len(list(EnvironmentBatchSampler(LABELS, 8, num_batches=17))) == 17


def test_proportional_deals_every_row_at_most_once_and_leaves_none_out():
    sampler = EnvironmentBatchSampler(LABELS, 4, order="proportional")
    seen: set[int] = set()
    for _ in range(30):
        batches = list(sampler)
        assert Counter(visits(batches)) == {"a": 3, "b": 7, "c": 2}
        rows = [i for batch in batches for i in batch]
        assert len(rows) == len(set(rows)) == 48
        seen |= set(rows)
    assert seen == set(range(51))  # a row of "b" is left out of an epoch with probability 3/31: of 30 never


def test_cyclic_goes_round_also_across_epochs():
    first_seen = list(dict.fromkeys(LABELS.tolist()))
    sampler = EnvironmentBatchSampler(LABELS, 4, order="cyclic", num_batches=7)
    found = [e for _ in range(3) for e in visits(list(sampler))]
    assert found == [first_seen[t % 3] for t in range(21)]


def test_shuffled_rounds_are_uniform_permutations():
    sampler = EnvironmentBatchSampler(LABELS, 4, order="shuffled", num_batches=3 * 1200)
    rounds = Counter(map(tuple, np.reshape(visits(list(sampler)), (1200, 3)).tolist()))
    assert all(len(set(one)) == 3 for one in rounds)
    assert len(rounds) == 6 and stats.chisquare(list(rounds.values())).pvalue > 1e-3


def test_iid_draws_environments_alike_and_independently():
    sampler = EnvironmentBatchSampler(LABELS, 4, num_batches=6000)
    codes = np.unique(visits(list(sampler)), return_inverse=True)[1]
    assert stats.chisquare(np.bincount(codes, minlength=3)).pvalue > 1e-3
    pairs = np.bincount(3 * codes[1:] + codes[:-1], minlength=9).reshape(3, 3)
    assert stats.chi2_contingency(pairs).pvalue > 1e-3


def test_rows_within_an_environment_are_drawn_alike():
    sampler = EnvironmentBatchSampler(LABELS, 4, order="cyclic", num_batches=3 * 1500)
    counts = np.bincount([i for batch in sampler for i in batch], minlength=len(LABELS))
    of_b = counts[LABELS == "b"]
    # Seven batches of four out of 31, then a new shuffle: the counts vary less than independent ones would.
    assert of_b.sum() == 6000 and abs(of_b - 6000 / 31).max() < 5 * np.sqrt(6000 / 31)
    assert np.ptp(counts[LABELS == "a"]) == 0  # 12 rows are three whole batches: no pass leaves any out


def test_seed_and_epoch_decide_everything_and_nothing_else_does():
    def epochs(seed, count=3):
        sampler = EnvironmentBatchSampler(LABELS, 4, seed=seed)
        return [list(sampler) for _ in range(count)]

    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first = epochs(0)
    assert np.array_equal(np.random.get_state()[1], state) and torch.equal(torch.get_rng_state(), torch_state)  # noqa: NPY002
    torch.manual_seed(2)
    assert epochs(0) == first and epochs(1) != first
    assert first[0] != first[1] != first[2]  # a new epoch for every iteration, without set_epoch
    sampler = EnvironmentBatchSampler(LABELS, 4)
    sampler.set_epoch(2)
    assert list(sampler) == first[2] and sampler.epoch == 3


@pytest.mark.parametrize("copied", [lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_copy_goes_on_where_the_original_is(copied):
    sampler = EnvironmentBatchSampler(LABELS, 4)
    list(sampler)
    again = copied(sampler)
    assert list(again) == list(sampler)


def test_iterations_beside_each_other_are_epochs_of_their_own():
    sampler = EnvironmentBatchSampler(LABELS, 4)
    one, two, three = list(sampler), list(sampler), list(sampler)
    sampler.set_epoch(0)
    assert list(zip(sampler, sampler, strict=True)) == list(zip(one, two, strict=True))
    sampler.set_epoch(0)
    unused = iter(sampler)  # without a first batch it is no epoch
    for _ in sampler:
        break
    assert list(sampler) == two and list(unused) == three


def server():
    """Workers come from a process that has PyTorch and no JAX, whose threads mind forks; each is there at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    return context


@pytest.mark.parametrize("workers", ["none", "each epoch", "persistent"])
def test_a_data_loader_gets_the_sampler_s_batches(workers):
    data = TensorDataset(torch.arange(len(LABELS)))
    options = {} if workers == "none" else {"num_workers": 1, "multiprocessing_context": server()}
    sampler = EnvironmentBatchSampler(LABELS, 4, seed=3)
    loader = DataLoader(data, batch_sampler=sampler, persistent_workers=workers == "persistent", **options)
    alone = EnvironmentBatchSampler(LABELS, 4, seed=3)
    epochs = [list(alone) for _ in range(3)]
    assert len(loader) == len(alone)
    # with workers the loader asks for an iterator that it drops: no epoch may be lost
    assert [rows.tolist() for (rows,) in loader] == epochs[0]
    for (rows,) in loader:
        assert rows.tolist() == epochs[1][0]
        break  # workers are ahead by then, but in this epoch
    assert sampler.epoch == 2 and [rows.tolist() for (rows,) in loader] == epochs[2]
    sampler.set_epoch(1, start=1)
    assert [rows.tolist() for (rows,) in loader] == epochs[1][1:]


def test_a_loader_may_ask_the_data_set_for_whole_batches_and_shuffle_by_a_generator_of_its_own():
    data = TensorDataset(torch.arange(len(LABELS)))
    loader = DataLoader(
        data, batch_size=None, sampler=EnvironmentBatchSampler(LABELS, 4), generator=torch.Generator().manual_seed(7)
    )
    assert [rows.tolist() for (rows,) in loader] == list(EnvironmentBatchSampler(LABELS, 4))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("small", ["wrap", "short", "skip"])
def test_all_ranks_see_the_same_environment_and_different_rows(order, small):
    def rank(r):
        return EnvironmentBatchSampler(LABELS, 4, order=order, small=small, rank=r, num_replicas=3)

    samplers = [rank(r) for r in range(3)]
    for _ in range(3):
        together = list(zip(*samplers, strict=True))
        assert len(together) == len(samplers[0])
        for parts in together:
            assert len({e for part in parts for e in visits([part])}) == 1
            assert len({len(part) for part in parts}) == 1  # every process weighs as much as the others
            rows = [i for part in parts for i in part]
            if LABELS[rows[0]] != "c":  # 8 rows of "c" are fewer than 3 x 4
                assert len(set(rows)) == 12
    assert samplers[0].skipped == (["c"] if small == "skip" else [])


def test_the_rules_for_small_environments():
    labels = [0] * 10 + [1] * 3
    with pytest.raises(GyrostatError, match=r"environment 1 has 3 rows and a step takes 4 .*small='wrap'"):
        EnvironmentBatchSampler(labels, 4)
    for batch in EnvironmentBatchSampler(labels, 8, order="cyclic", small="wrap", num_batches=40):
        counts = Counter(batch)
        assert len(batch) == 8
        if labels[batch[0]] == 1:
            assert sorted(counts.values()) == [2, 3, 3]
    short = list(EnvironmentBatchSampler(labels, 4, order="cyclic", small="short"))
    assert [len(batch) for batch in short] == [4, 3, 4, 3] and set(short[1]) == {10, 11, 12}
    skip = EnvironmentBatchSampler(labels, 4, order="cyclic", small="skip")
    assert skip.labels == [0] and skip.skipped == [1] and len(skip) == 2 and set(visits(list(skip), labels)) == {0}
    with pytest.raises(GyrostatError, match="skips every environment: the largest has 10 rows"):
        EnvironmentBatchSampler(labels, 11, small="skip")
    with pytest.raises(GyrostatError, match="a process would get no rows"):
        EnvironmentBatchSampler(labels, 1, small="short", rank=0, num_replicas=4)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([True, False, True, False]),
        torch.tensor([7, 0, 7, 0]),
        [torch.tensor(7), torch.tensor(0), torch.tensor(7), torch.tensor(0)],
        pd.Series(["u", "v", "u", "v"], index=[9, 8, 7, 6], dtype="category"),
        [("site", 1), ("site", 2), ("site", 1), ("site", 2)],
        [1, "1", 1, "1"],
    ],
    ids=["bool", "tensor", "tensors", "category", "tuples", "mixed"],
)
def test_labels_of_any_kind(labels):
    sampler = EnvironmentBatchSampler(labels, 2, order="cyclic")
    assert [sorted(batch) for batch in sampler] == [[0, 2], [1, 3]] and len(sampler.labels) == 2


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([], {}, "environments is empty"),
        ([1.0, float("nan")], {}, "environments has 1 missing labels"),
        (["a", None, pd.NA], {}, "environments has 2 missing labels"),
        (np.zeros((3, 2)), {}, r"one label .* for each row; got array\(\[\[0\., 0\.\]"),
        (pd.DataFrame({"site": [1, 2]}), {}, "one label .* for each row; got site"),
        ({"site": [1, 2]}, {}, "one label .* for each row; got {'site'"),
        ("site", {}, "one label .* for each row; got 'site'"),
        (torch.tensor(3), {}, r"one label .* for each row; got tensor\(3\)"),
        ([0, 0], {"num_replicas": 2}, "belong together; got rank=None and num_replicas=2: give both"),
        ([0, 0], {"rank": 1}, "belong together; got rank=1 and num_replicas=None"),
        ([0, 0], {"order": "cylic"}, "unknown order 'cylic': did you mean 'cyclic'"),
        ([0, 0], {"small": "drop"}, "unknown small 'drop'"),
        ([0, 0], {"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ([0, 0], {"rank": 2, "num_replicas": 2}, "rank must be .* at most 1, num_replicas - 1; got 2"),
        ([0, 0], {"num_batches": 0}, "num_batches must be a whole number of at least 1"),
        ([0, 0], {"seed": -1}, "seed must be a whole number of at least 0"),
    ],
)
def test_bad_arguments_are_refused(labels, options, message):
    with pytest.raises(GyrostatError, match=message):
        EnvironmentBatchSampler(labels, **{"batch_size": 1, **options})


def test_a_loop_of_one_s_own_drops_what_changes_sign_between_environments():
    """HeteroSGD by hand: y = x_0 + s_e x_1 with s = -5 or 7, beta = u * u, against pooled batches of the same rows."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 2000)
    X = torch.as_tensor(rng.standard_normal((4000, 4)))
    y = X[:, 0] + torch.as_tensor(np.where(labels == 0, -5.0, 7.0)) * X[:, 1]

    def train(loader):
        u = torch.full((4,), 1e-2, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([u], lr=0.05)
        recorder = TrajectoryRecorder(lambda: u * u, {"kept": np.eye(4)[:, :1], "dropped": np.eye(4)[:, 1:2]}, every=60)
        recorder.attach(optimizer)
        for x, target in loader:
            optimizer.zero_grad()
            (0.25 * ((x @ (u * u) - target) ** 2).mean()).backward()
            optimizer.step()
        return recorder.result()

    data = TensorDataset(X, y)
    hetero = train(
        DataLoader(data, batch_sampler=EnvironmentBatchSampler(labels, 400, order="shuffled", num_batches=240))
    )
    pooled = train(DataLoader(data, batch_sampler=EnvironmentBatchSampler([0] * 4000, 400, num_batches=240)))
    assert hetero.step.values.tolist() == [0, 60, 120, 180, 240]
    # A round multiplies u_1 by about (1 - .05 * 5)(1 + .05 * 7) = 1.0125: 120 of them leave u_1^2 near 2e-3.
    assert abs(hetero.kept[-1, 0] - 1) < 0.3 and hetero.dropped[-1, 0] < 0.1
    assert abs(pooled.kept[-1, 0] - 1) < 0.3 and abs(pooled.dropped[-1, 0] - 1) < 0.5


def test_recorder_projects_matrices_and_says_what_is_left():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    layer = torch.nn.Linear(6, 2, dtype=torch.float64)
    # Two subspaces that share a direction: the rest is what their span of three dimensions leaves.
    recorder = TrajectoryRecorder(layer.weight, {"one": basis[:, :2], "two": basis[:, 1:]})
    recorder.record(0)
    with torch.no_grad():
        layer.weight.mul_(2)
    recorder.record(5)
    found, W = recorder.result(), layer.weight.detach().numpy()
    assert found.one.dims == ("step", "axis_0", "one_direction") and found.step.values.tolist() == [0, 5]
    np.testing.assert_allclose(found.one[1], W @ basis[:, :2], atol=1e-12)
    np.testing.assert_allclose(found.two[0], W @ basis[:, 1:] / 2, atol=1e-12)
    left = np.linalg.svd(basis)[0][:, 3:]
    np.testing.assert_allclose(found.rest[1], np.linalg.norm(W @ left), atol=1e-12)


def test_recorder_refuses_what_it_cannot_project():
    weight = torch.zeros(3)
    with pytest.raises(GyrostatError, match="orthonormal columns"):
        TrajectoryRecorder(weight, {"one": np.ones((3, 1))})
    with pytest.raises(GyrostatError, match="at least one basis"):
        TrajectoryRecorder(weight, {})
    with pytest.raises(GyrostatError, match="cannot be named 'rest'"):
        TrajectoryRecorder(weight, {"rest": np.eye(3)})
    with pytest.raises(GyrostatError, match="the same number of rows"):
        TrajectoryRecorder(weight, {"one": np.eye(3), "two": np.eye(4)})
    with pytest.raises(GyrostatError, match=r"watched has shape \(3,\), but the bases of subspaces have 4 rows"):
        TrajectoryRecorder(weight, {"one": np.eye(4)}).record(0)
    with pytest.raises(GyrostatError, match="nothing has been recorded"):
        TrajectoryRecorder(weight, {"one": np.eye(3)}).result()
    with pytest.raises(GyrostatError, match="watched must be a tensor"):
        TrajectoryRecorder([1.0], {"one": np.eye(1)})


def test_torch_is_imported_on_demand_without_jax_and_explained_when_missing():
    code = """
import sys, gyrostat
assert "torch" not in sys.modules
import gyrostat.torch
assert "jax" not in sys.modules
for name in [m for m in sys.modules if m.startswith("gyrostat.torch")]:
    del sys.modules[name]
sys.modules["torch"] = None
try:
    import gyrostat.torch
except ImportError as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'gyrostat[torch]'" in printed
