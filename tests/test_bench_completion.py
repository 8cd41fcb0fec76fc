"""The suite ``completion``: fixed splits, peers tuned alike, and records that can miss. Timings are never asserted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gyrostat.lab import bench
from gyrostat.lab.bench import completion
from gyrostat.lab.bench import completion_peers as peers
from gyrostat.lab.bench import completion_tables as tables
from gyrostat.lab.bench.completion_tables import Synthetic, synthetic

SMALL = Synthetic(30, 2, 2.5)


def test_the_suite_is_known_by_its_name():
    assert bench.SUITES["completion"].endswith("completion")


def test_a_synthetic_table_is_split_once_and_for_all():
    a, b = synthetic(SMALL), synthetic(SMALL)
    for x, y in zip(a[1:5], b[1:5], strict=True):
        np.testing.assert_array_equal(x.values, y.values)
    assert len(a.train) + len(a.valid) == len(a.seen) == int(2.5 * 2 * 58)
    cells = [set(zip(x.rows.tolist(), x.columns.tolist(), strict=True)) for x in (a.seen, a.test)]
    assert not cells[0] & cells[1] and np.bincount(a.seen.rows).min() >= 2
    assert np.sqrt(np.mean(a.test.values**2)) == pytest.approx(1, rel=0.3)


@pytest.mark.parametrize("name", ["soft-impute", "ALS told the rank", "KNNImputer", "cmfrec", "tensorly", "pymanopt"])
def test_every_peer_predicts_better_than_zero(name):
    peer = peers.PEERS[name]
    if not peer.available():
        pytest.skip(f"{peer.package} is not installed")
    problem = synthetic(Synthetic(30, 2, 4.0))
    few = peer._replace(settings=peer.settings[1:4])
    wrong = peers.tuned(few, problem) - problem.test.values
    assert np.sqrt(np.mean(wrong**2)) < 0.95 * problem.scale


def test_records_say_who_is_better_and_what_was_left_out(monkeypatch):
    """Ours is replaced by a fixed error, so that a goal is missed where it should be."""
    monkeypatch.setattr(completion, "ours", lambda problem: problem.test.values * 0.5)
    absent = peers.PEERS["cmfrec"]._replace(package="no_such_package")
    perfect = peers.Peer(lambda seen, setting: lambda i, j: np.zeros(len(i)), (0,))
    monkeypatch.setitem(peers.PEERS, "cmfrec", absent)
    monkeypatch.setitem(peers.PEERS, "zero", perfect)
    sizes = completion.Sizes((SMALL,), (), ("soft-impute", "cmfrec", "zero", "ALS told the rank"))
    report = completion.run(lambda text: None, sizes)
    found = {record.id: record for record in report.records}
    prefix = f"completion/{SMALL.name}-vs-"
    assert found[f"{prefix}zero"].meets and found[f"{prefix}zero"].ours == pytest.approx(0.5)
    assert found[f"{prefix}als-told-the-rank"].meets is None and found[f"{prefix}als-told-the-rank"].ratio < 0.1
    assert any("cmfrec" in note and "not installed" in note for note in report.notes)
    assert json.dumps([record.as_dict() for record in report.records])


def test_real_tables_without_their_package_are_left_out(monkeypatch):
    monkeypatch.setitem(tables.REAL, "digits", (tables.digits, "no_such_package"))
    report = completion.run(lambda text: None, completion.Sizes((), ("digits",)))
    assert not report.records and "left out" in report.notes[0]
