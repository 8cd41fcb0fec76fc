"""(D.5) and (D.6): the imbalance and its drift."""

import numpy as np

import gyrostat as gs
from gyrostat.experiments import Experiment, claim
from gyrostat.papers.xiong2024.settings import LITERAL, design_matrices, designs_of, factorisation, sensing, table
from gyrostat.theory.xiong2024 import imbalance_increment, increment_bound

CASES = {
    "F .003 .5": (0.003, 0.5, False),
    "F .2 .5": (0.2, 0.5, False),
    "S .2 .5": (LITERAL, 0.5, True),
    "S .2 .02": (LITERAL, 0.02, True),
    "S .003 .05": (0.003, 0.05, True),
}
"""Factorisation or sensing: eta, alpha, and whether it is sensing."""


def extremes(ds, eta, alpha, truth, X):
    """Along a run: the worst gap of the identity, the largest increment over its bound, the extreme eigenvalues / alpha^2."""
    F, G, D = (ds[name].values for name in ("left_factor", "right_factor", "imbalance_matrix"))
    gaps, shares = [0.0], [0.0]
    for t in range(0, len(F) - 1, max(1, len(F) // 200)):
        E = F[t] @ G[t].T - truth
        M = E if X is None else (X.T @ (X @ E.ravel()) / len(X)).reshape(E.shape)
        change = D[t + 1] - D[t]
        size = np.linalg.norm(change, 2)
        # D is a difference of matrices of size ||F||^2, each right to 1e-16 of that.
        if size > 1e-9 * np.linalg.norm(F[t], 2) ** 2:
            gaps.append(float(np.abs(change - imbalance_increment(F[t], G[t], M, eta)).max() / size))
            shares.append(float(size / increment_bound(F[t], G[t], M, eta)))
    eigenvalues = np.linalg.eigvalsh(D) / alpha**2
    return {"identity": max(gaps), "ratio": max(shares), "least": eigenvalues.min(), "most": eigenvalues.max()}


class Imbalance(Experiment):
    """The imbalance and its drift

    F^T F - G^T G is what drives the linear rate; one step changes it by eta^2 (G^T M^T M G - F^T M M^T F).
    """

    source, weight, items = "Xiong 2024, (D.5) and (D.6)", 14, "(D.6)"
    sizes = {"seeds": (4, 10, 50), "dimension": 50, "tau": (9.0, 80.0, 80.0)}
    names = {
        "share": "share of the runs within the bounds",
        "least": "smallest eigenvalue over alpha^2",
        "most": "largest eigenvalue over alpha^2",
    }

    def compute(self, run, dimension, tau):
        design, cases = designs_of(run.seed, 1)[0], []
        for eta, alpha, senses in run.over(CASES.values()):
            problem = sensing(14, design, dimension=dimension) if senses else factorisation(dimension=dimension)
            steps = min(round(tau / eta), 4000)
            ds = run.single(
                gs.GradientDescent(eta, width=4, start=alpha),
                problem,
                num_steps=steps,
                record=("left_factor", "right_factor", "imbalance_matrix"),
                record_at=steps + 1,
                reduction="never",
            )
            truth, X = np.asarray(problem.environments.invariant), design_matrices(problem) if senses else None
            cases.append([extremes(ds.isel(seed=s), eta, alpha, truth, X) for s in range(run.seeds)])
        return table(cases, ("case", "seed"), list(CASES)).assign_attrs(settings=ds.attrs["settings"])

    @claim(
        "relative gap <= 1e-5 in factorisation, for increments above 1e-9 ||F||^2 (rounding: n 1e-16)",
        ours=True,
        items="(D.5)",
        largest_relative_gap=(0, 1e-5),
    )
    def increment(self, ds):
        """The increment is exactly eta^2 (G^T M^T M G - F^T M M^T F) (ours)."""
        return ds.identity.sel(case=["F .003 .5", "F .2 .5"]).max()

    @claim(
        "increment over eta^2 ||M||^2 max(||F||, ||G||)^2 at most 1 in all cases",
        items="(D.5)",
        largest_ratio=(0, 1 + 1e-6),
    )
    def sharp(self, ds):
        """(D.5) holds, with the constant 1 instead of 2."""
        return ds.ratio.max()

    def within_bounds(self, ds, case):
        """The share of the runs in which all eigenvalues stay within (D.6), and the extreme ones of all runs."""
        least, most = ds.least.sel(case=case), ds.most.sel(case=case)
        return ((least >= 1 / 8) & (most <= 2)).mean(), least.min(), most.max()

    @claim(
        "extreme eigenvalues over alpha^2 in [1/8, 2] in 80 % of the runs, factorisation, eta = .003, alpha = .5",
        share=(0.8, 1),
        least=None,
        most=None,
    )
    def small_step(self, ds):
        """(D.6) holds with a small step: alpha^2/8 <= F^T F - G^T G <= 2 alpha^2 throughout."""
        return self.within_bounds(ds, "F .003 .5")

    @claim(
        "the same for sensing, eta = .2, alpha = .02",
        ours=True,
        items="(D.6)",
        fails="not covered",
        share=(0.8, 1),
        least=None,
        most=None,
    )
    def printed_step(self, ds):
        """(D.6) holds at the printed learning rate and a small start.

        The drift is of order eta^2, the imbalance of order alpha^2: at eta = 0.2 the imbalance turns indefinite.
        """
        return self.within_bounds(ds, "S .2 .02")
