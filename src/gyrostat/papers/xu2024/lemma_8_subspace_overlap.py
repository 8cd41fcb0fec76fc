"""Lemma 8 of Xu 2024, and the identities (22) to (24) and (57): subspaces that are not orthogonal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from gyrostat.experiments.declarations import Claim, Experiment, together, within
from gyrostat.figures.declarations import Figure, Line, Marker, Panel, Points

OVERLAPS = [0.01, 0.03, 0.1, 0.3]
IDENTITIES = ("(22)", "(23)", "(24)", "(57)")


def lemma8_data(*, seed: int, progress: Any = None, states: int) -> xr.Dataset:
    """The left side of (51) in units of epsilon_1 ||U||^2 at random U and at the worst U, and the gaps of four identities."""
    rng = np.random.default_rng(seed)
    cells = [_overlap_cell(rng, overlap, states) for overlap in OVERLAPS]
    return xr.Dataset(
        {
            "typical": ("overlap", [np.max(typical) for typical, _, _ in cells]),
            "worst": ("overlap", [worst for _, worst, _ in cells]),
            "gap": (("overlap", "identity"), [gaps for _, _, gaps in cells]),
        },
        coords={"overlap": OVERLAPS, "identity": list(IDENTITIES)},
        attrs={"states": states},
    )


def _overlap_cell(rng: np.random.Generator, overlap: float, states: int) -> tuple[list[float], float, np.ndarray]:
    d, r1, r2 = 12, 3, 2
    typical, gaps = [], []
    for _ in range(states):
        frame = np.linalg.qr(rng.standard_normal((d, r1 + r2)))[0]
        U_star = frame[:, :r1]
        V_star = overlap * U_star[:, :r2] + math.sqrt(1 - overlap**2) * frame[:, r1:]
        U = rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-3, 0, d)
        typical.append(float(_interaction(U, U_star, V_star) / (overlap * np.linalg.norm(U, 2) ** 2)))
        gaps.append(_identity_gaps(rng, U / np.linalg.norm(U, 2), U_star, V_star))
    # U^T (S - S^2) U with S = Id_U* + Id_V*: the worst U is an eigenvector.
    S = U_star @ U_star.T + V_star @ V_star.T
    values, vectors = np.linalg.eigh(S - S @ S)
    worst = vectors[:, [np.abs(values).argmax()]]
    return typical, float(_interaction(worst, U_star, V_star) / overlap), np.max(gaps, axis=0)


def _interaction(U: np.ndarray, U_star: np.ndarray, V_star: np.ndarray) -> float:
    R, Q, E = _parts(U, U_star, V_star)
    return float(np.linalg.norm(U.T @ U - R @ R.T - Q @ Q.T - E.T @ E, 2))


def _parts(U: np.ndarray, U_star: np.ndarray, V_star: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    R, Q = U.T @ U_star, U.T @ V_star
    return R, Q, U - U_star @ R.T - V_star @ Q.T


def _identity_gaps(rng: np.random.Generator, U: np.ndarray, U_star: np.ndarray, V_star: np.ndarray) -> list[float]:
    """How far one step (21) is from the printed (22), (23) and (24), and how far (57) is from an identity."""
    eta, d = 0.05, len(U)
    sigma, noise = np.diag(rng.standard_normal(V_star.shape[1])), rng.standard_normal((d, d))
    noise = (noise + noise.T) / 2
    R, Q, E = _parts(U, U_star, V_star)
    truth, spurious = U_star @ U_star.T, V_star @ sigma @ V_star.T
    rest = np.eye(d) - truth - V_star @ V_star.T
    new = U - eta * (U @ U.T - truth - spurious) @ U - eta * noise @ U
    gaps = (
        new.T @ U_star - (R - eta * U.T @ U @ R + eta * R + eta * U.T @ spurious @ U_star - eta * U.T @ noise @ U_star),
        new.T @ V_star
        - (Q - eta * U.T @ U @ Q + eta * Q @ sigma + eta * U.T @ truth @ V_star - eta * U.T @ noise @ V_star),
        rest @ new - (E @ (np.eye(d) - eta * U.T @ U) + eta * rest @ (truth + spurious) @ U - eta * rest @ noise @ U),
        U @ U.T - truth - E @ E.T - _expansion(R, Q, E, U_star, V_star),
    )
    return [float(np.abs(gap).max()) for gap in gaps]


def _expansion(R: np.ndarray, Q: np.ndarray, E: np.ndarray, U_star: np.ndarray, V_star: np.ndarray) -> np.ndarray:
    """The right side of (57)."""
    crossed = E @ (R @ U_star.T + Q @ V_star.T) + V_star @ Q.T @ R @ U_star.T
    squares = U_star @ (R.T @ R - np.eye(R.shape[1])) @ U_star.T + V_star @ Q.T @ Q @ V_star.T
    return squares + crossed + crossed.T


def draw_lemma8(ds: xr.Dataset) -> Figure:
    x = ds.overlap.values
    panel = Panel(
        title="Left side of (51) over ε₁‖U‖²",
        xlabel="overlap ε₁ of the two subspaces",
        ylabel="ratio",
        series=[
            Points(x, ds.typical.values, "largest at random U", colour=0),
            Points(x, ds.worst.values, "at the worst U", colour=1),
            Line(x, 1 + x, "1 + ε₁, sharp", role="theory"),
            Marker(6.0, "6, the lemma", role="bound"),
        ],
        xscale="log",
        ylim=(0, 6.5),
    )
    return Figure(
        title="The overlap of the subspaces costs at most (1 + ε₁) ε₁ ‖U‖²",
        panels=[panel],
        note=f"d = 12, ranks (3, 2), {ds.attrs['states']} random factors U for each ε₁.",
    )


LEMMA8 = Experiment(
    name="lemma8",
    title="The interaction error of subspaces that are not orthogonal",
    source="Xu 2024, Lemma 8, (22) to (24) and (57)",
    summary=(
        "U^T U is the sum of the squares of R, Q and E up to the overlap of the subspaces; the dynamics are identities."
    ),
    sizes={"smoke": {"states": 40}, "standard": {"states": 400}, "full": {"states": 4000}},
    compute=lemma8_data,
    draw=draw_lemma8,
    claims=[
        Claim(
            slug="lemma-8",
            statement="||U^T U - (R R^T + Q Q^T + E^T E)|| <= 6 epsilon_1 ||U||^2.",
            criterion="largest left side over epsilon_1 ||U||^2, at random U and at the worst U, in (0, 6]",
            measure=lambda ds: within(1e-9, 6, typical=ds.typical.max(), worst=ds.worst.max()),
        ),
        Claim(
            slug="sharp-constant",
            ours=True,
            statement="Ours: the sharp constant is 1 + epsilon_1.",
            criterion="random U below it; the worst U reaches it to 1e-6, at every overlap",
            measure=lambda ds: together(
                within(0, 1, typical_over_sharp=(ds.typical / (1 + ds.overlap)).max()),
                within(-1e-6, 1e-6, gap=abs(ds.worst - 1 - ds.overlap).max()),
            ),
        ),
        Claim(
            slug="dynamics",
            statement="The dynamics (22), (23), (24) of R, Q and E and the expansion (57) are identities.",
            criterion="largest gap of any entry <= 1e-12 for factors of norm 1",
            measure=lambda ds: within(0, 1e-12, gap=ds.gap.max()),
        ),
    ],
)
