"""Saved models with one field spoilt: ``predict`` refuses them; the whole suite only (``make fuzz``)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz_command_line import asked

from fuzz_tally import FULL, Tally, cases

pytestmark = pytest.mark.skipif(not FULL, reason="needs a fit: make fuzz")
BAD: list[Any] = [None, True, float("nan"), float("inf"), -1e400, "x", [], [[1]], {}, {"a": 1}, 10**400]
PROSE = ("about", "format", "version")
"""Fields that say where a model comes from; they decide no prediction."""

NULL_IS_A_VALUE = ("standard_errors",), ("least_squares",), ("same_kind",), ("worst_case",)
"""Fields in which null is a value: standard errors that could not be estimated, a purpose that the model does not serve."""


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every number, list and table of a model."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key not in PROSE:
            yield (*prefix, key)
            yield from paths(inner, (*prefix, key))


def test_spoilt_fields(tmp_path, monkeypatch, tally: Tally):
    monkeypatch.chdir(tmp_path)
    asked("fit", "example:sites", "--target", "outcome", "--environment", "site", "--out", "good")
    model = json.loads((tmp_path / "good" / "model.json").read_text())
    places = list(paths(model))
    frame = "example:sites"

    @cases(small=1, full=500)
    @given(st.sampled_from(places), st.sampled_from(range(len(BAD))))
    def spoil(path: tuple[Any, ...], which: int) -> None:
        changed = copy.deepcopy(model)
        inner = changed
        for key in path[:-1]:
            inner = inner[key]
        before, bad = inner[path[-1]], BAD[which]
        is_bad = type(before) is not type(bad) or (isinstance(bad, float) and bad != before)
        is_bad = is_bad and not (
            bad is None and (path[:1] if path[0] == "standard_errors" else path) in NULL_IS_A_VALUE
        )
        inner[path[-1]] = bad
        (tmp_path / "model.json").write_text(json.dumps(changed))
        tally.attempt(
            f"{path} = {str(bad)[:20]}", lambda: asked("predict", "model.json", frame, "--out", "p.csv"), is_bad=is_bad
        )

    spoil()
    tally.check()
