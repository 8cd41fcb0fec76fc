"""Estimators, tables and PyTorch tools import neither JAX nor rooms that they do not use."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

LOW_RANK = "rng = np.random.default_rng(0); X = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 15))"
REGRESSION = (
    "rng = np.random.default_rng(0); X = rng.standard_normal((90, 3)); y = X[:, 0] + rng.standard_normal(90); "
    "labels = np.repeat(list('abc'), 30)"
)
TABLE = "import pathlib, tempfile; from rich.console import Console; folder = pathlib.Path(tempfile.mkdtemp())"
PROGRAMS = {
    "imputer": (
        f"from gyrostat.estimators import LowRankImputer; {LOW_RANK}; X[rng.random(X.shape) < 0.3] = np.nan; "
        "LowRankImputer(random_state=0).fit_transform(X)"
    ),
    "sensing": (
        "from gyrostat.estimators import MatrixSensingRegressor; "
        f"{LOW_RANK}; M = rng.standard_normal((200, 20, 15)); MatrixSensingRegressor(random_state=0, max_iter=20).fit("
        "M, np.einsum('mij,ij->m', M, X))"
    ),
    "linear": (
        "from gyrostat.estimators import InvariantLinearRegressor; "
        f"{REGRESSION}; InvariantLinearRegressor(random_state=0).fit(X, y, environments=labels)"
    ),
    "quadratic": (
        "from gyrostat.estimators import InvariantQuadraticRegressor; "
        f"{REGRESSION}; InvariantQuadraticRegressor(random_state=0).fit(X, y, environments=labels)"
    ),
    "heterogeneity": f"import gyrostat as gs; {REGRESSION}; gs.heterogeneity(X, y, labels)",
    "fit and predict": (
        f"{TABLE}; from gyrostat.tables.fit_and_predict import fit, predict; console = Console(file=sys.stderr); "
        "data = pathlib.Path('example:sites'); "
        "fit(data, target='outcome', environment='site', out=folder / 'out', console=console); "
        "predict(folder / 'out', data, folder / 'predictions.csv', console)"
    ),
    "impute": (
        f"{TABLE}; {LOW_RANK}; import pandas as pd; from gyrostat.tables.impute import impute; X[3, 4] = np.nan; "
        "pd.DataFrame(X).to_csv(folder / 'table.csv', index=False); "
        "impute(folder / 'table.csv', folder / 'filled.csv', Console(file=sys.stderr), ignore=[], environments=None, "
        "options={'random_state': 0})"
    ),
    "torch": (
        "import torch; from gyrostat.torch import EnvironmentBatchSampler, TrajectoryRecorder; "
        "list(EnvironmentBatchSampler(['a', 'b'] * 4, 2)); weight = torch.zeros(3); "
        "recorder = TrajectoryRecorder(weight, {'first': np.eye(3)[:, :1]}); recorder.record(0); recorder.result()"
    ),
}
ROOMS = {
    "imputer": {"sources", "errors", "estimators"},
    "sensing": {"environments", "sources", "errors", "estimators"},
    "linear": {"environments", "sources", "errors", "estimators", "models", "theory"},
    "fit and predict": {
        "engine",
        "environments",
        "errors",
        "estimators",
        "figures",
        "models",
        "parallel",
        "sources",
        "tables",
        "theory",
    },
    "impute": {"sources", "errors", "estimators", "tables"},
    "torch": {"sources", "errors", "torch"},
}
ROOMS |= {"quadratic": ROOMS["linear"], "heterogeneity": ROOMS["linear"]}


# Each program runs in a process of its own, which lists the modules that are loaded at its end. All are copies of one that has
# loaded what is not ours and takes long, except for PyTorch.
EACH = """
import json, os, sys
import numpy as np, pandas, pyarrow, sklearn.linear_model, scipy.stats, matplotlib.pyplot
for name, program in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        exec(program)
        print(json.dumps([name, sorted(sys.modules)]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


@pytest.fixture(scope="module")
def loaded():
    """The modules that are loaded after each program."""
    possible = {name: p for name, p in PROGRAMS.items() if name != "torch" or importlib.util.find_spec("torch")}
    command = [sys.executable, "-c", EACH, json.dumps(possible)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_the_rooms_that_are_needed_are_imported(name, loaded):
    if name not in loaded:
        pytest.skip("needs torch")
    modules = loaded[name]
    assert not {"jax", "jaxlib", "equinox"} & set(modules)
    rooms = {module.split(".")[1] for module in modules if module.startswith("gyrostat.")}
    assert rooms - {"what_went"} <= ROOMS[name]  # the errors read it


def test_each_program_starts_without_our_modules(loaded):
    assert all("gyrostat.errors" in modules for modules in loaded.values())
    assert "gyrostat.tables" in loaded["fit and predict"] and "gyrostat.theory" not in loaded["impute"]
