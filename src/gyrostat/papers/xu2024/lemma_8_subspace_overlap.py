"""Lemma 8 of Xu 2024, and the identities (22) to (24) and (57): subspaces that are not orthogonal."""

import math

import numpy as np
import xarray as xr

from gyrostat.experiments import Experiment, claim

OVERLAPS = [0.01, 0.03, 0.1, 0.3]


def parts(U, U_star, V_star):
    """R, Q and E of (17) and (18)."""
    R, Q = U.T @ U_star, U.T @ V_star
    return R, Q, U - U_star @ R.T - V_star @ Q.T


def interaction(U, U_star, V_star):
    """The left side of (51)."""
    R, Q, E = parts(U, U_star, V_star)
    return np.linalg.norm(U.T @ U - R @ R.T - Q @ Q.T - E.T @ E, 2)


def identity_gaps(rng, U, U_star, V_star):
    """How far one step (21) is from the printed (22), (23) and (24), and how far (57) is from an identity."""
    eta, d = 0.05, len(U)
    sigma, Z = np.diag(rng.standard_normal(V_star.shape[1])), rng.standard_normal((d, d))
    noise = (Z + Z.T) / 2
    R, Q, E = parts(U, U_star, V_star)
    truth, spurious = U_star @ U_star.T, V_star @ sigma @ V_star.T
    rest = np.eye(d) - truth - V_star @ V_star.T
    new = U - eta * (U @ U.T - truth - spurious) @ U - eta * noise @ U
    crossed = E @ (R @ U_star.T + Q @ V_star.T) + V_star @ Q.T @ R @ U_star.T
    squares = U_star @ (R.T @ R - np.eye(R.shape[1])) @ U_star.T + V_star @ Q.T @ Q @ V_star.T
    gaps = (
        new.T @ U_star - (R - eta * U.T @ U @ R + eta * R + eta * U.T @ spurious @ U_star - eta * U.T @ noise @ U_star),
        new.T @ V_star
        - (Q - eta * U.T @ U @ Q + eta * Q @ sigma + eta * U.T @ truth @ V_star - eta * U.T @ noise @ V_star),
        rest @ new - (E @ (np.eye(d) - eta * U.T @ U) + eta * rest @ (truth + spurious) @ U - eta * rest @ noise @ U),
        U @ U.T - truth - E @ E.T - (squares + crossed + crossed.T),
    )
    return [np.abs(gap).max() for gap in gaps]


class Lemma8(Experiment):
    """The interaction error of subspaces that are not orthogonal

    U^T U is the sum of the squares of R, Q and E up to the overlap of the subspaces; the dynamics are identities.
    """

    source, items = "Xu 2024, Lemma 8, (22) to (24) and (57)", "Lemma 8"
    sizes = {"states": (40, 400, 4000)}

    def compute(self, run, states):
        """The left side of (51) in units of epsilon_1 ||U||^2 at random U and at the worst U, and the gaps of identities."""
        d, r1, r2 = 12, 3, 2

        def cell(overlap):
            typical, gaps = [], []
            for _ in range(states):
                frame = np.linalg.qr(run.rng.standard_normal((d, r1 + r2)))[0]
                U_star = frame[:, :r1]
                V_star = overlap * U_star[:, :r2] + math.sqrt(1 - overlap**2) * frame[:, r1:]
                U = run.rng.standard_normal((d, d)) * 10.0 ** run.rng.uniform(-3, 0, d)
                typical.append(interaction(U, U_star, V_star) / (overlap * np.linalg.norm(U, 2) ** 2))
                gaps.append(identity_gaps(run.rng, U / np.linalg.norm(U, 2), U_star, V_star))
            # U^T (S - S^2) U with S = Id_U* + Id_V*: the worst U is an eigenvector.
            S = U_star @ U_star.T + V_star @ V_star.T
            values, vectors = np.linalg.eigh(S - S @ S)
            worst = interaction(vectors[:, [np.abs(values).argmax()]], U_star, V_star) / overlap
            return max(typical), worst, np.max(gaps, axis=0)

        typical, worst, gaps = zip(*map(cell, OVERLAPS))
        return xr.Dataset(
            {
                "typical": ("overlap", list(typical)),
                "worst": ("overlap", list(worst)),
                "gap": (("overlap", "identity"), np.array(gaps)),
            },
            {"overlap": OVERLAPS, "identity": ["(22)", "(23)", "(24)", "(57)"]},
        )

    @claim(
        "largest left side over epsilon_1 ||U||^2, at random U and at the worst U, in (0, 6]",
        typical=(1e-9, 6),
        worst=(1e-9, 6),
    )
    def lemma_8(self, ds):
        """||U^T U - (R R^T + Q Q^T + E^T E)|| <= 6 epsilon_1 ||U||^2."""
        return ds.typical.max(), ds.worst.max()

    @claim(
        "random U below it; the worst U reaches it to 1e-6, at every overlap",
        ours=True,
        items="Lemma 8",
        typical_over_sharp=(0, 1),
        gap=(-1e-6, 1e-6),
    )
    def sharp_constant(self, ds):
        """Ours: the sharp constant is 1 + epsilon_1."""
        return (ds.typical / (1 + ds.overlap)).max(), abs(ds.worst - 1 - ds.overlap).max()

    @claim("largest gap of any entry <= 1e-12 for factors of norm 1", items="(22); (23); (24); (57)", gap=(0, 1e-12))
    def dynamics(self, ds):
        """The dynamics (22), (23), (24) of R, Q and E and the expansion (57) are identities."""
        return ds.gap.max()
