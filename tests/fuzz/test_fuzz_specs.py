"""Specs of sweeps with a hostile value, a misspelt key or a bomb of a formula anywhere in them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fuzz_tally import Tally, cases
from gyrostat.sweeps import read_spec
from hostile import NAMES, VALUES

GOOD: dict[str, Any] = {
    "title": "A sweep",
    "num_steps": "= 2 / step_size",
    "seeds": 2,
    "seed": 0,
    "algorithm": {"kind": "HeteroSGD", "step_size": 0.5},
    "environments": {"kind": "RandomEnvironments", "dimension": 4, "law": {"kind": "TwoPoint", "spread": 1.0}},
    "measurements": {"kind": "FreshGaussian", "num_samples": "= 10 * dimension"},
    "axes": {"spread": {"linear": [1.0, 2.0], "points": 2, "label": "spread"}},
    "record": {"final": ["signal"], "points": 2},
    "success": {"spurious": {"below": 0.1}},
}
PATHS = [
    ("title",),
    ("num_steps",),
    ("seeds",),
    ("seed",),
    ("algorithm",),
    ("algorithm", "kind"),
    ("algorithm", "step_size"),
    ("environments", "dimension"),
    ("environments", "law"),
    ("environments", "law", "kind"),
    ("environments", "law", "spread"),
    ("measurements", "num_samples"),
    ("axes",),
    ("axes", "spread"),
    ("axes", "spread", "linear"),
    ("axes", "spread", "points"),
    ("axes", "spread", "label"),
    ("record", "final"),
    ("record", "points"),
    ("success", "spurious"),
    ("success", "spurious", "below"),
]
BOMBS = [
    "= 9**9**9",
    "= 9**9**9**9",
    "= 2**1e9",
    "= 10.0**400",
    "= (-8)**0.5",
    "= spaced(1, 2, 1e8)",
    "= spaced(1, 2, 3) * 1000000000",
    "= 'a' * 9",
    "= " + "(" * 300 + "1" + ")" * 300,
    "= " + "-" * 481 + "1",
    "= 1" + "+1" * 5000,
    "= __import__('os')",
    "= ().__class__",
    "= [1] * 9",
    "= lambda: 1",
    "= nowhere",
    "= 1 / 0",
    "= exp(1e9)",
    "=",
]
CODE = ["os:system", "builtins:exec", "subprocess:run", "math:sqrt"]


def changed(path: tuple[str, ...], value: Any, key: str | None = None) -> dict[str, Any]:
    """The good spec with another value at a path, or with its last key renamed."""
    table = copy.deepcopy(GOOD)
    inner = table
    for name in path[:-1]:
        inner = inner[name]
    if key is None:
        inner[path[-1]] = value
    else:
        inner[key] = inner.pop(path[-1])
    return table


def build(table: dict[str, Any], **options: Any) -> None:
    read_spec(table, **options).check_cells()


def test_the_good_spec_is_good():
    build(GOOD)


def test_spoilt_values(tally: Tally):
    @cases(small=120, full=700)
    @given(st.sampled_from(PATHS), st.sampled_from([*VALUES, *NAMES]))
    def spoil(path: tuple[str, ...], name: str) -> None:
        value = VALUES.get(name, name)
        tally.attempt(f"{'.'.join(path)} = {name!r}", lambda: build(changed(path, value)), is_bad=False)

    spoil()
    tally.check()


def test_bombs_code_and_misspelt_keys(tally: Tally):
    """All of these must be refused."""
    formulas = st.tuples(
        st.sampled_from([p for p in PATHS if p[-1] in ("num_steps", "num_samples", "step_size", "spread")][1:]),
        st.sampled_from(BOMBS),
    )

    @cases(small=60, full=250)
    @given(
        formulas,
        st.sampled_from([p for p in PATHS if p not in (("title",), ("seed",), ("seeds",))]),
        st.sampled_from(CODE),
    )
    def spoil(formula: tuple[tuple[str, ...], str], path: tuple[str, ...], code: str) -> None:
        where, bomb = formula
        if len(where) > 1 and where[0] != "axes":
            tally.attempt(
                f"{'.'.join(where)} = {bomb[:40]!r}", lambda: build(changed(where, bomb)), is_bad=where[-1] != "spread"
            )
        key = path[-1][:-1] + "qq"
        tally.attempt(f"{'.'.join(path)} as {key}", lambda: build(changed(path, None, key)), is_bad=True)
        for kind in (("algorithm", "kind"), ("environments", "law", "kind")):
            tally.attempt(
                f"{kind} = {code} without code", lambda kind=kind: build(changed(kind, code), code=False), is_bad=True
            )

    spoil()
    tally.check()
