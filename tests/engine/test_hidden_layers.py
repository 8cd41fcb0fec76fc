"""A deep linear network, run in the few dimensions of its hidden layers that it reaches, equals the full network."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from completion_problem import ENVIRONMENTS, OBSERVED
from conftest import Watch
from gyrostat.diagnostics.base import resolve
from gyrostat.engine import hidden_layers
from gyrostat.engine.program import Program
from gyrostat.engine.reduction import LEAK_LIMITS, Reduction, choose_reduction
from gyrostat.jax_tools.float64 import double

SGD = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
SCHEDULE = gs.schedules.WarmUp(30, 0.03, gs.schedules.Constant(0.2, 0.1))
WIDTH = 26
KRYLOV = Reduction(widths="krylov")


def hidden(sees: str) -> gs.diagnostics.Diagnostic:
    """The width of the first hidden layer that a diagnostic sees."""
    rotates, of_product = sees == "small", sees == "product"
    return gs.diagnostics.Diagnostic(
        f"width_{sees}", lambda v: jnp.asarray(float(len(v.params[0]))), (), "", rotates, of_product
    )


WIDTHS = [hidden(sees) for sees in ("small", "product", "stated")]
CASES = {
    "two layers, any start": (gs.DeepLinear(2, WIDTH), gs.starts.FanInUniform(), SGD, 4),
    "five orthogonal layers": (gs.DeepLinear(5, WIDTH), gs.starts.Orthogonal(0.9), SGD, 4),
    "rectangular, all entries": (
        gs.DeepLinear(3, WIDTH),
        gs.starts.Orthogonal(),
        gs.Problem(gs.environments.RandomRectangular(3, 4, 1), gs.Entries([(0, 0), (1, 3), (2, 1), (2, 2)])),
        7,
    ),
    "six rows and five columns": (
        gs.DeepLinear(4, WIDTH),
        gs.starts.Orthogonal(),
        gs.Problem(
            gs.environments.RandomRectangular(6, 5, 2), gs.Entries([(i, i % 5) for i in range(6)], batch_size=2)
        ),
        11,
    ),
}


TERSE = ("five orthogonal layers", "rectangular, all entries")
"""Cases that record only their layers; the other cases compare what is computed from layers."""


@pytest.mark.parametrize("name", CASES)
def test_the_narrowed_run_is_the_whole_run(name):
    model, start, problem, width = CASES[name]
    algorithm = gs.RidgeDescent(SCHEDULE, model=model, start=start)
    watch = Watch()
    layers = [] if name in TERSE else ["layer_norms", "imbalances"]
    record = ["singular_values", "distance", "error", "product", watch.diagnostic, *layers, *WIDTHS]
    options = {"num_steps": 120, "seeds": 2, "record": record, "record_at": 5}
    small = gs.run(algorithm, problem, **options)  # "auto"
    whole = gs.run(algorithm, problem, reduction="never", **options)
    assert (small.width_small == width).all() and (small.width_product == width).all()
    assert (whole.width_small == model.width).all()
    for quantity in whole.data_vars:
        if not str(quantity).startswith("width"):
            np.testing.assert_allclose(small[quantity], whole[quantity], rtol=1e-12, atol=1e-12, err_msg=str(quantity))
    assert (small.width_stated == model.width).all()
    assert np.abs(whole.product.values[:, -1] - whole.product.values[:, 0]).max() > 0.1  # something happened


def test_a_run_in_krylov_spaces_is_the_whole_run():
    """When layers are recorded, the leak must be smaller; with enough levels it is, and the run is not computed again."""
    model = gs.DeepLinear(3, 60)
    algorithm = gs.RidgeDescent(0.03, 0.1, model=model, start=gs.starts.FanInUniform(0.7))
    names = ["singular_values", "distance", "error", "product", "imbalances"]
    options = {"num_steps": 60, "seeds": 2, "record": [*names, Watch().diagnostic, *WIDTHS], "record_at": 3}
    small, whole = (gs.run(algorithm, SGD, reduction=mode, **options) for mode in ("auto", "never"))
    assert (small.width_small == 24).all() and (small.width_product == 24).all() and (small.width_stated == 60).all()
    assert (whole.width_small == 60).all()
    for name in (*names, "params"):
        np.testing.assert_allclose(small[name], whole[name], rtol=1e-12, atol=1e-12, err_msg=name)
    always = gs.run(algorithm, SGD, reduction="always", **options)  # the same program, and not refused
    np.testing.assert_array_equal(always.params, small.params)
    assert np.abs(whole.product.values[:, -1] - whole.product.values[:, 0]).max() > 0.1  # something happened


def fresh() -> gs.diagnostics.Diagnostic:
    """The product as a new diagnostic, so that a program that records it is compiled anew for the number of levels."""
    return gs.diagnostics.Diagnostic("product", lambda v: v.product, ("row", "column"), of_product=True)


@pytest.fixture
def levels(monkeypatch):
    """Sets the number of Krylov levels and gives a new product diagnostic, because programs do not notice such a change."""

    def choose(number: int) -> gs.diagnostics.Diagnostic:
        monkeypatch.setattr(hidden_layers, "LEVELS", number)
        return fresh()

    return choose


def only_call(program: Program, seeds: int) -> dict[str, np.ndarray]:
    """The outcome of a program whose runs fit into one call."""
    ((_, values),) = program.calls([(0, s) for s in range(seeds)])
    return values


def outcome(kind: Reduction, product: gs.diagnostics.Diagnostic) -> dict[str, np.ndarray]:
    """Three runs of 120 steps, reduced or not, that record their product and their layers."""
    algorithm = gs.RidgeDescent(SCHEDULE, model=gs.DeepLinear(3, 30), start=gs.starts.FanInUniform())
    record = resolve([product, Watch().diagnostic])
    return only_call(Program([(algorithm, SGD)], record, np.array([40, 120]), 0, None, kind), 3)


@pytest.fixture(scope="module")
def whole():
    """The runs without Krylov spaces, which do not depend on the number of levels."""
    return outcome(Reduction(), fresh())


@pytest.mark.parametrize("number", [2, 4, 6])
def test_a_leak_changes_layers_by_at_most_itself_and_the_product_by_at_most_its_square(number, levels, whole):
    """The bound behind LEAK_LIMITS, where leaks are large enough to be seen above rounding."""
    cut = outcome(KRYLOV, levels(number))
    leak = cut["leak"]
    product, layers = (np.abs(cut[n] - whole[n]).reshape(3, -1).max(axis=1) for n in ("product", "params"))
    assert (leak > 1e-5).all() and (layers > 1e-4 * leak).all()  # something is cut off
    assert (product <= leak**2).all() and (layers <= leak).all()
    assert (product > 1e-5 * leak**2).all()  # and felt by no higher power


@pytest.mark.parametrize("number", [7, 8])
def test_runs_below_the_limit_are_kept_and_exact_and_others_computed_again(number, levels):
    """Leaks between 1e-10 and 1e-5: small enough for the product from eight levels on, never for the layers."""
    product = levels(number)
    algorithm = gs.RidgeDescent(SCHEDULE, model=gs.DeepLinear(3, 40), start=gs.starts.FanInUniform())
    leak = only_call(Program([(algorithm, SGD)], (product,), np.array([120]), 0, None, KRYLOV), 2)["leak"]
    asked = [([product], LEAK_LIMITS["product"])]
    if number == 8:  # runs that are kept for their product are still made again for their layers
        asked.append(([product, Watch().diagnostic], LEAK_LIMITS["layers"]))
    for record, limit in asked:
        options = {"num_steps": 120, "seeds": 2, "record": record, "record_at": 1}
        auto, never = (gs.run(algorithm, SGD, reduction=mode, **options) for mode in ("auto", "never"))
        again = [np.array_equal(auto.product[k], never.product[k]) for k in range(2)]
        np.testing.assert_allclose(auto.product, never.product, atol=1e-12)
        assert all(again) if (leak > limit).all() else not any(again)  # a reduced run differs in its last digits
        assert "leak" not in auto
    assert (leak > LEAK_LIMITS["layers"]).all() and (leak > LEAK_LIMITS["product"]).all() == (number < 8)
    if number < 8:
        with pytest.raises(gs.GyrostatError, match="not exact here: 2 of 2 runs left the Krylov spaces"):
            gs.run(algorithm, SGD, reduction="always", **options)


def test_both_reductions_at_once():
    """Factorisation by a deep network: rows and columns, and then the widths."""
    problem = gs.Problem(gs.environments.RandomRectangular(40, 30, 1, values=[1.0]), gs.Identity())
    algorithm = gs.RidgeDescent(0.05, 0.01, model=gs.DeepLinear(widths=(30, 4, 40)), start=gs.starts.FanInGaussian(0.5))
    found = choose_reduction("auto", algorithm, problem)
    assert found.rows and found.widths is None  # 10 dimensions do not fit into a layer of 4
    wide = gs.RidgeDescent(0.05, 0.01, model=gs.DeepLinear(3, 90), start=gs.starts.Orthogonal(0.5))
    assert choose_reduction("auto", wide, problem) == Reduction(False, "closed")
    watch = Watch()
    options = {
        "num_steps": 40,
        "record": ["singular_values", "product", "layer_norms", watch.diagnostic],
        "record_at": 3,
    }
    for chosen in (algorithm, wide):
        small, whole = (gs.run(chosen, problem, reduction=mode, **options) for mode in ("auto", "never"))
        for name in ("singular_values", "product", "layer_norms", "params"):
            np.testing.assert_allclose(small[name], whole[name], rtol=1e-12, atol=1e-12)


def test_only_random_starts_of_three_layers_use_krylov_spaces():
    """With given layers, a level may be empty."""
    model = gs.DeepLinear(3, 40)
    given = gs.starts.Given(*(np.ones(s) for s in model.shapes((2, 2))))
    assert hidden_layers.kind(model, given, (2, 2)) is None
    assert hidden_layers.kind(model, gs.starts.ScaledGaussian(0.1), (2, 2)) == "krylov"
    assert hidden_layers.kind(gs.DeepLinear(widths=(2, 9, 8, 2)), gs.starts.Orthogonal(), (2, 2)) is None
    assert hidden_layers.kind(gs.DeepLinear(2, 9), given, (2, 2)) == "closed"


def test_numbers_too_small_are_zero_so_that_nothing_slows_down():
    """After a collapse all layers shrink by the ridge; below 2e-308 they are exactly zero, never denormal."""
    algorithm = gs.RidgeDescent(0.5, 1.9, model=gs.DeepLinear(3, 6), start=gs.starts.Orthogonal(0.05))
    for mode in ("auto", "never"):
        found = gs.run(algorithm, SGD, num_steps=600, record=["product", "layer_norms"], record_at=601, reduction=mode)
        smallest = np.abs(np.concatenate([found.product.values.ravel(), found.layer_norms.values.ravel()]))
        assert (smallest[smallest > 0] >= np.finfo(float).tiny).all()
        assert np.abs(found.layer_norms.values[0, -1]).max() == 0  # .05^(600) is far below

    with double():
        assert float(jax.jit(lambda x: x / 2)(jnp.asarray(np.finfo(float).tiny))) == 0
