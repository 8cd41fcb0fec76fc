"""What every experiment of every paper must do at smoke size; there is a test file per paper, so that they run in parallel."""

from __future__ import annotations

import itertools
import math

import numpy as np

import figure_checks
from conftest import compiled_hastily
from gyrostat.experiments.experiment import SIZES
from gyrostat.experiments.registry import experiments
from gyrostat.figures.declarations import Band, Bars, Dots, Heat, Line, Marker, Points, Runs

_OF_XIONG = (
    "figI2",
    "figI3",
    "figI4",
    "figI5",
    "thm3.1",
    "thm4.1",
    "thm4.2",
    "thm5.1",
    "lemmasG",
)
MOSTLY_COMPILE = {"xu2024": ("fig5-replacement", "thm3", "indefinite"), "xiong2024": _OF_XIONG, "studies": ("peers",)}
"""Experiments that compile for seconds at smoke size and compute for tenths of one: they compile hastily, like most tests.

The others keep the optimisations that users get, without which figure 1 of Wang 2023 would compute for a minute, not a second.
"""
_DATA: dict = {}


def data(paper, name):
    """Computed once per session, with a seed that nobody looked at before fixing it."""
    if (paper, name) not in _DATA:
        experiment = experiments(paper)[name]
        with compiled_hastily(name in MOSTLY_COMPILE.get(paper, ())):
            _DATA[paper, name] = experiment.data(seed=20261115, **experiment.settings("smoke"))
    return _DATA[paper, name]


def spoilt(ds):
    """The same data, wrong in one way each."""
    changes = {
        "zero": lambda x: np.zeros_like(x),
        "one": lambda x: np.ones_like(x),
        "hundredfold": lambda x: 100 * x,
        "hundredth": lambda x: x / 100,
        "huge": lambda x: 1e12 * x,
        "negated": lambda x: -x,
        "third": lambda x: 1 / 3 + 0 * x,
    }
    for word, change in changes.items():
        yield word, ds.map(lambda v, change=change: v.copy(data=change(v.values.astype(float))))
    for dim in ds.dims:
        flipped = ds.map(lambda v, dim=dim: v.copy(data=np.flip(v.values, v.get_axis_num(dim))) if dim in v.dims else v)
        yield f"flipped along {dim}", flipped
        for way in (1, -1):
            ramp = np.linspace(0.01, 2, ds.sizes[dim])[::way]
            yield f"ramp along {dim}", ds.map(lambda v, dim=dim, ramp=ramp: _ramped(v, dim, ramp))
    for name in ds.data_vars:
        for word, change in changes.items():
            yield f"{name} {word}", ds.assign({name: ds[name].copy(data=change(ds[name].values.astype(float)))})
    for name, value in ds.attrs.items():
        if isinstance(value, float):
            for power in (*range(-12, 0), *range(1, 13)):
                yield f"attribute {name} x 1e{power}", ds.assign_attrs({name: value * 10.0**power})
    for dim in ds.dims:
        if dim in ds.coords and ds[dim].dtype.kind == "f":
            yield f"coordinate {dim} x 1.25", ds.assign_coords({dim: 1.25 * ds[dim]})
    for dim, along in itertools.permutations(ds.dims, 2):
        shifted = ds.map(lambda v, dim=dim, along=along: _shifted(v, dim, along))
        yield f"last of {dim} shifted along {along}", shifted


def _shifted(v, dim, along):
    """The last slice of one dimension moved by a third of another."""
    if not {dim, along} <= set(v.dims):
        return v
    moved = v.roll({along: v.sizes[along] // 3}, roll_coords=False)
    return v.where(np.arange(v.sizes[dim]).reshape(_shape(v, dim)) < v.sizes[dim] - 1, moved)


def _ramped(v, dim, ramp):
    return v.copy(data=np.broadcast_to(ramp.reshape(_shape(v, dim)), v.shape)) if dim in v.dims else v


def _shape(v, dim):
    return [v.sizes[d] if d == dim else 1 for d in v.dims]


def _verdict(claim, ds):
    try:
        return claim.measure(ds).verdict
    except (ValueError, ZeroDivisionError, np.linalg.LinAlgError):  # degenerate data refused: that is not a verdict
        return "refused"


class Checks:
    """Tests of every experiment of ``paper``; conftest.py gives them its names."""

    paper: str

    def test_verdicts_are_the_expected_ones(self, name):
        ds = data(self.paper, name)
        for claim in experiments(self.paper)[name].claims:
            outcome = claim.measure(ds)
            assert outcome.verdict == claim.expected, f"{name}/{claim.slug}: {dict(outcome.measured)}"
            assert all(math.isfinite(v) for v in outcome.measured.values())

    def test_every_claim_can_come_out_otherwise(self, name):
        ds = data(self.paper, name)
        for claim in experiments(self.paper)[name].claims:
            other = "fails" if claim.expected == "holds" else "holds"
            with np.errstate(all="ignore"):
                turned = any(_verdict(claim, wrong) == other for _, wrong in spoilt(ds))
            assert turned, f"no wrong input makes {name}/{claim.slug} come out as '{other}'"

    def test_figures_show_labelled_finite_data(self, name):
        figure = experiments(self.paper)[name].figure(data(self.paper, name))
        assert figure.title and figure.note and figure.panels
        for panel in figure.panels:
            assert panel.title and panel.series
            assert panel.ylabel or all(
                isinstance(series, Dots | Marker) for series in panel.series
            )  # names of categories
            for series in panel.series:
                values = {
                    Line: lambda s: s.y,
                    Band: lambda s: s.middle,
                    Points: lambda s: s.y,
                    Bars: lambda s: s.values,
                    Dots: lambda s: s.values,
                    Marker: lambda s: s.at,
                    Runs: lambda s: np.concatenate([np.ravel(y) for y in s.y]),
                    Heat: lambda s: s.z,
                }[type(series)](series)
                assert np.isfinite(np.asarray(values, dtype=float)).any(), f"{name}: {series.label} shows nothing"
        figure_checks.drawn(figure, "column")
        figure_checks.pages(figure)

    def test_declarations_are_complete(self, name):
        experiment = experiments(self.paper)[name]
        assert all(isinstance(experiment.settings(size), dict) for size in SIZES)
        assert experiment.title and experiment.source and experiment.summary and experiment.claims
        for claim in experiment.claims:
            assert claim.statement and claim.criterion
            assert bool(claim.reason) == (claim.expected == "fails")
