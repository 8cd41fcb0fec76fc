# The public names of this room. `__init__.py` reads this file and imports a name on first use.

from . import laws as laws
from .given_environments import ArrayEnvironments as ArrayEnvironments
from .given_environments import Environments as Environments
from .given_environments import Observed as Observed
from .given_environments import RectangularEnvironments as RectangularEnvironments
from .given_environments import VectorEnvironments as VectorEnvironments
from .laws import Absent as Absent
from .laws import Finite as Finite
from .laws import Gaussian as Gaussian
from .laws import Law as Law
from .laws import RandomLaw as RandomLaw
from .laws import Sampler as Sampler
from .laws import TwoPoint as TwoPoint
from .laws import Uniform as Uniform
from .random_environments import FeatureEnvironments as FeatureEnvironments
from .random_environments import RandomEnvironments as RandomEnvironments
from .random_environments import RandomRectangular as RandomRectangular
