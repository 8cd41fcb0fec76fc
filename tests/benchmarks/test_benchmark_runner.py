"""The benchmark harness: timing in turns, records, and suites in processes of their own. Timings are never asserted."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys

import pytest
from rich.console import Console

from benchmarks import __main__, records, runner
from benchmarks.measuring import best_of
from benchmarks.records import BenchmarkRecord, Report, table

FIELDS = ["id", "ours", "peer", "peer_name", "unit", "ratio", "goal", "meets", "settings"]


class FakeMachine:
    """A clock that only moves while a side works, and a log of who worked when."""

    def __init__(self, costs: dict[str, list[float]]):
        self.now, self.log, self.costs = 0.0, [], {name: iter(c) for name, c in costs.items()}

    def side(self, name: str):
        def work() -> None:
            self.log.append(name)
            self.now += next(self.costs[name])

        return work


def test_best_of_takes_turns_and_the_least_time_of_each() -> None:
    machine = FakeMachine({"ours": [50, 3, 2, 4], "peer": [70, 9, 8, 7]})  # the first call compiles
    best = best_of({n: machine.side(n) for n in ("ours", "peer")}, 3, lambda: machine.now)
    assert best == {"ours": 2, "peer": 7}
    assert machine.log == ["ours", "peer"] * 4


def test_the_compiling_call_never_counts() -> None:
    machine = FakeMachine({"ours": [0.001, 3, 4]})
    assert best_of({"ours": machine.side("ours")}, 2, lambda: machine.now)["ours"] == pytest.approx(3)


@pytest.mark.parametrize(
    ("ours", "peer", "goal", "ratio", "meets"),
    [
        (2.0, 60.0, 30.0, 30.0, True),
        (2.0, 59.0, 30.0, 29.5, False),
        (2.0, 60.0, None, 30.0, None),
        (2.0, None, None, None, None),
        (0.0, 1.0, 1.0, None, None),
    ],
)
def test_a_ratio_is_peer_over_ours_and_meets_its_goal(ours, peer, goal, ratio, meets) -> None:
    record = BenchmarkRecord("core/x", ours, "s", peer, None if peer is None else "NumPy", goal)
    assert (record.ratio, record.meets) == (ratio, meets)
    assert list(record.as_dict()) == FIELDS


def test_a_report_survives_its_file(tmp_path) -> None:
    report = Report([BenchmarkRecord("core/x", 1.0, "s", 2.0, "NumPy", 1.5, {"d": 3})], ["a note"])
    report.write(tmp_path / "report.json")
    assert Report.read(tmp_path / "report.json") == report


def test_the_table_shows_verdicts_and_what_was_left_out() -> None:
    out = io.StringIO()
    good, bad = BenchmarkRecord("core/a", 1.0, "s", 3.0, "P", 2.0), BenchmarkRecord("core/b", 1.0, "s", 1.0, "P", 2.0)
    Console(file=out, width=160).print(table([good, bad], ["core/c is left out: pip install 'gyrostat[bench]'."]))
    text = out.getvalue()
    assert "meets" in text and "misses" in text and "gyrostat[bench]" in text  # brackets are not markup


@pytest.mark.parametrize(
    ("word", "hint"), [("cor", "did you mean 'core'"), ("--outt", "unrecognized arguments: --outt")]
)
def test_bad_usage_is_one_line_and_status_two(word, hint, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", word])
    with pytest.raises(SystemExit) as ended:
        sys.exit(__main__.main())
    said = capsys.readouterr().err
    assert ended.value.code == 2 and hint in said and said.count("\n") == 1


def test_run_suites_writes_records_and_a_figure(tmp_path, monkeypatch) -> None:
    curve = {"title": "Cost", "xlabel": "m", "unit": "s", "x": [1, 10], "y": [2.0, 2.1]}
    record = BenchmarkRecord("core/fresh-flat-in-m", 1.0, "s", 1.0, "P", 0.8, {"curve": curve})
    monkeypatch.setattr(runner, "in_child", lambda name, say: (Report([record], []), ""))
    assert runner.run_suites(["core"], tmp_path, Console(file=io.StringIO())) == 0
    (written,) = json.loads((tmp_path / "bench.json").read_text())
    assert list(written) == FIELDS and written["meets"] is True
    assert (tmp_path / "bench.png").stat().st_size > 0


def test_progress_is_told_without_a_terminal_too(tmp_path, monkeypatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(runner, "in_child", lambda name, say: (say("a million rows (1 of 2)"), (Report([], []), ""))[1])
    runner.run_suites(["core"], tmp_path, Console(file=out))
    assert "core: a million rows (1 of 2)\n" in out.getvalue()


def test_a_crash_gives_status_one_and_its_last_words(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(runner.SUITES, "broken", "benchmarks.no_such_module")
    monkeypatch.chdir(tmp_path)  # from where the child has to find the package too
    report, words = runner.in_child("broken", lambda text: None)
    assert report.crashed and "broken" in words  # the child knows no suite that only this test registered
    out = io.StringIO()
    monkeypatch.setattr(runner, "in_child", lambda name, say: (report, words))
    assert runner.run_suites(["core"], tmp_path, Console(file=out, width=200)) == 1
    assert words in out.getvalue() and json.loads((tmp_path / "bench.json").read_text()) == []


def test_an_interrupted_suite_keeps_what_it_has_and_ends_the_command(tmp_path, monkeypatch) -> None:
    record = BenchmarkRecord("core/x", 1.0, "s", 2.0, "NumPy", 1.5)
    Report([record], ["left out"]).write(tmp_path / "first.json")
    popen, children = subprocess.Popen, []

    def slow(command, **options):  # a suite that has finished one group of two
        code = f"import shutil, time; shutil.copy({str(tmp_path / 'first.json')!r}, {command[-1]!r})"
        code += "; print('two of two', flush=True); time.sleep(600)"
        children.append(popen([sys.executable, "-c", code], **options))
        return children[0]

    def interrupt(text):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.subprocess, "Popen", slow)
    report, trouble = runner.in_child("core", interrupt)
    assert trouble == runner.INTERRUPTED and report.records == [record] and "interrupted" in report.notes[1]
    assert children[0].returncode == -signal.SIGKILL
    asked = []
    monkeypatch.setattr(runner, "in_child", lambda name, say: asked.append(name) or (report, trouble))
    assert runner.run_suites(["core", "gd"], tmp_path / "out", Console(file=io.StringIO())) == 130
    assert asked == ["core"] and len(json.loads((tmp_path / "out" / "bench.json").read_text())) == 1


def test_the_report_so_far_is_kept_after_every_group(tmp_path) -> None:
    path, seen = tmp_path / "report.json", []
    record = BenchmarkRecord("core/x", 1.0, "s")

    def group(sizes):
        seen.append(len(Report.read(path).records) if path.exists() else 0)
        return [record], []

    token = records.report_file.set(path)
    try:
        records.run_groups([("a", group), ("b", group)], None, lambda text: None)
    finally:
        records.report_file.reset(token)
    assert seen == [0, 1] and len(Report.read(path).records) == 2


def test_a_suite_module_exists_for_every_name() -> None:
    for name in runner.SUITES | runner.ON_REQUEST:
        assert callable(runner.suite_module(name).run)


def test_the_child_gets_one_thread_and_keeps_other_flags(monkeypatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/nowhere")
    given = runner.single_threaded()
    assert given["XLA_FLAGS"].startswith("--xla_dump_to=/nowhere ") and "eigen=false" in given["XLA_FLAGS"]
    assert given["OMP_NUM_THREADS"] == given["OPENBLAS_NUM_THREADS"] == "1"
    assert given["PATH"] == os.environ["PATH"]
