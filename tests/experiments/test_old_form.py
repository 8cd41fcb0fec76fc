"""The form of papers up to 0.2 still runs, with a warning that shows the new one."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from checks import refuses
from gyrostat.experiments import Claim, Experiment, Paper, together, within
from gyrostat.figures.declarations import Figure, Line, Panel

SIZES = {size: {"seeds": seeds} for size, seeds in (("smoke", 2), ("standard", 4), ("full", 8))}


def compute(*, seed, progress, seeds):
    return xr.Dataset({"loss": ("seed", np.random.default_rng(seed).random(seeds))})


def draw(ds):
    panel = Panel(title="Losses", xlabel="run", ylabel="loss", series=[Line([0, 1], ds.loss.values[:2], "loss")])
    return Figure(title="Losses", panels=[panel])


def declared(**more):
    words = {"name": "fig1", "title": "Losses", "source": "Mine, Figure 1", "summary": "They fall."}
    return Experiment(**words, sizes=SIZES, compute=compute, draw=draw, **more)


def test_the_old_form_runs_and_warns():
    with pytest.warns(DeprecationWarning, match="@claim"):
        small = Claim(
            slug="small", statement="It is.", criterion="<= 1", measure=lambda ds: within(0, 1, loss=ds.loss.max())
        )
    with pytest.warns(DeprecationWarning, match="class Fig1"):
        paper = Paper(name="mine", title="Mine", experiments=[declared(claims=[small], weight=3.0)])
    (fig1,) = paper.experiments
    ds = fig1.data(seed=1, **fig1.settings("standard"))
    assert ds.sizes["seed"] == 4 and fig1.figure(ds).title == "Losses" and "4 seeds" in fig1.figure(ds).note
    assert [claim.measure(ds).verdict for claim in fig1.claims] == ["holds"] and fig1.weight == 3.0
    assert (fig1.title, fig1.summary, fig1.source) == ("Losses", "They fall.", "Mine, Figure 1")


def test_outcomes_of_the_old_form():
    both = together(within(0, 1, a=0.5), within(2, b=1.0))
    assert both.verdict == "fails" and both.measured == {"a": 0.5, "b": 1.0} and both.limits["a"] == (0, 1)
    assert together(within(0, 1, a=np.nan), within(2, b=3.0)).verdict == "undecided"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_the_old_form_refuses():
    options = {"slug": "a", "statement": "S.", "criterion": "C.", "measure": lambda ds: within(0, 1, x=0)}
    refuses(lambda: Claim(**options, expected="fails"), "'a'", "say why")
    refuses(lambda: Claim(**options, expected="fails", reason="R.", kind="wrong"), "'a'", "kind", "'wrong'")
    refuses(lambda: Claim(**options, kind="not covered"), "'a'", "only statements that fail")
    twice = [Claim(**options), Claim(**options)]
    refuses(lambda: declared(claims=twice), "two claims with the same slug")
