"""Every public class and function with one argument spoilt: a sentence, or a value that is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz_tally import Tally, cases
from hostile import VALUES, is_certainly_bad
from public_calls import public_calls

DATA = {"X", "y", "environments"}
"""Data of estimators and of ``heterogeneity``, whose shapes scikit-learn checks in its own words."""

SEEDS = ("seed", "seeds", "progress")
"""The engine checks seeds itself, and the tests of the engine check that; errors of a user's function are the user's."""

CALLS = [
    (call, name, parameter)
    for call in public_calls()
    for name, parameter in call.parameters.items()
    if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and name not in SEEDS
]


@pytest.mark.parametrize("call", [c for c in public_calls() if "." not in c.name], ids=lambda c: c.name)
def test_good_calls_are_good(call):
    """Otherwise a refusal would prove nothing."""
    if call.name not in ("run", "run_grid", "offshoots"):  # compiled elsewhere
        call.function(**call.good)


def test_spoilt_arguments(tally: Tally):
    @cases(small=300, full=3000)
    @given(st.sampled_from(range(len(CALLS))), st.sampled_from(list(VALUES)))
    def spoil(index: int, value: str) -> None:
        call, name, parameter = CALLS[index]
        tally.attempt(
            f"{call.name}({name}={value})",
            lambda: call.function(**{**call.good, name: VALUES[value]}),
            is_bad=is_certainly_bad(parameter, value),
            also=(ValueError, TypeError) if name in DATA else (),
        )

    spoil()
    tally.check()
