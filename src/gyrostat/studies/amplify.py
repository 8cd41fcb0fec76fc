"""Amplified heterogeneity: where it makes the method work, and what it costs."""

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, crossing, last, median, share_below, slope
from gyrostat.figures.compose import figure, panel, spread
from gyrostat.figures.declarations import Heat, Line, band
from gyrostat.theory.ours import amplification_limit, amplified_error_law, critical_amplification, critical_spread
from gyrostat.theory.xu2024 import calibration

ALPHA, ETA, T = 1e-3, 0.05, 200
# Steps of 1.5 against steps of sqrt(2): with equal ratios all products M (1 + kappa) would lie on the boundary, or none.
SPREADS = [0.25, 0.4, 0.6, 0.9, 1.3, 2.0, 3.0, 4.5, 7.0]
FACTORS = [1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0, 22.0]
"""1 + kappa."""

PRICES = [0.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0]
PATHS = {"price": (1.0, PRICES), "half": (0.5, [0.0, 15.0])}
"""M and every kappa of the paths."""

RULED = [5.0, 7.0, 9.0, 11.0, 13.0]
"""The kappa at M = 1 that eliminate the spurious signal in most runs, so that the error law applies."""


def law(M):
    return gs.TwoPoint(mean=1.0, spread=M)


def critical(M):
    """The kappa from which on M is enough."""
    return critical_amplification(law(M), ETA, init_scale=ALPHA, num_steps=T)


def success(ds):
    """The share of runs without the spurious signal in each cell of the plane."""
    return share_below(ds.cell_spurious, 0.1, "cell_run")


class Amplify(Experiment):
    """Amplified heterogeneity

    Where the environments differ too little, stepping further from their mean makes the method work; the noise grows.
    """

    source = "ours; the step G_e + kappa (G_e - mean of G) in the setting of Xu 2024, section 5"
    weight, ours = 40, True
    sizes = {
        "seeds": (40, 40, 200),
        "dimension": (20, 60, 60),
        "cell_seeds": (128, 128, 200),
        "cell_dimension": (6, 20, 30),
    }
    names = {
        "kept": "share of the spurious signal, plain",
        "left": "share of the spurious signal, amplified",
        "accuracy": "share of the cells predicted right",
    }

    def compute(self, run, dimension, cell_seeds, cell_dimension):
        def cell(spread, kappa, dimension, num_samples):
            problem = gs.Problem(gs.RandomEnvironments(dimension, law=law(spread)), gs.FreshGaussian(num_samples))
            return gs.HeteroSGD(ETA, init_scale=ALPHA, amplify=kappa), problem

        def in_the_plane(spread, factor):
            return cell(spread, factor - 1, cell_dimension, 400 * cell_dimension)

        plane, record = {"spread": SPREADS, "factor": FACTORS}, ["signal", "spurious"]
        cells = run.grid(in_the_plane, plane, num_steps=T, seeds=cell_seeds, record=record, record_at=2)[record]
        parts = [last(cells).rename(signal="cell_signal", spurious="cell_spurious", seed="cell_run")]
        for name, (M, kappas) in PATHS.items():

            def along_the_path(amplify, M=M):
                return cell(M, amplify, dimension, 8000)

            record = ["signal", "spurious", "distance"]
            options = {"num_steps": T, "record": record, "record_at": T + 1}
            path = run.grid(along_the_path, {"amplify": kappas}, **options)[record]
            parts.append(path.rename({x: f"{name}_{x}" for x in (*record, "amplify")}))

        options = {"dimension": dimension, "rank": 1, "step_size": ETA, "num_samples": 8000}
        laws = [amplified_error_law(law(1.0), kappa, **options) for kappa in RULED]
        # 1 where the predictor says eliminated, 0 where learnt, NaN where signs flip and it does not apply.
        kappa = np.array(FACTORS) - 1
        rule = [np.where(kappa <= amplification_limit(law(M), ETA), kappa >= critical(M), np.nan) for M in SPREADS]
        ds = xr.merge(parts, combine_attrs="drop_conflicts")
        return ds.assign(law=("ruled", laws), rule=(("spread", "factor"), rule)).assign_coords(ruled=RULED)

    def draw(self, ds):
        flips = np.geomspace(SPREADS[0], SPREADS[-1], 40)
        few = flips[flips < critical_spread(ETA, init_scale=ALPHA, num_steps=T)]
        shown = "share of runs without spurious signal"
        return figure(
            panel(
                "Which runs eliminate it",
                "1 + kappa",
                "heterogeneity M",
                Heat(FACTORS, SPREADS, success(ds).values, shown, low=0, high=1),
                Line([1 + critical(M) for M in few], few, "predicted: M (1 + kappa) = M*", role="theory"),
                Line((1 + 1 / ETA) / flips, flips, "signs flip: eta (M (1 + kappa) - 1) = 1", role="bound"),
                xscale="log",
                yscale="log",
                xlim=(0.85, 26),
            ),
            panel(
                "Spurious signal along the path",
                "step",
                "share of the spurious signal",
                band(ds.price_spurious.sel(price_amplify=0.0), "M = 1, plain", colour=1),
                band(ds.price_spurious.sel(price_amplify=7.0), "M = 1, kappa = 7", colour=0),
                band(ds.half_spurious.sel(half_amplify=15.0), "M = .5, kappa = 15", colour=2),
                yscale="log",
            ),
            panel(
                "The price, at M = 1",
                "kappa",
                "||UU^T - A_star||_F at the end",
                spread(last(ds.price_distance), "measured (quartiles)", within=(0.25, 0.75)),
                Line(RULED, ds.law.values, "error law (ours)", role="theory"),
            ),
            title="Amplified heterogeneity eliminates the spurious signal where there is too little of it, at a price",
            note=f"eta = {ETA:g}, T = {T}, start {ALPHA:g}. Below kappa = {critical(1.0):.2f} the error at M = 1 is the "
            "spurious signal itself; above it is noise, which grows with kappa. Diverged runs count as failures.",
        )

    @claim(
        "median spurious share at the end: plain in [.8, 1.1], amplified <= .01",
        each={
            "m1": (
                "At M = 1 the plain method keeps the spurious signal; with kappa = 7 nothing is left of it.",
                "price",
                7.0,
            ),
            "m-half": ("At M = 0.5 the same is true, with kappa = 15.", "half", 15.0),
        },
        kept=(0.8, 1.1),
        left=(0, 0.01),
    )
    def works(self, ds, statement, name, kappa):
        """{statement}"""
        share = median(last(ds[f"{name}_spurious"]))
        return share.sel({f"{name}_amplify": 0.0}), share.sel({f"{name}_amplify": kappa})

    @claim("the predictor is right in at least 90 % of the cells in which no sign flips", accuracy=(0.9, 1))
    def boundary(self, ds):
        """Most runs eliminate the spurious signal exactly where M (1 + kappa) is above the plain method's M*."""
        return ((success(ds) >= 0.5) == ds.rule).where(ds.rule.notnull()).mean()

    @claim(
        "half of the runs succeed at a product within 25 % of M*, for every M that needs and can reach it",
        least=(0.75, 1.25),
        most=(0.75, 1.25),
    )
    def collapse(self, ds):
        """Heterogeneity and amplification are interchangeable: only the product M (1 + kappa) matters."""
        share, star = success(ds).where(ds.rule.notnull()), critical_spread(ETA, init_scale=ALPHA, num_steps=T)
        reachable = [M for M in SPREADS if 0 < critical(M) < FACTORS[-1] - 1]
        ratios = [M * crossing(FACTORS, share.sel(spread=M).values, 0.5) / star for M in reachable]
        return np.min(ratios), np.max(ratios)

    @claim(
        "median error over law in [.8, 1.25] for every kappa from 5 to 13, at M = 1",
        least=(0.8, 1.25),
        most=(0.8, 1.25),
    )
    def error_law(self, ds):
        """The error that is left follows our law with amplification."""
        ratio = median(last(ds.price_distance)).sel(price_amplify=RULED).values / ds.law.values
        return ratio.min(), ratio.max()

    @claim(
        "median over runs of the slope of log error over log (1 + kappa) in [.8, 1.2], kappa from 5 to 13, M = 1",
        slope=(0.8, 1.2),
    )
    def price(self, ds):
        """The price of amplification is noise in proportion to 1 + kappa."""
        # A run has the same noise at every kappa: its own slope scatters far less than the slope of medians over runs.
        errors, along = last(ds.price_distance).sel(price_amplify=RULED), [["price_amplify"]] * 2
        return median(xr.apply_ufunc(slope, 1 + errors.price_amplify, errors, input_core_dims=along, vectorize=True))

    @claim(
        "time to one half within 3 % of eq. (25)'s for every kappa; median invariant share at the end in [.9, 1.1]",
        earliest=(0.97, 1.03),
        latest=(0.97, 1.03),
        end=(0.9, 1.1),
    )
    def invariant_untouched(self, ds):
        """Amplification does not change how the invariant signal is learnt."""
        signal, steps = median(ds.price_signal), ds.step.values.astype(float)
        theory = crossing(steps, calibration(ETA, ALPHA, T)[ds.step.values] ** 2, 0.5)
        ratios = [crossing(steps, signal.sel(price_amplify=kappa).values, 0.5) / theory for kappa in PRICES]
        return min(ratios), max(ratios), last(signal).min()
