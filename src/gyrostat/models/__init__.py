"""Models: how parameters make a matrix (or, on the diagonal, a vector of coefficients)."""

from gyrostat.models.asymmetric import Asymmetric
from gyrostat.models.base import Model
from gyrostat.models.deep_linear import DeepLinear
from gyrostat.models.diagonal import Diagonal
from gyrostat.models.symmetric import Symmetric, SymmetricDifference

__all__ = ["Asymmetric", "DeepLinear", "Diagonal", "Model", "Symmetric", "SymmetricDifference"]
