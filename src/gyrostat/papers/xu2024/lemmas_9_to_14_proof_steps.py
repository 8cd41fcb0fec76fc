"""Lemmas 9 to 14, Corollary 1, Theorems 4 and 5 of Xu 2024: every step of the proof, where its conditions hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import gyrostat as gs
from gyrostat.experiments.declarations import Claim, Experiment, Outcome, together, within
from gyrostat.figures.declarations import Dots, Figure, Line, Marker, Panel, band
from gyrostat.papers.xu2024.axis_aligned_runs import AxisSetting, axis_runs, factor_norms, operator_norm
from gyrostat.theory import calibration, calibration_line, envelope, moment_growth

PROOF = AxisSetting(
    dimension=16, values=(1.0, 1.0), spurious_rank=2, spread=20.0, step_size=0.05, init_scale=1e-18, num_samples=1e33
)
"""4 (r1 + r2) = d, so that delta is known; E (1 + eta xi + 2 eta)^(2/3) <= 1; and m as large as the proof asks for."""
NOISIER = 1e26
"""A batch at which all step inequalities and (94) can be seen, because isometry errors are far above rounding."""
STEPS = ("9", "11", "12", "13", "64", "67", "75", "87")


def proof_data(*, seed: int, progress: Any = None, runs: int) -> xr.Dataset:
    """The left over the right side of every step inequality, the largest of a run; Q and E beside their bounds."""
    settings = [PROOF, PROOF._replace(num_samples=NOISIER)]
    parts = [_proof_runs(s, runs, np.random.default_rng([seed, i])) for i, s in enumerate(settings)]
    batches = xr.DataArray([s.num_samples for s in settings], dims="num_samples", name="num_samples")
    return (
        xr.concat(parts, batches)
        .assign(curvature=_curvature())
        .assign_attrs(
            moment=moment_growth(gs.TwoPoint(spread=PROOF.spread), PROOF.step_size, 2 / 3, shift=2.0),
            phase_one=_phase_one(),
            violation=_violation(),
        )
    )


def _curvature() -> float:
    """(43): the least ``(1 + (1 - gamma) (x - 1) - x^(1 - gamma)) / ((1 - gamma) gamma (x - 1)^2)`` for |x - 1| < 1/16."""
    x, gamma = np.linspace(-1 / 16, 1 / 16, 400) + 1, np.linspace(0.01, 0.99, 99)[:, None]
    drop = 1 + (1 - gamma) * (x - 1) - x ** (1 - gamma)
    return float((drop / ((1 - gamma) * gamma * (x - 1) ** 2)).min())


def _phase_one() -> int:
    return len(envelope(PROOF.step_size, PROOF.init_scale).middle) - 1


def _last_step() -> int:
    """T2: 20/eta steps after T1, when 1 - sigma is below 1e-17."""
    return _phase_one() + round(20 / PROOF.step_size)


def _violation() -> float:
    """p with T2 p = .01, as (50) asks for."""
    return 0.01 / _last_step()


class _ProofRecord:
    """The sequences of the proof beside the runs; every step updates the largest ratio of each inequality."""

    def __init__(self, setting: AxisSetting, runs: int):
        eta, alpha, T = setting.step_size, setting.init_scale, _last_step()
        self.setting, self.T1 = setting, _phase_one()
        self.scale = setting.bound * setting.delta * math.sqrt(setting.ranks)
        self.L = calibration_line(eta, alpha, T, bound=setting.bound, delta=setting.delta, ranks=setting.ranks)
        self.R = calibration(eta, alpha, T)
        self.envelope = envelope(eta, alpha)
        self.barrier = _violation() ** -1.5 * setting.spurious_rank**1.5
        self.q = np.full((runs, setting.spurious_rank), alpha)
        self.largest = {name: np.full(runs, -np.inf) for name in (*STEPS, "10", "E1", "E1 / R", "F1", "E2", "F2", "Q")}
        self.growth = np.full(runs, np.inf)
        self.paths: dict[str, list[np.ndarray]] = {"r": [], "q": [], "e": []}

    def note(self, name: str, ratio: np.ndarray) -> None:
        self.largest[name] = np.maximum(self.largest[name], ratio)


def _proof_runs(setting: AxisSetting, runs: int, rng: np.random.Generator) -> xr.Dataset:
    record, before = _ProofRecord(setting, runs), None
    for step in axis_runs(setting, _last_step(), runs=runs, rng=rng):
        now = factor_norms(setting, step.U)
        _bounds_at(record, step.t, now)
        if before is not None:
            _step_inequalities(record, step.t - 1, *before, now)
        if step.t % 10 == 0:
            size = operator_norm(step.U)
            error = operator_norm(step.U.swapaxes(1, 2) @ step.noise)
            record.note("9", error / (2 * record.scale * size))
            for name, value in zip("rqe", (now["sigma"][:, -1], now["q"].max(1), now["e"]), strict=True):
                record.paths[name].append(value)
        before = (now, step.sigma)
    end = np.abs(now["sigma"] - 1).max(1)
    return _proof_dataset(record, end)


def _bounds_at(record: _ProofRecord, t: int, now: dict[str, np.ndarray]) -> None:
    """Lemma 10, Corollary 1 and the bounds of Theorems 4 and 5."""
    s, L, R = record.setting, record.L[t], record.R[t]
    log, first = math.log(1 / s.init_scale), t <= record.T1
    q = np.linalg.norm(now["q"], axis=1)
    # (59) with the largest U and epsilon_1 that its assumptions allow: 2 epsilon_1 <= delta, ||U|| <= ||R|| + ||Q|| + ||E||.
    most = 8 * R + math.sqrt(s.spurious_rank) * record.barrier * L
    record.note("10", np.array(2.5 * record.scale * most / min(L, 5 / (576 * log) * R)))
    record.note("Q", q)
    record.note("64", q / (record.barrier * math.sqrt(s.spurious_rank) * L))
    record.note("E1" if first else "E2", now["e"] / (40 * record.scale if first else 80 * record.scale * log))
    if first:
        record.note("E1 / R", now["e"] / now["sigma"][:, 0])
    frobenius = s.delta**2 * s.bound**2 * s.ranks**1.5 * log
    record.note("F1" if first else "F2", now["f"] / (frobenius * log))
    if t:
        record.note("67", (now["f"] - (s.dimension - s.ranks) * s.init_scale**2) / (t * s.step_size * frobenius))


def _step_inequalities(
    record: _ProofRecord, t: int, old: dict[str, np.ndarray], sigma: np.ndarray, new: dict[str, np.ndarray]
) -> None:
    """From t to t + 1: Lemma 11 with its controller, Lemmas 12 and 13, and in phase 1 (75), (76) and (87)."""
    s, eta = record.setting, record.setting.step_size
    record.q = np.maximum((1 + eta * sigma + 2 * eta) * record.q, record.L[t + 1])
    record.note("11", (new["q"] / record.q).max(1))
    record.note("12", (new["e"] - old["e"]) / (eta * record.L[t]))
    slope = eta * record.scale
    offset = eta * s.delta**2 * s.bound**2 * s.ranks**1.5 * math.log(1 / s.init_scale)
    record.note("13", (new["f"] - old["f"]) / (slope * old["f"] + offset))
    if t < record.T1:
        upper, lower = record.envelope.upper[t + 1], record.envelope.lower[t + 1]
        record.note("75", np.maximum(new["sigma"][:, 0] / upper, lower / new["sigma"][:, -1]))
        record.growth = np.minimum(record.growth, ((new["sigma"] / old["sigma"] - 1) / (eta / 3)).min(1))
        record.note("87", (new["e"] - old["e"]) / (new["sigma"][:, 0] - old["sigma"][:, 0]))


def _proof_dataset(record: _ProofRecord, end: np.ndarray) -> xr.Dataset:
    s = record.setting
    star = (s.ratio * math.log(s.dimension)) ** 1.5 * s.delta * s.spurious_rank**2 * math.sqrt(s.ranks)
    names = {
        "E1": "error",
        "E1 / R": "error_over_r",
        "E2": "late_error",
        "F1": "frobenius",
        "F2": "late_frobenius",
        "Q": "q",
    }
    largest = {
        names.get(name, f"ratio_{name}"): ("seed", np.broadcast_to(value, end.shape))
        for name, value in record.largest.items()
    }
    paths = {f"path_{name}": (("seed", "step"), np.array(values).T) for name, values in record.paths.items()}
    steps = 10 * np.arange(len(record.paths["r"]))
    return xr.Dataset(
        {
            **largest,
            **paths,
            "growth": ("seed", record.growth),
            "sigma_gap": ("seed", end / max(star**2 * s.bound**2, record.scale)),
            "line": ("step", record.L[steps]),
            "delta": ((), s.delta),
            "delta_star": ((), star),
            "barrier": ((), record.barrier * math.sqrt(s.spurious_rank) * record.L.max()),
        },
        coords={"step": steps},
    )


def draw_proof(ds: xr.Dataset) -> Figure:
    literal = ds.isel(num_samples=0)
    names = ("9", "10", "11", "12", "13", "64", "75", "87")
    labels = ["Lemma 9", "Lemma 10", "Lemma 11", "Lemma 12", "Lemma 13", "Corollary 1", "(75)", "(87)"]
    ratios = np.array([literal[f"ratio_{name}"].values for name in names])
    barrier = literal.line.values * float(literal.barrier / literal.line.max())
    return Figure(
        title="Every step of the proof holds, most of them with room to spare",
        panels=[
            Panel(
                title="Largest left side over right side",
                xlabel="ratio, the largest of a run",
                ylabel="inequality",
                series=[
                    Dots(
                        labels,
                        np.median(ratios, 1),
                        "median run (whiskers: all runs)",
                        low=ratios.min(1),
                        high=ratios.max(1),
                    ),
                    Marker(1.0, "1: the inequality", axis="x", role="bound"),
                ],
                xscale="log",
            ),
            Panel(
                title="R, Q and E at m = 1e33",
                xlabel="step",
                ylabel="norm",
                series=[
                    band(literal.path_r, "smallest σ(R)", colour=0),
                    band(literal.path_q, "largest column of Q", colour=1),
                    band(literal.path_e, "‖E‖", colour=2),
                    Line(ds.step.values, literal.line.values, "calibration line Lₜ (38)", role="theory"),
                    Line(ds.step.values, barrier, "bound on ‖Q‖ of Corollary 1", role="bound"),
                    Marker(ds.attrs["phase_one"], "T₁", axis="x"),
                ],
                yscale="log",
            ),
        ],
        note=(
            f"d = 16, ranks (2, 2), s = 1 − 20 or 1 + 20, η = 0.05, α = 1e-18, δ = {float(literal.delta):.1e}; "
            f"medians and quartiles of {ds.sizes['seed']} runs. 4 (r₁ + r₂) = d, so δ is that of all matrices. The "
            "batch that the proof needs is out of reach of data, not of a simulation that draws the law of a batch."
        ),
    )


def _ratio(name: str, **limits: float) -> Callable[[xr.Dataset], Outcome]:
    """The largest ratio over runs, at both batch sizes, at most 1."""

    def measure(ds: xr.Dataset) -> Outcome:
        return within(limits.get("least", -math.inf), 1, largest=ds[name].max())

    return measure


def _share(ds: xr.Dataset, name: str) -> float:
    return float((ds[name].isel(num_samples=0) <= 1).mean())


def _corollary1(ds: xr.Dataset) -> Outcome:
    literal = ds.isel(num_samples=0)
    return together(
        within(0.95, 1, share_of_runs=_share(ds, "ratio_64")),
        within(0, 0.01, bound=literal.barrier),
        within(-math.inf, math.inf, largest_q=literal.q.max(), largest_q_over_bound=literal.ratio_64.max()),
    )


def _theorem4(ds: xr.Dataset) -> Outcome:
    return together(
        within(0, 1, norm_over_bound=ds.error.max(), squared_frobenius_over_bound=ds.frobenius.max()),
        within(0, 1 + 1e-9, norm_over_r=ds.error_over_r.max()),
        # In the units of the statement, which has no M1: delta sqrt(r1 + r2).
        within(0, 1, norm_over_delta_root_r=40 * (1 + PROOF.spread) * ds.error.max()),
    )


def _theorem5(ds: xr.Dataset) -> Outcome:
    noisy = ds.isel(num_samples=-1)
    return together(
        within(0, 1, norm_over_bound=ds.late_error.max(), squared_frobenius_over_bound=ds.late_frobenius.max()),
        within(1e-6, 1, sigma_gap_over_bound=noisy.sigma_gap.max()),
    )


def _batch_needed(ds: xr.Dataset) -> Outcome:
    """(59) is proportional to delta where it is tightest, at t = 0."""
    literal = ds.isel(num_samples=0)
    return within(0, 1e8, batch=literal.num_samples * literal.ratio_10.max() ** 2)


PROOF_STEPS = Experiment(
    name="lemmas9-14",
    title="The steps of the proof of Theorem 2",
    source="Xu 2024, Lemmas 9 to 14, Corollary 1, Theorems 4 and 5",
    summary=(
        "HeteroSGD in a setting with the conditions that the proof uses: Lemma 7's inequality in place of the "
        "literal step window; a batch of 1e33 (and 1e26), simulated by its law, so that delta is as small as the "
        "proof asks for; orthogonal subspaces. Assumption 1(a), ranks above log^4 d, is out of reach; alpha is "
        "1e-18 instead of at least d^-4."
    ),
    sizes={"smoke": {"runs": 6}, "standard": {"runs": 60}, "full": {"runs": 400}},
    compute=proof_data,
    draw=draw_proof,
    claims=[
        Claim(
            slug="eq-43",
            statement="(43): x^(1 - gamma) <= 1 + (1 - gamma) (x - 1) - (1 - gamma) gamma (x - 1)^2 / 4 for |x - 1| < 1/16.",
            criterion="least coefficient of (1 - gamma) gamma (x - 1)^2 on a grid of x and gamma in [1/4, 1/2]",
            measure=lambda ds: within(0.25, 0.5, least=ds.curvature),
        ),
        Claim(
            slug="lemma-9",
            statement="Lemma 9: ||U^T E o (U U^T - A_star - A_e)|| <= 2 M1 delta sqrt(r1 + r2) ||U||.",
            criterion=(
                "largest left side over right side, at every tenth step of every run, at most 1 (and at least 0.01)"
            ),
            measure=_ratio("ratio_9", least=0.01),
        ),
        Claim(
            slug="lemma-10",
            statement="Lemma 10: isometry and interaction errors stay below L_t and 5/(576 log(1/alpha)) R_t.",
            criterion=(
                "(59) at m = 1e33 for the largest U and epsilon_1 that it allows: ratio at every step at most 1 "
                "(and at least 0.01)"
            ),
            measure=lambda ds: within(0.01, 1, ratio=ds.ratio_10.isel(num_samples=0).max()),
        ),
        Claim(
            slug="lemma-11",
            statement="Lemma 11: every column of Q_t stays below the controller q_t driven by the same environments.",
            criterion=(
                "column norm over controller at every step of every run at most 1 (and in some step at least 0.5)"
            ),
            measure=_ratio("ratio_11", least=0.5),
        ),
        Claim(
            slug="corollary-1",
            statement="Corollary 1 and Theorem 4: ||Q_t||_F < p^-1.5 r2^2 L_t < 0.01 (p = 0.01/T2).",
            criterion=(
                "at m = 1e33: true of every step in at least 95 % of the runs, and the bound is below 0.01 at every "
                "step"
            ),
            measure=_corollary1,
        ),
        Claim(
            slug="lemma-12",
            statement="Lemma 12: ||E_(t+1)|| <= ||E_t|| + eta L_t.",
            criterion="increase over eta L_t at every step of every run at most 1",
            measure=_ratio("ratio_12"),
        ),
        Claim(
            slug="lemma-13",
            statement="Lemma 13: ||E||_F^2 grows as (66) and (67) say, their constants taken as 1.",
            criterion=(
                "increase over its bound, and ||E_t||_F^2 - ||E_0||_F^2 over (67), at every step of every run, at "
                "most 1"
            ),
            measure=lambda ds: within(-math.inf, 1, step=ds.ratio_13.max(), sum=ds.ratio_67.max()),
        ),
        Claim(
            slug="eq-75",
            statement=(
                "Lemma 14, (75): in phase 1 all singular values of R_t stay between the lower and the upper "
                "sequence (31)."
            ),
            criterion=(
                "sigma_1 over the upper and the lower over sigma_r1 at every step up to T1 at most 1 (and at least 0.9)"
            ),
            measure=_ratio("ratio_75", least=0.9),
        ),
        Claim(
            slug="eq-76",
            statement=(
                "Lemma 14, (76): in phase 1 every step multiplies all singular values of R_t by at least 1 + eta/3."
            ),
            criterion="least growth per step in units of eta/3 at least 1 in every run",
            measure=lambda ds: within(1, 3.1, least=ds.growth.min()),
        ),
        Claim(
            slug="eq-87",
            statement="(87): in phase 1 ||E|| grows by less than ||R||.",
            criterion="increase of ||E|| over that of ||R|| at every step up to T1 at most 1",
            measure=_ratio("ratio_87"),
        ),
        Claim(
            slug="theorem-4-error",
            statement=(
                "Theorem 4: in phase 1 ||E_t|| <= 40 M1 delta sqrt(r1 + r2) and ||E_t|| <= ||R_t|| (83), and (84) "
                "for ||E_t||_F^2."
            ),
            criterion=(
                "largest of each over its bound, at every step of every run, at most 1; also in units of delta "
                "sqrt(r1 + r2)"
            ),
            measure=_theorem4,
        ),
        Claim(
            slug="theorem-5-error",
            statement=(
                "Theorem 5: in phase 2 ||E_t|| <= 80 M1 delta sqrt(r1 + r2) log(1/alpha), the same (84), and (94) "
                "for the singular values of R, its constant taken as 1."
            ),
            criterion="largest of each over its bound at most 1; (94) at m = 1e26, where it is above rounding",
            measure=_theorem5,
        ),
        Claim(
            slug="batch-needed",
            ours=True,
            statement="The conditions of the proof can be met with data: Lemma 10 needs a batch of at most 1e8.",
            criterion="least m at which (59) holds in this setting <= 1e8",
            measure=_batch_needed,
            expected="fails",
            kind="not covered",
            reason=(
                "It takes a batch of more than 1e32: p^-1.5 r2^2 multiplies delta. At the batches of the paper's "
                "figures the bounds of Theorems 4 and 5 are above 1 and say nothing."
            ),
        ),
    ],
    weight=2,
)
