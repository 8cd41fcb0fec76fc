"""A small made-up paper for the tests of the runner; environment variables ``FAKE_*`` make it slow or make it fail."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, Outcome, Paper, within
from gyrostat.figures.declarations import Figure, Heat, Line, Panel, band


def compute(name):
    def run(*, seed, progress, seeds, steps):
        if "FAKE_LOG" in os.environ:
            with Path(os.environ["FAKE_LOG"]).open("a") as log:
                log.write(f"{name} {os.getpid()}\n")
        if os.environ.get("FAKE_FAIL") == name:
            raise RuntimeError("the fake paper was asked\nto fail")
        if os.environ.get("FAKE_DIE") == name:
            os._exit(9)
        for i in range(4):
            time.sleep(float(os.environ.get("FAKE_SLEEP", "0")) / 4 if name in ("fig2", "fig10") else 0)
            progress(i + 1, 4)
        walks = np.random.default_rng(seed).normal(size=(seeds, steps)).cumsum(axis=1)
        data = {"walk": (("seed", "step"), walks), "kind": (("seed",), [f"walk {i}" for i in range(seeds)])}
        return xr.Dataset(data, coords={"seed": np.arange(seeds), "step": np.arange(steps)}, attrs={"settings": "{}"})

    return run


def draw(ds):
    if "FAKE_DRAW" in os.environ:
        raise RuntimeError("the fake paper cannot draw")
    curves = Panel(
        title="Walks",
        xlabel="step",
        ylabel="position",
        series=[band(ds.walk, "walk"), Line(ds.step.values, ds.walk[0].values, "one")],
    )
    heat = Panel(
        title="All walks",
        xlabel="step",
        ylabel="seed",
        series=[Heat(ds.step.values, ds.seed.values, ds.walk.values, "position")],
    )
    return Figure(title="Random <walks>", panels=[curves, heat], note="A walk goes nowhere & everywhere.")


def spread(ds):
    return within(0, float(os.environ.get("FAKE_LIMIT", "1e9")), spread=float(ds.walk.std()))


CLAIMS = (
    Claim(slug="spread", statement="A walk has <b>finite</b> spread.", criterion="spread at most 1e9", measure=spread),
    Claim(
        slug="still",
        statement="A walk stays.",
        criterion="spread 0",
        measure=lambda ds: within(0, 0, spread=float(ds.walk.std())),
        expected="fails",
        kind="false as printed",
        reason="It moves.",
    ),
)
UNKNOWN = Claim(
    slug="unknown",
    statement="Nobody knows.",
    criterion="a number that is NaN",
    measure=lambda ds: Outcome({"rate": float("nan")}, True),
)
SIZES = {
    "smoke": {"seeds": 3, "steps": 5},
    "standard": {"seeds": 4, "steps": 9},
    "full": {"seeds": 5, "steps": 12},
}


def experiment(name, weight, claims=CLAIMS):
    return Experiment(
        name=name,
        title=f"Figure {name}",
        source="A fake paper",
        summary="Walks.",
        sizes=SIZES,
        compute=compute(name),
        draw=draw,
        claims=claims,
        weight=weight,
    )


EXPERIMENTS = (
    experiment("fig1", 5.0),
    experiment("fig2", 3.0),
    experiment("fig10", 2.0, CLAIMS[:1]),
    experiment("figX", 1.0, (UNKNOWN,)),
)

PAPER = Paper(name="fake2024", title="A fake paper", experiments=EXPERIMENTS)
