"""Remark 2.1: isotropic noise of the same size as that of SGD jumps back from rank 1 to rank 2; SGD does not."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.algorithms.gaussian_noise import LangevinNoise, MatchedNoise
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.experiments.statistics import wilson
from gyrostat.figures.declarations import Bars, Figure, Line, Marker, Panel
from gyrostat.jax_tools.float64 import double
from gyrostat.papers.wang2023.settings import FIGURE1, HIGH, OBSERVED, completion, singular_values, ticker
from gyrostat.papers.wang2023.thm3_2_streaks import TRUTH, moved

EPSILON, ETA = FIGURE1.epsilon, HIGH[0]
RIDGES = (HIGH[1], 0.05)
"""That of Figure 1, at which rank 1 has the smaller loss, and one at which rank 2 has it."""
NOISES = ("SGD", "same trace", "temperature at rank 1", "temperature at rank 2", "same covariance")
ISOTROPIC = NOISES[1:4]
STARTS = (2, 1)
WIDTH = 2
"""Every matrix can be made with it, and the noise of a given trace is spread over few parameters."""
SMALL = 1e-3
"""s2 / s1 of the start at rank 1. With zero, SGD could not leave rank 1 for a trivial reason."""
QUENCH, AT_RANK_2 = 600, 0.05
"""Steps of descent without noise that show in whose basin a run is, and the ratio above which that is the basin of rank 2."""


def langevin_data(*, seed: int, progress: Any = None, seeds: int, num_steps: int) -> xr.Dataset:
    """L = 3, epsilon = .25, eta = .2: runs from both minima under five kinds of noise."""
    tick = ticker(progress, 2)
    minima = {ridge: {rank: _minimum(ridge, rank) for rank in STARTS} for ridge in RIDGES}
    temperature = {ridge: {rank: _temperature(A) for rank, A in found.items()} for ridge, found in minima.items()}

    def build(noise: str, ridge: float, start: int) -> tuple[gs.Algorithm, gs.Problem]:
        algorithm = gs.Algorithm(
            model=gs.DeepLinear(3, WIDTH),
            start=gs.Given(*(W[0] for W in _balanced(minima[ridge][start], 1))),
            schedule=gs.Constant(ETA, ridge),
            batches=gs.Full(),
            rule=gs.RidgeStep(),
            events=_events(noise, temperature[ridge]),
        )
        return algorithm, completion(EPSILON, "one" if noise == "SGD" else "all")

    def ends(noises: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        ds = gs.run_grid(
            build,
            {"noise": list(noises), "ridge": list(RIDGES), "start": list(STARTS)},
            num_steps=num_steps,
            seeds=seeds,
            seed=seed,
            record=("product", LAYERS),
            record_at=101,
            reduction="never",
        )
        tick()
        ridges = np.broadcast_to(ds.ridge.values[None, :, None, None], ds.all_layers.shape[:4])
        high = _is_at_rank_2(ds.all_layers.isel(step=-1).values.reshape(ridges.size, -1), ridges.ravel())
        return high.reshape(ridges.shape), _ratio(ds["product"].values)

    high, ratio = (np.concatenate(x) for x in zip(ends(NOISES[:1]), ends(NOISES[1:]), strict=True))
    loss = [[_loss(minima[ridge][rank], ridge) for rank in STARTS] for ridge in RIDGES]
    return xr.Dataset(
        {
            "high": (("noise", "ridge", "start", "seed"), high),
            "loss": (("ridge", "start"), loss),
            "minimum_ratio": (("ridge", "start"), [[_ratio(minima[r][s]) for s in STARTS] for r in RIDGES]),
            "temperature": (("ridge", "start"), [[temperature[r][s] for s in STARTS] for r in RIDGES]),
            "path": (("noise", "record"), ratio[:, 1, 1, 0]),
        },
        {"ridge": list(RIDGES), "noise": list(NOISES), "start": list(STARTS)},
        {"num_steps": num_steps},
    )


def _minimum(ridge: float, rank: int) -> np.ndarray:
    """The matrix of the minimum of this rank; at rank 1 with a small second singular value."""
    truth = np.array([[1.0, 1 / EPSILON], [EPSILON, 1.0]])
    near = truth if rank == 1 else np.where(truth > 1, 0.5, truth)
    layers = _descended(_balanced(near, 1), ridge, 5 * QUENCH)
    A = _product(layers)[0]
    U, s, Vt = np.linalg.svd(A)
    return A if rank == 2 else (U * [s[0], SMALL * s[0]]) @ Vt


def _balanced(A: np.ndarray, count: int) -> list[np.ndarray]:
    """Balanced layers that make a matrix, for many runs."""
    with double():
        return [
            np.repeat(np.asarray(W)[None], count, axis=0) for W in gs.DeepLinear(3, WIDTH).factorise(jnp.asarray(A))
        ]


def _descended(layers: list[np.ndarray], ridge: float | np.ndarray, steps: int) -> list[np.ndarray]:
    """The layers of many runs after descent on all entries, with the step size of Figure 1."""
    weights = np.full((len(layers[0]), 3), 1 / 3)
    for _ in range(steps):
        layers = moved(layers, weights, ridge)
    return layers


def _product(layers: list[np.ndarray]) -> np.ndarray:
    return layers[2] @ layers[1] @ layers[0]


def _ratio(A: np.ndarray) -> np.ndarray:
    s = singular_values(A)
    return s[..., 1] / s[..., 0]


def _is_at_rank_2(flat: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """Whether descent without noise ends at the rank-2 minimum, for many runs; NaN for a run that diverged."""
    shapes = gs.DeepLinear(3, WIDTH).shapes((2, 2))
    parts = np.split(flat, np.cumsum([a * b for a, b in shapes])[:-1], axis=1)
    layers = [x.reshape(-1, *shape) for x, shape in zip(parts, shapes, strict=True)]
    ratio = _ratio(_product(_descended(layers, ridges[:, None, None], QUENCH)))
    return np.where(np.isfinite(ratio), ratio > AT_RANK_2, np.nan)


def _entry_gradients(layers: list[np.ndarray]) -> np.ndarray:
    """The gradients of (A_ij - y_ij)^2 / 2 with respect to all layers of one network, one row per entry."""
    weights = np.eye(3)
    copies = [np.repeat(W, 3, axis=0) for W in layers]
    # A step of the weight-decay rule without a ridge moves by -2 eta times the gradient.
    after = moved(copies, weights, ridge=0.0)
    return np.concatenate([(W - V).reshape(3, -1) for W, V in zip(copies, after, strict=True)], axis=1) / (2 * ETA)


def _temperature(A: np.ndarray) -> float:
    """T with ``2 eta' T P = eta'^2 tr(Cov)``: Langevin noise has then the trace of the covariance of SGD at A; eta' = 2 eta."""
    gradients = _entry_gradients(_balanced(A, 1))
    return float(ETA * np.sum(gradients.var(axis=0)) / gradients.shape[1])


def _loss(A: np.ndarray, ridge: float) -> float:
    """C(A) + lambda R(A; 3) in main-text units, of the matrix without its small second pair."""
    errors = np.array([A[i, j] for i, j in OBSERVED]) - TRUTH
    s = singular_values(A)
    s = np.where(s / s[0] > 2 * SMALL, s, 0)
    return float(errors @ errors / 6 + ridge / 4 * 3 * np.sum(s ** (2 / 3)))


def _events(noise: str, temperature: dict[int, float]) -> tuple[gs.Event, ...]:
    """One program for all kinds: those that are not meant have a strength of zero."""
    if noise == "SGD":
        return ()
    langevin = temperature[int(noise[-1])] if noise.startswith("temperature") else 0.0
    matched = [
        MatchedNoise(OBSERVED, match, scale=float(noise == f"same {match}")) for match in ("trace", "covariance")
    ]
    return LangevinNoise(langevin), *matched


def _show_layers(snapshot: Any) -> Any:
    return jnp.concatenate([W.ravel() for W in snapshot.params])


LAYERS = gs.Diagnostic("all_layers", _show_layers, ("entry",))


# --- the figure --------------------------------------------------------------------------------------------------------------


def draw_langevin(ds: xr.Dataset) -> Figure:
    n = ds.sizes["seed"]
    panels = []
    for ridge in RIDGES:
        bars = []
        for i, start in enumerate(STARTS):
            hits = ds.high.sel(ridge=ridge, start=start).sum("seed").values
            low, high = wilson(hits, n)
            bars.append(Bars(list(NOISES), hits / n, f"start at rank {start}", low=low, high=high, colour=i))
        loss = ds.loss.sel(ridge=ridge)
        lower = STARTS[int(np.argmin(loss.values))]
        panels.append(
            Panel(
                title=f"λ = {ridge:g}: rank {lower} has the smaller loss",
                xlabel="",
                ylabel="share of runs that end at rank 2",
                series=bars,
                ylim=(0, 1.05),
            )
        )
    x = np.linspace(0, ds.attrs["num_steps"], ds.sizes["record"])
    paths: list[Any] = [
        Line(x, np.maximum(ds.path.sel(noise=noise).values, 1e-17), noise, colour=i) for i, noise in enumerate(NOISES)
    ]
    paths.append(Marker(float(ds.minimum_ratio.sel(ridge=RIDGES[1], start=2)), "rank-2 minimum"))
    panels.append(
        Panel(
            title=f"One run each from rank 1, λ = {RIDGES[1]:g}",
            xlabel="step",
            ylabel="s₂ / s₁",
            series=paths,
            yscale="log",
            ylim=(1e-17, 10),
        )
    )
    return Figure(
        title="Isotropic noise of the same size jumps back to rank 2; SGD does not, and neither does noise with its covariance",
        panels=panels,
        note=(
            f"L = 3, hidden layers of width 2 (12 parameters; the paper's width has 10,400, over which noise of "
            f"one trace is spread), ε = {EPSILON:g}, η = {ETA:g}, {ds.attrs['num_steps']} steps. "
            "Same trace: isotropic noise with the trace of SGD's covariance at every step. Temperature: constant, with that "
            "trace at one of the minima. Same covariance: Gaussian, not isotropic. The rank is that of the "
            "minimum that descent "
            "without noise then reaches. Whiskers: 95 %."
        ),
    )


# --- the claims --------------------------------------------------------------------------------------------------------------


def _share(ds: xr.Dataset, ridge: float, noise: str, start: int) -> float:
    """The share of the runs that end at rank 2; a run that diverged does not."""
    return float(ds.high.sel(ridge=ridge, noise=noise, start=start).fillna(0).mean())


def _one_way(ds: xr.Dataset, noise: str) -> Outcome:
    back = {f"back_{ridge:g}": _share(ds, ridge, noise, 1) for ridge in RIDGES}
    left = (ds.high.sel(ridge=RIDGES[0], noise=noise, start=2) == 0).mean()
    diverged = ds.high.sel(noise=noise).isnull().mean()
    return together(within(0, 0, **back), within(0.1, 1, left_rank_2=left), within(0, 0.1, diverged=diverged))


def _sgd_never_back(ds: xr.Dataset) -> Outcome:
    return _one_way(ds, "SGD")


def _isotropic_back(ds: xr.Dataset) -> Outcome:
    return within(0.5, 1, **{n.replace(" ", "_"): _share(ds, RIDGES[1], n, 1) for n in ISOTROPIC[:2]})


def _by_loss(ds: xr.Dataset) -> Outcome:
    loss = ds.loss.sel(start=2) - ds.loss.sel(start=1)
    shares = [np.mean([_share(ds, r, "same trace", start) for start in STARTS]) for r in RIDGES]
    return together(
        within(0.0, loss_difference_first=loss.isel(ridge=0)),
        within(-1, 0, loss_difference_second=loss.isel(ridge=1)),
        within(0, 0.3, share_first=shares[0]),
        within(0.7, 1, share_second=shares[1]),
    )


def _cold(ds: xr.Dataset) -> Outcome:
    return within(0.5, 1, share=_share(ds, RIDGES[1], "temperature at rank 2", 1))


def _own_covariance(ds: xr.Dataset) -> Outcome:
    return _one_way(ds, "same covariance")


LANGEVIN = Experiment(
    name="remark2.1",
    title="SGD against Langevin dynamics",
    source="Wang 2023, Remark 2.1 and section 3.2",
    summary=(
        "The paper's main contrast, with noise of the same size: Langevin dynamics goes to whichever minimum has "
        "the smaller loss, while SGD only goes down in rank. The difference comes from isotropy, not from "
        "Gaussian noise."
    ),
    sizes={
        "smoke": {"seeds": 16, "num_steps": 5000},
        "standard": {"seeds": 48, "num_steps": 6000},
        "full": {"seeds": 400, "num_steps": 20_000},
    },
    compute=langevin_data,
    draw=draw_langevin,
    claims=[
        Claim(
            slug="sgd-one-way",
            statement="SGD jumps from rank 2 to rank 1 and does not jump back.",
            criterion=(
                "no run from rank 1 (s2 / s1 = .001) ends in the basin of rank 2 at either ridge; at lambda = .1 at least one "
                "in ten of the runs from rank 2 leaves it; at most one in ten diverges"
            ),
            measure=_sgd_never_back,
        ),
        Claim(
            slug="langevin-jumps-back",
            statement=(
                "Langevin dynamics jumps back: isotropic noise with the trace of SGD's covariance at every step, and with the "
                "temperature of the minimum it starts at."
            ),
            criterion="lambda = .05, from rank 1: at least half of the runs end in the basin of rank 2, for both matchings",
            measure=_isotropic_back,
        ),
        Claim(
            slug="langevin-follows-the-loss",
            statement="Langevin dynamics is likelier at the minimum of smaller loss.",
            criterion=(
                "same trace, both starts: share at rank 2 at most .3 at lambda = .1, where rank 1 has the smaller loss, and at "
                "least .7 at .05, where rank 2 has it"
            ),
            measure=_by_loss,
        ),
        Claim(
            slug="any-temperature",
            ours=True,
            statement=(
                "There is always a likelihood of jumping between minima: jumps are also seen at the temperature "
                "that SGD has at the rank-2 minimum."
            ),
            criterion="lambda = .05, from rank 1: at least half of the runs end in the basin of rank 2",
            measure=_cold,
            expected="fails",
            kind="not typical",
            reason=(
                "That temperature is about a fifth of the one at rank 1. The likelihood is positive, but too small to be seen "
                "in this many steps: the contrast depends on where the noise is matched."
            ),
        ),
        Claim(
            slug="isotropy-is-the-reason",
            ours=True,
            statement=(
                "Gaussian noise with SGD's own covariance is as one-way as SGD (ours): the covariance vanishes "
                "where the second "
                "singular value does."
            ),
            criterion=(
                "as for SGD: none comes back at either ridge, at least one in ten leaves rank 2 at lambda = .1, at most one in "
                "ten diverges"
            ),
            measure=_own_covariance,
        ),
    ],
    weight=9,
)
