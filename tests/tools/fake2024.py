"""A small made-up paper for the tests of the runner; environment variables ``FAKE_*`` make it slow or make it fail."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, Outcome, Paper, claim
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Heat, Line, band


class Walks(Experiment):
    sizes = {"seeds": (3, 4, 5), "steps": (5, 9, 12)}

    def compute(self, run, steps):
        if "FAKE_LOG" in os.environ:
            with Path(os.environ["FAKE_LOG"]).open("a") as log:
                log.write(f"{self.name} {os.getpid()}\n")
        if os.environ.get("FAKE_FAIL") == self.name:
            raise RuntimeError("the fake paper was asked\nto fail")
        if os.environ.get("FAKE_DIE") == self.name:
            os._exit(9)
        for i in range(4):
            time.sleep(float(os.environ.get("FAKE_SLEEP", "0")) / 4 if self.name in ("fig2", "fig10") else 0)
            run.progress(i + 1, 4)
        walks = run.rng.normal(size=(run.seeds, steps)).cumsum(axis=1)
        data = {"walk": (("seed", "step"), walks), "kind": (("seed",), [f"walk {i}" for i in range(run.seeds)])}
        return xr.Dataset(
            data, coords={"seed": np.arange(run.seeds), "step": np.arange(steps)}, attrs={"settings": "{}"}
        )

    def draw(self, ds):
        if "FAKE_DRAW" in os.environ:
            raise RuntimeError("the fake paper cannot draw")
        one = Line(ds.step.values, ds.walk[0].values, "one")
        curves = panel("Walks", "step", "position", band(ds.walk, "walk"), one)
        heat = panel("All walks", "step", "seed", Heat(ds.step.values, ds.seed.values, ds.walk.values, "position"))
        return figure(curves, heat, title="Random <walks>", note="A walk goes nowhere & everywhere.")

    @claim("spread at most 1e9")
    def spread(self, ds):
        """A walk has <em>finite</em> spread."""
        size = float(ds.walk.std())
        return Outcome({"spread": size}, size <= float(os.environ.get("FAKE_LIMIT", "1e9")))

    @claim("spread 0", spread=(0, 0), fails="false as printed")
    def still(self, ds):
        """A walk stays.

        It moves.
        """
        return ds.walk.std()


class Fig1(Walks):
    """Figure fig1

    Walks.
    """

    source, weight = "A fake paper", 5.0


class Fig2(Walks):
    """Figure fig2

    Walks.
    """

    source, weight = "A fake paper", 3.0


class Fig10(Walks):
    """Figure fig10

    Walks.
    """

    source, weight, still = "A fake paper", 2.0, None


class FigX(Walks):
    """Figure figX

    Walks.
    """

    source, spread, still = "A fake paper", None, None

    @claim("a number that is NaN", rate=(0, 1))
    def unknown(self, ds):
        """Nobody knows."""
        return np.nan


PAPER = Paper(name="fake2024", title="A fake paper", experiments=[Fig1, Fig2, Fig10, FigX])
