"""Remark 2.1: isotropic noise of the same size as that of SGD jumps back from rank 1 to rank 2; SGD does not."""

import jax.numpy as jnp
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments import Experiment, claim, wilson
from gyrostat.figures.compose import figure, panel
from gyrostat.figures.declarations import Bars, Line, Marker
from gyrostat.jax_tools.float64 import double
from gyrostat.papers.wang2023.gaussian_noise import LangevinNoise, MatchedNoise
from gyrostat.papers.wang2023.settings import FIGURE1, HIGH, OBSERVED, completion, singular_values
from gyrostat.papers.wang2023.thm3_2_balance import TRUTH, moved

EPSILON, ETA = FIGURE1.epsilon, HIGH[0]
RIDGES = (HIGH[1], 0.05)
"""That of Figure 1, at which rank 1 has the smaller loss, and one at which rank 2 has it."""
NOISES = ("SGD", "same trace", "temperature at rank 1", "temperature at rank 2", "same covariance")
RANKS = (2, 1)
NETWORK = gs.DeepLinear(3, 2)
"""Every matrix can be made with width 2, and the noise of a given trace is spread over few parameters."""
SMALL = 1e-3
"""s2 / s1 of the start at rank 1. With zero, SGD could not leave rank 1 for a trivial reason."""
QUENCH, AT_RANK_2 = 600, 0.05
"""Steps of descent without noise that show in whose basin a run is, and the ratio above which that is the basin of rank 2."""


def balanced(A):
    """Balanced layers that make a matrix."""
    with double():
        return np.array(NETWORK.factorise(jnp.asarray(A)))


def descended(layers, ridge, steps=QUENCH):
    """The matrices of many runs (second axis of ``layers``) after descent on all entries, with the step size of Figure 1."""
    weights = np.full((len(layers[0]), 3), 1 / 3)
    for _ in range(steps):
        layers = moved(layers, weights, ridge)
    return layers[2] @ layers[1] @ layers[0]


def ratio(A):
    s = singular_values(A)
    return s[..., 1] / s[..., 0]


def minimum(ridge, rank):
    """The matrix of the minimum of this rank; at rank 1 with a small second singular value."""
    truth = np.array([[1.0, 1 / EPSILON], [EPSILON, 1.0]])
    near = truth if rank == 1 else np.where(truth > 1, 0.5, truth)
    A = descended(balanced(near)[:, None], ridge, 5 * QUENCH)[0]
    U, s, Vt = np.linalg.svd(A)
    return A if rank == 2 else (U * [s[0], SMALL * s[0]]) @ Vt


def temperature(A):
    """T with ``2 eta' T P = eta'^2 tr(Cov)``: Langevin noise has then the trace of the covariance of SGD at A; eta' = 2 eta."""
    copies = np.repeat(balanced(A)[:, None], 3, axis=1)
    # A step of the weight-decay rule without a ridge moves by -2 eta times the gradient: one row for each entry.
    after = np.array(moved(copies, np.eye(3), ridge=0.0))
    gradients = (copies - after).swapaxes(0, 1).reshape(3, -1) / (2 * ETA)
    return ETA * np.sum(gradients.var(axis=0)) / gradients.shape[1]


def loss(A, ridge):
    """C(A) + lambda R(A; 3) in main-text units, of the matrix without its small second pair."""
    errors, s = A[tuple(np.transpose(OBSERVED))] - TRUTH, singular_values(A)
    s = np.where(s / s[0] > 2 * SMALL, s, 0)
    return errors @ errors / 6 + ridge / 4 * 3 * np.sum(s ** (2 / 3))


LAYERS = gs.diagnostics.Diagnostic(
    "all_layers", lambda snapshot: jnp.concatenate([W.ravel() for W in snapshot.params]), ("entry",)
)


class Langevin(Experiment):
    """SGD against Langevin dynamics

    The paper's main contrast, with noise of the same size: Langevin dynamics goes to whichever minimum has the smaller loss,
    while SGD only goes down in rank. The difference comes from isotropy, not from Gaussian noise.
    """

    name, source, weight, items = "remark2.1", "Wang 2023, Remark 2.1 and section 3.2", 9, "Remark 2.1"
    sizes = {"seeds": (16, 48, 400), "num_steps": (5000, 6000, 20_000)}

    def compute(self, run, num_steps):
        minima = {(ridge, rank): minimum(ridge, rank) for ridge in RIDGES for rank in RANKS}
        heat = {at: temperature(A) for at, A in minima.items()}

        def build(noise, ridge, start):
            # One program for all kinds of noise: those that are not meant have a strength of zero.
            langevin = heat[ridge, int(noise[-1])] if noise.startswith("temperature") else 0.0
            matched = [MatchedNoise(OBSERVED, x, scale=float(noise == f"same {x}")) for x in ("trace", "covariance")]
            algorithm = gs.Algorithm(
                model=NETWORK,
                start=gs.starts.Given(*balanced(minima[ridge, start])),
                schedule=gs.schedules.Constant(ETA, ridge),
                batches=gs.batches.Full(),
                rule=gs.rules.RidgeStep(),
                events=() if noise == "SGD" else (LangevinNoise(langevin), *matched),
            )
            return algorithm, completion(EPSILON, "one" if noise == "SGD" else "all")

        high, path = [], []
        for noises in run.over((NOISES[:1], NOISES[1:])):
            ds = run.grid(
                build,
                {"noise": list(noises), "ridge": list(RIDGES), "start": list(RANKS)},
                num_steps=num_steps,
                record=("product", LAYERS),
                record_at=101,
                reduction="never",
            )
            ends = ds.all_layers.isel(step=-1)
            ridges = ds.ridge.broadcast_like(ends.isel(entry=0)).transpose(*ends.dims[:-1]).values
            layers = np.moveaxis(ends.values.reshape(-1, 3, 2, 2), 1, 0)
            quenched = ratio(descended(layers, ridges.reshape(-1, 1, 1)))
            high.append(np.where(np.isfinite(quenched), quenched > AT_RANK_2, np.nan).reshape(ridges.shape))
            path.append(ratio(ds["product"].values[:, 1, 1, 0]))

        def table(values):
            return ("ridge", "start"), np.reshape(list(values), (len(RIDGES), len(RANKS)))

        return xr.Dataset(
            {
                "high": (("noise", "ridge", "start", "seed"), np.concatenate(high)),
                "loss": table(loss(A, ridge) for (ridge, _), A in minima.items()),
                "minimum_ratio": table(ratio(A) for A in minima.values()),
                "temperature": table(heat.values()),
                "path": (("noise", "record"), np.concatenate(path)),
            },
            {"ridge": list(RIDGES), "noise": list(NOISES), "start": list(RANKS)},
            {"num_steps": num_steps},
        )

    def draw(self, ds):
        def bars(rank, colour, hits, n):
            low, high = wilson(hits, n)
            return Bars(list(NOISES), hits / n, f"start at rank {rank}", low=low, high=high, colour=colour)

        x = np.linspace(0, ds.attrs["num_steps"], ds.sizes["record"])
        hits, lower = ds.high.sum("seed"), ds.start[ds.loss.argmin("start")]
        return figure(
            *(
                panel(
                    f"λ = {ridge:g}: rank {int(lower.sel(ridge=ridge))} has the smaller loss",
                    "",
                    "share of runs that end at rank 2",
                    *(
                        bars(rank, i, hits.sel(ridge=ridge, start=rank).values, ds.sizes["seed"])
                        for i, rank in enumerate(RANKS)
                    ),
                    ylim=(0, 1.05),
                )
                for ridge in RIDGES
            ),
            panel(
                f"One run each from rank 1, λ = {RIDGES[1]:g}",
                "step",
                "s₂ / s₁",
                *(
                    Line(x, np.maximum(ds.path.sel(noise=noise).values, 1e-17), noise, colour=i)
                    for i, noise in enumerate(NOISES)
                ),
                Marker(float(ds.minimum_ratio.sel(ridge=RIDGES[1], start=2)), "rank-2 minimum"),
                yscale="log",
                ylim=(1e-17, 10),
            ),
            title="Isotropic noise of the same size jumps back to rank 2; SGD does not, and neither does noise with its "
            "covariance",
            note="L = 3, hidden layers of width 2 (12 parameters; the paper's width has 10,400, over which noise of one trace "
            f"is spread), ε = {EPSILON:g}, η = {ETA:g}, {ds.attrs['num_steps']} steps. Same trace: isotropic noise with the "
            "trace of SGD's covariance at every step. Temperature: constant, with that trace at one of the minima. Same "
            "covariance: Gaussian, not isotropic. The rank is that of the minimum that descent without noise then reaches. "
            "Whiskers: 95 %.",
        )

    def share(self, ds, **cell):
        """The share of the runs that end at rank 2; a run that diverged does not."""
        return ds.high.sel(cell).fillna(0).mean("seed")

    def only_down(self, ds, noise):
        """The shares of the runs that come back from rank 1, that leave rank 2 at the ridge of Figure 1, and that diverge."""
        of_noise = ds.high.sel(noise=noise)
        left = (of_noise.sel(ridge=RIDGES[0], start=2) == 0).mean()
        return self.share(ds, noise=noise, start=1), left, of_noise.isnull().mean()

    @claim(
        "no run from rank 1 (s2 / s1 = .001) ends in the basin of rank 2 at either ridge; at lambda = .1 at least one in ten "
        "of the runs from rank 2 leaves it; at most one in ten diverges",
        back=(0, 0),
        left_rank_2=(0.1, 1),
        diverged=(0, 0.1),
    )
    def sgd_one_way(self, ds):
        """SGD jumps from rank 2 to rank 1 and does not jump back."""
        return self.only_down(ds, "SGD")

    @claim(
        "lambda = .05, from rank 1: at least half of the runs end in the basin of rank 2, for both matchings",
        back=(0.5, 1),
    )
    def langevin_jumps_back(self, ds):
        """Langevin dynamics jumps back: isotropic noise with the trace of SGD's covariance at every step, and with the
        temperature of the minimum it starts at."""
        share = self.share(ds, ridge=RIDGES[1], start=1)
        return {noise.replace(" ", "_"): share.sel(noise=noise) for noise in ("same trace", "temperature at rank 1")}

    @claim(
        "same trace, both starts: share at rank 2 at most .3 at lambda = .1, where rank 1 has the smaller loss, and at least "
        ".7 at .05, where rank 2 has it",
        loss_difference_first=(0, np.inf),
        loss_difference_second=(-1, 0),
        share_first=(0, 0.3),
        share_second=(0.7, 1),
    )
    def langevin_follows_the_loss(self, ds):
        """Langevin dynamics is likelier at the minimum of smaller loss."""
        difference = ds.loss.sel(start=2) - ds.loss.sel(start=1)
        return *difference, *self.share(ds, noise="same trace").mean("start")

    @claim(
        "lambda = .05, from rank 1: at most .3 of the runs end in the basin of rank 2 at the temperature of the rank-2 "
        "minimum, at least half at that of the rank-1 minimum; the first is .1 to .4 of the second",
        ours=True,
        items="Remark 2.1",
        names={
            "cold": "share that jumps back at the temperature of rank 2",
            "warm": "share that jumps back at that of rank 1",
            "quotient": "one temperature over the other",
        },
        cold=(0, 0.3),
        warm=(0.5, 1),
        quotient=(0.1, 0.4),
    )
    def temperature_decides(self, ds):
        """Whether jumps of Langevin dynamics are seen depends on where its temperature is matched (ours): few runs jump back in
        this many steps at the temperature of SGD at the rank-2 minimum, about a fifth of that at the rank-1 minimum."""
        share = self.share(ds, ridge=RIDGES[1], start=1)
        cold, warm = (share.sel(noise=f"temperature at rank {rank}") for rank in RANKS)
        at_2, at_1 = ds.temperature.sel(ridge=RIDGES[1])
        return cold, warm, at_2 / at_1

    @claim(
        "as for SGD: none comes back at either ridge, at least one in ten leaves rank 2 at lambda = .1; at most one in five "
        "diverges",
        ours=True,
        items="Remark 2.1",
        back=(0, 0),
        left_rank_2=(0.1, 1),
        diverged=(0, 0.2),
    )
    def isotropy_is_the_reason(self, ds):
        """Gaussian noise with SGD's own covariance is as one-way as SGD (ours): the covariance vanishes where the second
        singular value does."""
        return self.only_down(ds, "same covariance")
