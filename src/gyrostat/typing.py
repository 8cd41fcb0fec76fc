"""Types that several rooms share. Importing them does not import JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from jaxtyping import Array

Leaf: TypeAlias = Any
"""A number or an array in a field of a module: a NumPy value when the module is built, a traced one inside a run."""

Params: TypeAlias = "tuple[Array, ...]"
"""The parameters of a model: a tuple of arrays, one for each factor or layer."""
