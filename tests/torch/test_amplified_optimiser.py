"""The steps of amplified heterogeneity are those of the formula, in every kind of loop."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import two_amplified_processes  # noqa: E402
from gyrostat.errors import GyrostatError  # noqa: E402
from gyrostat.torch import AmplifiedHeterogeneity  # noqa: E402
from torch import nn  # noqa: E402

ROWS = [torch.randn(20, 3, generator=torch.Generator().manual_seed(e), dtype=torch.float64) for e in range(3)]
TARGETS = [X[:, 0] + (e - 1) * X[:, 1] for e, X in enumerate(ROWS)]
"""Linear regression in three environments that disagree on the second weight."""


def linear(start=0.0, *, lr=0.05, **options):
    w = torch.full((3,), start, dtype=torch.float64, requires_grad=True)
    return w, AmplifiedHeterogeneity(torch.optim.SGD([w], lr=lr), range(3), **options)


def step(w, optimizer, e):
    optimizer.zero_grad()
    (0.5 * (ROWS[e] @ w - TARGETS[e]) ** 2).mean().backward()
    optimizer.step(e)


def gradient(w, e):
    X, y = ROWS[e].numpy(), TARGETS[e].numpy()
    return X.T @ (X @ w - y) / len(y)


def test_the_path_is_that_of_a_plain_loop():
    order = np.random.default_rng(0).integers(3, size=60)
    w, optimizer = linear(lr=0.02, amplify=3.0, average=0.9)
    x, last, mean = np.zeros(3), {}, None
    for t, e in enumerate(order, start=1):
        step(w, optimizer, e)
        last[e] = gradient(x, e)
        g = last[e] + 3.0 * (last[e] - np.mean(list(last.values()), axis=0)) if len(last) == 3 else last[e]
        x = x - 0.02 * g
        mean = x if mean is None else mean + max(0.1, 1 / t) * (x - mean)
    np.testing.assert_allclose(w.detach().numpy(), x, rtol=1e-12)
    model = nn.Module()
    model.w = nn.Parameter(w)  # another parameter: not the optimiser's
    with pytest.raises(GyrostatError, match="shares no parameter"):
        optimizer.averaged(model)
    np.testing.assert_allclose(optimizer._averages[w].numpy(), mean, rtol=1e-12)


def growth(order, spread, amplify, lr=0.05):
    """The rate, per unit of lr, at which a weight grows that environments multiply by ``1 + lr (1 +- spread)``."""
    w = torch.full((), 1.0, dtype=torch.float64, requires_grad=True)
    optimizer = AmplifiedHeterogeneity(torch.optim.SGD([w], lr=lr), [0, 1], amplify=amplify)
    slopes = (1 + spread, 1 - spread)
    for e in order:
        w.grad = -slopes[e] * w.detach()
        optimizer.step(e)
    return float(w.detach().abs().log() / len(order)) / lr


def test_a_weight_that_environments_multiply_grows_as_derived():
    """In turn: two steps are a linear map of (w_t, w_t-1), the present gradient and the other environment's a step ago."""

    def predicted(spread, kappa, lr=0.05):
        maps = [
            np.array([[1 + lr * c * (1 + kappa / 2), -lr * kappa / 2 * other], [1.0, 0.0]])
            for c, other in ((1 + spread, 1 - spread), (1 - spread, 1 + spread))
        ]
        return np.log(np.abs(np.linalg.eigvals(maps[1] @ maps[0])).max()) / 2 / lr

    in_turn = [0, 1] * 200
    for spread, kappa in ((0.5, 0.0), (0.5, 4.0), (2.0, 8.0)):
        # the start is forgotten like 1 / steps
        assert growth(in_turn, spread, kappa) == pytest.approx(predicted(spread, kappa), abs=0.2)
    # At random, an old gradient says nothing of the next environment, and the rate is that of fresh gradients to second
    # order, 1 - lr (1 + kappa)^2 spread^2 / 2. In turn, it makes up for almost all of that.
    at_random = np.random.default_rng(0).integers(2, size=2000)
    scatter = 11 / np.sqrt(2000)  # of a mean of 2000 steps, each log factor being about 0.02 (1 +- 11)
    assert growth(at_random, 1.0, 10.0, lr=0.02) == pytest.approx(1 - 0.02 * 121 / 2, abs=3 * scatter)
    assert growth(in_turn, 1.0, 10.0, lr=0.02) > 0.9


def test_groups_schedules_hooks_and_trainers_see_an_ordinary_optimiser():
    model = two_amplified_processes.network(0)
    inner = torch.optim.SGD([{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters()}], lr=0.1)
    optimizer = AmplifiedHeterogeneity(inner, ["a", "b"])
    schedule, counted = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5), []
    assert pickle.loads(pickle.dumps(AmplifiedHeterogeneity(inner, ["a", "b"]))).unseen == ["a", "b"]
    optimizer.register_step_post_hook(lambda *_: counted.append(1))
    before = copy.deepcopy(model.state_dict())

    def closure():  # as a trainer calls it, without an environment
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(ROWS[0]), TARGETS[0][:, None])
        loss.backward()
        optimizer.environment = "a"
        return loss

    assert optimizer.step(closure=closure).item() > 0 and counted == [1]
    schedule.step()
    assert [group["lr"] for group in inner.param_groups] == [0.0, 0.05]
    assert torch.equal(model[0].weight, before["0.weight"]) and not torch.equal(model[2].weight, before["2.weight"])
    assert optimizer.unseen == ["b"]
    with pytest.raises(GyrostatError, match="step needs the environment of the batch"):
        optimizer.step()
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
    assert len(inner.param_groups) == 3 and optimizer.unseen == ["a", "b"]


def test_a_gradient_that_is_not_finite_is_skipped_and_not_remembered():
    w, optimizer = linear(0.5)
    undisturbed, other = linear(0.5)
    for e in range(3):
        step(w, optimizer, e)
        step(undisturbed, other, e)
    for bad in (np.nan, np.inf):
        w.grad = torch.tensor([0.0, bad, 0.0], dtype=torch.float64)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            optimizer.step(1)
        assert len(said) == (1 if np.isnan(bad) else 0)  # once
    assert optimizer.skipped == 2 and optimizer.steps == 3
    step(w, optimizer, 2)
    step(undisturbed, other, 2)
    assert torch.equal(w, undisturbed) and torch.equal(optimizer._averages[w], other._averages[undisturbed])


def test_a_continued_run_is_the_undisturbed_one_bit_for_bit():
    w, optimizer = linear(0.3)
    for t in range(40):
        if t == 17:
            file = io.BytesIO()
            torch.save({"w": w.detach(), "optimizer": optimizer.state_dict()}, file)
        step(w, optimizer, (t * t) % 3 if t % 5 else 2)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    again, resumed = linear()
    with torch.no_grad():
        again.copy_(saved["w"])
    resumed.load_state_dict(saved["optimizer"])
    for t in range(17, 40):
        step(again, resumed, (t * t) % 3 if t % 5 else 2)
    assert torch.equal(w, again) and torch.equal(optimizer._averages[w], resumed._averages[again])
    assert resumed.steps == 40
    with pytest.raises(GyrostatError, match="not one of AmplifiedHeterogeneity"):
        resumed.load_state_dict(torch.optim.SGD([w], lr=0.1).state_dict())
    with pytest.raises(GyrostatError, match=r"is of environments \[0, 1, 2\], but this optimiser has \['a', 'b'\]"):
        AmplifiedHeterogeneity(torch.optim.SGD([w], lr=0.1), ["a", "b"]).load_state_dict(saved["optimizer"])


def trained(dtype=torch.float32, *, scaler=None, autocast=False, clip=None, **options):
    """A small network trained in two environments; the mean absolute weight of the second feature goes with it."""
    model = two_amplified_processes.network(3).to(dtype)
    optimizer = AmplifiedHeterogeneity(torch.optim.SGD(model.parameters(), lr=0.05), [0, 1], **options)
    for t in range(10):
        X, y = (values.to(dtype) for values in two_amplified_processes.batch(t))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = nn.functional.mse_loss(model(X), y)
        (loss if scaler is None else scaler.scale(loss)).backward()
        if scaler is not None:
            scaler.unscale_(optimizer)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if scaler is None:
            optimizer.step(t % 2)
        else:
            scaler.step(optimizer, t % 2)
            scaler.update()
    return torch.cat([p.detach().flatten().double() for p in model.parameters()]), optimizer


def test_mixed_precision():
    plain, _ = trained()
    scaled, optimizer = trained(scaler=torch.amp.GradScaler("cpu", init_scale=2.0**10))
    torch.testing.assert_close(scaled, plain, rtol=0, atol=1e-5)  # float32
    mixed, _ = trained(autocast=True)
    torch.testing.assert_close(mixed, plain, rtol=0, atol=0.1)  # bfloat16 has 8 bits, and 10 is the amplification
    half, optimizer = trained(torch.bfloat16)
    torch.testing.assert_close(half, plain, rtol=0, atol=0.2)
    assert all(mean.dtype == torch.float32 for mean in optimizer._averages.values())


def test_a_scaler_that_overflows_skips_the_step():
    w, optimizer = linear(0.5)
    scaler = torch.amp.GradScaler("cpu")
    for e in range(3):
        step(w, optimizer, e)
    before, last = w.detach().clone(), optimizer._last[w].clone()
    scaler.scale((w * np.inf).sum()).backward()
    scaler.step(optimizer, 0)
    assert torch.equal(w, before) and torch.equal(optimizer._last[w], last)


def test_clipping_before_and_after_amplification():
    _, optimizer = trained(clip=0.01)
    assert all(g.flatten(1).norm(dim=1).max() <= 0.01 for g in optimizer._last.values())
    w, optimizer = linear(0.5, amplify=10.0, max_norm=0.5)
    for e in (0, 1, 2, 0):
        step(w, optimizer, e)
    assert w.grad.norm().item() == pytest.approx(0.5, rel=1e-9)
    w, loose = linear(0.5, amplify=10.0, max_norm=1e6)
    free, optimizer = linear(0.5, amplify=10.0)
    for e in (0, 1, 2, 0):
        step(w, loose, e)
        step(free, optimizer, e)
    assert torch.equal(w, free)


def test_what_is_deployed_is_an_average_in_a_copy():
    model = nn.Sequential(nn.Linear(3, 1), nn.BatchNorm1d(1)).double()
    model[1].bias.requires_grad_(False)
    optimizer = AmplifiedHeterogeneity(torch.optim.SGD(model[0].parameters(), lr=0.1), [0, 1], average=0.5)
    with pytest.raises(GyrostatError, match="at least one step"):
        optimizer.averaged(model)
    path = []
    for t in range(4):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(ROWS[t % 2]), TARGETS[t % 2][:, None]).backward()
        optimizer.step(t % 2)
        path.append(model[0].weight.detach().clone())
    found = optimizer.averaged(model)
    expected = ((path[0] + path[1]) / 2 + path[2]) / 4 + path[3] / 2
    torch.testing.assert_close(found[0].weight.detach(), expected, rtol=1e-12, atol=0)
    assert torch.equal(model[0].weight, path[-1]) and torch.equal(found[1].running_mean, model[1].running_mean)


def test_a_parameter_without_a_gradient_stays_and_counts_as_zero():
    both = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    optimizer = AmplifiedHeterogeneity(torch.optim.SGD(both, lr=1.0), ["a", "b"], amplify=2.0)
    for label, used in (("a", [0, 1]), ("b", [0]), ("b", [0])):
        optimizer.zero_grad()
        sum(both[i].sum() for i in used).backward()
        optimizer.step(label)
    assert both[1].item() == -1.0  # of the first step only
    optimizer.zero_grad()
    both[1].sum().backward()
    optimizer.step("a")
    assert both[1].grad.item() == 1 + 2 * (1 - 0.5)


def test_warnings_and_refusals():
    w = torch.zeros(1, requires_grad=True)
    for inner in (torch.optim.SGD([w], lr=0.1, momentum=0.9), torch.optim.AdamW([w])):
        with pytest.warns(UserWarning, match=f"{type(inner).__name__} averages gradients over steps"):
            AmplifiedHeterogeneity(inner, [0, 1])
    plain = torch.optim.SGD([w], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = AmplifiedHeterogeneity(plain, np.array(["b", "a", "b"]))
    assert optimizer.environments == ["b", "a"]
    for arguments, message in (
        (([w], [0, 1]), "optimizer must be a PyTorch optimiser"),
        ((optimizer, [0, 1]), "optimizer must be a PyTorch optimiser"),
        ((plain, ["a", "a"]), "at least two labels to compare; got only 'a'"),
        ((plain, ["a", None]), "1 missing labels"),
        ((plain, [0, 1], -1.0), "amplify must be a finite number of at least 0; got -1.0"),
        ((plain, [0, 1], 1.0, 1.0), "average must be below 1"),
    ):
        with pytest.raises(GyrostatError, match=message):
            AmplifiedHeterogeneity(*arguments)
    w.grad = torch.ones(1)
    with pytest.raises(GyrostatError, match=r"unknown environment 'c': this optimiser was made for \['b', 'a'\]"):
        optimizer.step("c")
    for _ in range(199):
        optimizer.step("a")
    with pytest.warns(UserWarning, match="environment 'b' has not been seen in 200 steps"):
        optimizer.step(np.array("a"))


def test_two_processes_make_the_steps_of_one(tmp_path):
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}  # 127.0.0.1 only
    command = [sys.executable, str(Path(two_amplified_processes.__file__))]
    running = [
        subprocess.Popen([*command, str(rank), str(tmp_path)], env=environment, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0], "\n".join(errors)
    found = [torch.load(tmp_path / f"rank{rank}.pt", weights_only=True) for rank in range(2)]
    alone = two_amplified_processes.network(0)
    averaged = two_amplified_processes.train(alone).averaged(alone)
    for name, model in (("last", alone), ("averaged", averaged)):
        for key, values in model.state_dict().items():
            assert torch.equal(found[0][name][key], found[1][name][key])
            # the same sums in another order, amplified
            torch.testing.assert_close(found[0][name][key], values, rtol=1e-11, atol=1e-12)
