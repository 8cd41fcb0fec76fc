"""Decompositions in sequence: in the compiled program each waits for the one before, and nothing else changes."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gyrostat as gs
from gyrostat.jax_tools.sequential_lapack import after, in_sequence


def independent(matrices):
    """Decompositions of every kind, none of which needs another."""
    A, B, C, D = matrices
    return {
        "values": jnp.linalg.svd(A, compute_uv=False),
        "basis": jnp.linalg.qr(B)[0],
        "norms": [jnp.linalg.norm(x, 2) for x in (C, D)],
        "solved": [jnp.linalg.solve(x + 9 * jnp.eye(len(x)), x[0]) for x in (A, B)],
        "eigen": jax.lax.cond(C[0, 0] > 0, lambda x: jnp.linalg.eigh(x + x.T)[0], lambda x: x[0], D),
    }


def ordered(matrices):
    return in_sequence(lambda: independent(matrices))


def made(seed: int = 0, runs: int = 3):
    return list(jnp.asarray(np.random.default_rng(seed).standard_normal((4, runs, 5, 5))))


def calls(function, *arguments) -> list[set[int]]:
    """For each LAPACK call of the compiled program, the calls that it waits for (those of one computation)."""
    text = jax.jit(function).lower(*arguments).compile().as_text()
    waits: dict[str, set[str]] = {}
    found: list[str] = []
    for name, rest in re.findall(r"^\s+(?:ROOT )?%(\S+) = (.*)$", text, re.MULTILINE):
        before = set(re.findall(r"%([\w.-]+)", rest.split(", calls=")[0].split(", to_apply=")[0]))
        waits[name] = before.union(*(waits.get(x, set()) for x in before))
        if "lapack_" in rest or "blas_" in rest:
            found.append(name)
    return [{k for k, other in enumerate(found) if other in waits[name]} for name in found]


def test_calls_are_independent_without_it_and_a_chain_with_it(x64):
    @jax.jit  # decompositions inside a called function belong to the chain
    def three(matrices):
        return [jnp.linalg.svd(x, compute_uv=False) for x in matrices[:3]]

    many = jax.vmap(three)
    assert calls(many, made()) == [set(), set(), set()]  # else this test could not fail
    chained = jax.vmap(lambda matrices: in_sequence(lambda: three(matrices)))
    assert sorted(map(len, calls(chained, made()))) == [0, 1, 2]


@pytest.mark.parametrize("wrapped", [jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f))])
def test_the_values_are_the_same(wrapped, x64):
    matrices = made() if wrapped is not jax.jit else [x[0] for x in made()]
    found, wanted = wrapped(ordered)(matrices), wrapped(independent)(matrices)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_not_a_number_spoils_nothing_that_comes_after(x64):
    bad, *good = made()
    for number in (np.nan, np.inf, -np.inf):
        spoilt = [jnp.full_like(bad, number), *good]
        found, wanted = (jax.jit(jax.vmap(f))(spoilt) for f in (ordered, independent))
        for name in ("basis", "norms", "eigen"):
            np.testing.assert_array_equal(found[name], wanted[name])
            assert np.isfinite(np.asarray(found[name])).all()
        assert after(jnp.asarray(number), jnp.asarray(2.0)) == 2


def test_what_is_not_an_array_passes_through():
    environments = gs.Environments.diagonal(4, [1.0])
    returned = in_sequence(lambda: (environments, "words", None))
    assert returned[1:] == ("words", None) and returned[0].shape == (4, 4)
