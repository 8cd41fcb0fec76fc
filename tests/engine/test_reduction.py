"""A run in the subspace that it can reach equals the full run."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from completion_problem import ENVIRONMENTS, OBSERVED
from conftest import Watch, orthonormal
from gyrostat.algorithms.update_rules import UpdateRule
from gyrostat.diagnostics import Snapshot
from gyrostat.engine.reduction import Reduction, choose_reduction, reduced_run, reduced_shape

N, ROWS, COLUMNS = 14, 15, 12


def seen_rows(name: str, rotates: bool) -> gs.diagnostics.Diagnostic:
    """A diagnostic that records the number of dimensions that it sees."""
    return gs.diagnostics.Diagnostic(name, lambda view: jnp.asarray(float(len(view.product))), rotates=rotates)


SMALL, STATED = seen_rows("small", rotates=True), seen_rows("stated", rotates=False)


def overlapping(rank: int, law: gs.environments.Law) -> gs.RandomEnvironments:
    return gs.RandomEnvironments(N, rank, law, values=np.linspace(1.0, 0.5, rank), overlap=0.4)


OFF = np.array([[1.0, 0.6], [0.6, -0.5]])
CASES = {
    "symmetric descent": (
        gs.GradientDescent(0.1, width=3, symmetric=True, start=0.4),
        overlapping(2, gs.laws.Absent()),
        5,
    ),
    "difference, one environment at a time": (
        gs.HeteroSGD(0.05, init_scale=0.3, model=gs.models.SymmetricDifference(2)),
        overlapping(2, gs.Finite([OFF, -2 * OFF, np.eye(2)])),
        8,
    ),
    "preconditioned momentum that looks ahead": (
        gs.PrecGD(0.1, width=3, start=0.4, rule=gs.rules.Nesterov(0.6)),
        gs.environments.RandomRectangular(ROWS, COLUMNS, 2, gs.Finite([-0.4, 0.8]), values=[1.0, 0.5]),
        6,
    ),
    "imbalance step": (
        gs.GradientDescent(0.1, width=3, start=0.4, events=[gs.events.ImbalanceStep(at=20, beta=0.9)]),
        gs.environments.RandomRectangular(ROWS, COLUMNS, 2, values=[1.0, 0.5]),
        5,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_reduced_run_is_the_whole_run(name):
    algorithm, recipe, rows = CASES[name]
    watch = Watch()
    trajectory = ["signal", "spurious", "error", "error_operator", "distance", "full_loss", "singular_values"]
    names = [*trajectory, watch.diagnostic, SMALL, STATED]
    options = {"num_steps": 40, "seeds": 2, "record": names, "record_at": 5, "tolerance": 0.3}
    problem = gs.Problem(recipe, gs.Identity())
    small = gs.run(algorithm, problem, **options)  # "auto"
    whole = gs.run(algorithm, problem, reduction="never", **options)
    n = problem.shape[0]
    assert (small.small == rows).all() and (whole.small == n).all()  # the reduced run was made where it says
    assert (small.stated == n).all() and (whole.stated == n).all()
    assert small.attrs.keys() == whole.attrs.keys()
    for quantity in whole.data_vars:
        if quantity in ("small", "params"):
            continue
        # Forty contracting steps on numbers of order one.
        np.testing.assert_allclose(small[quantity], whole[quantity], rtol=1e-12, atol=1e-12, err_msg=quantity)
    # What does not rotate sees the stated parameters. The imbalance step leaves the signs of F's columns to the SVD.
    ours, theirs = small.params.values, whole.params.values
    if name == "imbalance step":
        ours, theirs = np.abs(ours), np.abs(theirs)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert (whole.distance.values[:, -1] < whole.distance.values[:, 0]).all()  # and something happened


def test_every_diagnostic_that_rotates_is_the_same_in_the_small_space(x64):
    """All diagnostics at once, and without a run."""
    left, right = orthonormal(0, ROWS, 4), orthonormal(1, COLUMNS, 4)
    law = gs.Finite([OFF, np.eye(2)])
    environments = gs.RectangularEnvironments(
        left[:, :2], right[:, :2], left[:, 2:], right[:, 2:], law, values=[2.0, 1.0]
    )
    rng = np.random.default_rng(2)
    algorithm = gs.GradientDescent(0.1, width=3)
    params = rng.standard_normal((ROWS, 3)), rng.standard_normal((COLUMNS, 3))
    assert reduced_shape(algorithm, gs.Problem(environments, gs.Identity())) == (7, 7)

    @jax.jit
    def seen(params):
        model = algorithm.model
        reduced, small = reduced_run(algorithm, environments, params, Reduction(rows=True))
        assert reduced.environments.shape == (7, 7)
        pairs = ((reduced.environments, small), (environments, params))
        views = [Snapshot(environments, model, shown, (ROWS, COLUMNS)) for environments, shown in pairs]
        return reduced.as_stated(small), [
            {n: d.function(v) for n, d in gs.diagnostics.DIAGNOSTICS.items()} for v in views
        ]

    lifted, (small, whole) = seen(params)
    for found, given in zip(lifted, params, strict=True):
        np.testing.assert_allclose(found, given, atol=1e-13)
    coordinates = {"row_norms", "left_factor", "right_factor", "product"}
    of_product = {"training_loss"}
    hidden = {"layer_norms", "imbalances", "imbalances_frobenius"}
    assert {
        name for name, chosen in gs.diagnostics.DIAGNOSTICS.items() if not chosen.rotates
    } == coordinates | hidden | of_product
    for name in gs.diagnostics.DIAGNOSTICS:
        if name in coordinates:
            assert small[name].shape != whole[name].shape
        else:
            np.testing.assert_allclose(small[name], whole[name], rtol=1e-11, atol=1e-12, err_msg=name)


class Signs(UpdateRule):
    """Descent along the signs of the gradient: a rule that depends on the coordinates."""

    def __call__(self, model, params, reading, step_size, ridge):
        directions = model.pullback(params, reading.gradient)
        return tuple(p - step_size * jnp.sign(g) for p, g in zip(params, directions, strict=True))


PLAIN = gs.Environments.diagonal(N, [1.0])
SIGNED = gs.Algorithm(
    gs.Symmetric(1), gs.starts.ScaledGaussian(0.1), gs.batches.Full(), gs.schedules.Constant(0.01), Signs()
)
FOUR = gs.DeepLinear(4, 20)
SGD = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
INEXACT = [
    (gs.GradientDescent(0.1, width=2), gs.Problem(PLAIN, gs.FreshGaussian(50)), "FreshGaussian"),
    (gs.GradientDescent(0.1, width=2), gs.Problem(PLAIN, gs.Dense(50)), "Dense"),
    (SIGNED, gs.Problem(PLAIN, gs.Identity()), "Signs"),
    (
        gs.PooledGD(0.1, model=gs.Diagonal()),
        gs.Problem(gs.VectorEnvironments([1.0, 0.0, 0.0]), gs.Identity()),
        "Diagonal",
    ),
    # The hidden layers of networks.
    (gs.RidgeDescent(0.1, model=FOUR), SGD, "FanInUniform at depth 4"),
    (
        gs.RidgeDescent(0.1, model=gs.DeepLinear(widths=(2, 9, 8, 9, 2)), start=gs.starts.Orthogonal()),
        SGD,
        "Orthogonal at depth 4",
    ),
    (
        gs.Algorithm(FOUR, gs.starts.Orthogonal(), gs.batches.Full(), gs.schedules.Constant(0.1), Signs()),
        SGD,
        "Signs depends on the coordinates",
    ),
    (
        gs.RidgeDescent(0.1, model=gs.DeepLinear(3, 3), start=gs.starts.Orthogonal()),
        SGD,
        "4 dimensions of a hidden layer",
    ),
]


@pytest.mark.parametrize("i", range(len(INEXACT)))
def test_where_it_is_not_exact_always_is_refused_with_the_reason(i):
    algorithm, problem, reason = INEXACT[i]
    with pytest.raises(gs.GyrostatError, match=f"not exact here: {reason}.*'auto' or 'never'"):
        gs.run(algorithm, problem, num_steps=2, reduction="always")
    assert not choose_reduction("auto", algorithm, problem)


class Recipe(eqx.Module):
    """A user's recipe: it has what Problem needs, and does not state its rank."""

    law: gs.environments.Law
    shape: tuple[int, ...] = eqx.field(static=True, default=(N, N))

    def draw(self, key):
        return gs.RandomEnvironments(N, 2, self.law).draw(key)


def test_a_recipe_that_does_not_state_its_rank_runs_where_it_was_stated():
    problem, algorithm = (
        gs.Problem(Recipe(gs.laws.Absent()), gs.Identity()),
        gs.GradientDescent(0.1, width=3, start=0.4),
    )
    known = gs.Problem(gs.RandomEnvironments(N, 2), gs.Identity())
    options = {"num_steps": 9, "record": ["distance", SMALL], "record_at": 2, "tolerance": 0.5}
    found, wanted = gs.run(algorithm, problem, **options), gs.run(algorithm, known, **options)
    assert (found.small == N).all() and (wanted.small == 5).all()
    np.testing.assert_allclose(found.distance, wanted.distance, atol=1e-12)
    with pytest.raises(gs.GyrostatError, match="Recipe does not state its rank"):
        gs.run(algorithm, problem, reduction="always", **options)


def test_nothing_is_reduced_that_would_not_become_smaller():
    """Seven columns span all seven dimensions; reduction="always" gives the same run."""
    problem = gs.Problem(gs.RandomEnvironments(6, 2, values=[1.0, 0.5]), gs.Identity())
    algorithm = gs.GradientDescent(0.1, width=5, start=0.4)
    assert not choose_reduction("auto", algorithm, problem) and choose_reduction("always", algorithm, problem)
    options = {"num_steps": 20, "record": ["distance", "left_factor"], "record_at": 3}
    auto, always = (gs.run(algorithm, problem, reduction=mode, **options) for mode in ("auto", "always"))
    for name in ("distance", "left_factor"):
        np.testing.assert_allclose(always[name], auto[name], atol=1e-12)


def test_ten_thousand_dimensions():
    """A product of 10^8 entries is never formed: the run equals the one in the six dimensions where it starts."""
    rng, n = np.random.default_rng(3), 10_000
    F, G = 0.3 * rng.standard_normal((6, 3)), 0.1 * rng.standard_normal((6, 3))

    def run(size: int, **options):
        wide = [np.vstack([x, np.zeros((size - 6, 3))]) for x in (F, G)]
        algorithm = gs.GradientDescent(0.1, start=gs.starts.Given(*wide), width=3)
        problem = gs.Problem(gs.Environments.diagonal(size, [1.0, 0.7]), gs.Identity())
        record = ["distance", "factor_values", "row_norms"]
        return gs.run(algorithm, problem, num_steps=50, record=record, record_at=3, tolerance=1e-3, **options)

    large, small = run(n), run(6, reduction="never")
    assert large.sizes["row"] == n and large.row_norms.values[0, -1, 6:].max() < 1e-25
    for name in ("distance", "factor_values", "reached"):
        np.testing.assert_allclose(large[name], small[name], atol=1e-12)
    np.testing.assert_allclose(large.row_norms.values[..., :6], small.row_norms.values, atol=1e-12)
