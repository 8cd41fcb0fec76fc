"""Rules with memory: the steps of torch and optax on the same gradients, in every kind of run, and what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import gyrostat as gs
from completion_problem import ENVIRONMENTS, OBSERVED
from conftest import Watch, given_environments, random_factors
from gyrostat.engine.reduction import choose_reduction
from gyrostat.measurements.base import Reading

ETA, RIDGE, STEPS = 0.02, 0.1, 60
MODEL = gs.Asymmetric()
ADVERSARY = optax.chain(optax.contrib.normalize(), optax.sgd(0.05))
TARGET = np.random.default_rng(3).standard_normal((5, 4))
TORCH = {
    "Momentum": (gs.rules.Momentum(0.8), "SGD", {"momentum": 0.8}),
    "Nesterov": (gs.rules.Nesterov(0.8), "SGD", {"momentum": 0.8, "nesterov": True}),
    "Adam": (gs.rules.Adam(0.85, 0.95, 1e-6), "Adam", {"betas": (0.85, 0.95), "eps": 1e-6}),
}


def path(rule: gs.rules.UpdateRule, step_size: float = ETA, ridge: float = RIDGE) -> list[tuple]:
    """Parameters of a factorisation after every step of a rule."""
    params = tuple(jnp.asarray(p) for p in random_factors(1))
    memory, found = rule.init(MODEL, params), []

    @jax.jit
    def step(memory, params):
        residual = MODEL.product(params) - TARGET
        return rule.update(memory, MODEL, params, Reading(residual, jnp.sum(residual**2)), step_size, ridge)

    for _ in range(STEPS):
        params, memory = step(memory, params)
        found.append(params)
    return found


def same(ours: list[tuple], theirs: list[tuple]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
    moved = max(float(np.abs(np.asarray(x) - y).max()) for x, y in zip(ours[-1], random_factors(1), strict=True))
    assert moved > 0.1


@pytest.mark.parametrize("name", TORCH)
def test_steps_are_those_of_torch(name, x64):
    """Also with a ridge: torch adds weight_decay * theta to the gradient, and our ridge stands for 2 ridge theta."""
    torch = pytest.importorskip("torch")
    rule, kind, options = TORCH[name]
    factors = [torch.tensor(p, requires_grad=True) for p in random_factors(1)]
    optimiser = getattr(torch.optim, kind)(factors, lr=ETA, weight_decay=2 * RIDGE, **options)
    theirs = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        F, G = factors
        ((F @ G.T - torch.tensor(TARGET)) ** 2).sum().div(2).backward()
        optimiser.step()
        theirs.append(tuple(p.detach().numpy().copy() for p in factors))
    same(path(rule), theirs)


def test_any_transformation_of_optax_runs_in_the_engine():
    """Chains, schedules of optax itself, wrappers that count steps, decoupled weight decay, lookahead of gradients."""
    problem = gs.Problem(given_environments(), gs.FreshGaussian(200))
    transformations = [
        optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2)),
        optax.lion(1e-3),
        optax.sgd(optax.cosine_decay_schedule(0.05, 30)),
        optax.MultiSteps(optax.rmsprop(1e-2), 2),
        optax.inject_hyperparams(optax.nadam)(learning_rate=1e-2),
    ]
    for transformation in transformations:
        algorithm = gs.HeteroSGD(1.0, init_scale=0.1, rule=transformation)
        found = gs.run(algorithm, problem, num_steps=30, seeds=2, record=["distance"], record_at=2)
        assert np.isinf(found.diverged).all() and np.ptp(found.distance.values, axis=1).min() > 1e-3


def test_a_transformation_of_optax_is_a_rule(x64):
    """The step of the algorithm multiplies its update, and it receives the directions of the algorithm."""
    transformation = optax.sgd(0.5, momentum=0.8)
    for make in (gs.GradientDescent, gs.ScaledGD):
        ours, theirs = make(ETA, rule=gs.rules.Momentum(0.8)).rule, make(2 * ETA, rule=transformation).rule
        assert type(theirs) is gs.rules.Optax and theirs.of == ours.of
        same(path(theirs, step_size=2 * ETA), path(ours))
    whole = gs.Algorithm(gs.Symmetric(), gs.starts.ScaledIdentity(0.1), gs.batches.Full(), 0.1, rule=transformation)
    assert whole.rule == gs.rules.Optax(transformation)


def test_a_grid_over_the_numbers_of_a_rule_compiles_once():
    problem = gs.Problem(given_environments(), gs.Identity())
    transformation = optax.adam(1.0)
    grids = {
        "momentum": lambda eta, beta: gs.HeteroSGD(eta, rule=gs.rules.Momentum(beta)),
        "one transformation": lambda eta, beta: gs.HeteroSGD(eta, rule=transformation),
        "named": lambda eta, beta: gs.HeteroSGD(eta, rule=gs.rules.Optax("adam", {"learning_rate": 1.0, "b1": beta})),
        "amplified": lambda eta, beta: gs.HeteroSGD(eta, amplify=beta),
    }
    for name, build in grids.items():
        watch = Watch()
        options = {"num_steps": 12, "record": [watch.diagnostic], "record_at": 2}
        cells = {"eta": [0.01, 0.02], "beta": [0.5, 0.8, 0.9]}
        found = gs.run_grid(lambda build=build, **at: (build(**at), problem), cells, **options)
        traced, ends = watch.traced, found.params.isel(step=-1).values
        assert len(np.unique(ends[..., 0].round(12))) == (2 if name == "one transformation" else 6)
        alone = gs.run(build(0.02, 0.9), problem, **options)
        np.testing.assert_allclose(alone.params.values[0, -1], ends[1, 2, 0], rtol=1e-12, atol=1e-14)
        assert traced <= 2, name  # once for the grid (twice if the tracer looks at shapes first), not once for a cell


def test_a_sweep_names_a_rule():
    from gyrostat.sweeps import read_spec

    spec = read_spec(
        {
            "num_steps": 10,
            "seeds": 2,
            "algorithm": {"kind": "HeteroSGD", "step_size": 0.01, "rule": {"kind": "Momentum", "beta": 0.9}},
            "environments": {"kind": "RandomEnvironments", "dimension": 5, "law": {"kind": "TwoPoint", "spread": 6.0}},
            "measurements": {"kind": "Identity"},
            "success": {"spurious": {"below": 0.1}},
            "axes": {
                "algorithm.rule.beta": {"list": [0.5, 0.9]},
                "algorithm.rule.kind": {"list": ["Momentum", "Nesterov"]},
            },
        }
    )
    built = {point: spec.cell(point)[0][0].rule for point in [(0, 0), (1, 0), (1, 1)]}
    assert [(type(rule), float(rule.beta)) for rule in built.values()] == [
        (gs.rules.Momentum, 0.5),
        (gs.rules.Momentum, 0.9),
        (gs.rules.Nesterov, 0.9),
    ]


def test_the_hidden_layers_of_a_network_may_be_reduced_under_momentum_and_ridge():
    """The part of a layer that no gradient reaches shrinks by the ridge alone, with a momentum of its own."""
    for rule in (gs.rules.Momentum(0.6), gs.rules.Nesterov(0.5)):
        for model, start in (
            (gs.DeepLinear(2, 20), gs.starts.FanInUniform()),
            (gs.DeepLinear(4, 20), gs.starts.Orthogonal()),
        ):
            algorithm = gs.RidgeDescent(0.05, 0.1, model=model, start=start, rule=rule)
            problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
            assert choose_reduction("auto", algorithm, problem).widths == "closed"
            watch = Watch()
            options = {"num_steps": 50, "seeds": 2, "record": [watch.diagnostic, "singular_values"], "record_at": 3}
            small = gs.run(algorithm, problem, **options)
            whole = gs.run(algorithm, problem, reduction="never", **options)
            for name in ("params", "singular_values"):
                np.testing.assert_allclose(small[name], whole[name], rtol=0, atol=1e-11)
            assert np.abs(whole.params.values[:, -1] - whole.params.values[:, 0]).max() > 0.1


def test_what_depends_on_coordinates_is_not_reduced():
    problem = gs.Problem(gs.RandomEnvironments(20, law=gs.TwoPoint(spread=4.0)), gs.Identity())
    narrow = gs.Symmetric(2)

    def rows(rule):
        return choose_reduction("auto", gs.HeteroSGD(0.05, model=narrow, rule=rule), problem).rows

    assert (
        rows(gs.rules.Momentum())
        and rows(gs.rules.Nesterov())
        and rows(gs.rules.Optax(optax.sgd(1.0, 0.9), rotates=True))
    )
    assert not rows(gs.rules.Adam()) and not rows(gs.rules.Optax(optax.sgd(1.0, 0.9)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.rules.Momentum(1.0), "beta must be below 1"),
        (lambda: gs.rules.Momentum(-0.1), "beta must be a finite number of at least 0; got -0.1"),
        (lambda: gs.rules.Adam(beta2=1.5), "beta2 must be below 1"),
        (lambda: gs.rules.Nesterov(of=gs.rules.Adam()), "of must be a rule without memory"),
        (lambda: gs.HeteroSGD(0.05, rule=0.9), r"rule must be an UpdateRule such as Momentum\(0.9\)"),
        (lambda: gs.HeteroSGD(0.05, rule=optax.adam), r"or a transformation such as optax.adam\(1e-3\)"),
        (lambda: gs.HeteroSGD(1.0, rule=optax.lbfgs()), "leave out line searches"),
        (lambda: gs.rules.Optax(0.1), "transformation must be an optax transformation"),
        (lambda: gs.rules.Optax(optax.scale_by_adam()), "moves up the gradient, not down"),
        (lambda: gs.HeteroSGD(1.0, rule=optax.contrib.sam(optax.sgd(0.1), ADVERSARY)), r"reading.at\(params\)"),
        (lambda: gs.rules.Optax(optax.contrib.sam(optax.sgd(0.1), ADVERSARY, sync_period=7)), "other points too"),
        (lambda: gs.rules.Optax("adm", {"learning_rate": 1.0}), "did you mean 'adam'"),
        (lambda: gs.rules.Optax("adam", {"rate": 1.0}), "on a trial it raised TypeError"),
        (lambda: gs.rules.Optax(optax.adam(1.0), {"b1": 0.9}), "leave arguments out"),
        (lambda: gs.RidgeDescent(0.1, convention="appendix", rule=gs.rules.GradientStep()), "leave convention out"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(gs.GyrostatError, match=words):
        make()


def test_a_rule_that_says_nothing_is_refused_before_it_runs():
    class Nothing(gs.rules.UpdateRule):
        pass

    problem = gs.Problem(given_environments(), gs.Identity())
    with pytest.raises(gs.GyrostatError, match="Nothing defines neither __call__ nor update"):
        gs.run(gs.HeteroSGD(0.05, rule=Nothing()), problem, num_steps=1)
