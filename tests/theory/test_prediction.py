"""The prediction: what its rules compute, what it prints, and the assessment that reads it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import gyrostat as gs
from checks import refuses
from gyrostat import theory
from gyrostat.diagnostics import IsometryEstimate
from gyrostat.theory.assessment import assessment_sentences
from gyrostat.theory.condition import condition_text
from gyrostat.theory.prediction import prediction_of

PROBLEM = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(720))


def predict(algorithm=None, problem=PROBLEM, num_steps=200) -> theory.Prediction:
    return theory.predict(algorithm or gs.HeteroSGD(0.05), problem, num_steps=num_steps)


def test_the_margins_are_those_of_the_formulas():
    for M in (3.0, 5.0, 7.0):
        prediction = predict(problem=gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=M)), gs.Identity()))
        exponent = 0.5 * math.log(abs(1.05**2 - (0.05 * M) ** 2))
        assert prediction.exponent == pytest.approx(exponent, rel=1e-12)
        wanted = {
            "surrogate": prediction.probability - 0.5,
            "lyapunov": math.log(math.sqrt(0.1) / 1e-3) - 200 * exponent,
            "exponent": -exponent,
            "window": 0.05 - 4 / (0.9 * M**2),
        }
        assert prediction.margins == pytest.approx(wanted, rel=1e-9)
        assert prediction.verdicts == {name: margin > 0 for name, margin in wanted.items()}
        assert prediction.by == "surrogate" and prediction.eliminated == (prediction.probability > 0.5)
        assert prediction.critical_spread == pytest.approx(4.16, abs=0.01)


def test_the_threshold_is_that_of_the_setting():
    setting = theory.Setting(gs.TwoPoint(spread=6.0), threshold=0.5)
    prediction, usual = prediction_of(setting), prediction_of(dataclasses.replace(setting, threshold=0.1))
    assert prediction.margins["lyapunov"] - usual.margins["lyapunov"] == pytest.approx(0.5 * math.log(5), rel=1e-9)
    spread = math.sqrt(1.05**2 - (math.sqrt(0.5) / 1e-3) ** (2 / 200)) / 0.05
    assert prediction.critical_spread == pytest.approx(spread, rel=1e-9)
    assert prediction.probability > usual.probability


def test_both_sides_of_the_transition():
    for M, is_eliminated in ((1.0, False), (9.0, True)):
        prediction = predict(problem=gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=M)), gs.Identity()))
        assert prediction.eliminated == prediction.verdicts["lyapunov"] == is_eliminated
        assert abs(prediction.probability - is_eliminated) < 0.1


def test_what_a_prediction_prints():
    lines = str(predict()).splitlines()
    assert lines[0].startswith("The spurious signal is eliminated in a typical run (surrogate, in ")
    assert lines[1] == "  lambda = +0.00621 per step, M* = 4.16"
    assert [line.split()[:3] for line in lines[2:]] == [
        ["surrogate", "eliminated", "margin"],
        ["lyapunov", "eliminated", "margin"],
        ["exponent", "learnt", "margin"],
        ["window", "learnt", "margin"],
    ]
    uniform = gs.Problem(gs.RandomEnvironments(9, 2, law=gs.Uniform(spread=1.0)), gs.Identity())
    text = repr(predict(problem=uniform))
    assert "learnt in a typical run (lyapunov)." in text and "M*" not in text


def test_the_truth_of_a_prediction_is_not_asked_for():
    refuses(lambda: bool(predict()), ".eliminated", ".verdicts", ".probability")


@pytest.mark.parametrize("rule", [gs.rules.Momentum(0.9), gs.rules.Nesterov(0.9)])
def test_momentum_takes_the_effective_step_and_leaves_the_surrogate_out(rule):
    margins = dict(predict(gs.HeteroSGD(0.005)).margins)
    del margins["surrogate"]
    assert predict(gs.HeteroSGD(0.0005, rule=rule)).margins == pytest.approx(margins, rel=1e-9)


def test_amplification_changes_the_law():
    """M = 2 with kappa = 5 gives the same margins as M = 12, and others than M = 2."""

    def margins(M, **options):
        problem = gs.Problem(gs.RandomEnvironments(9, law=gs.TwoPoint(spread=M)), gs.FreshGaussian(720))
        found = predict(gs.HeteroSGD(0.05, **options), problem).margins
        return [found[name] for name in ("lyapunov", "exponent", "window")]

    np.testing.assert_allclose(margins(2.0, amplify=5.0), margins(12.0), rtol=1e-10)
    assert margins(2.0, amplify=5.0) != pytest.approx(margins(2.0), rel=0.1)


def test_a_rule_of_your_own_is_part_of_every_prediction(monkeypatch):
    monkeypatch.setitem(theory.RULES, "Smith's rule", lambda setting: setting.num_steps - 100)
    assert predict().margins["Smith's rule"] == 100
    assert "Smith's rule eliminated  margin      +100\n" in str(predict(gs.HeteroSGD(0.05))) + "\n"


def test_the_setting_of_a_run():
    setting = theory.Setting.of(gs.HeteroSGD(0.02, init_scale=0.01, order="cyclic"), PROBLEM, 50)
    assert dataclasses.astuple(setting)[1:] == (9, 1, 0.0, 0.02, 0.01, 50, 720.0, 0.1, False)
    assert (
        theory.Setting.of(gs.HeteroSGD(0.02), gs.Problem(PROBLEM.environments, gs.Identity()), 50).num_samples
        == math.inf
    )


# --- the assessment ---------------------------------------------------------------------------------


def test_an_assessment_tells_the_two_sides_of_the_transition_apart():
    forgets, learns = (
        theory.assess(theory.Setting(gs.TwoPoint(spread=M), dimension=30, num_samples=2400), isometry_draws=0, runs=800)
        for M in (8.0, 1.0)
    )
    assert forgets.prediction.eliminated and forgets.prediction.probability > 0.9
    assert not learns.prediction.eliminated and learns.prediction.probability < 0.05
    assert forgets.pooled_gap == pytest.approx(math.sqrt(0.5)) and forgets.isometry is None
    assert "overlap of the subspaces" not in [condition.name for condition in forgets.conditions]


def test_an_assessment_with_the_isometry_constant(monkeypatch):
    estimate = IsometryEstimate(value=0.3, low=0.2, high=0.4, draws=np.array([0.2, 0.4]))
    asked = []
    monkeypatch.setattr(theory.assessment, "isometry_constant", lambda *a, **k: asked.append((a, k)) or estimate)
    outcome = theory.assess(
        theory.Setting(gs.TwoPoint(rank=2), dimension=30, num_samples=500), isometry_draws=4, seed=7
    )
    assert asked == [((30, 500, 12), {"draws": 4, "seed": 7})]  # rank 4 (1 + 2)
    theory.assess(theory.Setting(gs.TwoPoint(rank=2), dimension=10, num_samples=500))
    assert asked[1] == ((10, 500, 10), {"draws": 3, "seed": 0})  # but at most the dimension
    overlap = next(c for c in outcome.conditions if c.name == "overlap of the subspaces")
    assert outcome.isometry is estimate and overlap.bound == 0.15
    assert outcome.prediction.probability is None  # the surrogate covers one direction, not two


def test_an_assessment_in_words():
    def sentences(**change):
        setting = theory.Setting(gs.TwoPoint(spread=4.5, mean=1.0), dimension=30, **change)
        outcome = theory.assess(setting, isometry_draws=0, runs=300)
        return outcome._replace(error=0.25), setting

    estimate = IsometryEstimate(value=0.3, low=0.2, high=0.4, draws=np.array([0.2, 0.4]))
    outcome, setting = sentences()
    prediction = outcome.prediction
    for probability, eliminated, is_said in (
        (0.04, False, False),
        (0.06, False, True),
        (None, False, False),
        (None, True, True),
    ):
        told = outcome._replace(
            prediction=dataclasses.replace(prediction, probability=probability, eliminated=eliminated),
            isometry=estimate,
        )
        text = "\n".join(assessment_sentences(setting, told))
        assert ("Where it is eliminated, the error ||UU^T - A_star||_F is about 0.25." in text) == is_said
        assert text.startswith("Isometry constant (rank 8): at least 0.3 [0.2, 0.4], found by search on 2 designs.")
        assert text.endswith("Pooled training never comes closer to A_star than 0.707.")
    text = "\n".join(assessment_sentences(setting, outcome._replace(pooled_gap=None)))
    assert "Isometry" not in text and "Pooled" not in text
    other = theory.assess(theory.Setting(gs.TwoPoint(mean=0.5)), isometry_draws=0, runs=300)
    assert other.pooled_gap is None  # the theorems assume that the mean is the identity


def test_conditions_in_words():
    texts = [
        condition_text(theory.Condition("a", "b", 0.5, relation, bound, "c"))
        for relation, bound in RELATIONS_AND_BOUNDS
    ]
    assert [tuple(text) for text in texts] == [
        ("a", "b", "0.5", "<", "0.5", "fails", "c"),
        ("a", "b", "0.5", "≥", "0.25", "holds", "c"),
        ("a", "b", "0.5", "∈", "(0.1, 1)", "holds", "c"),
        ("a", "b", "0.5", "∈", "(0.5, 0.5), empty", "fails", "c"),
        ("a", "b", "0.5", "∈", "(0.5, 1)", "fails", "c"),
    ]


RELATIONS_AND_BOUNDS = [("<", 0.5), (">=", 0.25), ("in", (0.1, 1.0)), ("in", (0.5, 0.5)), ("in", (0.5, 1.0))]


def test_the_critical_spread_is_of_two_equally_likely_strengths():
    for law, is_known in (
        (gs.Finite([-3.0, 5.0]), True),
        (gs.Finite([-3.0, 5.0], [0.4, 0.6]), False),
        (gs.Finite([-3.0, 5.0, 1.0]), False),
        (gs.Uniform(spread=4.0), False),
    ):
        assert (prediction_of(theory.Setting(law), runs=5).critical_spread is not None) == is_known


@pytest.mark.parametrize(
    "change",
    [
        {"dimension": 1},
        {"rank": 101},
        {"overlap": 1.5},
        {"step_size": 0.0},
        {"init_scale": float("nan")},
        {"num_steps": 0},
        {"num_samples": -3},
        {"threshold": 0.0},
    ],
)
def test_bad_settings_name_the_argument(change):
    refuses(lambda: theory.Setting(gs.TwoPoint(spread=6.0), **change), *change)


def test_condition_relations():
    assert theory.Condition("a", "b", 1.0, "in", (0.0, 2.0)).holds
    assert not theory.Condition("a", "b", 2.0, "in", (0.0, 2.0)).holds
    assert theory.Condition("a", "b", 2.0, ">=", 2.0).holds and theory.Condition("a", "b", 2.0, "<=", 2.0).holds
    assert not theory.Condition("a", "b", 2.0, ">", 2.0).holds
    assert not theory.Condition("a", "b", float("nan"), "<=", 2.0).holds


# --- names ------------------------------------------------------------------------------------------


def test_flat_names_answer_with_their_new_place():
    for old, new in (("fold", theory.wang2023.fold), ("heterogeneity", theory.xu2024.constants)):
        with pytest.warns(DeprecationWarning, match=f"gyrostat.theory.{old} is now gyrostat.theory.*{new.__name__}"):
            assert getattr(theory, old) is new
    for name, words in (
        ("leading_error", "is gone: use"),
        ("Toy", "is gone: .*toy_sequences"),
        ("predictors", "is gone: .*RULES"),
        ("foldd", "^gyrostat.theory has no 'foldd'"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(theory, name)
