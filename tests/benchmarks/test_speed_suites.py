"""The speed suites: every record, and loops of the peers that compute what the library computes. Timings are never asserted."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace

import numpy as np
import pytest

import gyrostat as gs
from benchmarks.records import curve_panels
from benchmarks.speed import core, core_peers, deep, gd, lab, sweep, torch_batches
from gyrostat.models.symmetric_coordinates import smat
from gyrostat.sweeps.store import stored_arrays

SMALL = core_peers.CoreSetting(dimension=5, num_samples=40, spread=2.0, init_scale=0.1)
OPERATIONS = {name: core.TimedOperation(lambda: None, 1) for name in core.OPERATIONS}


def trajectory(step, designs, steps: int, wrap=lambda x: x):
    """Cyclic HeteroSGD by a naive step: the products U U^T after every step."""
    U, products = wrap(SMALL.start()), []
    for t in range(steps):
        X, y = designs[t % 2]
        batch = [(wrap(X[rows]), wrap(y[rows])) for rows in (slice(15), slice(15, None))]
        U = step(U, batch, SMALL.num_samples, SMALL.step_size)
        products.append(np.asarray(U @ U.T))
    return np.array(products)


def ours_on(designs, steps: int) -> np.ndarray:
    """The same by the library, on the same matrices given as data."""
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((SMALL.dimension, 2)))[0]
    law = gs.Finite([1 - SMALL.spread, 1 + SMALL.spread])
    matrices = np.array([smat(x) for X, _ in designs for x in X])
    labels = np.repeat([0, 1], SMALL.num_samples)
    data = gs.DenseData(matrices, np.concatenate([y for _, y in designs]), labels)
    problem = gs.Problem(gs.Environments(basis[:, :1], basis[:, 1:], law), data)
    product = gs.diagnostics.Diagnostic("product", lambda view: view.product, ("row", "column"))
    algorithm = gs.HeteroSGD(SMALL.step_size, init_scale=SMALL.init_scale, order="cyclic")
    found = gs.run(algorithm, problem, num_steps=steps, record=[product], record_at=range(1, steps + 1))
    return found["product"].values[0]


def test_the_numpy_loop_follows_the_library_on_the_same_matrices() -> None:
    designs = core_peers.numpy_designs(SMALL)
    expected = trajectory(core_peers.numpy_step, designs, 30)
    assert np.abs(expected[-1] - expected[0]).max() > 0.1  # it moves
    np.testing.assert_allclose(ours_on(designs, 30), expected, atol=1e-10)


def test_the_torch_loop_follows_the_numpy_loop() -> None:
    torch = pytest.importorskip("torch")
    designs = core_peers.numpy_designs(SMALL)
    found = trajectory(core_peers.torch_step, designs, 30, torch.from_numpy)
    np.testing.assert_allclose(found, trajectory(core_peers.numpy_step, designs, 30), atol=1e-10)


@pytest.mark.parametrize("loop", [core_peers.numpy_fresh, core_peers.torch_fresh])
def test_fresh_loops_learn_the_invariant_signal(loop) -> None:
    if loop is core_peers.torch_fresh:
        pytest.importorskip("torch")
    setting = core_peers.CoreSetting(dimension=6, num_samples=2000, spread=0.0, step_size=0.2, init_scale=0.1)
    U = np.asarray(loop(setting, 80))
    np.testing.assert_allclose(U @ U.T, setting.targets()[0], atol=0.2)


@pytest.mark.parametrize("fixed", [False, True])
def test_our_side_runs_what_the_records_say(fixed) -> None:
    algorithm, problem = core.cell(SMALL, fixed=fixed)
    assert type(problem.measurements) is (gs.FixedGaussian if fixed else gs.FreshGaussian)
    assert float(problem.measurements.num_samples) == SMALL.num_samples and problem.shape == (5, 5)
    assert float(algorithm.schedule.step_size) == SMALL.step_size
    found = core.ours(SMALL, 3, seeds=1, fixed=fixed)
    assert found.values["signal"].shape == (1, 1, 1) and np.isfinite(found.values["signal"]).all()


def test_the_core_suite_gives_every_record(monkeypatch) -> None:
    monkeypatch.setattr(core, "ours", lambda *args, **kwargs: sum(range(1000)))  # no compiling here
    megabytes = {"extra": 2.0, "first_run": 3.0, "total": 500.0}
    monkeypatch.setattr(core, "peak_memory", lambda side, setting, steps: megabytes)
    monkeypatch.setattr(core, "operations", lambda d: OPERATIONS)
    sizes = core.CoreSizes(
        setting=SMALL,
        large=SMALL,
        steps=4,
        seeds=2,
        naive_steps=1,
        brute_steps=2,
        repeats=1,
        few_repeats=1,
        dimensions=(5, 6, 7, 8),
        counts=(1, 2),
        samples=(10, 1000),
        curve_steps=4,
    )
    said: list[str] = []
    report = core.run(said.append, sizes)
    ids = [record.id for record in report.records]
    assert len(said) == len(core.GROUPS) and len(set(ids)) == len(ids)
    assert all("fresh" in name or "fixed" in name for name in ids)
    assert json.loads(json.dumps([record.as_dict() for record in report.records]))
    assert len(curve_panels(report.records)) == 3


TINY = gd.DescentSetting(dimension=6, width=3, step_size=0.05, scale=0.5)


def test_the_descent_loops_follow_the_library() -> None:
    torch = pytest.importorskip("torch")
    X = gd.numpy_factorisation(TINY, 40)
    np.testing.assert_allclose(gd.torch_factorisation(TINY, 40).detach().numpy(), X, atol=1e-12)
    product = gs.diagnostics.Diagnostic("product", lambda view: view.product, ("row", "column"))
    truth = gs.Environments.diagonal(6, [1.0, 1.0])
    symmetric = gs.GradientDescent(0.05, width=3, symmetric=True, start=gs.starts.Given(TINY.one_factor()))
    options = {"num_steps": 40, "record": [product], "record_at": 1}
    found = gs.run(symmetric, gs.Problem(truth, gs.Identity()), **options)
    np.testing.assert_allclose(found["product"].values[0, -1], X @ X.T, atol=1e-12)

    A = gd.design(TINY, 60)
    F, G = gd.numpy_sensing(TINY, A, 40)
    other = gd.torch_sensing(TINY, torch.from_numpy(A), 40)
    np.testing.assert_allclose((other[0] @ other[1].T).numpy(), F @ G.T, atol=1e-12)
    data = gs.DenseData(60**0.5 * A.reshape(-1, 6, 6), 60**0.5 * A @ TINY.target().ravel(), np.zeros(60, dtype=int))
    problem = gs.Problem(gs.Observed((6, 6), 1), data)
    found = gs.run(gs.GradientDescent(0.05, width=3, start=gs.starts.Given(*TINY.two_factors())), problem, **options)
    np.testing.assert_allclose(found["product"].values[0, -1], F @ G.T, atol=1e-12)


def test_the_gd_suite_gives_every_record(monkeypatch) -> None:
    outcome = SimpleNamespace(ends={"reached": np.array([[5, -1, 7, 9, -1, 6, 8, 7]])})

    def stand_in(algorithm, problem, steps, runs, **options):
        sum(range(1000 * steps))  # no compiling here, but more steps take longer
        return outcome

    monkeypatch.setattr(gd, "_ours", stand_in)
    sizes = gd.GdSizes(
        factorisation=TINY,
        sensing=TINY,
        iterations=3,
        runs=2,
        naive_iterations=2,
        dimensions=(6, 9),
        curve_runs=2,
        samples=(20, 30),
        sensing_iterations=3,
        sharing=4,
        repeats=1,
        limit=10,
    )
    said: list[str] = []
    report = gd.run(said.append, sizes)
    ids = [record.id for record in report.records]
    assert len(said) == len(gd.GROUPS) and len(set(ids)) == len(ids)
    assert all("factorisation" in name or "sensing" in name for name in ids)
    assert json.loads(json.dumps([record.as_dict() for record in report.records]))
    assert len(curve_panels(report.records)) == 1
    assert {r.goal for r in report.records if "-shared-single-" in r.id} == {8.0}
    assert {r.goal for r in report.records if "-one-single-" in r.id} == {2.0}


FEW = deep.NetworkSetting(width=6, warm_up=20, observed=((1, 0),))


def test_the_network_loop_follows_the_library() -> None:
    """With one observed entry both see the same in every step."""
    pytest.importorskip("torch")
    found = deep.torch_sgd(FEW, 60, "float64").numpy()
    cell = deep.cell(FEW, gs.starts.Given(*FEW.layers()))
    result = gs.run(*cell, num_steps=60, record=["product"], record_at=[0, 60], reduction="never")
    start, end = result["product"].values[0]
    np.testing.assert_allclose(end, found, atol=1e-12)
    assert abs(end[1, 0] - FEW.eps) < abs(start[1, 0] - FEW.eps) / 2  # it learns the entry
    assert deep.torch_sgd(FEW, 1).dtype.itemsize == 4  # PyTorch's own precision


def test_the_deep_suite_gives_every_record(monkeypatch) -> None:
    pytest.importorskip("torch")
    asked = []

    def stand_in(network, start, steps, runs, **options):
        asked.append((network.depth, type(start).__name__, runs, options.get("reduction", "auto")))
        sum(range(1000 * steps))  # no compiling here, but more steps take longer

    monkeypatch.setattr(deep, "_ours", stand_in)
    sizes = deep.DeepSizes(
        network=FEW,
        runs=2,
        steps=3,
        krylov_runs=2,
        krylov_steps=3,
        plain_steps=3,
        naive_steps=2,
        seeds=2,
        figure_steps=3,
        collapse=(20, 400),
        repeats=1,
    )
    said: list[str] = []
    report = deep.run(said.append, sizes)
    goals = {record.id: record.goal for record in report.records}
    assert len(said) == len(deep.GROUPS) and said[-1].endswith("(4 of 4)") and len(goals) == len(report.records) == 7
    assert all(name.startswith(("deep/reduced", "deep/plain")) for name in goals)
    assert goals["deep/reduced-l3-vs-torch"] == goals["deep/reduced-l4-vs-torch"] == 1000
    assert goals["deep/plain-l3-vs-torch"] == goals["deep/plain-l4-vs-torch"] == 20
    assert goals["deep/reduced-collapse"] == 0.8
    assert next(r for r in report.records if r.id == "deep/reduced-figure-1").settings["seconds"] > 0
    assert (4, "Orthogonal", 2, "always") in asked and (4, "FanInUniform", 1, "never") in asked
    assert json.loads(json.dumps([record.as_dict() for record in report.records]))


def test_without_pytorch_the_suite_says_so(monkeypatch) -> None:
    monkeypatch.setattr(deep, "peer_torch", lambda: None)
    monkeypatch.setattr(deep, "_ours", lambda network, start, steps, runs, **options: sum(range(1000 * steps)))
    report = deep.run(lambda text: None, deep.DeepSizes(network=FEW, runs=2, collapse=(20, 400), repeats=1))
    assert [record.id for record in report.records] == ["deep/reduced-collapse"]
    assert len(report.notes) == 1 and "PyTorch" in report.notes[0]


def test_our_side_of_the_network_runs_and_is_reduced_where_it_says() -> None:
    found = deep._ours(FEW, gs.starts.Orthogonal(), 5, 2, reduction="always")
    assert found.values["singular_values"].shape == (1, 2, 1, 2) and np.isfinite(found.values["singular_values"]).all()


def zeros(chunk) -> dict[str, np.ndarray]:
    """The arrays of the cells of a chunk."""
    arrays = stored_arrays(chunk.spec).items()
    return {name: np.zeros((chunk.items, *a.sizes(chunk.spec)), dtype=a.dtype) for name, a in arrays}


def test_the_sweep_suite_gives_every_record(monkeypatch) -> None:
    """With stand-ins for what computes: no processes are started here."""
    made: list[tuple[str, int]] = []
    monkeypatch.setattr("gyrostat.sweeps.run_sweep", lambda spec, out, jobs: made.append(("sweep", jobs)))
    local = lambda jobs: contextlib.nullcontext(SimpleNamespace(jobs=jobs, busy={}, idle={}))  # noqa: E731
    monkeypatch.setattr("gyrostat.sweeps.executors.local_executor", local)
    monkeypatch.setattr(sweep, "through", lambda engine, sizes: made.append(("through", engine.jobs)))
    monkeypatch.setattr(sweep, "allow_all_cores", lambda: None)
    monkeypatch.setattr("gyrostat.sweeps.plan.Chunk.compute", lambda chunk: (zeros(chunk), 0.0))
    stand_in = SimpleNamespace(run=lambda *args, **options: made.append(("run", np.size(options["seeds"]))))
    monkeypatch.setattr(sweep, "gs", stand_in)
    sizes = sweep.SweepSizes(dimension=3, num_steps=4, seeds=2, step_sizes=2, spreads=2, loop_runs=3, repeats=1)
    report = sweep.run(lambda text: None, sizes)
    found = {record.id: record for record in report.records}
    assert set(found) == {
        "sweep/cells-vs-loop",
        "sweep/cells-vs-seeds-vmapped",
        "sweep/two-workers",
        "sweep/two-workers-processor",
        "sweep/two-workers-rate",
        "sweep/checksums",
    }
    assert found["sweep/checksums"].settings["cells_timed"] == 4
    assert found["sweep/two-workers"].goal == 0.85 and found["sweep/cells-vs-loop"].settings["cells_timed"] == 4
    assert found["sweep/cells-vs-loop"].settings["minutes_for_50_x_50"] > 0
    assert {("sweep", 0), ("through", 1), ("through", 2), ("run", 1)} <= set(made)
    assert json.loads(json.dumps([record.as_dict() for record in report.records]))


def test_lab_suite_times_a_move_of_both_sides() -> None:
    report = lab.run(lambda text: None, lab.LabSizes(num_steps=100, seeds=2, repeats=1))
    assert [r.id for r in report.records] == ["lab/hetero", "lab/pooled"]
    assert all(r.ours > 0 and r.ratio is not None for r in report.records)


def test_the_torch_suite_compares_batches_and_building():
    pytest.importorskip("torch")
    sizes = torch_batches.TorchSizes(
        rows=600,
        environments=3,
        group_batches=5,
        many_rows=500,
        some_rows=500,
        many_environments=50,
        repeats=1,
        few_repeats=1,
    )
    report = torch_batches.run(lambda text: None, sizes)
    assert [record.id for record in report.records] == [
        "torch/batch-vs-torch",
        "torch/batch-vs-groups",
        "torch/build-many-labels",
        "torch/build-many-environments",
    ]
    assert all(record.ours > 0 and record.goal for record in report.records)
    labels = np.arange(60) % 3
    batches = list(torch_batches.group_batches(labels, 8, 20))
    assert all(len(set(labels[batch])) == 1 and len(set(batch)) == 8 for batch in batches)
