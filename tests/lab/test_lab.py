"""The laboratory without a browser: controls, the engine against the library, the server, its guard and its workers."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import gyrostat as gs
from gyrostat import cli
from gyrostat.engine.numpy_backend.random_draws import SEEDS_AT_ONCE
from gyrostat.engine.numpy_backend.simulate import simulate_blocks
from gyrostat.errors import GyrostatError
from gyrostat.lab import code, jobs, runs
from gyrostat.lab.controls import Control
from gyrostat.lab.laboratories import LABS, lab_of
from gyrostat.lab.start import chosen

testclient = pytest.importorskip("starlette.testclient", reason="needs the extra lab")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")
SMALL = {"dimension": "5", "num_steps": "100", "seeds": "6", "num_samples": "400"}


LAW = gs.TwoPoint(mean=1.0, spread=4.0, rank=2)


def cell(kind: Any, d: int, measurements: Any, law: Any = LAW, step: float = 0.05, **options: Any) -> Any:
    return kind(step, **options), gs.Problem(gs.RandomEnvironments(d, rank=2, law=law, overlap=0.2), measurements)


@pytest.mark.parametrize(
    ("kind", "options", "measurements", "law"),
    [
        (gs.HeteroSGD, {"order": "shuffled", "amplify": 1.5}, gs.FreshGaussian(400), LAW),
        (gs.HeteroSGD, {"amplify": 1.5}, gs.Identity(), LAW),
        (gs.PooledSGD, {}, gs.Identity(), LAW),
        (gs.PooledSGD, {}, gs.FreshGaussian(1400), gs.Uniform(mean=1.0, spread=4.0, rank=2)),
    ],
)
def test_engine_gives_the_numbers_of_run(kind, options, measurements, law):
    # The same numbers summed in another order: 1e-12 is far above rounding and far below any other draw. (Fresh batches of
    # HeteroSGD in iid order and of PooledSGD are compared below, with the copied program.)
    at = cell(kind, 7, measurements, law, **options)
    record = ("signal", "spurious", "error", "distance")
    if isinstance(measurements, gs.Identity):  # whose programs are compiled soon
        record += ("distance_to_mean", "loss", "singular_values")
    mine = runs.run(at, record, 120, 3)
    found = gs.run(*at, num_steps=120, seeds=3, record=record)
    for name in record:
        np.testing.assert_allclose(mine[name], found[name].values, rtol=0, atol=1e-12)
    assert mine["step"].tolist() == found.step.values.tolist()


@pytest.mark.parametrize("figure", ["xu2024/fig1", "xu2024/fig6"])
def test_single_precision_looks_the_same(figure):
    lab, record = lab_of("environments"), ("signal", "spurious", "error")
    setting = lab.read(next(preset.values for preset in lab.presets if preset.name == figure))
    for side in lab.sides(setting):
        at, found = side.build(), {}
        for precision in runs.backend_for(at, record).precisions:
            (*_, found[precision]) = runs.parts(at, record, setting["num_steps"], 4, precision)
        # A line is a 200th of the plot wide; rounding, and what hundreds of steps make of it, stays far below that.
        assert found["single"]["step"].tolist() == found["double"]["step"][::2].tolist()  # fewer are looked at
        for name in record:
            np.testing.assert_allclose(found["single"][name], found["double"][name][:, ::2], rtol=0, atol=5e-5)


def test_divergence_is_that_of_run():
    at = cell(gs.HeteroSGD, 7, gs.Identity(), LAW, step=0.9)
    mine = runs.run(at, ("distance",), 100, 3)
    found = gs.run(*at, num_steps=100, seeds=3, record=["distance"])
    assert (mine["diverged"] == found.diverged.values).all() and (mine["diverged"] > 0).all()
    assert (np.isnan(mine["distance"]) == np.isnan(found.distance.values)).all()


def test_nothing_is_compiled_when_a_dimension_moves():
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: compiled.append(name))
    jax.jit(lambda x: x + len(compiled))(1.0)
    assert any("compile" in name for name in compiled)  # it would be heard of
    for d in (5, 6, 40):
        at = cell(gs.HeteroSGD, d, gs.FreshGaussian(300 + d), LAW, step=0.001 * d, init_scale=0.001 * d)
        runs.run(at, ("distance",), 100 + d, 2)
        if d == 5:
            compiled.clear()
    assert not any("compile" in name for name in compiled)


@pytest.mark.parametrize("name", LABS)
def test_every_preset_can_be_read_and_says_what_it_runs(name):
    lab = lab_of(name)
    for preset in lab.presets:
        setting = lab.read(preset.values)
        assert chosen(code.state(lab, setting)) == (lab, setting)
        assert compile(code.python(lab, setting), preset.name, "exec")
        assert code.command(lab, setting).startswith("gyrostat lab --state ")


def test_presets_cover_the_figures_of_the_papers():
    names = {preset.name for lab in LABS.values() for preset in lab.presets}
    drawn = {re.sub(r"(-.*|(?<=\.2)[abc])$", "", name) for name in names}
    papers = ("xu2024", "xiong2024", "wang2023")
    assert drawn == {f"{p}/{e.name}" for p in papers for e in _experiments(p) if e.name.startswith("fig")}


def _experiments(paper: str) -> Any:
    import importlib

    return importlib.import_module(f"gyrostat.papers.{paper}").EXPERIMENTS


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "1e9", "two", "0.5; import os"])
def test_bad_numbers_are_refused(text):
    control = Control("spread", "", "M", "number", 1.0, 0.0, 20.0)
    with pytest.raises(GyrostatError, match="spread must be a number between 0 and 20"):
        control.read(text)


def test_copied_python_gives_the_numbers_of_the_curves(capsys):
    lab = lab_of("environments")
    setting = lab.read(SMALL)
    exec(code.python(lab, setting), {})
    printed = dict(re.findall(r"(\w+) (\{.*\})", capsys.readouterr().out))
    for i, side in enumerate(("hetero", "pooled")):
        *_, last = jobs.curves("environments", setting, i)
        ends = {key: curve["middle"][-1] for key, curve in last["curves"].items()}
        copied = json.loads(printed[side].replace("'", '"'))
        assert ends == pytest.approx(copied, rel=0, abs=1e-12)


def test_command_writes_the_curves(tmp_path: Path):
    path = tmp_path / "curves.csv"
    state = "lab=environments&" + "&".join(f"{name}={value}" for name, value in SMALL.items())
    found = CliRunner().invoke(cli.app, ["lab", "--state", state, "--csv", str(path)])
    assert found.exit_code == 0, found.output
    rows = list(csv.DictReader(path.open()))
    assert {row["side"] for row in rows} == {"hetero", "pooled"}
    lab, setting = chosen(state)
    *_, last = jobs.curves(lab.name, setting, 1)
    mine = [float(row["median"]) for row in rows if (row["side"], row["curve"]) == ("pooled", "signal")]
    assert mine == pytest.approx(last["curves"]["signal"]["middle"])


def test_a_bad_state_is_one_sentence():
    with pytest.raises(GyrostatError, match="unknown setting 'stepsize': did you mean 'step_size'"):
        chosen("lab=environments&stepsize=1")
    with pytest.raises(GyrostatError, match="FixedGaussian keeps data"):
        chosen("measurements=fixed&law=gaussian")


def test_phase_diagram_begins_where_one_is_and_knows_its_boundary():
    setting = lab_of("environments").read({**SMALL, "num_steps": "200"})
    plane, *cells = [message for message in jobs.phase("environments", setting) if message is not None]
    assert plane["boundary"][0] == "predicted transition M*"
    assert (plane["x"][cells[0]["j"]], plane["y"][cells[0]["i"]]) == (6.0, 0.05)
    assert sorted((c["i"], c["j"]) for c in cells) == [(i, j) for i in range(9) for j in range(9)]
    # At the step size in the middle, M = 1 keeps the spurious signal and M = 11 forgets it.
    value = {(c["i"], c["j"]): c["value"] for c in cells}
    assert value[4, 0] < 0.5 < value[4, 8]


def test_noise_of_other_seeds_is_other_noise():
    lab = lab_of("environments")
    setting = lab.read(SMALL)
    side, record, grid = lab.sides(setting)[0], ("signal",), np.arange(0, 101, 10)
    at = side.build()

    def ends(first: int, seeds: int) -> np.ndarray:
        (*_, found) = simulate_blocks(at, record, grid, first, seeds, float)
        return found["signal"]

    one, two, three = ends(0, 4), ends(SEEDS_AT_ONCE, 4), ends(0, 4)
    assert (one == three).all() and (one[:, -1] != two[:, -1]).all()
    assert np.allclose(ends(0, 2), one[:2], rtol=0, atol=1e-14)  # BLAS may sum fewer runs in another order


HOST = {"Host": "127.0.0.1:8765"}


@pytest.fixture(scope="module")
def client():
    from gyrostat.lab.desk import Desk
    from gyrostat.lab.server import application

    with testclient.TestClient(application({HOST["Host"]}, Desk(1, 1)), base_url=f"http://{HOST['Host']}") as found:
        yield found


def ask(client: Any, path: str, body: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    answer = client.post(path, json={"window": "w", "number": 1, **body}, headers=headers)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_page_is_whole_and_asks_nobody_else(client):
    page = client.get("/")
    assert page.status_code == 200 and "default-src 'none'" in page.headers["content-security-policy"]
    wanted = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert wanted and all(client.get("/" + path).status_code == 200 for path in wanted)
    root = Path(runs.__file__).parent / "static"
    for path in root.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"^\s*//.*$|[^:]// .*$", "", text, flags=re.M).replace("://", "://"), path.name
        assert "innerHTML" not in text, path.name
    for path in re.findall(r'from "\./([^"]+)"', (root / "main.js").read_text()):
        assert client.get("/" + path).status_code == 200


def test_drawing_streams_curves_conditions_and_code(client):
    messages = ask(
        client, "/api/draw", {"lab": "factors", "setting": {"num_steps": "100", "seeds": "2", "dimension": "8"}}
    )
    kinds = [message["kind"] for message in messages]
    assert kinds[0] == "begin" and kinds[-1] == "end" and {"conditions", "predictions", "curves"} <= set(kinds)
    assert {m["side"] for m in messages if m["kind"] == "curves"} == {"symmetric", "asymmetric", "stepped"}
    assert "gs.run(" in messages[0]["python"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"lab": "nowhere", "setting": {}}, "unknown lab 'nowhere'"),
        ({"lab": "environments", "setting": {"spread": "x"}}, "spread must be a number"),
        (
            {"lab": "environments", "setting": {"dimension": "8", "rank": "8", "spurious_rank": "8"}},
            "do not fit in dimension",
        ),
        ({"lab": "factors", "setting": {"measurements": "sensing", "dimension": "200"}}, "takes too long"),
        ({"lab": "factors", "setting": [1]}, "setting must be a dict"),
        ({"lab": "factors"}, "setting must be a dict"),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(client, body, said):
    answer = client.post("/api/draw", json={"window": "w", "number": 1, **body})
    assert answer.status_code == 422 and said in answer.json()["text"]


def test_guard(client):
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    body = {"window": "w", "number": 1, "lab": "factors", "setting": {}}
    assert client.post("/api/draw", json=body, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/draw", content=json.dumps(body), headers={"Content-Type": "text/plain"}).status_code == 403
    assert client.post("/api/draw", json={**body, "window": "x" * 30_000}).status_code == 422
    assert client.get("/../server.py").status_code == 404
    assert client.post("/api/draw", content=b"[", headers={"Content-Type": "application/json"}).status_code == 422


def test_table_of_an_example_and_of_a_file(client):
    (columns, _) = ask(client, "/api/table", {"example": "sites"})
    assert columns["environment"] == "site" and columns["target"] == "outcome"
    asked = {"example": "sites", "target": "outcome", "environment": "site", "missing": "error"}
    found = next(m for m in ask(client, "/api/table", asked) if m["kind"] == "diagnosis")
    assert {f["name"]: f["verdict"] for f in found["features"]}["protocol"] == "removed"
    text = "a,<b>\n1,x\n2,y\n"
    (columns, _) = ask(client, "/api/table", {"text": text})
    assert columns["columns"] == ["a", "<b>"]
    failed = ask(client, "/api/table", {**asked, "text": text} | {"example": "nothing"})
    assert failed[0]["kind"] == "failed" or "unknown example" in str(failed)


def test_a_newer_request_ends_the_older_and_windows_do_not_disturb_each_other():
    from gyrostat.lab.desk import Desk

    async def scene() -> tuple[list[str], list[str], list[str]]:
        desk = Desk(1, 1)
        setting = lab_of("environments").read({"seeds": "64", **{k: v for k, v in SMALL.items() if k != "seeds"}})
        parts = [(0, "curves", {"lab": "environments", "setting": setting, "side": 0})]

        async def kinds(window: str, number: int) -> list[str]:
            return [message["kind"] async for message in desk.messages(window, "draw", number, parts)]

        try:
            old, other = asyncio.create_task(kinds("a", 1)), asyncio.create_task(kinds("b", 1))
            await asyncio.sleep(0.05)
            new = asyncio.create_task(kinds("a", 2))
            ended = await asyncio.wait_for(old, 5)  # at once: the first compilation alone takes longer than that
            late = await kinds("a", 1)
            assert late == ["superseded"]
            return ended, await new, await other
        finally:
            desk.stop()

    old, new, other = asyncio.run(scene())
    assert old[-1] == "superseded" and "curves" not in old
    assert new[-1] == "curves" and other[-1] == "curves"


def test_a_killed_worker_is_told_and_started_again():
    from gyrostat.lab.desk import Desk

    async def scene() -> None:
        desk = Desk(1, 1)
        parts = [(0, "columns", {"path": "example:sites"})]
        try:
            task = asyncio.create_task(anext(desk.messages("a", "table", 1, parts)))
            await asyncio.sleep(0.1)
            desk.workers[0]._process.kill()
            assert "computing process ended" in (await task)["text"]
            assert (await anext(desk.messages("a", "table", 2, parts)))["kind"] == "columns"
        finally:
            desk.stop()

    asyncio.run(scene())


def test_every_address_at_once_is_refused():
    found = CliRunner().invoke(cli.app, ["lab", "--host", "0.0.0.0", "--no-browser"])
    assert isinstance(found.exception, GyrostatError) and "one address" in str(found.exception)


def test_a_taken_port_is_one_sentence():
    from gyrostat.lab.start import _bound

    first = _bound("127.0.0.1", None)
    with first, pytest.raises(GyrostatError, match="cannot be used"):
        _bound("127.0.0.1", first.getsockname()[1])
    with _bound("127.0.0.1", None) as other:
        assert other.getsockname()[1] > 0


def test_a_dropped_job_is_not_worked_on_and_the_background_waits(monkeypatch):
    from gyrostat.lab import process

    sent: list[tuple[int, dict[str, Any]]] = []
    asked: list[tuple[int, str, dict[str, Any]]] = []

    class Line:
        def poll(self) -> bool:
            return bool(asked)

        def recv(self) -> Any:
            return asked.pop(0)

        def send(self, message: Any) -> None:
            sent.append(message)

    def count(upto: int) -> Any:
        return iter([{"kind": "number", "value": i} for i in range(upto)])

    monkeypatch.setitem(jobs.JOBS, "phase", count)
    monkeypatch.setitem(jobs.JOBS, "curves", count)
    bench = process.Bench(Line())
    asked += [(1, "phase", {"upto": 9}), (2, "curves", {"upto": 1})]
    for _ in range(3):
        bench.listen()
        bench.step()
    assert [n for n, _ in sent] == [2, 2, 1]  # its message, its end, then the background
    asked.append((1, "drop", {}))
    asked.append((3, "curves", {"upto": 0}))
    bench.listen()
    bench.step()
    assert sent[-1] == (3, {"kind": "end"}) and not bench.background
