"""The report equals what brute force finds on small networks, and leaves the network as it was."""

from __future__ import annotations

import copy
import json
import sys
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

from gyrostat.errors import GyrostatError  # noqa: E402
from gyrostat.torch import environment_report, project_out  # noqa: E402
from torch import nn  # noqa: E402


def loss(model, batch):
    return 0.5 * ((model(batch[0]).squeeze(-1) - batch[1]) ** 2).mean()


def regressions(spread=1.0, count=3, rows=50):
    """Rows of environments that disagree on the effect of the last of four features."""
    generator = torch.Generator().manual_seed(0)
    found = {}
    for e in range(count):
        X = torch.randn(rows, 4, generator=generator, dtype=torch.float64) * torch.tensor([1.0, 0.5, 2.0, 1.0])
        found[f"e{e}"] = (X, X[:, 0] + spread * (e - 1) * X[:, 3])
    return found


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Dropout(0.5), nn.Linear(3, 1)).double()


def brute_force(model, batches):
    """Gradients (environments, numbers) and Hessians of a network in evaluation mode, by the whole Jacobian."""
    model = copy.deepcopy(model).eval()
    names, values = zip(*model.named_parameters(), strict=True)
    sizes = [v.numel() for v in values]

    def at(flat, batch):
        parts = [x.reshape(v.shape) for x, v in zip(flat.split(sizes), values, strict=True)]
        return loss(lambda X: torch.func.functional_call(model, dict(zip(names, parts, strict=True)), X), batch)

    flat = torch.cat([v.detach().flatten() for v in values])
    gradients = torch.stack([torch.func.grad(at)(flat, batch) for batch in batches.values()])
    hessians = torch.stack([torch.func.hessian(at)(flat, batch) for batch in batches.values()])
    return gradients.numpy(), hessians.numpy()


def test_gradients_directions_and_shares_are_those_of_the_covariance():
    model, batches = network(), regressions()
    found = environment_report(model, loss, batches, directions=2)
    G, _ = brute_force(model, batches)
    D = G - G.mean(axis=0)
    values, vectors = np.linalg.eigh(D.T @ D)
    np.testing.assert_allclose(found.direction_shares, values[:-3:-1] / values.sum(), rtol=1e-10)
    np.testing.assert_allclose(found.cosines, (G @ G.T) / np.outer(*[np.linalg.norm(G, axis=1)] * 2), rtol=1e-10)
    assert found.disagreement == pytest.approx((D**2).sum() / 3 / (G.mean(axis=0) ** 2).sum(), rel=1e-10)
    first = D[:, :12].reshape(3, 3, 4)
    np.testing.assert_allclose(found.by_input, (first**2).sum(axis=(0, 1)) / (first**2).sum(), rtol=1e-10)
    assert list(found.by_tensor) == ["0.weight", "0.bias", "3.weight", "3.bias"]
    assert found.by_tensor["0.weight"] == pytest.approx((first**2).sum() / (D**2).sum(), rel=1e-10)
    assert sum(found.by_tensor.values()) == pytest.approx(1) and sum(
        found.direction_by_tensor[1].values()
    ) == pytest.approx(1)
    u = vectors[:, -1][:12].reshape(3, 4)
    top = np.linalg.svd(u)[2][0]
    np.testing.assert_allclose(np.abs(found.input_directions[0] @ top), 1, rtol=1e-10)
    np.testing.assert_allclose(found.input_mean, np.mean([X.mean(dim=0).numpy() for X, _ in batches.values()], axis=0))
    assert found.losses == [loss(copy.deepcopy(model).eval(), batch).item() for batch in batches.values()]
    # What varies is the last feature, and with many rows that is what the first direction acts on.
    many = environment_report(model, loss, regressions(rows=5000), iterations=1)
    assert many.by_input[3] > 0.95 and abs(many.input_directions[0][3]) > 0.95


@pytest.mark.parametrize("spread", [1.0, 40.0])
def test_sharpness_is_the_largest_eigenvalue(spread):
    model, batches = network(1), regressions(spread)
    found = environment_report(model, loss, batches, amplify=5.0)
    _, H = brute_force(model, batches)
    tops = np.linalg.eigvalsh(H)[:, -1]
    if spread == 40.0:  # far from a minimum: the eigenvalue of largest size is negative somewhere
        assert (np.abs(np.linalg.eigvalsh(H)).max(axis=1) > tops * 1.01).any()
    # The iteration stops when a step changes the value by 1e-5 of it.
    np.testing.assert_allclose(found.sharpness, tops, rtol=1e-3)
    assert found.pooled_sharpness == pytest.approx(np.linalg.eigvalsh(H.mean(axis=0))[-1], rel=1e-3)
    amplified = np.linalg.eigvalsh(H + 5.0 * (H - H.mean(axis=0)))[:, -1]
    assert found.largest_stable_step == pytest.approx(2 / amplified.max(), rel=1e-3)


def test_steps_above_the_largest_stable_one_diverge_in_the_sharpest_environment():
    batches = regressions()
    report = environment_report(nn.Linear(4, 1).double(), loss, batches)
    X, y = batches[report.environments[int(np.argmax(report.sharpness))]]
    for factor, diverges in ((0.95, False), (1.05, True)):
        model = nn.Linear(4, 1).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=factor * report.largest_stable_step)
        for _ in range(400):
            optimizer.zero_grad()
            value = loss(model, (X, y))
            value.backward()
            optimizer.step()
        assert (value.item() > 1e3) == diverges


def test_the_network_stays_as_it_was():
    model = network().train()
    before, random = copy.deepcopy(model.state_dict()), torch.random.get_rng_state()
    environment_report(model, loss, regressions())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters()) and all(module.training for module in model.modules())
    assert torch.equal(torch.random.get_rng_state(), random) and not model[0]._forward_pre_hooks


@pytest.mark.parametrize("bias", [True, False])
def test_projecting_out_is_a_change_of_the_inputs(bias):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5, bias=bias), nn.ReLU(), nn.Linear(5, 1)).double()
    batches = {label: (X + 3.0, y) for label, (X, y) in regressions().items()}
    report = environment_report(model, loss, batches)
    X = torch.randn(20, 4, dtype=torch.float64)
    V, mean = torch.as_tensor(report.input_directions[:2].T), torch.as_tensor(report.input_mean)
    V, _ = torch.linalg.qr(V)
    expected = model(X - (X - mean) @ V @ V.T)
    torch.testing.assert_close(project_out(model, report, directions=2)(X), expected, rtol=1e-10, atol=1e-12)
    assert not torch.allclose(model(X), expected)


def test_projecting_out_a_channel_of_a_convolution():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 4 * 4, 1)).double()
    pictures = torch.randn(60, 1, 6, 6, dtype=torch.float64).abs()
    batches = {}
    for e, sign in (("red", 1), ("green", -1)):
        y = pictures.mean(dim=(1, 2, 3)).sub(0.8).sign()
        red = (sign * y > 0).double()[:, None, None, None]
        batches[e] = (torch.cat([pictures * red, pictures * (1 - red)], dim=1), y)
    report = environment_report(model, loss, batches)
    v = report.input_directions[0]
    assert v[0] * v[1] < -0.4  # the contrast of red and green
    X = torch.randn(5, 2, 6, 6, dtype=torch.float64)
    V, mean = torch.as_tensor(v), torch.as_tensor(report.input_mean)[:, None, None]
    expected = model(X - torch.einsum("nchw,c,d->ndhw", X - mean, V, V))
    torch.testing.assert_close(project_out(model, report)(X), expected, rtol=1e-10, atol=1e-12)


def test_text_json_and_picture(tmp_path):
    report = environment_report(network(), loss, regressions(), amplify=2.0)
    content = json.loads(report.to_json())
    assert content["environments"] == ["e0", "e1", "e2"] and content["by_input"] == report.by_input.tolist()
    assert content["largest_stable_step"] == report.largest_stable_step
    assert "e2" in report.text and "0.weight" in report.text and "amplify=2" in report.text
    assert [path.name for path in report.save(tmp_path / "report")] == ["report.png", "report.svg"]
    assert len(report.figure().panels) == 6
    # A linear loss has no curvature: any step is stable, and JSON has no infinity.
    flat = environment_report(nn.Linear(4, 1).double(), lambda m, b: (m(b[0])[:, 0] * b[1]).mean(), regressions())
    assert flat.largest_stable_step == np.inf and json.loads(flat.to_json())["largest_stable_step"] is None


class Attention(nn.Module):
    """One layer of attention, by PyTorch's fused function or written out."""

    def __init__(self, fused):
        super().__init__()
        torch.manual_seed(0)
        self.fused, self.keys, self.head = fused, nn.Linear(4, 12), nn.Linear(4, 1)

    def forward(self, X):
        q, k, v = self.keys(X).chunk(3, dim=-1)
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0]
        else:
            mixed = (q @ k.mT / 2).softmax(dim=-1) @ v
        return self.head(mixed.mean(dim=1))


def test_fused_attention_has_the_report_of_attention_written_out():
    """Default networks of transformers have fused attention, whose fast forms have no second derivative."""
    generator = torch.Generator().manual_seed(0)
    batches = {e: (torch.randn(16, 5, 4, generator=generator), torch.randn(16, generator=generator)) for e in "ab"}
    fused, written = (environment_report(Attention(kind), loss, batches) for kind in (True, False))
    np.testing.assert_allclose(fused.sharpness, written.sharpness, rtol=1e-3)
    np.testing.assert_allclose(fused.cosines, written.cosines, rtol=1e-3)


def null_batches(seed, count=3, rows=24):
    """Environments that do not differ."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(count, rows, 4, generator=generator)
    y = X[:, :, 0] + torch.randn(count, rows, generator=generator)
    return {f"e{e}": (X[e], y[e]) for e in range(count)}


@pytest.mark.parametrize("count", [2, 3])
def test_a_direction_is_rarely_named_where_environments_do_not_differ(count):
    runs = 300
    reports = (environment_report(nn.Linear(4, 1), loss, null_batches(s, count), iterations=1) for s in range(runs))
    named = sum("acts on inputs" in report.text for report in reports)
    # Exchangeable rows give at most 5%; a right check exceeds this count with probability 1e-3.
    assert 0 < named <= stats.binom.ppf(1 - 1e-3, runs, 0.05)


@pytest.mark.parametrize(("rows", "width"), [(50, 3), (51, 3), (50, 1500)])
def test_a_direction_that_environments_differ_in_is_named(rows, width):
    model = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1)).double()
    report = environment_report(model, loss, regressions(spread=2.0, rows=rows), iterations=1)
    assert report.direction_p_value <= 0.05 and "the first direction acts on inputs" in report.text
    assert len(report.figure().panels) == 6
    null = environment_report(nn.Linear(4, 1), loss, null_batches(0), iterations=1)
    assert (
        null.direction_p_value > 0.05 and "no direction is named: permuted environments give one as strong" in null.text
    )
    assert len(null.figure().panels) == 5
    again = environment_report(nn.Linear(4, 1), loss, null_batches(0), iterations=1, seed=1)
    assert again.direction_p_value != null.direction_p_value


Pair = namedtuple("Pair", "X y")


@pytest.mark.parametrize(
    "kind", [list, lambda pair: {"X": pair[0], "y": pair[1], "site": "Leeds"}, lambda pair: Pair(*pair), tuple]
)
def test_batches_of_any_kind_have_rows(kind):
    def of_kind(model, batch):
        return loss(model, (batch["X"], batch["y"]) if isinstance(batch, dict) else batch)

    batches = {label: kind(pair) for label, pair in regressions(spread=2.0).items()}
    assert environment_report(network(), of_kind, batches, iterations=1).direction_p_value <= 0.05


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda X, y: (X[:7], y[:7]), {}),
        (lambda X, y: (X, y, ["text"] * 50), {}),
        (lambda X, y: (X, y, torch.ones(3)), {}),
        (lambda X, y: (X, y, object()), {}),
        (lambda X, y: (X, y), {"permutations": 0}),
    ],
    ids=["few rows", "a list of text", "another length", "an object", "not wanted"],
)
def test_no_direction_is_named_where_rows_cannot_be_permuted(change, options):
    batches = {label: change(*pair) for label, pair in regressions(spread=2.0).items()}
    report = environment_report(network(), loss, batches, iterations=1, **options)
    assert np.isnan(report.direction_p_value) and json.loads(report.to_json())["direction_p_value"] is None
    assert "no direction is named: the rows of the batches were not permuted" in report.text


def test_no_direction_is_named_where_the_loss_of_some_rows_is_not_finite():
    def of_masked(model, batch):  # as of a language model in which no word of some rows is masked
        kept = batch[1] > 1.0
        return (model(batch[0]).squeeze(-1) - batch[1])[kept].square().mean()

    report = environment_report(network(), of_masked, regressions(rows=16), iterations=1)
    assert np.isnan(report.direction_p_value)


def test_a_loss_that_fails_on_some_rows_says_what_asked_for_them():
    with pytest.raises(RuntimeError) as caught:
        environment_report(network(), lambda m, b: (m(b[0])[:, 0] * torch.ones(50)).mean(), regressions())
    assert "permutations=0" in caught.value.__notes__[0]


def test_refusals():
    model, batches = network(), regressions()
    bad = {**batches, "e1": (batches["e1"][0] * np.nan, batches["e1"][1])}
    for arguments, options, message in (
        ((model, loss, {"a": batches["e0"]}), {}, "at least two environments"),
        ((model, loss, list(batches.values())), {}, "at least two environments"),
        ((model, loss, bad), {}, "the loss of environment 'e1' is nan"),
        ((model, lambda m, b: m(b[0]), batches), {}, "must return one number"),
        ((model, loss, batches), {"layer": "1.weight"}, "unknown layer '1.weight': did you mean"),
        ((network().requires_grad_(False), loss, batches), {}, "no parameters that require a gradient"),
    ):
        with pytest.raises(GyrostatError, match=message):
            environment_report(*arguments, **options)
    report = environment_report(network(), loss, batches, layer="0.bias")
    with pytest.raises(GyrostatError, match=r"project_out needs the weight .* about '0.bias'"):
        project_out(network(), report)


def fails_at_first():
    """A loss that cannot be found in the first report, and can in the next."""
    calls = iter(range(10**6))

    def found(model, batch):
        if next(calls) == 0:
            raise ValueError("no such column\nin this batch")
        return loss(model, batch)

    return found


FAILED = r"the environment report of step 2 failed and is left out \(ValueError: no such column\); training goes on\.$"


def test_a_report_that_fails_does_not_end_a_training(monkeypatch):
    """With transformers' names alone, so that it runs where transformers is not installed."""
    from gyrostat.torch import trainer_report_callback

    names = ("TrainerCallback", "TrainerControl", "TrainerState", "TrainingArguments")
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(**dict.fromkeys(names, object)))
    callback = trainer_report_callback(fails_at_first(), regressions(), every=2, say=[].append)
    model = network().train()

    def trained(step):
        callback.on_step_end(None, SimpleNamespace(is_world_process_zero=True, global_step=step), None, model=model)

    with pytest.warns(UserWarning, match=FAILED):
        trained(2)
    trained(3)
    trained(4)
    assert list(callback.reports) == [4] and model.training


def test_a_callback_for_lightning():
    lightning = pytest.importorskip("lightning.pytorch")
    from gyrostat.torch import lightning_report_callback

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = network()

        def forward(self, X):
            return self.network(X)

        def training_step(self, batch, _):
            return loss(self, batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    said = []
    callback = lightning_report_callback(fails_at_first(), regressions(), every=2, say=said.append)
    rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*regressions()["e0"]), batch_size=10)
    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
    }
    with pytest.warns(UserWarning, match=FAILED):
        lightning.Trainer(max_epochs=2, accelerator="cpu", callbacks=[callback], **quiet).fit(Module(), rows)
    assert list(callback.reports) == [4, 6, 8, 10] and said[0].startswith("Step 4:\n") and "e1" in said[1]
