"""The protocol that every model keeps."""

from __future__ import annotations

import abc
from typing import TypeAlias

import equinox as eqx
from jaxtyping import Array

from gyrostat.spaces import Space

Params: TypeAlias = tuple[Array, ...]
"""A model's parameters: a tuple of arrays, one per factor."""


class Model(eqx.Module):
    """A map from parameters (a tuple of arrays) to a product ``A(theta)``, and the rule that pulls a gradient back.

    A model holds hyper-parameters only; sizes come from the target it is fitted to, so one model serves
    every dimension.
    """

    @abc.abstractmethod
    def space(self, shape: tuple[int, ...]) -> Space:
        """The space of the product for a target of this shape, or an error that says why there is none."""

    @abc.abstractmethod
    def shapes(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """The shape of each parameter for a target of this shape."""

    @abc.abstractmethod
    def product(self, params: Params) -> Array:
        """``A(theta)``."""

    @abc.abstractmethod
    def pullback(self, params: Params, gradient: Array) -> Params:
        """The direction in parameter space that ``gradient`` (with respect to the product) asks for."""

    @abc.abstractmethod
    def factor(self, params: Params) -> Array:
        """All parameters side by side as one matrix with a row per coordinate: what (17)-(18) of Xu 2024 split."""
