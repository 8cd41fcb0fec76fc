"""The runner with a made-up paper: resuming, failing, being killed, the same numbers with any number of workers."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from rich.console import Console

from gyrostat.errors import GyrostatError
from gyrostat.experiments import registry
from gyrostat.parallel.workers import run_tasks
from gyrostat.reproduce.runner import reproduce
from gyrostat.reproduce.store import ResultsStore, natural
from gyrostat.reproduce.tasks import ExperimentTask, seed_of, select

FAKE = Path(__file__).parents[1] / "tools"
FIELDS = [
    *("id", "statement", "criterion", "measured", "verdict", "expected", "kind", "reason", "ours", "seeds", "seconds"),
    "checksum",
]


def computed(log):
    return [line.split()[0] for line in log.read_text().splitlines()]


def quietly(names, out, **options):
    console = Console(file=io.StringIO(), width=200)
    summary = reproduce(names, out=out, size="smoke", jobs=1, console=console, **options)
    return summary, console.file.getvalue()


def start(*arguments, **variables):
    return subprocess.Popen(
        [sys.executable, str(FAKE / "run_fake.py"), "reproduce", *arguments],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


PATIENCE = 120
"""Seconds after which a test calls something stuck: far beyond what a busy machine needs."""


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_finished_experiments_are_kept(fake, tmp_path):
    out = tmp_path / "out"
    first, _ = quietly(["fake2024/fig1"], out)
    again, said = quietly(["fake2024/fig1"], out)
    assert computed(fake) == ["fig1"]
    assert again.reused == ["fake2024/fig1"] and "kept from before" in said
    assert again.records == first.records and again.status == first.status == 0
    quietly(["fake2024/fig1"], out, fresh=True)
    assert computed(fake) == ["fig1"] * 2
    other, _ = quietly(["fake2024/fig1"], out, seed=1)
    assert computed(fake) == ["fig1"] * 3
    assert other.records[0]["measured"] != first.records[0]["measured"]
    assert len(ResultsStore(out).claims()) == 2


def test_an_experiment_is_computed_again_when_its_code_changes(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_given", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    paper, helper = tmp_path / "copied2024.py", tmp_path / "helper_of_copied2024.py"
    source = (FAKE / "fake2024.py").read_text().replace("fake2024", "copied2024")
    paper.write_text(source.replace("import numpy", "import helper_of_copied2024\nimport numpy"))
    helper.write_text("RATE = 1\n")
    for file, addition, times in (
        (paper, "", 1),
        (helper, "# a remark\n", 1),
        (helper, "RATE = 2\n", 2),
        (paper, "X = 1\n", 3),
    ):
        file.write_text(file.read_text() + addition)
        quietly([f"{paper}/fig1"], tmp_path / "out")
        assert computed(fake) == ["fig1"] * times


def test_outputs(fake, tmp_path):
    summary, said = quietly(["fake2024/figX", "fake2024/fig10"], tmp_path / "a" / "out")
    quietly(["fake2024/fig1"], tmp_path / "a" / "out")
    out = tmp_path / "a" / "out"
    records = json.loads((out / "claims.json").read_text(), parse_constant=lambda _: pytest.fail("not JSON"))
    assert [r["id"] for r in records] == [
        "fake2024/fig1/spread",
        "fake2024/fig1/still",
        "fake2024/fig10/spread",
        "fake2024/figX/unknown",
    ]
    assert all(list(r) == FIELDS for r in records)
    assert records[1]["verdict"] == records[1]["expected"] == "fails" and records[1]["reason"] == "It moves."
    assert records[3]["measured"] == {"rate": None} and records[3]["verdict"] == "undecided"
    assert records[0]["seeds"] == 3
    assert summary.status == 1 and "SURPRISE" in said and "1 with a verdict that was not expected" in said
    for name in ("fig1", "fig10", "figX"):
        assert (out / f"figures/fake2024/{name}.png").stat().st_size > 1000
        assert (out / f"figures/fake2024/{name}.svg").read_text().startswith("<?xml")
    stored = xr.open_dataset(out / "results.zarr", engine="zarr", group="fake2024/fig1", consolidated=False)
    assert stored.walk.dims == ("seed", "step") and json.loads(stored.attrs["run"])["settings"] == {
        "seeds": 3,
        "steps": 5,
    }
    assert not list(out.rglob("*.part"))


def test_report_needs_nothing_and_escapes_everything(fake, tmp_path):
    quietly(["fake2024/fig1", "fake2024/figX"], tmp_path)
    page = (tmp_path / "pages/fake2024.html").read_text()
    assert "A walk has &lt;em&gt;finite&lt;/em&gt; spread." in page and "A walk has <em>" not in page
    assert page.count("data:image/webp;base64,") == 2 and page.count('class="claim undecided"') == 1
    assert f"gyrostat reproduce fake2024/fig1 --size smoke --seed 0 --out {tmp_path} --fresh" in page
    opening = (tmp_path / "index.html").read_text().split('id="figures"')[0]
    answer = "1 of 3 statements of the papers hold; 1 does not hold here, with a reason; 1 undecided."
    assert answer in opening and "#fake2024/figX/unknown" in opening


@pytest.mark.parametrize("cause", ["FAKE_FAIL", "FAKE_DRAW"])
def test_a_failing_experiment_does_not_stop_the_others(fake, tmp_path, monkeypatch, cause):
    quietly(["fake2024/fig1"], tmp_path)
    with monkeypatch.context() as patch:
        patch.setenv(cause, "fig1")
        summary, said = quietly(["fake2024/fig1", "fake2024/figX"], tmp_path, fresh=True)
    assert summary.status == 1 and "fake2024/fig1 failed: RuntimeError: the fake paper" in said
    assert "Traceback" in (tmp_path / "errors/fake2024-fig1.txt").read_text()
    others = [] if cause == "FAKE_DRAW" else ["fake2024/figX/unknown"]
    assert [r["id"] for r in ResultsStore(tmp_path).claims()] == others
    quietly(["fake2024/fig1"], tmp_path)
    assert not (tmp_path / "errors/fake2024-fig1.txt").exists()


def test_names(fake):
    assert select(["fake2024"]) == [f"fake2024/{name}" for name in ("fig1", "fig2", "fig10", "figX")]
    assert select(["fake2024/fig2", "fake2024/fig2", "fake2024"])[:2] == ["fake2024/fig2", "fake2024/fig1"]
    with pytest.raises(GyrostatError, match="did you mean 'fake2024'"):
        select(["fake2023"])
    with pytest.raises(GyrostatError, match=r"unknown paper or figure 'fake2024/fig3': did you mean .*'fake2024/fig"):
        select(["fake2024/fig3"])


@pytest.mark.parametrize("where", ["file", "file/below", "nul\0"])
def test_impossible_folders_are_refused_before_computing(fake, tmp_path, where):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(GyrostatError, match=r"cannot write results to .*choose another folder with --out"):
        quietly(["fake2024/fig1"], tmp_path / where)
    assert computed(fake) == []


@pytest.mark.parametrize("text", ["{", "{}", "[1]"])
def test_a_strange_claims_file_is_refused_before_computing(fake, tmp_path, text):
    (tmp_path / "claims.json").write_text(text)
    with pytest.raises(GyrostatError, match="is not a list of claims"):
        quietly(["fake2024/fig1"], tmp_path)
    assert computed(fake) == []


def test_bad_numbers_are_refused(fake, tmp_path):
    for options in ({"jobs": 0}, {"jobs": -2}, {"seed": -1}, {"size": "huge"}):
        with pytest.raises(GyrostatError, match=next(iter(options))):
            reproduce(["fake2024/fig1"], out=tmp_path, **options)


def test_the_mark_comes_last(tmp_path, monkeypatch):
    data = xr.Dataset({"x": ("step", np.arange(3.0))})
    store = ResultsStore(tmp_path)
    store.save("p/a", data, "one", {"seconds": 1})
    assert store.finished() == ["p/a"] and store.load("p/a", "one").identical(data)

    def killed(*_, **__):
        raise KeyboardInterrupt

    for victim, name in ((zarr, "open_group"), (xr.Dataset, "to_zarr")):
        store.save("p/a", data, "one", {"seconds": 1})
        with monkeypatch.context() as patch:
            patch.setattr(victim, name, killed)
            with pytest.raises(KeyboardInterrupt):
                store.save("p/a", data + 1, "two", {"seconds": 1})
        assert store.finished() == [] and store.load("p/a", "one") is store.load("p/a", "two") is None


def test_data_come_back_as_they_were(tmp_path):
    data = xr.Dataset(
        {"x": (("seed", "method"), [[1.0, np.nan], [np.inf, 3.0]]), "ok": ("seed", [True, False])},
        coords={"seed": [0, 1], "method": ["one", "three"]},
        attrs={"settings": "{}", "number": 2.5},
    )
    data.x.attrs["units"] = "seconds"
    ResultsStore(tmp_path).save("p/a", data, "f", {"seconds": 1})
    assert ResultsStore(tmp_path).load("p/a").identical(data)


def test_kill_then_resume(fake, tmp_path):
    out = tmp_path / "out"
    names = ["fake2024/fig1", "fake2024/fig2", "fake2024/fig10"]
    arguments = (*names, "--size", "smoke", "--out", str(out), "--jobs", "2")
    process = start(*arguments, FAKE_SLEEP="600")
    wait_until(lambda: sorted(computed(fake)) == ["fig1", "fig10", "fig2"] and (out / "claims.json").exists())
    workers = {int(line.split()[1]) for line in fake.read_text().splitlines()}
    process.kill()
    process.wait()
    wait_until(lambda: not any(alive(pid) for pid in workers))
    assert ResultsStore(out).finished() == ["fake2024/fig1"]
    before = ResultsStore(out).load("fake2024/fig1")
    process = start(*arguments)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert computed(fake).count("fig1") == 1 and computed(fake).count("fig2") == 2
    assert ResultsStore(out).load("fake2024/fig1").identical(before) and ResultsStore(out).finished() == names


def test_interrupt_keeps_what_is_finished(fake, tmp_path):
    out = tmp_path / "out"
    process = start("fake2024", "--size", "smoke", "--out", str(out), "--jobs", "2", FAKE_SLEEP="600")
    wait_until(lambda: len(computed(fake)) == 3 and (out / "claims.json").exists())
    workers = {int(line.split()[1]) for line in fake.read_text().splitlines()}
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Interrupted: 1 of 4 experiments are finished and kept in" in said and "again to resume" in said
    assert "Traceback" not in said and not any(alive(pid) for pid in workers)
    assert ResultsStore(out).finished() == ["fake2024/fig1"] and (out / "index.html").exists()


def test_same_numbers_whatever_the_workers_and_wherever_the_paper_is(fake, tmp_path):
    """Started by hand from another folder: nothing but the path tells the workers where the paper is."""
    quietly(["fake2024/figX", "fake2024/fig1"], tmp_path / "one")
    # fig10 ends its worker process: the others go on, and it is reported.
    names = [f"{os.path.relpath(FAKE / 'fake2024.py', tmp_path)}/{name}" for name in ("fig1", "fig10", "figX")]
    command = [sys.executable, "-m", "gyrostat", "reproduce", *names, "--size", "smoke", "--out", "two", "--jobs", "2"]
    variables = {**os.environ, "FAKE_DIE": "fig10"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1, done.stderr
    assert "fake2024/fig10 failed: its worker process ended with exit status 9" in done.stdout
    one, two = ResultsStore(tmp_path / "one"), ResultsStore(tmp_path / "two")
    assert one.finished() == two.finished() == ["fake2024/fig1", "fake2024/figX"]
    assert all(one.load(name).identical(two.load(name)) for name in one.finished())
    assert [{**r, "seconds": 0} for r in one.claims()] == [{**r, "seconds": 0} for r in two.claims()]
    run = two.run("fake2024/fig1")
    assert run["reference"] == names[0] and run["paper"] == {"title": "A fake paper", "link": "", "doi": ""}
    assert run["versions"]["jax"] and len(run["code"]) == 12
    page = (tmp_path / "two/pages/fake2024.html").read_text()
    assert f"gyrostat reproduce {names[0]} --size smoke" in page and "not known here" not in page


def test_a_results_folder_outlives_its_paper(fake, tmp_path, monkeypatch):
    """The report of a paper that is not known shows its files and what was stored with its data."""
    from gyrostat.reproduce.report.page import rebuild

    quietly(["fake2024/fig1"], tmp_path)
    monkeypatch.delitem(registry.PAPERS, "fake2024")
    rebuild(tmp_path)
    page = (tmp_path / "pages/fake2024.html").read_text()
    assert "A fake paper" in page and "Figure fig1" in page and "Walks." in page
    assert "Its paper is not known here" in page and "data:image/webp;base64," in page
    monkeypatch.setattr(registry, "_given", {})
    rebuild(tmp_path, [str(FAKE / "fake2024.py")])
    page = (tmp_path / "pages/fake2024.html").read_text()
    assert "Its paper is not known here" not in page and 'class="drawing"' in page


def test_long_experiments_start_first(fake):
    class Listener:
        def __init__(self):
            self.order = []

        def started(self, task):
            self.order.append(task.name)

        def progress(self, task, done, total):
            assert 0 < done <= total

        def finished(self, task, dataset, seconds):
            assert seconds >= 0

    listener = Listener()
    run_tasks([ExperimentTask(f"fake2024/{name}", "smoke", 0) for name in ("figX", "fig2", "fig1")], 1, listener)
    assert listener.order == ["fake2024/fig1", "fake2024/fig2", "fake2024/figX"]


def test_seeds_differ_between_experiments_and_stay():
    assert len({seed_of(k, name) for k in range(20) for name in ("a/fig1", "a/fig2", "b/fig1")}) == 60
    assert seed_of(0, "xu2024/fig1") == 1782756486
    assert 0 <= seed_of(7, "x") < 2**31


def test_natural_order():
    assert sorted(["a/fig10", "a/fig2", "a/figI2", "a/fig1"], key=natural) == [
        "a/fig1",
        "a/fig2",
        "a/fig10",
        "a/figI2",
    ]
