"""Figures 2 to 4 from PyTorch's own start, at full width; which starts diverge without a warm-up, and which jump alike."""

import jax
import numpy as np
import xarray as xr
from scipy.stats import ks_2samp

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, share_below, wilson
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Bars
from gyrostat.jax_tools.float64 import double
from gyrostat.papers.wang2023.fig3_annealing import SOLVED
from gyrostat.papers.wang2023.fig4_periodic import LOUD, QUIET, loud, periodic
from gyrostat.papers.wang2023.settings import (
    FIGURE1,
    FIGURE2,
    FIGURE2_SWITCH,
    FIGURE4,
    WARM_STEPS,
    WIDTH,
    annealed,
    completion,
    figure3,
    follow,
    network,
    share_by,
    shares_of_ranks,
)

STARTS = {
    "uniform": gs.starts.FanInUniform(),
    "Gaussian": gs.starts.FanInGaussian(),
    "orthogonal": gs.starts.Orthogonal(),
}
PYTORCH, ORTHOGONAL = STARTS["uniform"], STARTS["orthogonal"]
EASY, SWITCHES = 0.15, (0, 1000)
"""The epsilon at which Figure 3 is tried, and its lengths of the noisy phase."""
PERIOD, ORDERS = 1000, {"quiet first": (QUIET, LOUD), "loud first": (LOUD, QUIET)}
"""Figure 4 prints neither the length of a phase nor which comes first."""
EARLY = 1000
"""The steps in which a run diverges, if it does because of its start."""


def layer_sizes(start, seed, draws=16):
    """The mean square of the entries of each layer of width 100 at the start, times the number of columns."""
    model = gs.DeepLinear(4, WIDTH)
    with double():
        layers = jax.vmap(lambda key: start(model, (2, 2), key))(jax.random.split(jax.random.key(seed), draws))
    return [np.mean(np.asarray(W) ** 2) * W.shape[2] for W in layers]


class PyTorchStart(Experiment):
    """Figures 2 to 4 from PyTorch's start, and why there is a warm-up

    The other experiments start from orthogonal layers, which run exactly in a small width; the paper does not print its
    start. Here the same statements are checked from the start that torch.nn.Linear has, at width 100. It diverges at
    eta = 0.2 without the warm-up and not with it, as the text reports for its own, and orthogonal layers jump at the same
    times.
    """

    name, source, weight = "pytorch-start", "Wang 2023, Figures 2 to 4 and section 4", 27
    sizes = {
        "seeds": (24, 32, 400),
        "periodic_steps": (3500, 6000, 12_000),
        "runs_per_start": (64, 160, 1000),
        "num_steps": (8000, 12_000, 20_000),
    }

    def compute(self, run, periodic_steps, runs_per_start, num_steps):
        parts = (self.figures, periodic_steps), (self.starts, runs_per_start, num_steps)
        figures, starts = (part(run, *sizes) for part, *sizes in run.over(parts))
        return figures.merge(starts).assign_attrs(horizon=float(num_steps))

    def figures(self, run, periodic_steps):
        """Figure 2 (L = 4), two settings of Figure 3 (L = 4) and Figure 4 (L = 3), with two orders of its phases."""

        def paths(epsilon, schedule, num_steps, depth=4, **options):
            algorithm, seeds = network(schedule, depth, start=PYTORCH), {"seeds": run.seeds, "seed": run.seed}
            return follow(algorithm, completion(epsilon), num_steps=num_steps, **seeds, **options)

        second = paths(FIGURE2.epsilon, annealed(FIGURE2.high, FIGURE2.low, FIGURE2_SWITCH), FIGURE2_SWITCH)
        settings = [figure3(EASY, at) for at in SWITCHES]
        third = [
            paths(EASY, annealed(setting.high, setting.low, at), setting.num_steps).loss(EASY)[:, -1]
            for at, setting in zip(SWITCHES, settings)
        ]
        # One program for both orders: runs that diverge have no exact reduction.
        options = {"depth": FIGURE4.depth, "records": periodic_steps // 10 + 1, "reduction": "never"}
        fourth = [
            paths(FIGURE4.epsilon, periodic(PERIOD, *phases), periodic_steps, **options)
            for phases in run.over(ORDERS.values())
        ]
        return xr.Dataset(
            {
                "jump": ("seed", second.jumped),
                "loss": (("switch", "seed"), np.nan_to_num(third, nan=np.inf)),
                "periodic_jump": (("order", "seed"), [one.jumped for one in fourth]),
                "periodic_rank": (("order", "seed"), [one.ranks[:, -1].astype(float) for one in fourth]),
                "uniform_size": ("layer", layer_sizes(PYTORCH, run.seed)),
                "orthogonal_size": ("layer", layer_sizes(ORTHOGONAL, run.seed)),
            },
            {"switch": list(SWITCHES), "order": list(ORDERS)},
            {"settings": second.settings},
        )

    def starts(self, run, count, num_steps):
        """Figure 1 from three starts: which runs diverge with and without the warm-up, and when the others jump."""
        diverged, jumps, warm_ups = [], {}, (0, WARM_STEPS)
        for name, start in run.over(STARTS.items()):
            for warm_up in warm_ups:
                long = warm_up and name != "Gaussian"
                paths = follow(
                    network(annealed(warm_up=warm_up), start=start),
                    completion(FIGURE1.epsilon),
                    num_steps=num_steps if long else EARLY,
                    seeds=count,
                    # The test of the jump times needs independent samples.
                    seed=run.seed + (7919 if name == "uniform" else 0),
                )
                diverged.append((paths.diverged >= 0) & (paths.diverged <= EARLY))
                if long:
                    jumps[f"jump_{name}"] = ("seed_start", paths.jumped)
        shares = np.reshape(diverged, (len(STARTS), len(warm_ups), count)).astype(float)
        axes = {"start": list(STARTS), "warm_up": list(warm_ups)}
        return xr.Dataset({"diverged": (("start", "warm_up", "seed_start"), shares), **jumps}, axes)

    def draw(self, ds):
        def shares(hits, n, names, label, colour):
            low, high = wilson(hits, n)
            return Bars(names, hits / n, label, low=low, high=high, colour=colour)

        n, many, jumped, share = (
            ds.sizes["seed"],
            ds.sizes["seed_start"],
            "share of runs at rank 1",
            {"ylim": (0, 1.05)},
        )
        solved, diverged = (ds.loss < SOLVED).sum("seed").values, ds.diverged.sum("seed_start")
        steps = np.linspace(0, FIGURE2_SWITCH, 400), np.linspace(0, ds.attrs["horizon"], 400)
        orders = [shares_of_ranks(ds.periodic_rank.sel(order=order), order, 1 + i) for i, order in enumerate(ORDERS)]
        return figure(
            panel(
                f"Figure 2, L = 4, ε = {FIGURE2.epsilon:g}",
                "step",
                jumped,
                share_by(ds.jump, steps[0], "SGD", colour=0),
                ylim=(-0.03, 1.03),
            ),
            panel(
                f"Figure 3, L = 4, ε = {EASY:g}",
                "",
                "share of runs that solve it",
                shares(solved, n, [f"t₀ = {at}" for at in SWITCHES], "SGD", 0),
                **share,
            ),
            panel(f"Figure 4, L = 3, ε = {FIGURE4.epsilon:g}", "", "share of runs", *orders, **share),
            panel(
                f"Figure 1, runs that diverge in {EARLY} steps",
                "",
                "share of runs",
                *(
                    shares(diverged.sel(warm_up=steps).values, many, list(STARTS), label, i)
                    for i, (steps, label) in enumerate(
                        ((0, "no warm-up"), (WARM_STEPS, f"warm-up of {WARM_STEPS} steps"))
                    )
                ),
                **share,
            ),
            panel(
                f"Figure 1, L = 3, ε = {FIGURE1.epsilon:g}",
                "step / 1000",
                jumped,
                *(
                    share_by(ds[f"jump_{name}"], steps[1], f"{name} start", unit=1000, colour=2 + i)
                    for i, name in enumerate(("uniform", "orthogonal"))
                ),
                ylim=(-0.03, 1.03),
            ),
            title="From PyTorch's start Figures 2 and 3 look the same, Figure 4 diverges if its quiet phase comes first, and "
            "Figure 1 needs its warm-up; orthogonal layers jump at the same times",
            note=f"w = 100; {n} runs each in Figures 2 to 4, {many} runs in Figure 1. Uniform: entries in ±1/√(fan-in), as "
            "torch.nn.Linear has them; Gaussian: N(0, 1/fan-in); orthogonal: orthonormal rows or columns. Whiskers: 95 %.",
        )

    @claim(
        "share at rank 1 by step 5000 at least .5, with a 95 % interval that reaches .8",
        items="Figure 2",
        names={
            "share": "share at rank 1 by step 5000",
            "upper_end_of_interval": "upper end of its 95 % interval [%]",
        },
        share=(0.5, 1),
        upper_end_of_interval=(0.8, 1),
    )
    def fig2(self, ds):
        """From PyTorch's start networks of depth 4 jump in the first 5000 steps (Figure 2)."""
        hits, n = int((ds.jump <= FIGURE2_SWITCH).sum()), ds.sizes["seed"]
        return hits / n, wilson(hits, n)[1]

    @claim(
        "share of runs with a relative test loss below .5 at least .5 for t0 = 1000 and at most .1 for t0 = 0",
        items="Figure 3",
        names={"after_1000": "share that solves it, t0 = 1000", "without": "share that solves it, t0 = 0"},
        after_1000=(0.5, 1),
        without=(0, 0.1),
    )
    def fig3(self, ds):
        """From PyTorch's start (L = 4, epsilon = 0.15), a run with 1000 noisy steps solves the problem, and a run without
        noisy steps does not (Figure 3)."""
        share = share_below(ds.loss, SOLVED)
        return share.sel(switch=1000), share.sel(switch=0)

    @claim(
        "at most .3 of the runs diverge",
        items="Figure 4",
        fails="depends on the reading",
        names={"diverged": "share that diverges"},
        diverged=(0, 0.3),
    )
    def fig4_quiet_first(self, ds):
        """From PyTorch's start, runs with the periodic schedule of Figure 4 do not diverge if the quiet phase comes first.

        The order of the phases is not printed. The small ridge of a quiet phase does not shrink the random part of wide
        layers, and nine runs in ten diverge when the first loud phase begins; with the loud phase first none do.
        """
        return (ds.periodic_rank.sel(order="quiet first") < 0).mean()

    @claim(
        "at least .9 of the lasting jumps in loud phases; at least .4 of all runs end below rank 2; at most .3 diverge",
        items="Figure 4",
        names={
            "share_in_loud": "share of lasting jumps in loud phases",
            "share_below_rank_2": "share that ends below rank 2",
            "diverged": "share that diverges",
        },
        share_in_loud=(0.9, 1),
        share_below_rank_2=(0.4, 1),
        diverged=(0, 0.3),
    )
    def fig4_loud_first(self, ds):
        """From PyTorch's start, with the loud phase first, runs jump, and do so in loud phases (Figure 4)."""
        jump, rank = (ds[name].sel(order="loud first") for name in ("periodic_jump", "periodic_rank"))
        in_loud = loud(jump + PERIOD, PERIOD).where(np.isfinite(jump))
        return in_loud.mean(), ((rank >= 0) & (rank < 2)).mean(), (rank < 0).mean()

    @claim(
        "mean squares times 3 fan-in in [.93, 1.07] in every layer; those of orthogonal layers exact to 1e-9",
        ours=True,
        items="Figure 2",
        uniform=(0.93, 1.07),
        orthogonal_least=(1 - 1e-9, 1 + 1e-9),
        orthogonal_largest=(1 - 1e-9, 1 + 1e-9),
    )
    def start_scale(self, ds):
        """PyTorch's start has entries of variance 1 / (3 fan-in); orthogonal layers have orthonormal rows or columns."""
        # Orthonormal columns (first layer: 2 of 100) have a mean square of 1 / rows, orthonormal rows of 1 / columns.
        orthogonal = ds.orthogonal_size / np.array([2 / WIDTH, 1.0, 1.0, 1.0])
        return 3 * ds.uniform_size.assign_coords(layer=range(1, 5)), orthogonal.min(), orthogonal.max()

    @claim(
        "uniform start: >= 90 % diverge without the warm-up, <= 5 % with it",
        items="Section 4, warm-up",
        names={"without": "share that diverges without the warm-up", "with": "share that diverges with it"},
        without=(0.9, 1),
        **{"with": (0, 0.05)},
    )
    def warm_up(self, ds):
        """SGD diverges when it starts with a large step size, and not after 500 small steps."""
        share = ds.diverged.sel(start="uniform").mean("seed_start")
        return share.sel(warm_up=0), share.sel(warm_up=WARM_STEPS)

    @claim(
        "at least half of the runs diverge within 1000 steps",
        ours=True,
        names={"with": "share that diverges"},
        **{"with": (0.5, 1)},
    )
    def gaussian(self, ds):
        """N(0, 1/fan-in) is not the paper's start: it diverges in spite of the warm-up (ours)."""
        return ds.diverged.sel(start="Gaussian", warm_up=WARM_STEPS).mean()

    @claim(
        "two-sample Kolmogorov-Smirnov test of the jump times: p >= .01",
        ours=True,
        names={"distance": "largest distance of the two distributions", "p": "p-value"},
        distance=None,
        p=(0.01, 1),
    )
    def same_jumps(self, ds):
        """Orthogonal layers jump at the same times as PyTorch's start (ours)."""
        never = ds.attrs["horizon"] + 1
        test = ks_2samp(*(ds[f"jump_{name}"].clip(max=never).values for name in ("uniform", "orthogonal")))
        return test.statistic, test.pvalue
