"""The suite ``completion``: fixed splits, peers tuned alike, and records that can miss. Timings are never asserted."""

from __future__ import annotations

import json

import numpy as np
import pytest

import page_records
from benchmarks import runner
from benchmarks.completion import evidence, large_table, peers, phase_diagram, problems, sensing, study
from benchmarks.completion import suite as completion
from benchmarks.completion.problems import Synthetic, synthetic
from benchmarks.records import BenchmarkRecord

SMALL = Synthetic(30, 2, 2.5)


def test_the_suite_is_known_by_its_name():
    assert runner.SUITES["completion"].endswith("completion.suite")


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
    few = peer if peer.path else peer._replace(settings=tuple(values[:2] for values in peer.settings))
    wrong = peers.tuned(few, problem) - problem.test.values
    assert np.sqrt(np.mean(wrong**2)) < 0.95 * problem.scale


def test_peers_are_tuned_one_setting_after_the_other():
    """The best of each, whatever the first were: a method whose error is known for every setting."""
    problem, asked = synthetic(SMALL), []

    def fit(seen, a, b):
        asked.append((a, b))
        off = abs(a - 3) + abs(b - 20)
        lookup = {(i, j): x for part in (problem.valid, problem.test) for i, j, x in zip(*cells_of(part), strict=True)}
        return lambda i, j: np.array([lookup[k] for k in zip(i, j, strict=True)]) + off

    found = peers.tuned(peers.Peer(fit, ((1, 2, 3), (10, 20))), problem)
    np.testing.assert_allclose(found, problem.test.values)
    assert asked == [(1, 10), (2, 10), (3, 10), (3, 20), (3, 20)]


def cells_of(part):
    return part.rows, part.columns, part.values


SIZES = completion.CompletionSizes(
    (SMALL,), (), (), ("soft-impute", "cmfrec", "zero", "ALS told the rank"), (), 1, 2, False, ()
)


@pytest.fixture
def report(monkeypatch):
    """Ours is replaced by a fixed error, so that a goal is missed where it should be."""
    monkeypatch.setattr(study, "ours", lambda problem: problem.test.values * 0.5)
    monkeypatch.setitem(peers.PEERS, "cmfrec", peers.PEERS["cmfrec"]._replace(package="no_such_package"))
    monkeypatch.setitem(peers.PEERS, "zero", peers.Peer(lambda seen, setting: lambda i, j: np.zeros(len(i)), ((0,),)))
    return completion.run(lambda text: None, SIZES)


def test_records_say_who_is_better_and_what_was_left_out(report):
    found = {record.id: record for record in report.records}
    prefix = f"completion/{SMALL.name}-vs-"
    assert found[f"{prefix}zero"].meets and found[f"{prefix}zero"].ours == pytest.approx(0.5)
    assert found[f"{prefix}als-told-the-rank"].meets is None and found[f"{prefix}als-told-the-rank"].ratio < 0.1
    assert any("cmfrec" in note and "not installed" in note for note in report.notes)
    assert json.dumps([record.as_dict() for record in report.records])


def test_the_page_shows_where_a_goal_is_missed(report, monkeypatch, tmp_path):
    cell = {"rank": 3, "oversampling": 1.2, "count": 8, "n": 100, "ours": 7, "told": 2}
    report.records.append(BenchmarkRecord("completion/phase", 0.1, "share", settings={"phase": cell}))
    shown = evidence.values(report)
    soft = next(record.peer for record in report.records if record.peer_name == "soft-impute")
    assert shown["tables-lost"].startswith("n30" if soft < 0.5 else "none") and shown["found"]["rows"] == [
        ["3", "7 / 2"]
    ]
    assert "(0." in shown["errors"]["rows"][0][1] and set(shown) <= set(page_records.values("completion-evidence"))
    evidence.draw(report, tmp_path)
    assert (tmp_path / phase_diagram.PHASE).stat().st_size > 1000
    monkeypatch.setattr(study, "ours", lambda problem: problem.test.values * 3)
    losing = evidence.values(completion.run(lambda text: None, SIZES))
    assert losing["tables-lost"].startswith("n30-r2-x2.5 (") and losing["tables-won"] == 0
    assert "0 of 2" in losing["errors"]["rows"][0]


def test_a_matrix_is_found_if_nearly_all_cells_are_right():
    problem = synthetic(SMALL)
    right, wrong = problem.test.values, problem.test.values.copy()
    wrong[: len(wrong) // 20] += 1
    assert study.is_found(problem, right) and not study.is_found(problem, wrong)


def test_the_large_table_runs_only_when_it_is_named():
    assert "completion-large" in runner.ON_REQUEST and "completion-large" not in runner.SUITES
    found = large_table.run(lambda text: None, large_table.LargeTableSizes(80, 60, 3000, 3, 0.1)).records
    assert found[0].id == "completion/large-seconds" and found[2].ours < 0.1
    assert found[0].settings["rank_found"] == 3


def test_real_tables_without_their_package_are_left_out(monkeypatch):
    monkeypatch.setitem(problems.REAL, "digits", (problems.digits, "no_such_package"))
    report = completion.run(
        lambda text: None, completion.CompletionSizes((), (), ("digits",), (), (), image=False, sensing=())
    )
    assert not report.records and "left out" in report.notes[0]


def test_solvers_of_measurements_are_told_by_steps_rates_and_what_failed():
    setting = sensing.MeasurementSetting(condition=30.0, n=6, measurements=80, max_iter=150)
    sizes = completion.CompletionSizes((), (), (), (), (), draws=2, image=False, sensing=(setting,))
    report = completion.run(lambda text: None, sizes)
    (record,) = report.records
    solvers = record.settings["sensing"]["solvers"]
    assert record.id == "completion/sensing-kappa-30" and record.peer == solvers["gd"]["steps"]
    assert solvers["prec"]["rank_found"] == 2 and solvers["prec"]["error"] < 1e-4
    assert solvers["gd"]["steps"] > 150 > solvers["prec"]["steps"]  # so short a descent does not get there
    shown = evidence.values(report)
    by_solver = {row[0]: row[1] for row in shown["steps"]["rows"]}
    assert by_solver["`gd`"].startswith(f"{solvers['gd']['steps']:.0f} (limit)") and shown["draws"] == 2
    assert by_solver["`prec`"] == f"{solvers['prec']['steps']:.0f}, {solvers['prec']['error']:.1g}"
    assert set(shown) <= set(page_records.values("completion-evidence"))
