"""Labels of rows, against a dictionary, and what the room needs to be imported."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest

from gyrostat.sources import grain_batches, row_labels
from gyrostat.sources.row_labels import grouped

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", 1, "1", 2.5],
        [np.array("b"), np.array("a"), np.array("b")],
        RNG.integers(0, 5, row_labels.MANY).tolist(),
        RNG.integers(0, 5, row_labels.MANY).astype(float),
        RNG.permutation(np.repeat(np.arange(70_000), 2)),  # more than 65536 labels
    ],
    ids=["mixed", "scalars", "long list", "long floats", "many labels"],
)
def test_labels_are_grouped_in_the_order_of_their_first_rows(labels):
    rows_of: dict = {}
    for row, label in enumerate(labels):
        rows_of.setdefault(np.asarray(label).item() if isinstance(label, np.ndarray) else label, []).append(row)
    names, rows = grouped(labels)
    assert names == list(rows_of)
    assert [indices.tolist() for indices in rows] == list(rows_of.values())


def test_the_room_imports_neither_jax_nor_pytorch():
    code = (
        "import sys, gyrostat.sources.row_labels, gyrostat.sources.one_environment_batches, gyrostat.sources.grain_batches; "
        "print([name for name in ('jax', 'equinox', 'torch') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_old_place_of_the_grain_adapter_says_the_new_one():
    with pytest.warns(DeprecationWarning, match="is now gyrostat.sources.grain_batches"):
        old = importlib.import_module("gyrostat.environments.grain_batches").GrainEnvironmentBatches
    assert old is grain_batches.GrainEnvironmentBatches
