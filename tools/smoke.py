"""A smoke test of an installation: one small use of each part that depends on another library (``make lowest``)."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

FAKE = Path(__file__).parents[1] / "tests/tools/fake2024.py"
TABLE = {
    "num_steps": 20,
    "seeds": 2,
    "algorithm": {"kind": "HeteroSGD", "step_size": 0.05},
    "environments": {"kind": "RandomEnvironments", "dimension": 3, "law": {"kind": "TwoPoint"}},
    "measurements": {"kind": "Identity"},
    "axes": {"spread": [2.0, 8.0], "order": ["iid", "cyclic"]},
    "record": {"final": ["signal"], "paths": ["spurious"], "points": 3},
    "success": {"spurious": {"below": 0.1}},
}


def runs(folder: Path) -> None:
    import numpy as np
    import optax

    import gyrostat as gs

    problem = gs.Problem(gs.RandomEnvironments(5, law=gs.TwoPoint(spread=6.0)), gs.FreshGaussian(200))
    result = gs.run(gs.HeteroSGD(0.05), problem, num_steps=20, seeds=2, progress=True)
    assert np.isfinite(gs.summary(result).signal).all()
    adam = gs.HeteroSGD(0.01, rule=gs.rules.Optax(optax.adam(1.0)))
    assert np.isfinite(gs.run(adam, problem, num_steps=5).signal).all()


def sweeps(folder: Path) -> None:
    from gyrostat.sweeps import sweep
    from gyrostat.sweeps.plots import draw_sweep

    found = sweep(TABLE, out=folder, jobs=1)
    assert sweep(TABLE, out=folder, jobs=0).identical(found)
    draw_sweep(folder)


def reproduction(folder: Path) -> None:
    command = [sys.executable, "-m", "gyrostat", "reproduce", f"{FAKE}/fig1", "--size", "smoke"]
    subprocess.run([*command, "--out", str(folder)], check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "gyrostat", "report", str(folder)], check=True, capture_output=True)


def tables(folder: Path) -> None:
    for arguments in (
        ("fit", "example:sites", "--target", "outcome", "--environment", "site", "--out", str(folder / "fit")),
        ("doctor",),
    ):
        subprocess.run([sys.executable, "-m", "gyrostat", *arguments], check=True, capture_output=True)


def estimators(folder: Path) -> None:
    import numpy as np

    from gyrostat.estimators import InvariantLinearRegressor, LowRankImputer

    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    InvariantLinearRegressor().fit(X, X[:, 0] + 0.1 * rng.normal(size=90), environments=np.repeat([0, 1, 2], 30))
    M = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 15))
    M[rng.random(M.shape) < 0.2] = np.nan
    assert np.isfinite(LowRankImputer().fit_transform(M)).all()


def laboratory(folder: Path) -> None:
    import gyrostat.lab.server  # noqa: F401


def cluster(folder: Path) -> None:
    from distributed import LocalCluster

    from gyrostat.sweeps import sweep

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(host="127.0.0.1", **options) as made:
        sweep(TABLE, out=folder, scheduler=made.scheduler_address)


def main() -> int:
    """Run every part in a folder of its own; the exit status is the number of parts that fail."""
    failed = 0
    for part in (runs, sweeps, reproduction, tables, estimators, laboratory, cluster):
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                part(Path(folder))
            except Exception as error:
                failed += 1
                said = getattr(error, "stderr", b"") or b""
                print(f"{part.__name__}: {type(error).__name__}: {error} {said.decode()[-2000:]}", flush=True)
            else:
                print(f"{part.__name__}: passes", flush=True)
    names = ("jax", "numpy", "scipy", "scikit-learn", "pandas", "xarray", "zarr", "distributed")
    print("with", ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))
    return failed


if __name__ == "__main__":
    sys.exit(main())
