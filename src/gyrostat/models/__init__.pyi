# The public names of this room. `__init__.py` reads this file and imports a name on first use.

from .asymmetric import Asymmetric as Asymmetric
from .base import Model as Model
from .deep_linear import DeepLinear as DeepLinear
from .diagonal import Diagonal as Diagonal
from .symmetric import Symmetric as Symmetric
from .symmetric import SymmetricDifference as SymmetricDifference
