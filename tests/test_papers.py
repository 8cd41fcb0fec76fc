"""The papers' experiments at smoke size: they run, draw, decide as expected, and every claim can come out otherwise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from gyrostat.lab.experiment import SIZES
from gyrostat.lab.figures import Band, Bars, Heat, Line, Marker, Points
from gyrostat.papers import PAPERS, experiments
from gyrostat.papers.statistics import crossing, last, median, share_below, slope, wilson

NAMES = [(paper, name) for paper in PAPERS for name in experiments(paper)]
_DATA: dict = {}


def data(paper, name):
    """Computed once per session, with a seed that nobody looked at before fixing it."""
    if (paper, name) not in _DATA:
        experiment = experiments(paper)[name]
        _DATA[paper, name] = experiment.compute(seed=20261115, progress=None, **experiment.sizes["smoke"])
    return _DATA[paper, name]


@pytest.mark.parametrize(("paper", "name"), NAMES)
def test_verdicts_are_the_expected_ones(paper, name):
    ds = data(paper, name)
    for claim in experiments(paper)[name].claims:
        outcome = claim.measure(ds)
        assert outcome.verdict == claim.expected, f"{name}/{claim.slug}: {dict(outcome.measured)}"
        assert all(math.isfinite(v) for v in outcome.measured.values())


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
        ramp = np.linspace(0.01, 2, ds.sizes[dim])
        yield (
            f"ramp along {dim}",
            ds.map(
                lambda v, dim=dim, ramp=ramp: (
                    v.copy(data=np.broadcast_to(_along(ramp, v, dim), v.shape)) if dim in v.dims else v
                )
            ),
        )
    for name in ds.data_vars:
        for word, change in changes.items():
            yield f"{name} {word}", ds.assign({name: ds[name].copy(data=change(ds[name].values.astype(float)))})
    for name, value in ds.attrs.items():
        if isinstance(value, float):
            for factor in (1e-6, 1e6):
                yield f"attribute {name} x {factor:g}", ds.assign_attrs({name: value * factor})
    for dim, along in itertools.permutations(ds.dims, 2):
        shifted = ds.map(lambda v, dim=dim, along=along: _shifted(v, dim, along))
        yield f"last of {dim} shifted along {along}", shifted


def _shifted(v, dim, along):
    """The last slice of one dimension moved by a third of another."""
    if not {dim, along} <= set(v.dims):
        return v
    moved = v.roll({along: v.sizes[along] // 3}, roll_coords=False)
    return v.where(np.arange(v.sizes[dim]).reshape(_shape(v, dim)) < v.sizes[dim] - 1, moved)


def _along(ramp, v, dim):
    return ramp.reshape(_shape(v, dim))


def _shape(v, dim):
    return [v.sizes[d] if d == dim else 1 for d in v.dims]


@pytest.mark.parametrize(("paper", "name"), NAMES)
def test_every_claim_can_come_out_otherwise(paper, name):
    ds = data(paper, name)
    for claim in experiments(paper)[name].claims:
        other = "fails" if claim.expected == "holds" else "holds"
        with np.errstate(all="ignore"):
            turned = any(_verdict(claim, wrong) == other for _, wrong in spoilt(ds))
        assert turned, f"no wrong input makes {name}/{claim.slug} come out as '{other}'"


def _verdict(claim, ds):
    try:
        return claim.measure(ds).verdict
    except (ValueError, ZeroDivisionError, np.linalg.LinAlgError):  # degenerate data refused: that is not a verdict
        return "refused"


@pytest.mark.parametrize(("paper", "name"), NAMES)
def test_figures_show_labelled_finite_data(paper, name):
    figure = experiments(paper)[name].draw(data(paper, name))
    assert figure.title and figure.note and figure.panels
    for panel in figure.panels:
        assert panel.title and panel.ylabel and panel.series
        for series in panel.series:
            values = {
                Line: lambda s: s.y, Band: lambda s: s.middle, Points: lambda s: s.y, Bars: lambda s: s.values,
                Marker: lambda s: s.at, Heat: lambda s: s.z,
            }[type(series)](series)  # fmt: skip
            assert np.isfinite(np.asarray(values, dtype=float)).any(), f"{name}: {series.label} shows nothing"


@pytest.mark.parametrize(("paper", "name"), NAMES)
def test_declarations_are_complete(paper, name):
    experiment = experiments(paper)[name]
    assert set(experiment.sizes) == set(SIZES)
    assert experiment.title and experiment.source and experiment.summary and experiment.claims
    for claim in experiment.claims:
        assert claim.statement and claim.criterion
        assert bool(claim.reason) == (claim.expected == "fails")


def test_the_same_seed_gives_the_same_numbers():
    experiment = experiments("xu2024")["diagonal"]
    again = experiment.compute(seed=20261115, progress=None, **experiment.sizes["smoke"])
    assert again.equals(data("xu2024", "diagonal"))
    other = experiment.compute(seed=20261116, progress=None, **experiment.sizes["smoke"])
    assert not other.equals(again)


def test_statistics_count_divergence_as_failure():
    import xarray as xr

    values = xr.DataArray([[0.0, 0.05], [0.0, np.nan], [0.0, np.nan]], dims=("seed", "step"))
    assert float(share_below(last(values), 0.1)) == pytest.approx(1 / 3)
    assert float(median(last(values))) == np.inf


def test_crossing_and_slope_and_interval():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    assert crossing(x, np.array([0.0, 0.6, 0.4, 0.8]), 0.5) == pytest.approx(3.25)
    assert math.isnan(crossing(x, np.zeros(4), 0.5))
    assert slope(x, 7 * x**-0.5) == pytest.approx(-0.5)
    from scipy.stats import binomtest

    for k, n in ((0, 20), (7, 50), (50, 50)):
        interval = binomtest(k, n).proportion_ci(method="wilson")
        low, high = wilson(np.array(k), n, z=1.959963984540054)
        assert (float(low), float(high)) == pytest.approx((interval.low, interval.high), abs=1e-9)
