"""Experiments as classes: claims stay methods, bounds are data, and declarations that cannot be right are refused."""

from __future__ import annotations

import numpy as np
import xarray as xr

from checks import refuses
from gyrostat.experiments import Experiment, ExperimentRun, Inequalities, Outcome, Paper, claim, inequality
from gyrostat.experiments.default_figure import AXIS


class Growth(Experiment):
    """Signals grow

    In every run.
    """

    source, items, word = "Mine 2026, Figure 1", "Figure 1", "small"
    sizes = {"seeds": (2, 4, 8), "start": (0.1, 0.2, 0.3), "widths": [2, 3, 4]}
    names = {"share_2": "share of the loss"}

    def compute(self, run, start, widths):
        return xr.Dataset({"loss": (("seed", "width"), start * run.rng.random((run.seeds, 3)))}, {"width": widths})

    @claim("all losses in [0, 1], shares in [0, .5]", least=(0, 1), share=(0, 0.5), runs=None)
    def low(self, ds):
        """Losses are {word}."""
        return ds.loss.min(), ds.loss.mean("seed"), ds.sizes["seed"]

    @claim(each={"at-2": 2, "at-3": 3}, items="Lemma {width}; (1)", fails="not covered", loss=(2, np.inf))
    def large(self, ds, width):
        """Losses are large at {width}.

        They are not, at {width}.
        """
        return ds.loss.sel(width=width).max()

    @claim("the loss at 2 at most 100 times that at 3", numbers={"factor": 100.0}, ours=True)
    def compared(self, ds, factor):
        """Losses are alike."""
        two, three = float(ds.loss.sel(width=2).max()), float(ds.loss.sel(width=3).max())
        return Outcome({"two": two, "three": three}, two <= factor * three)


DATA = Growth().data(seed=1, **Growth().settings("smoke"))


def claims_of(experiment) -> dict:
    return {claim.slug: claim for claim in experiment().claims}


def test_what_is_read_from_the_class():
    growth = Growth()
    assert (growth.name, growth.title, growth.summary) == ("growth", "Signals grow", "In every run.")
    assert growth.settings("full") == {"seeds": 8, "start": 0.3, "widths": [2, 3, 4]}
    refuses(lambda: growth.settings("tiny"), "size", "tiny")
    assert growth.low(DATA)[2] == 2 and Growth.low.__doc__ == "Losses are {word}."
    told = {slug: (one.statement, one.items, one.ours, one.expected) for slug, one in claims_of(Growth).items()}
    assert told == {
        "low": ("Losses are small.", ("Figure 1",), False, "holds"),
        "at-2": ("Losses are large at 2.", ("Lemma 2", "(1)"), False, "fails"),
        "at-3": ("Losses are large at 3.", ("Lemma 3", "(1)"), False, "fails"),
        "compared": ("Losses are alike.", (), True, "holds"),
    }


def test_numbers_have_the_names_of_bounds_and_coordinates_and_their_limits():
    claims = claims_of(Growth)
    outcome = claims["low"].measure(DATA)
    assert list(outcome.measured) == ["least", "share_2", "share_3", "share_4", "runs"] and outcome.verdict == "holds"
    assert outcome.measured["runs"] == 2 and outcome.limits["share_3"] == (0, 0.5) and "runs" not in outcome.limits
    assert claims["at-3"].measure(DATA).verdict == "fails"
    assert claims["at-3"].criterion == "loss >= 2" and claims["at-3"].reason == "They are not, at 3."
    assert claims["compared"].measure(DATA).verdict == "holds"
    assert claims["low"].measure(DATA * np.nan).verdict == "undecided"


def test_the_digest_sees_every_number_that_decides():
    def digest(criterion="C.", method=lambda self, ds: 1, **options):
        method.__doc__ = "It stays."
        (one,) = claim(criterion, **options)(method).claims
        return one.digest

    bounds = {"least": (0, 1), "share": (0, 0.5)}
    others = [
        digest(least=(0, 0.5), share=(0, 1)),  # swapped
        digest(least=(0, 1), share=(0, 0.6)),
        digest("D.", **bounds),
        digest(method=lambda self, ds, factor: 1, numbers={"factor": 2.0}, **bounds),
        digest(method=lambda self, ds, factor: 1, numbers={"factor": 3.0}, **bounds),
        digest(method=lambda self, ds, factor: 1, each={"a": 3.0}, **bounds),
    ]
    first = digest(**bounds)
    assert len({first, *others}) == len(others) + 1
    assert digest(names={"least": "words"}, items="Lemma 9", slug="other", **bounds) == first


def test_a_subclass_inherits_replaces_and_drops_claims():
    class Other(Growth):
        """Other signals"""

        source, word, large = "Mine 2026, Figure 2", "smaller", None

        @claim("least loss in [0, .5]", least=(0, 0.5))
        def low(self, ds):
            """Losses are {word}."""
            return ds.loss.min()

    assert {slug: one.statement for slug, one in claims_of(Other).items()} == {
        "low": "Losses are smaller.",
        "compared": "Losses are alike.",
    }


def test_the_default_figure_shows_how_near_each_number_comes_to_its_limit():
    paper = Paper(name="mine2026", title="Mine (2026)", experiments=[Growth])
    (growth,) = paper.experiments
    figure = growth.figure(DATA)
    near, expected_to_fail, limit = figure.panels[0].series
    shares = ["share of the loss", "share 3", "share 4"]
    rows = ["Figure 1: least", *(f"Figure 1: {name}" for name in shares), "Lemma 2", "Lemma 3"]
    assert list(near.categories) == rows
    assert figure.title == "Signals grow" and "2 seeds" in figure.note and limit.at == 1
    shares = DATA.loss.mean("seed").values / 0.5
    np.testing.assert_allclose(near.values[1:4], shares)
    assert np.isnan(near.values[4:]).all() and np.isnan(expected_to_fail.values[:4]).all()
    np.testing.assert_allclose(expected_to_fail.values[4], np.clip(2 / DATA.loss.sel(width=2).max(), *AXIS))
    far = paper.experiments[0].figure(DATA * 1e-9).panels[0].series[0]
    assert np.array_equal(far.beyond[1:4], [-1, -1, -1]) and far.values[1] == AXIS[0]
    assert paper.checked()["(1)"] == ["mine2026/growth/at-2", "mine2026/growth/at-3"]


def test_declarations_that_are_refused():
    def stays(self, ds):
        """It stays."""

    refuses(lambda: claim(x=(0, 1))(lambda self, ds: 1), "has no statement", "docstring")
    refuses(lambda: claim(fails="not covered", x=(0, 1))(stays), "'stays'", "say why after an empty line")
    refuses(lambda: claim(fails="not coverd", x=(0, 1))(stays), "'not covered'")
    refuses(lambda: claim(x=(0, 1))(Growth.large), "fails='not covered'")
    refuses(lambda: claim(x=3)(stays), "x of the claim 'stays'", "the least and the largest value", "3")
    refuses(lambda: claims_of(type("E", (Growth,), {"__doc__": "T", "source": "S", "low": claim(x=(0, 1))(Growth.low)}))[
        "low"
    ].measure(DATA), "returns 3 values for the 1 names")  # fmt: skip
    refuses(lambda: type("Empty", (Experiment,), {"__doc__": "T", "source": "S"}), "Empty", "no method compute")
    refuses(lambda: type("Nameless", (Growth,), {"source": "S"}), "Nameless", "no title")
    twice = {"__doc__": "T", "source": "S", "again": claim(x=(0, 1), slug="low")(stays)}
    refuses(lambda: type("Twice", (Growth,), twice), "two claims 'low'")


def test_progress_of_parts_adds_up():
    told: list[float] = []
    run = ExperimentRun(0, report=lambda done, total: told.append(round(done, 6)))
    for _ in run.over("ab"):
        run.progress(1, 2)
    assert told == [0.25, 0.5, 0.75, 1.0]


def test_an_inequality_needs_to_hold_and_to_be_nearly_attained():
    class Squares(Inequalities):
        """Squares"""

        source = "Mine 2026, Lemma 1"

        def instances(self, rng, samples):
            return ((x,) for x in rng.random(samples))

        @inequality(tight=0.5)
        def below(self, x):
            """x^2 <= x on [0, 1]."""
            return x**2, x

        @inequality()
        def above(self, x):
            """x <= x^2 on [0, 1]."""
            return x, x**2

        @inequality(tight=0.5, slug="loose-factor")
        def loose(self, x):
            """x <= 100."""
            return x, 100

    ds = Squares().data(seed=0, samples=100)
    verdicts = {slug: one.measure(ds).verdict for slug, one in claims_of(Squares).items()}
    assert verdicts == {"below": "holds", "above": "fails", "loose-factor": "fails"}
    assert claims_of(Squares)["below"].criterion.endswith("at most 1 (and at least 0.5)")
