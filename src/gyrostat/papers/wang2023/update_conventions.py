"""Three readings of the paper's update, on the schedule of Figure 1: only one of them reproduces the figure."""

import numpy as np
import xarray as xr

from gyrostat.algorithms.update_rules import CONVENTIONS
from gyrostat.experiments import Experiment, Outcome, claim
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Bars, Line, Marker
from gyrostat.papers.wang2023.settings import FIGURE1, HIGH, annealed, completion, follow, network, shares_of_ranks
from gyrostat.theory.wang2023 import fold

EPSILON, DEPTH = FIGURE1.epsilon, FIGURE1.depth
NAMES = {"weight_decay": "plain weight decay", "main_text": "main text", "appendix": "appendix"}
"""The rules, and what the figure calls them."""
EARLY, LATE = 1000, 8000


class Conventions(Experiment):
    """Three readings of the update

    The main text and the appendix print different updates, and neither gives the figures. SGD with weight decay, as in common
    software, does; in the main text's units it has twice the step size and a quarter of the ridge.
    """

    source, weight = "Wang 2023, sections 2.3 and D", 9
    sizes = {"seeds": (64, 240, 1000)}
    names = {"rank_2_at_1000": "share at rank 2, step 1000", "rank_1_at_8000": "share at rank 1, step 8000"}

    def compute(self, run):
        cells = []
        for rule in run.over(NAMES):
            algorithm = network(annealed(), DEPTH, rule)
            paths = follow(algorithm, completion(EPSILON), num_steps=LATE, seeds=run.seeds, seed=run.seed)
            gain, decay = CONVENTIONS[rule]
            at_1000, end = paths.ranks[:, paths.steps == EARLY][:, 0], paths.ranks[:, -1]
            cells.append(
                xr.Dataset(
                    {
                        "rank": ("seed", end.astype(float)),
                        "waits": ("seed", (at_1000 == 2).astype(float)),
                        "lands": ("seed", (end == 1).astype(float)),
                        "largest": ("step", np.median(paths.values[..., 0], axis=0)[::5]),
                        "ratio": ("step", np.median(paths.ratio, axis=0)[::5]),
                        # (1 - d eta lambda) theta - g eta G is the main text's with eta g and lambda d / (2 g).
                        "ridge": HIGH[1] * decay / (2 * gain),
                    },
                    {"step": paths.steps[::5]},
                    {"settings": paths.settings},
                )
            )
        ds = xr.concat(cells, "rule").assign_coords(rule=list(NAMES)).assign_attrs(cells[-1].attrs)
        return ds.assign(fold=fold(EPSILON, DEPTH).ridge)

    def draw(self, ds):
        rules = [(ds.sel(rule=rule), name, i) for i, (rule, name) in enumerate(NAMES.items())]
        ratios = [Line(ds.step.values, np.maximum(one.ratio.values, 1e-17), name, colour=i) for one, name, i in rules]
        ends = [shares_of_ranks(one["rank"], name, i) for one, name, i in rules]
        ridges = [
            Bars(list(NAMES.values()), ds.ridge.values, "the ridge .1 in main-text units", colour=4),
            Marker(float(ds.fold), "fold: no rank-2 minimum above", role="theory"),
        ]
        return figure(
            panel("Median ratio", "step", "s2 / s1", *ratios, yscale="log", ylim=(1e-17, 3)),
            panel(f"At step {LATE}", "", "share of runs", *ends, ylim=(0, 1.05)),
            panel("Why", "", "ridge", *ridges),
            title="Neither printed update reproduces Figure 1: one collapses, one jumps at once; plain weight decay "
            "reproduces it",
            note="L = 3, epsilon = 0.25, eta = 0.2, lambda = 0.1, warm-up 500. Main text: (1 - 2 eta lambda) theta - (eta/2) "
            "grad; appendix: (1 - eta lambda) theta - (eta/2) grad; plain weight decay: (1 - eta lambda) theta - eta grad, "
            "grad of (A* - A)^2.",
        )

    def as_in_figure1(self, ds, rule):
        """How many runs wait at rank 2 and land at rank 1."""
        return ds.waits.sel(rule=rule).mean(), ds.lands.sel(rule=rule).mean()

    criterion = "rank 2 at step 1000 and rank 1 at step 8000, each in at least half of the runs"

    @claim(criterion, ours=True, items="Section 2.3, update", rank_2_at_1000=(0.5, 1), rank_1_at_8000=(0.5, 1))
    def weight_decay(self, ds):
        """SGD with weight decay reproduces Figure 1 (ours)."""
        return self.as_in_figure1(ds, "weight_decay")

    @claim(criterion, fails="depends on the reading", rank_2_at_1000=(0.5, 1), rank_1_at_8000=(0.5, 1))
    def main_text(self, ds):
        """The update of section 2.3 reproduces Figure 1.

        Its ridge 0.1 is four times the fold, so there is no rank-2 minimum, and runs collapse to 0.
        """
        return self.as_in_figure1(ds, "main_text")

    @claim(
        criterion,
        items="Formula (3)",
        fails="depends on the reading",
        rank_2_at_1000=(0.5, 1),
        rank_1_at_8000=(0.5, 1),
    )
    def appendix(self, ds):
        """The update of section D reproduces Figure 1.

        Its ridge, 0.05 in main-text units, is above the fold, so runs fall to rank 1 at once and not after a wait.
        """
        return self.as_in_figure1(ds, "appendix")

    @claim(
        "share at rank 0 at step 8000 >= .9",
        ours=True,
        items="Section 2.3, update",
        names={"rank_0_at_8000": "share at rank 0, step 8000"},
        rank_0_at_8000=(0.9, 1),
    )
    def collapse(self, ds):
        """Under the main text's update runs collapse to rank 0 (ours)."""
        return (ds["rank"].sel(rule="main_text") == 0).mean()

    @claim(
        "in main-text units the ridge is below the fold for weight_decay and above it for the other two",
        ours=True,
        names={f"ridge_{rule}": f"ridge, {name}" for rule, name in NAMES.items()},
    )
    def fold(self, ds):
        """The fold separates the three updates (ours)."""
        ridges, star = {rule: float(ds.ridge.sel(rule=rule)) for rule in NAMES}, float(ds.fold)
        holds = ridges["weight_decay"] < star < min(ridges["main_text"], ridges["appendix"])
        return Outcome({**{f"ridge_{rule}": ridge for rule, ridge in ridges.items()}, "fold": star}, holds)
