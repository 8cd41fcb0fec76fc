"""The map of coloured pictures: stacked networks are ordinary ones, and the page shows what was run."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import page_records  # noqa: E402
from benchmarks.coloured import evidence, pictures, suite  # noqa: E402
from benchmarks.coloured.methods import LOSSES, METHODS, Batch, Training, irm  # noqa: E402
from benchmarks.coloured.networks import PARAMETRISATIONS, convolutional, started  # noqa: E402
from benchmarks.coloured.study import (  # noqa: E402
    OPTIMISERS,
    MapSetting,
    MapSizes,
    chosen,
    configurations,
    drawn_batches,
    kept,
    row_of,
    trained,
)
from benchmarks.records import BenchmarkRecord  # noqa: E402
from gyrostat.torch import AmplifiedHeterogeneity  # noqa: E402
from torch import nn  # noqa: E402

FEW = MapSizes(seeds=3, steps=30)


def test_a_stacked_network_with_amplified_steps_is_an_ordinary_one():
    """One network of one seed and one configuration, trained by itself with the public optimiser."""
    data = pictures.coloured("digits", (1.0, 0.2), 2, as_pictures=False)
    run = Training(
        PARAMETRISATIONS["rectified"].answer, LOSSES["squared"], torch.tensor([[0.1, 0.2]]), torch.tensor([[3.0, 5.0]])
    )
    stacked = started("rectified", 12, 2, 2)
    model = nn.Sequential(nn.Linear(12, 40, bias=False), nn.ReLU(), nn.Linear(40, 1, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(stacked["first"][1, 1])
        model[2].weight.copy_(stacked["last"][1, 1][None])
    optimizer = AmplifiedHeterogeneity(torch.optim.SGD(model.parameters(), lr=0.2), [0, 1], amplify=5.0)
    draw, update = drawn_batches(data, METHODS["amplified"], "cyclic"), OPTIMISERS["SGD"](run.step_size)
    for t in range(15):
        batch = draw(t)
        for value in stacked.values():
            value.requires_grad_()
        g = METHODS["amplified"].gradient(run, stacked, batch)
        stacked = {key: value.detach() for key, value in update(stacked, g).items()}
        optimizer.zero_grad()
        (0.5 * (model(batch.rows[1]).squeeze(1) - batch.labels[1]) ** 2).mean().backward()
        optimizer.step(int(batch.environment[1]))
    torch.testing.assert_close(stacked["first"][1, 1], model[0].weight.detach(), rtol=0, atol=1e-4)  # float32
    assert optimizer.steps == 15 and not torch.allclose(stacked["first"][1, 1], stacked["first"][1, 0])


def test_the_convolutional_network_is_that_of_pytorch():
    parameters = started("convolutional", 2 * 14 * 14, 2, 3)
    rows = torch.randn(2, 5, 2 * 14 * 14)
    x = rows[1].reshape(5, 2, 14, 14)
    x = nn.functional.conv2d(x, parameters["first"][1, 2].reshape(8, 2, 3, 3), stride=2, padding=1).relu()
    x = nn.functional.conv2d(x, parameters["second"][1, 2].reshape(16, 8, 3, 3), stride=2, padding=1).relu()
    expected = x.permute(0, 2, 3, 1).reshape(5, -1) @ parameters["last"][1, 2]
    torch.testing.assert_close(convolutional(parameters, rows)[1, 2], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["squared", "cross-entropy"])
def test_the_penalty_of_irm_is_the_derivative_by_a_factor_of_the_answers(name):
    w = torch.randn(1, 1, 3, requires_grad=True)
    batch = Batch(torch.randn(1, 8, 3), torch.randn(1, 8).sign(), None)
    run = Training(
        PARAMETRISATIONS["linear"].answer, LOSSES[name], torch.ones(1, 1), torch.full((1, 1), 7.0), progress=1.0
    )
    found = irm(run, {"w": w}, batch)["w"]
    total = torch.zeros(())
    for rows, labels in zip(batch.rows.chunk(2, 1), batch.labels.chunk(2, 1), strict=True):
        factor = torch.ones((), requires_grad=True)
        loss = LOSSES[name](factor * (rows[0] @ w[0, 0]), labels[0]).mean()
        (slope,) = torch.autograd.grad(loss, factor, create_graph=True)
        total = total + (loss + 7.0 * slope**2) / 2 / 7.0
    torch.testing.assert_close(found, torch.autograd.grad(total, w)[0], rtol=1e-4, atol=1e-6)


def test_environments_differ_by_the_colour_alone_and_rows_are_disjoint():
    data = pictures.coloured("digits", (1.0, 0.2), 1, as_pictures=False)
    red = data.train[0, :, -2] > 0
    agrees = (red == (data.train_labels[0] > 0)).float()
    assert agrees[:500].mean() == 1 and abs(agrees[500:].mean() - 0.2) < 5 * np.sqrt(0.16 / 500)
    reversed_rows, truth = data.tests["reversed"]
    assert ((reversed_rows[0, :, -2] > 0) == (truth[0] < 0)).all()
    parts = [data.train[0], data.validation[0], data.tests["grey"][0][0]]
    seen = [{tuple(row[:-2].tolist()) for row in part} for part in parts]
    assert len(seen[0] | seen[1] | seen[2]) == sum(map(len, parts)) == 1797
    whole = pictures.coloured("digits", (1.0, 0.2), 1, as_pictures=True)
    first = whole.train[0, 0].reshape(2, 64)
    assert (first.abs().sum(dim=1) == 0).sum() == 1  # one ink only


def test_pictures_are_read_from_the_folder_of_the_make_target(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "DATA_FOLDER", tmp_path)
    assert not pictures.available("mnist")
    (_, notes) = suite._compared(MapSetting("mnist", "linear"), ("pooled",), FEW)
    assert "make map-data" in notes[0]
    (tmp_path / "mnist").mkdir()
    content = np.arange(2 * 28 * 28, dtype=np.uint8).tobytes()
    sizes = np.array([2, 28, 28], ">u4").tobytes()
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x03" + sizes + content))
    found = pictures._idx(tmp_path / "mnist", "train-images")
    assert found.shape == (2, 28, 28) and found[0, 0, 5] == 5 and found[1, 0, 0] == (28 * 28) % 256


def test_the_configuration_is_chosen_by_validation_rows():
    piece = {"validation 0": np.array([[0.9, 0.7, 0.6]]), "validation 1": np.array([[0.5, 0.65, 0.6]])}
    assert chosen(piece) == 1 and chosen(piece, "mean") == 0
    assert len(configurations(MapSetting("digits", "linear"), METHODS["amplified"])) == 12
    assert {k for _, k in configurations(MapSetting("digits", "convolutional"), METHODS["amplified"])} == {10.0}


def test_pieces_are_kept_and_shown(tmp_path):
    setting = MapSetting("digits", "rectified")
    methods = ("pooled", "one environment", "amplified", "V-REx", "IRMv1", "GroupDRO", "Fish", "no colour", "placebo")
    pieces = {method: kept(setting, method, FEW, tmp_path) for method in methods}
    assert len(list(tmp_path.glob("*.json"))) == len(methods)
    again = kept(setting, "Fish", FEW, tmp_path)
    anew = trained(setting, "Fish", FEW)
    for key, values in anew.items():
        assert values.shape == (3, 12) and np.array_equal(values, again[key])
    rows = [row_of(setting, method, pieces[method], pieces["pooled"]) for method in methods]
    assert rows[0]["gain"] == (0.0, 0.0, 0.0) and rows[2]["strength"] in (3.0, 10.0, 30.0)
    about = {**evidence.described(setting), "seeds": 3, "steps": 30, "rows": rows}
    found = evidence.MapResults([BenchmarkRecord("coloured/x", 0.1, "share", settings=about)])
    shown = evidence.values(found, ["Something is left out."])
    assert set(shown) == set(page_records.values("coloured-digits"))
    assert shown["digits"]["rows"][0][:2] == ["rectified", f"{rows[0]['reversed'][1]:.3f}"]
    assert shown["seeds"] == 3 and shown["diagonal-one-environment"] == "not run" and shown["mnist"]["rows"] == []
    evidence.draw(found, tmp_path)
    assert (tmp_path / f"{evidence.PICTURE}.png").stat().st_size > 10_000


def test_every_method_and_network_of_the_map_exists():
    for setting, methods in suite.settings().items():
        assert set(methods) <= set(METHODS) and "pooled" in methods and setting.network in PARAMETRISATIONS
    assert len({setting.name for setting in suite.settings()}) == len(suite.settings())


def test_the_example_of_the_page_runs(capsys):
    page = page_records.EVIDENCE.parent / "coloured-digits.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile(code, "page", "exec"), {"__name__": "example"})
    assert "Largest stable step" in capsys.readouterr().out
