"""Rules with memory: the steps of optax, in every kind of run, and what is refused."""

from __future__ import annotations

import numpy as np
import optax
import pytest

import gyrostat as gs
from completion_problem import ENVIRONMENTS, OBSERVED
from conftest import Watch, given_environments, rectangular_environments
from gyrostat.engine.reduction import choose_reduction

ADVERSARY = optax.chain(optax.contrib.normalize(), optax.sgd(0.05))
OURS_AND_OPTAX = {
    "momentum": (gs.rules.Momentum(0.8), optax.sgd(0.5, momentum=0.8)),
    "nesterov": (gs.rules.Nesterov(0.8), optax.sgd(0.5, momentum=0.8, nesterov=True)),
    "adam": (gs.rules.Adam(0.85, 0.95, 1e-6), optax.adam(0.5, 0.85, 0.95, 1e-6)),
}


@pytest.mark.parametrize("make", [gs.GradientDescent, gs.ScaledGD])
@pytest.mark.parametrize("name", OURS_AND_OPTAX)
def test_a_transformation_of_optax_is_a_rule_and_ours_are_those_of_optax(name, make):
    """The step of the algorithm multiplies its update, and it receives the directions of the algorithm, with the ridge."""
    ours, transformation = OURS_AND_OPTAX[name]
    problem = gs.Problem(rectangular_environments(), gs.Identity())
    options = {"num_steps": 30, "record": [Watch().diagnostic], "record_at": 31}

    def path(rule, step_size):
        return gs.run(make(gs.schedules.Constant(step_size, 0.1), width=2, rule=rule), problem, **options).params

    result = path(ours, 0.02)
    # Over-parameterised factors multiply the rounding of ScaledGD tenfold in six steps.
    np.testing.assert_allclose(path(transformation, 0.04), result, rtol=0, atol=1e-11)
    assert float(abs(result[:, -1] - result[:, 0]).max()) > 0.1
    assert make(1.0, rule=transformation).rule.of == make(1.0, rule=ours).rule.of


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
        result = gs.run(algorithm, problem, num_steps=30, seeds=2, record=["distance"], record_at=2)
        assert np.isinf(result.diverged).all() and np.ptp(result.distance.values, axis=1).min() > 1e-3


def test_a_grid_compiles_once():
    """test_conformance.py changes the numbers of all rules."""
    problem = gs.Problem(given_environments(), gs.Identity())
    transformation = optax.adam(1.0)
    grids = {
        "one transformation": lambda eta, beta: gs.HeteroSGD(eta, rule=transformation),
        "amplified": lambda eta, beta: gs.HeteroSGD(eta, amplify=beta),
    }
    for name, build in grids.items():
        watch = Watch()
        options = {"num_steps": 12, "record": [watch.diagnostic], "record_at": 2}
        cells = {"eta": [0.01, 0.02], "beta": [0.5, 0.8, 0.9]}
        result = gs.run_grid(lambda build=build, **at: (build(**at), problem), cells, **options)
        traced, ends = watch.traced, result.params.isel(step=-1).values
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
            "environments": {"kind": "RandomEnvironments", "dimension": 5},
            "measurements": {"kind": "Identity"},
            "success": {"distance": {"below": 0.1}},
            "axes": {
                "algorithm.rule.beta": {"list": [0.5, 0.9]},
                "algorithm.rule.kind": {"list": ["Momentum", "Nesterov"]},
            },
        }
    )
    rules = [spec.cell(point)[0][0].rule for point in [(0, 0), (1, 1)]]
    assert rules == [gs.rules.Momentum(0.5), gs.rules.Nesterov(0.9)]


@pytest.mark.parametrize(
    ("rule", "model", "start"),
    [
        (gs.rules.Momentum(0.6), gs.DeepLinear(2, 20), gs.starts.FanInUniform()),
        (gs.rules.Nesterov(0.5), gs.DeepLinear(4, 20), gs.starts.Orthogonal()),
    ],
)
def test_the_hidden_layers_of_a_network_may_be_reduced_under_momentum_and_ridge(rule, model, start):
    """The part of a layer that no gradient reaches shrinks by the ridge alone, with a momentum of its own."""
    algorithm = gs.RidgeDescent(0.05, 0.1, model=model, start=start, rule=rule)
    problem = gs.Problem(ENVIRONMENTS, gs.Entries(OBSERVED, batch_size=1))
    assert choose_reduction("auto", algorithm, problem).widths == "closed"
    options = {"num_steps": 50, "seeds": 2, "record": [Watch().diagnostic], "record_at": 3}
    small, whole = (gs.run(algorithm, problem, reduction=mode, **options).params for mode in ("auto", "never"))
    np.testing.assert_allclose(small, whole, rtol=0, atol=1e-11)
    assert np.abs(whole.values[:, -1] - whole.values[:, 0]).max() > 0.1


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
